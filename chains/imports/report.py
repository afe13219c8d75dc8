"""What became of the rows of a data set that was imported."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ImportReport:
    """What became of the rows of a data set."""

    imported: int = 0
    known: int = 0
    """Those that were there."""
    waiting: Counter[str] = field(default_factory=Counter)
    """Repository to the tasks that no repository is there for, new and old."""
    bad: int = 0
    no_query: int = 0
    """Those of the bad rows that ask nothing; of SWE-smith's, faults that no issue was written for."""
    files_unread: int = 0
    """Files that could not be read, or not to their end: one of the bad rows of each."""
    benchmark: int = 0
    secrets: int = 0
    """What looks like a secret and was replaced in queries."""
    passed_over: dict[str, str] = field(default_factory=dict)
    """Folder, or image, to why no tree was made from it: no repository, a shallow one, one that lacks files."""

    @property
    def good(self) -> int:
        """Tasks that can be worked on."""
        return self.imported + self.known

    def row(self) -> dict[str, Any]:
        """As a JSON value."""
        return {name: dict(it) if isinstance(it := getattr(self, name), dict) else it for name in self.__slots__}
