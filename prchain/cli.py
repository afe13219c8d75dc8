"""The command group. A stage's commands are named here as strings and imported when they are called."""

from __future__ import annotations

import functools
import importlib
import io
import os
import signal
import sys
import threading
import traceback
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

import click
from click.shell_completion import CompletionItem, shell_complete

from prchain import __version__
from prchain.completion import add_shells
from prchain.core.console.logs import logged_command, open_log
from prchain.core.console.terminal import say, say_traceback
from prchain.core.ending import ended_words
from prchain.core.errors import PrchainError, SettingsError, no_room
from prchain.core.processes.cut_off import cut_off
from prchain.core.secrets.scrub import redact
from prchain.defaults import file_defaults
from prchain.papers import PAPERS, lay_in
from prchain.renamed import written_now

FILE = "prchain.toml"

COMMANDS = {
    "demo": ("prchain.demo.cli:demo", "Run every stage on a small repository made on the spot."),
    "mine": ("miner.cli:mine", "Mine the pull requests of a list of repositories."),
    "status": ("miner.cli:status", "Say what became of every pull request."),
    "show": ("miner.cli:show", "Show one pull request with its citations in and out."),
    "chains": ("chains.cli:chains", "Choose chains of pull requests that build on each other."),
    "tasks": ("chains.tasks.cli:tasks", "Write tasks for chains, and export them."),
    "environments": ("environments.cli:environments", "Build images, and prove chains by their tests."),
    "rollouts": ("trajectories.rollouts.cli:rollouts", "Let an agent work through chains, and judge what it does."),
    "record": ("trajectories.recording.cli:record", "Run a program, and keep what it asks a model as a trajectory."),
    "curate": ("trajectories.curation.cli:curate", "Distil patches into process graphs, and roll out along them."),
    "prm": ("trajectories.studies.guidance.cli:prm", "Measure process reward models, which guide agents."),
    "judge": (
        "trajectories.studies.verdicts.cli:judge",
        "Measure the judge that accepts or sends back what agents did.",
    ),
    "export": ("trajectories.export.cli:export", "Write kept trajectories as training data, with a data card."),
    "stats": (
        "trajectories.studies.statistics.cli:stats",
        "Say what the rollouts come to, beside the paper's figures.",
    ),
    "evaluate": (
        "trajectories.studies.evaluation.cli:evaluate",
        "Print models' figures on a set of tasks: Pass@k, cost, steps.",
    ),
    "papers": ("prchain.comparisons.cli:papers", "Run the main comparison of a paper, and print its table."),
    "view": ("prchain.view.cli:view", "Show the database as pages, served here or written as files."),
    "sql": ("sql.cli:sql", "Run a named query, or one of your own, over the database."),
}
"""Command to the import path of its click command and its help line."""

PARTS = {
    "curate": ("trajectories.studies.curation.cli:study",),
    "tasks": ("prchain.imports.cli:import_", "prchain.exports.cli:export"),
    "rollouts": ("trajectories.programs.cli:install",),
    "environments": ("trajectories.studies.survey.cli:survey",),
}
"""Group to those of its commands that lie above the package of the group."""

COMPLETE = "_PRCHAIN_COMPLETE"
"""The variable in which a shell asks for completion, by click's conventions: ``bash_source``, ``bash_complete`` ..."""

INTERRUPTED = 130
"""What a shell reports for a program that Ctrl-C ended."""

TERMINATED = 128 + signal.SIGTERM
"""What a shell reports for a program that SIGTERM ended."""


class Terminated(KeyboardInterrupt):
    """SIGTERM came: what it ends ends as after Ctrl-C."""


_ENDED = "what was stored stays, run the same command again"
"""What is said of a command that was ended and says nothing else itself (`prchain.core.ending`)."""


class StageCommands(click.Group):
    """The commands of `COMMANDS`; listing them imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = _loaded(COMMANDS[cmd_name][0])
        for part in PARTS.get(cmd_name, ()):
            assert isinstance(command, click.Group)
            command.add_command(_loaded(part))
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        # click looks for the nearest name among commands that are loaded, and none is.
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.exceptions.NoSuchCommand(args[0], possibilities=COMMANDS, ctx=ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        # click's own would load every command, for its line of help.
        found = [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


def _loaded(place: str) -> click.Command:
    module, _, name = place.partition(":")
    command = getattr(importlib.import_module(module), name)
    assert isinstance(command, click.Command)
    return command


@click.group(cls=StageCommands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="prchain")
@click.option("-v", "--verbose", count=True, help="Log on standard error what is done; -vv with details.")
@click.option(
    "--log-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Append the log to a file instead, also without -v.",
)
@click.option(
    "--as-paper",
    type=click.Choice(PAPERS),
    help="Give the command the settings that a paper names for it; its own options go before.",
)
@click.pass_context
def cli(ctx: click.Context, verbose: int, log_file: Path | None, as_paper: str | None) -> None:
    """Turn the pull-request history of real repositories into training data for software-engineering agents.

    Pull requests that build on each other become chains, chains become tasks, and what an agent does with a task,
    stage by stage, becomes a sample. Each command goes on where the one before ended, in one database:

    \b
      prchain mine repos.txt          pull requests, and what they cite
      prchain chains build            which of them build on each other
      prchain tasks build             what an agent is asked; needs a model
      prchain environments validate   images, and tests that prove each stage
      prchain rollouts run            an agent works, a judge rates; needs models
      prchain export --out sft.jsonl  samples for fine-tuning, with a data card

    Any of them can be killed and started again. `prchain demo` runs all of them on a small repository, without network
    or key; `prchain status` says what came of each so far.
    """
    ctx.with_resource(open_log(verbose, log_file, _secrets))
    ctx.with_resource(_prompts())
    ctx.with_resource(logged_command(f"prchain {__version__} {ctx.invoked_subcommand}"))
    assert isinstance(ctx.command, click.Group)
    ctx.default_map = file_defaults(ctx.command, ctx, ctx.invoked_subcommand, Path(FILE))
    if as_paper and ctx.invoked_subcommand:
        lay_in(as_paper, ctx.command, ctx, ctx.invoked_subcommand)


def main() -> None:
    """Run `prchain` and exit: 0 done, 1 not all done, 2 wrong usage, 130 interrupted, 143 terminated; a failure is one
    line.

    Where a shell asks for completion, it is answered instead.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # mined text may be more than the terminal can encode
    if completion_request := os.environ.get(COMPLETE):
        add_shells()
        sys.exit(shell_complete(cli, {}, "prchain", COMPLETE, completion_request))
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    status = run(sys.argv[1:])
    if status and any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        cut_off(status)  # Python would wait for the threads
    sys.exit(status)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; failures go to standard error, without secrets."""
    try:
        with cli.make_context("prchain", arguments) as context:
            cli.invoke(context)
        sys.stdout.flush()
        return 0
    except click.exceptions.Exit as end:
        return end.exit_code
    except PrchainError as error:
        return _fail(error, error.exit_code)
    except (click.exceptions.NoSuchCommand, click.exceptions.NoSuchOption) as error:
        where = error.ctx.command_path if error.ctx else "prchain"
        flag = error.option_name if isinstance(error, click.exceptions.NoSuchOption) else ""
        if now := written_now(where.removeprefix("prchain "), flag):
            say(f"prchain: error: {flag} of `{where}` is gone; write {now}", err=True)
            return error.exit_code
        hint = "" if error.possibilities else f" See `{where} --help`."
        say(f"prchain: error: {error.format_message()}{hint}", err=True)
        return error.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "prchain"
        say(f"prchain: error: {' '.join(error.format_message().split())} See `{where} --help`.", err=True)
        return error.exit_code
    except click.ClickException as error:
        say(f"prchain: error: {error.format_message()}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt) as end:
        return _ended(end)
    except BrokenPipeError:
        # The reader of our output is gone, as with `head`. Nothing can be written any more, not even by Python's flush
        # at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # the boundary: an error without a class in prchain.core.errors is a defect, shown whole
        if full := no_room(error):
            return _fail(full, full.exit_code)
        if isinstance(error, RuntimeError) and isinstance(error.__context__, KeyboardInterrupt):
            return _ended(error.__context__)  # a signal that comes while Python waits can find a lock not held
        say_traceback(redact(traceback.format_exc(), _secrets()))
        click.echo("prchain: this is a defect of prchain; please report the lines above", err=True)
        return 1


def _terminate(_number: int, _frame: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one waits for nothing
    raise Terminated


def _ended(end: BaseException) -> int:
    """Say that a signal ended the command; the exit code of that."""
    word, status = ("terminated", TERMINATED) if isinstance(end, Terminated) else ("interrupted", INTERRUPTED)
    click.echo(f"prchain: {word}; {ended_words(end) or _ENDED}", err=True)
    return status


def _fail(error: PrchainError, status: int) -> int:
    if os.environ.get("PRCHAIN_DEBUG"):
        say_traceback(redact(traceback.format_exc(), _secrets()))
    say(f"prchain: error: {' '.join(redact(str(error), _secrets()).split())}", err=True)
    return status


def _prompts() -> AbstractContextManager[None]:
    """The user's own prompts, which are looked for when the first prompt is wanted."""
    from prchain.core.llm.own_prompts import PromptFolder
    from prchain.core.llm.prompts import Prompt, laid_in
    from prchain.prompts import KNOWN

    @functools.cache
    def own() -> PromptFolder | None:
        from prchain.core.settings import Settings

        folder = Settings.load().prompts_dir
        return PromptFolder(folder, KNOWN) if folder else None

    def found(package: str, name: str) -> Prompt | None:
        folder = own()
        return None if folder is None else folder(package, name)

    return laid_in(found)


def _secrets() -> tuple[str, ...]:
    from prchain.core.settings import Settings

    try:
        return Settings.load().secrets
    except SettingsError:
        return *os.environ.get("GITHUB_TOKEN", "").split(","), os.environ.get("OPENAI_API_KEY", "")


if __name__ == "__main__":
    main()
