"""The study of recipes for training data: one line a recipe, with what was tried for it (`recipes`)."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from prchain.core.console.terminal import counted, say, say_prose, say_table
from sql.store import Store
from trajectories.curation.graphs.svg import bars_svg
from trajectories.privileged import CURATED
from trajectories.studies.curation.recipes import (
    COMPUTE_MATCHED,
    ERROR_MASKED,
    HOUR,
    PASSES,
    SIZE_MATCHED,
    TEST_PASS,
    RecipeAttempts,
    RecipeLine,
    recipe_attempts,
    recipe_lines,
)
from trajectories.studies.curation.study_files import Study

RECIPES: Mapping[str, str] = {
    TEST_PASS: "test-pass",
    ERROR_MASKED: "error-masked",
    CURATED: "curated",
    SIZE_MATCHED: "size-matched",
    COMPUTE_MATCHED: "compute-matched",
}
"""Recipes, with their names for people."""

_WIDTH = 80


def baseline_study(found: RecipeAttempts, lines: Sequence[RecipeLine], passes: int) -> dict[str, Any]:
    """The lines by recipe; and what they were made of."""
    plain = [attempt for attempt in found.attempts if not attempt.curated]
    return {
        "recipes": {line.recipe: {name: it for name, it in asdict(line).items() if name != "recipe"} for line in lines},
        "passes": passes,
        "plain_settings": len({attempt.setting for attempt in plain}),
        "curated_settings": len({attempt.setting for attempt in found.attempts if attempt.curated}),
        "guided": found.guided,
        "kept_without_passed_tests": sum(attempt.kept and not attempt.passed for attempt in found.attempts),
        "graphs": {"made": found.graphs, "usd": found.graphs_usd, "hours": found.graphs_seconds / HOUR},
    }


def baseline_rows(lines: Sequence[RecipeLine]) -> str:
    """CSV: one row a recipe."""
    text = io.StringIO()
    columns = [field.name for field in fields(RecipeLine)]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([getattr(line, name) for name in columns] for line in lines)
    return text.getvalue()


def baseline_drawings(lines: Sequence[RecipeLine]) -> dict[str, str]:
    """Name of each figure to its SVG."""
    figures: Mapping[str, tuple[str, Callable[[RecipeLine], float | None]]] = {
        "samples": ("Samples by recipe", lambda line: line.samples),
        "hours": ("Hours of all attempts by recipe", lambda line: line.hours),
    }
    drawings = {}
    for name, (title, measure) in figures.items():
        bars = {RECIPES[line.recipe]: measure(line) or 0.0 for line in lines}
        drawings[name] = bars_svg(title, bars, [f"{value:,.4g}" for value in bars.values()])
    return drawings


def study_baselines(
    store: Store, repository: str | None = None, model: str | None = None, *, passes: int = PASSES, seed: int = 0
) -> Study:
    """The study `baselines`."""
    with store.reading() as tx:
        found = recipe_attempts(tx, repository, model)
        lines = recipe_lines(tx, found, passes=passes, seed=seed)
    return Study(baseline_study(found, lines, passes), baseline_rows(lines), baseline_drawings(lines), print_baselines)


def print_baselines(study: Mapping[str, Any]) -> None:
    """Print the study as a table of at most 80 columns."""
    rows = [
        (
            RECIPES[recipe],
            line["attempts"],
            line["samples"],
            line["steps"],
            line["trained_steps"],
            "?" if line["tokens"] is None else line["tokens"],
            "?" if line["usd"] is None else f"{line['usd']:,.2f}",
            f"{line['hours']:,.1f}",
        )
        for recipe, line in study["recipes"].items()
    ]
    say_table(("", "tried", "samples", "steps", "in loss", "tokens", "USD", "hours"), rows)
    say()
    say_table(
        ("", "chains without a sample", "passed at a limit", "redundant views"),
        [
            (
                RECIPES[recipe],
                f"{line['without']:,} of {line['chains']:,}",
                f"{line['at_limit']:,} of {line['samples']:,}",
                "-" if line["redundant"] is None else f"{100 * line['redundant']:.1f}%",
            )
            for recipe, line in study["recipes"].items()
        ],
    )
    graphs = study["graphs"]
    price = "" if graphs["usd"] is None else f" for {graphs['usd']:,.2f} USD"
    made, passes = counted(graphs["made"], "process graph"), counted(study["passes"], "sample")
    say_prose(
        f"USD and hours are those of all that was tried; of curated ones with {made}{price}. Rejection sampling takes "
        f"the first {passes} of each chain, compute-matched the shortest of all.",
        width=_WIDTH,
    )
    if study["kept_without_passed_tests"]:
        say(f"{counted(study['kept_without_passed_tests'], 'kept trajectory')} without passed tests: no sample here")
    if study["guided"]:
        say(f"{counted(study['guided'], 'guided rollout')} left out: an observer watched them")
    for kind in ("plain", "curated"):
        if study[f"{kind}_settings"] > 1:
            say(f"{kind} ones have {study[f'{kind}_settings']:,} models or options; --model chooses")
