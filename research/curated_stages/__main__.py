"""Curate real chains in docker with scripted models, and check what the windows committed.

    python -m research.curated_stages --folder DIR --out report.md

DIR is the folder of `research.graph_stages prepare`: a database whose chains have tasks and proved tests, and mirrors.
Graphs are made from the hand-written nodes of `research.graph_stages`; then each chain whose stages all have some is
curated by `prchain curate run`'s own code, on a copy of the database, and graded by its real tests. Every stage has to
be accepted, most of its graph established, and no reader may be shown a line that only the reference adds. Exit code 1
where anything is not as it has to be.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import click

from prchain.core.console.terminal import say
from research.curated_stages.report import faults, report
from research.curated_stages.runs import curated_chain
from research.graph_stages.cases import read_chains
from trajectories.curation.windows.options import WindowOptions


@click.command()
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="Of database and mirrors.",
)
@click.option("--chain", "prefixes", multiple=True, metavar="ID", help="Of these chains only.")
@click.option("--window", default=10, show_default=True, help="Steps of a candidate.")
@click.option("--stride", default=5, show_default=True, help="Steps that are committed.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the report into a file.")
def main(folder: Path, prefixes: tuple[str, ...], window: int, stride: int, out: Path | None) -> None:
    """Curated trajectories of real stages."""
    chains = [chain for chain in read_chains() if all(stage.nodes for stage in chain.stages)]
    chosen = [chain for chain in chains if not prefixes or chain.chain.startswith(tuple(prefixes))]
    results = []
    with tempfile.TemporaryDirectory(prefix="prchain-") as scratch:
        for chain in chosen:
            say(f"{chain.repository}, chain {chain.chain}", err=True)
            results.append(curated_chain(folder, Path(scratch), chain, WindowOptions(window=window, stride=stride)))
    text = report(results)
    click.echo(text)
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    sys.exit(1 if any(map(faults, results)) or not results else 0)


if __name__ == "__main__":
    main()
