"""Put rewritten steps of real stages to the gates of a curated run that are code, the judge apart.

    python -m research.rewrites --mirrors FOLDER  # bare, with the landed commits: github.com/owner/name.git below it

Each file of ``stages`` has a landed pull request, a query in our words, the looks of an agent, and rewrites of its next
step: honest ones, and such as only who knows the reference, its tests or unseen code would write. What the looks show
is computed from the base commit, and each leak is proved: the repository has it, and the conversation has not. Rewrites
were written before the gates were asked. Exit code 1 where too few leaks are caught or too many honest steps refused.
"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from prchain.core.errors import PrchainError
from research.rewrites.cases import FOLDER, read_stages
from research.rewrites.conversation import LookRefused
from research.rewrites.gate import Judged, opened
from research.rewrites.report import goals_met, report


@click.command()
@click.option(
    "--mirrors",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Where `prchain mine` keeps its mirrors: data/mirrors.",
)
@click.option(
    "--stages", type=click.Path(exists=True, file_okay=False, path_type=Path), default=FOLDER, help="Other stages."
)
@click.option("--split", type=click.Choice(["tuned", "seen", "fresh"]), help="Of these stages only.")
@click.option("--show", is_flag=True, help="Print the conversations instead.")
@click.option("--verbose", is_flag=True, help="Name every rewrite and why it was refused.")
def main(mirrors: Path, stages: Path, split: str | None, show: bool, verbose: bool) -> None:
    """Measure what the gates catch of leaking rewrites, and what they refuse of honest ones."""
    judged: list[Judged] = []
    unproved: list[str] = []
    for stage in read_stages(stages):
        if split and stage.split != split:
            continue
        try:
            with opened(stage, mirrors) as ready:
                if show:
                    click.echo(f"==== {stage.key}\n{ready.text}")
                    continue
                unproved += ready.unproved()
                judged += [ready.judged(rewrite) for rewrite in stage.rewrites]
        except (PrchainError, LookRefused) as error:
            raise click.ClickException(f"{stage.key}: {error}") from None
    if show:
        return
    click.echo(report(judged, verbose))
    for words in unproved:
        click.echo(f"UNPROVED {words}")
    sys.exit(0 if goals_met(judged) and not unproved else 1)


if __name__ == "__main__":
    main()
