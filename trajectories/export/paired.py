"""The samples of both sets of ``--pairs``: a pair is written where both of its trajectories can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sql.store import Transaction
from trajectories.export.draw import NOT_DRAWN, drawn
from trajectories.export.duplicates import EXTENDED, SAME_CONVERSATION, SAME_TREES, Conversations
from trajectories.export.format import Format
from trajectories.export.options import ExportOptions
from trajectories.export.pairs import HOW, SAME_IN_BOTH, SETS, CandidatePair, rejection_sampling, short_long
from trajectories.export.reading import BENCHMARK, UNLABELLED, ExportCandidate, branch_ids, candidates, last_turns
from trajectories.export.selection import SampleSelection
from trajectories.extensions import extended_prefixes
from trajectories.outcomes import FINAL, KEPT
from trajectories.privileged import DISCLOSED, PRIVILEGED


@dataclass(frozen=True, slots=True)
class SampleSet:
    """A set of samples that is written to one file, or to two with a split."""

    name: str
    options: ExportOptions
    selection: SampleSelection


def paired_sets(
    tx: Transaction,
    form: Format,
    options: ExportOptions,
    secrets: tuple[str, ...],
    left_out: Counter[str],
) -> tuple[list[SampleSet], dict[str, Any]]:
    """Both sets, whose samples are pairs in the same order, and how they were paired, as the card tells it.

    `left_out` counts the trajectories that are in no pair, and the pairs that are not written, by reason. No sets where
    no pair differs. Raises `UsageError` for a tokenizer that cannot be used.
    """
    of_set = _set_options(options)
    groups = _candidate_pairs(tx, options, of_set, left_out)
    pairs = list(_exportable(tx, form, options, of_set, secrets, groups, left_out))
    if options.at_most is not None:
        names = drawn((_pair_id(pair) for pair in pairs), options.at_most, options.seed)
        rest = [pair for pair in pairs if _pair_id(pair) in names]
        left_out.update({NOT_DRAWN: len(pairs) - len(rest)} if len(rest) < len(pairs) else {})
        pairs = rest
    same = sum(not pair.differs for pair in pairs)
    facts = {"kind": options.pairs, "how": HOW[options.pairs], "pairs": len(pairs), SAME_IN_BOTH: same}
    if same == len(pairs):
        left_out.update({SAME_IN_BOTH: same} if same else {})
        return [], facts
    # Repeated conversations are out, and a draw has been made.
    plain = [replace(one, duplicates="keep", at_most=None) for one in of_set]
    sets = [
        SampleSet(
            name, of_set[place], SampleSelection(tx, form, plain[place], secrets, only=[it[place] for it in pairs])
        )
        for place, name in enumerate(SETS[options.pairs])
    ]
    return sets, facts


def _set_options(options: ExportOptions) -> list[ExportOptions]:
    if options.pairs == "short-long":
        return [options, options]
    return [replace(options, refinements="keep"), options]


def _candidate_pairs(
    tx: Transaction, options: ExportOptions, of_set: Sequence[ExportOptions], left_out: Counter[str]
) -> list[list[CandidatePair]]:
    """Groups of pairs of which one is written."""
    if options.pairs == "short-long":
        wanted = candidates(tx, options)
        found = [it for it in wanted if options.scaffolds is not None or it.scaffold != DISCLOSED]
        found = _allowed(found, options, left_out)
        groups = short_long(found, extended_prefixes(tx), unique=options.duplicates == "trees")
        in_pairs = {it.id for group in groups for pair in group for it in pair}
        left_out.update({EXTENDED: rest} if (rest := sum(it.id not in in_pairs for it in found)) else {})
    else:
        wanted = candidates(tx, replace(options, pairs="none", outcomes=FINAL))
        found = [it for it in wanted if options.scaffolds is not None or it.scaffold not in PRIVILEGED]
        found = _allowed(found, options, left_out)
        groups = rejection_sampling(found, last_turns(tx), branch_ids(tx), options.seed)
        kept_chains = {group[0].second.chain_id for group in groups}
        without = {it.chain_id for it in found if it.outcome not in KEPT} - kept_chains
        left_out.update({"chains_without_a_kept_rollout": len(without)} if without else {})
    return groups


def _allowed(found: Sequence[ExportCandidate], options: ExportOptions, left_out: Counter[str]) -> list[ExportCandidate]:
    allowed = [it for it in found if options.benchmarks or not it.benchmark]
    labelled = [it for it in allowed if it.labelled]
    held_back = {BENCHMARK: len(found) - len(allowed), UNLABELLED: len(allowed) - len(labelled)}
    left_out.update({reason: count for reason, count in held_back.items() if count})
    return labelled


def _exportable(
    tx: Transaction,
    form: Format,
    options: ExportOptions,
    of_set: Sequence[ExportOptions],
    secrets: tuple[str, ...],
    groups: Sequence[Sequence[CandidatePair]],
    left_out: Counter[str],
) -> Iterator[CandidatePair]:
    """Of each group the first pair of which both samples can be written."""
    readers = [SampleSelection(tx, form, own, secrets, only=()) for own in of_set]
    before = [Conversations() for _ in of_set]
    for group in groups:
        for place, pair in enumerate(group, 1):
            reasons: Counter[str] = Counter()
            found = [reader.samples_of(it, reasons) for reader, it in zip(readers, pair, strict=True)]
            if not all(found):
                left_out.update({f"pair_{reason}": 1 for reason in reasons})
                continue
            samples = [chosen[0].sample for chosen in found]
            if options.duplicates != "keep":
                known = [seen.knows(sample) for seen, sample in zip(before, samples, strict=True)]
                if any(known):
                    left_out[SAME_CONVERSATION] += 1
                    break
                for seen, sample in zip(before, samples, strict=True):
                    seen.repeats(sample)
            left_out.update({SAME_TREES: rest} if (rest := len(group) - place) else {})
            yield pair
            break


def _pair_id(pair: CandidatePair) -> str:
    return f"{pair.first.id} {pair.second.id}"
