"""Figures of the rollouts in a database, beside the figures in the paper.

The paper is daVinci-Agency: 239 samples of 84.82 thousand tokens and 116 tool calls on average, chains of at most five
pull requests (sections 1 and 6.3), from 1,762 queries and 61,810 pull requests of nine repositories (table 4).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import and_, exists, func, select
from sqlalchemy.orm import aliased

from prchain.core.console.terminal import counted, dollars, say, say_prose, say_table, tally
from sql.outcomes import READY
from sql.store import Transaction
from sql.tables import PullRequest, TaskStage, Trajectory, TrajectoryMessage, Verdict
from trajectories.export.card import Card
from trajectories.export.distribution import Distribution
from trajectories.export.formats import slime
from trajectories.export.loss import loss_rows, loss_words
from trajectories.export.options import ExportOptions
from trajectories.export.reading import candidates
from trajectories.export.selection import SampleSelection
from trajectories.export.tokens import BYTES_A_TOKEN
from trajectories.extensions import extended_prefixes, not_extended
from trajectories.model import EntryKind
from trajectories.outcomes import KEPT, WITHOUT_CHAIN
from trajectories.privileged import DISCLOSED
from trajectories.provenance import UNKNOWN, all_provenance
from trajectories.studies.statistics.spent import SpentSum, all_spent
from trajectories.sums import hidden_tests, price_sources

PAPER: Mapping[str, float] = {
    "pull_requests": 61_810,
    "queries": 1_762,
    "samples": 239,
    "tokens": 84_820,
    "tool_calls": 116,
    "stages": 5,
}
"""The paper's figures: ``tokens`` and ``tool_calls`` are means, ``stages`` is the maximum, the others are counts."""


UNTOLD = and_(Trajectory.scaffold != DISCLOSED, Trajectory.chain_id.is_not(None))
"""A condition: the trajectory is of ours, and counts."""


@dataclass(slots=True)
class FileViews:
    """The number of file views of one trajectory, and of those that showed only what was shown before.

    Lines of a file count as shown while its content is the same, a folder's listing while no file has changed.
    """

    views: int = 0
    redundant: int = 0
    _lines: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)
    _folder_views: set[str] = field(default_factory=set)

    def step(self, view: Mapping[str, Any] | None, *, changed: bool) -> None:
        """Add the view of one observation (``details.view``); `changed` says whether the tree differs after it."""
        if view is not None:
            self.views += 1
            self.redundant += self._is_redundant(view)
        if changed:
            self._folder_views.clear()

    def _is_redundant(self, view: Mapping[str, Any]) -> bool:
        if "content" in view:
            ranges = self._lines.setdefault((str(view["path"]), str(view["content"])), [])
            first, last = int(view["first"]), int(view["last"])
            redundant = any(start <= first and last <= end for start, end in ranges)
            ranges.append((first, last))
            return redundant
        key = json.dumps(view, sort_keys=True)
        redundant = key in self._folder_views
        self._folder_views.add(key)
        return redundant


def stats(tx: Transaction) -> dict[str, Any]:
    """The figures, of kept trajectories that no other one extends unless noted; those whose agents were told a part of
    a process graph count nowhere but in ``disclosed``. Raises `StoreError`.

    Tokens, tool calls and what is under loss are those of `prchain export` without options, with tokens estimated. A
    rate or mean of nothing is None.
    """
    outcomes = _counts(tx, Trajectory.outcome)
    kept = sum(_stages(tx).values())
    spent = SpentSum()
    for cost in all_spent(tx):
        spent.add(cost)
    samples = _samples(tx)
    views = _views(tx)
    usd: list[float | None] = [cost for (cost,) in tx.connection.execute(select(Trajectory.usd).where(UNTOLD))]
    total = None if None in usd else sum(cost or 0.0 for cost in usd)
    return {
        "pull_requests": tx.count(PullRequest),
        "queries": tx.count(TaskStage, outcome=READY),
        "query_checks": _query_checks(tx),
        "trajectories": sum(outcomes.values()),
        "outcomes": outcomes,
        "disclosed": tx.count(Trajectory, scaffold=DISCLOSED),
        "samples": kept,
        "tokens": samples.tokens.figures() | {"by": f"estimate, {BYTES_A_TOKEN} bytes a token"},
        "tool_calls": samples.calls.figures(),
        "loss": samples.loss.figures(),
        "stages": _stages(tx),
        "hidden_tests": hidden_tests(tx),
        "acceptance": _acceptance(tx),
        "scores": _scores(tx),
        "views": {
            "all": views.views,
            "redundant": views.redundant,
            "redundancy": round(views.redundant / views.views, 4) if views.views else None,
        },
        "cost": {
            "usd": None if total is None else round(total, 6),
            "usd_per_sample": None if total is None or not kept else round(total / kept, 6),
        },
        "all_purposes": spent.row(kept),
        "prices": price_sources(tx),
        **{name: figures for name in WITHOUT_CHAIN if (figures := _without_chain(tx, name))},
        "paper": dict(PAPER),
    }


def _query_checks(tx: Transaction) -> dict[str, dict[str, int]]:
    """What the leak check and the reviewer say of the queries as they stand, apart: queries that each rejects, and
    ready ones that each warns of."""
    counts = {finder: {"rejected": 0, "warned": 0} for finder in ("check", "review")}
    for outcome, findings in tx.rows(TaskStage, "outcome", "findings"):
        found = [row for row in findings if row["text"] == "query"]
        for finder, count in counts.items():
            severities = {row["severity"] for row in found if row.get("by", "check") == finder}
            count["rejected"] += outcome != READY and "leak" in severities
            count["warned"] += outcome == READY and bool(severities)
    return counts


def _counts(tx: Transaction, column: Any) -> dict[str, int]:
    query = select(column, func.count()).where(UNTOLD).group_by(column).order_by(column)
    return {str(name): int(count) for name, count in tx.connection.execute(query)}


def _kept_messages(*columns: Any) -> Any:
    """Select messages of the accepted stages of kept trajectories."""
    return (
        select(*columns)
        .join(Trajectory, Trajectory.id == TrajectoryMessage.trajectory_id)
        .where(
            UNTOLD,
            not_extended(),
            Trajectory.outcome.in_(sorted(KEPT)),
            TrajectoryMessage.position <= Trajectory.accepted,
        )
    )


def _samples(tx: Transaction) -> Card:
    """The figures of every kept trajectory as the sample that `prchain export` writes of it, by the code that makes the
    card of an export: the same samples have the same numbers in both.

    Duplicates count, since they were rolled out, too.
    """
    card = Card()
    options = ExportOptions(duplicates="keep")
    selection = SampleSelection(tx, slime.FORMAT, options, only=())
    extended = set(extended_prefixes(tx).values())
    for candidate in candidates(tx, options):
        if candidate.scaffold == DISCLOSED or candidate.id in extended:
            continue
        for chosen in selection.samples_of(candidate, Counter()):
            card.add(*chosen)
    return card


def _without_chain(tx: Transaction, outcome: str) -> dict[str, Any]:
    """The figures of what was imported, or recorded, as those of kept trajectories; empty where there is none."""
    options = ExportOptions(frozenset({outcome}), duplicates="keep", branches="all")
    found = candidates(tx, options)
    if not found:
        return {}
    card, selection = Card(), SampleSelection(tx, slime.FORMAT, options, only=())
    left_out: Counter[str] = Counter()
    for candidate in found:
        for chosen in selection.samples_of(candidate, left_out):
            card.add(*chosen)
    sources: Counter[str] = Counter()
    licences: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    ids = {candidate.id for candidate in found}
    for origin in all_provenance(tx):
        if origin.trajectory_id not in ids:
            continue
        sources[origin.source or UNKNOWN] += 1
        licences[origin.licence or UNKNOWN] += 1
        agents[origin.agent] += 1
    counted_by = {"sources": sources, "licences": licences, "agents": agents}
    figures = {"tokens": card.tokens.figures(), "tool_calls": card.calls.figures(), "loss": card.loss.figures()}
    told = {name: dict(sorted(counts.items())) for name, counts in counted_by.items()}
    return {"trajectories": len(found), **told, **figures}


def _views(tx: Transaction) -> FileViews:
    """The views of all kept trajectories, counted for each trajectory separately."""
    table = TrajectoryMessage
    query = (
        _kept_messages(table.trajectory_id, table.details, table.tree)
        .where(table.kind == str(EntryKind.OBSERVATION))
        .order_by(table.trajectory_id, table.ordinal)
    )
    total, current, last = FileViews(), FileViews(), None
    for trajectory, details, tree in tx.connection.execute(query, execution_options={"yield_per": 10_000}):
        if trajectory != last:
            total.views, total.redundant = total.views + current.views, total.redundant + current.redundant
            current, last = FileViews(), trajectory
        view = details.get("view")
        current.step(view, changed=tree is not None)
    total.views, total.redundant = total.views + current.views, total.redundant + current.redundant
    return total


def _stages(tx: Transaction) -> dict[str, int]:
    """The number of kept trajectories by number of accepted stages."""
    query = (
        select(Trajectory.accepted, func.count())
        .where(UNTOLD, not_extended(), Trajectory.outcome.in_(sorted(KEPT)))
        .group_by(Trajectory.accepted)
        .order_by(Trajectory.accepted)
    )
    return {str(length): int(count) for length, count in tx.connection.execute(query)}


def _not_copied() -> Any:
    """A condition: a verdict is no copy of its parent's (`trajectories.rollouts.branch`), whose `at` is equal."""
    original = aliased(Verdict)
    same = [getattr(original, name) == getattr(Verdict, name) for name in ("position", "attempt", "tree", "at")]
    parents = (Trajectory.id == Verdict.trajectory_id, Trajectory.parent_id == original.trajectory_id)
    return ~exists().where(*parents, *same).correlate(Verdict)


def _of_the_untold() -> Any:
    """A condition: a verdict is of a trajectory that counts."""
    return Verdict.trajectory_id.in_(select(Trajectory.id).where(UNTOLD))


def _acceptance(tx: Transaction) -> list[dict[str, Any]]:
    """The number of verdicts by round and decision, over all trajectories."""
    counts: dict[int, Counter[str]] = {}
    query = (
        select(Verdict.attempt, Verdict.accepted, func.count())
        .where(_not_copied(), _of_the_untold())
        .group_by(Verdict.attempt, Verdict.accepted)
    )
    for attempt, accepted, count in tx.connection.execute(query):
        name = "unscored" if accepted is None else "accepted" if accepted else "rejected"
        counts.setdefault(attempt, Counter())[name] += count
    rows = []
    for attempt in sorted(counts):
        found = counts[attempt]
        scored = found["accepted"] + found["rejected"]
        rows.append(
            {
                "round": attempt,
                **{name: found[name] for name in ("accepted", "rejected", "unscored")},
                "rate": round(found["accepted"] / scored, 4) if scored else None,
            }
        )
    return rows


def _scores(tx: Transaction) -> dict[str, Any]:
    """The judge's scores of all attempts: their figures, and the number in each tenth (1.0 is in the last)."""
    query = select(Verdict.score).where(Verdict.score.is_not(None), _not_copied(), _of_the_untold())
    scores = [float(score) for (score,) in tx.connection.execute(query) if score is not None]
    tenths = Counter(min(int(score * 10 + 1e-9), 9) for score in scores)
    return {
        **Distribution(scores).figures(),
        "count": len(scores),
        "tenths": {f"{tenth / 10:.1f}": tenths[tenth] for tenth in range(10)},
    }


def print_stats(row: Mapping[str, Any]) -> None:
    """Print the figures for people."""
    paper = row["paper"]
    rows: list[tuple[str, str, str]] = [
        ("pull requests mined", _number(row["pull_requests"]), _number(paper["pull_requests"])),
        ("queries written", _number(row["queries"]), _number(paper["queries"])),
        ("samples kept", _number(row["samples"]), _number(paper["samples"])),
        ("tokens a sample, mean", _number(row["tokens"]["mean"]), _number(paper["tokens"])),
        ("tool calls a sample, mean", _number(row["tool_calls"]["mean"], decimals=1), _number(paper["tool_calls"])),
        ("stages, most", _number(max(map(int, row["stages"]), default=None)), _number(paper["stages"])),
    ]
    say_table(("", "here", "paper"), rows)
    say()
    for finder, name in (("check", "leak check"), ("review", "reviewer")):
        count = row["query_checks"][finder]
        if any(count.values()):
            say(f"queries, by the {name}: {count['rejected']:,} rejected, {count['warned']:,} ready with a warning")
    say(f"tokens: {row['tokens']['by']}")
    if row["loss"]["turns"]:
        say(f"{loss_words(row['loss'])}, as an export masks by default:")
        say_table(("", "messages", "tokens", "share", ""), loss_rows(row["loss"]))
        say()
    disclosed = f"; {row['disclosed']:,} disclosed, counted nowhere" if row["disclosed"] else ""
    say(f"trajectories: {tally(row['outcomes']) or 'none'}{disclosed}")
    for outcome in WITHOUT_CHAIN:
        if figures := row.get(outcome):
            mean, calls = figures["tokens"]["mean"], figures["tool_calls"]["mean"]
            say(
                f"{outcome}: {counted(figures['trajectories'], 'trajectory')}, {_number(mean)} tokens and "
                f"{_number(calls, decimals=1)} tool calls a sample, counted nowhere else"
            )
            for name in ("sources", "licences", "agents"):
                say_prose(f"{name}: {tally(figures[name])}", indent=2)
            say(f"  {loss_words(figures['loss'])}")
    lengths = {f"with {length}": count for length, count in row["stages"].items()}
    say(f"samples by accepted stages: {tally(lengths) or 'none'}")
    tests = {name.replace("_", " "): count for name, count in row["hidden_tests"].items()}
    say(f"hidden tests of their stages: {tally(tests) or 'none'}")
    for entry in row["acceptance"]:
        rate = "no rate" if entry["rate"] is None else f"{entry['rate']:.0%}"
        whole = counted(entry["accepted"] + entry["rejected"], "verdict")
        scored = f"{entry['accepted']:,} of {whole}; {entry['unscored']:,} unscored"
        say(f"round {entry['round']}: {rate} accepted ({scored})")
    scores = row["scores"]
    if scores["count"]:
        spread = " ".join(f"{tenth}:{count}" for tenth, count in scores["tenths"].items() if count)
        say(f"scores: mean {scores['mean']:.2f}, median {scores['median']:.2f}; from {spread}")
    views = row["views"]
    share = (
        "none seen" if views["redundancy"] is None else f"{views['redundancy']:.1%} of {counted(views['all'], 'view')}"
    )
    say(f"file views that showed what was seen already: {share}")
    cost = row["cost"]
    each = dollars(cost["usd_per_sample"]) if row["samples"] else "-"
    say(f"cost of all rollouts: {dollars(cost['usd'])}; for each sample: {each}")
    spent = row["all_purposes"]
    each = dollars(spent["usd_per_sample"]) if row["samples"] else "-"
    amounts = (f"{name} {'unknown' if usd is None else f'{usd:,.4f}'}" for name, usd in spent["by_purpose"].items())
    purposes = ", ".join(amounts) or "no calls"
    say_prose(f"cost of all purposes: {dollars(spent['usd'])} ({purposes}); for each sample: {each}")
    for price in row["prices"]:
        days = price["first"] if price["first"] == price["last"] else f"{price['first']} to {price['last']}"
        say(f"prices from {price['from']}: {counted(price['calls'], 'call')}, {dollars(price['usd'])}, {days}")


def _number(value: float | None, *, decimals: int = 0) -> str:
    return "-" if value is None else f"{value:,.{decimals}f}"
