"""An export from end to end: trajectories in, files and their card out, one sample in memory at a time."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from prchain.core.console.progress import Progress
from prchain.core.console.terminal import json_text
from prchain.core.errors import UsageError
from sql.store import Store, Transaction
from trajectories.export.card import Card, card_of, shared_pulls
from trajectories.export.card_text import markdown
from trajectories.export.chat import think
from trajectories.export.format import Format
from trajectories.export.options import ExportOptions
from trajectories.export.overlap import Overlap
from trajectories.export.paired import SampleSet, paired_sets
from trajectories.export.pairs import SETS
from trajectories.export.parquet import ParquetRows
from trajectories.export.recipe import check_readable, recipe_path, recipe_text
from trajectories.export.samples import Sample, per_turn
from trajectories.export.selection import SampleSelection
from trajectories.export.tokens import cumulative_tokens, with_tokens
from trajectories.export.write import (
    Files,
    HashedFile,
    JsonFiles,
    JsonLines,
    RowWriter,
    Sink,
    card_paths,
    check_output_folder,
    check_output_path,
    sibling_path,
)

TRAIN, VALIDATION = "train", "validation"


@dataclass(slots=True)
class ExportReport:
    """What an export wrote."""

    samples: Counter[str] = field(default_factory=Counter)
    """By part: ``train``, ``validation``, or the names of two sets of pairs; 0 for a part without samples."""
    rows: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    files: list[Path] = field(default_factory=list)
    """Empty where there was no sample."""
    tokens_how: str = ""
    overlap: Overlap | None = None
    """What the samples share with a file of texts; None without one."""
    card: Mapping[str, Any] = field(default_factory=dict)
    """Empty where no card was written."""
    shared: dict[str, list[str]] = field(default_factory=dict)
    """The pull requests that several of the exported tasks hold, with the ids of their chains."""


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

    With `options.pairs` two sets are written, each under the name of `set_paths` and with files of its own beside it.
    Of no sample no file is written, and those that are there stay. Raises `UsageError`, `StoreError` and `DiskFull`.
    """
    if out.suffix == ".parquet":  # its columns are those of the first row, and not each has tokens
        form = replace(form, tells_tokens=False)
    paths = set_paths(out, options)
    targets = {name: _Target.of(name, form, options, path, force=force) for name, path in paths.items()}
    report = ExportReport()
    with store.reading() as tx, Files(force=force) as files:
        sets, pairs = _sets(tx, form, options, secrets, report.left_out)
        states = {}
        for one in sets:
            states[one.name] = ExportState(one, form)
            targets[one.name].write(files, states[one.name], report, form, progress)
            report.shared |= shared_pulls(tx, states[one.name].card)
        if not report.samples.total():
            files.discard()
            return report
        if pairs:
            pairs["sets"] = {name: _pair_figures(targets[name], state) for name, state in states.items()}
        for name, state in states.items():
            told = {"set": name, **pairs} if pairs else None
            report.files += targets[name].finish(tx, files, state, report, form, told)
        if pairs:
            report.overlap = None  # both cards have their own
    return report


def set_paths(out: Path, options: ExportOptions) -> dict[str, Path]:
    """Where the samples of each set go: ``sft.short.jsonl`` and ``sft.long.jsonl``; without pairs to `out`."""
    names = SETS.get(options.pairs)
    return {TRAIN: out} if names is None else {name: sibling_path(out, name) for name in names}


def _sets(
    tx: Transaction, form: Format, options: ExportOptions, secrets: tuple[str, ...], left_out: Counter[str]
) -> tuple[list[SampleSet], dict[str, Any]]:
    if options.pairs != "none":
        return paired_sets(tx, form, options, secrets, left_out)
    return [SampleSet(TRAIN, options, SampleSelection(tx, form, options, secrets))], {}


def _pair_figures(target: _Target, state: ExportState) -> dict[str, Any]:
    """What is told of a set in the cards of both."""
    card = state.card
    return {
        "file": target.out.name,
        "samples": len(card.tokens),
        "chains": len({it.chain_id for it in card.trajectories.values() if not it.imported}),
        "queries": sum(length * count for length, count in card.stages.items()),
        "tokens_mean": card.tokens.figures()["mean"],
        "tool_calls_mean": card.calls.figures()["mean"],
    }


@dataclass(slots=True)
class _Target:
    """The files of one set."""

    out: Path
    paths: dict[str, Path]
    """By part."""
    stale: list[Path]
    parquet: bool
    streams: dict[str, list[HashedFile]] = field(default_factory=dict)
    rows: dict[str, RowWriter] = field(default_factory=dict)

    @classmethod
    def of(cls, name: str, form: Format, options: ExportOptions, out: Path, *, force: bool) -> _Target:
        """Raises `UsageError` where a file cannot or must not be written."""
        parquet = out.suffix == ".parquet"
        if parquet and form.columns is None:
            raise UsageError(f"{form.name} is read from JSON lines only; give --out another suffix than .parquet")
        if form.file_name and out.suffix in {".jsonl", ".json"}:
            raise UsageError(f"{form.name} writes a folder with a file for each trajectory; give --out a folder's name")
        paths = {name: out} | ({VALIDATION: sibling_path(out, VALIDATION)} if options.validation else {})
        recipe_files = [recipe_path(out)] if options.recipe else []
        if options.recipe:
            check_readable(options.recipe, out)
        for path in paths.values():
            if form.file_name:
                check_output_folder(path, form.file_pattern, force=force)
            else:
                check_output_path(path, force=force)
        for path in (*card_paths(out), *recipe_files):
            check_output_path(path, force=force)
        if form.file_name:
            earlier = [path for folder in paths.values() for path in sorted(folder.glob(form.file_pattern))]
            return cls(out, paths, earlier, parquet)
        return cls(out, paths, _stale_files(out, (*paths.values(), *recipe_files), force=force), parquet)

    def write(
        self, files: Files, state: ExportState, report: ExportReport, form: Format, progress: Progress | None
    ) -> None:
        """Write the rows."""
        for part, path in self.paths.items():
            if form.file_name is not None:
                files.folder(path, form.file_pattern)
                self.rows[part] = folder_rows = JsonFiles(files, path, form.file_name)
                self.streams[part] = folder_rows.streams
            else:
                stream = files.open(path)
                self.rows[part] = _row_writer(stream, form, parquet=self.parquet)
                self.streams[part] = [stream]
        # Closed also after an error: pyarrow's writers end their files when they are garbage collected.
        with ExitStack() as writers:
            for writer in self.rows.values():
                writers.callback(writer.close)
            state.write(self.rows, report, progress)
        report.rows.update({part: writer.count for part, writer in self.rows.items()})

    def finish(
        self,
        tx: Transaction,
        files: Files,
        state: ExportState,
        report: ExportReport,
        form: Format,
        pairs: Mapping[str, Any] | None,
    ) -> list[Path]:
        """Write card and recipe, and return the paths of all files."""
        options = state.options
        written = [
            (part, stream, self.rows[part].count // len(streams))
            for part, streams in self.streams.items()
            for stream in streams
        ]
        card = card_of(
            tx,
            state.card,
            form=form.name,
            files=written,
            options=options,
            counter=state.counter,
            overlap=state.overlap,
            pairs=pairs,
        )
        new = {stream.path for _, stream, _ in written}
        for path in self.stale:
            if path not in new:
                files.remove(path)
        card_files = card_paths(self.out)
        recipe_files = [recipe_path(self.out)] if options.recipe else []
        files.open(card_files[0]).write(markdown(card).encode("utf-8"))
        files.open(card_files[1]).write((json_text(card) + "\n").encode("ascii"))
        if options.recipe:
            validation = self.paths[VALIDATION].name if report.samples[VALIDATION] else None
            files.open(recipe_files[0]).write(os.fsencode(recipe_text(options.recipe, self.out.name, validation)))
        report.card = card
        return [*self.paths.values(), *card_files, *recipe_files]


def export_to(
    store: Store, form: Format, options: ExportOptions, stream: Sink, *, secrets: tuple[str, ...] = ()
) -> ExportReport:
    """Write all samples as JSON lines to an open stream, without a card. Raises `UsageError` for a split, a recipe,
    pairs, and a format of a file a sample."""
    if form.file_name is not None:
        raise UsageError(f"--format {form.name} writes a file for each trajectory; give --out a folder's name")
    if options.validation:
        raise UsageError("--split writes two files; give --out a file's name")
    if options.recipe:
        raise UsageError("--recipe names the file that is written; give --out a file's name")
    if options.pairs != "none":
        raise UsageError("--pairs writes two files; give --out a file's name")
    report = ExportReport()
    with store.reading() as tx:
        state = ExportState(SampleSet(TRAIN, options, SampleSelection(tx, form, options, secrets)), form)
        rows = JsonLines(stream)
        state.write({TRAIN: rows}, report)
        rows.close()
        report.shared = shared_pulls(tx, state.card)
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

    def __init__(self, samples: SampleSet, form: Format) -> None:
        self.options = samples.options
        self.card = Card()
        self.overlap = Overlap.load(self.options.overlap) if self.options.overlap else None
        self._selection = samples.selection
        self.counter = self._selection.counter
        self._part, self._form = samples.name, form

    def write(self, rows: Mapping[str, RowWriter], report: ExportReport, progress: Progress | None = None) -> None:
        """Write the samples to the rows of their parts."""
        self.card.left_out = report.left_out
        validation = self._selection.validation()
        report.samples.update(dict.fromkeys(rows, 0))
        task = progress.task("samples", len(self._selection)) if progress and len(self._selection) else None
        for chosen in self._selection.samples(self.card.left_out):
            for candidate, sample, tokens in chosen:
                counted_sample = with_tokens(sample, tokens)
                if self.overlap is not None:
                    self.overlap.check(counted_sample)
                self.card.add(candidate, counted_sample, tokens)
                part = VALIDATION if candidate.id in validation else self._part
                rows_of = self.card.rows_of.setdefault(part, Counter())
                for row in self._sample_rows(counted_sample):
                    rows[part].write(row)
                    rows_of[candidate.id] += 1
                report.samples[part] += 1
            if task is not None:
                task.advance()
        if task is not None:
            task.done(f"{sum(report.samples.values()):,} written")
        self.card.stand_ins = self._selection.stand_ins
        report.tokens_how, report.overlap = self.counter.description, self.overlap

    def _sample_rows(self, sample: Sample) -> Iterator[Mapping[str, Any]]:
        """The rows of a sample."""
        inline = self.options.reasoning == "inline" and not self._form.inline_reasoning
        shaped_sample = _inline(sample) if inline else sample
        if self.options.rows == "turns":
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
