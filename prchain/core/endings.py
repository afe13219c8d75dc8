"""How a command ends: its exit code, by one rule for all of them, and why, each cause told once.

- 0: what was asked for is done, now or before. Where nothing was new, nothing is missing. A command that only looks, or
  clears away, ends so whatever it finds.
- 1: not all is done, or nothing of what is done succeeded, in this run or in an earlier one; the reason is printed.
- 2: the command line, a list or a setting is wrong (`prchain.core.errors.UsageError`).

What succeeded in an earlier run counts: a run that was killed and started again ends as one that never was.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import click

from prchain.core.console.terminal import counted, say, say_reasons
from prchain.core.errors import BudgetExceeded
from prchain.core.runs import TAKEN, UnitResult

NOT_DONE = 1
"""The exit code of a command that did not do all that it was asked for, or none of it with success."""

_BUDGET_EXCEEDED = BudgetExceeded("").name

_PLACE = re.compile(r"^(?:stage \d+|overview): |\b\w+ of [0-9a-f]{16}/[\w/]+: ")
"""Where a reason occurred: the stage, and the purpose and subject of the call."""


def end_command(*, done: bool, good: int | bool, nothing: str) -> None:
    """End a command whose report was printed. `done`: nothing is left for another run; `good` is how much of what was
    asked for succeeded, now or before. Where all is done and nothing succeeded, `nothing` is printed, which says so."""
    if done and good:
        return
    if done:
        say(nothing, err=True)
    click.get_current_context().exit(NOT_DONE)


def end_as(code: int) -> None:
    """End a command that runs others as the one ended that ended the run; `code` is its exit code."""
    click.get_current_context().exit(code)


def cause_of(reason: str | None) -> str | None:
    """A reason without the place where it occurred: what has one cause has one text."""
    return None if reason is None else _PLACE.sub("", reason)


def say_causes(results: Iterable[UnitResult[Any]], *, rest: str = "") -> None:
    """Print to standard error why units ended as they did, each cause once with the number of units."""
    say_reasons(((result.unit.key, result.outcome, cause_of(result.reason)) for result in results), rest=rest)


def say_end(
    noun: str,
    failed: Sequence[UnitResult[Any]],
    left: int,
    stopped: str | None,
    *,
    told: Iterable[UnitResult[Any]] = (),
) -> None:
    """Print to standard error why a run ended early, and what to do about the units that are not done: those that
    failed, and those `left` that were not begun. A cause that was told already, of a failed or of another unit
    (`told`), is not told again."""
    if words := _untold(stopped, (*failed, *told)):
        say(f"stopped early: {words}", err=True)
    if failed or left:
        unbegun = f" ({left:,} of them not begun)" if left else ""
        todo = what_to_do([*(result.outcome for result in failed), *["not_begun"] * left])
        say(f"{counted(len(failed) + left, noun)} not done{unbegun}; {todo}", err=True)


def what_to_do(outcomes: Collection[str]) -> str:
    """What a user can do about units that ended in these ways and are not done; none: they were not begun."""
    if outcomes and set(outcomes) == {TAKEN}:
        return "another run works on them; when it has ended, the same command says what is left"
    if _BUDGET_EXCEEDED in outcomes:
        return "a larger --budget goes on"
    return "mend what is said above, then run the same command again"


def _untold(stopped: str | None, told: Iterable[UnitResult[Any]]) -> str | None:
    """Why a run ended early, without the reason of a unit that was told; None where nothing else is left."""
    for reason in {result.reason for result in told if result.reason}:
        if stopped == reason:
            return None
        if stopped is not None:
            stopped = stopped.removesuffix(f": {reason}")
    return stopped
