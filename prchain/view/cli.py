"""The command view."""

from __future__ import annotations

import secrets
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prchain.core.cli_options import WHICH, Command, db_option, json_option, option, repository_option
from prchain.view.places import FUNNEL

if TYPE_CHECKING:
    from prchain.view.folder import WrittenView


@click.command(cls=Command)
@option("--out", metavar="DIR", type=click.Path(path_type=Path), help="Write the pages as files into this folder.")
@repository_option
@option("--outcome", metavar="NAME", heading=WHICH, help="Only trajectories that ended so.")
@option("--limit", metavar="N", type=click.IntRange(min=1), heading=WHICH, help="At most N trajectories, the newest.")
@option("--no-reasoning", is_flag=True, heading=WHICH, help="Nothing of what models thought.")
@option(
    "--no-reference",
    is_flag=True,
    heading=WHICH,
    help="No line of a reference patch, for pages of held-out tasks; nor judges' words, proofs' logs, unused replies.",
)
@option(
    "--export",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also pages of an exported file (JSON lines): each row by its loss marks, what was left out, the card.",
)
@option("--label", metavar="NAME", help="Under this name, let chains be marked to be kept or dropped, with a note.")
@option("--host", default="127.0.0.1", show_default=True, metavar="NAME", help="The address to serve at.")
@option("--port", type=click.IntRange(0, 65535), default=0, help="Its port.  [default: a free one]")
@json_option
@db_option
def view(
    out: Path | None,
    repository: str | None,
    outcome: str | None,
    limit: int | None,
    no_reasoning: bool,
    no_reference: bool,
    export: Path | None,
    label: str | None,
    host: str,
    port: int,
    as_json: bool,
    db: str | None,
) -> None:
    """Show the database as pages: the funnel, chains, tasks, proofs, rollouts, comparisons, money, an export.

    Without --out they are served on this machine, at the address that is printed, until Ctrl-C. With --out they are
    files: send the folder to a colleague, or put it into a bucket. No page loads anything from elsewhere, and nothing
    is written to the database, but for labels with --label, which `tasks build --labels` and `export --labels` go by.
    Secrets and e-mail addresses are replaced as in an export.

    \b
    Example:
      prchain view
      prchain view --label ann
      prchain view --export sft.jsonl
      prchain view --out pages --outcome accepted --no-reference
    """
    from prchain.core.console.progress import open_progress
    from prchain.core.console.terminal import present, say
    from prchain.core.ending import when_ended
    from prchain.core.errors import UsageError
    from prchain.core.settings import Settings
    from prchain.view.folder import write_site
    from prchain.view.options import ViewOptions
    from prchain.view.processes import SiteSource
    from prchain.view.server import ViewServer
    from prchain.view.site import Site
    from sql.labels import labeller_name
    from sql.store import Store

    settings = Settings.load(db=db)
    options = ViewOptions(repository, outcome, limit, not no_reasoning, not no_reference, export)
    labeller = None if label is None else labeller_name(label)
    if labeller is not None and out is not None:
        raise UsageError("chains are marked on pages that are served: leave out --out, or --label")
    opened = Store.open_for_reading(settings.db) if labeller is None else Store.open(settings.db, create=False)
    with closing(opened) as store:
        folders = (settings.mirrors_dir, settings.data_dir)
        site = Site(store, options, *folders, settings.secrets, once=out is not None, labeller=labeller)
        site.warm()  # an unknown repository is told before anything is made
        if out is not None:
            part = f"{out} may hold only a part of the pages, and the same command writes all of them"
            with when_ended(part), open_progress(secrets=settings.secrets) as progress:
                task = progress.task("pages")
                source = SiteSource(
                    opened.url.render_as_string(hide_password=False), options, *folders, settings.secrets
                )
                written = write_site(site, out, task.advance, source=source, processes=settings.workers)
                task.done()
            row = {"folder": str(out), "first": str(out / FUNNEL), "files": written.files, "bytes": written.bytes}
            present(as_json, row, _print_written, written)
            return
        words = "the pages are not served any more" + ("; labels stay" if labeller else "")
        with when_ended(words), ViewServer(site, secrets.token_urlsafe(24), host, port) as server:
            present(as_json, {"url": server.url}, say, f"{server.url}  (Ctrl-C ends it)")
            sys.stdout.flush()
            server.serve_forever()


def _print_written(written: WrittenView) -> None:
    from prchain.core.console.terminal import counted, say

    say(f"{counted(written.files, 'file')}, {written.bytes / 1e6:,.1f} MB; open {written.folder / FUNNEL}")
