"""The sandbox on this machine: the common suite in namespaces, and what plain processes can and cannot do."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from environments.sandboxes import leftovers
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.sandbox import ResourceLimits, SandboxConfig
from prchain.core.errors import DiskLimit, EngineUnavailable, ImageMissing, SandboxLost, UsageError
from prchain.core.processes.alive import this_process
from tests.environments import conformance
from tests.environments.stream_conformance import StreamConformance

ROOT = Path(__file__).parents[2]


def _runs(number: int) -> bool:
    """Whether a process runs; one that ended and that nobody has reaped does not."""
    try:
        return Path(f"/proc/{number}/stat").read_bytes().rpartition(b") ")[2][:1] != b"Z"
    except OSError:
        return False


def _anybody(word: bytes) -> bool:
    """Whether a process has such a word among its arguments."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if word in path.read_bytes().split(b"\0"):
                return True
    return False


def make_local(**fields: Any) -> LocalSandbox:
    values: dict[str, Any] = {
        "image": None,
        "limits": ResourceLimits(memory_bytes=512 << 20, processes=128, disk_bytes=1 << 30),
        "environment": {"FROM_PLACE": "of the place"},
    }
    return LocalSandbox(SandboxConfig(**(values | fields)))


@pytest.mark.usefixtures("bubblewrap")
class TestLocal(conformance.Conformance, StreamConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def make(cls) -> Callable[..., LocalSandbox]:
        return make_local

    def test_the_host_is_not_there(self, make: Callable[..., LocalSandbox], tmp_path: Path, monkeypatch: Any) -> None:
        secret = tmp_path / "secret"
        secret.write_text("planted")
        monkeypatch.setenv("PLANTED", "planted")
        with make() as sandbox:
            result = sandbox.exec(
                f"cat {secret}; env; cat /proc/[0-9]*/environ; ls /root /work /home /tmp -a; cat /etc/passwd"
            )
            assert b"planted" not in result.output
            assert sandbox.exec("id -u; grep CapEff /proc/self/status").output == b"1000\nCapEff:\t0000000000000000\n"
            assert sandbox.exec("touch /usr/x || touch /x").exit_code != 0
            assert sandbox.exec("exec 3<>/dev/tcp/127.0.0.1/22 || cat /proc/net/dev | wc -l").output.endswith(b"3\n")

    def test_counts_of_the_machine_are_not_shown(self, make: Callable[..., LocalSandbox]) -> None:
        with make() as sandbox:
            told = "cat /proc/sys/fs/file-nr /proc/sys/fs/inode-nr /proc/interrupts /proc/pressure/* 2> /dev/null"
            assert sandbox.exec(told).output == b""
            assert sandbox.exec("cat /proc/meminfo").output and sandbox.exec("cat /proc/sys/fs/file-max").output

    def test_a_fork_bomb_ends_with_its_timeout(self, make: Callable[..., LocalSandbox]) -> None:
        with make() as sandbox:
            assert sandbox.exec("bomb() { bomb | bomb & }; bomb; sleep 20", timeout=1).timed_out
            assert sandbox.exec("echo fine").output == b"fine\n"

    def test_disk_and_file_size_are_limited(self, make: Callable[..., LocalSandbox]) -> None:
        limits = ResourceLimits(file_bytes=8 << 20, disk_bytes=32 << 20, memory_bytes=512 << 20, processes=64)
        with make(limits=limits) as sandbox:
            assert sandbox.exec("head -c 20000000 /dev/zero > big").exit_code == 153
            assert sandbox.exec("stat -c %s big").output == b"8388608\n"
            with pytest.raises(DiskLimit):
                sandbox.exec("i=0; while :; do ((i++)); head -c 4000000 /dev/zero > f$i; sleep 0.05; done", timeout=30)

    def test_files_without_content_count_too(self, make: Callable[..., LocalSandbox]) -> None:
        limits = ResourceLimits(disk_bytes=32 << 20, memory_bytes=512 << 20, processes=64)
        with make(limits=limits) as sandbox, pytest.raises(DiskLimit):
            sandbox.exec("i=0; while :; do : > f$((i++)); done", timeout=60)

    def test_its_end_in_the_middle_of_a_command_ends_the_command_too(self, make: Callable[..., LocalSandbox]) -> None:
        nap = f"30.{uuid.uuid4().int % 10**12}"  # other runs on the same machine have naps of their own
        with make() as sandbox:
            assert sandbox._process is not None
            timer = threading.Timer(0.5, sandbox._process.kill)
            timer.start()
            with pytest.raises(SandboxLost):
                sandbox.exec(f"setsid sleep {nap} & sleep {nap}", timeout=25)
            timer.join()
            with pytest.raises(SandboxLost):
                sandbox.exec("true")
        until = time.monotonic() + 5
        while _anybody(nap.encode()) and time.monotonic() < until:
            time.sleep(0.05)
        assert not _anybody(nap.encode())

    def test_a_memory_hog_gets_no_more(self, make: Callable[..., LocalSandbox]) -> None:
        with make(limits=ResourceLimits(memory_bytes=64 << 20)) as sandbox:
            assert sandbox.exec("x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}").exit_code != 0

    def test_killing_everything_loses_the_sandbox(self, make: Callable[..., LocalSandbox]) -> None:
        with make() as sandbox, pytest.raises(SandboxLost):
            sandbox.exec("kill -9 -1; sleep 10")

    def test_the_folder_of_a_forgotten_snapshot_goes_when_nobody_stands_on_it(
        self, make: Callable[..., LocalSandbox]
    ) -> None:
        with make() as sandbox:
            first, second = sandbox.snapshot(), sandbox.snapshot()
            folders = [sandbox._family.snapshots[name].folder for name in (first, second)]
            sandbox.restore(first)
            sandbox.forget(first)
            assert [folder.exists() for folder in folders] == [True, True]
            sandbox.restore(second)
            assert [folder.exists() for folder in folders] == [False, True]
        assert not folders[1].exists()

    def test_a_folder_can_be_the_root(self, make: Callable[..., LocalSandbox], tmp_path: Path) -> None:
        with pytest.raises(ImageMissing):
            make(image=str(tmp_path / "none")).start()

    def test_folders_of_a_killed_process_are_found(self) -> None:
        with (
            tempfile.TemporaryDirectory() as folder
        ):  # pytest's own folders are closed to the user nobody, which root becomes
            os.chmod(folder, 0o755)
            self._leave_folders(Path(folder))

    def _leave_folders(self, tmp_path: Path) -> None:
        code = (
            "import os, signal\nfrom tests.environments.test_sandbox_local import make_local\n"
            "box = make_local()\nbox.start()\nbox.exec('mkdir locked; chmod 0 locked')\n"
            "box.restore(box.snapshot())\nos.kill(os.getpid(), signal.SIGKILL)"
        )
        environment = os.environ | {"TMPDIR": str(tmp_path)}
        ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, check=False)
        assert ran.returncode == -9, ran.stderr
        own = tmp_path / f"{leftovers.LOCAL_PREFIX}own"
        own.mkdir()
        (own / leftovers.OWNER_FILE).write_text(str(this_process()))
        time.sleep(0.2)
        found = leftovers.clear_local(tmp_path)
        assert list(found.values()) == [True, True] and own not in found
        assert list(tmp_path.iterdir()) == [own]
        assert str(tmp_path) not in Path("/proc/mounts").read_text()


class TestUnsafe(conformance.Conformance, StreamConformance):
    """Plain processes: everything but namespaces. Exceptions: no branches, sessions outside the workdir, the host's
    files are there to be read, and a command that kills everything hits the host."""

    APART = False
    BRANCHES = False
    SESSIONS_IN_SNAPSHOTS = False

    @pytest.fixture(scope="class")
    @classmethod
    def make(cls, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., LocalSandbox]:
        def make_unsafe(**fields: Any) -> LocalSandbox:
            values = {"image": None, "workdir": str(tmp_path_factory.mktemp("work"))}
            return LocalSandbox(
                SandboxConfig(**(values | {"environment": {"FROM_PLACE": "of the place"}} | fields)), unsafe=True
            )

        return make_unsafe

    def test_a_timeout_hits_nobody_else(self, make: Callable[..., LocalSandbox]) -> None:
        with make() as sandbox:
            other = subprocess.Popen(["sleep", "30"])
            assert sandbox.exec("sleep 20", timeout=0.5).timed_out
            assert other.poll() is None
            other.kill()
            other.wait()

    def test_nothing_goes_on_after_the_end(self, make: Callable[..., LocalSandbox]) -> None:
        with make() as sandbox:
            started = sandbox.exec("(setsid bash -c 'sleep 500 & echo $!; wait' &) ; sleep 500 & echo $!; sleep 0.3")
            numbers = [int(word) for word in started.output.split()]
            assert len(numbers) == 2 and all(Path(f"/proc/{number}").exists() for number in numbers)
        assert not [number for number in numbers if _runs(number)]

    def test_git_sees_no_settings_and_attributes_of_the_machine(self, make: Callable[..., LocalSandbox]) -> None:
        with make() as sandbox:
            assert sandbox.exec("env | grep ^GIT_ | sort").text.split() == [
                "GIT_ATTR_NOSYSTEM=1",
                "GIT_CONFIG_NOSYSTEM=1",
            ]

    def test_it_wants_a_folder_of_its_own(self) -> None:
        for workdir in ("/", "relative"):
            with pytest.raises(UsageError):
                LocalSandbox(SandboxConfig(None, workdir=workdir), unsafe=True)


def test_without_bubblewrap_nothing_runs_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(EngineUnavailable, match="bubblewrap"):
        make_local().start()
