"""The lines that a later pull request changes of an earlier one, for people to read: by `git blame`, pair by pair."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from prchain.core.git import GitRepository
from prchain.core.git.line_changes import FileLines, LineHunk
from sql.link_changes import LinkChanges


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """One hunk of a later pull request that removes lines of an earlier one."""

    path: str
    start: int
    """Line number before the later one."""
    function: str
    """The line that begins the function around it; empty where there is none."""
    removed: tuple[tuple[bytes, bool], ...]
    """Lines without their ends, and whether they were the earlier one's."""
    added: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A pair with its hunks."""

    later: int
    earlier: int
    changes: LinkChanges | None
    hunks: tuple[ChangedLines, ...]


def changed_lines(
    repository: GitRepository, base: str, landed: str, owners: Mapping[str, int], earlier: int
) -> Iterator[ChangedLines]:
    """The hunks from `base` to `landed` that remove lines of the pull request `earlier`.

    `owners` are the pull requests of first-parent commits. Raises `IncompleteRepository` where a file is missing.
    """
    for _, files in repository.line_changes([(landed, base)]):
        for file in files:
            hunks = [hunk for hunk in file.hunks if hunk.removed]
            if file.old_path is None or not hunks:
                continue
            blamed = iter(repository.blame(base, file.old_path, [(hunk.old_start, hunk.old_count) for hunk in hunks]))
            for hunk in hunks:
                is_earlier = [owners.get(next(blamed)) == earlier for _ in hunk.removed]
                if any(is_earlier):
                    yield _shown(file, hunk, is_earlier)


def _shown(file: FileLines, hunk: LineHunk, is_earlier: list[bool]) -> ChangedLines:
    return ChangedLines(
        (file.old_path or b"").decode("utf-8", "replace"),
        hunk.old_start,
        hunk.section.strip().decode("utf-8", "replace"),
        tuple((line.removesuffix(b"\n"), mine) for line, mine in zip(hunk.removed, is_earlier, strict=True)),
        tuple(line.removesuffix(b"\n") for line in hunk.added),
    )
