"""Public trajectories of mini-swe-agent in a mirror of its repository, as our entries.

Format ``mini-swe-agent-1.1``: a system message, a user message with the task, assistant messages with calls of
``bash``, tool messages with ``<returncode>`` and ``<output>``. A trajectory's name is the beginning of its blob's id,
so it is the same for everybody who has the mirror. Trees are not in the file: one is made up after each step that
wrote.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prchain.llm.model import ToolCall
from prchain.scrub import clean_text
from trajectories.model import Entry, EntryKind
from trajectories.prm.effects import Change, effect_of
from trajectories.steps import steps_of

FEWEST = 12
"""Steps; a shorter trajectory has hardly a window."""

WORKDIR = "/testbed"
_NAME = 16
_RETURN_CODE = re.compile(r"\A<returncode>(-?\d+)</returncode>")
_SUBMITS = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@dataclass(frozen=True)
class PublicTrajectory:
    """One trajectory: a stage of one attempt."""

    name: str
    instance: str
    entries: tuple[Entry, ...]


def public_trajectories(mirror: Path) -> Iterator[PublicTrajectory]:
    """Those with `FEWEST` steps or more, by name; blobs that the mirror lacks are left out."""
    listed = _git(mirror, "rev-list", "--all", "--objects", "--missing=allow-any")
    blobs = sorted({line.split(" ", 1)[0] for line in listed.splitlines() if line.endswith(".traj.json")})
    for blob in blobs:
        try:
            value = json.loads(_git(mirror, "cat-file", "blob", blob))
        except (subprocess.CalledProcessError, ValueError):
            continue
        if isinstance(value, dict) and str(value.get("trajectory_format", "")).startswith("mini-swe-agent"):
            entries = entries_of(value["messages"])
            if len(steps_of(entries)) >= FEWEST:
                yield PublicTrajectory(blob[:_NAME], str(value.get("instance_id", "")), tuple(entries))


def _git(mirror: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(mirror), *arguments], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def entries_of(messages: Sequence[dict[str, Any]]) -> list[Entry]:
    """The messages of a file as entries of stage 1, attempt 1."""
    entries: list[Entry] = []
    step = 0

    def add(kind: EntryKind, role: Any, content: str, **fields: Any) -> None:
        entries.append(Entry(len(entries), 1, 1, step, kind, role, clean_text(content), **fields))

    for message in messages:
        role, content = message.get("role"), str(message.get("content") or "")
        if role == "system":
            add(EntryKind.SYSTEM, "system", content)
        elif role == "user" and step == 0:
            add(EntryKind.QUERY, "user", content, details={"query": clean_text(content), "workdir": WORKDIR})
        elif role == "assistant":
            step += 1
            calls = [
                ToolCall(str(it.get("id")), it["function"]["name"], clean_text(it["function"]["arguments"]))
                for it in message.get("tool_calls") or ()
            ]
            add(EntryKind.TURN, "assistant", content, tool_calls=tuple(calls))
        elif role == "tool":
            code = _RETURN_CODE.match(content)
            details = {} if code is None else {"exit_code": int(code[1])}
            error = None if code is not None else "timeout"
            name = str(message.get("tool_call_id"))
            add(
                EntryKind.OBSERVATION,
                "tool",
                content,
                tool_call_id=name,
                tool_name="bash",
                details=details,
                error=error,
            )
        elif role == "exit" and entries and entries[-1].kind is EntryKind.TURN:
            calls = list(entries[-1].tool_calls)
            fields: dict[str, Any] = {"tool_call_id": calls[0].id, "tool_name": "bash"} if calls else {}
            add(EntryKind.OBSERVATION, "tool", "Submitted.", details={"submitted": True}, **fields)
    return _with_trees(entries)


def _with_trees(entries: Sequence[Entry]) -> list[Entry]:
    trees = {}
    for step in steps_of(entries):
        effects = [effect_of(call, arguments, seen, WORKDIR) for call, arguments, seen in step.calls]
        if step.observations and any(effect.change is Change.SURE for effect in effects):
            trees[step.observations[-1].ordinal] = f"{step.number:040x}"
    return [replace(entry, tree=trees.get(entry.ordinal)) for entry in entries]
