"""The pages of an exported file: what its card says, its rows as bars of tokens, and each row by its loss marks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prchain.core.errors import UsageError
from prchain.view.export_cards import CardView, is_per_turn, read_card
from prchain.view.options import ViewOptions
from prchain.view.places import EXPORT, FUNNEL, trajectory_page
from prchain.view.training_rows import TokenSlice, TrainingRow, read_row, slices
from sql.store import Store
from sql.tables import Trajectory
from trajectories.export.loss import LOSS_WORDS

_ROWS = 100
"""Rows on one page of the list."""


@dataclass(frozen=True, slots=True)
class ListedRow:
    """A row in the list."""

    row: TrainingRow
    """Without its messages."""
    tokens: int
    trained: int
    turns: tuple[int, int]
    bar: tuple[TokenSlice, ...]
    width: float
    """Of the bar, in percent of the longest on the page."""
    page: str
    trajectory: str | None
    """The page of its trajectory, where the view has it."""


@dataclass(frozen=True, slots=True)
class ExportView:
    """A page of the list; the card stands on the first one."""

    file: str
    rows: tuple[ListedRow, ...]
    total: int
    hidden: int
    """Rows that the view leaves out: of trajectories that it does not show, or that nobody names."""
    start: int
    card: CardView | None
    next: str | None


@dataclass(frozen=True, slots=True)
class RowView:
    """The page of a row."""

    file: str
    row: TrainingRow
    turns: tuple[int, int]
    tokens: int
    trained: int
    bar: tuple[TokenSlice, ...]
    words: Mapping[str, str]
    """Reason of a loss mark to what it means."""
    trajectory: str | None
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class _Index:
    stamp: tuple[int, int]
    starts: tuple[int, ...]
    """Where each shown row begins."""
    numbers: tuple[int, ...]
    """Which row of the file each is, from 1."""
    place_of: Mapping[int, int]
    total: int
    digest: str


class ExportPages:
    """The pages below ``export``. The file is read once for where its rows begin, and again when it changes."""

    def __init__(
        self, store: Store, file: Path, options: ViewOptions, shown: Callable[[], frozenset[str] | None]
    ) -> None:
        """Raises `UsageError` for what is no file of rows."""
        self._store = store
        self._file = file
        self._options = options
        self._shown = shown
        self._known: _Index | None = None
        self._check()

    def _check(self) -> None:
        path = self._file
        if path.is_dir():
            raise UsageError(f"{path} is a folder; --export takes a file of JSON lines, which trainers read")
        if path.suffix == ".parquet":
            raise UsageError(f"{path} is Parquet; --export takes JSON lines: write the same samples to a .jsonl")
        try:
            with path.open("rb") as stream:
                first = stream.readline()
        except OSError as error:
            raise UsageError(f"{path} cannot be read: {error.strerror}") from None
        if first and (problem := read_row(1, first).problem):
            raise UsageError(f"{path} was not written by prchain export for a trainer (line 1: {problem})")

    def pages(self) -> Iterator[str]:
        """Their paths."""
        index = self._index()
        yield f"{EXPORT}/{FUNNEL}"
        yield from (f"{EXPORT}/{_after(index.numbers[at - 1])}" for at in range(_ROWS, len(index.numbers), _ROWS))
        yield from (f"{EXPORT}/{_page(number)}" for number in index.numbers)

    def view(self, name: str) -> tuple[str, Any] | None:
        """Template and value of the page of that name; None where there is none."""
        index = self._index()
        if found := re.fullmatch(r"row-([1-9][0-9]{0,11})\.html", name):
            number = int(found[1])
            return ("row", self._row(index, number)) if number in index.place_of else None
        starts = {FUNNEL: 0} | {_after(index.numbers[at - 1]): at for at in range(_ROWS, len(index.numbers), _ROWS)}
        start = starts.get(name)
        return None if start is None else ("export", self._list(index, start))

    def _list(self, index: _Index, start: int) -> ExportView:
        following = start + _ROWS
        card = None if start else read_card(self._file, index.digest)
        last_only = is_per_turn(self._file)
        found = list(self._read(index, range(start, min(following, len(index.numbers))), last_only))
        longest = max((row.tokens for row in found), default=0) or 1
        known = self._trajectories({row.trajectory for row in found if row.trajectory})
        rows = tuple(
            ListedRow(
                TrainingRow(row.number, row.problem, row.sample, row.trajectory, row.chain, (), row.tools, row.counted),
                row.tokens,
                row.trained,
                row.turns,
                tuple(slices(row)),
                round(100 * row.tokens / longest, 2),
                _page(row.number),
                trajectory_page(row.trajectory) if row.trajectory in known else None,
            )
            for row in found
        )
        more = _after(index.numbers[following - 1]) if following < len(index.numbers) else None
        hidden = index.total - len(index.numbers)
        return ExportView(self._file.name, rows, index.total, hidden, start, card, more)

    def _row(self, index: _Index, number: int) -> RowView:
        place = index.place_of[number]
        [row] = self._read(index, range(place, place + 1), is_per_turn(self._file))
        known = self._trajectories({row.trajectory} - {""})
        return RowView(
            self._file.name,
            row,
            row.turns,
            row.tokens,
            row.trained,
            tuple(slices(row)),
            {str(reason): words for reason, words in LOSS_WORDS.items()},
            trajectory_page(row.trajectory) if row.trajectory in known else None,
            _page(index.numbers[place - 1]) if place else None,
            _page(index.numbers[place + 1]) if place + 1 < len(index.numbers) else None,
        )

    def _read(self, index: _Index, places: range, last_only: bool) -> Iterator[TrainingRow]:
        with self._open() as stream:
            for place in places:
                stream.seek(index.starts[place])
                line = stream.readline()
                yield read_row(index.numbers[place], line, last_only=last_only, reasoning=self._options.reasoning)

    def _trajectories(self, wanted: set[str]) -> set[str]:
        """Those of some trajectories that have a page."""
        shown = self._shown()
        with self._store.reading() as tx:
            there = {name for name in wanted if tx.count(Trajectory, id=name)}
        return {name for name in there if shown is None or name in shown}

    def _index(self) -> _Index:
        try:
            found = self._file.stat()
        except OSError as error:
            raise UsageError(f"{self._file} cannot be read: {error.strerror}") from None
        stamp = (found.st_mtime_ns, found.st_size)
        if self._known is None or self._known.stamp != stamp:
            self._known = self._indexed(stamp)
        return self._known

    def _indexed(self, stamp: tuple[int, int]) -> _Index:
        shown = self._shown()
        digest = hashlib.sha256()
        starts, numbers = [], []
        at = total = 0
        with self._open() as stream:
            for line in stream:
                digest.update(line)
                if line.strip():
                    total += 1
                    # A view of some trajectories alone shows no row that does not say whose it is.
                    if shown is None or read_row(total, line).trajectory in shown:
                        starts.append(at)
                        numbers.append(total)
                at += len(line)
        place_of = {number: place for place, number in enumerate(numbers)}
        return _Index(stamp, tuple(starts), tuple(numbers), place_of, total, digest.hexdigest())

    def _open(self) -> Any:
        try:
            return self._file.open("rb")
        except OSError as error:
            raise UsageError(f"{self._file} cannot be read: {error.strerror}") from None


def _page(number: int) -> str:
    return f"row-{number}.html"


def _after(number: int) -> str:
    return f"after-{number}.html"
