"""What a sandbox is: a place where commands of an agent and tests run, shut off from the host and from the network.

The values and the protocol of all backends: `environments.sandboxes.docker`, `environments.sandboxes.local`. Failures
are those below `prchain.core.errors.SandboxError`; what a command itself does wrong is an `ExecResult`, no error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType
from typing import BinaryIO, Protocol, Self, runtime_checkable

from environments.sandboxes.upper_layers import UpperLayer

WORKDIR = "/testbed"
"""Where our images have the repository."""

OUT_OF_MEMORY = "out_of_memory"
OUTPUT_LIMIT = "output_limit"
PROCESS_LIMIT = "process_limit"
"""Values of `ExecResult.limit`."""


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """What a sandbox may use: bytes of memory, CPUs, processes and threads, bytes of a file and of all it writes."""

    memory_bytes: int = 4 << 30
    cpus: float = 2.0
    processes: int = 512
    file_bytes: int = 2 << 30
    disk_bytes: int = 8 << 30


@dataclass(frozen=True, slots=True)
class LaidFolder:
    """A folder of ours that a sandbox sees, read-only, at a path: `source` is a volume of the engine (docker), or a
    folder of this machine (local). Plain processes see the source alone."""

    path: str
    source: str


@dataclass(frozen=True, slots=True)
class SandboxConfig:
    """Where commands run.

    `image` is the engine's name of an image (docker), or a folder with a root file system (local; None: the host's
    programs, read-only). `user` is a name or ``uid[:gid]`` in the image; None: the image's own. `environment` is what
    every command gets besides the image's variables: nothing of the host's goes in. `network` is for builds only.
    """

    image: str | None
    workdir: str = WORKDIR
    user: str | None = None
    limits: ResourceLimits = ResourceLimits()
    network: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    laid: tuple[LaidFolder, ...] = ()
    place: str = ""
    """What decides the content of the place that the sandbox may begin with, beside image and user; empty: it begins
    with its image. See `KeepsPlace`."""


@dataclass(frozen=True, slots=True)
class ExecResult:
    """What a command did.

    `exit_code` is that of the shell (128 + n for a signal), or None where we ended the command: it timed out, printed
    without end, or its supervisor was killed. `output` is stdout and stderr as they came, at most the asked bytes: head
    and tail, with `omitted` bytes left out between them (after the first `head` bytes). `limit` names a limit that the
    command ran into and that the sandbox survived: `OUT_OF_MEMORY` (the kernel killed a process of it), `OUTPUT_LIMIT`
    (it was ended, because it printed without end), `PROCESS_LIMIT` (processes of earlier commands had used up the limit
    and were killed before this one began).
    """

    exit_code: int | None
    output: bytes
    omitted: int = 0
    timed_out: bool = False
    seconds: float = 0.0
    limit: str | None = None
    head: int = 0
    pipestatus: tuple[int, ...] = ()
    """Exit codes of the commands of the last pipeline that the shell ran, where they were asked for; empty where they
    are not known."""

    @property
    def text(self) -> str:
        """The output as text: bytes that are no UTF-8 replaced, and a line that says what was left out, if anything."""
        if not self.omitted:
            return self.output.decode("utf-8", "replace")
        head, tail = self.output[: self.head], self.output[self.head :]
        return (
            f"{head.decode('utf-8', 'replace')}\n[... {self.omitted} bytes left out ...]\n"
            f"{tail.decode('utf-8', 'replace')}"
        )


class SandboxStream(Protocol):
    """A command that runs beside others, and two ways of bytes to it. One thread may send while another receives."""

    def send(self, content: bytes) -> None:
        """Write to its stdin; waits while it reads nothing. Raises `BrokenPipeError` where it has ended."""

    def end_input(self) -> None:
        """Close its stdin: it reads the end of the file. What it prints goes on."""

    def receive(self, timeout: float) -> tuple[bool, bytes] | None:
        """What it printed next: (is it stderr, at least one byte). None after `timeout` seconds; raises `EOFError` when
        it has ended and all is read. What it left in the background may lose what it prints then."""

    def exit_code(self) -> int | None:
        """How the command ended, of which `receive` has said the end: as `ExecResult.exit_code`, None where nobody
        knows. Raises `SandboxLost`, or its cause, where the sandbox ended, and not the command alone."""

    def close(self) -> None:
        """Kill what the command started and still runs, also what left its session, and free the stream. Never
        fails."""


@runtime_checkable
class Sandbox(Protocol):
    """A started sandbox runs one command at a time, besides its streams; several sandboxes may be used from several
    threads.

    All methods but `close` and `forget` raise `SandboxLost` once the container or its channel is gone, `DiskLimit` or
    `OutOfMemory` where the sandbox was ended for that, and `EngineUnavailable` where the engine does not answer.
    """

    config: SandboxConfig

    def start(self) -> None:
        """Make the sandbox ready; does nothing when it is. Raises `ImageMissing`, `EngineUnavailable`."""

    def close(self) -> None:
        """Remove the sandbox and, when it is the last of its family (see `branch`), its snapshots. Never fails."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def exec(
        self,
        command: str,
        *,
        timeout: float = 60.0,
        session: str | None = None,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        output_limit: int = 1 << 20,
        stdin: bytes = b"",
        pipestatus: bool = False,
    ) -> ExecResult:
        """Run ``bash -c command`` and return when that shell ends; what it left in the background goes on.

        `timeout` in seconds: then the command and everything that it started is killed, also what left its session, and
        the output so far is returned. Without a `session` a command begins in `cwd` (default: the sandbox's workdir)
        with its variables. Commands of one session (a word of our choice) keep working directory and exported
        variables; these lie in the sandbox and so go with a snapshot; a shell that sets its own EXIT trap, or ends by
        `exec`, a signal or our timeout, leaves its session as it was. A `cwd` that cannot be entered: exit code 126.

        With `pipestatus` the result says how each command of the last pipeline ended (`ExecResult.pipestatus`), unless
        the shell sets its own EXIT trap, or ends by `exec`, a signal or our timeout. The command could write these
        numbers itself: they are as trustworthy as what it prints.
        """

    def stream(
        self, command: str, *, cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> SandboxStream:
        """Begin ``bash -c command``, and go on beside it: commands run as if it were not there.

        It begins in `cwd` (default: the sandbox's workdir) with its variables. It is none of the `leftovers`, and no
        timeout or shortage of processes ends it; the sandbox's limits hold for it, too. It ends with `close` of the
        stream or of the sandbox, and with `restore`.
        """

    def listen(self) -> SandboxStream:
        """The stream of a relay (`environments.sandboxes.relay`) that listens on the sandbox's loopback, where no
        program of the image is needed for it. Raises `ImageMissing` where what it needs is not there."""

    def read(self, path: str) -> bytes:
        """The content of a file, links followed. Raises `SandboxFileError` where it cannot be read."""

    def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """Write a file as the sandbox's user, folders above it included. Raises `SandboxFileError`."""

    def put(self, folder: str, archive: BinaryIO | bytes) -> None:
        """Unpack a tar (plain or compressed with gzip) below a folder, made when missing. Raises `SandboxFileError`."""

    def get(self, path: str) -> Iterator[bytes]:
        """A tar of a file or folder, streamed: everything that is below it, links as links.

        Its members are named from the path's last part on: ``get("/a/b")`` holds ``b``, ``b/c``, ... The stream must be
        read to its end, or closed, before the next call. Raises `SandboxFileError` where there is no such path.
        """

    def leftovers(self) -> int:
        """How many processes that earlier commands started still run, also those that left their session."""

    def snapshot(self) -> str:
        """Keep the file system as it is; running processes are not part of it. Returns the snapshot's name."""

    def restore(self, snapshot: str) -> None:
        """Go back to a snapshot: files as they were, no processes. Raises `SnapshotUnknown`."""

    def branch(self, snapshot: str) -> Sandbox:
        """A second sandbox, started, that begins at the snapshot. Both can take snapshots, and restore each other's."""

    def forget(self, snapshot: str) -> None:
        """Remove a snapshot that nobody will restore or branch again; a name that is unknown changes nothing.

        Its disk is freed once no sandbox that began with it runs and no later snapshot stands on it; those go on
        working. Never fails: what cannot be removed goes with the family (see `close`).
        """


class Begin(StrEnum):
    """What a sandbox holds of its place when it begins."""

    NOTHING = "nothing"
    """It has none, or somebody has used it since."""
    EMPTY = "empty"
    """It holds its image; the place can be kept."""
    KEPT = "kept"
    """It is the kept place."""


@runtime_checkable
class KeepsPlace(Sandbox, Protocol):
    """A sandbox that may begin with what an earlier one was made to hold (`SandboxConfig.place`)."""

    def take_place(self) -> Begin:
        """What it began with; asked once, before it is used: from then on, and after `restore`, that is `NOTHING`."""

    def keep_place(self) -> None:
        """Keep what it holds for those to come, if that is possible; nobody but us may have used it."""

    def leave_place(self) -> None:
        """Begin anew with the image alone."""


@runtime_checkable
class SharesFiles(Sandbox, Protocol):
    """A sandbox that has files which others have, too, so that the time that reading one takes tells whether another
    has read it."""

    @property
    def shared(self) -> tuple[str, ...]:
        """The folders of these files, perhaps none."""

    def forget_names(self) -> None:
        """Have the kernel forget which names were looked for in it, where this process may tell it to. Never fails."""


@runtime_checkable
class HasUpperLayer(Sandbox, Protocol):
    """A sandbox that may stand on an overlay of this machine."""

    def upper_layer(self, folder: str) -> UpperLayer | None:
        """What it wrote below a folder since it began; None where this process cannot tell. Another one after
        `restore`. Raises as `exec`."""
