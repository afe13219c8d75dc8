"""The command that imports tasks of others."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from chains.imports.forms import FORMS
from prchain.core.cli_options import CatalogueOption, db_option, json_option
from prchain.core.console.terminal import counted, present, say
from prchain.core.endings import end_command
from prchain.core.loading import load_settings
from sql.opening import opened_store

if TYPE_CHECKING:
    from chains.imports.reading import ReadRow
    from chains.imports.report import ImportReport

_MOST_TOLD = 20


@click.command("import")
@click.argument("path", metavar="FILE|FOLDER", type=click.Path(path_type=Path))
@click.option("--source", metavar="NAME", help="The data set's name, where its path does not tell it.")
@click.option("--form", cls=CatalogueOption, of=FORMS, metavar="FORM", help="Where columns do not tell it.")
@click.option(
    "--repositories",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Git repositories OWNER/NAME, OWNER__NAME or NAME in it, beside those that were mined.",
)
@click.option("--images", is_flag=True, help="Take what no repository holds out of the publishers' images.")
@click.option("--training", is_flag=True, help="Made for training: it gets no mark, and an old one goes.")
@db_option
@json_option
def import_(
    path: Path,
    source: str | None,
    form: str | None,
    repositories: Path | None,
    images: bool,
    training: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Take in tasks that others published: SWE-bench, SWE-Gym, SWE-rebench, SWE-smith, Multi-SWE-bench and the like,
    and Harbor's folders.

    Each row becomes a chain of one stage with the strategy `imported`, and its task, with the query word for word but
    secrets; a folder of Harbor's becomes one with a stage for each step. The trees are made where a git repository
    holds the commit, and with --images out of the image that the publisher names, for Harbor by its oracle there; a
    task without either waits, and the same command takes it up later. What is not known to be made for training is
    marked as a benchmark's, and no export of samples takes it unless told.

    \b
    Example:
      prchain tasks import swe-gym-lite.jsonl --repositories clones
      prchain tasks import swe-gym-lite.jsonl --images
      prchain tasks import harbor/stages --images
      prchain tasks import ~/.cache/huggingface/hub/datasets--nebius--SWE-rebench
    """
    from chains.imports.importing import Importer
    from chains.imports.reading import read_instances
    from prchain.imports.trees import EngineTrees

    settings = load_settings(db=db)
    told = 0

    def tell(row: ReadRow) -> None:
        nonlocal told
        told += 1
        if told <= _MOST_TOLD:
            say(str(row), err=True)

    with opened_store(settings.db, create=True) as store, EngineTrees(settings.environments_engine) as trees:
        taken = trees if images else None
        importer = Importer(store, settings.data_dir, settings.mirrors_dir, repositories, taken)
        report = importer.run(read_instances(path, source=source, form=form), tell, training=training)
    if told > _MOST_TOLD:
        say(f"and {counted(told - _MOST_TOLD, 'more row')} that hold no task", err=True)
    present(as_json, report.row(), _print, report)
    nothing = "no task was imported"
    end_command(done=not report.bad and not report.waiting, good=report.good, nothing=nothing)


def _print(report: ImportReport) -> None:
    say(f"{counted(report.imported, 'task')} imported, {report.known:,} there before, {report.bad:,} hold no task")
    if report.no_query:
        say(f"  {report.no_query:,} of these ask nothing: their publisher wrote no query")
    if report.files_unread:
        say(f"  {counted(report.files_unread, 'file')} could not be read to the end: more rows may be in there")
    if report.benchmark:
        say(f"  {report.benchmark:,} of a benchmark: exports of samples leave them out")
    if report.secrets:
        say(f"  {counted(report.secrets, 'secret')} replaced in their queries")
    for folder, reason in report.passed_over.items():
        say(f"  passed over {folder}: {reason}")
    if report.waiting:
        most = ", ".join(f"{name} ({count:,})" for name, count in report.waiting.most_common(5))
        say(f"  {report.waiting.total():,} wait for a git repository with their commit: {most}")
        say("  mine them, give a folder of clones with --repositories, or take them from their images with --images")
    if report.imported:
        say("`prchain environments validate --strategy imported` proves them")
