"""Hunks of a reference that are reverted, and parts of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from environments.proofs.edits import LineChange, SourceFile, Undoing, is_python, unbound
from environments.suites.syntax import parsed
from prchain.core.code.inline_tests import inline_test_lines
from prchain.core.code.kinds import language_of
from sql.strength import UndoingKind

_CONTEXT = 3
"""Lines between two changes that make them two hunks, as git prints them."""

_MOST_MERGED = 5
"""Neighbours that a hunk is merged with before all of the file's are."""


def hunks(file: SourceFile) -> Iterator[Undoing]:
    """One for each hunk of the file's patch; a file that comes or goes is one."""
    if file.base is None or file.landed is None:
        yield Undoing(UndoingKind.HUNK, file.path, 1, {file.path: file.base})
        return
    groups: list[list[LineChange]] = []
    for change in file.changes:
        if groups and change.new_first - groups[-1][-1].new_end <= 2 * _CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    yield from _reverts(file, groups, UndoingKind.HUNK)


def changes(file: SourceFile) -> Iterator[Undoing]:
    """One for each block of changed lines of the file's patch: hunks can hold several."""
    if file.base is not None and file.landed is not None:
        yield from _reverts(file, [[change] for change in file.changes], UndoingKind.CHANGE)


def changed_lines(change: LineChange) -> set[int]:
    """The lines of M_t that a change touches, from 1; where it takes lines away, those beside the place."""
    return set(range(change.new_first + 1, change.new_end + 1)) or {change.new_first, change.new_first + 1}


def _reverts(file: SourceFile, groups: Sequence[list[LineChange]], kind: UndoingKind) -> Iterator[Undoing]:
    old, new = (file.base or "").split("\n"), (file.landed or "").split("\n")
    inline = inline_test_lines(file.landed or "") if language_of(file.path) == "rust" else frozenset[int]()
    for group in _that_run(file, groups):
        written = {line for change in group for line in changed_lines(change) if new[line - 1 : line] not in ([], [""])}
        if inline and written <= inline:
            continue
        yield Undoing(kind, file.path, group[0].new_first + 1, {file.path: _reverted(old, new, group)})


def _reverted(old: Sequence[str], new: Sequence[str], group: Sequence[LineChange]) -> str:
    first, last = group[0], group[-1]
    return "\n".join([*new[: first.new_first], *old[first.old_first : last.old_end], *new[last.new_end :]])


def _that_run(file: SourceFile, groups: Sequence[list[LineChange]]) -> list[list[LineChange]]:
    """The groups, each with as many beside it as it takes that the text without them is Python again and binds the
    names that it reads: what fails in any call says nothing of the tests. One that never is goes."""
    if not is_python(file) or parsed(file.landed or "") is None:
        return list(groups)
    old, new = (file.base or "").split("\n"), (file.landed or "").split("\n")
    known = unbound(file.landed or "") | unbound(file.base or "")

    @cache
    def runs(first: int, size: int) -> bool:
        text = _reverted(old, new, [change for group in groups[first : first + size] for change in group])
        return parsed(text) is not None and unbound(text) <= known

    found: list[list[LineChange]] = []
    for place in range(len(groups)):
        windows = (
            (first, size)
            for size in (*range(1, min(_MOST_MERGED, len(groups))), len(groups))
            for first in range(min(place, len(groups) - size), max(-1, place - size), -1)
        )
        taken = next((window for window in windows if runs(*window)), None)
        if taken is not None:
            merged = [change for group in groups[taken[0] : sum(taken)] for change in group]
            if merged not in found:
                found.append(merged)
    return found
