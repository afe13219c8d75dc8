"""Grade trees of proved stages: the reference, honest failures of it, and cheats on the stage's base.

    python -m research.grades --db FILE [--chain ID] [--kinds LIST] [--most N] [--timeout SECONDS] [--out CSV]
    python -m research.grades --db FILE --works FOLDER [--again N]

The database holds chains that `prchain environments validate` has proved with the present rules; tests run in its
backend. Prints the counts; exit code 1 where a cheat was accepted, honest work was called tampered, or a reference was
not accepted. Works are trees that somebody wrote (`research.grades.trees.works_of` says where they stand); what the
audit suspects in their patches stands beside what the tests say.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from environments.duelling import GradingSuite
from environments.graded_runs import graded_run
from environments.suites.outcomes import PASSED, StateCheck, grade
from prchain.core.console.terminal import say, say_table
from prchain.core.errors import PrchainError
from prchain.core.settings import Settings
from research.grades.stages import ProvedStage, proved_stages
from research.grades.trees import GradedTree, trees_of, works_of
from research.rows import write_rows
from trajectories.audit.suspected import suspicions_of_trees


@dataclass(frozen=True, slots=True)
class GradedRow:
    """One graded tree."""

    repository: str
    chain: str
    position: int
    kind: str
    name: str
    outcome: str
    cheats: str
    taken_back: int
    seconds: float
    suspected: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether it should not be so."""
        if self.kind == "cheat":
            return self.outcome == "passed"
        return self.outcome == "tampered" or (self.kind == "reference" and self.outcome != "passed")


@click.command()
@click.option("--db", help="The database.")
@click.option("--chain", "only", default="", help="Of one chain, by the beginning of its id.")
@click.option("--kinds", default="reference,honest,cheat", help="Which trees, with commas between.")
@click.option("--most", type=click.IntRange(min=1), help="At most N honest failures of a stage, others in each stage.")
@click.option(
    "--works",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Grade the works of this folder instead.",
)
@click.option("--again", type=click.IntRange(min=1), default=1, show_default=True, help="Grade each tree N times.")
@click.option("--timeout", type=click.FloatRange(min=1), default=900, show_default=True, help="Seconds of one run.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write a row for each tree.")
def main(
    db: str | None,
    only: str,
    kinds: str,
    most: int | None,
    works: Path | None,
    again: int,
    timeout: float,
    out: Path | None,
) -> None:
    """Grade references, honest failures and cheats of proved stages, or works that stand in a folder."""
    try:
        stages = proved_stages(Settings.load(db=db), only, timeout)
        graded = _graded(stages, {*kinds.split(",")}, most) if works is None else _works(stages, works)
        rows = [_row(it, tree) for it, tree in graded for _ in range(again)]
    except PrchainError as error:
        raise click.ClickException(str(error)) from None
    if not rows:
        raise click.ClickException("there is no tree to grade: no stage with that chain is proved, or has works")
    write_rows(out, rows)
    counted = Counter((row.repository, row.kind, row.outcome) for row in rows)
    say_table(("repository", "kind", "outcome", "trees"), [(*key, trees) for key, trees in sorted(counted.items())])
    for row in rows:
        if row.is_wrong:
            say(f"wrong: {row.repository} {row.chain[:6]} stage {row.position}, {row.name}: {row.outcome} {row.cheats}")
    if any(row.is_wrong for row in rows):
        sys.exit(1)


def _graded(
    stages: Iterable[ProvedStage], kinds: set[str], most: int | None
) -> Iterator[tuple[ProvedStage, GradedTree]]:
    for number, it in enumerate(stages):
        for tree in chosen([*trees_of(it.suite, it.sources)], kinds, most, number):
            yield it, tree


def _works(stages: Iterable[ProvedStage], folder: Path) -> Iterator[tuple[ProvedStage, GradedTree]]:
    for it in stages:
        for tree in works_of(it.suite, folder, it.chain, it.stage.position):
            yield it, tree


def chosen(trees: Sequence[GradedTree], kinds: set[str], most: int | None, number: int) -> Iterator[GradedTree]:
    """Of the trees of the stage with this number those of these kinds, and of the honest failures at most so many: from
    stage to stage the next ones, so that all stages together have every kind."""
    honest = [tree for tree in trees if tree.kind == "honest"]
    start = number * (most or 0) % max(len(honest), 1)
    kept = {tree.name for tree in (honest[start:] + honest[:start])[:most]}
    return (tree for tree in trees if tree.kind in kinds and (tree.kind != "honest" or tree.name in kept))


def _row(proved: ProvedStage, tree: GradedTree) -> GradedRow:
    start = time.monotonic()
    suite, classes = GradingSuite(proved.suite), proved.proof.classes
    run = graded_run(suite, tree.tree, {*classes.f2p, *classes.p2p})
    found = grade(classes, StateCheck(), run.statuses, cheats=run.cheats, taken_back=run.taken_back)
    seconds = round(time.monotonic() - start, 2)
    trees = proved.suite.workplace.trees
    suspected = suspicions_of_trees(trees, trees.tree_of(proved.suite.base), tree.tree) if tree.is_work else []
    row = GradedRow(
        proved.repository,
        proved.chain,
        proved.stage.position,
        tree.kind,
        tree.name,
        found.outcome if run.usable or found.outcome == PASSED else "not usable",
        " | ".join(run.cheats),
        len(run.taken_back),
        seconds,
        " | ".join(map(str, suspected)),
    )
    said = " ".join(filter(None, (row.outcome, row.cheats, row.suspected and f"suspected: {row.suspected}")))
    say(f"{row.repository} {row.chain[:6]}.{row.position} {tree.kind}: {tree.name}: {said[:200]}")
    return row


if __name__ == "__main__":
    main()
