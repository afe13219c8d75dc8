"""Stages as SWE-bench 5.x instances: one per stage, so that its harness can grade patches of that stage.

Follows the shape of the harness (`swebench.harness.utils.make_test_spec`, `grading.get_logs_eval` of 5.0.2) without
importing it. The harness needs a local or pullable image with the repository as a git checkout at ``/testbed``, whose
HEAD has the tree that the stage starts from. It applies the model's patch there and then runs the eval script.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from chains.tasks.record import StageRecord, TaskRecord
from prchain.core.code.needs import Need
from prchain.core.errors import UsageError
from prchain.core.git import parse_patch
from prchain.core.swebench.instances import instance_id
from prchain.core.swebench.logparsers import LOG_PARSERS

START, END = ">>>>> Start Test Output", ">>>>> End Test Output"
"""The marks by which the harness cuts the log (`swebench.harness.constants`)."""


@dataclass(frozen=True, slots=True)
class HarnessTests:
    """A stage's tests. Ids are ours; `instance` turns them into those of the harness."""

    image: str
    """Docker's name of an image whose ``/testbed`` is a git checkout of the stage's start."""
    runner: str
    """Key of `prchain.core.swebench.logparsers.LOG_PARSERS`."""
    command: str
    """The test command, in the tree's root, with the files to run (`environments.suites.plaincommands`)."""
    f2p: Sequence[str]
    p2p: Sequence[str]
    others: Sequence[str] = ()
    """Ids of the other tests that the command runs; a name that one of them shares is not used."""
    setup: Sequence[str] = ()
    """Commands before the tests: activate an environment, refresh compiled parts."""


def instance(task: TaskRecord, stage: StageRecord, tests: HarnessTests) -> dict[str, Any]:
    """The instance of one stage: the legacy keys, what the harness reads, and its chain (``chain_*``).

    A test that the harness's parser cannot tell from another of the stage is left out of both lists: the parser cuts
    pytest ids at the first blank, so ``t[a b]`` and ``t[a c]`` are the same. Raises `UsageError` where the stage cannot
    be expressed: patches that are not text, a runner without a log parser, or no F2P test left.
    """
    name = instance_id(task.repository.name, task.chain_id, stage.position)
    if stage.lossy:
        raise UsageError(f"{name}: its patch holds bytes that are no UTF-8, which an instance cannot carry")
    if tests.runner not in LOG_PARSERS:
        raise UsageError(f"{name}: SWE-bench has no log parser for {tests.runner}")
    f2p, p2p, dropped = harness_ids(tests.runner, tests.f2p, tests.p2p, tests.others)
    if not f2p:
        raise UsageError(f"{name}: no F2P test is left that SWE-bench's log parser can tell from others")
    return {
        "instance_id": name,
        "repo": task.repository.name,
        "base_commit": stage.base_sha,
        "patch": stage.source_patch,
        "test_patch": stage.test_patch,
        "problem_statement": stage.query or "",
        "hints_text": "\n".join(Need(**need.model_dump()).words() for need in stage.interface),
        "created_at": stage.landed_at,
        "version": f"stage-{stage.position}",
        "environment_setup_commit": stage.base_sha,
        "FAIL_TO_PASS": json.dumps(f2p, ensure_ascii=False),
        "PASS_TO_PASS": json.dumps(p2p, ensure_ascii=False),
        "image": tests.image,
        "log_parser": LOG_PARSERS[tests.runner].name,
        "eval_type": "pass_and_fail",
        "eval_script": eval_script(stage, tests.command, tests.setup),
        "chain_id": task.chain_id,
        "chain_position": stage.position,
        "chain_length": len(task.stages),
        "chain_overview": task.overview,
        "chain_tests_left_out": dropped,
        "chain_benchmark": task.benchmark,
        "chain_proof": None if stage.proof is None else stage.proof.model_dump(mode="json"),
    }


def harness_ids(
    runner: str, f2p: Sequence[str], p2p: Sequence[str], others: Sequence[str] = ()
) -> tuple[list[str], list[str], list[str]]:
    """F2P and P2P by the names of the harness's log parser, and our ids of the tests that it cannot tell apart."""
    tests_by_name: dict[str, list[str]] = {}
    parsed_names = {test: LOG_PARSERS[runner].name_of(test) for test in (*f2p, *p2p, *others)}
    for test, name in parsed_names.items():
        tests_by_name.setdefault(name, []).append(test)
    unique = {test: name for test, name in parsed_names.items() if name and len(tests_by_name[name]) == 1}
    dropped = [test for test in (*f2p, *p2p) if test not in unique]
    return [unique[test] for test in f2p if test in unique], [unique[test] for test in p2p if test in unique], dropped


def eval_script(stage: StageRecord, command: str, setup: Sequence[str] = ()) -> str:
    """The script that the harness runs after it has applied the model's patch.

    First it restores the test files of the stage's start, so that what the model's patch did to them does not count.
    The command is right before the end mark: the harness takes ``$?`` there as its exit code. `command` and each of
    `setup` are one line. Raises `UsageError` for more, where a command or the test patch contains a mark, and where the
    test patch has a NUL, which bash leaves out (git takes a file for text whose first one is behind 8,000 bytes).
    """
    if any("\n" in line for line in (command, *setup)):
        raise UsageError("a command of an eval script is one line")
    if any(mark in text for mark in (START, END) for text in (command, *setup, stage.test_patch)):
        raise UsageError("an eval script cannot hold the marks that SWE-bench cuts its log by")
    if "\0" in stage.test_patch:
        raise UsageError("an eval script cannot hold a test patch with a NUL byte")
    files = parse_patch(stage.test_patch)
    old = sorted({file.old_path or file.path for file in files if file.status not in {"A", "C"}})
    new = sorted({file.path for file in files if file.status in {"A", "C", "R"}})
    restore = f"git checkout HEAD -- {shlex.join(old)}" if old else ":"
    mark = "EOF_" + hashlib.sha256(stage.test_patch.encode()).hexdigest()[:16]
    patch = [f"git apply --verbose - <<'{mark}'", stage.test_patch.removesuffix("\n"), mark]
    lines = [
        "#!/bin/bash",
        "set -uxo pipefail",
        "cd /testbed",
        *setup,
        *([f"rm -rf -- {shlex.join(new)}"] if new else []),
        restore,
        *(patch if files else []),
        f": '{START}'",
        command,
        f": '{END}'",
        restore,
    ]
    return "\n".join(lines) + "\n"
