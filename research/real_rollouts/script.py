"""The script of a model with which an agent makes given trees; and a task for a chain that has none."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from prchain.core.git import path_text
from prchain.core.git.trees import TreeStore
from research.real_rollouts.work import StageWork
from sql.store import Store
from sql.tables import ChainStage, Task, TaskStage
from trajectories.identity import subject

OVERVIEW = "Scripted: the stages of this chain follow each other in one repository, and each builds on those before."
QUERY = "Scripted: do the work of stage {position} of this chain."

_END = "END_OF_THE_PATCH"


def script(store: TreeStore, works: Sequence[StageWork], trajectory: str) -> list[dict[str, Any]]:
    """Lines for `prchain.core.llm.scripted`: each stage's patch, file by file with git, git status, and the
    submission."""
    lines: list[dict[str, Any]] = []
    for work in works:
        changed = [path_text(change.path) for change in store.diff(work.state.tree, work.tree)]
        commands = [command(store.patch_text(work.state.tree, work.tree, [path])) for path in changed]
        calls = [("bash", {"command": command}) for command in [*commands, "git status --short"]]
        for name, arguments in [*calls, ("submit", {})]:
            call = {"name": name, "arguments": arguments, "id": f"call_{len(lines) + 1}"}
            lines.append(
                {
                    "purpose": "agent",
                    "subject": subject(trajectory, work.position),
                    "reply": "On with it.",
                    "tool_calls": [call],
                }
            )
    return lines


def command(patch: bytes) -> str:
    """A command that applies a patch of any bytes."""
    try:
        text = patch.decode()
    except UnicodeDecodeError:
        text = ""
    if text and not set(text) & {"\0", "\r"} and f"\n{_END}\n" not in text:
        return f"git apply --whitespace=nowarn <<'{_END}'\n{text}{_END}"
    return f"base64 -d <<'{_END}' | git apply --whitespace=nowarn\n{base64.encodebytes(patch).decode()}{_END}"


def ensure_task(store: Store, chain_id: str) -> bool:
    """Write a scripted task for a chain that has no ready one; returns whether it was needed."""
    with store.transaction() as tx:
        if [outcome for (outcome,) in tx.rows(Task, "outcome", chain_id=chain_id)] == ["ready"]:
            return False
        positions = [position for (position,) in tx.rows(ChainStage, "position", chain_id=chain_id)]
        task: dict[str, Any] = {
            "chain_id": chain_id,
            "outcome": "ready",
            "reason": None,
            "overview": OVERVIEW,
            "findings": [],
            "attempts": 1,
            "model": "scripted",
            "prompts": {},
            "created_at": "2026-01-01T00:00:00Z",
        }
        tx.upsert(Task, [task])
        tx.upsert(
            TaskStage,
            [
                {
                    "chain_id": chain_id,
                    "position": position,
                    "outcome": "ready",
                    "reason": None,
                    "plan": None,
                    "query": QUERY.format(position=position),
                    "interface": [],
                    "files": [],
                    "findings": [],
                    "attempts": 1,
                }
                for position in positions
            ],
        )
    return True
