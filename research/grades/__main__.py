"""Grade trees of proved stages: the reference, honest failures of it, and cheats on the stage's base.

    python -m research.grades --db FILE [--chain ID] [--kinds LIST] [--most N] [--timeout SECONDS] [--out CSV]

The database holds chains that `prchain environments validate` has proved with the present rules; tests run in its
backend. Prints the counts; exit code 1 where a cheat was accepted, honest work was called tampered, or a reference was
not accepted.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from environments.duelling import GradingSuite
from environments.suites.outcomes import StateCheck, grade
from prchain.core.console.terminal import say, say_table
from prchain.core.errors import PrchainError, RefreshFailed
from prchain.core.settings import Settings
from research.grades.stages import ProvedStage, proved_stages
from research.grades.trees import GradedTree, trees_of
from research.rows import write_rows


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
@click.option("--timeout", type=click.FloatRange(min=1), default=900, show_default=True, help="Seconds of one run.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write a row for each tree.")
def main(db: str | None, only: str, kinds: str, most: int | None, timeout: float, out: Path | None) -> None:
    """Grade references, honest failures and cheats of proved stages."""
    try:
        rows = list(_graded(Settings.load(db=db), only, set(kinds.split(",")), most, timeout))
    except PrchainError as error:
        raise click.ClickException(str(error)) from None
    write_rows(out, rows)
    counted = Counter((row.repository, row.kind, row.outcome) for row in rows)
    say_table(("repository", "kind", "outcome", "trees"), [(*key, trees) for key, trees in sorted(counted.items())])
    for row in rows:
        if row.is_wrong:
            say(f"wrong: {row.repository} {row.chain[:6]} stage {row.position}, {row.name}: {row.outcome} {row.cheats}")
    if any(row.is_wrong for row in rows):
        sys.exit(1)


def _graded(settings: Settings, only: str, kinds: set[str], most: int | None, timeout: float) -> Iterator[GradedRow]:
    for number, it in enumerate(proved_stages(settings, only, timeout)):
        for tree in chosen([*trees_of(it.suite, it.sources)], kinds, most, number):
            yield _row(it, tree)


def chosen(trees: Sequence[GradedTree], kinds: set[str], most: int | None, number: int) -> Iterator[GradedTree]:
    """Of the trees of the stage with this number those of these kinds, and of the honest failures at most so many: from
    stage to stage the next ones, so that all stages together have every kind."""
    honest = [tree for tree in trees if tree.kind == "honest"]
    start = number * (most or 0) % max(len(honest), 1)
    kept = {tree.name for tree in (honest[start:] + honest[:start])[:most]}
    return (tree for tree in trees if tree.kind in kinds and (tree.kind != "honest" or tree.name in kept))


def _row(proved: ProvedStage, tree: GradedTree) -> GradedRow:
    start = time.monotonic()
    try:
        run = GradingSuite(proved.suite).run(tree.tree, {*proved.proof.classes.f2p, *proved.proof.classes.p2p})
        found = grade(proved.proof.classes, StateCheck(), run.statuses, cheats=run.cheats, taken_back=run.taken_back)
        outcome, cheats, back = found.outcome, " | ".join(run.cheats), len(run.taken_back)
    except RefreshFailed:
        outcome, cheats, back = "refresh_failed", "", 0
    seconds = round(time.monotonic() - start, 2)
    repository, chain, position = proved.repository, proved.chain, proved.stage.position
    row = GradedRow(repository, chain, position, tree.kind, tree.name, outcome, cheats, back, seconds)
    say(f"{repository} {chain[:6]}.{position} {tree.kind}: {tree.name}: {outcome} {cheats[:100]}")
    return row


if __name__ == "__main__":
    main()
