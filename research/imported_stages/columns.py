"""A proved stage as a row in the columns of each publisher whose data sets are read."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from chains.tasks.swebench import END, START, harness_ids
from environments.proofs.proof_rows import StageProof
from environments.stages import Stage
from prchain.core.code.reference import split
from prchain.core.errors import UsageError
from prchain.core.git.patches import FilePatch
from prchain.core.git.repository import GitRepository
from tests.chains.import_rows import ROWS, in_form, swe_gym, swe_smith

COLUMNS = tuple(ROWS)


@dataclass(frozen=True, slots=True)
class PublishedStage:
    """A proved stage as a publisher would tell it."""

    repository: str
    """``owner/name``."""
    number: int
    base: str
    landed: str
    landed_at: str
    query: str
    patch: str
    test_patch: str
    fault: str
    """The patch taken back: what SWE-smith calls its patch."""
    f2p: tuple[str, ...]
    """By the names of SWE-bench's log parser, as are those of `p2p`."""
    p2p: tuple[str, ...]
    command: str
    image: str | None
    """Of its checkout; None where none was kept (``--stage-images``)."""

    @classmethod
    def of(cls, git: GitRepository, repository: str, stage: Stage, proof: StageProof) -> PublishedStage:
        """A stage of ours, of a repository ``owner/name``; its query is the message that it landed with. Raises
        `UsageError` for a patch that is no UTF-8."""
        [files] = git.patches([(stage.base, stage.landed)])
        reference = split(files)
        work = (*reference.source, *reference.other)
        tests = asdict(proof.classes)
        others = [test for kind in tests.keys() - {"f2p", "p2p"} for test in tests[kind]]
        f2p, p2p, _ = harness_ids(proof.runner or "", tests["f2p"], tests["p2p"], others)
        return cls(
            repository,
            stage.number,
            stage.base,
            stage.landed,
            stage.landed_at,
            git.run("log", "-1", "--format=%B", stage.landed).strip(),
            _patch(git, stage.base, stage.landed, work),
            _patch(git, stage.base, stage.landed, reference.test),
            _patch(git, stage.landed, stage.base, work),
            tuple(f2p),
            tuple(p2p),
            proof.command or "",
            proof.stage_image,
        )


def rows_of(stage: PublishedStage) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The name of each publisher's columns, and the row of a stage in them."""
    owner, _, name = stage.repository.partition("/")
    row = swe_gym(
        instance_id=f"{owner}__{name}-{stage.number}",
        repo=stage.repository,
        base_commit=stage.base,
        problem_statement=stage.query,
        patch=stage.patch,
        test_patch=stage.test_patch,
        created_at=stage.landed_at,
        FAIL_TO_PASS=[*stage.f2p],
        PASS_TO_PASS=[*stage.p2p],
    )
    landed_at = datetime.fromisoformat(stage.landed_at)
    for columns in COLUMNS:
        if columns == "swe_smith":
            copy = f"{owner}__{name}.{stage.landed[:8]}"
            made = swe_smith(
                instance_id=f"{copy}.pr_{stage.number}",
                repo=f"swesmith/{copy}",
                patch=stage.fault,
                problem_statement=stage.query,
                created_at=stage.landed_at,
                image_name=f"swebench/swesmith.x86_64.{owner}_1776_{name}.{stage.landed[:8]}".lower(),
                FAIL_TO_PASS=[*stage.f2p],
                PASS_TO_PASS=[*stage.p2p],
            )
        else:
            made = in_form(columns, row)
        match columns:
            case "swe_bench" | "verified" | "swe_gym" | "nemo_skills":
                made["created_at"] = stage.landed_at
            case "harness_5":
                made |= {
                    "created_at": stage.landed_at,
                    "image": stage.image,
                    "eval_script": _script(stage.command),
                }
            case "swe_rebench":
                config = made["install_config"] | {"test_cmd": stage.command}
                made |= {"created_at": landed_at.isoformat(" "), "install_config": config, "docker_image": None}
            case "swe_rebench_v2":
                config = made["install_config"] | {"test_cmd": [stage.command]}
                made |= {"created_at": str(int(landed_at.timestamp() * 1000)), "install_config": config}
                made["image_name"] = f"swerebenchv2/{owner}-{name}:{stage.number}-{stage.base[:7]}".lower()
        yield columns, made


def _script(command: str) -> str:
    """What the harness 5 runs, as far as a reader of it goes."""
    return "\n".join(("#!/bin/bash", "cd /testbed", f": {shlex.quote(START)}", command, f": {shlex.quote(END)}", ""))


def _patch(git: GitRepository, old: str, new: str, files: tuple[FilePatch, ...]) -> str:
    if not files:
        return ""  # git takes no path for every path
    paths = sorted({path for file in files for path in (file.path, file.old_path) if path})
    try:
        return git.patch_text(old, new, paths).decode()
    except UnicodeDecodeError:
        raise UsageError(f"the patch from {old} to {new} holds bytes that are no UTF-8, which no row can") from None


def line(row: Mapping[str, Any]) -> str:
    """A row as a line of a file."""
    return json.dumps(row, default=str) + "\n"
