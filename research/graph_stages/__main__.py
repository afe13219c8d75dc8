"""Replay hand-written nodes of real stages in docker, make their graphs, and put wrong nodes to the rules.

    python -m research.graph_stages run --folder DIR --out report.md

DIR has a database ``prchain.db`` in which the chains of ``stages`` have tasks and proved tests (`prepare` makes them).
Of each stage the nodes that were written by hand, and edits that are derived from the reference patch, are proposed by
a scripted model in a whole run of a graph. Every fact has to be reproduced, the edits have to give the bytes of the
landed commit, and the graph has to converge. Then each wrong node has to be refused by the rule that is named with it.
Graphs are written to a copy of the database. Exit code 1 where anything is not as it has to be.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from prchain.core.console.terminal import say
from research.graph_stages.cases import HandChain, read_chains
from research.graph_stages.prepare import prepare_folder
from research.graph_stages.report import StageResult, report
from research.graph_stages.runs import chain_results


@click.group()
def main() -> None:
    """Process graphs of real stages, by hand."""


def _chosen(prefixes: Sequence[str]) -> list[HandChain]:
    chains = read_chains()
    return [chain for chain in chains if not prefixes or chain.chain.startswith(tuple(prefixes))]


_folder = click.option(
    "--folder", type=click.Path(path_type=Path, file_okay=False), required=True, help="Of database and mirrors."
)
_only = click.option("--chain", "prefixes", multiple=True, metavar="ID", help="Of these chains only.")


@main.command()
@_folder
@_only
@click.option("--repos", type=click.Path(exists=True, path_type=Path), required=True, help="The list of mirrors.")
def prepare(folder: Path, prefixes: tuple[str, ...], repos: Path) -> None:
    """Mine the mirrors of a list, write the tasks of the chains, and prove their stages."""
    sys.exit(prepare_folder(folder, repos, _chosen(prefixes)))


@main.command()
@_folder
@_only
@click.option("--stage", "positions", type=int, multiple=True, help="Of these positions only.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Also write the report into a file.")
@click.option("--verbose", is_flag=True, help="Say why each wrong node was refused.")
def run(folder: Path, prefixes: tuple[str, ...], positions: tuple[int, ...], out: Path | None, verbose: bool) -> None:
    """Make the graphs, put the wrong nodes to the rules, and print a report."""
    results: list[StageResult] = []
    with tempfile.TemporaryDirectory(prefix="prchain-") as name:
        for hand in _chosen(prefixes):
            results += chain_results(folder, Path(name), hand, positions, lambda words: say(words, err=True))
    text = report(results, verbose=verbose)
    click.echo(text)
    if out is not None:
        out.write_text(f"{text}\n", encoding="utf-8")
    sys.exit(0 if results and all(result.right for result in results) else 1)


if __name__ == "__main__":
    main()
