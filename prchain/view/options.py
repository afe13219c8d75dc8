"""What of the database a view shows."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """What a view shows; the default is everything."""

    repository: str | None = None
    """``owner/name``; None: all."""
    outcome: str | None = None
    """Of trajectories; None: all."""
    limit: int | None = None
    """Most trajectories, the newest first."""
    reasoning: bool = True
    """Whether what models thought is shown."""
    reference: bool = True
    """Whether anything is shown that may hold lines of a reference patch. Without it a page of held-out tasks can be
    published: nothing is shown of reference patches, judges' own words, logs of proofs and unused replies, and of the
    trees that an agent changed only what it wrote or was shown."""
    export: Path | None = None
    """A file of `prchain export` whose rows have pages."""
