"""How wide a terminal is, and lines folded into it."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout

import click
import pytest

from prchain.cli import cli, run
from prchain.core.console.columns import cell_length, columns, folded
from prchain.core.console.terminal import say, say_command, say_facts, say_table, say_text, table_lines


class Terminal(io.StringIO):
    """Keeps what is written to a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def test_a_line_is_broken_between_words_and_goes_on_below_its_value() -> None:
    line = "  landed    597c3a8adb5a on main, 2023-12-08T18:24:25Z"
    assert list(folded(line, 40)) == ["  landed    597c3a8adb5a on main,", "            2023-12-08T18:24:25Z"]
    assert list(folded("  one two three four", 12)) == ["  one two", "    three", "    four"]
    assert list(folded(line, None)) == [line]
    assert list(folded("", 40)) == [""]


def test_a_word_that_is_longer_than_a_line_stays_whole_and_can_be_copied() -> None:
    path = "/a/folder/" * 5
    assert list(folded(f"  folder    {path}, here", 40)) == ["  folder", f"    {path},", "    here"]


def test_characters_of_two_columns_are_counted_as_two() -> None:
    lines = list(folded("你好 " * 30, 40))
    assert len(lines) > 1 and max(map(cell_length, lines)) <= 40


@pytest.mark.usefixtures("narrow")
def test_what_is_printed_into_a_pipe_is_not_folded_and_on_a_terminal_is() -> None:
    words = "a reason of some words, " * 5
    for out, folds in ((io.StringIO(), False), (Terminal(), True)):
        with redirect_stdout(out):
            say(words)
            say_facts({"reason": words})
            say_table(("id", "reason"), [("5f0c12ab90ff3344", words)])
        lines = out.getvalue().splitlines()
        assert (len(lines) > 4, max(map(len, lines)) <= 40) == (folds, folds)


@pytest.mark.parametrize("width", [None, 60, 120])
def test_a_table_has_its_width_also_where_term_is_dumb(width: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("5f0c12ab90ff3344", "a reason of some words, " * 9)]
    usual = list(table_lines(("id", "reason"), rows, width=width))
    monkeypatch.setenv("TERM", "dumb")
    assert list(table_lines(("id", "reason"), rows, width=width)) == usual


def test_heads_are_folded_between_words_before_a_row_has_lines_of_its_own() -> None:
    heads, rows = ("later", "lines of code", "functions and names"), [("#8", "7", "parse_it"), ("#9", "12", "")]
    assert list(table_lines(heads, rows, width=24)) == [
        "       lines",
        "          of  functions",
        "later   code  and names",
        "#8         7  parse_it",
        "#9        12",
    ]
    assert next(iter(table_lines(heads, rows, width=22))) == "-- row 1 of 2"


@pytest.mark.usefixtures("narrow")
def test_a_command_that_is_folded_can_be_copied_as_one() -> None:
    out = Terminal()
    command = "prchain rollouts run --chain eaa9 --tools bash --gate tests"
    with redirect_stdout(out):
        say_command(command)
    assert max(map(len, out.getvalue().splitlines())) <= 40
    assert out.getvalue().removeprefix("$ ").replace("\\\n", "").split() == command.split()


@pytest.mark.usefixtures("narrow")
def test_lines_of_a_program_stay_as_they_are() -> None:
    out = Terminal()
    code = f"if x:\n    return {'y + ' * 20}1\n"
    with redirect_stdout(out):
        say_text(code)
    assert out.getvalue() == code


def test_a_terminal_that_does_not_say_its_width_has_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert (columns(Terminal()), columns(io.StringIO())) == (80, None)
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal, os.fdopen(ours):
        assert columns(terminal) == 80, "a pseudo-terminal of no size"
    monkeypatch.setenv("COLUMNS", "132")
    assert columns(Terminal()) == 132


@pytest.mark.parametrize("group", [[], ["chains"], ["curate", "study"]])
def test_a_group_without_a_command_shows_its_help_in_lines(group: list[str]) -> None:
    err = io.StringIO()
    with redirect_stderr(err):
        assert run(group) == 2
    lines = err.getvalue().splitlines()
    assert lines[0].startswith(f"Usage: {' '.join(['prchain', *group])} ") and "Commands:" in lines
    assert max(map(len, lines)) <= 80


def _commands(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(found, (*words, name))


def test_the_help_of_every_command_fits_80_columns() -> None:
    longer: dict[str, str] = {}
    for words in _commands(cli):
        out = io.StringIO()
        with redirect_stdout(out):
            assert run([*words, "--help"]) == 0
        longer |= {line: " ".join(words) for line in out.getvalue().splitlines() if cell_length(line) > 80}
    assert longer == {}
