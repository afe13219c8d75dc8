"""The name that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is most like `name`; None where none is like it. Capitals do not count."""
    folded = {name.lower(): name for name in known}
    found = get_close_matches(name.lower(), folded, n=1)
    return folded[found[0]] if found else None


def meant(name: str, known: Iterable[str], there_are: str) -> str:
    """The hint for an unknown name: the nearest known name, or `there_are` and all of them."""
    known = list(known)
    near = nearest(name, known)
    return f"did you mean {near}?" if near else f"{there_are} {', '.join(known)}"
