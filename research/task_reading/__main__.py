"""Score what readers said of chains before the screener, and of the tasks that were written of some of them.

    python -m research.task_reading [--screened CSV] [--written CSV]

`screened.csv` has a row a chain: the screener's `worth` and number of `faults` (`chains.tasks.screening`), and what a
reader who saw the same texts and patches, but neither its rules nor its answer, gave stages and whole, 1 to 5.
`written.csv` has a row a task: what a reader who saw overview, queries, interface and patches gave each stage and the
whole, 1 to 5, whether work that follows the query passes the stage's tests (``yes``, ``part``, ``no``), and how many
queries give the solution away. Values of stages are parted by semicolons. Both hold facts only, and no texts of
repositories. `set` tells rounds apart: each has chains of its own, since prompts were changed between them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

import click

from prchain.terminal import say, say_table
from research.shares import share

SCREENED = Path(__file__).with_name("screened.csv")
WRITTEN = Path(__file__).with_name("written.csv")

GOOD = 4
"""From which score on a whole counts as good."""

Row = dict[str, str]


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--screened", type=_FILE, default=SCREENED, help="In place of the committed file.")
@click.option("--written", type=_FILE, default=WRITTEN, help="In place of the committed file.")
def main(screened: Path, written: Path) -> None:
    """Print the tables of both files, a line for each set."""
    say_table(
        ("set", "chains", "of", "accepted", "mean of wholes", "of the good", "good among them"),
        [line for name, rows in by_set(read_rows(screened)) for line in screened_lines(name, rows)],
    )
    say("")
    say_table(
        ("set", "tasks", "stages", "solvable", "in part", "give away", "mean of stages", "mean of wholes"),
        [written_line(name, rows) for name, rows in by_set(read_rows(written))],
    )


def read_rows(path: Path) -> list[Row]:
    """The rows of one of the two files."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_set(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each set, in the order in which the sets first come."""
    for name in dict.fromkeys(row["set"] for row in rows):
        yield name, [row for row in rows if row["set"] == name]


def screened_lines(name: str, rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """A line for all chains of a set, and one for those that the screener accepts."""
    good = [row for row in rows if int(row["whole"]) >= GOOD]
    for told, chosen in (("all", rows), ("screened", [row for row in rows if row["faults"] == "0"])):
        hits = [row for row in chosen if row in good]
        yield (
            f"{name}, {told}",
            str(len(rows)),
            str(len({row["repository"] for row in rows})),
            str(len(chosen)),
            _mean(int(row["whole"]) for row in chosen),
            share(len(hits), len(good)) if good else "-",
            share(len(hits), len(chosen)) if chosen else "-",
        )


def written_line(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """What became of the tasks of one set."""
    solvable = [value for row in rows for value in row["solvable"].split(";")]
    return (
        name,
        str(len(rows)),
        str(len(solvable)),
        str(solvable.count("yes")),
        str(solvable.count("part")),
        str(sum(int(row["leaks"]) for row in rows)),
        _mean(int(value) for row in rows for value in row["stages"].split(";")),
        _mean(int(row["whole"]) for row in rows),
    )


def _mean(values: Iterable[int]) -> str:
    found = list(values)
    return f"{fmean(found):.2f}" if found else "-"


if __name__ == "__main__":
    main()
