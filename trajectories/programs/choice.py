"""Which agent a name means: one of our scaffolds, or a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from environments.backends import DEFAULT
from prchain.core.errors import UsageError
from trajectories.agents.scaffolds.kinds import SCAFFOLDS
from trajectories.agents.scaffolds.scaffold import Scaffold
from trajectories.options import RolloutOptions
from trajectories.programs.spec import Programs, ProgramSpec

if TYPE_CHECKING:
    from environments.backend import Backend
    from prchain.core.settings import Settings


class ShippedAgents(Mapping[str, Any]):
    """Our scaffolds, and the programs that ship, by name; each has a ``help``."""

    def __getitem__(self, name: str) -> Any:
        return SCAFFOLDS[name] if name in SCAFFOLDS else Programs()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*SCAFFOLDS, *Programs()}))

    def __len__(self) -> int:
        return len(SCAFFOLDS) + len(Programs())


def named_program(name: str, settings: Settings) -> ProgramSpec:
    """The program of a name. Raises `UsageError`."""
    programs = Programs(settings.agents_dir)
    if name not in programs:
        raise UsageError(f"there is no agent program {name!r}; known are {', '.join(programs)}")
    return programs[name]


def make_scaffold(options: RolloutOptions, settings: Settings, backend: Backend) -> Scaffold:
    """The scaffold that the options name. Raises `UsageError`."""
    if options.scaffold in SCAFFOLDS:
        return SCAFFOLDS[options.scaffold].make(options)
    programs = Programs(settings.agents_dir)
    if options.scaffold not in programs:
        known = ", ".join(sorted({*SCAFFOLDS, *programs}))
        raise UsageError(f"there is no scaffold {options.scaffold!r}; known are {known}")
    from trajectories.programs.scaffold import ProgramScaffold  # noqa: PLC0415  pages of help need names alone

    program = programs[options.scaffold]
    laid = backend.laid_program(program.program, settings.data_dir)
    return ProgramScaffold(program, options, laid, settings.secrets)


def require_program(options: RolloutOptions, settings: Settings, backend: Backend) -> None:
    """Make sure that the program that the options name, if any, is installed. Raises `UsageError`, and what an engine
    raises."""
    if options.scaffold in SCAFFOLDS:
        return
    program = named_program(options.scaffold, settings)
    if not backend.has_program(program.program, settings):
        where = "" if backend.name == DEFAULT else f" --backend {backend.name}"
        raise UsageError(f"{program.name} is not installed; run `prchain rollouts install {program.name}{where}`")
