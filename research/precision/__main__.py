"""Draw the sample of counted edges to label, and score the labels.

    python -m research.precision draw --db mined.db > sample.tsv
    python -m research.precision score [--db mined.db]

`labels.csv` holds facts only: repository, the two numbers, each reader's label and reason. Neither reader saw the
other's. A label answers whether the citing pull request depends on the cited one: ``real`` (it changes, repairs,
reverts, ports, completes or builds on what the other did), ``borderline`` (the same matter, but the work could stand
without it) or ``not``. Where the readers differ, the stricter label counts.

Round 1 was drawn from five repositories that were not used while the rules were written. Its errors led to two
more rules (`closes_landed`, and a stricter `number_list`), so round 2 was drawn from five others; it is the measure.
"""

from __future__ import annotations

import csv
import random
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from research.shares import agreement, share

SEED = 20261121
EACH = 13
LABELS = Path(__file__).with_name("labels.csv")

_POPULATION = """
    SELECT DISTINCT e.source, e.target
    FROM citation_edges AS e
    WHERE e.repository = ? AND e.counted = 1
    ORDER BY e.source, e.target
"""
_YIELD = """
    SELECT l.repository, count(*), (
        SELECT count(*) FROM (
            SELECT DISTINCT e.source, e.target FROM citation_edges AS e
            JOIN landed_pull_requests AS s ON s.repository = e.repository AND s.number = e.source
            JOIN landed_pull_requests AS t ON t.repository = e.repository AND t.number = e.target
            WHERE e.repository = l.repository AND e.counted = 1
        )
    )
    FROM landed_pull_requests AS l GROUP BY l.repository ORDER BY l.repository
"""


@click.group()
def main() -> None:
    """Precision of the counted citations."""


@main.command()
@click.option("--db", type=click.Path(exists=True), required=True, help="A SQLite database of prchain.")
@click.option("--seed", default=SEED, show_default=True)
@click.option("--each", default=EACH, show_default=True, help="Edges of each repository, as far as it has so many.")
def draw(db: str, seed: int, each: int) -> None:
    """Print the sample: repository, citing and cited number, tab-separated."""
    connection = sqlite3.connect(db)
    for (repository,) in connection.execute("SELECT DISTINCT repository FROM citation_edges ORDER BY repository"):
        edges = connection.execute(_POPULATION, (repository,)).fetchall()
        chosen = random.Random(f"{seed} {repository}").sample(edges, min(each, len(edges)))
        for source, target in sorted(chosen):
            click.echo(f"{repository}\t{source}\t{target}")


@main.command()
@click.option(
    "--db", type=click.Path(exists=True), help="Also say which labelled edges are still counted, and the yield."
)
def score(db: str | None) -> None:
    """Print strict and lenient precision with 95 % Wilson intervals, and how far the readers agree."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number in sorted({row["round"] for row in rows}):
        chosen = [row for row in rows if row["round"] == number]
        click.echo(f"round {number}: {len(chosen)} edges of {len({row['repository'] for row in chosen})} repositories")
        for reader in ("first", "second", "settled"):
            _print_reader(reader, [row[reader] for row in chosen])
        click.echo(f"  readers  {agreement([row['first'] for row in chosen], [row['second'] for row in chosen])}")
    if db is not None:
        _print_database(sqlite3.connect(db), rows)


def _print_reader(name: str, labels: Sequence[str]) -> None:
    counts = Counter(labels)
    strict, lenient = counts["real"], counts["real"] + counts["borderline"]
    click.echo(
        f"  {name:<8} real {counts['real']}, borderline {counts['borderline']}, not {counts['not']} of {len(labels)}: "
        f"strict {share(strict, len(labels))}, with borderline {share(lenient, len(labels))}"
    )


def _print_database(connection: sqlite3.Connection, rows: Iterable[dict[str, str]]) -> None:
    query = "SELECT 1 FROM citation_edges WHERE repository = ? AND source = ? AND target = ? AND counted = 1"
    mined = {name for (name,) in connection.execute("SELECT DISTINCT repository FROM landed_pull_requests")}
    gone = [
        f"{row['repository']} #{row['source']} -> #{row['target']}"
        for row in rows
        if row["repository"] in mined
        and not connection.execute(query, (row["repository"], int(row["source"]), int(row["target"]))).fetchone()
    ]
    click.echo("no longer counted: " + (", ".join(gone) or "none"))
    for repository, landed, edges in connection.execute(_YIELD):
        click.echo(f"yield: {repository}: {edges} edges between {landed} landed, {1000 * edges / landed:.1f} per 1,000")


if __name__ == "__main__":
    main()
