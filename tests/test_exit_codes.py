"""Exit codes over the whole command tree: every command that works has its success defined in docs/outcomes.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from prchain.cli import cli, run

ROOT = Path(__file__).parents[1]

LOOKS = {
    "status",
    "show",
    "chains list",
    "chains show",
    "chains yield",
    "tasks list",
    "tasks show",
    "environments list",
    "environments show",
    "rollouts audit",
    "rollouts list",
    "rollouts show",
    "curate list",
    "curate show",
    "curate study baselines",
    "curate study nodes",
    "curate study quality",
    "prm compare",
    "prm report",
    "stats",
    "sql",
}
"""Commands that only look: 0 whatever they find."""

CLEARS = {"environments gc", "environments prune"}
"""Commands that clear away: 0 also where there is nothing."""

PREPARES = {"demo", "chains lineage", "environments base"}
"""Commands that do one thing, which succeeds or ends with the name of an error."""


def commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command below a group."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*words, name))
    else:
        yield words


ALL = list(commands(cli))


def works() -> set[str]:
    """The commands of the table of what success is."""
    page = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")
    table = page.partition("| command | success |")[2].partition("\n\n")[0]
    return {name for row in table.splitlines() for name in re.findall(r"`([^`]+)`", row.split("|")[1] if row else "")}


def test_of_every_command_it_is_said_when_its_exit_code_is_0() -> None:
    kinds = [works(), LOOKS, CLEARS, PREPARES]
    assert {" ".join(words) for words in ALL} == set[str]().union(*kinds)
    assert sum(map(len, kinds)) == len(ALL), "each is of one kind"


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_wrong_usage_of_every_command_is_2_with_one_line(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, "--no-such-option"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and len(printed.err.splitlines()) == 1
