"""A paper's main comparison from end to end: each step prints its command, and runs it as a shell would."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from prchain.comparisons.steps import ComparisonStep, with_shared
from prchain.core.console.terminal import say
from prchain.core.endings import NOT_DONE
from prchain.core.errors import UsageError
from prchain.shown import command_line, run_shown, say_heading
from trajectories.export.write import card_paths

Shared = Mapping[str, str | bool | None]
"""Flags for every command that knows them."""


@dataclass(frozen=True, slots=True)
class ComparisonResult:
    """How the steps ended: command lines."""

    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """Those that did not do all that they were asked for; they have said why."""
    stopped: int = 0
    """The exit code of the one that ended the run, else 0."""


def samples_of(file: Path) -> int | None:
    """How many samples an exported file holds, as its card tells; None where there is none."""
    try:
        card = json.loads(card_paths(file)[1].read_text(encoding="utf-8"))
        return int(card["samples"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{card_paths(file)[1]} is no card of an export: {type(error).__name__}") from None


def planned(steps: Sequence[ComparisonStep], group: click.Group, shared: Shared) -> list[list[str]]:
    """The words of each step's command with the flags of `shared`; a number that is not known yet is ``N``."""
    return [_words(step, group, shared, "N") for step in steps]


def run_steps(
    steps: Sequence[ComparisonStep], group: click.Group, shared: Shared, run: Callable[[list[str]], int]
) -> ComparisonResult:
    """Run the steps in order, to the first that is refused or interrupted.

    `run` runs one command line of `group` and returns its exit code.
    """
    done: list[str] = []
    left: list[str] = []
    for step in steps:
        say_heading(step.title, step.words)
        number = None if step.at_most is None else samples_of(step.at_most)
        if step.at_most is not None and not number:
            say(f"Left out: {step.at_most.name} has no samples to be as many as.")
            continue
        words = _words(step, group, shared, str(number))
        code = run_shown(words, run)
        (left if code else done).append(command_line(words))
        if code not in ((0, NOT_DONE, UsageError.exit_code) if step.go_on else (0, NOT_DONE)):
            return ComparisonResult(tuple(done), tuple(left), code)
    return ComparisonResult(tuple(done), tuple(left))


def _words(step: ComparisonStep, group: click.Group, shared: Shared, number: str) -> list[str]:
    more = [] if step.at_most is None else ["--at-most", number]
    # The limit of `mine` is one of pull requests, of which few hold no chain.
    flags = {flag: value for flag, value in shared.items() if (step.command[0], flag) != ("mine", "--limit")}
    return with_shared([*step.command, *more], _flags(group, step.command), flags)


def _flags(group: click.Group, words: Sequence[str]) -> Mapping[str, click.Parameter]:
    """The flags of the command that is named by the first words, after those of the group itself."""
    context = click.Context(group, info_name="prchain", resilient_parsing=True)
    command: click.Command | None = group
    rest = list(words)
    while rest[0].startswith("--"):
        rest = rest[2:]
    for word in rest:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is None:
            break
        command = found
    assert command is not None
    return {flag: param for param in command.params for flag in param.opts}
