"""Sandboxes on this machine: in namespaces of bubblewrap, or, where the user insists, as plain processes.

Bubblewrap gives a tree of its own (the programs read-only; the workdir, /tmp and the home are folders of ours), its own
processes and users, and no network. What it cannot do without an engine: CPUs are not limited, memory is a limit
of each process (its data, so that what is only reserved does not count) and not of all together.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import secrets
import selectors
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from environments.sandboxes.channel import PATIENCE
from environments.sandboxes.channelled import ChannelledSandbox, failure_text
from environments.sandboxes.counts import COUNTS
from environments.sandboxes.local_files import copy_folder, is_open_to_all, remove_folder, used_bytes
from environments.sandboxes.local_layers import (
    MOST_LAYERS,
    NOBODY,
    Kept,
    LayerFamily,
    give,
    layers_work,
    new_folder,
    on_layers,
    own_state,
    seen_state,
)
from environments.sandboxes.local_streams import FOLDER, PipeStream, begin_command
from environments.sandboxes.relaying import relay_command
from environments.sandboxes.sandbox import SandboxConfig
from environments.sandboxes.server import SCRIPT
from environments.sandboxes.streams import ChannelledStream
from environments.sandboxes.upper_layers import UpperLayer, are_nested
from prchain.core.errors import (
    EngineUnavailable,
    ImageMissing,
    SandboxError,
    SandboxFileError,
    SandboxLost,
    SnapshotUnknown,
    UsageError,
)

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where commands look for programs."""

_HOME = "/home/sandbox"
_FOLDERS = ("work", "tmp", "home", "shm")
"""What commands can write: folders of ours, so that they count as disk use and go with a snapshot."""
_PROGRAMS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ssl", "localtime", "mime.types")
"""What programs need of the host's /etc, and what reveals nothing about the host."""
_NO_SYSTEM = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ATTR_NOSYSTEM": "1"}
"""Without isolation git would see the settings and attributes of the machine (git(1))."""
_ARCHIVES = 600.0
_MUCH = 4 << 20
"""Bytes that take longer to copy than a sandbox to begin."""
_IN_MEMORY = 32 << 20
_SUBREAPER = 36
"""PR_SET_CHILD_SUBREAPER (prctl(2)): orphans of the server's children become its own."""


class ProcessTransport:
    """The pipes of a process."""

    def __init__(self, process: subprocess.Popen[bytes], patience: float) -> None:
        assert process.stdin and process.stdout and process.stderr
        self.process = process
        self._patience = patience
        self._in = process.stdin.fileno()
        self._err = process.stderr.fileno()
        self._selector = selectors.DefaultSelector()
        self._selector.register(process.stdout, selectors.EVENT_READ)
        self._selector.register(process.stderr, selectors.EVENT_READ)
        os.set_blocking(self._in, False)

    def send(self, content: bytes) -> None:
        """See `Transport`."""
        rest = memoryview(content)
        with selectors.DefaultSelector() as writable:
            writable.register(self._in, selectors.EVENT_WRITE)
            while rest:
                if not writable.select(self._patience):
                    raise TimeoutError("it takes nothing")
                rest = rest[os.write(self._in, rest) :]

    def receive(self, timeout: float) -> tuple[bool, bytes] | None:
        """See `Transport`. Answers come first: they must not wait for output."""
        ready = [key.fd for key, _ in self._selector.select(timeout)]
        if not ready:
            return None
        ready.sort(key=lambda fd: fd != self._err)
        content = os.read(ready[0], 1 << 18)
        if not content:
            raise ConnectionError("its stream ended")
        return ready[0] == self._err, content

    def close(self) -> None:
        """See `Transport`."""
        self._selector.close()
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


class LocalSandbox(ChannelledSandbox):
    """A sandbox of namespaces; with `unsafe` plain processes, which use the host's paths without isolation."""

    def __init__(self, config: SandboxConfig, *, unsafe: bool = False, family: LayerFamily | None = None) -> None:
        super().__init__(config)
        if unsafe and (not posixpath.isabs(config.workdir) or config.workdir == "/"):
            raise UsageError("plain processes need a folder of their own as workdir")
        self._unsafe = unsafe
        self._folder: Path | None = None
        self.begin_with: Kept | None = None
        """What it is being made from."""
        self._layers: tuple[Path, ...] = ()
        self._written_below = 0
        self._since = 0.0
        self._family = family or LayerFamily()
        with self._family.lock:
            self._family.members.append(self)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def shared(self) -> tuple[str, ...]:
        """See `SharesFiles`: layers are the same files for all that stand on them.

        Those of this machine itself are left alone: nobody knows how many there are.
        """
        if self.config.image is not None and not self._unsafe:
            return ("/",)
        return (self.config.workdir, "/tmp", _HOME, "/dev/shm") if self._layers else ()

    def forget_names(self) -> None:
        """See `SharesFiles.forget_names`: it has no control group of its own."""

    @property
    def stands_on(self) -> Sequence[Path]:
        """See `OnLayers`."""
        return (*self._layers, *(self.begin_with.all if self.begin_with is not None else ()))

    def _make(self) -> ProcessTransport:
        folder = self._folder = new_folder()
        (folder / "streams").mkdir()
        self._since = (folder / "streams").stat().st_ctime
        state, begin = self._state(), self.begin_with
        self._layers, self._written_below = (), 0
        if begin is not None and not self._unsafe and begin.is_mounted and layers_work():
            self._layers, self._written_below = begin.all, begin.own_bytes + begin.bytes_below
            state.mkdir()
        elif begin is not None:
            if self._unsafe:
                shutil.rmtree(state, ignore_errors=True)
            self._layers, self._written_below = begin.below, begin.bytes_below
            copy_folder(begin.folder, state)
        if not self._layers:
            for name in _FOLDERS if not self._unsafe else ("",):
                (state / name).mkdir(parents=True, exist_ok=True)
        self._process = self._spawn(folder, state)
        return ProcessTransport(self._process, PATIENCE)

    def start(self) -> None:
        """See `Sandbox.start`."""
        super().start()
        if self.begin_with is not None:
            self.begin_with = None
            self._family.clear()

    def _state(self) -> Path:
        """The folder that holds all that commands can write and that a snapshot keeps."""
        assert self._folder is not None
        return Path(self.config.workdir) if self._unsafe else own_state(self._folder)

    def _spawn(self, folder: Path, state: Path) -> subprocess.Popen[bytes]:
        limits = self.config.limits
        bounds = f"ulimit -c 0; ulimit -f {limits.file_bytes // 1024}; ulimit -d {limits.memory_bytes // 1024}\n"
        environment = {"PATH": PATH, "HOME": _HOME, "LANG": "C.UTF-8", **self.config.environment}
        server = ["bash", "--noprofile", "--norc", "-c"]
        if self._unsafe:
            (folder / "server").mkdir()
            command = [*server, bounds + SCRIPT, "prchain", "self", str(folder / "server"), "0"]
            environment |= {"HOME": self.config.workdir, **_NO_SYSTEM}
            return _start(command, environment, as_nobody=False, reaps=True)
        as_nobody = os.geteuid() == 0
        (folder / "etc").mkdir()
        (folder / "etc" / "passwd").write_text(f"sandbox:x:1000:1000::{_HOME}:/bin/bash\n", encoding="ascii")
        (folder / "etc" / "group").write_text("sandbox:x:1000:\n", encoding="ascii")
        give(state, *(() if self._layers else (state / name for name in _FOLDERS)))
        bounds += f"ulimit -u {limits.processes}\n"
        most = str(limits.processes)
        command = [
            *self._bubble(folder, seen_state(folder, self._layers), as_nobody=as_nobody),
            *server,
            bounds + SCRIPT,
            "prchain",
            "1",
            "/tmp/.prchain",
            most,
        ]
        return _start(on_layers(command, folder, self._layers), environment, as_nobody=as_nobody, reaps=False)

    def _bubble(self, folder: Path, state: Path, *, as_nobody: bool) -> list[str]:
        program = shutil.which("bwrap")
        if program is None:
            raise EngineUnavailable("bubblewrap (bwrap) is not installed; install it, or name another --backend")
        root = Path(self.config.image or "/")
        if not root.is_dir():
            raise ImageMissing(f"there is no folder {root} with a root file system")
        arguments = [program, "--unshare-all", "--die-with-parent", "--new-session", "--hostname", "sandbox"]
        arguments += ["--uid", "1000", "--gid", "1000", "--cap-drop", "ALL"]
        if self.config.network:
            arguments += ["--share-net"]
        names = sorted(entry.name for entry in root.iterdir()) if self.config.image else _PROGRAMS
        for name in names:
            path = root / name
            if name in {"proc", "dev", "sys", "tmp", "etc", "home"}:
                continue
            if path.is_symlink():
                arguments += ["--symlink", os.readlink(path), f"/{name}"]
            elif path.exists():
                arguments += ["--ro-bind", str(path), f"/{name}"]
        for name in _ETC:
            arguments += ["--ro-bind-try", str(root / "etc" / name), f"/etc/{name}"]
        arguments += ["--ro-bind", str(folder / "etc" / "passwd"), "/etc/passwd"]
        arguments += ["--ro-bind", str(folder / "etc" / "group"), "/etc/group"]
        arguments += ["--proc", "/proc", "--dev", "/dev", "--bind", str(state / "shm"), "/dev/shm"]
        for count in filter(os.path.exists, COUNTS):
            arguments += ["--tmpfs", count] if os.path.isdir(count) else ["--ro-bind", "/dev/null", count]
        arguments += ["--bind", str(state / "tmp"), "/tmp", "--bind", str(state / "home"), _HOME]
        arguments += ["--bind", str(state / "work"), self.config.workdir]
        arguments += ["--ro-bind", str(folder / "streams"), FOLDER]
        for laid in self.config.laid:
            if as_nobody and not is_open_to_all(Path(laid.source)):
                raise EngineUnavailable(
                    f"the user nobody, which root becomes in bubblewrap, cannot read {laid.source}; set data_dir to a "
                    "folder that everybody may enter, or run as another user"
                )
            arguments += ["--ro-bind", laid.source, laid.path]
        return [*arguments, "--remount-ro", "/dev", "--remount-ro", "/", "--"]

    def upper_layer(self, folder: str) -> UpperLayer | None:
        """See `HasUpperLayer`: of the workdir and what is below it."""
        path, workdir = (posixpath.normpath(name) for name in (folder, self.config.workdir))
        is_below = path == workdir or path.startswith(workdir.rstrip("/") + "/")
        laid = any(are_nested(path, posixpath.normpath(laid.path)) for laid in self.config.laid)
        if not self._layers or not is_below or laid:
            return None
        names = posixpath.relpath(path, workdir)
        below = ("work", *(names.split("/") if names != "." else ()))
        return UpperLayer(self._state(), below, "user.overlay.", self._since, tuple(map(str, self._layers)))

    def _begin_stream(
        self, command: str, cwd: str, environment: Mapping[str, str], kill: Callable[[], None]
    ) -> ChannelledStream:
        assert self._folder is not None
        name = secrets.token_hex(6)
        folder = self._folder / "streams" / name
        stream = PipeStream(folder, kill, self.leftovers)
        seen = str(folder) if self._unsafe else f"{FOLDER}/{name}"
        begun = False
        try:
            result = self.exec(begin_command(seen, cwd, command), cwd="/", environment=environment)
            if result.exit_code != 0:
                raise SandboxError(f"a stream cannot be begun: {failure_text(result)}")
            stream.begun()
            begun = True
        finally:
            if not begun:
                stream.drop()
        return stream

    def listen(self) -> ChannelledStream:
        """See `Sandbox.listen`: by this machine's Python, in the sandbox."""
        return self.stream(relay_command(), cwd="/")

    def _stop(self) -> None:
        if self._unsafe and self._process is not None:
            _kill_below(self._process.pid)
        super()._stop()

    def _unmake(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
            self._process.wait()
            self._process = None
        if self._folder is not None:
            remove_folder(self._folder)
            self._folder = None

    def close(self) -> None:
        """See `Sandbox.close`."""
        if self._closed:
            return
        super().close()
        self._family.part(self)

    def _not_started(self, error: SandboxLost) -> SandboxError:
        what = "a plain process" if self._unsafe else "bubblewrap"
        return EngineUnavailable(f"{what} does not work here: {error}")

    def _cause(self, error: SandboxLost) -> SandboxError:
        self._end()
        return error

    def _end(self) -> None:
        process = self._process
        if process is not None:
            if self._unsafe:
                _kill_below(process.pid)
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def _disk_use(self) -> int:
        return self._written_below + used_bytes(self._state()) if self._folder is not None else 0

    def put(self, folder: str, archive: BinaryIO | bytes) -> None:
        """See `Sandbox.put`; held in memory, at most `MOST_READ` bytes."""
        content = archive if isinstance(archive, bytes) else archive.read()
        kind = "-z" if content[:2] == b"\x1f\x8b" else ""
        name = shlex.quote(folder)
        command = f"mkdir -p -- {name} && tar -x {kind} --no-same-owner -f - -C {name}"
        result = self._exec(command, _ARCHIVES, "/", stdin=content)
        if result.exit_code != 0:
            raise SandboxFileError(f"{folder!r} cannot be unpacked into: {failure_text(result)}")

    def get(self, path: str) -> Iterator[bytes]:
        """See `Sandbox.get`; collected in a temporary file."""
        above, name = posixpath.split(path.rstrip("/"))
        with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as spool:

            def keep(chunk: bytes) -> None:
                spool.write(chunk)

            command = f"tar -c -f - -C {shlex.quote(above or '/')} -- {shlex.quote(name)} 2>/dev/null"
            result = self._exec(command, _ARCHIVES, "/", sink=keep)
            if result.exit_code not in (0, None):
                # Files that commands made unreadable belong to the result, too.
                self._exec(f"chmod -R u+rwX -- {shlex.quote(path)}", _ARCHIVES, "/")
                spool.seek(0)
                spool.truncate()
                result = self._exec(command, _ARCHIVES, "/", sink=keep)
            if result.exit_code != 0:
                raise SandboxFileError(f"{path!r} cannot be read: exit code {result.exit_code}")
            spool.seek(0)
            while chunk := spool.read(1 << 20):
                yield chunk

    def snapshot(self) -> str:
        """See `Sandbox.snapshot`: a copy of what it wrote since it began, made with reflinks where possible. Where that
        is much and nothing runs, it is no copy: the sandbox goes on above it, so that the next one does not hold it."""
        self._running()
        name = f"snapshot-{secrets.token_hex(6)}"
        state, taken = own_state(new_folder()), used_bytes(self._state())
        kept = Kept(state, self._layers, taken, self._written_below)
        goes_on_above = taken > _MUCH and self._can_stand_on(kept)
        if goes_on_above:
            try:
                os.rename(self._state(), state)
            except OSError as error:
                raise SandboxError(f"a snapshot cannot be kept: {error.strerror}") from None
        else:
            copy_folder(self._state(), state)
        with self._family.lock:
            self._family.snapshots[name] = kept
        if goes_on_above:
            self.restore(name)
        return name

    def _can_stand_on(self, kept: Kept) -> bool:
        """Whether the sandbox can begin with its own state without a difference to what it is."""
        are_few = len(kept.all) * 2 <= MOST_LAYERS and kept.is_mounted
        return are_few and not self._unsafe and not self._streams and layers_work() and not self.leftovers()

    def restore(self, snapshot: str) -> None:
        """See `Sandbox.restore`."""
        self._begin(snapshot)
        self._stop()
        self.start()

    def branch(self, snapshot: str) -> LocalSandbox:
        """See `Sandbox.branch`; plain processes cannot: their paths are the host's."""
        if self._unsafe:
            raise UsageError("plain processes cannot be branched: both would write the same folder")
        other = self._another()
        started = False
        try:
            other._begin(snapshot)
            other.start()
            started = True
        finally:
            if not started:
                other.close()
        return other

    def forget(self, snapshot: str) -> None:
        """See `Sandbox.forget`."""
        self._family.forget(snapshot)

    def _another(self) -> LocalSandbox:
        """One of the same family, not started."""
        return LocalSandbox(self.config, family=self._family)

    def _begin(self, snapshot: str) -> None:
        """Have the next start begin with a snapshot, which stays until then."""
        with self._family.lock:
            try:
                self.begin_with = self._family.snapshots[snapshot]
            except KeyError:
                raise SnapshotUnknown(f"there is no snapshot {snapshot!r} of this sandbox") from None


def _start(command: list[str], environment: dict[str, str], *, as_nobody: bool, reaps: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd="/",
            start_new_session=True,
            user=NOBODY if as_nobody else None,
            group=NOBODY if as_nobody else None,
            extra_groups=[] if as_nobody else None,
            preexec_fn=become_reaper if reaps else None,  # noqa: PLW1509  one call into libc, no Python lock taken
        )
    except OSError as error:
        raise EngineUnavailable(f"{command[0]} cannot be started: {error.strerror}") from None


def become_reaper() -> None:
    """Have orphans of what this process starts become its own children."""
    import ctypes  # noqa: PLC0415  for plain processes alone

    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def _kill_below(pid: int) -> None:
    """Kill all descendants of a process that reaps its orphans, until there are none."""
    for _ in range(100):
        children: dict[int, list[int]] = {}
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, parent = path.read_bytes().rpartition(b") ")[2].split()[:2]
                if state != b"Z":
                    children.setdefault(int(parent), []).append(int(path.parent.name))
        below, waiting = [], [pid]
        while waiting:
            found = children.get(waiting.pop(), [])
            below += found
            waiting += found
        if not below:
            return
        for sign in (signal.SIGSTOP, signal.SIGKILL):
            for child in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(child, sign)
