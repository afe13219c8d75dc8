"""What a grade costs beside a plain run of the same tests: wall time on references of proved stages.

    python -m research.grades.cost --db FILE [--chain ID] [--rounds N] [--timeout SECONDS] [--out CSV]

The database is that of `research.grades`. A plain run places M_t in a sandbox of its own and runs the stage's files
there once, without canaries or duels; a grade is the first one that work gets. Each round does both, in turns.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import click

from environments.duelling import GradingSuite
from environments.suites.testruns import TestRun
from prchain.core.console.terminal import counted, say, say_table
from prchain.core.errors import PrchainError
from prchain.core.settings import Settings
from research.grades.stages import ProvedStage, proved_stages
from research.rows import write_rows


@dataclass(frozen=True, slots=True)
class CostRow:
    """One stage: medians over the rounds, in seconds; `tests` are the seconds that tests ran of a plain run, and
    `safeguard` is what guards its grades."""

    repository: str
    chain: str
    position: int
    safeguard: str
    tests: float
    plain: float
    grade: float
    cheats: int

    @property
    def ratio(self) -> float:
        """A grade's time in plain runs."""
        return self.grade / self.plain


@click.command()
@click.option("--db", help="The database.")
@click.option("--chain", "only", default="", help="Of one chain, by the beginning of its id.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each kind a stage.")
@click.option("--timeout", type=click.FloatRange(min=1), default=900, show_default=True, help="Seconds of one run.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write a row for each stage.")
def main(db: str | None, only: str, rounds: int, timeout: float, out: Path | None) -> None:
    """Time grades and plain runs of references."""
    rows: list[CostRow] = []
    try:
        for row in _timed(Settings.load(db=db), only, rounds, timeout):
            say(f"{row.repository} {row.chain[:6]}.{row.position}: plain {row.plain:.1f} s, grade {row.grade:.1f} s")
            rows.append(row)
    except PrchainError as error:
        raise click.ClickException(str(error)) from None
    write_rows(out, rows)
    table = [(f"{it.repository} {it.chain[:6]}.{it.position}", it.safeguard, *_figures(it)) for it in rows]
    say_table(("stage", "safeguard", "tests s", "plain s", "grade s", "ratio"), table)
    if rows:
        all_in_all = sum(it.grade for it in rows) / sum(it.plain for it in rows)
        say(f"ratio: median {median(it.ratio for it in rows):.2f}, of the sums {all_in_all:.2f}")
        for name in sorted({it.safeguard for it in rows}):
            ratios = [it.ratio for it in rows if it.safeguard == name]
            say(f"{name}: median {median(ratios):.2f} of {counted(len(ratios), 'stage')}")


def _figures(row: CostRow) -> list[str]:
    return [f"{row.tests:.1f}", f"{row.plain:.1f}", f"{row.grade:.1f}", f"{row.ratio:.2f}"]


def _timed(settings: Settings, only: str, rounds: int, timeout: float) -> Iterator[CostRow]:
    for proved in proved_stages(settings, only, timeout):
        suite = proved.suite
        plain = suite.baseline.with_canaries(())
        expected = {*proved.proof.classes.f2p, *proved.proof.classes.p2p}
        plains, grades = [], []
        for _ in range(rounds):
            plains.append(_run(partial(suite.workplace.tests, suite.landed, suite.files, baseline=plain)))
            grades.append(_run(partial(GradingSuite(suite).run, suite.landed, expected)))
        yield _row(proved, plains, grades)


def _row(proved: ProvedStage, plains: list[tuple[float, TestRun]], grades: list[tuple[float, TestRun]]) -> CostRow:
    return CostRow(
        proved.repository,
        proved.chain,
        proved.stage.position,
        str(proved.suite.baseline.safeguard),
        median(run.seconds for _, run in plains),
        median(seconds for seconds, _ in plains),
        median(seconds for seconds, _ in grades),
        sum(bool(run.cheats) for _, run in grades),
    )


def _run(run: Callable[[], TestRun]) -> tuple[float, TestRun]:
    start = time.monotonic()
    found = run()
    return time.monotonic() - start, found


if __name__ == "__main__":
    main()
