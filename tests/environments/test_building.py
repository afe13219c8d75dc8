"""What a build's container says of its own surroundings: a full disk, too little time. The engine is a stand-in."""

from __future__ import annotations

import socket
import struct
import time
from types import SimpleNamespace
from typing import Any

import pytest

from environments.images import building
from environments.images.building import BuildContainer
from environments.sandboxes.engine import EngineDiskFull
from prchain.core.errors import BuildFailed, DiskFull

FULL = b"error: failed to write `/opt/env/x`\n  Caused by: No space left on device (os error 28)\n"


class StandIn:
    """An engine whose one container prints a text, fails, and has so many bytes free."""

    def __init__(self, free: str) -> None:
        self.id, self.free, self.removed, self.asked = "c", free, False, list[Any]()
        answers = {"exec_create": {"Id": "e"}, "exec_start": None, "exec_inspect": {"ExitCode": 1}}
        api = SimpleNamespace(**{name: lambda *_, value=value, **__: value for name, value in answers.items()})
        self.client = SimpleNamespace(api=api)
        self.containers = SimpleNamespace(run=lambda *_, **__: self)

    def put_archive(self, path: str, data: object) -> bool:
        return True

    def exec_run(self, command: list[str], user: str) -> SimpleNamespace:
        self.asked.append((command[0], user))
        return SimpleNamespace(exit_code=0, output=f"Avail\n{self.free}\n".encode())

    def remove(self, **_: object) -> None:
        self.removed = True


class Quick:
    """A stream whose command prints as soon as it may, and nothing before that."""

    def __init__(self, ours: socket.socket, theirs: socket.socket) -> None:
        self._sock, self.theirs, self.heard = ours, theirs, b""

    def fileno(self) -> int:
        return self._sock.fileno()

    def recv(self, most: int) -> bytes:
        return self._sock.recv(most)

    def close(self) -> None:
        self.heard = self.theirs.recv(10)
        self.theirs.close()


def test_a_command_says_nothing_before_somebody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's client loses what comes together with its answer: an empty `id -u` broke builds off."""
    engine = StandIn("0")
    ours, theirs = socket.socketpair()
    said: list[Any] = []
    streams: list[Quick] = []

    def create(_: str, command: list[str], **options: Any) -> dict[str, str]:
        said.append((command[-1].partition("\n")[0], options["stdin"]))
        return {"Id": "e"}

    def start(_: str, **__: Any) -> Quick:
        theirs.sendall(struct.pack(">BxxxL", 1, 5) + b"1000\n")
        theirs.shutdown(socket.SHUT_WR)
        streams.append(Quick(ours, theirs))
        return streams[-1]

    api = engine.client.api
    api.exec_create, api.exec_start, api.exec_inspect = create, start, lambda _: {"ExitCode": 0}
    with BuildContainer(engine, "base", network="none", deadline=time.monotonic() + 60) as container:
        theirs.settimeout(5)
        assert container.run("user", "id -u agent") == "1000\n"
    assert said == [("IFS= read -r _; exec </dev/null", True)] and streams[0].heard == b"\n"


def ran(engine: StandIn, says: bytes, monkeypatch: pytest.MonkeyPatch, *, seconds: float = 60.0) -> None:
    monkeypatch.setattr(building, "_chunks", lambda stream: iter([says]))
    with BuildContainer(engine, "base", network="none", deadline=time.monotonic() + seconds) as container:
        container.try_each("dependencies", ["first", "second"])


def test_a_disk_that_a_build_has_filled_is_no_failure_of_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = StandIn("700000")
    with pytest.raises(DiskFull, match=r"No space left on device.*`prchain environments prune` makes room") as caught:
        ran(engine, FULL, monkeypatch)
    assert isinstance(caught.value, EngineDiskFull) and "Caused by" in caught.value.log
    assert engine.removed and engine.asked == [("/bin/df", "0")]


@pytest.mark.parametrize("free", ["70000000000", "", "-"])
def test_a_tree_that_only_says_so_fails_alone(free: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BuildFailed, match="No space left on device") as caught:
        ran(StandIn(free), FULL, monkeypatch)
    assert caught.value.log.count("No space left") == 2


def test_what_a_failure_says_holds_each_line_once(monkeypatch: pytest.MonkeyPatch) -> None:
    says = b"error: Failed to build `a`\nModuleNotFoundError: No module named 'b'\n"
    with pytest.raises(BuildFailed) as caught:
        ran(StandIn("1"), says, monkeypatch)
    assert caught.value.words == (
        "the step dependencies failed: ModuleNotFoundError: No module named 'b' | error: Failed to build `a`"
    )


def test_a_build_that_is_out_of_time_names_the_setting_that_gives_it_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BuildFailed, match=r"too long; it was at the step dependencies .*build_timeout_seconds"):
        ran(StandIn("1"), b"", monkeypatch, seconds=-1.0)
