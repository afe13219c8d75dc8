"""Draw the sample of chains to read, and score the labels of the readers.

    python -m research.chain_reading draw --db mined.db --out folder
    python -m research.chain_reading score

`labels.csv` holds facts only: round, repository, numbers, and each reader's labels. Neither reader saw the other's.
Each step is ``real`` (the later pull request iterates upon, fixes, extends or depends on what the earlier one did),
``borderline`` or ``not``; the chain as a task is ``yes`` (every stage is development that can be asked for in words, in
one area, and the later profits from the earlier), ``borderline`` or ``no``. Where the readers differ, the stricter
label counts.

Round 1 was drawn from five repositories that were not used while the rules of chains were written. Its bad tasks led to
the outcomes `renames_only` and `cosmetic` for docstrings and annotations, and to a higher floor. So round 2 was drawn
from other repositories; it is the measure.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import click

from research.chain_reading.draw import draw as draw_chains
from research.chain_reading.draw import sheet
from research.shares import agreement, share
from sql.store import Store

SEED = 20261122
EACH = 12
LABELS = Path(__file__).with_name("labels.csv")

_STEPS = ("not", "borderline", "real")
_TASKS = ("no", "borderline", "yes")


@click.group()
def main() -> None:
    """Chains that two readers read."""


@main.command()
@click.option("--db", type=click.Path(exists=True), required=True, help="A SQLite database of prchain with chains.")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A folder for one page a chain.")
@click.option("--mirrors", type=click.Path(path_type=Path), default=Path("data/mirrors"), show_default=True)
@click.option("--seed", default=SEED, show_default=True)
@click.option("--each", default=EACH, show_default=True, help="Chains of each repository, as far as it has so many.")
def draw(db: str, out: Path, mirrors: Path, seed: int, each: int) -> None:
    """Write a page of texts and patches for each chain of the sample."""
    out.mkdir(parents=True, exist_ok=True)
    with closing(Store.open(db, create=False)) as store:
        for position, row in enumerate(draw_chains(store, seed, each), 1):
            (out / f"{position:02d}_{row.id}.md").write_text(sheet(store, row.id, mirrors), encoding="utf-8")


@main.command()
def score() -> None:
    """Print the shares with 95 % Wilson intervals, and how far the readers agree."""
    with LABELS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for number in sorted({row["round"] for row in rows}):
        chosen = [row for row in rows if row["round"] == number]
        firsts, seconds = ([row[f"{reader}_steps"].split(";") for row in chosen] for reader in ("first", "second"))
        steps = [
            [min(pair, key=_STEPS.index) for pair in zip(a, b, strict=True)]
            for a, b in zip(firsts, seconds, strict=True)
        ]
        tasks = [min(row["first_task"], row["second_task"], key=_TASKS.index) for row in chosen]
        click.echo(f"round {number}: {len(chosen)} chains of {len({row['repository'] for row in chosen})} repositories")
        for name, step_labels, task_labels in (
            ("first", firsts, [row["first_task"] for row in chosen]),
            ("second", seconds, [row["second_task"] for row in chosen]),
            ("settled", steps, tasks),
        ):
            _print(name, step_labels, task_labels)
        flat = [[label for labels in step_labels for label in labels] for step_labels in (firsts, seconds)]
        click.echo(f"  readers  steps: {agreement(*flat)}")
        labels_by_reader = [[row[f"{reader}_task"] for row in chosen] for reader in ("first", "second")]
        click.echo(f"           tasks: {agreement(*labels_by_reader)}")


def _print(name: str, steps: Sequence[Sequence[str]], tasks: Sequence[str]) -> None:
    total = len(tasks)
    real = sum(all(label == "real" for label in chain) for chain in steps)
    near = sum(all(label != "not" for label in chain) for chain in steps)
    counts = Counter(tasks)
    click.echo(
        f"  {name:<8} every step real {share(real, total)}, or borderline {share(near, total)}\n"
        f"           a task: yes {share(counts['yes'], total)}, with borderline "
        f"{share(counts['yes'] + counts['borderline'], total)}"
    )


if __name__ == "__main__":
    main()
