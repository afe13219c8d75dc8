"""Hunks of a reference that are reverted, and parts of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from random import Random

from environments.proofs.edits import LineChange, SourceFile, Undoing, differs, is_python, unbound
from environments.suites.syntax import parsed
from prchain.core.code.inline_tests import inline_test_lines
from prchain.core.code.kinds import language_of
from sql.strength import UndoingKind

_CONTEXT = 3
"""Lines between two changes that make them two hunks, as git prints them."""

_MOST_MERGED = 5
"""Neighbours that a hunk is merged with before all of the file's are."""

MOST_PLACES = 32
"""Of so many places at most that could be undone it is found out whether they can: each takes looks at a whole file.
Of more, so many are drawn."""

_Hunk = list[LineChange]


def hunks(files: Sequence[SourceFile], draw: Random) -> list[Undoing]:
    """One for each hunk of the files' patches that means something; a file that comes or goes is one. In the order in
    which they are drawn; see `MOST_PLACES`."""
    return _reverts([(file, _hunks(file)) for file in files], UndoingKind.HUNK, draw)


def changes(files: Sequence[SourceFile], draw: Random) -> list[Undoing]:
    """As `hunks`, one for each block of changed lines of files that stay: hunks can hold several."""
    stay = [file for file in files if file.base is not None and file.landed is not None]
    return _reverts([(file, [[it] for it in file.changes]) for file in stay], UndoingKind.CHANGE, draw)


def changed_lines(change: LineChange) -> set[int]:
    """The lines of M_t that a change touches, from 1; where it takes lines away, those beside the place."""
    return set(range(change.new_first + 1, change.new_end + 1)) or {change.new_first, change.new_first + 1}


def _hunks(file: SourceFile) -> list[_Hunk]:
    if file.base is None or file.landed is None:
        return [[]]
    groups: list[_Hunk] = []
    for change in file.changes:
        if groups and change.new_first - groups[-1][-1].new_end <= 2 * _CONTEXT:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _reverts(grouped: Sequence[tuple[SourceFile, list[_Hunk]]], kind: UndoingKind, draw: Random) -> list[Undoing]:
    places = [(number, place) for number, (_, groups) in enumerate(grouped) for place in range(len(groups))]
    if len(places) > MOST_PLACES:
        places = sorted(draw.sample(places, MOST_PLACES))
    found = []
    for number, of_file in groupby(places, lambda it: it[0]):
        file, groups = grouped[number]
        chosen = [place for _, place in of_file]
        found += [it for it in _of_file(file, groups, chosen, kind) if differs(it, file)]
    draw.shuffle(found)
    return found


def _of_file(file: SourceFile, groups: list[_Hunk], places: Sequence[int], kind: UndoingKind) -> Iterator[Undoing]:
    if file.base is None or file.landed is None:
        yield Undoing(kind, file.path, 1, {file.path: file.base})
        return
    old, new = file.base.split("\n"), file.landed.split("\n")
    inline = inline_test_lines(file.landed) if language_of(file.path) == "rust" else frozenset[int]()
    for group in _that_run(file, groups, places):
        written = {line for change in group for line in changed_lines(change) if new[line - 1 : line] not in ([], [""])}
        if inline and written <= inline:
            continue
        yield Undoing(kind, file.path, group[0].new_first + 1, {file.path: _reverted(old, new, group)})


def _reverted(old: Sequence[str], new: Sequence[str], group: _Hunk) -> str:
    first, last = group[0], group[-1]
    return "\n".join([*new[: first.new_first], *old[first.old_first : last.old_end], *new[last.new_end :]])


def _that_run(file: SourceFile, groups: list[_Hunk], places: Sequence[int]) -> list[_Hunk]:
    """The groups at these places, each with as many beside it as it takes that the text without them is Python again
    and binds the names that it reads: what fails in any call says nothing of the tests. One that never is goes."""
    if not is_python(file) or parsed(file.landed or "") is None:
        return [groups[place] for place in places]
    old, new = (file.base or "").split("\n"), (file.landed or "").split("\n")
    known = unbound(file.landed or "") | unbound(file.base or "")

    @cache
    def runs(first: int, size: int) -> bool:
        text = _reverted(old, new, [change for group in groups[first : first + size] for change in group])
        return parsed(text) is not None and unbound(text) <= known

    found: list[_Hunk] = []
    for place in places:
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
