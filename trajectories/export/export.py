"""An export from end to end: trajectories in, files and their card out, one sample in memory at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

from prchain.errors import UsageError
from prchain.progress import Progress
from sql.store import Store, Transaction
from trajectories.export.card import Card, card_of
from trajectories.export.card_text import markdown
from trajectories.export.duplicates import SAME_CONVERSATION, SAME_TREES, Conversations, same_trees
from trajectories.export.formats.chat import think
from trajectories.export.formats.model import Format
from trajectories.export.lengths import fit
from trajectories.export.options import ExportOptions
from trajectories.export.overlap import Overlap
from trajectories.export.parquet import ParquetRows
from trajectories.export.reading import Candidate, candidates, chain_pulls, read_sample
from trajectories.export.samples import Sample, per_turn
from trajectories.export.split import related_chains, validation_groups
from trajectories.export.tokens import Counter as TokenCounter
from trajectories.export.tokens import counter
from trajectories.export.write import Files, JsonLines, Rows, Stream, beside, check_place

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
    cards = [out.with_name(f"{out.name}.card.{suffix}") for suffix in ("md", "json")]
    for place in (*places.values(), *cards):
        check_place(place, force=force)
    report = ExportReport()
    with store.reading() as tx, Files(force=force) as files:
        work = Work(tx, options, form, secrets)
        streams = {part: files.open(place) for part, place in places.items()}
        rows: dict[str, Rows] = {part: _rows(stream, form, parquet=parquet) for part, stream in streams.items()}
        _write(work, rows, report, progress)
        for writer in rows.values():
            writer.close()
        written: list[tuple[str, Stream, int]] = [(part, streams[part], rows[part].count) for part in streams]
        card = card_of(
            tx, work.card, form=form.name, files=written, options=options, counter=work.counter, overlap=work.overlap
        )
        files.open(cards[0]).write(markdown(card).encode("utf-8"))
        files.open(cards[1]).write((json.dumps(card, indent=2) + "\n").encode("ascii"))
    report.files = [*places.values(), *cards]
    report.rows.update({part: rows[part].count for part in rows})
    report.left_out, report.card, report.tokens_how = work.card.left_out, card, work.counter.description
    return report


def export_to(
    store: Store, form: Format, options: ExportOptions, stream: BinaryIO, *, secrets: tuple[str, ...] = ()
) -> ExportReport:
    """Write all samples as JSON lines to an open stream, without a card. Raises `UsageError` for a split."""
    if options.validation:
        raise UsageError("--split writes two files; give --out a file's name")
    report = ExportReport()
    with store.reading() as tx:
        work = Work(tx, options, form, secrets)
        rows = JsonLines(stream)
        _write(work, {TRAIN: rows}, report, None)
        rows.close()
    report.rows[TRAIN] = rows.count
    report.left_out, report.tokens_how = work.card.left_out, work.counter.description
    return report


def _rows(stream: Stream, form: Format, *, parquet: bool) -> Rows:
    return ParquetRows(stream, form.columns or {}) if parquet else JsonLines(stream)


def _write(work: Work, rows: Mapping[str, Rows], report: ExportReport, progress: Progress | None) -> None:
    task = progress.task("samples", len(work.chosen)) if progress else None
    for candidate in work.chosen:
        part = VALIDATION if candidate.id in work.validation else TRAIN
        for sample in work.samples(candidate):
            for row in work.lines(sample):
                rows[part].write(row)
            report.samples[part] += 1
        if task is not None:
            task.advance()
    if task is not None:
        task.done(f"{sum(report.samples.values()):,} written")


class Work:
    """The samples of an export, one after the other, and what the card will tell of them."""

    def __init__(self, tx: Transaction, options: ExportOptions, form: Format, secrets: tuple[str, ...] = ()) -> None:
        self.card = Card()
        self.counter: TokenCounter = counter(options.tokenizer)
        self.overlap = Overlap.load(options.overlap) if options.overlap else None
        self._tx, self._options, self._form, self._secrets = tx, options, form, secrets
        found = candidates(tx, options)
        repeated = same_trees(found) if options.duplicates == "trees" else {}
        self.card.left_out.update({SAME_TREES: len(repeated)} if repeated else {})
        self.chosen = [one for one in found if one.id not in repeated]
        self.validation = self._validation()
        self._seen = Conversations() if options.duplicates != "keep" else None

    def _validation(self) -> frozenset[str]:
        """The ids of the trajectories for validation."""
        if not self._options.validation:
            return frozenset()
        if self._options.split_by == "repository":
            group = {one.id: one.repository.lower() for one in self.chosen}
        else:
            chains = {one.chain_id for one in self.chosen}
            related = related_chains(chains, chain_pulls(self._tx, chains))
            group = {one.id: related[one.chain_id] for one in self.chosen}
        groups = validation_groups(Counter(group.values()), self._options.validation, self._options.seed)
        return frozenset(one for one, name in group.items() if name in groups)

    def samples(self, candidate: Candidate) -> Iterator[Sample]:
        """The samples of a trajectory: one, none, or the pieces of one that is too long."""
        whole = not self._form.trains
        sample = read_sample(self._tx, candidate, self._options, whole=whole, secrets=self._secrets)
        if isinstance(sample, str):
            self.card.left_out[sample] += 1
            return
        if whole:
            kept = [(sample, self.counter.sample(sample))]
        else:
            if self._seen is not None and self._seen.repeats(sample):
                self.card.left_out[SAME_CONVERSATION] += 1
                return
            limit, policy = self._options.max_tokens, self._options.too_long
            kept, left_out = fit(sample, self.counter, limit, policy, each_stage=candidate.context == "stage")
            self.card.left_out.update(left_out)
        for one, tokens in kept:
            told = replace(one, facts={**one.facts, "tokens": tokens.total, "tokens_by": self.counter.method})
            if self.overlap is not None:
                self.overlap.check(told)
            self.card.add(candidate, told, tokens)
            yield told

    def lines(self, sample: Sample) -> Iterator[Mapping[str, Any]]:
        """The rows of a sample."""
        inline = self._options.reasoning == "inline" and not self._form.inline_reasoning and self._form.takes_reasoning
        told = _inline(sample) if inline else sample
        if self._options.rows == "turns":
            for one in per_turn(told):
                yield (self._form.per_turn or self._form.row)(one)
        else:
            yield self._form.row(told)


def _inline(sample: Sample) -> Sample:
    """The sample with reasoning before the contents."""
    turns = tuple(
        replace(turn, content=think(turn.reasoning, turn.content), reasoning=None) if turn.reasoning else turn
        for turn in sample.turns
    )
    return replace(sample, turns=turns)
