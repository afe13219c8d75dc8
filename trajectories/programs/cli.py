"""The command that installs an agent program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from environments.backends import BACKENDS, chosen_backend
from prchain.core.cli_options import Command, backend_options, json_option, option
from prchain.core.console.terminal import megabytes, present, say, say_table
from prchain.core.loading import load_settings
from prchain.core.waiting import waiting_for

if TYPE_CHECKING:
    from environments.backend import Backend
    from prchain.core.settings import Settings


@click.command(cls=Command)
@click.argument("name", required=False)
@option("--renew", is_flag=True, help="Install it anew where it is there.")
@backend_options(BACKENDS)
@json_option
def install(name: str | None, renew: bool, backend: str | None, unsafe: bool, as_json: bool) -> None:
    """Install an agent program, or list them.

    Once for all sandboxes of a backend; without a NAME it lists all, with what the installed ones take.

    Its lines run with the network, in a container of the Docker engine, or on this machine as you for other backends.
    What they leave lies in one volume, or one folder, which sandboxes see read-only.

    \b
    Example:
      prchain rollouts install opencode
      prchain rollouts run --scaffold opencode
    """
    from trajectories.programs.choice import named_program

    settings = load_settings()
    where = chosen_backend(backend or settings.environments_backend, unsafe=unsafe).of(settings)
    if name is None:
        if renew:
            raise click.UsageError("--renew needs the NAME of an agent program")
        present(as_json, *_installed(where, settings))
        return
    program = named_program(name, settings)
    with where.connected() as connected:
        new = renew or not connected.has_program(program.program, settings)
        if new:
            say(f"installing {name} {program.version} ({program.licence})", err=True)
            with waiting_for(f"the installation of {name}"):
                connected.install_program(program.program, settings)
        size = connected.program_size(program.program, settings)
    report = {"name": name, "version": program.version, "licence": program.licence, "installed": new, "bytes": size}
    words = f"{name} {program.version} {'is installed' if new else 'was installed before'}"
    present(as_json, report, say, f"{words}, {megabytes(size)}" if size else words)


def _installed(where: Backend, settings: Settings) -> tuple[Any, ...]:
    """What `present` takes: all agent programs, and what the installed ones take on the disk."""
    from trajectories.programs.spec import Programs

    rows, cells = [], []
    with where.connected() as connected:
        for program in Programs(settings.agents_dir).values():
            size = connected.program_size(program.program, settings)
            row = {"name": program.name, "version": program.version, "licence": program.licence}
            rows.append(row | {"installed": size is not None, "bytes": size, "goes_on": program.next is not None})
            cells.append((*row.values(), _taken(size)))
    return {"programs": rows}, say_table, ("name", "version", "licence", "installed"), cells


def _taken(size: int | None) -> str:
    if size is None:
        return "no"
    return megabytes(size) if size else "yes"
