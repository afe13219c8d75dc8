"""Streams of sandboxes on this machine: named pipes in a folder of ours, which the sandbox sees read-only.

Opening a named pipe for writing changes no file system, so that a read-only one allows it (mount(8)); commands cannot
put anything else in its place there. The leader writes how the command ended into a pipe of its own.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from environments.sandboxes.streams import CHUNK, ChannelledStream

FOLDER = "/.prchain"
"""Where a sandbox of namespaces sees the pipes."""

_PIPES = ("in", "out", "err", "code")
_LONGEST_CODE = 16
_DRAIN = 0.2
"""Seconds after the command's end in which what it printed comes."""

_LEADER = (
    'set -m\n( cd -- "$1" || exit 126; exec "$BASH" -c "$2" ) <&3 >&4 2>&5 3<&- 4>&- 5>&- 6>&- &\n'
    'exec 3<&- 4>&- 5>&-\nwait "$!"\necho "$?" >&6'
)


def begin_command(seen: str, cwd: str, command: str) -> str:
    """What the channel runs so that a command goes on beside it; `seen` is the folder of its pipes in the sandbox."""
    at = shlex.quote(seen)
    opened = f"exec 3<{at}/in 4>{at}/out 5>{at}/err 6>{at}/code"
    leader = shlex.join(["setsid", "bash", "--noprofile", "--norc", "-c", _LEADER, "prchain", cwd, command])
    # Without `set -m` all that it starts would ignore interrupts, as jobs in the background do.
    return f"{opened} && {{ set -m; {leader} </dev/null >/dev/null 2>&1 & }}"


class PipeStream(ChannelledStream):
    """A stream of named pipes below `folder`. Made, then `begun` once the leader has opened them."""

    def __init__(self, folder: Path, kill: Callable[[], None], probe: Callable[[], object]) -> None:
        super().__init__(kill, probe)
        self._folder = folder
        folder.mkdir(parents=True)
        os.chmod(folder, 0o755)
        for name in _PIPES:
            os.mkfifo(folder / name)
            os.chmod(folder / name, 0o666)
        # One that reads, too, so that the leader's opening waits for nothing.
        self._held = os.open(folder / "in", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._in = os.open(folder / "in", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._outputs = {
            name: os.open(folder / name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC) for name in _PIPES[1:]
        }
        self._words = b""
        self._over: float | None = None

    def begun(self) -> None:
        """The leader has opened the pipes: from now on their ends can be seen."""
        os.close(self._held)
        self._held = -1

    def end_input(self) -> None:
        """See `SandboxStream`."""
        with self._sending:
            if self._in >= 0:
                os.close(self._in)
                self._in = -1

    def _write(self, content: memoryview) -> int:
        return os.write(self._in, content[:CHUNK])

    def _read(self) -> tuple[bool, bytes] | None:
        for name in ("err", "out"):
            if (content := self._take(name)) and content is not None:
                return name == "err", content
        if "code" in self._outputs and (words := self._take("code")):
            self._words = (self._words + words)[:_LONGEST_CODE]
        # What it left in the background may hold the pipes open.
        if self._over is None and (self._words.endswith(b"\n") or "code" not in self._outputs):
            self._over = time.monotonic()
        ended = self._over is not None and time.monotonic() - self._over > _DRAIN
        if ended or (not {"out", "err"} & self._outputs.keys() and self._over is not None):
            raise EOFError("the command ended")
        return None

    def _take(self, name: str) -> bytes | None:
        descriptor = self._outputs.get(name)
        if descriptor is None:
            return None
        try:
            content = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return None
        if not content:
            os.close(self._outputs.pop(name))
        return content

    def _sources(self) -> list[int]:
        # After the end there may be nothing to wait for but time.
        return [] if self._over is not None else list(self._outputs.values())

    def _sink(self) -> int:
        return self._in

    def _code(self) -> int | None:
        word = self._words.decode("ascii", "replace").strip()
        return int(word) if word.isdecimal() and word.isascii() else None

    def _free(self) -> None:
        for descriptor in (self._held, self._in, *self._outputs.values()):
            if descriptor >= 0:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._held = self._in = -1
        self._outputs.clear()
        shutil.rmtree(self._folder, ignore_errors=True)
