"""A guess: that a request was refused because its prompt does not fit, where the endpoint says nothing that we know."""

from __future__ import annotations

import threading
from collections.abc import Hashable

from prchain.core.errors import ContextTooLong, EndpointRefused, LlmError

FULL = 0.9
"""The part of what a model takes from which on a prompt may be too long: it is counted by its bytes."""


class ContextGuesses:
    """Which calls were taken for too long by a guess. Safe for several threads.

    A call is taken for it once: if its shortened prompt is refused, too, the refusal has another cause.
    """

    def __init__(self) -> None:
        self._guessed: set[Hashable] = set()
        self._lock = threading.Lock()

    def named(
        self, error: LlmError, call: Hashable, prompt_tokens: int, max_tokens: int, context_tokens: int | None
    ) -> LlmError:
        """The error, or the `ContextTooLong` that it is taken for: it is unexplained, and the prompt has at least nine
        tenths of what the model's context leaves it beside a reply of `max_tokens`.

        `context_tokens` is the size of the model's context; None where it is not known, and nothing is guessed.
        """
        if not isinstance(error, EndpointRefused) or not error.unexplained or context_tokens is None:
            return error
        room = context_tokens - max_tokens if context_tokens > max_tokens else context_tokens
        if prompt_tokens < FULL * room:
            return error
        with self._lock:
            if call in self._guessed:
                return error
            self._guessed.add(call)
        return ContextTooLong(
            f"{error}; a guess: it says no cause, and the prompt of about {prompt_tokens:,} tokens is near the model's "
            f"{context_tokens:,}, so it counts as too long"
        )

    def answered(self, call: Hashable) -> None:
        """A call was answered: a later, longer prompt of it may be guessed again."""
        with self._lock:
            self._guessed.discard(call)
