"""What prchain says of a trajectory in the ``extra`` of its documents (`trajectories.export.formats.atif`): stages,
rounds, kinds of messages, loss flags, verdicts. Anybody can write that: what does not fit is as if it were not there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prchain.core.storable import clean_text
from trajectories.imports.nodes import JsonNode
from trajectories.model import Entry, EntryKind, Reason
from trajectories.outcomes import IMPORTED
from trajectories.rows import StageRow, VerdictRow

PROGRAM = "prchain"

_MOST_STAGES = 1_000
_REASONS = frozenset(map(str, Reason))


@dataclass(frozen=True, slots=True)
class StepPlace:
    """What prchain says of a step beyond ATIF."""

    position: int
    attempt: int
    kind: EntryKind | None
    """None: as the step's source says."""
    loss: Mapping[str, Any] | None = None


FOREIGN = StepPlace(1, 1, None)

KINDS: Mapping[str, frozenset[EntryKind]] = {
    "agent": frozenset({EntryKind.TURN}),
    "system": frozenset({EntryKind.SYSTEM}),
    "user": frozenset(EntryKind) - {EntryKind.TURN, EntryKind.SYSTEM},
}


def places_of(steps: Sequence[JsonNode]) -> list[StepPlace] | None:
    """What prchain says of each step; None where it is not prchain that wrote all of them."""
    found = [_place(step) for step in steps]
    return [place for place in found if place is not None] if None not in found else None


def _place(step: JsonNode) -> StepPlace | None:
    extra, source = step.extra(), step.values.get("source")
    position, attempt = (whole_of(extra.get(name), 0) for name in ("stage", "round"))
    kinds = {str(kind): kind for kind in KINDS.get(str(source), ())}
    kind, train, reason = kinds.get(str(extra.get("kind"))), extra.get("train"), str(extra.get("reason"))
    if kind is None or not (0 < position <= _MOST_STAGES and 0 < attempt <= _MOST_STAGES):
        return None
    if not isinstance(train, bool) or reason not in _REASONS or train is not (reason == Reason.TURN):
        return None
    return StepPlace(position, attempt, kind, {"train": train, "reason": reason})


def stages_of(
    entries: Sequence[Entry], extra: Mapping[str, Any], left_out: Counter[str]
) -> tuple[tuple[StageRow, ...], tuple[VerdictRow, ...]]:
    """The stages of the entries, and those that prchain tells, with verdicts."""
    rounds: dict[int, int] = {}
    for entry in entries:
        rounds[entry.position] = max(entry.attempt, rounds.get(entry.position, 0))
    trees: dict[int, str | None] = {}
    for told in _objects(extra.get("stages")):
        position, attempts = (whole_of(told.get(name), 0) for name in ("stage", "rounds"))
        if 0 < position <= _MOST_STAGES and attempts <= _MOST_STAGES:
            rounds[position], trees[position] = attempts, _name(told, "tree")
    verdicts: dict[tuple[int, int], VerdictRow] = {}
    for told in _objects(extra.get("verdicts")):
        verdict = _verdict(told)
        left_out["verdicts"] += verdict is None or verdict.position not in rounds
        if verdict is not None and verdict.position in rounds:
            verdicts[verdict.position, verdict.attempt] = verdict
    steps = Counter(entry.position for entry in entries if entry.kind is EntryKind.TURN)
    stages = (
        StageRow(position, IMPORTED, end_tree=trees.get(position), attempts=attempts, steps=steps[position])
        for position, attempts in sorted(rounds.items())
    )
    return tuple(stages), tuple(verdicts.values())


def _verdict(told: Mapping[str, Any]) -> VerdictRow | None:
    position, attempt = (whole_of(told.get(name), 0) for name in ("stage", "round"))
    accepted, score, gate = told.get("accepted"), told.get("score"), _name(told, "gate")
    if not (0 < position <= _MOST_STAGES and 0 < attempt <= _MOST_STAGES and gate and len(gate) <= 16):
        return None
    if not (accepted is None or isinstance(accepted, bool)):
        return None
    if score is not None and (isinstance(score, bool) or not isinstance(score, int | float) or not 0 <= score <= 1):
        return None
    tests, tree = _name(told, "tests"), _name(told, "tree")
    return VerdictRow(
        position,
        attempt,
        tree or "",
        accepted,
        gate,
        None if score is None else float(score),
        tests=tests[:32] if tests else None,
        usd=None,
    )


def told_of(extra: Mapping[str, Any], short: Callable[[str | None], str | None]) -> dict[str, Any]:
    """What prchain says of the trajectory that no row of an import holds."""
    names = {"outcome": "outcome", "language": "language", "chain": "chain_id", "trajectory": "trajectory_id"}
    found: dict[str, Any] = {"program": PROGRAM}
    found |= {ours: text for ours, name in names.items() if (text := short(text_of(extra, name)))}
    for ours, theirs in (("proofs", "proof"), ("safeguards", "safeguard")):
        of_stages = {
            str(whole_of(stage.get("stage"), 0)): said
            for stage in _objects(extra.get("stages"))
            if (said := short(text_of(stage, theirs)))
        }
        found |= {ours: of_stages} if of_stages else {}
    parent = extra.get("parent")
    if isinstance(parent, dict) and (name := short(text_of(parent, "trajectory_id"))):
        found["parent"] = [name, whole_of(parent.get("turns"), 0)]
    return found


def amount_of(values: Mapping[str, Any], name: str) -> float | None:
    """A number that an amount can be; None where there is none."""
    value = values.get(name)
    known = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
    return float(value) if known and value is not None else None


def text_of(values: Mapping[str, Any], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) and value.strip() else None


def _name(values: Mapping[str, Any], name: str) -> str | None:
    """A word of ours, no longer than its column."""
    value = text_of(values, name)
    return clean_text(value)[:64] if value else None


def whole_of(value: Any, default: int) -> int:
    known = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
    return int(value) if known else default


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
