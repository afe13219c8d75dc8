"""The conversation of a trajectory as its page shows it: messages with their loss marks, signs and diffs. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prchain.core.llm.thoughts import joined, separated
from prchain.view.diffs import DiffFile
from prchain.view.texts import cut
from trajectories.agents.shell.programs import bash_command, read_run
from trajectories.agents.steps.conversation import arguments_of
from trajectories.audit.finding import AuditFinding
from trajectories.export.masks import LossDecision
from trajectories.model import Entry, EntryKind
from trajectories.rows import VerdictRow

MOST_CHARS = 24_000
"""Of one text of a message; the page of a longer one leads to the whole."""


def is_long(entry: Entry) -> bool:
    """Whether a message has a text that the page cuts."""
    texts = (entry.content, entry.reasoning or "", *(call.arguments for call in entry.tool_calls))
    return any(len(text) > MOST_CHARS for text in texts)


def message_rows(
    entries: Sequence[Entry],
    decisions: Sequence[LossDecision],
    signs: Sequence[AuditFinding],
    diffs: Mapping[int, int],
    whole: Mapping[int, str],
    *,
    reasoning: bool,
) -> list[dict[str, Any]]:
    """The messages as values of JSON. `diffs` is step to the place of its diff, `whole` ordinal to the page of the
    whole text."""
    signed: dict[int, list[dict[str, str]]] = {}
    for sign in signs:
        words = {"sign": str(sign.sign), "evidence": sign.evidence, "meaning": sign.meaning}
        signed.setdefault(sign.step, []).append(words)
    tested = _test_steps(entries)
    rows = []
    for entry, decision in zip(entries, decisions, strict=True):
        row = _row(entry, decision, whole.get(entry.ordinal), reasoning=reasoning)
        if entry.kind is EntryKind.TURN:
            row |= {"signs": signed.get(entry.step, []), "tests": entry.step in tested}
            if (diff := diffs.get(entry.step)) is not None:
                row["diff"] = diff
        rows.append(row)
    return rows


def _row(entry: Entry, decision: LossDecision, whole: str | None, *, reasoning: bool) -> dict[str, Any]:
    content, thoughts = words_of(entry)
    return {
        "n": entry.ordinal,
        "stage": entry.position,
        "attempt": entry.attempt,
        "step": entry.step,
        "kind": str(entry.kind),
        "text": cut(content, MOST_CHARS)[0],
        "thoughts": cut(thoughts, MOST_CHARS)[0] if reasoning else "",
        "calls": [{"name": call.name, "arguments": _arguments(call.arguments)} for call in entry.tool_calls],
        "tool": entry.tool_name or "",
        "whole": whole or "",
        "error": entry.error or "",
        "exit": entry.details.get("exit_code"),
        "timed_out": bool(entry.details.get("timed_out")),
        "dropped": bool(entry.details.get("dropped")),
        "tokens_in": entry.tokens_in,
        "tokens_out": entry.tokens_out,
        "usd": entry.usd,
        "seconds": round(entry.seconds, 3),
        "train": decision.train,
        "reason": str(decision.reason),
    }


def words_of(entry: Entry) -> tuple[str, str]:
    """What a message says, and what was thought before it: also in the content, as some models write it."""
    if entry.role != "assistant":
        return entry.content, entry.reasoning or ""
    said = separated(entry.content, cut=entry.details.get("finish") == "length")
    return said.content, joined(entry.reasoning or "", said.thoughts)


def texts_of(entry: Entry) -> Iterator[str]:
    """The texts of a message: what it says, and the arguments of its calls."""
    yield entry.content
    for call in entry.tool_calls:
        yield call.arguments
        yield from (text for _, text in whole_arguments(call.arguments))


def _arguments(text: str) -> list[list[str]]:
    return [[name, cut(value, MOST_CHARS)[0]] for name, value in whole_arguments(text)]


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _test_steps(entries: Sequence[Entry]) -> Collection[int]:
    """The steps that ran tests by a command whose program is known."""
    observed = {entry.tool_call_id: entry for entry in entries if entry.kind is EntryKind.OBSERVATION}
    return {
        entry.step
        for entry in entries
        for call in entry.tool_calls
        if (command := bash_command(call, arguments_of(call), observed.get(call.id))) and read_run(command).tests
    }


def verdict_row(verdict: VerdictRow, ending: str, *, reference: bool) -> dict[str, Any]:
    """A verdict as a value of JSON; the judge's own words may tell of the reference."""
    grade = verdict.grade
    return {
        "kind": "verdict",
        "stage": verdict.position,
        "attempt": verdict.attempt,
        "accepted": verdict.accepted,
        "ending": ending,
        "gate": verdict.gate,
        "score": verdict.score,
        "tests": verdict.tests or "",
        "judge_error": verdict.judge_error or "",
        "comment": (verdict.comment or "") if reference else "",
        "shown": verdict.shown or "",
        "f2p_failed": _names(grade, "f2p_failed"),
        "f2p_passed": _names(grade, "f2p_passed"),
        "p2p_broken": _names(grade, "p2p_broken"),
        "earlier_broken": _names(grade, "earlier_broken"),
        "carried_failure": _names(grade, "carried_failure"),
        "cheats": _names(grade, "cheats"),
        "taken_back": _names(grade, "taken_back"),
        "usd": verdict.usd,
        "seconds": round(verdict.seconds, 3),
    }


def _names(grade: Mapping[str, Any], name: str) -> list[str]:
    return [str(item) for item in grade.get(name) or ()][:200]


def with_verdicts(messages: Sequence[dict[str, Any]], verdicts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages, and after the last one of each attempt its verdict."""
    waiting = {(row["stage"], row["attempt"]): row for row in verdicts}
    rows: list[dict[str, Any]] = []
    for place, message in enumerate(messages):
        rows.append(message)
        own = (message["stage"], message["attempt"])
        after = messages[place + 1] if place + 1 < len(messages) else None
        if (after is None or (after["stage"], after["attempt"]) != own) and own in waiting:
            rows.append(waiting.pop(own))
    return [*rows, *waiting.values()]


def diff_rows(files: Sequence[DiffFile]) -> list[dict[str, Any]]:
    """The files of a diff as values of JSON; each line is one text with its mark in front."""
    rows = []
    for file in files:
        hunks = [[hunk.place, *(line.mark + line.text for line in hunk.lines)] for hunk in file.hunks]
        row = {**asdict(file), "hunks": hunks}
        del row["lit"], row["lit_left_out"]
        rows.append(row)
    return rows


def plain_text(entries: Sequence[Entry], *, reasoning: bool) -> str:
    """The whole conversation as text."""
    found = []
    for entry in entries:
        error = f", {entry.error}" if entry.error else ""
        found.append(
            f"[{entry.ordinal}] step {entry.step}, stage {entry.position}.{entry.attempt}: {entry.kind}{error}"
        )
        content, thoughts = words_of(entry)
        if thoughts and reasoning:
            found.extend(("reasoning:", thoughts))
        found.append(content)
        for call in entry.tool_calls:
            found.append(f"-> {call.name}")
            found.extend(f"{name}: {text}" if name else text for name, text in whole_arguments(call.arguments))
        found.append("")
    return "\n".join(found)


def whole_arguments(text: str) -> list[tuple[str, str]]:
    """The arguments of a call as pairs of name and text; of what is no JSON object, the text as it was written."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        return [("", text)]
    return [(str(name), _shown(value)) for name, value in found.items()]
