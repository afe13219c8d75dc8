"""What became of a pull request: exactly one outcome each, a pure choice.

================  ====================================================================================
landed            base and landed commit are known and borne out by its head (or by the API)
carried           its commits reached the branch inside another landing or merge, not by one of its own
merged_unlocated  the forge says merged, but no commit of the history bears it out
open              the forge says open
closed            the forge says closed without a merge, and the history agrees
unlanded          only git was read, and nothing in the history shows that it landed (open or closed)
not_selected      outside of --since or --limit
gone              the forge no longer shows it
unsettled         a run is under way, or was killed; the next run settles it
================  ====================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

OUTCOMES = (
    "landed",
    "carried",
    "merged_unlocated",
    "open",
    "closed",
    "unlanded",
    "not_selected",
    "gone",
    "unsettled",
)


GIT_NOT_READ = "the git history was not read"
"""The reason of a pull request that the forge calls merged, as long as no history was asked where it landed."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one pull request when its outcome is chosen."""

    landed: str | None = None
    """How it landed, e.g. ``squash on main: same_patch``."""
    carried: str | None = None
    """With what it came in."""
    state: str | None = None
    merge_sha: str | None = None
    gone_at: str | None = None
    has_head: bool = True
    listed: bool = True
    """False where the API was read and does not know the pull request whose head the mirror has."""
    note: str | None = None
    """Why the forge's side of it is not known."""
    git_read: bool = True
    forge: str = "the forge"
    """The forge's title."""


def choose(evidence: Evidence) -> tuple[str, str | None]:
    """The outcome and its reason."""
    if evidence.landed:
        return "landed", evidence.landed
    if evidence.gone_at:
        return "gone", f"not on {evidence.forge} since {evidence.gone_at}"
    if evidence.carried:
        return "carried", evidence.carried
    if evidence.state == "merged":
        if not evidence.git_read:
            return "merged_unlocated", GIT_NOT_READ
        merge = f"merge commit {evidence.merge_sha[:12]}" if evidence.merge_sha else "no merge commit named"
        return "merged_unlocated", f"{merge}, not borne out by a branch"
    if evidence.state in {"open", "closed"}:
        return evidence.state, None
    if evidence.note:
        return "unlanded", evidence.note
    if not evidence.listed:
        return "unlanded", f"there is a pull head, but {evidence.forge} lists no such pull request"
    return "unlanded", None if evidence.has_head else "no pull head"
