"""The page of a proof: the tests of each stage over its runs, and what the runs printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from environments.proofs.proof_report import ProofReport, StageReport, proof_report
from environments.proofs.proof_rows import StoredRun, read_runs
from environments.proofs.reference_runs import AFTER, BEFORE
from prchain.view.options import ViewOptions
from prchain.view.texts import cut
from sql.store import Store
from sql.strength import strength_words

_MOST_TESTS = 400
"""Rows of one stage's matrix."""
_TAIL = 12_000
"""Characters of a log."""

_ORDER = ("f2p", "broken", "flaky", "timed_out", "missing", "failing", "collected", "skipped", "inline", "p2p")
"""Classes as the matrix shows them: what proves or speaks against it first."""
CLASSES: Mapping[str, str] = {
    "f2p": "F2P",
    "p2p": "P2P",
    "flaky": "flaky",
    "timed_out": "timed out",
    "collected": "collected only",
    "missing": "missing after",
    "broken": "broken",
    "skipped": "skipped",
    "failing": "failing",
    "inline": "inline",
}


@dataclass(frozen=True, slots=True)
class TestLine:
    """A test in the matrix: its class, and how it ended in each run."""

    test: str
    kind: str
    hidden: bool
    """Whether an import alone hid it."""
    statuses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunLog:
    """The end of what one run printed."""

    name: str
    seconds: float
    ending: str
    tail: str
    decisive: bool
    """Whether it tells why the stage failed."""


@dataclass(frozen=True, slots=True)
class ProofStageView:
    """A stage of a proof."""

    report: StageReport
    worth: str
    runs: tuple[str, ...]
    tests: tuple[TestLine, ...]
    left_out: int
    counts: tuple[tuple[str, str, int], ...]
    """Key, name and size of each class that has tests."""
    logs: tuple[RunLog, ...]


@dataclass(frozen=True, slots=True)
class ProofView:
    """The page of a proof."""

    report: ProofReport
    stages: tuple[ProofStageView, ...]


def proof_view(store: Store, chain_id: str, options: ViewOptions) -> ProofView:
    """Everything that the page of a proof shows. Raises `UsageError` for a chain that was not validated."""
    report = proof_report(store, chain_id, tests=True)
    with store.reading() as tx:
        runs = [run for run in read_runs(tx, report.chain_id) if run.side in (BEFORE, AFTER)]
    runs.sort(key=lambda run: (run.side != BEFORE, run.ordinal))
    stages = tuple(
        _stage(stage, [run for run in runs if run.position == stage.position], options) for stage in report.stages
    )
    return ProofView(replace(report, stages=()), stages)


def all_tests(store: Store, chain_id: str) -> str:
    """The tests of all stages with their classes, as text."""
    found: list[str] = []
    for stage in proof_report(store, chain_id, tests=True).stages:
        for kind in _ORDER:
            found.extend(f"stage {stage.position}\t{CLASSES[kind]}\t{test}" for test in (stage.tests or {})[kind])
    return "\n".join([*found, ""])


def _stage(report: StageReport, runs: Sequence[StoredRun], options: ViewOptions) -> ProofStageView:
    tests = report.tests or {}
    names = [(kind, test) for kind in _ORDER for test in tests.get(kind, ())]
    hidden = frozenset(report.hidden or ())
    lines = tuple(
        TestLine(test, kind, test in hidden, tuple(str(run.run.statuses.get(test, "")) for run in runs))
        for kind, test in names[:_MOST_TESTS]
    )
    counts = tuple((kind, CLASSES[kind], len(tests.get(kind, ()))) for kind in _ORDER if tests.get(kind))
    worth = strength_words(report.strength) if report.strength else ""
    headings = tuple(f"{run.side} {run.ordinal}" for run in runs)
    if not options.reference:
        report = replace(report, last_lines=())
    slim = replace(report, tests=None, hidden=None)
    return ProofStageView(slim, worth, headings, lines, len(names) - len(lines), counts, _logs(report, runs, options))


def _logs(report: StageReport, runs: Sequence[StoredRun], options: ViewOptions) -> tuple[RunLog, ...]:
    """The logs, the one that tells why the stage failed on top."""
    if not options.reference:
        return ()
    last = report.last_lines
    found = []
    for stored in runs:
        run = stored.run
        ending = run.infra or ("out of time" if run.timed_out else "" if run.complete else "broke off")
        code = "" if run.exit_code is None else f"exit {run.exit_code}"
        decisive = bool(last) and tuple(line for line in run.tail.splitlines() if line.strip())[-len(last) :] == last
        words = ", ".join(filter(None, (code, ending)))
        found.append(RunLog(f"{stored.side} {stored.ordinal}", run.seconds, words, cut(run.tail, _TAIL)[0], decisive))
    return tuple(sorted(found, key=lambda log: not log.decisive))
