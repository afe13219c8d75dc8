"""The wall time of each page of help, a process each: what a page imports is most of it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import click

from prchain.cli import cli
from research.bench.git_bench import timed
from research.bench.measures import Measure

ROUNDS = 3
GOAL = 0.3
"""Seconds that the slowest page may take on a machine that does nothing else."""


def run(commands: Iterable[tuple[str, ...]] | None = None, *, rounds: int = ROUNDS) -> list[Measure]:
    """Measure the pages of commands, or all of them, and ``--version``.

    Of the runs of a page the fastest counts: other work only slows.
    """
    name = "pages of help"
    pages = {" ".join(words): _fastest([*words, "--help"], rounds) for words in commands or _commands(cli, ())}
    slowest = max(pages, key=lambda words: pages[words][0])
    ordered = sorted(pages.values())
    return [
        Measure(name, "pages", len(pages)),
        Measure(name, "prchain --version", _fastest(["--version"], rounds)[0], "s"),
        Measure(name, "a page in the middle", ordered[len(ordered) // 2][0], "s"),
        Measure(name, "the slowest page", pages[slowest][0], "s", GOAL, note=f"prchain {slowest} --help"),
        Measure(name, "its processor time", pages[slowest][1], "s", note="for a busy machine"),
    ]


def _commands(group: click.Command, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words that call each command, and each group."""
    yield words
    if isinstance(group, click.Group):
        with click.Context(group) as context:
            for name in group.list_commands(context):
                if command := group.get_command(context, name):
                    yield from _commands(command, (*words, name))


def _fastest(arguments: list[str], rounds: int) -> tuple[float, float]:
    """Wall and processor seconds; the first run, which may compile, is not counted."""
    command = [sys.executable, "-m", "prchain", *arguments]
    runs = [timed(command) for _ in range(rounds + 1)]
    if failed := next((run for run in runs if run.status), None):
        raise RuntimeError(f"{' '.join(arguments)} fails: {failed.errors.strip()[-200:]}")
    return min(run.wall for run in runs[1:]), min(run.processor for run in runs[1:])
