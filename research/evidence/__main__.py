"""Draw pairs and chains to read, fit the weights of the signs to the labels, and score the labels.

    python -m research.evidence draw --db FILE --mirrors FOLDER --out FOLDER --kind pairs|chains
    python -m research.evidence fit [--write]
    python -m research.evidence score

`labels.csv` holds facts only: what was drawn with which chance, the values of its signs, and each reader's labels.
Readers saw texts and patches with all references blanked, and neither each other's labels, nor confidence or strategy.
Each step is ``real`` (the later pull request iterates upon, fixes, extends or depends on what the earlier one did),
``borderline`` or ``not``; each stage, and the whole, is ``yes`` as a task for an engineer (development that can be
asked for in words; of the whole also: one story in one area), ``borderline`` or ``no``.

Round 1 was drawn from four repositories that nobody had looked at, evenly over bins of confidence; the first weights
were fitted to it. Round 2 was drawn from five others after that, of what these weights chose; it fell short, and
showed why (what stands beside the other's lines is often a parallel addition). The weights of today are fitted to both.
Round 3 was drawn from five more repositories after that, and led to the floor of 0.9. Round 4 was drawn from five more
after that; it is the measure, weighted back to what a user gets.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import click

from chains.options import EDGE_RULES
from research.evidence.fit import MODELS, cases, held_out, read_prior, write_weights
from research.evidence.fit import fit as fit_weights
from research.evidence.labels import LABELS, joined, read_labels, write_labels
from research.evidence.population import Drawn, Numbers, Population, populations, stratified
from research.evidence.score import print_fit, print_scores
from research.evidence.sheets import sheet
from sql.store import Store

SEED = "20261123"
PAIR_BINS = (0.5, 0.7, 0.85, 0.95)
FITTED = ("1", "2")
"""Rounds of labels that the weights are fitted to; later ones are the measure."""
CHAIN_BINS = (0.25, 0.5, 0.7)
MEASURED: tuple[tuple[str, int, Callable[[int], bool]], ...] = (
    ("two", 50, lambda stages: stages == 2),
    ("longer", 50, lambda stages: stages > 2),
    ("cited", 20, lambda stages: True),
)
"""Kind, how many of it are drawn, and of which lengths."""


@click.group()
def main() -> None:
    """Evidence of dependency, and of worth."""


@main.command()
@click.option("--db", required=True, help="Of a finished `prchain mine`.")
@click.option("--mirrors", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="A folder for sheets and `drawn.csv`.")
@click.option("--kind", type=click.Choice(["pairs", "chains", "measure"]), required=True)
@click.option("--each", default=6, show_default=True, help="Of each bin of a repository; not for `measure`.")
def draw(db: str, mirrors: Path, out: Path, kind: str, each: int) -> None:
    """Write a sheet for everything drawn, and what it is.

    pairs and chains: evenly over bins of confidence, and for chains of worth. measure: 50 chains of two stages and 50
    longer ones of the default strategy, and 20 of the reference strategy, over all repositories.
    """
    out.mkdir(parents=True, exist_ok=True)
    with closing(Store.open(db, create=False)) as store:
        surveyed = list(populations(store, mirrors))
        chosen = _measure(surveyed) if kind == "measure" else _binned(surveyed, kind, each)
        # In no order that tells the bin.
        chosen.sort(key=lambda one: _hash(one[1]))
        rows = []
        for place, (population, drawn, name) in enumerate(chosen, 1):
            text = sheet(f"sheet {place:03d}", population.repository, population.sheet_stages(drawn.numbers))
            (out / f"{place:03d}.md").write_text(text, encoding="utf-8")
            rows.append(
                {"sheet": f"{place:03d}", "kind": name, **{key: str(value) for key, value in drawn.row().items()}}
            )
    write_labels(rows, out / "drawn.csv")
    click.echo(f"{len(rows)} sheets in {out}")


Choice = tuple[Population, Drawn, str]
"""Where it is from, what it is, and the kind that is written into the table."""


def _hash(drawn: Drawn) -> str:
    """A fixed order that has nothing to do with what is measured."""
    return sha256(f"{SEED} {drawn.repository} {drawn.numbers}".encode()).hexdigest()


def _binned(surveyed: Sequence[Population], kind: str, each: int) -> list[Choice]:
    found = []
    for population in surveyed:
        values: dict[Numbers, float]
        if kind == "pairs":
            values = {pair: population.confidences(pair)[0] for pair in population.uncited()}
        else:
            values = {
                chain: min(population.confidences(chain)) * min(population.worths(chain))
                for chain in population.chains("evidence", 0.5, 0.0)
            }
        bins = PAIR_BINS if kind == "pairs" else CHAIN_BINS
        seed = f"{SEED} {kind} {population.mined.full_name}"
        for numbers, name, chance in stratified(values, bins, each, seed):
            found.append((population, population.drawn(numbers, name, chance), kind))
    return found


def _measure(surveyed: Sequence[Population]) -> list[Choice]:
    found: list[Choice] = []
    for name, most, takes in MEASURED:
        strategy = "reference" if name == "cited" else "evidence"
        rule = EDGE_RULES[strategy]
        everything = [
            (population, chain)
            for population in surveyed
            for chain in population.chains(strategy, rule.floor, rule.worth)
            if takes(len(chain))
        ]
        drawn = random.Random(f"{SEED} {name}").sample(everything, min(most, len(everything)))
        share = len(drawn) / max(len(everything), 1)
        found += [(population, population.drawn(chain, name, share), name) for population, chain in drawn]
    return found


@main.command()
@click.option("--db", required=True, help="With the repositories of the labels.")
@click.option("--mirrors", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--labels", type=click.Path(path_type=Path), default=LABELS, show_default=True)
def signs(db: str, mirrors: Path, labels: Path) -> None:
    """Find the values of the signs anew, by the rules of today, for the labels of mined repositories."""
    with labels.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    with closing(Store.open(db, create=False)) as store:
        for population in populations(store, mirrors):
            for row in rows:
                if row["repository"] == population.mined.full_name:
                    numbers = tuple(map(int, row["numbers"].split()))
                    found = population.drawn(numbers, row["bin"], float(row["chance"])).row()
                    row |= {name: str(found[name]) for name in _SIGNS}
    write_labels(rows, labels)


_SIGNS = ("confidences", "worths", "sources", "step_signs", "stage_signs")


@main.command()
@click.option("--drawn", type=click.Path(exists=True, path_type=Path), required=True, help="What `draw` wrote.")
@click.option("--round", "round_name", required=True)
@click.option("--first", type=click.Path(exists=True, path_type=Path), multiple=True, required=True)
@click.option("--second", type=click.Path(exists=True, path_type=Path), multiple=True, required=True)
@click.option("--labels", type=click.Path(path_type=Path), default=LABELS, show_default=True)
def take(drawn: Path, round_name: str, first: tuple[Path, ...], second: tuple[Path, ...], labels: Path) -> None:
    """Add what two readers said (JSON by sheet) to the table of labels."""
    answers = [
        {sheet: said for path in paths for sheet, said in json.loads(path.read_text(encoding="utf-8")).items()}
        for paths in (first, second)
    ]
    with drawn.open(encoding="utf-8", newline="") as file:
        rows = joined(round_name, csv.DictReader(file), answers)
    if labels.exists():
        with labels.open(encoding="utf-8", newline="") as file:
            rows = [*csv.DictReader(file), *rows]
    write_labels(rows, labels)


@main.command()
@click.option("--write", is_flag=True, help="Write the weights that prchain uses.")
def fit(write: bool) -> None:
    """Fit the weights to rounds 1 and 2, and print how well they rank what they were not fitted to."""
    rows = [row for row in read_labels() if row.round in FITTED]
    fitted = {}
    for model in MODELS:
        found = cases(rows, model)
        prior = read_prior(model)
        fitted[model] = fit_weights(found, prior)
        print_fit(model, fitted[model], held_out(found, prior))
    if write:
        write_weights(fitted)


@main.command()
def score() -> None:
    """Print what readers said, as shares with 95 % intervals, and how far they agree."""
    print_scores(read_labels())


if __name__ == "__main__":
    main()
