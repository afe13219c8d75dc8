"""A sandbox that runs nothing: it answers commands from a list, and keeps files in memory."""

from __future__ import annotations

import io
import posixpath
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from types import TracebackType
from typing import BinaryIO, Self

from environments.sandboxes.sandbox import ExecResult, SandboxConfig, SandboxStream
from prchain.core.errors import SandboxError, SandboxFileError, SandboxLost, SnapshotUnknown

Matcher = str | re.Pattern[str] | Callable[[str], bool]
"""Which commands a line fits: the exact text, a pattern found in it, or a function that says so."""

_QUOTED = 400


@dataclass(frozen=True, slots=True)
class ScriptedResult:
    """One answer. A `result` that is an error is raised; a `repeat` line answers as often as it is asked."""

    matcher: Matcher
    result: ExecResult | SandboxError
    repeat: bool = False

    def fits(self, command: str) -> bool:
        """Whether the line answers this command."""
        if isinstance(self.matcher, str):
            return self.matcher == command
        if isinstance(self.matcher, re.Pattern):
            return self.matcher.search(command) is not None
        return self.matcher(command)


class ScriptedSandbox:
    """Answers each command with the first unused line that fits it; see `Sandbox`.

    `lines` are `ScriptedResult`s or pairs of a matcher and a result. Files are kept as they are written (`read`,
    `write`, `put`, `get`, snapshots); commands do not change them. `asked` lists the commands.
    """

    def __init__(
        self,
        lines: Iterable[ScriptedResult | tuple[Matcher, ExecResult | SandboxError]] = (),
        *,
        config: SandboxConfig | None = None,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        self.config = config or SandboxConfig(None)
        self.asked: list[str] = []
        self._lines = [line if isinstance(line, ScriptedResult) else ScriptedResult(*line) for line in lines]
        self._files = {path: (content, 0o644) for path, content in (files or {}).items()}
        self._snapshots: dict[str, dict[str, tuple[bytes, int]]] = {}
        self._numbers = count(1)
        self._running = False
        self._closed = False

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """See `Sandbox.start`."""
        if self._closed:
            raise SandboxLost("the sandbox was closed")
        self._running = True

    def close(self) -> None:
        """See `Sandbox.close`."""
        self._closed, self._running = True, False

    @property
    def unused(self) -> int:
        """How many lines have not answered yet, those that repeat apart."""
        return sum(not line.repeat for line in self._lines)

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
        """The result of the first line that fits. Raises `AssertionError`, which quotes the command."""
        self._check()
        self.asked.append(command)
        for place, line in enumerate(self._lines):
            if line.fits(command):
                if not line.repeat:
                    del self._lines[place]
                if isinstance(line.result, SandboxError):
                    raise line.result
                return line.result
        raise AssertionError(f"the script has no answer to the command {command[:_QUOTED]!r}")

    def stream(
        self, command: str, *, cwd: str | None = None, environment: Mapping[str, str] | None = None
    ) -> SandboxStream:
        """See `Sandbox.stream`; nothing runs here."""
        raise AssertionError(f"the script has no stream {command[:_QUOTED]!r}")

    def listen(self) -> SandboxStream:
        """See `Sandbox.listen`; nothing runs here."""
        raise AssertionError("the script has no relay")

    def read(self, path: str) -> bytes:
        """See `Sandbox.read`."""
        self._check()
        try:
            return self._files[path][0]
        except KeyError:
            raise SandboxFileError(f"{path!r} cannot be read: there is no such file") from None

    def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        """See `Sandbox.write`."""
        self._check()
        self._files[path] = (content, mode)

    def put(self, folder: str, archive: BinaryIO | bytes) -> None:
        """See `Sandbox.put`; keeps regular files alone."""
        self._check()
        stream = io.BytesIO(archive) if isinstance(archive, bytes) else archive
        try:
            with tarfile.open(fileobj=stream, mode="r:*") as tar:
                for member in tar:
                    content = tar.extractfile(member) if member.isfile() else None
                    if content is not None:
                        path = posixpath.normpath(posixpath.join(folder, member.name))
                        self._files[path] = (content.read(), member.mode)
        except tarfile.TarError as error:
            raise SandboxFileError(f"{folder!r} cannot be unpacked into: {error}") from None

    def get(self, path: str) -> Iterator[bytes]:
        """See `Sandbox.get`."""
        self._check()
        path = posixpath.normpath(path)
        found = {name: file for name, file in self._files.items() if name == path or name.startswith(f"{path}/")}
        if not found:
            raise SandboxFileError(f"{path!r} cannot be read: there is no such file")
        return iter([_as_tar(posixpath.dirname(path), found)])

    def leftovers(self) -> int:
        """See `Sandbox.leftovers`; nothing runs here."""
        self._check()
        return 0

    def snapshot(self) -> str:
        """See `Sandbox.snapshot`."""
        self._check()
        name = f"snapshot-{next(self._numbers)}"
        self._snapshots[name] = dict(self._files)
        return name

    def restore(self, snapshot: str) -> None:
        """See `Sandbox.restore`."""
        self._check()
        self._files = dict(self._snapshot(snapshot))

    def branch(self, snapshot: str) -> ScriptedSandbox:
        """See `Sandbox.branch`; the branch answers from the same lines."""
        self._check()
        other = ScriptedSandbox(config=self.config)
        other._files = dict(self._snapshot(snapshot))
        other._lines, other._snapshots, other._numbers = self._lines, self._snapshots, self._numbers
        other.start()
        return other

    def forget(self, snapshot: str) -> None:
        """See `Sandbox.forget`."""
        self._snapshots.pop(snapshot, None)

    def _snapshot(self, snapshot: str) -> dict[str, tuple[bytes, int]]:
        try:
            return self._snapshots[snapshot]
        except KeyError:
            raise SnapshotUnknown(f"there is no snapshot {snapshot!r} of this sandbox") from None

    def _check(self) -> None:
        if not self._running:
            raise SandboxLost("the sandbox was closed" if self._closed else "the sandbox was not started")


def _as_tar(above: str, files: Mapping[str, tuple[bytes, int]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, (content, mode) in sorted(files.items()):
            member = tarfile.TarInfo(posixpath.relpath(path, above))
            member.size, member.mode = len(content), mode
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()
