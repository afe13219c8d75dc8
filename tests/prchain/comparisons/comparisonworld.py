"""A finished demo's folder with a pool of published tasks, and a script that answers what papers' settings ask."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from environments.backends import BACKENDS
from prchain.core.settings import Settings
from prchain.demo.backend import ChosenBackend
from prchain.demo.folder import SCRIPT, prepare
from prchain.demo.guidance_script import GuidedWindow, window_reply
from prchain.demo.library import REPOSITORY
from prchain.demo.script import prose, read_answers
from sql.tables import ChainStage, StageTests
from tests.trajectories.demoworld import Ran, alone_in, git, landings

POOL = {4: "own", 3: "write"}
"""Pull request to the demo's chain that it begins: the plain agent solves #3 alone, and #4 has a process graph."""

FIRST = {"purpose": "curator", "contains": "can be found out in place of step", "reply": {"step": 2, "node": "float.2"}}
"""Where the curator picks itself, the place that the rule picks in the demo."""

OVERVIEW = (
    "The library of quantities grows by one small piece at a time. Each piece leaves what is there as it was, keeps "
    "amounts exact, and refuses what it does not understand, so that people who build on it can trust what they read."
)

LAST: tuple[Mapping[str, Any], ...] = (
    {"purpose": "overview", "reply": {"overview": OVERVIEW}},
    {"purpose": "prm", "reply": window_reply(GuidedWindow(sees="", status="On track", guidance="Go on."))},
)
"""Of chains and windows that the demo does not have."""


def lay_out(ran: Ran, folder: Path) -> Path:
    """Copy the demo's folder, with sandboxes that take snapshots and a file of tasks; returns that file."""
    ran.copied(folder)
    backend = ChosenBackend(BACKENDS["local"], "a test")
    with alone_in(folder):
        prepare(folder, backend, Settings(), None)
    script = folder / SCRIPT
    lines = [FIRST, *map(json.loads, script.read_text(encoding="utf-8").splitlines()), *LAST]
    script.write_text("".join(f"{json.dumps({**line, 'repeat': True})}\n" for line in lines), encoding="utf-8")
    pool = folder / "pool.jsonl"
    pool.write_text("".join(f"{json.dumps(row)}\n" for row in _rows(ran, folder)), encoding="utf-8")
    return pool


def _rows(ran: Ran, folder: Path) -> list[dict[str, Any]]:
    """Tasks in SWE-bench's columns: the demo's queries, and the pull requests' own patches and tests."""
    repository, answers = folder / "measures", read_answers()
    landed = landings(repository)
    numbers = {row[:2]: row[2] for row in ran.rows(ChainStage, "chain_id", "position", "number")}
    tests = {numbers[row[:2]]: row[2]["f2p"] for row in ran.rows(StageTests, "chain_id", "position", "classes")}
    rows = []
    for number, chain in POOL.items():
        base = git(repository, "rev-parse", f"{landed[number]}^1")
        source, own = (git(repository, "diff", base, landed[number], "--", path) for path in (":!tests", "tests"))
        rows.append(
            {
                "repo": REPOSITORY,
                "instance_id": f"demo__measures-{number}",
                "base_commit": base,
                "patch": f"{source}\n",
                "test_patch": f"{own}\n",
                "problem_statement": prose(answers[chain].stages[0].query),
                "hints_text": "",
                "version": "1",
                "created_at": "2024-05-01T12:30:00Z",
                "FAIL_TO_PASS": tests[number],
                "PASS_TO_PASS": [],
            }
        )
    return rows
