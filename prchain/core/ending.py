"""What a command that Ctrl-C or SIGTERM ends leaves, in its own words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def when_ended(words: str) -> Iterator[None]:
    """In the block, Ctrl-C and SIGTERM are told with these words about what is left."""
    try:
        yield
    except KeyboardInterrupt as end:
        end.args = (words,)
        raise


def ended_words(end: BaseException) -> str:
    """The words of the innermost `when_ended`; empty where there was none."""
    return str(end.args[0]) if isinstance(end, KeyboardInterrupt) and end.args else ""
