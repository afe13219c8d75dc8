"""The demo's results, read from its database: the funnel, and each stage's verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from environments.suites.outcomes import PASSED, TAMPERED
from prchain.core.console.terminal import counted, say_table, shortened, tally
from sql.chosen import LAST, resolved
from sql.outcomes import PROVED, READY, SELECTED
from sql.store import Store, Transaction
from sql.tables import (
    Candidate,
    ChainStage,
    Citation,
    Landing,
    PullRequest,
    Selection,
    StageTests,
    Task,
    TaskStage,
    Trajectory,
    TrajectoryMessage,
    TrajectoryStage,
    Validation,
    Verdict,
)
from trajectories.privileged import CURATED
from trajectories.rows import read_stages, read_verdicts

_WIDTH = 96


@dataclass(frozen=True, slots=True)
class Funnel:
    """Counts, from pull requests to trajectories."""

    pull_requests: int
    landed: int
    citations: int
    candidates: dict[str, int]
    """Outcome to landed pull requests."""
    chains: int
    tasks: int
    queries: int
    proved_chains: int
    proved_stages: int
    trajectories: dict[str, int]
    """Outcome to trajectories."""
    stages: dict[str, int]
    """Outcome to stages of trajectories."""
    verdicts: int
    refused: int
    """Verdicts that sent the agent's work back."""
    tampered: int
    """Of these, because the tests were tampered with."""
    turns: int

    def print(self, samples: int) -> None:
        """Print the funnel for people, one line a step."""
        chained = self.candidates.get("chained", 0) + self.candidates.get("frozen", 0)
        others = {name: count for name, count in self.candidates.items() if name not in {"chained", "frozen"}}
        proved = f"{counted(self.proved_stages, 'stage')} with tests that fail before and pass after"
        ended = f"{tally(self.trajectories)}; {counted(self.turns, 'turn')} of the agent"
        rows = [
            (self.pull_requests, "pull requests", f"of which {self.landed} landed"),
            (self.citations, "citations", "of each other that count"),
            (self.chains, "chains", f"of {chained} pull requests; {tally(others)}"),
            (self.tasks, "tasks", f"with {self.queries} queries that passed the leak check"),
            (self.proved_chains, "chains proved", proved),
            (sum(self.trajectories.values()), "trajectories", ended),
            (
                self.verdicts,
                "verdicts",
                f"on attempts at stages; {self.refused} refused the work, {self.tampered} as tampered",
            ),
            (samples, "samples", "exported"),
        ]
        say_table((), rows)


def read_funnel(store: Store) -> Funnel:
    """Count what the database holds. Raises `StoreError`."""
    with store.reading() as tx:
        stages = tx.rows(TrajectoryStage, "outcome")
        accepted = [row[0] for row in tx.rows(Verdict, "accepted")]
        # What became of a pull request, and which chains there are, is said for each strategy anew.
        built = {"strategy": resolved(tx, LAST)}
        return Funnel(
            pull_requests=len(list(tx.rows(PullRequest, "number"))),
            landed=len(list(tx.rows(Landing, "number"))),
            citations=len(list(tx.rows(Citation, "counted", counted=True))),
            candidates=dict(sorted(Counter(row[0] for row in tx.rows(Candidate, "outcome", **built)).items())),
            chains=len(list(tx.rows(Selection, "chain_id", outcome=SELECTED, **built))),
            tasks=len(list(tx.rows(Task, "chain_id", outcome=READY))),
            queries=len(list(tx.rows(TaskStage, "position", outcome=READY))),
            proved_chains=len(list(tx.rows(Validation, "chain_id", outcome=PROVED))),
            proved_stages=len(list(tx.rows(StageTests, "position", outcome=PROVED))),
            trajectories=dict(sorted(Counter(row[0] for row in tx.rows(Trajectory, "outcome")).items())),
            stages=dict(sorted(Counter(row[0] for row in stages).items())),
            verdicts=len(accepted),
            refused=sum(verdict is False or verdict == 0 for verdict in accepted if verdict is not None),
            tampered=len(list(tx.rows(Verdict, "position", tests=TAMPERED))),
            turns=len(list(tx.rows(TrajectoryMessage, "ordinal", kind="turn"))),
        )


def stories(store: Store) -> Iterator[str]:
    """Lines on each trajectory, stage by stage and verdict by verdict. Raises `StoreError`."""
    with store.reading() as tx:
        trajectories = []
        columns = ("id", "chain_id", "outcome", "sample", "scaffold", "options")
        for trajectory_id, chain_id, outcome, sample, scaffold, options in tx.rows(Trajectory, *columns):
            numbers = {row[0]: row[1] for row in tx.rows(ChainStage, "position", "number", chain_id=chain_id)}
            chain = [numbers[position] for position in sorted(numbers)]
            trajectories.append((chain, _kind(scaffold, options), sample, str(trajectory_id), outcome))
        for chain, kind, sample, trajectory_id, outcome in sorted(trajectories):
            chain_words = " > ".join(f"#{number}" for number in chain)
            words = (f" ({kind})" if kind else "") + (f" (sample {sample})" if sample else "")
            yield f"{chain_words}, trajectory {trajectory_id}{words}: {outcome}"
            yield from _stages(tx, trajectory_id, dict(enumerate(chain, 1)))


def _kind(scaffold: str, options: Mapping[str, Any]) -> str:
    """What distinguishes a trajectory from a plain rollout; empty for one of these."""
    if scaffold == CURATED:
        return "curated"
    if options.get("tools") != "bash":
        return ""
    return "bash alone, guided" if options.get("observers") else "bash alone"


def _stages(tx: Transaction, trajectory_id: str, numbers: dict[int, int]) -> Iterator[str]:
    verdicts = read_verdicts(tx, trajectory_id)
    outcomes = {stage.position: stage.outcome for stage in read_stages(tx, trajectory_id)}
    for position, number in sorted(numbers.items()):
        rounds = [verdict for verdict in verdicts if verdict.position == position]
        for it in rounds:
            decision = "accepted" if it.accepted else "no verdict" if it.accepted is None else "sent back"
            if not it.accepted and it.attempt == len(rounds):
                decision = outcomes.get(position, decision)
            words = _verdict_words(it.score, it.tests)
            yield f"  stage {position} (#{number}), attempt {it.attempt}: {decision}; {words}"
            if not it.accepted and it.comment:
                yield f"      judge: {shortened(it.comment, _WIDTH)}"
        if not rounds:
            yield f"  stage {position} (#{number}): {outcomes.get(position, 'not_reached')}"


def _verdict_words(score: float | None, tests: str | None) -> str:
    judge_words = "the judge gave no score" if score is None else f"the judge gives {score:g}"
    test_words = (
        "no tests ran" if tests is None else "the hidden tests pass" if tests == PASSED else "hidden tests fail"
    )
    return f"{judge_words}, {test_words}"
