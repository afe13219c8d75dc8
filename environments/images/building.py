"""The container in which an image is built: steps run in it, with a deadline, and it is committed or thrown away."""

from __future__ import annotations

import io
import posixpath
import secrets
import shlex
import tarfile
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import Any, Self

from environments.images.buildlogs import cure, decisive_lines
from environments.images.buildtree import BuildTree
from environments.images.image_plan import BUILD
from environments.sandboxes.engine import NO_ROOM, disk_full, engine_failures
from environments.sandboxes.leftovers import OWNER, SANDBOX, SNAPSHOT, our_labels
from environments.sandboxes.sandbox import WORKDIR
from prchain.core.errors import BuildFailed, ImageError, SandboxError
from prchain.core.git.trees import RAW_ATTRIBUTES
from prchain.core.secrets.scrub import redact

USER = "agent"

_MEMORY = 8 << 30
"""Bytes that a build may use; compilers need more than tests."""

_PROCESSES = 4096

_ROOM = 4 << 30
"""Bytes: where less is free a build that says that the disk is full has filled it; it may have cleared away since."""

_HEAD, _TAIL = 64_000, 400_000
"""Bytes of a step's output that are kept."""


class BuildContainer:
    """A running container of an image; a context manager that removes it. Its owner's labels let `gc` find it."""

    def __init__(
        self,
        engine: Any,
        image: str,
        *,
        network: str,
        deadline: float,
        files: Mapping[str, bytes] | None = None,
        variables: Mapping[str, str] | None = None,
        secrets: tuple[str, ...] = (),
        volumes: Mapping[str, str] | None = None,
    ) -> None:
        """`volumes` of the engine, and where they are seen."""
        self._engine = engine
        self._image = image
        self._network = network
        self._deadline = deadline
        self._files = dict(files or {})
        self._variables = dict(variables or {})
        self._secrets = secrets
        self._volumes = {name: {"bind": path, "mode": "rw"} for name, path in (volumes or {}).items()}
        self._container: Any = None
        self._owner = 0
        self.log = ""
        """What all steps printed, redacted; of long outputs the head and the tail."""

    def __enter__(self) -> Self:
        name = f"prchain-build-{secrets.token_hex(6)}"
        with engine_failures():
            self._container = self._engine.containers.run(
                self._image,
                command=["sleep", "infinity"],
                entrypoint=[""],
                detach=True,
                init=True,
                user="0",
                name=name,
                labels=our_labels(SANDBOX, name),
                network=self._network,
                use_config_proxy=False,
                mem_limit=_MEMORY,
                memswap_limit=_MEMORY,
                pids_limit=_PROCESSES,
                security_opt=["no-new-privileges"],
                volumes=self._volumes,
            )
            try:
                self._put(BUILD, self._files)
            except BaseException:
                self._container.remove(force=True, v=True)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._container is not None:
            with engine_failures():
                self._container.remove(force=True, v=True)

    def put_tree(self, tree: BuildTree, tag: str = "") -> None:
        """Put the tree into the work folder, as the agent's, with a repository of one commit around it, which has a tag
        if one is given."""
        self._owner = int(self.run("user", f"id -u {USER}", root=True).strip().splitlines()[-1])
        with tempfile.TemporaryFile() as file:
            tree.write_tar(file, self._owner)
            file.seek(0)
            with engine_failures():
                self._container.put_archive(WORKDIR, file)
        # Tools ask git for the files of the project.
        script = _REPOSITORY + (f" && {_AS_AGENT} tag -a -m start {tag}" if tag else "")
        self.run("repository", f"chown {USER}: . && runuser -u {USER} -- bash -c {shlex.quote(script)}", root=True)

    def put(self, archive: bytes) -> None:
        """Unpack a tar at the root."""
        with engine_failures():
            self._container.put_archive("/", archive)

    def run(self, step: str, script: str, *, root: bool = False) -> str:
        """Run bash in the work folder and return what it printed. Raises `BuildFailed` for a failure or a timeout,
        `EngineDiskFull`."""
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise self._late(step)
        variables = f"set -a; [ ! -e {BUILD}/variables ] || . {BUILD}/variables; set +a"
        # It waits for a word of ours, for the engine's client may lose what is printed before it reads.
        text = f"IFS= read -r _; exec </dev/null\n{variables}\n{script}"
        command = ["bash", "--noprofile", "--norc", "-euo", "pipefail", "-c", text]
        environment = {"BUILD": BUILD, "HOME": "/root" if root else f"/home/{USER}", **self._variables}
        with engine_failures(), self._killed_after(remaining) as late:
            api = self._container.client.api
            execution = api.exec_create(
                self._container.id,
                command,
                stdin=True,
                user="0" if root else USER,
                workdir=WORKDIR if step != "prepare" else "/",
                environment=environment,
            )
            output = _ends(_chunks(api.exec_start(execution["Id"], socket=True)))
            if not late.is_set():
                status = api.exec_inspect(execution["Id"])["ExitCode"]
        text = redact(output.decode("utf-8", "replace"), self._secrets)
        self.log += f"--- {step}\n{text}"
        if late.is_set():
            raise self._late(step)
        if status != 0:
            lines = decisive_lines(text)
            self._look_at_room(lines)
            cause = lines[-1] if lines else f"exit status {status}"
            known = f" ({words})" if (words := cure(lines)) else ""
            raise BuildFailed(f"the step {step} failed: {cause}{known}", step=step, lines=lines, log=text[-_TAIL:])
        return text

    def _look_at_room(self, lines: Sequence[str]) -> None:
        """Raise `EngineDiskFull` where a program says that the disk is full, and it is: code of a tree may say so."""
        said = next((line for line in lines if NO_ROOM.search(line)), None)
        if said is None:
            return
        with engine_failures():
            df = self._container.exec_run(["/bin/df", "--output=avail", "-B1", "/"], user="0")
        free = df.output.decode("utf-8", "replace").split()[-1:]
        if df.exit_code == 0 and free and free[0].isdecimal() and int(free[0]) < _ROOM:
            full = disk_full(said)
            full.log = self.log[-_TAIL:]
            raise full

    def try_each(self, step: str, scripts: Sequence[str], *, root: bool = False) -> tuple[int, tuple[str, ...]]:
        """Run the scripts until one succeeds; returns its index, from 0, and why the first one failed.

        Raises the `BuildFailed` of the first one that said something, with the log of all: what the others lack is
        only what they could do without.
        """
        first: BuildFailed | None = None
        for index, script in enumerate(scripts):
            try:
                self.run(step, script, root=root)
            except BuildFailed as failure:
                first = failure if first is None or not first.lines else first
                if index == len(scripts) - 1 or time.monotonic() >= self._deadline:
                    first.log = self.log[-_TAIL:]
                    raise first from None
            else:
                return index, first.lines if first is not None else ()
        raise ValueError("a step without a script")

    def read(self, path: str) -> str:
        """The text of a small file; empty where there is none."""
        return self.run("read", f"cat {path} 2>/dev/null || true", root=True)

    def commit(self, image: str, changes: Sequence[str]) -> str:
        """Make the container's files an image and return its id."""
        repository, _, tag = image.rpartition(":")
        labels = [f'LABEL {label}=""' for label in (SANDBOX, SNAPSHOT, OWNER)]
        with engine_failures():
            new_image = self._container.commit(repository=repository, tag=tag, changes=[*changes, *labels])
            return str(new_image.id)

    def _put(self, folder: str, files: Mapping[str, bytes]) -> None:
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as tar:
            root = tarfile.TarInfo(folder.lstrip("/"))
            root.type, root.mode = tarfile.DIRTYPE, 0o777  # steps of both users write into it
            tar.addfile(root)
            for name, content in files.items():
                entry = tarfile.TarInfo(posixpath.join(folder.lstrip("/"), name))
                entry.size, entry.mode = len(content), 0o644
                tar.addfile(entry, io.BytesIO(content))
        if not self._container.put_archive("/", archive.getvalue()):
            raise ImageError("the engine does not take the build's files")

    @contextmanager
    def _killed_after(self, seconds: float) -> Iterator[threading.Event]:
        """Kill the container after so many seconds; the engine cannot end a single command."""
        late = threading.Event()

        def kill() -> None:
            late.set()
            with (
                suppress(ImageError, SandboxError),
                engine_failures(),
            ):  # it may have ended by itself at this very moment
                self._container.kill()

        timer = threading.Timer(seconds, kill)
        timer.daemon = True
        timer.start()
        try:
            yield late
        finally:
            timer.cancel()

    def _late(self, step: str) -> BuildFailed:
        of_step = f"\n{self.log}".rpartition("\n--- ")[2].splitlines()[1:]
        said = [line for line in of_step if line.strip()]
        return BuildFailed(
            f"the build took too long; it was at the step {step} (environments_build_timeout_seconds gives it longer)",
            step=step,
            lines=said[-3:],
            log=self.log[-_TAIL:],
        )


_AS_AGENT = "git -c user.name=agent -c user.email=agent@localhost -c commit.gpgsign=false -c tag.gpgsign=false"
_REPOSITORY = (
    # With the tree's attributes git would change content, and refuse content that it cannot change.
    f'git init -q . && mkdir -p .git/info && echo "{RAW_ATTRIBUTES.strip()}" > .git/info/attributes && '
    "git add -A -f . && "
    f"{_AS_AGENT} commit -q --allow-empty --no-verify -m start"
)


def _chunks(stream: Any) -> Iterator[bytes]:
    """What a command prints once it is told to begin, both streams as they come. The SDK's own iterator would leave its
    socket open."""
    from docker.utils.socket import SocketError, frames_iter  # noqa: PLC0415  loaded with the first build

    try:
        getattr(stream, "_sock", stream).sendall(b"\n")
        for _, chunk in frames_iter(stream, tty=False):  # type: ignore[no-untyped-call]
            yield chunk
    except (SocketError, OSError):
        return  # the container was killed; its exit status tells
    finally:
        getattr(stream, "_sock", stream).close()
        stream.close()


def _ends(chunks: Iterator[bytes]) -> bytes:
    """The head and the tail of a stream."""
    head, tail, cut = b"", b"", False
    for chunk in chunks:
        room = _HEAD - len(head)
        head += chunk[:room]
        tail += chunk[room:] if room < len(chunk) else b""
        if len(tail) > 2 * _TAIL:
            tail, cut = tail[-_TAIL:], True
    return head + (b"\n[...]\n" if cut else b"") + tail
