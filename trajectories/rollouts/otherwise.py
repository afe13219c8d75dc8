"""Rollouts of the same chains that were made with other choices: what differs, and how to go on with them.

Another option, model or observer makes another trajectory, which is paid for anew. Whoever forgot an option of an
earlier run learns it here, before a call is made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prchain.core.errors import UsageError
from prchain.core.keyed import written
from prchain.core.told import Within, keys_of
from sql.store import Transaction
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.identity import CHOICES, PLACE, stored
from trajectories.options import DEFAULTS, ELSEWHERE, RolloutOptions
from trajectories.privileged import PRIVILEGED
from trajectories.rollouts.standing import read_rows
from trajectories.rows import find_trajectory, stored_trajectory
from trajectories.task import read_texts

if TYPE_CHECKING:
    from trajectories.rollouts.rollout import RunContext


_SHOWN = 4
"""So many differences are told; the others are counted."""


@dataclass(frozen=True, slots=True)
class OtherChoice:
    """A choice in which a stored rollout differs from those of a run."""

    name: str
    """As it is typed: ``--gate``, ``--agent context``, ``agent's model``."""
    stored: str
    """Its value in the stored rollout, as it is typed; ``none`` where there is none."""
    now: str
    """Its value in this run."""


@dataclass(frozen=True, slots=True)
class OtherRollouts:
    """Stored rollouts of chains that were made with other choices than a run has."""

    over: int = 0
    """Those that are over."""
    begun: int = 0
    """Those that are not: what they paid would be left lying."""
    nearest: str | None = None
    """The id of the one with the fewest differences; of equal ones, one that is over."""
    differences: tuple[OtherChoice, ...] = ()
    """In what it differs."""


def other_rollouts(tx: Transaction, context: RunContext, chain_ids: Collection[str]) -> OtherRollouts:
    """The plain rollouts of these chains that were made with other choices than `context` has.

    Choices are `trajectories.identity.CHOICES`: options, models, scaffold, observers.
    """
    if not chain_ids:
        return OtherRollouts()
    texts = read_texts(tx, context.options.interface)
    over = begun = 0
    best: tuple[int, bool, str] | None = None
    differences: tuple[OtherChoice, ...] = ()
    for chain_id, rows in read_rows(tx, {name: texts[name] for name in chain_ids if name in texts}).items():
        current = stored(context.identity(texts[chain_id], chain_id, 0).row())
        for row in rows:
            if row.known.get("scaffold") in PRIVILEGED or not (row.final or row.has_messages):
                continue
            place = {name: row.known.get(name) for name in PLACE}
            if row.differences({**current, **place}).isdisjoint(CHOICES):
                continue
            over, begun = over + row.final, begun + (not row.final)
            found = tuple(_other_choices(row.known, current, whole=row.whole))
            rank = (len(found), not row.final, row.id)
            if best is None or rank < best:
                best, differences = rank, found
    return OtherRollouts(over, begun, best and best[2], differences)


def options_like(tx: Transaction, prefix: str) -> RolloutOptions:
    """The options of the stored trajectory whose id begins so, observers and the agent's sampling settings with them.

    Raises `UsageError`, also for one that `rollouts run` does not make.
    """
    row = stored_trajectory(tx, find_trajectory(tx, prefix))
    if row.chain_id is None:
        raise UsageError(f"{row.id} was imported: nobody knows its options")
    if row.scaffold in PRIVILEGED:
        raise UsageError(f"{row.id} was not made by `rollouts run`: its agent was told of the reference")
    return RolloutOptions.from_row(row.options)


def _other_choices(known: Mapping[str, Any], current: Mapping[str, Any], *, whole: bool) -> Iterator[OtherChoice]:
    names = _typed_names()
    for name in DEFAULTS:
        before, now = (each.get("options", {}).get(name, DEFAULTS[name]) for each in (known, current))
        if before != now:
            yield OtherChoice(names.get(name, name), _words(before), _words(now))
    before, now = known.get("scaffold"), current["scaffold"]
    if before != now and (whole or before is not None):
        yield OtherChoice("--scaffold", _words(before), _words(now))
    before, now = ([_observer(one) for one in each.get("observers") or ()] for each in (known, current))
    if before != now:
        yield OtherChoice("--observer", " ".join(before) or "none", " ".join(now) or "none")
    models, asked = (each.get("models") or {} for each in (known, current))
    # A purpose that one side alone asks follows from an option that is told already.
    for purpose in sorted(models.keys() & asked.keys()):
        before, now = models[purpose] or {}, asked[purpose] or {}
        for name in sorted({*before, *now}):
            if before.get(name) != now.get(name) and (whole or name in before):
                own = purpose == AGENT and name in ELSEWHERE
                typed = names[name] if own else f"{name} of [purposes.{purpose}]"
                yield OtherChoice(typed, _words(before.get(name)), _words(now.get(name)))


def _typed_names() -> dict[str, str]:
    """Field of the options to how a user types it."""
    names = {"backend": "--backend"}
    for name, key in keys_of(RolloutOptions).items():
        place = key.told.place
        if isinstance(place, Within):
            names[name] = place.flag if key.told.head else f"{place.flag} {key.name}"
        else:
            names[name] = f"--{key.name.replace('_', '-')}"
    return names


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={written(one)}" for name, one in value.items()) or "none"
    return written(value) or "none"


def _observer(one: Any) -> str:
    if not isinstance(one, Mapping):
        return str(one)
    settings = ",".join(f"{name}={written(value)}" for name, value in (one.get("settings") or {}).items())
    return f"{one['name']}:{settings}" if settings else str(one["name"])


def other_words(others: OtherRollouts) -> str | None:
    """One line of what exists with other choices, how the nearest differs, and how to go on with it; None: nothing."""
    if others.nearest is None:
        return None
    begun = f" ({others.begun:,} of them half done)" if others.begun else ""
    shown = [f"{one.name} {one.stored}, not {one.now}" for one in others.differences[:_SHOWN]]
    more = len(others.differences) - _SHOWN
    differing = "; ".join(shown) + (f"; and {more:,} more" if more > 0 else "")
    made = "rollout" if others.over + others.begun == 1 else "rollouts"
    models = " and those models" if any("[purposes." in one.name for one in others.differences) else ""
    return (
        f"{others.over + others.begun:,} {made} of these chains{begun} had other options or models; the nearest, "
        f"{others.nearest}, had {differing}: `--like {others.nearest}`{models} goes on with it"
    )
