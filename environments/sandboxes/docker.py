"""Sandboxes in containers of a Docker engine, which may be elsewhere: nothing is mounted, trees go as archives."""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from environments.sandboxes.channel import PATIENCE, Channel
from environments.sandboxes.channelled import ChannelledSandbox, failure_text
from environments.sandboxes.counts import COUNTS, OF_ENGINES
from environments.sandboxes.docker_snapshots import Ground, SnapshotFamily
from environments.sandboxes.docker_stream import ExecStream, ExecTransport, engine_errors
from environments.sandboxes.engine import connect, engine_failures, paused
from environments.sandboxes.flat_image import MOST_LAYERS, make_flat, would_have_layers
from environments.sandboxes.frozen_layers import Facts, FrozenLayer, freeze, thaw
from environments.sandboxes.kept_layers import KeptLayer, bound_layers, find_layer, keep_layer
from environments.sandboxes.kept_places import MOST_BELOW, bound_places, find_place, keep_place, place_name
from environments.sandboxes.kernel_names import forget_names
from environments.sandboxes.leftovers import SANDBOX, SNAPSHOT, our_labels
from environments.sandboxes.local_files import used_bytes
from environments.sandboxes.own_layers import OwnLayer, layers_here, stand_on
from environments.sandboxes.relaying import relay_command
from environments.sandboxes.sandbox import Begin, ResourceLimits, SandboxConfig
from environments.sandboxes.server import SCRIPT
from environments.sandboxes.streams import ChannelledStream
from environments.sandboxes.taken_layers import take_layer
from environments.sandboxes.upper_layers import TooMuchWritten, UpperLayer, are_nested, reads_attributes
from prchain.core.errors import (
    EngineUnavailable,
    ImageError,
    ImageMissing,
    OutOfMemory,
    SandboxError,
    SandboxFileError,
    SandboxLost,
    SnapshotUnknown,
    no_room,
)

log = logging.getLogger(__name__)

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER")
"""What root in a container keeps, and another user does not get: without it root cannot write what the image's users
own, and tar fails. None of them reaches beyond the container's own files."""

SNAPSHOTS = "prchain-snapshot"
"""The repository of snapshots' images."""

_ATTRIBUTES = "trusted.overlay."
"""Of overlays that root has mounted."""

_DEVICES = frozenset(
    b"/dev: /dev/shm: /dev/mqueue: core fd full mqueue null ptmx pts random shm stderr stdin stdout tty urandom "
    b"zero".split()
)
"""What an engine puts into /dev, and the heads of a listing."""

_DYING = 1.0
"""Seconds that the engine may take to notice that a container ended."""


class DockerSandbox(ChannelledSandbox):
    """A sandbox in a container.

    `client` is a `docker.DockerClient`; without one the sandbox makes its own (thread-safe: one client a sandbox), to
    the engine at the URL `engine`, or the one that DOCKER_HOST names. `relay_image` names one that has a
    python3, for `listen`; `beside` is a container whose network the sandbox shares instead of having one of its own.
    `most_kept` bounds the bytes of all kept places (`environments.sandboxes.kept_places`); 0: none is kept or used.
    """

    def __init__(
        self,
        config: SandboxConfig,
        *,
        client: Any | None = None,
        engine: str | None = None,
        family: SnapshotFamily | None = None,
        relay_image: Callable[[Any], str] | None = None,
        beside: str | None = None,
        most_kept: int = 0,
    ) -> None:
        super().__init__(config)
        if config.image is None:
            raise ImageMissing("a sandbox in docker needs an image")
        self.name = ""
        self._client: Any = client
        self._own_client = client is None
        self._engine = engine
        self._family = family or SnapshotFamily()
        self._family.join()
        self._ground = Ground(config.image)
        self._container: Any = None
        self._made: Any = None
        """The container of the next start, where it is made already."""
        self._relay_image = relay_image
        self._beside = beside
        self._companion: DockerSandbox | None = None
        self._most_kept = most_kept
        self._place_name = ""
        self._began = Begin.NOTHING
        self._upper: UpperLayer | None = None
        self._looked_for_upper = False
        self._begin_with: FrozenLayer | None = None
        """What is to be put on the image when it starts."""
        self._known: Mapping[Facts, Path] = {}
        """Contents of its upper layer that an earlier copy holds."""
        self._is_to_start = False
        """Whether it goes on, in another container, when it is used again."""
        self._left: Any = None
        """The container that was given up for a snapshot; it stands still."""
        self._removal = ThreadPoolExecutor(1)

    def start(self) -> None:
        """See `Sandbox.start`."""
        started = False
        try:
            super().start()
            started = True
        finally:
            if not started:
                self._disconnect()

    def _not_started(self, error: SandboxLost) -> SandboxError:
        return SandboxLost(f"{error}; is there a bash in the image {self._ground.image}?")

    def _disconnect(self) -> None:
        if self._own_client and self._client is not None:
            self._client.close()
            self._client = None

    @property
    def shared(self) -> tuple[str, ...]:
        """See `SharesFiles`: the image's layers are the same files for all its containers."""
        return ("/",)

    def _make(self) -> ExecTransport:
        from docker import errors  # noqa: PLC0415  loaded with the first engine

        self._upper, self._looked_for_upper, self._known = None, False, {}
        if self._client is None:
            self._client = connect(self._engine)
        with engine_errors("starting a sandbox"):
            self._begin_with_place()
            try:
                self._container, self._made = self._made or self._create(self._ground.image), None
            except errors.ImageNotFound:
                if self._began is not Begin.KEPT:
                    raise
                # Another process dropped it just now.
                self._ground, self._began = Ground(str(self.config.image)), Begin.EMPTY
                self._container = self._create(self._ground.image)
            self._fill()
        with self._blamed(), engine_errors("starting a sandbox"):
            self._container.start()
        self._begin_with = None
        with engine_errors("starting a sandbox"):
            most = str(self.config.limits.processes)
            command = ["bash", "--noprofile", "--norc", "-c", SCRIPT, "prchain", "1", "/tmp/.prchain", most]
            api = self._client.api
            execution = api.exec_create(
                self._container.id, command, stdin=True, user=self.config.user or "", workdir="/"
            )
            return ExecTransport(api.exec_start(execution["Id"], socket=True), 2 * PATIENCE)

    def take_place(self) -> Begin:
        """See `KeepsPlace`."""
        began, self._began = self._began, Begin.NOTHING
        return began

    def _begin_with_place(self) -> None:
        """Take the kept place for the image, where there is one and the sandbox begins."""
        self._place_name, self._began = "", Begin.NOTHING
        is_bare = self._ground == Ground(str(self.config.image)) and self._begin_with is None
        if not self.config.place or not self._most_kept or not is_bare:
            return
        below = self._client.api.inspect_image(self._ground.image)
        if len(below["RootFS"]["Layers"]) > MOST_BELOW:
            return
        self._place_name = place_name(below["Id"], self.config.user, self.config.place)
        self._began = Begin.EMPTY
        layers_at = layers_here(below) if reads_attributes(_ATTRIBUTES) else None
        if layers_at is not None and (kept := find_layer(layers_at, self._place_name)) is not None:
            self._family.layers_at, self._began = layers_at, Begin.KEPT
            self._stand_on(kept, below["Id"])
            return
        with contextlib.suppress(ImageError):
            found = find_place(self._client, self._place_name)
            if found is not None:
                self._ground, self._began = Ground(found), Begin.KEPT

    def keep_place(self) -> None:
        """See `KeepsPlace`: a layer of ours, upon which the sandbox goes on, or an image of the container's layer.
        Others go where there is too much of them."""
        self._running()
        if not self._place_name:
            return
        try:
            with engine_failures():
                below = str(self._client.api.inspect_image(self.config.image)["Id"])
                if self._keep_layer(below):
                    return
                if find_place(self._client, self._place_name) is None:
                    keep_place(self._container, self._place_name, below)
                    bound_places(self._client, self._most_kept)
        except (ImageError, ImageMissing) as error:
            log.warning("a stage's base is not kept, the next sandbox is set up anew: %s", error)

    def _keep_layer(self, below: str) -> bool:
        """False where only the engine can keep the place."""
        written = self._whole_layer()
        if written is None or self.leftovers() or (layer := self._end_with_layer(written)) is None:
            return False
        try:
            kept = keep_layer(layer, self._place_name, below)
        except OSError as error:
            log.warning("a stage's base is not kept, the next sandbox is set up anew: %s", error.strerror)
            kept = None
        if kept is None:
            self._ground = self._family.go_on(Ground(below), layer)
        else:
            self._stand_on(kept, below)
            bound_layers(written.root.parent.parent, self._most_kept)
        return True

    def _stand_on(self, kept: KeptLayer, image: str) -> None:
        self._family.hold(kept.lock)
        self._ground = Ground(image, (kept.layer,))

    def leave_place(self) -> None:
        """See `KeepsPlace`: a new container in place of the one that began there."""
        self._stop()
        self.config = replace(self.config, place="")
        self._family.leave(self._ground)
        self._ground = Ground(str(self.config.image))
        self._remove_unneeded()
        self._go_on()

    def _create(self, image: str) -> Any:
        from docker.types import LogConfig, Mount, Ulimit  # noqa: PLC0415  loaded with the first container

        config, limits = self.config, self.config.limits
        self.name = f"prchain-{secrets.token_hex(6)}"
        api = self._client.api
        host = api.create_host_config(
            init=True,
            network_mode=f"container:{self._beside}" if self._beside else "bridge" if config.network else "none",
            cap_drop=["ALL"],
            cap_add=list(CAPABILITIES),
            security_opt=["no-new-privileges"],
            pids_limit=limits.processes,
            mem_limit=limits.memory_bytes,
            memswap_limit=limits.memory_bytes,
            nano_cpus=int(limits.cpus * 1e9),
            ulimits=[
                Ulimit(name="fsize", soft=limits.file_bytes, hard=limits.file_bytes),
                Ulimit(name="core", soft=0, hard=0),
            ],
            log_config=LogConfig(type="none"),
            mounts=[Mount(laid.path, laid.source, type="volume", read_only=True) for laid in config.laid],
        )
        host["MaskedPaths"] = [*OF_ENGINES, *COUNTS]  # the SDK has no word for it
        made = api.create_container(
            image,
            command=["infinity"],
            entrypoint=["sleep"],
            name=self.name,
            hostname=None if self._beside else "sandbox",  # it is the network's
            labels={**config.labels, **our_labels(SANDBOX, self.name)},
            environment=dict(config.environment),
            use_config_proxy=False,
            user=config.user,
            working_dir=config.workdir,
            host_config=host,
        )
        return self._client.containers.get(made["Id"])

    def _begin_stream(
        self, command: str, cwd: str, environment: Mapping[str, str], kill: Callable[[], None]
    ) -> ChannelledStream:
        leader = ["bash", "--noprofile", "--norc", "-c", ExecStream.LEADER, "prchain", cwd, command]
        api = self._client.api
        with engine_errors("beginning a stream"):
            execution = api.exec_create(
                self._container.id,
                leader,
                stdin=True,
                user=self.config.user or "",
                workdir="/",
                environment=dict(environment),
            )
            return ExecStream(api, execution["Id"], api.exec_start(execution["Id"], socket=True), kill, self.leftovers)

    def listen(self) -> ChannelledStream:
        """See `Sandbox.listen`: the relay runs in a container of its own, which shares nothing but the network.

        So it needs nothing of the sandbox's image, and commands cannot disturb it.
        """
        self._running()
        if self._relay_image is None:
            raise ImageMissing("there is no image that a relay could run in")
        if self._companion is None:
            limits = ResourceLimits(memory_bytes=256 << 20, cpus=1.0, processes=32, disk_bytes=64 << 20)
            config = SandboxConfig(
                self._relay_image(self._client), "/", "65534:65534", limits, labels=self.config.labels
            )
            companion = DockerSandbox(config, client=self._client, beside=self._container.id)
            self._companion = companion
            companion.start()
        return self._companion.stream(relay_command())

    def upper_layer(self, folder: str) -> UpperLayer | None:
        """See `HasUpperLayer`: for root on the engine's own machine, where the engine's driver is overlay2."""
        layer = self._whole_layer()
        path = posixpath.normpath(folder)
        mounts = [str(mount["Destination"]) for mount in self._container.attrs.get("Mounts") or ()]
        if layer is None or any(are_nested(path, mount) for mount in mounts):
            return None
        return replace(layer, below=tuple(filter(None, path.split("/"))))

    def _whole_layer(self) -> UpperLayer | None:
        self._running()
        if not self._looked_for_upper:
            self._looked_for_upper = True
            self._upper = self._find_upper()
        return self._upper

    def _find_upper(self) -> UpperLayer | None:
        """The container's layer. A folder that is made in a container of the family tells that the engine is this
        machine's."""
        driver = self._container.attrs.get("GraphDriver") or {}
        if driver.get("Name") != "overlay2" or not reads_attributes(_ATTRIBUTES):
            return None
        root = Path(driver["Data"]["UpperDir"])
        if self._family.layers_at is None:
            mark = f"/tmp/.prchain-{secrets.token_hex(8)}"
            self.exec(f"PATH=/usr/bin:/bin; mkdir -m 700 -- {mark}", cwd="/")
            is_here = os.path.lexists(root / mark.lstrip("/"))
            self.exec(f"PATH=/usr/bin:/bin; rmdir -- {mark}", cwd="/")
            if is_here:
                self._family.layers_at = root.parent.parent
        if root.parent.parent != self._family.layers_at:
            return None
        created = datetime.fromisoformat(self._container.attrs["Created"][:26].rstrip("Z")).replace(tzinfo=UTC)
        # One of them is this container's own, with what the engine mounts on: names without content.
        lower = driver["Data"]["LowerDir"].split(":")
        under = tuple(it for it in lower if not Path(it).parent.name.endswith("-init"))
        known = under if len(under) == len(lower) - 1 else ()
        return UpperLayer(root, (), _ATTRIBUTES, created.timestamp(), known)

    def _fill(self) -> None:
        """Have its container, which has not started, stand on layers of ours and hold what the sandbox begins with, if
        there are any."""
        if self._begin_with is None and not self._ground.layers:
            return
        if layers_here(self._container.attrs) != self._family.layers_at:
            if self._began is Begin.KEPT:  # found on a machine that is a copy of the engine's
                self._ground, self._began = Ground(self._ground.image), Begin.EMPTY
                return
            raise EngineUnavailable(f"the engine has its layers no more in {self._family.layers_at}")
        root = Path(self._container.attrs["GraphDriver"]["Data"]["UpperDir"])
        try:
            if self._ground.layers:
                stand_on(root, self._ground.layers)
                self._container.reload()
            if self._begin_with is not None:
                self._known = thaw(self._begin_with, root)
        except FileNotFoundError:
            raise SnapshotUnknown("the snapshot was forgotten while a sandbox began with it") from None
        except OSError as error:
            raise no_room(error, root) or EngineUnavailable(
                f"a snapshot cannot be put into a sandbox: {error.strerror}"
            ) from None

    @contextlib.contextmanager
    def _blamed(self) -> Iterator[None]:
        """An engine that answers, and starts no container on what the sandbox's own commands wrote, is not to blame."""
        try:
            yield
        except EngineUnavailable as error:
            if self._begin_with is None and not self._ground.layers:
                raise
            with engine_errors("asking the engine"):
                self._client.ping()
            raise SandboxLost(f"it does not start with what was written in it: {error}") from None

    def _freeze(self, name: str, layer: UpperLayer, *, is_idle: bool) -> FrozenLayer | None:
        """A copy of what the sandbox wrote; None where there is too much of it, or it cannot be copied as it is."""
        folder = None
        try:
            folder = self._family.folder(name)
            with contextlib.ExitStack() as stack:
                if not is_idle:
                    stack.enter_context(engine_errors("taking a snapshot"))
                    stack.enter_context(paused(self._client.api, self._container.id))
                frozen = freeze(layer.root, layer.attributes, folder, self._known)
        except (OSError, TooMuchWritten) as error:
            log.debug("what was written is not copied: %s", error or "it is too much")
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            return None
        # What is mapped into memory changes without a trace.
        self._known = frozen.known if is_idle else {}
        return frozen

    def _end_with_layer(self, written: UpperLayer) -> OwnLayer | None:
        """Take the container's layer itself: the sandbox goes on in another container, when it is used again. None
        where that is not possible; the sandbox is as it was then."""
        if self._companion is not None or not self._is_all_on_disk():
            return None
        container = self._container
        layer = take_layer(self._client.api, container.id, written.root, self.config.laid)
        if layer is None:
            return None
        self._container, self._is_to_start = None, True
        self._remove_left()
        self._left = container
        self._stop()
        return layer

    def _go_on(self) -> None:
        """Start in a new container. Where that fails, the next use tries again."""
        self._is_to_start = True
        self.start()
        self._is_to_start = False

    def _running(self) -> Channel:
        if self._is_to_start and not self._closed:
            self._go_on()
        return super()._running()

    def _unmake(self) -> None:
        if self._companion is not None:
            self._companion.close()
            self._companion = None
        for container in filter(None, (self._container, self._made)):
            self._remove(container)
        self._container = self._made = None

    def _remove_left(self) -> None:
        """Begin to remove the container that was given up last."""
        if self._left is not None:
            self._removal.submit(self._remove, self._left)
            self._left = None

    @staticmethod
    def _remove(container: Any) -> None:
        with contextlib.suppress(SandboxError), engine_errors("removing a sandbox"):
            container.remove(force=True, v=True)

    def close(self) -> None:
        """See `Sandbox.close`."""
        if self._closed:
            return
        super().close()
        self._remove_left()
        self._removal.shutdown()
        self._family.leave(self._ground)
        self._family.part()
        self._remove_unneeded()
        self._disconnect()

    def _remove_unneeded(self) -> None:
        """Remove the snapshots that nobody needs any more. Never fails: what is left is tried again the next time."""
        for layer in self._family.take_unneeded():
            layer.remove()
        tried: set[str] = set()
        while image := self._family.unneeded(tried):
            tried.add(image)
            try:
                if self._client is None:
                    self._client = connect(self._engine)
                with engine_errors("removing a snapshot"):
                    # The engine would remove images below it, too, which may be the sandbox's own.
                    self._client.api.remove_image(image, force=True, noprune=True)
            except ImageMissing:
                pass
            except SandboxError:
                continue
            self._family.removed(image)

    def _cause(self, error: SandboxLost) -> SandboxError:
        try:
            state = self._state()
        except SandboxLost:
            return SandboxLost(f"{error}; the container was removed")
        except EngineUnavailable as unavailable:
            return EngineUnavailable(f"{error}; {unavailable}")
        if state["Running"]:
            self._end()
            return error
        if state["OOMKilled"]:
            return OutOfMemory(f"the sandbox used more than {self.config.limits.memory_bytes:,} bytes of memory")
        return SandboxLost(f"{error}; the container ended with {state['ExitCode']}")

    def _state(self) -> Any:
        """The container's state; when it is dying, the channel ends a moment before the engine knows."""
        until = time.monotonic() + _DYING
        with engine_errors("looking for the sandbox"):
            while True:
                state = self._client.api.inspect_container(self._container.id)["State"]
                if not state["Running"] or time.monotonic() > until:
                    return state
                time.sleep(0.05)

    def _end(self) -> None:
        with contextlib.suppress(SandboxError), engine_errors("ending a sandbox"):
            self._container.kill()

    def _disk_use(self) -> int:
        container = self._container
        if container is None:
            return 0
        if self._ground.layers:
            # The engine would compare all files with those of the image, for half a second.
            return used_bytes(Path(container.attrs["GraphDriver"]["Data"]["UpperDir"]))
        with engine_errors("asking for the disk use"):
            found = self._client.api.containers(all=True, size=True, filters={"id": container.id})
        return int(found[0].get("SizeRw") or 0) if found else 0

    def forget_names(self) -> None:
        """See `SharesFiles.forget_names`."""
        for container in filter(None, (self._container, self._left)):
            with contextlib.suppress(SandboxError), engine_errors("looking for the sandbox"):
                state = self._client.api.inspect_container(container.id)["State"]
                forget_names(state["Pid"], container.id)

    def put(self, folder: str, archive: BinaryIO | bytes) -> None:
        """See `Sandbox.put`; the engine unpacks it, as root, with the owners that it names."""
        self._running()
        result = self.exec(f"mkdir -p -- {shlex.quote(folder)}", cwd="/")
        if result.exit_code != 0:
            raise SandboxFileError(f"{folder!r} cannot be made: {failure_text(result)}")
        with engine_errors(f"unpacking an archive at {folder!r}", SandboxFileError):
            self._client.api.put_archive(self._container.id, folder, archive)

    def get(self, path: str) -> Iterator[bytes]:
        """See `Sandbox.get`."""
        self._running()
        with engine_errors(f"reading {path!r}", SandboxFileError):
            stream, _ = self._client.api.get_archive(self._container.id, path, chunk_size=1 << 20)
        return self._chunks(stream)

    def _chunks(self, stream: Any) -> Iterator[bytes]:
        with engine_errors("reading an archive"):
            yield from stream

    def snapshot(self) -> str:
        """See `Sandbox.snapshot`. Where the engine's layers are on this machine: a copy of what was written, if that is
        little, or, where nothing runs, a layer of it, upon which the sandbox goes on. Else an image of the container's
        layer, or of all its files where layers are many or ours."""
        self._running()
        name = f"snapshot-{secrets.token_hex(6)}"
        is_idle = not self._streams and not self.leftovers()
        layer = self._whole_layer()
        with engine_errors("taking a snapshot"):
            for stream, _ in list(self._streams.values()):
                if isinstance(stream, ExecStream):
                    stream.settle()
        if layer is not None:
            written = self._freeze(name, layer, is_idle=is_idle)
            if written is not None:
                self._family.add_written(name, self._held_ground(), written)
                return name
            held = self._held_ground()
            if is_idle and (own := self._end_with_layer(layer)) is not None:
                self._family.leave(self._ground)
                self._ground = self._family.go_on(held, own, name)
                return name
        labels = our_labels(SNAPSHOT, name)
        with engine_errors("taking a snapshot"):
            if self._ground.layers or would_have_layers(self._client, self._container) >= MOST_LAYERS:
                image = make_flat(self._client, self._container, f"{SNAPSHOTS}:{name}", labels)
                below = None
            else:
                change = " ".join(f'{key}="{value}"' for key, value in labels.items())
                image = self._client.api.commit(
                    self._container.id,
                    SNAPSHOTS,
                    name,
                    changes=f"LABEL {change}",
                    pause=not is_idle,  # it takes a third of the time
                )["Id"]
                below = self._ground.image
        self._family.add(name, image, below)
        if self._ground.layers and is_idle and self._companion is None and self._is_all_on_disk():
            with contextlib.suppress(SandboxError):  # where it fails, the next use tries again
                self.restore(name)  # or each snapshot to come would hold all files once more
        return name

    def _held_ground(self) -> Ground:
        """What it stands on, the image by its id: a name may come to mean another one."""
        return Ground(str(self._container.attrs["Image"]), self._ground.layers)

    def _is_all_on_disk(self) -> bool:
        """Whether no file is kept in memory, where a snapshot does not reach."""
        found = self.exec("PATH=/usr/bin:/bin; ls -A /dev /dev/shm /dev/mqueue", cwd="/")
        return found.exit_code == 0 and _DEVICES.issuperset(found.output.split())

    def restore(self, snapshot: str) -> None:
        """See `Sandbox.restore`: a new container in place of the old one."""
        if self._closed:
            raise SandboxLost("the sandbox was closed")
        begin, made = self._family.begin(snapshot), None
        if begin.written is not None and self._container is not None:
            # The old container may be all that holds the image: a kept place goes when nothing stands on it.
            try:
                with engine_errors("restoring a sandbox"):
                    made = self._create(begin.ground.image)
            except SandboxError:
                self._family.leave(begin.ground)
                raise
        self._stop()
        self._family.leave(self._ground)
        self._ground, self._begin_with, self._made = begin.ground, begin.written, made
        self._remove_unneeded()
        self._go_on()

    def branch(self, snapshot: str) -> DockerSandbox:
        """See `Sandbox.branch`."""
        begin = self._family.begin(snapshot)
        other = DockerSandbox(
            self.config,
            client=None if self._own_client else self._client,
            engine=self._engine,
            family=self._family,
            relay_image=self._relay_image,
            most_kept=self._most_kept,
        )
        other._ground, other._begin_with = begin.ground, begin.written
        started = False
        try:
            other.start()
            started = True
        finally:
            if not started:
                other.close()
        return other

    def forget(self, snapshot: str) -> None:
        """See `Sandbox.forget`."""
        self._family.forget(snapshot)
        self._remove_unneeded()
        if self._closed:
            self._disconnect()
