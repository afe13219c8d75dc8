"""What a sandbox backend is: settings that make its sandboxes, and all in which one backend differs from another.

One module of `environments.backends` holds one, as it is before a user's settings (`Backend.of`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from environments.images.plans import WORKDIR, ImagePlan
from environments.sandboxes.sandbox import ResourceLimits, Sandbox
from environments.suites.runner import PIPED, TestCommand
from environments.suites.runners import RUNNERS
from prchain.settings import Settings

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
    """Of those that work on a machine the demo takes the one with the smallest."""
    needs_image: bool = False
    """Whether sandboxes are made of images of the Docker engine (`environments.images`)."""
    unsafe: bool = False
    """Whether nothing keeps commands off this machine, so that ``--unsafe-local`` has to say yes to it."""
    workdir: str | None = WORKDIR
    """Where a repository lies in its sandboxes; None where that is not known before."""
    client: Any = None
    """Where it needs images: a `docker.DockerClient`, while it is `connected`."""

    def of(self, settings: Settings) -> Self:
        """The backend with what the settings say of it."""
        return self

    @contextmanager
    def connected(self) -> Iterator[Self]:
        """The backend with what its sandboxes can share, which is closed at the end. Raises `EngineUnavailable`."""
        yield self

    @abstractmethod
    def sandbox(
        self, plan: ImagePlan, image: str | None, *, limits: ResourceLimits, labels: Mapping[str, str]
    ) -> Sandbox:
        """A new sandbox for a plan, not started."""

    def command(self, plan: ImagePlan) -> TestCommand:
        """How the plan's tests are run: the runner's command, or the recipe's own in its place.

        A command of a recipe's that does not start our reporter is read by what it prints, which is not signed.
        """
        command = RUNNERS[plan.runner].command
        if not plan.test:
            return command
        signed = command.signed and "{tools}" in plan.test
        own = plan.test if signed or "{report}" in plan.test else f"{plan.test} {PIPED}"
        return replace(command, template=own, signed=signed)

    def refreshes(self, plan: ImagePlan) -> tuple[str, ...]:
        """The refresh scripts that mean something in its sandboxes."""
        return plan.refresh

    @abstractmethod
    def clear_away(self, *, everybody: bool = False) -> Mapping[str, bool]:
        """Remove what processes that are gone left behind: what there was, and whether it is gone.

        With `everybody` also what running processes and other machines have made. Raises `EngineUnavailable`.
        """

    @abstractmethod
    def usable(self) -> Usable:
        """Whether it works here. Takes some seconds at most, and raises nothing."""
