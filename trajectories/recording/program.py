"""The recorded program itself: its command line, its variables, its end."""

from __future__ import annotations

import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from prchain.core.errors import RecordingError

_PATIENCE = 5.0
"""Seconds that a program has to end when it is told to."""


def command_line(command: Sequence[str], base_url: str, token: str, model: str) -> list[str]:
    """The words of a command, with ``{base_url}``, ``{token}`` and ``{model}`` filled in."""
    values = {"{base_url}": base_url, "{token}": token, "{model}": model}
    words = []
    for word in command:
        for name, value in values.items():
            word = word.replace(name, value)  # noqa: PLW2901
        words.append(word)
    return words


def variables(own: Mapping[str, str], keys: Collection[str], base_url: str, token: str, model: str) -> dict[str, str]:
    """The program's variables: `own`, without those that hold one of the `keys` of real endpoints, and those by which
    programs that speak to OpenAI's API find it."""
    kept = {name: value for name, value in own.items() if value not in keys}
    return kept | {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_BASE": base_url,
        "OPENAI_API_KEY": token,
        "OPENAI_MODEL": model,
    }


@contextmanager
def running(
    words: Sequence[str], environment: Mapping[str, str], *, stdout: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The program, with this terminal as its own; what it prints goes to the descriptor `stdout` where that is given.
    When the block ends early, it is ended, too.

    Raises `RecordingError` where it cannot be started.
    """
    try:
        process = subprocess.Popen(words, env=environment, stdout=stdout)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise RecordingError(f"{words[0]} cannot be started: {why}") from None
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
            process.kill()
            process.wait()
