"""Commands that are shown as they are typed, with a heading, and then run: by the demo and by papers' comparisons."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence

from prchain.core.console.terminal import say, say_command, say_prose


def say_heading(title: str, words: str = "") -> None:
    """Print an empty line, a title if there is one, and what is to say below it."""
    say()
    if title:
        say(title)
    if words:
        say_prose(words, further=0, hyphens=True)


def command_line(command: Sequence[str]) -> str:
    """A command, given by its words after ``prchain``, as a shell takes it."""
    return shlex.join(["prchain", *command])


def run_shown(command: Sequence[str], run: Callable[[list[str]], int]) -> int:
    """Print a command and run it; returns its exit code. `run` runs one command line."""
    say_command(command_line(command))
    return run(list(command))
