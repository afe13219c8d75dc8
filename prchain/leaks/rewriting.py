"""Asking for a text until the leak check has nothing against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prchain.leaks.finding import Finding, leaking

Again = Callable[[int, str, Sequence[Finding]], str | None]
"""The next version of a text, from its number (1 is the second version), the one before and what was found in that;
None where there is no other to be had."""


@dataclass(frozen=True, slots=True)
class TextVersions:
    """A text as it was written last, and what was found in each version of it."""

    text: str
    findings: tuple[tuple[Finding, ...], ...]
    """Of every version, the first one first."""

    @property
    def clean(self) -> bool:
        """Whether the last version gives nothing away."""
        return not leaking(self.findings[-1])


def until_clean(first: str, check: Callable[[str], Sequence[Finding]], again: Again, repeats: int) -> TextVersions:
    """Write a text again, `repeats` times at most, until `check` finds no leak in it."""
    text, found = first, [tuple(check(first))]
    while leaking(found[-1]) and len(found) <= repeats:
        more = again(len(found), text, found[-1])
        if more is None:
            break
        text = more
        found.append(tuple(check(text)))
    return TextVersions(text, tuple(found))


def leak_words(findings: Sequence[Finding]) -> str:
    """What the author of a text is told of its leaks, a line each."""
    return "\n".join(dict.fromkeys(finding.words() for finding in findings if finding.severity == "leak"))
