"""The command that imports trajectories of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from prchain.core.cli_options import db_option, json_option
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, tally
from prchain.core.endings import end_command
from prchain.core.loading import load_settings
from sql.opening import opened_store

if TYPE_CHECKING:
    from trajectories.imports.importing import TrajectoryImportReport

_MOST_TOLD = 20


@click.command("import")
@click.argument("path", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(["atif"]), default="atif", show_default=True, help="Its format.")
@click.option("--source", metavar="NAME", help="Who published it.  [default: what a document says]")
@click.option("--licence", metavar="NAME", help="Of the documents.  [default: what a document says]")
@db_option
@json_option
def import_(path: Path, form: str, source: str | None, licence: str | None, db: str | None, as_json: bool) -> None:
    """Take in trajectories of others: documents of ATIF-v1.0 to v1.8, one a file (*.json) or one a line (*.jsonl).

    They have no chain and no verdict of ours, and the outcome `imported`. Audit, `prm replay`, figures and exports take
    them; data for training hold them with `export --outcome imported` alone. A document that was imported before adds
    nothing; --source and --licence then say anew whose it is. A document that cannot be read is told of in one line.

    \b
    Example:
      prchain rollouts import --format atif jobs --source "our runs"
      prchain rollouts import --format atif trajectories.jsonl
      prchain rollouts audit
      prchain export --format slime --outcome imported --out theirs.jsonl
    """
    from trajectories.imports.importing import TrajectoryImporter

    settings = load_settings(db=db)
    told = 0

    def tell(line: str) -> None:
        nonlocal told
        told += 1
        if told <= _MOST_TOLD:
            say(line, err=True)

    with opened_store(settings.db, create=True) as store, open_progress(secrets=settings.secrets) as progress:
        importer = TrajectoryImporter(store, source=source, licence=licence, secrets=settings.secrets)
        report = importer.run(path, tell, progress)
    if told > _MOST_TOLD:
        say(f"and {counted(told - _MOST_TOLD, 'more document')} that cannot be read", err=True)
    present(as_json, report.row(), _print, report)
    end_command(done=not report.bad, good=report.good, nothing="no trajectory was imported")


_WORDS = {
    "images": "images",
    "audios": "sounds",
    "subagents": "trajectories of sub-agents",
    "continuations": "references to continuations",
    "token_ids": "lists of token ids and log-probabilities",
    "tools": "tool definitions of another form than OpenAI's",
    "verdicts": "verdicts that cannot be read",
}


def _print(report: TrajectoryImportReport) -> None:
    words = f"{counted(report.imported, 'trajectory')} imported, with {counted(report.steps, 'step')}"
    say(f"{words}; {report.known:,} there before, {report.bad:,} cannot be read")
    if report.relabelled:
        say(f"  {report.relabelled:,} of those before have another source or licence now")
    if report.passed_over:
        say(f"  {counted(report.passed_over, 'file')} of another format passed over")
    if report.left_out:
        say(f"  not taken: {tally({_WORDS[name]: count for name, count in report.left_out.items()})}")
    if report.secrets:
        say(f"  {counted(report.secrets, 'secret')} replaced")
    for count, what in ((report.without_source, "source"), (report.without_licence, "licence")):
        if count:
            of = counted(count, "trajectory")
            say(f"  nobody says the {what} of {of}: import again with --{what}, or cards say unknown")
    if report.imported:
        say("`prchain rollouts list` shows them; `prchain export --outcome imported` writes them")
