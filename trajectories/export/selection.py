"""Which samples an export holds: of every trajectory what is written of it, or why nothing is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from sql.store import Transaction
from trajectories.export.duplicates import SAME_CONVERSATION, SAME_TREES, Conversations, same_trees
from trajectories.export.format import Format
from trajectories.export.lengths import fit
from trajectories.export.options import ExportOptions
from trajectories.export.reading import ExportCandidate, candidates, chain_pulls, read_sample
from trajectories.export.samples import Sample
from trajectories.export.split import related_chains, validation_groups
from trajectories.export.tokens import Counter as TokenCounter
from trajectories.export.tokens import Tokens, counter


class SelectedSample(NamedTuple):
    """A sample that is written."""

    candidate: ExportCandidate
    sample: Sample
    tokens: Tokens


class SampleSelection:
    """The samples of an export, one trajectory in memory at a time; the same ones each time it is gone through."""

    def __init__(self, tx: Transaction, form: Format, options: ExportOptions, secrets: tuple[str, ...] = ()) -> None:
        """Raises `UsageError` for options that name what is not there, and a tokenizer that cannot be used."""
        self.counter: TokenCounter = counter(options.tokenizer)
        self._tx, self._form, self._secrets = tx, form, secrets
        # What a format has no place for must not count as its samples' length either.
        self._options = options if form.takes_reasoning else replace(options, reasoning="drop")
        found = candidates(tx, options)
        self._alike = same_trees(found) if options.duplicates == "trees" else [[candidate] for candidate in found]

    def __len__(self) -> int:
        """How many samples there are at most, where none is split."""
        return len(self._alike)

    def samples(self, left_out: Counter[str] | None = None) -> Iterator[list[SelectedSample]]:
        """Of each trajectory, or several that ended alike, the samples: one, none, or the pieces of one.

        Of those that ended alike the first that can be exported stands for all. `left_out` counts what is left out by
        the name of why.
        """
        told: Counter[str] = Counter() if left_out is None else left_out
        seen = Conversations() if self._options.duplicates != "keep" else None
        for group in self._alike:
            chosen: list[SelectedSample] = []
            for place, candidate in enumerate(group, 1):
                reasons: Counter[str] = Counter()
                chosen = self._of(candidate, seen, reasons)
                told.update(reasons)
                if chosen or reasons[SAME_CONVERSATION]:
                    told.update({SAME_TREES: rest} if (rest := len(group) - place) else {})
                    break
            yield chosen

    def _of(
        self, candidate: ExportCandidate, seen: Conversations | None, reasons: Counter[str]
    ) -> list[SelectedSample]:
        options, whole = self._options, not self._form.trains
        sample = read_sample(self._tx, candidate, options, whole=whole, secrets=self._secrets)
        if isinstance(sample, str):
            reasons[sample] += 1
            return []
        if whole:
            return [SelectedSample(candidate, sample, self.counter.sample(sample))]
        each_stage = candidate.context == "stage"
        kept, left_out = fit(sample, self.counter, options.max_tokens, options.too_long, each_stage=each_stage)
        reasons.update(left_out)
        chosen = [SelectedSample(candidate, *pair) for pair in kept]
        if seen is not None:
            new = [self._new(selected_sample, seen) for selected_sample in chosen]
            reasons.update({SAME_CONVERSATION: old} if (old := new.count(None)) else {})
            chosen = [selected_sample for selected_sample in new if selected_sample is not None]
        return chosen

    def _new(self, chosen: SelectedSample, seen: Conversations) -> SelectedSample | None:
        """What of a sample no other one says; in rows of one turn each row is looked at."""
        sample = chosen.sample
        if self._options.rows == "conversations":
            return None if seen.repeats(sample) else chosen
        new = seen.unrepeated(sample)
        if new.trained == sample.trained:
            return chosen
        return chosen._replace(sample=new, tokens=self.counter.sample(new)) if new.trained else None

    def validation(self) -> frozenset[str]:
        """The ids of the trajectories for validation.

        The share is one of the samples that are written, which only a look at every one of them tells.
        """
        options = self._options
        if not options.validation:
            return frozenset()
        kept: dict[str, tuple[ExportCandidate, int]] = {}
        for chosen in self.samples():
            if chosen:
                kept[chosen[0].candidate.id] = (chosen[0].candidate, len(chosen))
        found = [candidate for candidate, _ in kept.values()]
        if options.split_by == "repository":
            group = {candidate.id: candidate.repository.lower() for candidate in found}
        else:
            chains = {candidate.chain_id for candidate in found}
            related = related_chains(chains, chain_pulls(self._tx, chains))
            group = {candidate.id: related[candidate.chain_id] for candidate in found}
        sizes: Counter[str] = Counter()
        for name, (_, count) in kept.items():
            sizes[group[name]] += count
        groups = validation_groups(sizes, options.validation, options.seed)
        return frozenset(key for key, name in group.items() if name in groups)
