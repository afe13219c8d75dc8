"""Find what the hidden tests of many stages need, without a model.

    python -m research.needs --db FILE --mirrors FOLDER [--repository OWNER/NAME] [--most N] [--out CSV]
                             [--sheets FOLDER]

Takes chains of one stage (strategy ``single``) that change tests, the newest first, of each repository of the database.
Prints for each repository how many stages need something, how many of them a name whose word stands somewhere at the
base, their verdicts (`unseen`: tests that the check cannot read), and the seconds that it took.

`--sheets` writes what a person needs who is to check the verdicts: ten stages that are solvable as agents get them,
half of them with needs, their query being the messages of their commits with the interface below; and ten whose
messages alone lack a need. A sheet does not tell which it is; `key.csv` does.
"""

from __future__ import annotations

import csv
import json
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import click
from sqlalchemy import select

from chains.edges.patches import CONTEXT
from chains.needs.stage_needs import stage_needs
from prchain.core.code.needs import names_of, unmet, verdict_of
from prchain.core.code.reference import split
from prchain.core.console.terminal import say, say_table
from prchain.core.errors import GitError, PrchainError
from prchain.core.git import open_mined
from research.needs.sheets import ReadStage, write_sheets
from sql.outcomes import SELECTED
from sql.store import Store
from sql.tables import Chain, ChainStage, Repository, Selection


@click.command()
@click.option("--db", required=True, help="Of a finished `prchain chains build --strategy single`.")
@click.option("--mirrors", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--repository", help="OWNER/NAME; only this one.")
@click.option("--most", type=int, default=150, show_default=True, metavar="N", help="Stages of a repository.")
@click.option("--out", type=click.Path(path_type=Path), help="Where a line a need is written.")
@click.option("--sheets", type=click.Path(file_okay=False, path_type=Path), help="A folder for stages to read.")
def main(db: str, mirrors: Path, repository: str | None, most: int, out: Path | None, sheets: Path | None) -> None:
    """Find the needs of single stages."""
    read: list[ReadStage] = []
    lines: list[tuple[str, int, str, str, str, str]] = []
    table = []
    with closing(Store.open(db, create=False)) as store:
        for name, found in _stages(store, repository).items():
            began, counts = time.monotonic(), Counter[str]()
            for location, host, number, base, landed in found[:most]:
                try:
                    git = open_mined(location, mirrors, host, name)
                    reference = split(next(iter(git.patches([(base, landed)], context=CONTEXT))))
                    needs = stage_needs(git, base, landed, reference).needs
                    hidden = git.words_at(base, names_of(needs)) if names_of(needs) else set()
                    words = git.run("log", "--reverse", "--format=%B", f"{base}..{landed}").strip()
                except GitError as error:
                    counts["unread"] += 1
                    say(f"{name}#{number}: {error}", err=True)
                    continue
                read.append(ReadStage(name, str(git.path), number, base, landed, words, needs))
                counts["stages"] += 1
                counts["with names"] += bool(names_of(needs))
                counts["by a word hidden"] += bool(hidden)
                counts["with texts"] += any(need.kind == "text" and not need.withheld for need in needs)
                counts[verdict_of(unmet("", needs)).replace("_", " ")] += 1
                lines += [
                    (name, number, need.kind, need.words(), need.withheld, json.dumps(need.tests)) for need in needs
                ]
            seconds = time.monotonic() - began
            table.append((name, *(counts[key] for key in _COLUMNS), f"{seconds / max(counts['stages'], 1):.2f}"))
    say_table(("repository", *_COLUMNS, "s a stage"), table)
    if sheets is not None:
        write_sheets(read, sheets)
    if out is not None:
        with out.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow(("repository", "number", "kind", "words", "withheld", "tests"))
            writer.writerows(lines)


_COLUMNS = ("stages", "with names", "by a word hidden", "with texts", "solvable", "unseen", "not solvable", "unread")


def _stages(store: Store, repository: str | None) -> dict[str, list[tuple[str, str, int, str, str]]]:
    """Repository to its single stages that change tests, the newest first."""
    query = (
        select(
            Repository.owner,
            Repository.name,
            Repository.location,
            Repository.host,
            ChainStage.number,
            ChainStage.base_sha,
            ChainStage.landed_sha,
        )
        .select_from(Selection)
        .join(Chain, Chain.id == Selection.chain_id)
        .join(ChainStage, ChainStage.chain_id == Chain.id)
        .join(Repository, Repository.id == Chain.repository_id)
        .where(Selection.strategy == "single", Selection.outcome == SELECTED, ChainStage.test_files > 0)
        .order_by(Repository.owner, Repository.name, ChainStage.landed_at.desc(), ChainStage.number)
    )
    found: dict[str, list[tuple[str, str, int, str, str]]] = {}
    with store.reading() as tx:
        for owner, name, location, host, number, base, landed in tx.connection.execute(query):
            full_name = f"{owner}/{name}"
            if repository in (None, full_name):
                found.setdefault(full_name, []).append((location, host, number, base, landed))
    return found


if __name__ == "__main__":
    try:
        main()
    except PrchainError as error:
        say(str(error), err=True)
        sys.exit(1)
