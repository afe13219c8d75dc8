"""Whether the call that this thread makes is with its endpoint: whatever ends it before that costs nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class Sending:
    """One call."""

    sent: bool = False
    """Whether it may have to be paid for by now."""


_CALL: ContextVar[Sending | None] = ContextVar("call", default=None)


@contextmanager
def sending() -> Iterator[Sending]:
    """The call that the block makes; `mark_sent` in the same thread tells of it."""
    call = Sending()
    token = _CALL.set(call)
    try:
        yield call
    finally:
        _CALL.reset(token)


def mark_sent(sent: bool = True) -> None:
    """Tell, right before the first byte goes out, that the call is sent; False, that it came back unpaid."""
    call = _CALL.get()
    if call is not None:
        call.sent = sent
