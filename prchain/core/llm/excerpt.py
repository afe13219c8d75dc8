"""Cutting texts to what a prompt has room for, and saying what was left out.

Texts are scrubbed before they are cut: half of a key or token no longer has the shape that scrubbing finds.

The policy has one name, *largest first*: the characters over the limit are taken from the longest texts, until all cut
texts are equally long; each keeps its head and its tail. Short texts stay whole.
"""

from __future__ import annotations

from collections.abc import Sequence

SHORTEST = 240
"""Characters. A shorter excerpt of a file says nothing; the largest files are then only named."""


def fair_cap(lengths: Sequence[int], limit: int) -> int:
    """The greatest cap for which the lengths, none longer than the cap, sum up to `limit` at most."""
    remaining = max(limit, 0)
    for place, length in enumerate(sorted(lengths)):
        rest = len(lengths) - place
        if length * rest > remaining:
            return remaining // rest
        remaining -= length
    return max(lengths, default=0)


def cut(text: str, cap: int) -> str:
    """The text, or its first and last lines within `cap` characters with a line between them that says what is gone."""
    if len(text) <= cap:
        return text
    head = text[: cap - cap // 3]
    tail = text[len(text) - cap // 3 :]
    # Whole lines, unless there is hardly one.
    if (end := head.rfind("\n")) > len(head) // 2:
        head = head[:end]
    if -1 < (start := tail.find("\n")) < len(tail) // 2:
        tail = tail[start + 1 :]
    omitted = len(text) - len(head) - len(tail)
    return f"{head}\n[... {omitted:,} characters left out ...]\n{tail}"
