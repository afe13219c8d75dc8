"""The pages of an exported file: what its card says, its rows as bars of tokens, and each row by its loss marks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prchain.core.errors import UsageError
from prchain.view.export_cards import CardView, is_per_turn, read_card, row_owners
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
class RowSums:
    """The rows of a file that has one page of them, added up."""

    tokens: int
    trained: int
    turns: tuple[int, int]
    agrees: bool
    """Whether the card has the same tokens for the texts of all messages, and for those under loss."""


@dataclass(frozen=True, slots=True)
class LeftOutFor:
    """A trajectory that was left out, and the one that is in the file in its place; pages where the view has them."""

    trajectory: str
    page: str | None
    reason: str
    exported: str
    exported_page: str | None


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
    sums: RowSums | None
    """None where other pages hold rows, too."""
    stand_ins: tuple[LeftOutFor, ...]
    has_samples: bool
    """Whether a row tells the name of its sample."""
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
    owners: tuple[str, ...]
    """The trajectory of each row of the file; empty where its card does not tell."""

    def owner_of(self, number: int) -> str:
        """Whose a row is by the card; empty where that does not tell."""
        return self.owners[number - 1] if self.owners else ""


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
        stand_ins = () if card is None else card.stand_ins
        named = {row.trajectory for row in found} | {name for one, _, other in stand_ins for name in (one, other)}
        known = self._trajectories(named - {""})

        def page_of(trajectory: str) -> str | None:
            return trajectory_page(trajectory) if trajectory in known else None

        rows = tuple(
            ListedRow(
                TrainingRow(row.number, row.problem, row.sample, row.trajectory, row.chain, (), row.tools, row.counted),
                row.tokens,
                row.trained,
                row.turns,
                tuple(slices(row)),
                round(100 * row.tokens / longest, 2),
                _page(row.number),
                page_of(row.trajectory),
            )
            for row in found
        )
        more = _after(index.numbers[following - 1]) if following < len(index.numbers) else None
        hidden = index.total - len(index.numbers)
        whole = not start and more is None and not hidden
        return ExportView(
            self._file.name,
            rows,
            index.total,
            hidden,
            start,
            card,
            _sums(found, card) if whole and found else None,
            tuple(LeftOutFor(one, page_of(one), why, other, page_of(other)) for one, why, other in stand_ins),
            any(row.sample for row in found),
            more,
        )

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
                number = index.numbers[place]
                row = read_row(number, line, last_only=last_only, reasoning=self._options.reasoning)
                yield replace(row, trajectory=row.trajectory or index.owner_of(number))

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
        every: list[tuple[int, str]] = []
        at = 0
        with self._open() as stream:
            for line in stream:
                digest.update(line)
                if line.strip():
                    every.append((at, "" if shown is None else read_row(len(every) + 1, line).trajectory))
                at += len(line)
        owners = row_owners(self._file, digest.hexdigest(), len(every))
        # A view of some trajectories alone shows no row of which nobody says whose it is.
        kept = [
            (start, number)
            for number, (start, told) in enumerate(every, 1)
            if shown is None or (told or (owners[number - 1] if owners else "")) in shown
        ]
        starts, numbers = (tuple(part) for part in zip(*kept, strict=True)) if kept else ((), ())
        place_of = {number: place for place, number in enumerate(numbers)}
        return _Index(stamp, starts, numbers, place_of, len(every), digest.hexdigest(), owners)

    def _open(self) -> Any:
        try:
            return self._file.open("rb")
        except OSError as error:
            raise UsageError(f"{self._file} cannot be read: {error.strerror}") from None


def _sums(rows: Sequence[TrainingRow], card: CardView | None) -> RowSums:
    tokens, trained = sum(row.tokens for row in rows), sum(row.trained for row in rows)
    turns = (sum(row.turns[0] for row in rows), sum(row.turns[1] for row in rows))
    told = card.sums if card is not None else None
    return RowSums(tokens, trained, turns, told is not None and (told.texts, told.trained) == (tokens, trained))


def _page(number: int) -> str:
    return f"row-{number}.html"


def _after(number: int) -> str:
    return f"after-{number}.html"
