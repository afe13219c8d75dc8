"""Containers of a Docker engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from environments.backend import PATIENCE, Backend, Usable
from environments.images.base_image import NAME
from environments.images.image_plan import ImagePlan
from environments.images.image_settings import BuildSettings
from environments.images.images import find_tagged
from environments.images.interpreters.layers import tools_name
from environments.programs.program import AgentProgram
from environments.programs.volumes import clear_volumes, install_in_volume, volume_name, volume_size
from environments.sandboxes import leftovers
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import BASE_LABEL, LONG, connect, engine_failures
from environments.sandboxes.kept_places import bound_places, drop_places
from environments.sandboxes.own_layers import area, engine_layers
from environments.sandboxes.sandbox import LaidFolder, ResourceLimits, Sandbox, SandboxConfig
from prchain.core.errors import PrchainError

if TYPE_CHECKING:
    from prchain.core.settings import Settings


@dataclass(frozen=True, kw_only=True)
class DockerBackend(Backend):
    """Sandboxes share one client while the backend is `connected`; otherwise each makes its own."""

    engine: str | None = None
    """The engine's URL; None: the one that DOCKER_HOST names."""
    base_image: str = NAME
    """The base of images; our own (`environments.images.base_image`) works, too."""
    most_kept: int = 20_000_000_000
    """Bytes of kept places (`environments.sandboxes.kept_places`)."""

    def of(self, settings: Settings) -> Self:
        """See `Backend.of`."""
        return replace(
            self,
            engine=settings.environments_engine,
            base_image=settings.environments_base_image,
            most_kept=int(settings.environments_kept_gigabytes * 1e9),
        )

    @contextmanager
    def connected(self) -> Iterator[Self]:
        """See `Backend.connected`."""
        with closing(connect(self.engine, timeout=LONG)) as client:
            yield replace(self, client=client)

    def sandbox(
        self, plan: ImagePlan, image: str | None, *, limits: ResourceLimits, labels: Mapping[str, str]
    ) -> Sandbox:
        """See `Backend.sandbox`."""
        config = SandboxConfig(
            image,
            workdir=plan.workdir,
            limits=limits,
            labels=labels,
            environment=dict(plan.environment),
            laid=self.laid,
            place=self.place,
        )
        return DockerSandbox(
            config,
            client=self.client,
            engine=self.engine,
            relay_image=self._relay_image,
            most_kept=self.most_kept,
        )

    def _relay_image(self, client: Any) -> str:
        """What has a python3: the base image with the tools of every build, or one whose base image has them."""
        tools = tools_name(client, BuildSettings(self.base_image))
        return tools if find_tagged(client, tools) else self.base_image

    def laid_program(self, program: AgentProgram, data_dir: Path) -> LaidFolder:
        """See `Backend.laid_program`: in a volume of the engine, since that may be elsewhere."""
        return LaidFolder(program.path, volume_name(program))

    def program_size(self, program: AgentProgram, settings: Settings) -> int | None:
        """See `Backend.program_size`."""
        with self._engine_client() as client:
            return volume_size(client, self._relay_image(client), program)

    def install_program(self, program: AgentProgram, settings: Settings) -> None:
        """See `Backend.install_program`: in a container."""
        with self._engine_client() as client:
            install_in_volume(client, program, BuildSettings.of(settings))

    @contextmanager
    def _engine_client(self) -> Iterator[Any]:
        if self.client is not None:
            yield self.client
            return
        with self.connected() as backend:
            yield backend.client

    def clear_away(self, *, everybody: bool = False) -> Mapping[str, bool]:
        """See `Backend.clear_away`."""
        with self.connected() as backend:
            found = leftovers.find(backend.client, everybody=everybody)
            kept = leftovers.remove(backend.client, found)
            client = backend.client
            places = drop_places(client) if everybody else dict.fromkeys(bound_places(client, self.most_kept), True)
            layers = _clear_layers(client, everybody=everybody)
            volumes = clear_volumes(client, lambda: self._relay_image(client), everybody=everybody)
        gone = {f"{item.kind} {item.name}": item not in kept for item in found}
        gone |= {f"place {name}": is_gone for name, is_gone in places.items()}
        gone |= {f"volume {name}": is_gone for name, is_gone in volumes.items()}
        return gone | {str(path): is_gone for path, is_gone in {**layers, **leftovers.clear_local()}.items()}

    def usable(self) -> Usable:
        """See `Backend.usable`: whether an engine answers and has a base image of ours, which holds all that a build
        needs."""
        try:
            with closing(connect(self.engine, timeout=PATIENCE)) as client:
                for name in dict.fromkeys((self.base_image, NAME)):
                    with contextlib.suppress(PrchainError), engine_failures():
                        if (client.images.get(name).labels or {}).get(BASE_LABEL):
                            return Usable(True, f"a Docker engine answers and has the image {name}", name)
        except PrchainError:
            return Usable(False, "no Docker engine answers")
        return Usable(False, "the Docker engine has no base image (`prchain environments base` makes one)")


def _clear_layers(client: Any, *, everybody: bool) -> dict[Path, bool]:
    """Remove the layers of ours on which no container stands any more."""
    with engine_failures():
        layers_at = engine_layers(client)
    return leftovers.clear_local(area(layers_at), everybody=everybody) if layers_at is not None else {}


BACKEND = DockerBackend(name="docker", help="containers", rank=10, needs_image=True)
