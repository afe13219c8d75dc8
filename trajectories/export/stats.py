"""What the rollouts of a database come to, beside what the paper reports of its own.

The paper is daVinci-Agency: 239 samples of 84.82 thousand tokens and 116 tool calls on average, chains of at most five
pull requests (sections 1 and 6.3), from 1,762 queries and 61,810 pull requests of nine repositories (table 4).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import case, exists, func, select
from sqlalchemy.orm import aliased

from prchain.terminal import dollars, say, say_table, tally
from sql.outcomes import READY
from sql.store import Transaction
from sql.tables import PullRequest, TaskStage, Trajectory, TrajectoryMessage, Verdict
from trajectories.export.distribution import Distribution
from trajectories.export.tokens import BYTES_A_TOKEN, OVERHEAD
from trajectories.model import EntryKind
from trajectories.outcomes import ACCEPTED, ACCEPTED_PREFIX, KEPT
from trajectories.sums import hidden_tests

PAPER: Mapping[str, float] = {
    "pull_requests": 61_810,
    "queries": 1_762,
    "samples": 239,
    "tokens": 84_820,
    "tool_calls": 116,
    "stages": 5,
}
"""What the paper says; ``stages`` is the most, the others but the counts are means."""


@dataclass(slots=True)
class FileViews:
    """File views of one trajectory, and which of them showed nothing but what had been shown before.

    Lines of a file count as shown while its content is the same; what a folder holds, while no file has changed.
    """

    views: int = 0
    redundant: int = 0
    _lines: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)
    _others: set[str] = field(default_factory=set)

    def step(self, view: Mapping[str, Any] | None, *, changed: bool) -> None:
        """The view of one observation (``details.view``), and whether the tree was another one after it."""
        if view is not None:
            self.views += 1
            self.redundant += self._seen(view)
        if changed:
            self._others.clear()

    def _seen(self, view: Mapping[str, Any]) -> bool:
        if "content" in view:
            ranges = self._lines.setdefault((str(view["path"]), str(view["content"])), [])
            first, last = int(view["first"]), int(view["last"])
            seen = any(start <= first and last <= end for start, end in ranges)
            ranges.append((first, last))
            return seen
        key = json.dumps(view, sort_keys=True)
        seen = key in self._others
        self._others.add(key)
        return seen


def stats(tx: Transaction) -> dict[str, Any]:
    """The figures: of kept trajectories where nothing else is said. Raises `StoreError`.

    Tokens are estimated by characters, `BYTES_A_TOKEN` a token. A rate or mean of nothing is None.
    """
    outcomes = _counts(tx, Trajectory.outcome)
    kept = sum(outcomes.get(name, 0) for name in KEPT)
    tokens, calls = _sizes(tx)
    views = _views(tx)
    usd = [cost for (cost,) in tx.rows(Trajectory, "usd")]
    total = None if any(cost is None for cost in usd) else sum(usd)
    return {
        "pull_requests": tx.count(PullRequest),
        "queries": tx.count(TaskStage, outcome=READY),
        "trajectories": sum(outcomes.values()),
        "outcomes": outcomes,
        "samples": kept,
        "tokens": tokens.figures() | {"by": f"estimate, {BYTES_A_TOKEN} characters a token"},
        "tool_calls": calls.figures(),
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
        "paper": dict(PAPER),
    }


def _counts(tx: Transaction, column: Any) -> dict[str, int]:
    query = select(column, func.count()).group_by(column).order_by(column)
    return {str(name): int(count) for name, count in tx.connection.execute(query)}


def _kept_messages(*columns: Any) -> Any:
    """Messages of kept trajectories, of their accepted stages only."""
    return (
        select(*columns)
        .join(Trajectory, Trajectory.id == TrajectoryMessage.trajectory_id)
        .where(Trajectory.outcome.in_(sorted(KEPT)), TrajectoryMessage.position <= Trajectory.accepted)
    )


def _sizes(tx: Transaction) -> tuple[Distribution, Distribution]:
    """Tokens and tool calls of every kept trajectory."""
    row = TrajectoryMessage
    characters = func.length(row.content) + func.coalesce(func.length(row.reasoning), 0) + func.length(row.tool_calls)
    # A quote followed by a colon ends a key, wherever it stands: texts hold no unescaped quotes, and end before a comma
    # or a brace. So it counts the calls of a message.
    key = '"arguments":'
    called = (func.length(row.tool_calls) - func.length(func.replace(row.tool_calls, key, ""))) / len(key)
    query = _kept_messages(
        func.sum(characters), func.count(), func.sum(case((row.role == "assistant", called), else_=0))
    ).group_by(row.trajectory_id)
    tokens, calls = Distribution(), Distribution()
    for size, messages, count in tx.connection.execute(query):
        tokens.add(int(size) // BYTES_A_TOKEN + OVERHEAD * int(messages))
        calls.add(int(count))
    return tokens, calls


def _views(tx: Transaction) -> FileViews:
    """All kept trajectories' views, each trajectory for itself."""
    row = TrajectoryMessage
    query = (
        _kept_messages(row.trajectory_id, row.details, row.tree)
        .where(row.kind == str(EntryKind.OBSERVATION))
        .order_by(row.trajectory_id, row.ordinal)
    )
    total, current, last = FileViews(), FileViews(), None
    for trajectory, details, tree in tx.connection.execute(query, execution_options={"yield_per": 10_000}):
        if trajectory != last:
            total.views, total.redundant = total.views + current.views, total.redundant + current.redundant
            current, last = FileViews(), trajectory
        view = json.loads(details).get("view") if '"view"' in details else None
        current.step(view, changed=tree is not None)
    total.views, total.redundant = total.views + current.views, total.redundant + current.redundant
    return total


def _stages(tx: Transaction) -> dict[str, int]:
    """How many kept trajectories have how many accepted stages."""
    query = (
        select(Trajectory.accepted, func.count())
        .where(Trajectory.outcome.in_([ACCEPTED, ACCEPTED_PREFIX]))
        .group_by(Trajectory.accepted)
        .order_by(Trajectory.accepted)
    )
    return {str(length): int(count) for length, count in tx.connection.execute(query)}


def _own() -> Any:
    """Of verdicts: that it is no copy of the parent's (`trajectories.rollouts.branch`), which says the same moment."""
    original = aliased(Verdict)
    same = [getattr(original, name) == getattr(Verdict, name) for name in ("position", "attempt", "tree", "at")]
    parents = (Trajectory.id == Verdict.trajectory_id, Trajectory.parent_id == original.trajectory_id)
    return ~exists().where(*parents, *same).correlate(Verdict)


def _acceptance(tx: Transaction) -> list[dict[str, Any]]:
    """By round: how many attempts had a verdict, and what it was; of all trajectories."""
    counts: dict[int, Counter[str]] = {}
    query = (
        select(Verdict.attempt, Verdict.accepted, func.count())
        .where(_own())
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
    """The judge's scores of all attempts: their figures, and how many lie in each tenth (1.0 is in the last)."""
    query = select(Verdict.score).where(Verdict.score.is_not(None), _own())
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
    pairs: list[tuple[str, float | None, float | None]] = [
        ("pull requests mined", row["pull_requests"], paper["pull_requests"]),
        ("queries written", row["queries"], paper["queries"]),
        ("samples kept", row["samples"], paper["samples"]),
        ("tokens a sample, mean", row["tokens"]["mean"], paper["tokens"]),
        ("tool calls a sample, mean", row["tool_calls"]["mean"], paper["tool_calls"]),
        ("stages, most", max(map(int, row["stages"]), default=None), paper["stages"]),
    ]
    say_table(("", "here", "paper"), [(name, _number(ours), _number(theirs)) for name, ours, theirs in pairs])
    say()
    say(f"tokens: {row['tokens']['by']}")
    say(f"trajectories: {tally(row['outcomes']) or 'none'}")
    lengths = {f"with {length}": count for length, count in row["stages"].items()}
    say(f"samples by accepted stages: {tally(lengths) or 'none'}")
    tests = {name.replace("_", " "): count for name, count in row["hidden_tests"].items()}
    say(f"hidden tests of their stages: {tally(tests) or 'none'}")
    for turn in row["acceptance"]:
        rate = "no rate" if turn["rate"] is None else f"{turn['rate']:.0%}"
        scored = f"{turn['accepted']:,} of {turn['accepted'] + turn['rejected']:,}; {turn['unscored']:,} unscored"
        say(f"round {turn['round']}: {rate} accepted ({scored})")
    scores = row["scores"]
    if scores["count"]:
        spread = " ".join(f"{tenth}:{count}" for tenth, count in scores["tenths"].items() if count)
        say(f"scores: mean {scores['mean']:.2f}, median {scores['median']:.2f}; from {spread}")
    views = row["views"]
    share = "none seen" if views["redundancy"] is None else f"{views['redundancy']:.1%} of {views['all']:,}"
    say(f"file views that showed what was seen already: {share}")
    cost = row["cost"]
    say(f"cost of all rollouts: {dollars(cost['usd'])}; for each sample: {dollars(cost['usd_per_sample'])}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"
