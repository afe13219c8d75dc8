"""The folder that the rig works on: its mirrors mined, tasks of our own words written, stages proved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from chains.tasks.query import overview_subject, stage_subject
from prchain.core.llm.purposes import OVERVIEW, PLAN, QUERY
from prchain.demo.script import prose
from research.graph_stages.cases import HandChain


def prepare_folder(folder: Path, repos: Path, chains: Sequence[HandChain]) -> int:
    """Run the commands that come before graphs; returns the exit code of the first that fails, else 0."""
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "tasks.jsonl"
    lines = [json.dumps({**line, "repeat": True}, ensure_ascii=False) for chain in chains for line in task_lines(chain)]
    script.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    kinds = sorted({(chain.repository, chain.strategy) for chain in chains})
    commands = [["mine", str(repos), "--source", "git"]]
    commands += [
        ["chains", "build", repository, "--strategy", strategy, "--allow-benchmarks"] for repository, strategy in kinds
    ]
    for chain in chains:
        commands += [["tasks", "build", "--chain", chain.chain, "--strategy", chain.strategy]]
        commands += [["environments", "validate", "--chain", chain.chain, "--runs", "2"]]
    environment = {
        **os.environ,
        "PRCHAIN_DB": str(folder / "prchain.db"),
        "PRCHAIN_DATA_DIR": str(folder),
        "PRCHAIN_LLM_SCRIPT": str(script),
    }
    for command in commands:
        code = subprocess.run([sys.executable, "-m", "prchain", *command], env=environment, check=False).returncode
        if code:
            return code
    return 0


def task_lines(chain: HandChain) -> Iterator[dict[str, Any]]:
    """The replies that make a chain's task, for `prchain.core.llm.scripted`."""
    yield {
        "purpose": OVERVIEW,
        "subject": overview_subject(chain.chain),
        "reply": {"overview": prose(chain.overview)},
    }
    for stage in chain.stages:
        subject = stage_subject(chain.chain, stage.position)
        yield {"purpose": PLAN, "subject": subject, "reply": stage.plan.model_dump()}
        yield {"purpose": QUERY, "subject": subject, "reply": {"query": prose(stage.query)}}
