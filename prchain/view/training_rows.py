"""A row of an exported file as people read it: its messages, which of them are under loss, and how long each is. Pure.

The keys are those of `trajectories.export.formats`: ``step_loss_mask`` (slime), ``loss`` (ms-swift), ``weight``
(OpenAI), ``prompt`` and ``completion`` (TRL), ``conversations`` (LLaMA-Factory).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from prchain.core.llm.thoughts import separated
from prchain.view.conversation import whole_arguments
from prchain.view.texts import cut
from trajectories.export.tokens import BYTES_A_TOKEN
from trajectories.json_text import parsed

MOST_CHARS = 24_000
"""Of one text of a message."""

_MODEL = frozenset({"assistant", "tool_call", "gpt", "function_call"})
_ROLES = {"tool_call": "assistant", "gpt": "assistant", "function_call": "assistant"} | {
    "tool_response": "tool",
    "observation": "tool",
    "human": "user",
}
_MASKS = ("step_loss_mask", "loss", "weight")


@dataclass(frozen=True, slots=True)
class RowMessage:
    """One message of a row."""

    role: str
    """``system``, ``user``, ``assistant`` or ``tool``, whatever the format calls it."""
    text: str
    thoughts: str
    calls: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    """Name and arguments of each."""
    train: bool
    reason: str
    """Why it is under loss or not, where the format tells; else empty."""
    tokens: int
    """Estimated, as an export without a tokenizer does: text by text."""


@dataclass(frozen=True, slots=True)
class TokenSlice:
    """A part of a row's bar, in percent of it: what one message takes."""

    style: str
    """``train``, ``masked`` for a model's turn that is not under loss, or ``rest``."""
    start: float
    width: float


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A row; without messages where it could not be read."""

    number: int
    """The first one is 1."""
    problem: str
    sample: str
    """Empty where the format tells none, as the next two."""
    trajectory: str
    chain: str
    messages: tuple[RowMessage, ...] = ()
    tools: int = 0
    counted: int | None = None
    """Tokens as the export counted them; None where the row does not tell."""

    @property
    def tokens(self) -> int:
        """Of its texts, estimated."""
        return sum(message.tokens for message in self.messages)

    @property
    def trained(self) -> int:
        """Those of them under loss."""
        return sum(message.tokens for message in self.messages if message.train)

    @property
    def turns(self) -> tuple[int, int]:
        """The model's turns under loss, and all of them."""
        turns = [message.train for message in self.messages if message.role == "assistant"]
        return sum(turns), len(turns)


def read_row(number: int, line: bytes, *, last_only: bool = False, reasoning: bool = True) -> TrainingRow:
    """A line of a file of JSON lines. `last_only`: of a conversation without loss marks its last turn is trained on,
    as in rows of one turn; else every turn. Without `reasoning` thoughts are left out."""
    try:
        value = parsed(line.decode("utf-8"))
    except ValueError as error:
        return TrainingRow(number, f"no JSON: {error}", "", "", "")
    given = _given(value, last_only=last_only) if isinstance(value, dict) else None
    if given is None:
        return TrainingRow(number, "no row of prchain's: it has no messages", "", "", "")
    messages = [_message(it, unmarked, reasoning=reasoning) for it, unmarked in given]
    told = value.get("metadata")
    facts: Mapping[str, Any] = told if isinstance(told, dict) else {}
    sample, trajectory, chain = (str(facts.get(name) or "") for name in ("sample_id", "trajectory_id", "chain_id"))
    count = facts.get("tokens")
    counted = count if isinstance(count, int) else None
    return TrainingRow(number, "", sample, trajectory, chain, tuple(messages), _tools(value.get("tools")), counted)


def slices(row: TrainingRow) -> list[TokenSlice]:
    """The bar of a row: neighbours that look alike are one part."""
    whole = row.tokens or 1
    found: list[TokenSlice] = []
    at = 0
    for message in row.messages:
        style = "train" if message.train else "masked" if message.role == "assistant" else "rest"
        start, width = 100 * at / whole, 100 * message.tokens / whole
        if found and found[-1].style == style:
            start, width = found[-1].start, found[-1].width + width
            found.pop()
        found.append(TokenSlice(style, round(start, 3), round(width, 3)))
        at += message.tokens
    return found


def _given(row: Mapping[str, Any], *, last_only: bool) -> list[tuple[Mapping[str, Any], bool]] | None:
    """The messages of a row, and whether one without a mark is under loss if it is a model's; None without messages."""
    if "prompt" in row and "completion" in row:
        prompt, completion = (_objects(row[name]) for name in ("prompt", "completion"))
        return [*((it, False) for it in prompt), *((it, True) for it in completion)]
    if isinstance(row.get("messages"), list):
        given = _objects(row["messages"])
        marked = any(name in it for it in given for name in _MASKS)
        return [(it, not marked) for it in given]
    if isinstance(row.get("conversations"), list):
        given = _objects(row["conversations"])
        last = max((place for place, it in enumerate(given) if _role(it) in _MODEL), default=-1)
        system = _text(row.get("system"))
        lead = [({"role": "system", "content": system}, False)] if system else []
        return [*lead, *((it, place == last or not last_only) for place, it in enumerate(given))]
    return None


def _message(it: Mapping[str, Any], unmarked: bool, *, reasoning: bool) -> RowMessage:
    role = _role(it)
    mark = next((it[name] for name in _MASKS if it.get(name) is not None), None)
    train = role in _MODEL and (unmarked if mark is None else bool(mark))
    text = _text(it.get("content", it.get("value")))
    field = _text(it.get("reasoning_content"))
    said, thoughts = text, field
    if role in _MODEL and role != "tool_call":
        parts = separated(text)
        said, thoughts = parts.content, "\n\n".join(filter(None, (field, parts.thoughts)))
    calls = tuple(_call(call) for call in _list(it.get("tool_calls")))
    texts = (text, field, *(part for call in calls for part in call))
    return RowMessage(
        _ROLES.get(role, role),
        cut(said, MOST_CHARS)[0],
        cut(thoughts, MOST_CHARS)[0] if reasoning else "",
        tuple((name, _parts(arguments)) for name, arguments in calls),
        train,
        _text(it.get("loss_reason")),
        sum(-(-len(part.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN) for part in texts),
    )


def _role(it: Mapping[str, Any]) -> str:
    return _text(it.get("role", it.get("from"))) or "unknown"


def _call(call: Any) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, dict) else None
    named: Mapping[str, Any] = function if isinstance(function, dict) else {}
    return _text(named.get("name")) or "unknown", _text(named.get("arguments"))


def _parts(arguments: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, cut(text, MOST_CHARS)[0]) for name, text in whole_arguments(arguments))


def _tools(value: Any) -> int:
    if isinstance(value, str):
        try:
            value = parsed(value)
        except ValueError:
            return 0
    return len(_list(value))


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _objects(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in _list(value) if isinstance(item, dict)]
