"""The command that records a program of others."""

from __future__ import annotations

import os
import re
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prchain.core.cli_options import Command, budget_option, db_option, json_option, option
from prchain.core.console.terminal import counted, dollars, present, say, tally
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from prchain.core.storable import clean_text
from sql.opening import opened_store

if TYPE_CHECKING:
    from prchain.core.settings import Settings
    from trajectories.recording.recorder import ProgramRecorder


_STDERR = 2
"""Its descriptor."""
_REPOSITORY = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}", re.A)


@click.command(cls=Command, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, metavar="-- COMMAND [ARGUMENT]...", type=click.UNPROCESSED)
@option("--name", metavar="NAME", help="What the agent is called.  [default: the command's name]")
@option("--repository", metavar="OWNER/NAME", help="What it works on.")
@option("--source", metavar="NAME", help="Who made the trajectory, for cards.")
@option("--licence", metavar="NAME", help="Of the trajectory, for cards.")
@budget_option()
@db_option
@json_option
def record(
    command: tuple[str, ...],
    name: str | None,
    repository: str | None,
    source: str | None,
    licence: str | None,
    budget: float | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Run a program, and keep what it asks a model as a trajectory without a chain, of outcome `recorded`.

    The program gets OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL; `{base_url}`, `{token}` and `{model}` in its
    arguments are filled in. It asks an endpoint on this machine, and that asks the model of purpose `agent`, whose real
    key the program never sees. A summary, a sub-agent or a title that it asks for is a trajectory of its own.

    \b
    Example:
      prchain record --name mini -- mini -m openai/{model} -t "Mend it" -y
      prchain rollouts audit
      prchain export --format slime --outcome recorded --out recorded.jsonl
    """
    from sql.ledger import open_gateway
    from trajectories.recording.program import command_line, running, variables
    from trajectories.recording.recorder import PURPOSE, ProgramRecorder
    from trajectories.recording.server import serving
    from trajectories.recording.storing import RecordedProgram, store_branch

    if repository is not None and not _REPOSITORY.fullmatch(repository):
        raise UsageError(f"--repository is OWNER/NAME, not {repository[:80]!r}")
    settings = load_settings(db=db)
    run = uuid.uuid4().hex
    with (
        opened_store(settings.db, create=True) as store,
        open_gateway(settings, store, [PURPOSE], budget_usd=budget, run=run) as gateway,
    ):
        agent = clean_text(name or Path(command[0]).name)[:255]
        source, licence = source and clean_text(source)[:255], licence and clean_text(licence)[:64]
        model = gateway.model_name(PURPOSE)
        program = RecordedProgram(run, agent, model, source=source, licence=licence, repository=repository)
        recorder = ProgramRecorder(gateway, run, partial(store_branch, store, program), settings.secrets)
        with serving(recorder) as server:
            words = command_line(command, server.base_url, server.token, model)
            given = variables(os.environ, _keys(settings), server.base_url, server.token, model)
            with running(words, given, stdout=_STDERR if as_json else None) as process:
                code = process.wait()
        spent = gateway.spending()
    report: dict[str, Any] = {
        "trajectories": [program.trajectory_id(branch) for branch in recorder.conversations.branches],
        "exit_code": code,
        "calls": spent.calls,
        "usd": spent.cost,
        "failed": dict(recorder.failed),
        "secrets": recorder.found_secrets.total(),
    }
    present(as_json, report, partial(_print, recorder), report)
    end_command(
        done=code == 0,
        good=len(report["trajectories"]),
        nothing=f"{agent} asked nothing: does it read OPENAI_BASE_URL, or take {{base_url}} as an argument?",
    )


def _keys(settings: Settings) -> frozenset[str]:
    """The keys of the endpoints."""
    own = settings.llm_api_key.get_secret_value() if settings.llm_api_key else None
    keys = (own, *(purpose.api_key for purpose in settings.purposes.values()))
    return frozenset(key for key in keys if key)


def _print(recorder: ProgramRecorder, report: dict[str, Any]) -> None:
    branches = recorder.conversations.branches
    turns = sum(len([1 for it in branch.entries if it.kind == "turn"]) - branch.shared for branch in branches)
    words = f"{counted(len(branches), 'trajectory')} recorded, with {counted(turns, 'reply')}"
    if branches or report["calls"]:
        say(f"{words}; {counted(report['calls'], 'call')}, {dollars(report['usd'])}", err=True)
    for branch, name in zip(branches, report["trajectories"], strict=True):
        of = "" if branch.left is None else f", from {report['trajectories'][branch.left.number]} on"
        say(f"  {name}  {counted(len(branch.entries), 'message')}{of}", err=True)
    if report["failed"]:
        say(f"  without a reply: {tally(report['failed'])}", err=True)
    if report["secrets"]:
        say(f"  {counted(report['secrets'], 'secret')} replaced", err=True)
    if report["exit_code"]:
        say(f"  the program ended with exit code {report['exit_code']}", err=True)
