"""Score what readers said of chains before the screener, and of the tasks that were written of some of them.

    python -m research.task_reading [--screened CSV] [--written CSV]

`screened.csv` has a row for each chain and reader: the screener's `worth` and number of `faults`
(`chains.tasks.screening`), and what a reader who saw the same texts and patches, but neither its rules nor its answer,
gave stages and whole, 1 to 5. `written.csv` has a row for each task and reader: what a reader who saw overview,
queries, interface and patches gave each stage and the whole, 1 to 5, whether work that follows the query passes the
stage's tests (``yes``, ``part``, ``no``), and how many queries give the solution away. Values of stages are parted by
semicolons. Both hold facts only, and no texts of repositories. `set` tells rounds apart: each has chains of its own,
since prompts were changed between them. Where several readers read the same, scores are their mean; a stage is solvable
where all of them say so, and the most that one of them finds given away counts.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean

import click

from chains.tasks.screening import LEAST_WORTH
from prchain.core.console.terminal import say, say_table
from research.shares import share

SCREENED = Path(__file__).with_name("screened.csv")
WRITTEN = Path(__file__).with_name("written.csv")

GOOD = 4
"""From which score on a whole counts as good."""
VERDICTS = ("yes", "part", "no")
"""Whether work that follows a query passes its stage's tests, the best first."""

Row = dict[str, str]


_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command()
@click.option("--screened", type=_FILE, default=SCREENED, help="In place of the committed file.")
@click.option("--written", type=_FILE, default=WRITTEN, help="In place of the committed file.")
def main(screened: Path, written: Path) -> None:
    """Print the tables of both files, a line for each set."""
    say_table(
        ("set", "chains", "of", "accepted", "mean of wholes", "of the good", "good among them"),
        [line for name, rows in _with_every(read_rows(screened)) for line in screened_lines(name, rows)],
    )
    say("")
    say_table(
        ("set", "read by two", "same view of good", "wholes one apart or none"),
        [line for name, rows in _with_every(read_rows(screened)) for line in agreement_lines(name, rows)],
    )
    say("")
    say_table(
        ("set", "tasks", "stages", "solvable", "in part", "give away", "mean of stages", "mean of wholes"),
        [written_line(name, rows) for name, rows in _with_every(read_rows(written))],
    )


def read_rows(path: Path) -> list[Row]:
    """The rows of one of the two files."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def by_set(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each set, in the order in which the sets first come."""
    for name in dict.fromkeys(row["set"] for row in rows):
        yield name, [row for row in rows if row["set"] == name]


def _with_every(rows: Sequence[Row]) -> Iterator[tuple[str, Sequence[Row]]]:
    yield from by_set(rows)
    yield "every", rows


def by_work(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of all readers of each chain or task, in the order in which these first come."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["repository"], row["numbers"]), []).append(row)
    return list(found.values())


def screened_lines(name: str, rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """A line for all chains of a set, one for those that the screener accepts, and one for those that it rejects only
    because their worth is `LEAST_WORTH` - 1."""
    chains = by_work(rows)
    good = [chain for chain in chains if _whole(chain) >= GOOD]
    accepted = [chain for chain in chains if chain[0]["faults"] == "0"]
    near = [chain for chain in chains if (chain[0]["faults"], chain[0]["worth"]) == ("1", str(LEAST_WORTH - 1))]
    for told, chosen in (("all", chains), ("screened", accepted), (f"worth {LEAST_WORTH - 1}", near)):
        hits = [chain for chain in chosen if chain in good]
        yield (
            f"{name}, {told}",
            str(len(chains)),
            str(len({chain[0]["repository"] for chain in chains})),
            str(len(chosen)),
            _mean(map(_whole, chosen)),
            share(len(hits), len(good)) if good else "-",
            share(len(hits), len(chosen)) if chosen else "-",
        )


def agreement_lines(name: str, rows: Sequence[Row]) -> Iterator[tuple[str, ...]]:
    """How far the first two readers of the chains of a set agree, where there are two."""
    pairs = [(int(first["whole"]), int(second["whole"])) for first, second, *_ in _read_twice(rows)]
    if pairs:
        same = sum((first >= GOOD) == (second >= GOOD) for first, second in pairs)
        near = sum(abs(first - second) <= 1 for first, second in pairs)
        yield name, str(len(pairs)), share(same, len(pairs)), share(near, len(pairs))


def written_line(name: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """What became of the tasks of one set."""
    tasks = by_work(rows)
    solvable = [verdict for task in tasks for verdict in _solvable(task)]
    return (
        name,
        str(len(tasks)),
        str(len(solvable)),
        str(solvable.count("yes")),
        str(solvable.count("part")),
        str(sum(max(int(row["leaks"]) for row in task) for task in tasks)),
        _mean(score for task in tasks for score in _stages(task)),
        _mean(map(_whole, tasks)),
    )


def _read_twice(rows: Sequence[Row]) -> list[list[Row]]:
    return [chain for chain in by_work(rows) if len(chain) > 1]


def _whole(readings: Sequence[Row]) -> float:
    return fmean(int(row["whole"]) for row in readings)


def _stages(readings: Sequence[Row]) -> list[float]:
    """The mean score of each stage."""
    return [fmean(map(int, scores)) for scores in zip(*(row["stages"].split(";") for row in readings), strict=True)]


def _solvable(readings: Sequence[Row]) -> list[str]:
    """The worst verdict on each stage."""
    verdicts = zip(*(row["solvable"].split(";") for row in readings), strict=True)
    return [max(stage, key=VERDICTS.index) for stage in verdicts]


def _mean(values: Iterable[float]) -> str:
    found = list(values)
    return f"{fmean(found):.2f}" if found else "-"


if __name__ == "__main__":
    main()
