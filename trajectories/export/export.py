"""An export from end to end: trajectories in, files and their card out, one sample in memory at a time."""

from __future__ import annotations

import os
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
from trajectories.export.recipe import check_readable, recipe_path, recipe_text
from trajectories.export.samples import Sample, per_turn
from trajectories.export.selection import SampleSelection
from trajectories.export.tokens import cumulative_tokens, with_tokens
from trajectories.export.write import (
    Files,
    HashedFile,
    JsonLines,
    RowWriter,
    Sink,
    card_paths,
    check_output_path,
    sibling_path,
)

TRAIN, VALIDATION = "train", "validation"


@dataclass(slots=True)
class ExportReport:
    """What an export wrote."""

    samples: Counter[str] = field(default_factory=Counter)
    """By part: ``train``, ``validation``; 0 for a part without samples."""
    rows: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    files: list[Path] = field(default_factory=list)
    """Empty where there was no sample."""
    tokens_how: str = ""
    overlap: Overlap | None = None
    """What the samples share with a file of texts; None without one."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """Empty where no card was written."""


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
    """Write the samples to `out`, the validation samples, the card and the recipe beside it: all files or none.

    Of no sample no file is written, and those that are there stay. Raises `UsageError`, `StoreError` and `DiskFull`.
    """
    parquet = out.suffix == ".parquet"
    if parquet and form.columns is None:
        raise UsageError(f"{form.name} is read from JSON lines only; give --out another suffix than .parquet")
    paths = {TRAIN: out} | ({VALIDATION: sibling_path(out, VALIDATION)} if options.validation else {})
    card_files = card_paths(out)
    recipe_files = [recipe_path(out)] if options.recipe else []
    if options.recipe:
        check_readable(options.recipe, out)
    for path in (*paths.values(), *card_files, *recipe_files):
        check_output_path(path, force=force)
    stale = _stale_files(out, (*paths.values(), *recipe_files), force=force)
    report = ExportReport()
    with store.reading() as tx, Files(force=force) as files:
        state = ExportState(tx, options, form, secrets)
        streams = {part: files.open(path) for part, path in paths.items()}
        rows: dict[str, RowWriter] = {
            part: _row_writer(stream, form, parquet=parquet) for part, stream in streams.items()
        }
        # Closed also after an error: pyarrow's writers end their files when they are garbage collected.
        with ExitStack() as writers:
            for writer in rows.values():
                writers.callback(writer.close)
            state.write(rows, report, progress)
        report.rows.update({part: rows[part].count for part in rows})
        if not report.samples.total():
            files.discard()
            return report
        written: list[tuple[str, HashedFile, int]] = [(part, streams[part], rows[part].count) for part in streams]
        card = card_of(
            tx, state.card, form=form.name, files=written, options=options, counter=state.counter, overlap=state.overlap
        )
        for path in stale:
            files.remove(path)
        files.open(card_files[0]).write(markdown(card).encode("utf-8"))
        files.open(card_files[1]).write((json_text(card) + "\n").encode("ascii"))
        if options.recipe:
            validation = paths[VALIDATION].name if report.samples[VALIDATION] else None
            script = recipe_text(options.recipe, out.name, validation)
            files.open(recipe_files[0]).write(os.fsencode(script))
    report.files = [*paths.values(), *card_files, *recipe_files]
    report.card = card
    return report


def export_to(
    store: Store, form: Format, options: ExportOptions, stream: Sink, *, secrets: tuple[str, ...] = ()
) -> ExportReport:
    """Write all samples as JSON lines to an open stream, without a card. Raises `UsageError` for a split and for
    a recipe."""
    if options.validation:
        raise UsageError("--split writes two files; give --out a file's name")
    if options.recipe:
        raise UsageError("--recipe names the file that is written; give --out a file's name")
    report = ExportReport()
    with store.reading() as tx:
        state = ExportState(tx, options, form, secrets)
        rows = JsonLines(stream)
        state.write({TRAIN: rows}, report)
        rows.close()
    report.rows[TRAIN] = rows.count
    return report


def _stale_files(out: Path, paths: Collection[Path], *, force: bool) -> list[Path]:
    """The validation file and the recipe of an earlier export to `out`, those of them that this export does not write.

    The validation samples may be in the new file, so whoever uses both files would validate on training data; the
    recipe may be for another format, and name that validation file. Raises `UsageError` if one of them exists and
    `force` is not set.
    """
    reasons = {
        sibling_path(out, VALIDATION): f"this one may write its samples to {out.name}",
        recipe_path(out): f"it need not fit the new {out.name}",
    }
    stale = [path for path in reasons if path not in paths and path.exists()]
    for path in stale:
        if not force:
            raise UsageError(
                f"{path} is there from another export, and {reasons[path]}; give another name, or --force to remove it"
            )
        check_output_path(path, force=force)
    return stale


def _row_writer(stream: HashedFile, form: Format, *, parquet: bool) -> RowWriter:
    return ParquetRows(stream, form.columns or {}) if parquet else JsonLines(stream)


class ExportState:
    """A running export, with the figures for its card."""

    def __init__(self, tx: Transaction, options: ExportOptions, form: Format, secrets: tuple[str, ...] = ()) -> None:
        self.card = Card()
        self.overlap = Overlap.load(options.overlap) if options.overlap else None
        self._selection = SampleSelection(tx, form, options, secrets)
        self.counter = self._selection.counter
        self._options, self._form = options, form

    def write(self, rows: Mapping[str, RowWriter], report: ExportReport, progress: Progress | None = None) -> None:
        """Write the samples to the rows of their parts."""
        validation = self._selection.validation()
        report.samples.update(dict.fromkeys(rows, 0))
        task = progress.task("samples", len(self._selection)) if progress and len(self._selection) else None
        for chosen in self._selection.samples(self.card.left_out):
            for candidate, sample, tokens in chosen:
                counted_sample = with_tokens(sample, tokens)
                if self.overlap is not None:
                    self.overlap.check(counted_sample)
                self.card.add(candidate, counted_sample, tokens)
                part = VALIDATION if candidate.id in validation else TRAIN
                for row in self._sample_rows(counted_sample):
                    rows[part].write(row)
                report.samples[part] += 1
            if task is not None:
                task.advance()
        if task is not None:
            task.done(f"{sum(report.samples.values()):,} written")
        report.left_out, report.tokens_how, report.overlap = self.card.left_out, self.counter.description, self.overlap

    def _sample_rows(self, sample: Sample) -> Iterator[Mapping[str, Any]]:
        """The rows of a sample."""
        inline = self._options.reasoning == "inline" and not self._form.inline_reasoning
        shaped_sample = _inline(sample) if inline else sample
        if self._options.rows == "turns":
            counts = list(cumulative_tokens(self.counter, sample))
            for part in per_turn(shaped_sample):
                yield (self._form.per_turn or self._form.row)(with_tokens(part, counts[len(part.turns) - 1]))
        else:
            yield self._form.row(shaped_sample)


def _inline(sample: Sample) -> Sample:
    """The sample with reasoning before the contents."""
    turns = tuple(
        replace(turn, content=think(turn.reasoning, turn.content), reasoning=None) if turn.reasoning else turn
        for turn in sample.turns
    )
    return replace(sample, turns=turns)
