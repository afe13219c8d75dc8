"""An export from end to end: trajectories in, files and their card out, one sample in memory at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prchain.errors import UsageError
from prchain.progress import Progress
from prchain.terminal import json_text
from sql.store import Store, Transaction
from trajectories.export.card import Card, card_of
from trajectories.export.card_text import markdown
from trajectories.export.chat import think
from trajectories.export.format import Format
from trajectories.export.options import ExportOptions
from trajectories.export.overlap import Overlap
from trajectories.export.parquet import ParquetRows
from trajectories.export.samples import Sample, per_turn
from trajectories.export.selection import SampleSelection
from trajectories.export.tokens import counted, up_to_each_turn
from trajectories.export.write import Files, HashedFile, JsonLines, RowWriter, Sink, beside, card_places, check_place

TRAIN, VALIDATION = "train", "validation"


@dataclass(slots=True)
class ExportReport:
    """What an export wrote."""

    samples: Counter[str] = field(default_factory=Counter)
    """By part."""
    rows: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    files: list[Path] = field(default_factory=list)
    tokens_how: str = ""
    overlap: Overlap | None = None
    """What the samples share with a file of texts, where one was given."""
    card: Mapping[str, Any] = field(default_factory=dict)


def export(
    store: Store,
    form: Format,
    options: ExportOptions,
    out: Path,
    *,
    force: bool = False,
    progress: Progress | None = None,
    secrets: tuple[str, ...] = (),
) -> ExportReport:
    """Write the samples to `out`, those for validation and the card beside it: all of them, or nothing.

    Raises `UsageError`, `StoreError` and `DiskFull`.
    """
    parquet = out.suffix == ".parquet"
    if parquet and form.columns is None:
        raise UsageError(f"{form.name} is read from JSON lines only; give --out another suffix than .parquet")
    places = {TRAIN: out} | ({VALIDATION: beside(out, VALIDATION)} if options.validation else {})
    cards = card_places(out)
    for place in (*places.values(), *cards):
        check_place(place, force=force)
    stale = _stale(out, places.values(), force=force)
    report = ExportReport()
    with store.reading() as tx, Files(force=force) as files:
        work = ExportState(tx, options, form, secrets)
        streams = {part: files.open(place) for part, place in places.items()}
        rows: dict[str, RowWriter] = {part: _rows(stream, form, parquet=parquet) for part, stream in streams.items()}
        with ExitStack() as ends:  # also of one that fails: pyarrow's writers end their files when they are collected
            for writer in rows.values():
                ends.callback(writer.close)
            work.write(rows, report, progress)
        written: list[tuple[str, HashedFile, int]] = [(part, streams[part], rows[part].count) for part in streams]
        card = card_of(
            tx, work.card, form=form.name, files=written, options=options, counter=work.counter, overlap=work.overlap
        )
        for place in stale:
            files.remove(place)
        files.open(cards[0]).write(markdown(card).encode("utf-8"))
        files.open(cards[1]).write((json_text(card) + "\n").encode("ascii"))
    report.files = [*places.values(), *cards]
    report.rows.update({part: rows[part].count for part in rows})
    report.card = card
    return report


def export_to(
    store: Store, form: Format, options: ExportOptions, stream: Sink, *, secrets: tuple[str, ...] = ()
) -> ExportReport:
    """Write all samples as JSON lines to an open stream, without a card. Raises `UsageError` for a split."""
    if options.validation:
        raise UsageError("--split writes two files; give --out a file's name")
    report = ExportReport()
    with store.reading() as tx:
        work = ExportState(tx, options, form, secrets)
        rows = JsonLines(stream)
        work.write({TRAIN: rows}, report)
        rows.close()
    report.rows[TRAIN] = rows.count
    return report


def _stale(out: Path, places: Collection[Path], *, force: bool) -> list[Path]:
    """The file for validation of an export that was at `out` before, where this one writes none.

    Its samples may stand in the new file, and who takes both would validate on what was trained on. Raises `UsageError`
    where it is there and must not go.
    """
    place = beside(out, VALIDATION)
    if place in places or not place.exists():
        return []
    if not force:
        raise UsageError(
            f"{place} is there from another export, and this one may write its samples to {out.name}; give another "
            "name, or --force to remove it"
        )
    check_place(place, force=force)
    return [place]


def _rows(stream: HashedFile, form: Format, *, parquet: bool) -> RowWriter:
    return ParquetRows(stream, form.columns or {}) if parquet else JsonLines(stream)


class ExportState:
    """An export under way, and what the card will tell of it."""

    def __init__(self, tx: Transaction, options: ExportOptions, form: Format, secrets: tuple[str, ...] = ()) -> None:
        self.card = Card()
        self.overlap = Overlap.load(options.overlap) if options.overlap else None
        self._selection = SampleSelection(tx, form, options, secrets)
        self.counter = self._selection.counter
        self._options, self._form = options, form

    def write(self, rows: Mapping[str, RowWriter], report: ExportReport, progress: Progress | None = None) -> None:
        """Write the samples to the rows of their parts."""
        validation = self._selection.validation()
        task = progress.task("samples", len(self._selection)) if progress else None
        for chosen in self._selection.samples(self.card.left_out):
            for candidate, sample, tokens in chosen:
                told = counted(sample, tokens)
                if self.overlap is not None:
                    self.overlap.check(told)
                self.card.add(candidate, told, tokens)
                part = VALIDATION if candidate.id in validation else TRAIN
                for row in self._lines(told):
                    rows[part].write(row)
                report.samples[part] += 1
            if task is not None:
                task.advance()
        if task is not None:
            task.done(f"{sum(report.samples.values()):,} written")
        report.left_out, report.tokens_how, report.overlap = self.card.left_out, self.counter.description, self.overlap

    def _lines(self, sample: Sample) -> Iterator[Mapping[str, Any]]:
        """The rows of a sample."""
        inline = self._options.reasoning == "inline" and not self._form.inline_reasoning
        told = _inline(sample) if inline else sample
        if self._options.rows == "turns":
            reached = list(up_to_each_turn(self.counter, sample))
            for part in per_turn(told):
                yield (self._form.per_turn or self._form.row)(counted(part, reached[len(part.turns) - 1]))
        else:
            yield self._form.row(told)


def _inline(sample: Sample) -> Sample:
    """The sample with reasoning before the contents."""
    turns = tuple(
        replace(turn, content=think(turn.reasoning, turn.content), reasoning=None) if turn.reasoning else turn
        for turn in sample.turns
    )
    return replace(sample, turns=turns)
