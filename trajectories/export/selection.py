"""Which samples an export holds: for every trajectory its samples, or why it has none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sql.store import Transaction
from sql.taken_proofs import taken
from trajectories.export.branches import BRANCH, branch_samples
from trajectories.export.draw import NOT_DRAWN, drawn
from trajectories.export.duplicates import EXTENDED, SAME_CONVERSATION, SAME_TREES, Conversations, StandIn, same_trees
from trajectories.export.format import Format
from trajectories.export.lengths import fit
from trajectories.export.options import ExportOptions
from trajectories.export.pairs import longest_extensions
from trajectories.export.reading import (
    BENCHMARK,
    UNLABELLED,
    ExportCandidate,
    candidates,
    chain_works,
    read_sample,
    response_lengths,
)
from trajectories.export.samples import Sample, without_untrained_tail
from trajectories.export.shortest import NOT_SHORTEST, shortest_first
from trajectories.export.split import related_chains, validation_groups
from trajectories.export.tokens import Counter as TokenCounter
from trajectories.export.tokens import Tokens, counter
from trajectories.extensions import extended_prefixes
from trajectories.privileged import DISCLOSED

WEAK_PROOF = "weak_proof"
"""What the proof of a stage is worth is less than ``--proof`` asks for."""


class SelectedSample(NamedTuple):
    """A sample that is written."""

    candidate: ExportCandidate
    sample: Sample
    tokens: Tokens


class _Draw(NamedTuple):
    """The samples that were drawn: their ids by trajectory; and how many were left out, by reason."""

    samples: Mapping[str, set[str]]
    left_out: Counter[str]


class SampleSelection:
    """The samples of an export, one trajectory in memory at a time; each iteration gives the same ones."""

    def __init__(
        self,
        tx: Transaction,
        form: Format,
        options: ExportOptions,
        secrets: tuple[str, ...] = (),
        *,
        only: Sequence[ExportCandidate] | None = None,
    ) -> None:
        """`only` are the trajectories, in this order; None: those that the options ask for.

        Raises `UsageError` for a tokenizer that cannot be used.
        """
        self.counter: TokenCounter = counter(options.tokenizer)
        self._tx, self._form, self._secrets = tx, form, secrets
        # Reasoning that the format does not write must not count in the length of its samples.
        self._options = options if form.takes_reasoning else replace(options, reasoning="drop")
        wanted = candidates(tx, options) if only is None else only
        # Told a part of the reference's process graph: whoever imitates that learns to know what nobody said.
        of_runs = [it for it in wanted if options.branches == "all" or not it.beside]
        undisclosed = [it for it in of_runs if options.scaffolds is not None or it.scaffold != DISCLOSED]
        unbarred = [it for it in undisclosed if options.benchmarks or not it.benchmark]
        labelled = [it for it in unbarred if it.labelled]
        takes = taken(tx, options.proof)
        found = [it for it in labelled if takes(it.chain_id, range(1, it.stages + 1))]
        held_back = {
            BRANCH: len(wanted) - len(of_runs),
            DISCLOSED: len(of_runs) - len(undisclosed),
            BENCHMARK: len(undisclosed) - len(unbarred),
            UNLABELLED: len(unbarred) - len(labelled),
            WEAK_PROOF: len(labelled) - len(found),
        }
        self._held_back = {reason: count for reason, count in held_back.items() if count and only is None}
        self._groups, self._reasons = _groups(tx, found, options) if only is None else ([[it] for it in only], {})
        self._draw: _Draw | None = None
        self.stand_ins: dict[str, StandIn] = {}
        """Of what the iterations so far left out for another one."""

    def __len__(self) -> int:
        """The most samples there can be if none is split."""
        return len(self._groups)

    def samples(self, left_out: Counter[str] | None = None) -> Iterator[list[SelectedSample]]:
        """The samples of each trajectory, or of each group of which one is wanted: one, none, or the pieces of one.

        Of a group only the first trajectory that can be exported is written. `left_out` counts the left out samples by
        reason. To draw some at random, all are read once before the first iteration.
        """
        counts: Counter[str] = Counter() if left_out is None else left_out
        counts.update(self._held_back)
        if self._options.at_most is None:
            yield from self._selected(counts)
            return
        if self._draw is None:
            self._draw = self._drawn(self._options.at_most)
        counts.update(self._draw.left_out)
        # Duplicates are found anew, among the drawn samples alone: a turn that one of them shares with a sample that
        # was not drawn must be taught here.
        yield from self._selected(Counter(), self._draw.samples)

    def _drawn(self, count: int) -> _Draw:
        left_out: Counter[str] = Counter()
        owners = {one.sample.id: one.candidate.id for chosen in self._selected(left_out) for one in chosen}
        ids = drawn(owners, count, self._options.seed)
        left_out.update({NOT_DRAWN: rest} if (rest := len(owners) - len(ids)) else {})
        samples: dict[str, set[str]] = {}
        for name in ids:
            samples.setdefault(owners[name], set()).add(name)
        return _Draw(samples, left_out)

    def _selected(
        self, counts: Counter[str], only: Mapping[str, set[str]] | None = None
    ) -> Iterator[list[SelectedSample]]:
        """As `samples`, without the draw; `only` holds the ids of the wanted samples by trajectory, None: all."""
        conversations = Conversations() if self._options.duplicates != "keep" else None
        for group in self._groups:
            chosen: list[SelectedSample] = []
            for place, candidate in enumerate(group, 1):
                if only is not None and candidate.id not in only:
                    continue
                reasons: Counter[str] = Counter()
                wanted = None if only is None else only[candidate.id]
                chosen = self.samples_of(candidate, reasons, conversations, wanted)
                counts.update(reasons)
                if chosen or reasons[SAME_CONVERSATION]:
                    left = {other.id: StandIn(self._reasons[other.id], candidate.id) for other in group[place:]}
                    counts.update(it.reason for it in left.values())
                    self.stand_ins |= left
                    break
            yield chosen

    def samples_of(
        self,
        candidate: ExportCandidate,
        reasons: Counter[str],
        conversations: Conversations | None = None,
        wanted: Collection[str] | None = None,
    ) -> list[SelectedSample]:
        """The samples of one trajectory; `reasons` counts why samples are left out. `conversations` are those before
        it, None: all are written; `wanted` holds ids, None: all."""
        options, whole = self._options, not self._form.trains
        sample = read_sample(
            self._tx,
            candidate,
            options,
            whole=whole,
            secrets=self._secrets,
            audited=self._form.tells_signs,
            with_tokens=self._form.tells_tokens,
        )
        if isinstance(sample, str):
            reasons[sample] += 1
            return []
        beside: list[Sample] = []
        if options.branches == "all" and not candidate.imported:
            beside = [*branch_samples(self._tx, sample, options, self._secrets)]
        if whole:
            return [SelectedSample(candidate, it, self.counter.sample(it)) for it in (sample, *beside)]
        each_stage = candidate.context == "stage"
        kept, left_out = fit(sample, self.counter, options.max_tokens, options.too_long, each_stage=each_stage)
        for one in map(without_untrained_tail, beside):
            fitted = fit(one, self.counter, options.max_tokens, "drop")
            kept, left_out = [*kept, *fitted.kept], [*left_out, *fitted.left_out]
        reasons.update(left_out)
        chosen = [SelectedSample(candidate, *pair) for pair in kept if wanted is None or pair[0].id in wanted]
        if conversations is not None:
            unrepeated = [self._unrepeated(selected_sample, conversations) for selected_sample in chosen]
            reasons.update({SAME_CONVERSATION: repeated} if (repeated := unrepeated.count(None)) else {})
            chosen = [selected_sample for selected_sample in unrepeated if selected_sample is not None]
        return chosen

    def _unrepeated(self, chosen: SelectedSample, conversations: Conversations) -> SelectedSample | None:
        """What is no duplicate in a sample; None if nothing is. With per-turn rows, each row is checked."""
        sample = chosen.sample
        if self._options.rows == "conversations":
            return None if conversations.repeats(sample) else chosen
        new = conversations.unrepeated(sample)
        if new.trained == sample.trained:
            return chosen
        return chosen._replace(sample=new, tokens=self.counter.sample(new)) if new.trained else None

    def validation(self) -> frozenset[str]:
        """The ids of the trajectories for validation.

        The share is of the samples that are written, so all samples are read once to count them.
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
            related = related_chains(chains, chain_works(self._tx, chains))
            group = {candidate.id: related[candidate.chain_id] for candidate in found}
        sizes: Counter[str] = Counter()
        for name, (_, count) in kept.items():
            sizes[group[name]] += count
        groups = validation_groups(sizes, options.validation, options.seed)
        return frozenset(key for key, name in group.items() if name in groups)


def _groups(
    tx: Transaction, found: list[ExportCandidate], options: ExportOptions
) -> tuple[list[list[ExportCandidate]], dict[str, str]]:
    """Groups of trajectories of which one is written, the best first; and why another one is left out, by id."""
    if options.per_chain == "shortest":
        return shortest_first(found, response_lengths(tx)), dict.fromkeys((it.id for it in found), NOT_SHORTEST)
    reasons = dict.fromkeys((it.id for it in found), SAME_TREES)
    if options.duplicates != "trees":
        return [[candidate] for candidate in found], reasons
    groups = same_trees(found)
    furthest = longest_extensions(found, extended_prefixes(tx))
    group_of = {candidate.id: group for group in groups for candidate in group}
    merged = set()
    # The longest prefixes first: where an extension cannot be exported, the next best takes its place.
    for group in sorted(groups, key=lambda group: -group[0].accepted):
        if extension := next((furthest[it.id] for it in group if it.id in furthest), None):
            group_of[extension.id].extend(group)
            merged.add(id(group))
            reasons |= dict.fromkeys((it.id for it in group), EXTENDED)
    return [group for group in groups if id(group) not in merged], reasons
