"""The command `prchain stats`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from prchain.core.cli_options import db_option, json_option
from prchain.core.console.terminal import present
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store
from trajectories.studies.drawing import require_drawing, write_drawing

if TYPE_CHECKING:
    from trajectories.studies.statistics.groups import GroupKind


@click.command()
@click.option(
    "--by",
    type=click.Choice(["model", "option", "repository"]),
    help="One line for each agent's model, for each set of options, or for each repository.",
)
@click.option(
    "--steps",
    metavar="LIST",
    help="With --by: what was resolved at these numbers of steps.  [default: 10,25,50,100,200,400]",
)
@click.option(
    "--domains",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help='With --by: the domains of repositories, TOML lines like "numpy/numpy" = "scientific computing".  '
    "[default: the language of each chain]",
)
@click.option(
    "--svg",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also draw histograms of tokens and tool calls; with --by, samples by domain.",
)
@db_option
@json_option
def stats(
    by: GroupKind | None, steps: str | None, domains: Path | None, svg: Path | None, db: str | None, as_json: bool
) -> None:
    """Print what the rollouts come to, beside the paper's figures.

    With --by: rollouts, samples, USD a sample over all purposes, stages and chains resolved at k steps, domains; by
    repository also pull requests and queries.

    \b
    Example:
      prchain stats --svg lengths.svg
      prchain stats --by model --steps 25,50,100
      prchain stats --by repository --domains domains.toml
    """
    from trajectories.studies.resolved import STEPS
    from trajectories.studies.statistics.drawings import domains_drawing, lengths_drawing
    from trajectories.studies.statistics.groups import grouped_stats, read_domains, read_steps
    from trajectories.studies.statistics.groups_text import print_grouped
    from trajectories.studies.statistics.stats import print_stats
    from trajectories.studies.statistics.stats import stats as figures

    settings = load_settings(db=db)
    if by is None and (steps or domains):
        raise UsageError(f"{'--steps' if steps else '--domains'} is of groups: give --by, too")
    if svg is not None:
        require_drawing(svg)
    chosen = STEPS if steps is None else read_steps(steps)
    told = None if domains is None else read_domains(domains)
    with opened_store(settings.db) as store, store.reading() as tx:
        row = figures(tx) if by is None else grouped_stats(tx, by, steps=chosen, domains=told)
    if svg is not None:
        write_drawing(svg, lengths_drawing(row) if by is None else domains_drawing(row))
    present(as_json, row, print_stats if by is None else print_grouped, row)
