"""What the unit of work of this thread waits for, and of whom: told beside what is being done for it.

with telling(tell) as tell_unit:            # whoever works on a unit
    tell_unit("stage 1, step 3")
    with waiting_for("gpt-x (agent)"):      # whoever waits, however deep below: "stage 1, step 3; waiting for ..."
        ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_Tell = Callable[[str], None]


class _UnitTell:
    def __init__(self, tell: _Tell) -> None:
        self._tell = tell
        self._words = ""
        self._awaited: list[str] = []

    def __call__(self, words: str) -> None:
        self._words = words
        self._say()

    def begin(self, what: str) -> None:
        self._awaited.append(what)
        self._say()

    def end(self, what: str) -> None:
        self._awaited.remove(what)
        if self._words:
            self._say()

    def _say(self) -> None:
        waits = [f"waiting for {what}" for what in self._awaited[-1:]]
        self._tell("; ".join(filter(None, (self._words, *waits))))


_TELLS: ContextVar[_UnitTell | None] = ContextVar("tells", default=None)


@contextmanager
def telling(tell: _Tell) -> Iterator[_Tell]:
    """What `tell` says of a unit also names what is waited for, in this thread and until the block ends."""
    mine = _UnitTell(tell)
    token = _TELLS.set(mine)
    try:
        yield mine
    finally:
        _TELLS.reset(token)


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """Tell that the unit of this thread, if there is one, waits for this until the block ends."""
    mine = _TELLS.get()
    if mine is None:
        yield
        return
    mine.begin(what)
    try:
        yield
    finally:
        mine.end(what)
