"""The interface of a sandbox backend: it makes sandboxes, and says everything in which backends differ.

Each module of `environments.backends` holds one backend without a user's settings; `Backend.of` adds them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from environments.images.image_plan import ImagePlan
from environments.programs.host import host_folder, install_on_host, installed_size
from environments.programs.program import AgentProgram
from environments.sandboxes.sandbox import WORKDIR, LaidFolder, ResourceLimits, Sandbox
from environments.suites.runner import PIPED, TestCommand
from environments.suites.runners import RUNNERS

if TYPE_CHECKING:
    from prchain.core.settings import Settings

PATIENCE = 10
"""Seconds that a backend has to show whether it works."""


@dataclass(frozen=True, slots=True)
class Usable:
    """Whether a backend works on this machine, and why, in few words. `image` is the base image, where it needs one."""

    works: bool
    why: str
    image: str | None = None


@dataclass(frozen=True, kw_only=True)
class Backend(ABC):
    """One sandbox backend, with its settings."""

    name: str
    """On command lines and in stored rows: at most 16 characters."""
    help: str
    """Where commands run, in few words."""
    rank: int
    """The demo takes the backend with the smallest rank of those that work on the machine."""
    needs_image: bool = False
    """Whether sandboxes are made of images of the Docker engine (`environments.images`)."""
    unsafe: bool = False
    """Whether commands run on this machine without isolation; ``--unsafe-local`` has to allow that."""
    workdir: str | None = WORKDIR
    """The repository's folder in its sandboxes; None where it is not known in advance."""
    client: Any = None
    """Where it needs images: a `docker.DockerClient`, while it is `connected`."""
    laid: tuple[LaidFolder, ...] = ()
    """Folders that its sandboxes see."""
    place: str = ""
    """As `SandboxConfig.place`, of its sandboxes; a backend that keeps no places has no use for it."""

    def of(self, settings: Settings) -> Self:
        """The backend with its values from the settings."""
        return self

    @contextmanager
    def connected(self) -> Iterator[Self]:
        """The backend with what its sandboxes share, which is closed at the end. Raises `EngineUnavailable`."""
        yield self

    @abstractmethod
    def sandbox(
        self, plan: ImagePlan, image: str | None, *, limits: ResourceLimits, labels: Mapping[str, str]
    ) -> Sandbox:
        """A new sandbox for a plan, not started."""

    def command(self, plan: ImagePlan) -> TestCommand:
        """How the plan's tests are run: the runner's command, or the recipe's own in its place.

        A recipe's command that does not start our reporter is not signed: its printed output is parsed.
        """
        command = RUNNERS[plan.runner].command
        command = replace(command, arguments=(*command.arguments, *plan.arguments))
        if not plan.test:
            return command
        signed = command.signed and "{tools}" in plan.test
        own = plan.test if signed or "{report}" in plan.test else f"{plan.test} {PIPED}"
        return replace(command, template=own, signed=signed)

    def refreshes(self, plan: ImagePlan) -> tuple[str, ...]:
        """The refresh scripts that apply to its sandboxes."""
        return plan.refresh

    def laid_program(self, program: AgentProgram, data_dir: Path) -> LaidFolder:
        """Where a program lies once it is installed, and where its sandboxes see it."""
        source = str(host_folder(program, data_dir))
        return LaidFolder(source, source)

    def has_program(self, program: AgentProgram, settings: Settings) -> bool:
        """Whether a program is installed, whole. Raises `EngineUnavailable`."""
        return self.program_size(program, settings) is not None

    def program_size(self, program: AgentProgram, settings: Settings) -> int | None:
        """Bytes that an installed program takes, once for all sandboxes, 0 where its installation did not tell; None
        where it is not installed. Raises `EngineUnavailable`."""
        return installed_size(host_folder(program, settings.data_dir))

    def install_program(self, program: AgentProgram, settings: Settings) -> None:
        """Install a program anew, with the network. Raises `BuildFailed`, and what an engine raises."""
        install_on_host(program, settings)

    @abstractmethod
    def clear_away(self, *, everybody: bool = False) -> Mapping[str, bool]:
        """Remove leftovers of processes that have ended; returns the name of each, and whether it is gone.

        With `everybody` also what running processes and other machines have made. Raises `EngineUnavailable`.
        """

    @abstractmethod
    def usable(self) -> Usable:
        """Whether it works here. Takes some seconds at most, and raises nothing."""
