"""What the proofs of a database are worth, and what measuring them took.

    python -m research.strength --db FILE [--each]

The database holds chains that `prchain environments validate --strength` has measured. Prints the shares of each worth
by repository, and the test time that was added to a validation's; with --each, a line a stage, to be read by hand.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from statistics import median

import click
from sqlalchemy import select

from prchain.core.console.terminal import counted, say, say_table
from prchain.core.errors import PrchainError
from prchain.core.settings import Settings
from research.shares import share
from sql.outcomes import PROVED
from sql.store import Store, Transaction
from sql.strength import Strength, Worth, strength_row, strength_words
from sql.tables import Chain, ChainStage, ReferenceRun, Repository, StageTests

_PROOF = {"before", "after"}


@dataclass(frozen=True, slots=True)
class MeasuredStage:
    """One proved stage. Times are seconds: of the proof's test runs, of those that measuring added, and of all of
    measuring."""

    repository: str
    chain: str
    position: int
    number: int
    strength: Strength
    proof: float
    added: float


@click.command()
@click.option("--db", help="The database.")
@click.option("--each", is_flag=True, help="A line a stage.")
def main(db: str | None, each: bool) -> None:
    """What the proofs of a database are worth, and what measuring them took."""
    try:
        with closing(Store.open(Settings.load(db=db).db, create=False)) as store, store.reading() as tx:
            stages = list(read_measured(tx))
    except PrchainError as error:
        raise click.ClickException(str(error)) from None
    if each:
        for it in stages:
            words = strength_words(strength_row(it.strength))
            say(f"{it.repository}#{it.number} ({it.chain[:6]}.{it.position}) {words}")
            for undone in it.strength.undone:
                say(f"  {undone.outcome} {undone.kind} {undone.place}")
    if not stages:
        say("nothing is measured; `prchain environments validate --strength` does")
        return
    names = [*dict.fromkeys(it.repository for it in stages)]
    rows = [_row(name, [it for it in stages if it.repository == name]) for name in names]
    columns = [str(worth) for worth in Worth if worth is not Worth.NOT_MEASURED]
    say_table(("repository", "stages", *columns, "caught", "added"), [*rows, _row("all", stages)])
    counts = Counter(it.strength.worth for it in stages)
    say(f"{counted(len(stages), 'stage')} of {counted(len(names), 'repository')}")
    for worth, count in sorted(counts.items()):
        say(f"  {worth} {share(count, len(stages))}")
    ratios = [it.added / it.proof for it in stages if it.proof]
    wall = sum(it.strength.seconds for it in stages) / max(sum(it.proof for it in stages), 1e-9)
    say(
        f"test time added, in a proof's own: median {median(ratios):.2f}, most {max(ratios):.2f}; "
        f"wall time of measuring over test time of the proofs {wall:.2f}"
    )


def read_measured(tx: Transaction) -> Iterator[MeasuredStage]:
    """The measured stages of a database, by repository."""
    query = (
        select(
            Repository.owner,
            Repository.name,
            StageTests.chain_id,
            StageTests.position,
            ChainStage.number,
            StageTests.strength,
        )
        .join(ChainStage, (ChainStage.chain_id == StageTests.chain_id) & (ChainStage.position == StageTests.position))
        .join(Chain, Chain.id == StageTests.chain_id)
        .join(Repository, Repository.id == Chain.repository_id)
        .where(StageTests.outcome == PROVED, StageTests.strength.is_not(None))
        .order_by(Repository.owner, Repository.name, ChainStage.number)
    )
    for owner, name, chain, position, number, row in tx.connection.execute(query).all():
        runs = tx.rows(ReferenceRun, "side", "seconds", chain_id=chain, position=position)
        seconds: Counter[bool] = Counter()
        for side, taken in runs:
            seconds[side in _PROOF] += taken
        yield MeasuredStage(
            f"{owner}/{name}", chain, position, number, Strength.from_row(row), seconds[True], seconds[False]
        )


def _row(name: str, stages: Sequence[MeasuredStage]) -> tuple[str, ...]:
    counts = Counter(it.strength.worth for it in stages)
    caught, valid = (sum(getattr(it.strength, what) for it in stages) for what in ("caught", "valid"))
    added = sum(it.added for it in stages) / max(sum(it.proof for it in stages), 1e-9)
    worths = (str(counts[worth]) for worth in Worth if worth is not Worth.NOT_MEASURED)
    return (name, str(len(stages)), *worths, f"{caught} of {valid}", f"{added:.2f}")


if __name__ == "__main__":
    main()
