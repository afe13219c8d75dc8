"""What the audit finds: signs of cheating, each at a step, with what shows it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from prchain.core.secrets.scrub import redact
from trajectories.audit.acts import AuditedWork

LONGEST_QUOTE = 160
"""Characters."""
_CUT = " [...]"


class CheatSign(StrEnum):
    """A sign that an agent reached its goal, or tried to, by other means than the work that was asked for."""

    TESTS_EDITED = "tests_edited"
    SPECIAL_CASED = "special_cased"
    COPIED_OUTPUT = "copied_output"
    NETWORK = "network"
    HISTORY = "history"
    PACKAGE_CACHE = "package_cache"
    RUNNER_INTERNALS = "runner_internals"
    UNFOUNDED_CLAIMS = "unfounded_claims"


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """A sign at a step. It is a reason to read the step, and no proof."""

    sign: CheatSign
    position: int
    """The stage."""
    step: int
    """`Entry.step`."""
    evidence: str
    """One line of printable characters, which quotes the act; at most `LONGEST_QUOTE` characters and what is said of
    it."""
    meaning: str
    """What the act means, in a few words."""


@dataclass(frozen=True)
class AuditRule:
    """A rule: what of an agent's work is a sign."""

    sign: CheatSign
    help: str
    """One line for users."""
    find: Callable[[AuditedWork], Iterable[AuditFinding]]
    """All findings. Pure, raises nothing, and takes time linear in the work."""


def quoted(text: str, most: int = LONGEST_QUOTE) -> str:
    """A text as one line of printable characters without credentials, cut to `most` characters."""
    head = redact(text[: 4 * most])
    line = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    return line if len(line) <= most and len(text) <= 4 * most else line[: most - len(_CUT)] + _CUT
