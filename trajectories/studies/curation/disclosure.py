"""Whether an agent that is told more of its stage's process graph resolves it more often (P2T, appendix C): what the
rollouts of each bundle come to."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from environments.suites.outcomes import PASSED
from prchain.core.console.terminal import counted, say, say_prose, say_table
from sql.store import Transaction
from trajectories.curation.graphs.svg import bars_svg
from trajectories.outcomes import ACCEPTED, ACCEPTED_PREFIX, FINAL, OF_THE_AGENT, REJECTED, TOO_SHORT
from trajectories.rows import read_trajectory, read_verdicts
from trajectories.studies.curation.bundles import WORDS, Bundle
from trajectories.studies.curation.study_files import Study

PAPER: Mapping[Bundle, str] = {
    Bundle.B0: "29% (35%)",
    Bundle.B1: "65% (61%)",
    Bundle.B2: "84% (89%)",
    Bundle.B3: "+2 (+1)",
    Bundle.B4: "94% (97%)",
}
"""P2T, appendix C: resolved by each of two models; its last bundle has a validation, too."""

_GRADED = OF_THE_AGENT | {ACCEPTED, ACCEPTED_PREFIX, TOO_SHORT, REJECTED}
"""Others say nothing of the agent: its work could not be graded."""

_WIDTH = 80


@dataclass(frozen=True, slots=True)
class DisclosedRollout:
    """A rollout of one bundle and chain that has ended. `resolved` None: what it did could not be graded."""

    chain_id: str
    bundle: Bundle
    graph: str
    trajectory: str
    outcome: str
    resolved: bool | None
    steps: int
    tokens_in: int
    tokens_out: int
    usd: float | None


def disclosed_rollout(
    tx: Transaction, chain_id: str, bundle: Bundle, graph: str, trajectory: str
) -> DisclosedRollout | None:
    """What is stored of a rollout; None where it has not ended."""
    row = read_trajectory(tx, trajectory)
    if row is None or row.outcome not in FINAL:
        return None
    tests = [verdict.tests for verdict in read_verdicts(tx, trajectory) if verdict.position == 1]
    resolved = PASSED in tests if row.outcome in _GRADED else None
    spent = (row.steps, row.tokens_in, row.tokens_out, row.usd)
    return DisclosedRollout(chain_id, bundle, graph, trajectory, row.outcome, resolved, *spent)


def disclosure_study(rollouts: Sequence[DisclosedRollout]) -> dict[str, Any]:
    """One row a bundle. ``chains`` are those whose rollout was graded, ``resolved`` of these; steps, tokens and USD are
    of all rollouts."""
    return {"bundles": {str(bundle): _row([it for it in rollouts if it.bundle is bundle]) for bundle in Bundle}}


def _row(rollouts: Sequence[DisclosedRollout]) -> dict[str, Any]:
    graded = [rollout.resolved for rollout in rollouts if rollout.resolved is not None]
    usd = [rollout.usd for rollout in rollouts]
    return {
        "rollouts": len(rollouts),
        "chains": len(graded),
        "ungraded": len(rollouts) - len(graded),
        "resolved": sum(graded),
        "rate": sum(graded) / len(graded) if graded else None,
        "steps": sum(rollout.steps for rollout in rollouts),
        "tokens_in": sum(rollout.tokens_in for rollout in rollouts),
        "tokens_out": sum(rollout.tokens_out for rollout in rollouts),
        "usd": None if None in usd else sum(cost or 0.0 for cost in usd),
    }


def disclosure_rows(rollouts: Sequence[DisclosedRollout]) -> str:
    """CSV: one row a rollout."""
    text = io.StringIO()
    columns = tuple(DisclosedRollout.__dataclass_fields__)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([getattr(rollout, name) for name in columns] for rollout in rollouts)
    return text.getvalue()


def disclosure_drawings(study: Mapping[str, Any]) -> dict[str, str]:
    """Name of each figure to its SVG."""
    bundles = {name: row for name, row in study["bundles"].items() if row["chains"]}
    rates = {f"{name} {WORDS[Bundle(name)]}": 100 * row["rate"] for name, row in bundles.items()}
    words = [f"{100 * row['rate']:.0f} % of {row['chains']:,}" for row in bundles.values()]
    return {"bundles": bars_svg("Resolved, by what the agent is told", rates, words)}


def study_disclosure(rollouts: Sequence[DisclosedRollout]) -> Study:
    """The study `disclosure`, of rollouts that have ended."""
    ordered = sorted(rollouts, key=lambda it: (it.chain_id, it.bundle))
    row = disclosure_study(ordered)
    return Study(row, disclosure_rows(ordered), disclosure_drawings(row), print_disclosure)


def print_disclosure(study: Mapping[str, Any]) -> None:
    """Print the study as a table of at most 80 columns."""
    rows = [
        (
            f"{name} {WORDS[Bundle(name)]}",
            row["chains"],
            row["resolved"],
            "" if row["rate"] is None else f"{100 * row['rate']:.1f}%",
            row["steps"],
            row["tokens_in"] + row["tokens_out"],
            "?" if row["usd"] is None else f"{row['usd']:,.2f}",
            PAPER[Bundle(name)],
        )
        for name, row in study["bundles"].items()
        if row["rollouts"]
    ]
    if not rows:
        say_prose("No rollout has ended.", width=_WIDTH)
        return
    say_table(("bundle", "chains", "resolved", "rate", "steps", "tokens", "USD", "the paper"), rows)
    ungraded = sum(row["ungraded"] for row in study["bundles"].values())
    if ungraded:
        say(f"{counted(ungraded, 'rollout')} could not be graded")
    if len({row["chains"] for row in study["bundles"].values() if row["rollouts"]}) > 1:
        say("the bundles have different numbers of chains; compare rates with care")
