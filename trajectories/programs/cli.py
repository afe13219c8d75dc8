"""The command that installs an agent program."""

from __future__ import annotations

import click

from environments.backends import BACKENDS, chosen_backend
from prchain.core.cli_options import Command, backend_options, json_option, option
from prchain.core.console.terminal import present, say
from prchain.core.loading import load_settings
from prchain.core.waiting import waiting_for


@click.command(cls=Command)
@click.argument("name")
@option("--renew", is_flag=True, help="Install it anew where it is there.")
@backend_options(BACKENDS)
@json_option
def install(name: str, renew: bool, backend: str | None, unsafe: bool, as_json: bool) -> None:
    """Install an agent program, once, for the sandboxes of a backend.

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
    program = named_program(name, settings)
    with where.connected() as connected:
        new = renew or not connected.has_program(program.program, settings)
        if new:
            say(f"installing {name} {program.version} ({program.licence})", err=True)
            with waiting_for(f"the installation of {name}"):
                connected.install_program(program.program, settings)
    report = {"name": name, "version": program.version, "licence": program.licence, "installed": new}
    present(as_json, report, say, f"{name} {program.version} {'is installed' if new else 'was installed before'}")
