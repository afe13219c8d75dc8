"""What the rules of `miner.edges` and `miner.stacks` need to know of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class SourceText:
    """One text of a pull request."""

    field: str
    key: str
    text: str
    kind: Literal["markdown", "commit", "title", "branch"]
    by_bot: bool = False
    copied: str | None = None
    """Why the whole text is not the pull request's own words."""


@dataclass(slots=True)
class PullRequestFacts:
    """What the rules need to know of a pull request."""

    number: int
    order: tuple[str, int] | None = None
    """Branch and position of its landing; None when it has not landed."""
    landed_at: str = ""
    landed_sha: str = ""
    head_sha: str | None = None
    own: Sequence[str] = ()
    subject: str = ""
    paths: Sequence[str] = ()
    by_bot: bool = False
    texts: list[SourceText] = field(default_factory=list)
    events: list[tuple[int, str, str]] = field(default_factory=list)
    """(cited number, event key, relation) of the API's timeline."""
    head_branch: str | None = None
    """Its name, where it is one of this repository's."""
    bases: list[tuple[str, str]] = field(default_factory=list)
    """(branch, event key) of the branches that it was to go to, but the default one; the key is empty for today's."""
    opened_at: str = ""
    closed_at: str | None = None
