"""The result of a run over tasks, and how it is printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from chains.tasks.model import FINAL, SKIPPED
from prchain.core.console.terminal import counted, say, tally
from prchain.core.endings import cause_of, say_causes, say_end
from prchain.core.errors import BudgetExceeded
from prchain.core.leaks.finding import Finder
from prchain.core.llm.ledger import Spending
from prchain.core.runs import RunResult, UnitResult
from sql.outcomes import READY

_BUDGET = BudgetExceeded("").name


@dataclass(frozen=True, slots=True)
class TaskRunReport(RunResult[Any]):
    """The result of a run; its units are chains."""

    before: Mapping[str, int] = field(default_factory=dict)
    """Outcome to number of tasks of these chains that existed before."""
    outdated: int = 0
    """How many of them other prompts or another model wrote."""
    refused: Mapping[Finder, int] = field(default_factory=dict)
    """How many texts the leak check and the reviewer refused in this run, each."""
    unlabelled: int = 0
    """How many chains ``--labels`` leaves out."""

    @property
    def standing(self) -> int:
        """Tasks of these chains that existed before."""
        return sum(self.before.values())

    @property
    def ready(self) -> int:
        """Tasks of these chains that are ready, now or before."""
        return self.counts.get(READY, 0) + self.before.get(READY, 0)

    @property
    def done(self) -> bool:
        """Whether every chain that is still chosen has a task with a final outcome."""
        return not self.left and not self.failed

    @property
    def failed(self) -> tuple[UnitResult[Any], ...]:
        """The tasks that the next run will try again."""
        return tuple(result for result in self.results if result.outcome not in FINAL | SKIPPED)

    def reasons(self, outcome: str) -> list[tuple[str, int]]:
        """(reason, count) of the tasks with this outcome, without where it occurred; most common first."""
        causes = (cause_of(result.reason) for result in self.results if result.outcome == outcome)
        return Counter(cause or "no reason given" for cause in causes).most_common()


def outcome_words(counts: Mapping[str, int]) -> str:
    """Counts by outcome, ready ones first: ``1 ready, 14 query_rejected``."""
    return tally(dict(sorted(counts.items(), key=lambda item: (item[0] != READY, item[0]))))


def refused_words(counts: Mapping[Finder, int]) -> str:
    """What each half refused: ``3 by the leak check, 1 by the reviewer``."""
    return f"{counts.get('check', 0):,} by the leak check, {counts.get('review', 0):,} by the reviewer"


def run_row(report: TaskRunReport, spending: Spending) -> dict[str, Any]:
    """A run for machines."""
    return {
        "worked_on": len(report.results),
        "outcomes": report.counts,
        "reasons": {
            name: [{"reason": reason, "tasks": count} for reason, count in report.reasons(name)]
            for name in sorted(report.counts)
            if name != READY
        },
        "stood_before": report.standing,
        "stood_before_as": dict(report.before),
        "outdated": report.outdated,
        "unlabelled": report.unlabelled,
        "refused_texts": {finder: report.refused.get(finder, 0) for finder in get_args(Finder)},
        "left": report.left,
        "stopped": report.stopped,
        "calls": spending.calls,
        "refused": spending.refused,
        "usd": spending.cost,
    }


def print_run(report: TaskRunReport, spending: Spending) -> None:
    """Print a run: counts, reasons, the tasks that existed before, and what to do next."""
    words = ", ".join(filter(None, (outcome_words(report.counts), tally({"not begun": report.left}))))
    before = f" ({outcome_words(report.before)})" if report.before else ""
    say(f"{words or 'nothing new to do'}; {report.standing:,} done before{before}; {spending.words()}")
    ended = [result for result in report.results if result.outcome not in {READY, _BUDGET}]
    say_causes(ended, rest="`prchain tasks list` and `prchain tasks show ID` say which")
    if report.refused:
        say(f"texts written again or rejected: {refused_words(report.refused)}")
    _print_given_up(report)
    if report.outdated:
        outdated = f"{counted(report.outdated, 'task')} that stood: written with other prompts or by another model"
        say(f"{outdated}; --renew writes such anew, and `--renew --dry-run` says for how much")
    say_end("task", report.failed, report.left, report.stopped, told=ended)


def _print_given_up(report: TaskRunReport) -> None:
    """Print how many tasks another run would not touch, and how to begin another round."""
    counts = Counter(report.before) + Counter(report.counts)
    given_up = sum(count for name, count in counts.items() if name in FINAL and name != READY)
    if given_up:
        summary = f"{counted(given_up, 'task')} rejected or given up"
        say(f"{summary}: `prchain tasks show ID` says why, `prchain tasks build --retry` begins another round")
