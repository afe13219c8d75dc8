"""The data card: what a file of samples holds, where it is from, and what was left out, as JSON and as Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from sqlalchemy import select

from environments.suites.outcomes import PASSED
from prchain.core import __version__
from prchain.core.llm.purposes import TASK_PURPOSES
from sql.store import Transaction
from sql.tables import Candidate as ChainCandidate
from sql.tables import ImportedTask, LlmCall, PrmWindow, Task, Trajectory, TrajectoryMessage
from trajectories.audit.report import audit_counts
from trajectories.curation.windows.settings import settings_words
from trajectories.export.distribution import Distribution
from trajectories.export.duplicates import StandIn
from trajectories.export.loss import LossCount
from trajectories.export.options import ExportOptions
from trajectories.export.overlap import Overlap
from trajectories.export.reading import ExportCandidate, chain_pulls, chain_works, outcome_counts
from trajectories.export.samples import Sample
from trajectories.export.split import shared_works
from trajectories.export.tokens import Counter as TokenCounter
from trajectories.export.tokens import Tokens
from trajectories.export.write import HashedFile
from trajectories.model import EntryKind
from trajectories.outcomes import DONE_EARLY
from trajectories.provenance import UNKNOWN, all_provenance, project_of
from trajectories.sums import price_sources

CARD_VERSION = 1

BENCHMARK_OUTCOMES = ("benchmark_repository", "benchmark_instance")
"""Outcomes of pull requests that are left out of chains because a benchmark has them (`chains.stages.filters`)."""


class Card:
    """Collects the figures of a card, sample by sample; memory grows by a few numbers a sample."""

    def __init__(self) -> None:
        self.tokens = Distribution()
        self.trained_tokens = Distribution()
        self.calls = Distribution()
        self.turns = Distribution()
        self.stages: Counter[int] = Counter()
        self.reasons: Counter[str] = Counter()
        self.loss = LossCount()
        self.hidden_tests: Counter[str] = Counter({"passed": 0, "failed": 0, "not_run": 0})
        self.proofs: Counter[str] = Counter()
        self.safeguards: Counter[str] = Counter()
        self.counted_by: Counter[str] = Counter()
        self.broken_marks: Counter[str] = Counter({"samples": 0, "texts": 0})
        self.replaced: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.trajectories: dict[str, ExportCandidate] = {}
        self.samples_of: Counter[str] = Counter()
        self.rows_of: dict[str, Counter[str]] = {}
        """By part: trajectory to its rows, which stand together, in the order of the file."""
        self.stand_ins: Mapping[str, StandIn] = {}
        """Trajectories that were left out since another one is as good, to that one."""

    def add(self, candidate: ExportCandidate, sample: Sample, tokens: Tokens) -> None:
        """Add a sample that is written."""
        self.counted_by[tokens.by] += 1
        self.broken_marks.update(samples=bool(sample.broken_marks), texts=sample.broken_marks)
        self.tokens.add(tokens.total)
        self.trained_tokens.add(tokens.trained)
        self.calls.add(sample.tool_calls)
        self.turns.add(sum(turn.role == "assistant" for turn in sample.turns))
        self.stages[len(sample.stages)] += 1
        self.hidden_tests.update(
            "not_run" if stage.tests is None else stage.tests if stage.tests in {PASSED, DONE_EARLY} else "failed"
            for stage in sample.stages
        )
        self.proofs.update(stage.proof or "not_proved" for stage in sample.stages)
        self.safeguards.update(stage.safeguard or "not_kept" for stage in sample.stages if stage.tests is not None)
        self.reasons.update(str(turn.reason) for turn in sample.turns if turn.role == "assistant")
        for turn in sample.turns:
            self.replaced.update(turn.replaced)
        for turn, count in zip(sample.turns, tokens.texts, strict=True):
            self.loss.add(turn.reason, count)
        self.trajectories[candidate.id] = candidate
        self.samples_of[candidate.repository] += 1

    def figures(self, counter: TokenCounter) -> dict[str, Any]:
        """The figures of the samples alone."""
        return {
            "samples": len(self.tokens),
            "trajectories": len(self.trajectories),
            "chains": len({it.chain_id for it in self.trajectories.values() if not it.imported}),
            "tokens_by": counter.method,
            "tokens_how": counter.description,
            "samples_counted_by": dict(sorted(self.counted_by.items())),
            "tokens": self.tokens.figures() | {"total": int(self.tokens.total)},
            "tokens_under_loss": self.trained_tokens.figures() | {"total": int(self.trained_tokens.total)},
            "tool_calls": self.calls.figures() | {"total": int(self.calls.total)},
            "turns": self.turns.figures(),
            "stages": {str(length): self.stages[length] for length in sorted(self.stages)},
            "hidden_tests": dict(self.hidden_tests),
            "proofs": dict(sorted(self.proofs.items())),
            "safeguards": dict(sorted(self.safeguards.items())),
            "turns_by_reason": dict(sorted(self.reasons.items())),
            "loss": self.loss.figures(),
            "broken_marks": dict(self.broken_marks),
            "replaced": dict(sorted(self.replaced.items())),
            "left_out": dict(sorted(self.left_out.items())),
        }


def card_of(
    tx: Transaction,
    card: Card,
    *,
    form: str,
    files: Sequence[tuple[str, HashedFile, int]],
    options: ExportOptions,
    counter: TokenCounter,
    overlap: Overlap | None,
    pairs: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The whole card; `files` are (part, file, rows). `pairs` says how two sets were paired; None: there is one."""
    kept = list(card.trajectories.values())
    return {
        "card_version": CARD_VERSION,
        "prchain": __version__,
        "format": form,
        "files": [
            {"part": part, "name": stream.path.name, "rows": rows, "bytes": stream.bytes, "sha256": stream.sha256}
            | _rows_of(card, part, rows)
            for part, stream, rows in files
        ],
        **card.figures(counter),
        **_stand_ins(card),
        **({} if pairs is None else {"pairs": dict(pairs)}),
        "outcomes_of_all_trajectories": dict(outcome_counts(tx)),
        "repositories": _repositories(card, kept),
        "licences": dict(sorted(Counter(candidate.licence or "unknown" for candidate in kept).items())),
        **_imports(tx, kept),
        **_trajectories_of_others(tx, kept),
        **shared_row(shared_pulls(tx, card)),
        "options": options_row(options),
        **_rollouts(tx, card.trajectories),
        "cost": _cost(tx, kept),
        "prices": price_sources(tx),
        **_guidance(tx, card.trajectories),
        "audit": _audit(tx, kept),
        "overlap": _overlap(tx, kept, overlap),
    }


def _rows_of(card: Card, part: str, rows: int) -> dict[str, Any]:
    """The trajectories of a part with their rows, in the order of its file; empty where it has several files."""
    found = card.rows_of.get(part, Counter())
    return {"trajectories": dict(found)} if found.total() == rows else {}


def _stand_ins(card: Card) -> dict[str, Any]:
    """Which trajectories were left out for which exported one: the first ones. Empty where there is none."""
    found = (
        {"trajectory": trajectory, "reason": it.reason, "exported": it.trajectory}
        for trajectory, it in card.stand_ins.items()
        if it.trajectory in card.trajectories
    )
    first = list(islice(found, _STAND_INS_SHOWN))
    return {"left_out_for": first} if first else {}


def options_row(options: ExportOptions) -> dict[str, Any]:
    """The options of an export as JSON values."""
    row = asdict(options)
    return row | {
        "outcomes": sorted(options.outcomes),
        "masks": sorted(map(str, options.masks)),
        "scaffolds": None if options.scaffolds is None else sorted(options.scaffolds),
        "windows": settings_words(options.windows) if options.windows else None,
        "tokenizer": options.tokenizer.name if options.tokenizer else None,
        "overlap": options.overlap.name if options.overlap else None,
        "proof": str(options.proof),
    }


def _repositories(card: Card, kept: Sequence[ExportCandidate]) -> list[dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = {}
    for candidate in kept:
        row = rows.setdefault(
            candidate.repository, {"name": candidate.repository, "samples": 0, "chains": set(), "licences": set()}
        )
        row["samples"] = card.samples_of[candidate.repository]
        row["chains"].update(set() if candidate.imported else {candidate.chain_id})
        row["licences"].add(candidate.licence or "unknown")
    return [
        {**row, "chains": len(row["chains"]), "licences": sorted(row["licences"])}
        for row in sorted(rows.values(), key=lambda entry: (-entry["samples"], entry["name"].lower()))
    ]


def _imports(tx: Transaction, kept: Sequence[ExportCandidate]) -> dict[str, Any]:
    """The data sets that exported chains were imported from, with trajectories by split and by the licence that the
    publisher names. Empty where none was."""
    columns = ("chain_id", "source", "revision", "split", "licence")
    known = {chain: values for chain, *values in tx.rows(ImportedTask, *columns)}
    found: dict[tuple[str, str, bool], dict[str, Counter[str]]] = {}
    for candidate in kept:
        if candidate.chain_id in known:
            source, revision, split, licence = known[candidate.chain_id]
            row = found.setdefault(
                (source, revision or "", candidate.benchmark), {"splits": Counter(), "licences": Counter()}
            )
            row["splits"][split or "unknown"] += 1
            row["licences"][licence or "unknown"] += 1
    rows = [
        {"source": source, "revision": revision or None, "benchmark": benchmark}
        | {name: dict(sorted(counts.items())) for name, counts in row.items()}
        for (source, revision, benchmark), row in sorted(found.items())
    ]
    return {"imports": rows} if rows else {}


def _trajectories_of_others(tx: Transaction, kept: Sequence[ExportCandidate]) -> dict[str, Any]:
    """The sources of exported imports, with trajectories by licence, agent and format. Empty where there was none."""
    ids = {candidate.id for candidate in kept if candidate.imported}
    found: dict[str, dict[str, Counter[str]]] = {}
    for origin in all_provenance(tx) if ids else ():
        if origin.trajectory_id in ids:
            told = {"licences": origin.licence or UNKNOWN, "agents": f"{origin.agent} {origin.agent_version}"}
            row = found.setdefault(origin.source or UNKNOWN, {it: Counter() for it in (*told, "formats")})
            for it, value in (told | {"formats": origin.form}).items():
                row[it][value] += 1
    rows = [
        {"source": source, "trajectories": row["formats"].total()}
        | {it: dict(sorted(counts.items())) for it, counts in row.items()}
        for source, row in sorted(found.items())
    ]
    return {"trajectories_of_others": rows} if rows else {}


def shared_pulls(tx: Transaction, card: Card) -> dict[str, list[str]]:
    """The pull requests that several of the exported tasks hold, with the ids of their chains."""
    chains = {candidate.chain_id for candidate in card.trajectories.values()}
    return shared_works(chain_works(tx, chains))


def shared_row(shared: Mapping[str, list[str]]) -> dict[str, Any]:
    """What the card tells of `shared_pulls`: all are counted, and the first ones named. Empty where there is none."""
    if not shared:
        return {}
    first = [{"pull_request": pull, "chains": chains} for pull, chains in islice(shared.items(), _SHARED_SHOWN)]
    return {"in_several_tasks": {"pull_requests": len(shared), "first": first}}


_SHARED_SHOWN = 100
_STAND_INS_SHOWN = 1_000

_SETTINGS = ("gate", "threshold", "refinements", "on_fail", "carry", "context", "tools", "temperature", "overflow")


def _rollouts(tx: Transaction, kept: Mapping[str, ExportCandidate]) -> dict[str, Any]:
    """Models, judges, settings and prompts of the exported trajectories, each with its number of trajectories."""
    settings: Counter[str] = Counter()
    prompts: Counter[tuple[str, str]] = Counter()
    columns = ("id", "options", "prompts")
    for trajectory, options, prompt_hashes in tx.rows(Trajectory, *columns):
        if trajectory in kept and not kept[trajectory].imported:
            chosen = options
            values = {name: chosen.get(name) for name in _SETTINGS}
            values |= {"observers": chosen.get("observers") or [], "windows": kept[trajectory].windows}
            settings[json.dumps(values, sort_keys=True)] += 1
            prompts.update(_owned_prompts("trajectories", prompt_hashes))
    chains = {candidate.chain_id for candidate in kept.values()}
    writers: Counter[str] = Counter()
    for chain, model, prompt_hashes in tx.rows(Task, "chain_id", "model", "prompts"):
        if chain in chains:
            writers[model or "unknown"] += 1
            prompts.update(_owned_prompts("tasks", prompt_hashes))
    return {
        "agents": _counted(f"{candidate.model} ({candidate.scaffold})" for candidate in kept.values()),
        "judges": _counted(candidate.judge or "none" for candidate in kept.values()),
        "task_writers": dict(sorted(writers.items())),
        "settings": [{**json.loads(row), "trajectories": count} for row, count in sorted(settings.items())],
        "prompts": [
            {"name": name, "hash": digest, "used_by": count} for (name, digest), count in sorted(prompts.items())
        ],
    }


def _owned_prompts(owner: str, hashes: Mapping[str, str]) -> list[tuple[str, str]]:
    """Name and hash of each prompt; tasks and agents both have a ``query``, so the owner is part of the name."""
    return [(f"{owner}/{name}", digest) for name, digest in hashes.items()]


def _guidance(tx: Transaction, kept: Mapping[str, ExportCandidate]) -> dict[str, Any]:
    """What process reward models said in the exported trajectories: windows, those whose words were inserted, replies
    that could not be used, and words that hold something of the reference (by guess: they never saw it). Empty where
    there was none."""
    counts: Counter[str] = Counter()
    inserted = {
        details.get("window")
        for trajectory, details in tx.rows(TrajectoryMessage, "trajectory_id", "details", kind=str(EntryKind.GUIDANCE))
        if trajectory in kept
    }
    columns = ("id", "trajectory_id", "subject", "sent", "fault", "leaks")
    for id_, trajectory, subject, sent, fault, leaks in tx.rows(PrmWindow, *columns, replay=None):
        # Of curation's candidates only what was committed is in the conversation.
        if trajectory in kept and (subject.count("/") == 1 or id_ in inserted):
            counts.update(
                {"windows": 1, "sent": int(sent), "faults": int(fault is not None), "leaks": int(bool(leaks))}
            )
    return {"guidance": dict(counts)} if counts else {}


def _audit(tx: Transaction, kept: Sequence[ExportCandidate]) -> dict[str, dict[str, int]]:
    """Signs of cheating in the exported stages: sign to trajectories and findings. Empty where there was none."""
    stages, projects = {it.id: it.stages for it in kept}, {it.id: project_of(it.repository) for it in kept}
    return audit_counts(tx, stages, projects).row()


def _counted(names: Any) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _cost(tx: Transaction, kept: Sequence[ExportCandidate]) -> dict[str, Any]:
    """USD; None where a price is not known. All trajectories of ours count, because rejected ones were paid for too."""
    amounts = [usd for usd, chain in tx.rows(Trajectory, "usd", "chain_id") if chain is not None]
    query = select(LlmCall.usd, LlmCall.reserved_usd).where(
        LlmCall.purpose.in_(TASK_PURPOSES), LlmCall.state != "released"
    )
    tasks = [reserved if usd is None else usd for usd, reserved in tx.connection.execute(query)]
    rollouts = _sum(amounts)
    return {
        "rollouts_usd": rollouts,
        "exported_rollouts_usd": _sum(candidate.usd for candidate in kept if not candidate.imported),
        "tasks_usd": _sum(tasks),
        "rollouts_usd_per_exported_trajectory": None
        if rollouts is None or not kept
        else round(rollouts / len(kept), 6),
    }


def _sum(values: Any) -> float | None:
    amounts = list(values)
    return None if any(amount is None for amount in amounts) else round(sum(amounts), 6)


def _overlap(tx: Transaction, kept: Sequence[ExportCandidate], overlap: Overlap | None) -> dict[str, Any]:
    """Pull requests of benchmarks in the database, and the texts that the samples share with a file."""
    marked: set[tuple[int, int]] = set()
    for outcome in BENCHMARK_OUTCOMES:
        found = tx.rows(ChainCandidate, "repository_id", "number", outcome=outcome)
        marked.update((repository, number) for repository, number in found)
    pulls = chain_pulls(tx, {candidate.chain_id for candidate in kept}) if marked else ()
    chains = sorted({chain for chain, pull in pulls if pull in marked})
    row: dict[str, Any] = {"benchmark_pull_requests_kept_out": len(marked), "exported_chains_with_one": chains}
    if overlap is not None:
        row["file"] = {
            "name": overlap.name,
            "lines": overlap.items,
            "samples_looked_at": overlap.looked_at,
            "samples_that_share_text": len(overlap.hits),
            "hits": [asdict(hit) | {"lines": list(hit.lines)} for hit in overlap.hits[:100]],
        }
    return row
