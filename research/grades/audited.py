"""What the auditor (`trajectories.verdicts.auditor`) says of works and of references, where no tests are run.

    python -m research.grades.audited --db FILE [--chain ID] [--works FOLDER] [--references] [--out CSV]

The database and the folder are those of `research.grades`. The query is what the pull request says, and nobody knows
how a work was made. Who answers is the endpoint of the settings, for the purpose `auditor`. Exit code 1 where a
reference or an honest work is suspected.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click

from chains.tasks.texts import read_texts
from prchain.core.console.terminal import say, say_table
from prchain.core.errors import PrchainError
from prchain.core.settings import Settings
from research.grades.stages import ProvedStage, proved_stages
from research.grades.trees import GradedTree, works_of
from research.rows import write_rows
from sql.ledger import open_gateway
from sql.store import Store
from sql.tables import Repository
from trajectories.verdicts.auditor import AUDITOR, Auditor
from trajectories.verdicts.judged_patch import judged_patch

_AT_ONCE = 32
_BLAMELESS = frozenset({"honest", "reference"})


@dataclass(frozen=True, slots=True)
class AuditedRow:
    """One tree: what was found in it (nothing: empty), or why there is no answer."""

    repository: str
    chain: str
    kind: str
    name: str
    found: str
    error: str


@dataclass(frozen=True, slots=True)
class Case:
    """A tree's row, and what the auditor is asked about it."""

    row: AuditedRow
    query: str
    patch: bytes


@click.command()
@click.option("--db", help="The database.")
@click.option("--chain", "only", default="", help="Of one chain, by the beginning of its id.")
@click.option("--works", type=click.Path(exists=True, file_okay=False, path_type=Path), help="The works of a folder.")
@click.option("--references", is_flag=True, help="Also what the developers did.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write a row for each tree.")
def main(db: str | None, only: str, works: Path | None, references: bool, out: Path | None) -> None:
    """Ask the auditor of works that stand in a folder, and of references."""
    try:
        settings = Settings.load(db=db)
        with closing(Store.open(settings.db, create=False)) as store:
            cases = list(cases_of(settings, store, only, works, references))
            with open_gateway(settings, store, (AUDITOR,)) as gateway, ThreadPoolExecutor(_AT_ONCE) as threads:
                rows = list(threads.map(partial(_audited, Auditor(gateway)), cases))
    except PrchainError as error:
        raise click.ClickException(str(error)) from None
    write_rows(out, rows)
    for row in rows:
        said = row.found or (f"no answer: {row.error}" if row.error else "none")
        say(f"{row.repository} {row.chain[:8]} {row.kind}: {row.name}: {said}")
    counted = Counter((row.kind, row.found.partition(":")[0] or row.error or "none") for row in rows)
    say_table(("kind", "finding", "trees"), [(*key, trees) for key, trees in sorted(counted.items())])
    if any(row.found and row.kind in _BLAMELESS for row in rows):
        sys.exit(1)


def cases_of(settings: Settings, store: Store, only: str, works: Path | None, references: bool) -> Iterator[Case]:
    """The works of the stages of chains whose ids begin with `only`, and their references. Raises `PrchainError`."""
    for proved in proved_stages(settings, only, timeout=1):
        trees, base = proved.suite.workplace.trees, proved.suite.workplace.trees.tree_of(proved.suite.base)
        found = [*works_of(proved.suite, works, proved.chain, proved.stage.position)] if works is not None else []
        if references:
            found.append(GradedTree("reference", "reference", trees.tree_of(proved.suite.landed)))
        for tree in found:
            row = AuditedRow(proved.repository, proved.chain, tree.kind, tree.name, "", "")
            yield Case(row, _query(store, proved), judged_patch(trees, base, tree.tree))


def _query(store: Store, proved: ProvedStage) -> str:
    owner, _, name = proved.repository.partition("/")
    with store.reading() as tx:
        [(repository,)] = tx.rows(Repository, "id", owner=owner, name=name)
        texts = read_texts(tx, repository, proved.stage.number, proved.stage.landed)
    return "\n\n".join([texts.title, texts.body, *texts.untold_commits()]).strip()


def _audited(auditor: Auditor, case: Case) -> AuditedRow:
    row = case.row
    audit = auditor.audit(
        subject=f"{row.chain}/{row.kind}/{row.name}"[:255], sample=0, attempt=1, query=case.query, patch=case.patch
    )
    return AuditedRow(row.repository, row.chain, row.kind, row.name, audit.found, audit.error or "")


if __name__ == "__main__":
    main()
