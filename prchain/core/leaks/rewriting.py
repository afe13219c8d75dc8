"""Asking for a text again until the leak check finds no leak in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prchain.core.leaks.finding import Finding, leaking

Again = Callable[[int, str, Sequence[Finding]], str | None]
"""The next version of a text, from its number (1 is the second version), the one before and what was found in that;
None where there is no other version."""


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
    text, findings = first, [tuple(check(first))]
    while leaking(findings[-1]) and len(findings) <= repeats:
        rewritten = again(len(findings), text, findings[-1])
        if rewritten is None:
            break
        text = rewritten
        findings.append(tuple(check(text)))
    return TextVersions(text, tuple(findings))


def leak_words(findings: Sequence[Finding]) -> str:
    """The leaks of a text in words for its author, a line each."""
    return "\n".join(dict.fromkeys(finding.words() for finding in findings if finding.severity == "leak"))
