"""Namespaces of bubblewrap on this machine, with its programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

from environments.backend import PATIENCE, Backend, Usable
from environments.images.image_plan import ImagePlan
from environments.programs.program import AgentProgram
from environments.sandboxes import leftovers
from environments.sandboxes.local import PATH, LocalSandbox
from environments.sandboxes.local_layers import layers_work
from environments.sandboxes.local_places import KeepingSandbox
from environments.sandboxes.sandbox import WORKDIR, LaidFolder, ResourceLimits, Sandbox, SandboxConfig
from environments.suites.runner import TestCommand
from prchain.core.errors import PrchainError

if TYPE_CHECKING:
    from prchain.core.settings import Settings

_IMAGE_ONLY = "/opt/env"
"""Where images keep dependencies (`environments.images.plans`): hosts have no such folder."""


@dataclass(frozen=True, kw_only=True)
class LocalBackend(Backend):
    """Uses this machine's programs: there is no image with an environment to use or to refresh."""

    most_kept: int = 20_000_000_000
    """Bytes of kept places (`environments.sandboxes.local_places`)."""

    def of(self, settings: Settings) -> Self:
        """See `Backend.of`."""
        return replace(self, most_kept=int(settings.environments_kept_gigabytes * 1e9))

    def sandbox(
        self, plan: ImagePlan, image: str | None, *, limits: ResourceLimits, labels: Mapping[str, str]
    ) -> Sandbox:
        """See `Backend.sandbox`."""
        config = SandboxConfig(
            None,
            workdir=WORKDIR,
            limits=limits,
            labels=labels,
            environment=_environment(plan),
            laid=self.laid,
            place=self.place,
        )
        return self._of(config)

    def _of(self, config: SandboxConfig) -> Sandbox:
        if self.most_kept and layers_work():
            return KeepingSandbox(config, most_kept=self.most_kept)
        return LocalSandbox(config)

    def laid_program(self, program: AgentProgram, data_dir: Path) -> LaidFolder:
        """See `Backend.laid_program`."""
        return replace(super().laid_program(program, data_dir), path=program.path)

    def command(self, plan: ImagePlan) -> TestCommand:
        """See `Backend.command`; Debian's python3 comes without a program called python."""
        command = super().command(plan)
        if plan.test or not command.template.startswith("python "):
            return command
        template = "$(command -v python || command -v python3) " + command.template.removeprefix("python ")
        return replace(command, template=template)

    def refreshes(self, plan: ImagePlan) -> tuple[str, ...]:
        """See `Backend.refreshes`."""
        return tuple(script for script in plan.refresh if _IMAGE_ONLY not in script)

    def clear_away(self, *, everybody: bool = False) -> Mapping[str, bool]:
        """See `Backend.clear_away`; folders of running processes stay."""
        return {str(path): gone for path, gone in leftovers.clear_local().items()}

    def usable(self) -> Usable:
        """See `Backend.usable`."""
        try:
            with LocalSandbox(SandboxConfig(None, workdir=WORKDIR)) as sandbox:
                result = sandbox.exec("python3 --version && git --version", timeout=PATIENCE)
        except PrchainError as error:
            return Usable(False, f"bubblewrap does not work ({' '.join(str(error).split())[:100]})")
        if result.exit_code != 0:
            return Usable(False, "bubblewrap shows /usr alone, and there is no python3 or no git in it")
        return Usable(True, "bubblewrap works")


def _environment(plan: ImagePlan) -> dict[str, str]:
    """The variables that an image would set, and, as nothing is installed, where Python finds the tree's packages."""
    recipe = plan.recipe
    variables = {name: value.replace("$PATH", PATH) for name, value in {**recipe.environment, **recipe.offline}.items()}
    kept = {name: value for name, value in variables.items() if name == "PATH" or _IMAGE_ONLY not in value}
    imports = {"PYTHONPATH": "src:."} if recipe.language == "python" else {}
    return {**imports, **kept, **plan.environment}


BACKEND = LocalBackend(name="local", help="bubblewrap, with this machine's programs", rank=20)
