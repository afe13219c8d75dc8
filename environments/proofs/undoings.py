"""What can be undone of a stage's reference, and in which order.

Pure: from the texts of B_t and M_t to `Undoing`s, each some files with another text. Only program text is undone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, zip_longest
from random import Random

from environments.proofs.edits import SourceFile, Undoing, is_python, meaning
from environments.proofs.functions import all_new, stubs
from environments.proofs.hunks import MOST_PLACES, changes, hunks
from environments.proofs.statements import statements
from prchain.core.code.kinds import language_of

Meanings = dict[str, bytes]
"""By path; equal where no test could tell two trees apart."""

MOST_HUNKS = 8
MOST_STUBS = 8
"""Of `UndoingKind.RAISES` and `UndoingKind.RETURNS_NONE` together; the first is a word on reach alone."""
MOST_PARTS = 8
"""Of `UndoingKind.CHANGE` and `UndoingKind.STATEMENT` together."""


def undoings(files: Sequence[SourceFile], seed: str) -> Iterator[Undoing]:
    """What to undo, in the order in which it is tried: all new functions at once, then hunks and functions by turns, at
    most so many of each, then smaller parts (`sql.strength.PARTS`), which are sought only when these are asked for.
    Drawn by `seed`."""
    draw = Random(seed)
    # Nothing of a type stub runs.
    code = [file for file in files if language_of(file.path) is not None and not file.path.endswith(".pyi")]
    python = [file for file in code if is_python(file)]
    whole_hunks = hunks(code, draw)
    functions = [bodies for file in python for bodies in stubs(file)]
    draw.shuffle(functions)
    bodies = islice(chain.from_iterable(functions[:MOST_PLACES]), MOST_STUBS)
    coarse = list(_unlike(_by_turns(whole_hunks[:MOST_HUNKS], bodies), code, ()))
    yield from all_new(python)
    yield from coarse
    blocks = changes(code, draw)
    yield from islice(_unlike(_by_turns(blocks, statements(python, draw)), code, coarse), MOST_PARTS)


def _by_turns(some: Iterable[Undoing], others: Iterable[Undoing]) -> Iterator[Undoing]:
    return (it for pair in zip_longest(some, others) for it in pair if it is not None)


def _unlike(found: Iterable[Undoing], code: Sequence[SourceFile], before: Iterable[Undoing]) -> Iterator[Undoing]:
    """Those that are not like one before, nor like M_t, nor like B_t: there own F2P fail by the proof."""
    landed = {file.path: meaning(file.path, file.landed) for file in code}

    def meanings(texts: Mapping[str, str | None]) -> Meanings:
        return {path: meaning(path, texts[path]) if path in texts else it for path, it in landed.items()}

    seen = [landed, meanings({file.path: file.base for file in code}), *(meanings(it.texts) for it in before)]
    for it in found:
        if (found_meanings := meanings(it.texts)) not in seen:
            seen.append(found_meanings)
            yield it
