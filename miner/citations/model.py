"""What a citation is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["markdown", "commit", "title", "branch"]
"""What is read: a body, comment or review; a commit message; a pull request's title; the name of its head branch."""

Relation = Literal[
    "reverts",
    "relands",
    "backports",
    "cherry_pick",
    "follow_up",
    "stacked_on",
    "depends_on",
    "fixes",
    "closes",
    "supersedes",
    "mentions",
]
"""What the citing text says it does to the cited change.

``fixes`` is both GitHub's ``Fixes #12`` and the repair of what #12 broke; ``closes`` is GitHub's close and resolve.
A passive wording (``reverted in #12``, ``superseded by #12``) turns the direction round and is a ``mentions``.
"""

Syntax = Literal["hash", "gh", "slug", "url", "word", "sha", "subject_tail", "trailer", "branch"]


@dataclass(frozen=True, slots=True)
class Citation:
    """One place in a text that names a pull request, an issue or a commit."""

    repository: str
    """``owner/name``, lower case: the given repository, under whatever alias it is cited, or the foreign one."""
    number: int | None
    """The cited number; null where a commit is cited."""
    sha: str | None
    """The cited commit as written, 7 to 40 hex digits; null where a number is cited."""
    relation: Relation
    syntax: Syntax
    start: int
    end: int
    """The span in the text, in code points."""
    snippet: str
    """The line it is in, white space collapsed, at most 160 characters."""
    context: str | None = None
    """Null for the author's own statement; else why it should not count: ``quote``, ``details``, ``template``,
    ``redirector`` or ``own_tail`` (the number at the end of a subject, where another pull request's would stand)."""
