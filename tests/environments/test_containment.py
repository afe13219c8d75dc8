"""A sandbox in a container holds: each try to escape or to harm the host has a clear outcome, and nothing is left."""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import socket
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from environments.sandboxes import leftovers
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import connect
from environments.sandboxes.sandbox import OUT_OF_MEMORY, OUTPUT_LIMIT, PROCESS_LIMIT, ResourceLimits
from prchain.core.errors import DiskLimit, EngineUnavailable, SandboxLost
from tests.environments.conformance import SOLUTION, assert_future_is_out_of_reach
from tests.environments.test_sandbox_docker import make_docker, ours

pytestmark = pytest.mark.docker

SMALL = ResourceLimits(memory_bytes=128 << 20, processes=64, file_bytes=64 << 20, disk_bytes=150 << 20, cpus=1)


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    found = connect()
    yield found
    assert ours(found) == ([], [])
    found.close()


@pytest.fixture(autouse=True)
def _the_host_stays_healthy(client: Any) -> Iterator[None]:
    """After each test the engine answers, no container of ours is left, and the host has memory and processes."""
    yield
    assert client.ping()
    assert ours(client) == ([], [])
    free = next(line for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemAvailable"))
    assert int(free.split()[1]) > 500_000
    assert len([name for name in os.listdir("/proc") if name.isdigit()]) < 5_000


@pytest.fixture
def sandbox() -> Iterator[DockerSandbox]:
    with make_docker(limits=SMALL) as sandbox:
        yield sandbox


def test_no_network_is_there(sandbox: DockerSandbox) -> None:
    result = sandbox.exec("cat /proc/net/dev | tail -n +3 | cut -d: -f1; cat /proc/net/route | wc -l")
    assert result.output.split()[-2:] == [b"lo", b"1"]
    with socket.create_server(("0.0.0.0", 0)) as server:
        port = server.getsockname()[1]
        for host in ("127.0.0.1", "172.17.0.1", socket.gethostbyname(socket.gethostname()), "1.1.1.1"):
            result = sandbox.exec(f"exec 3<>/dev/tcp/{host}/{port}", timeout=10)
            assert result.exit_code != 0 and (b"refused" in result.output or b"unreachable" in result.output)
    assert sandbox.exec("getent hosts example.org", timeout=30).exit_code != 0


def test_a_fork_bomb_ends_with_its_timeout(sandbox: DockerSandbox) -> None:
    result = sandbox.exec("bomb() { bomb | bomb & }; bomb; sleep 60", timeout=2)
    assert result.timed_out and result.seconds < 30
    assert sandbox.exec("echo fine").output == b"fine\n"


def test_a_fork_bomb_left_in_the_background_is_killed_before_the_next_command(sandbox: DockerSandbox) -> None:
    result = sandbox.exec(
        "exec {idle}<> <(:); for i in {1..45}; do sleep 1000 & done\n"
        "bomb() { bomb | bomb & }; bomb; read -t 1 -u $idle",
        timeout=20,
    )
    assert not result.timed_out
    result = sandbox.exec("echo fine", timeout=30)
    assert (result.output, result.limit) == (b"fine\n", PROCESS_LIMIT)
    assert sandbox.exec("echo fine").limit is None


def test_processes_are_limited(sandbox: DockerSandbox) -> None:
    # Bash tries again and again where it gets no process; this ends at once.
    forks = "import os, time\nfor _ in range(200):\n    if not os.fork():\n        time.sleep(100)"
    result = sandbox.exec(f"python3 -c '{forks}'", timeout=60)
    assert not result.timed_out and b"Resource temporarily unavailable" in result.output


def test_a_memory_hog_is_ended_and_named(sandbox: DockerSandbox) -> None:
    result = sandbox.exec("x=$(head -c 500000000 /dev/zero | tr '\\0' x); echo ${#x}", timeout=50)
    assert result.limit == OUT_OF_MEMORY and result.exit_code != 0
    assert sandbox.exec("echo fine").limit is None


def test_memory_backed_files_count_as_memory(sandbox: DockerSandbox) -> None:
    result = sandbox.exec("head -c 300000000 /dev/zero > /dev/shm/big", timeout=50)
    assert result.exit_code != 0
    assert sandbox.exec("rm -f /dev/shm/big; echo fine").output == b"fine\n"


def test_a_large_file_against_a_smaller_limit(sandbox: DockerSandbox) -> None:
    result = sandbox.exec("head -c 1000000000 /dev/zero > big")
    assert result.exit_code == 153  # 128 + SIGXFSZ
    assert sandbox.exec("stat -c %s big").output == b"%d\n" % SMALL.file_bytes


def test_many_files_end_the_sandbox_as_disk_limit(sandbox: DockerSandbox) -> None:
    command = "i=0; while :; do ((i++)); head -c 8000000 /dev/zero > f$i; sleep 0.05; done"
    with pytest.raises(DiskLimit, match="157,286,400"):
        sandbox.exec(command, timeout=55)
    with pytest.raises(DiskLimit):
        sandbox.exec("true")


def test_endless_output_is_cut_and_stays_off_the_disk(sandbox: DockerSandbox) -> None:
    result = sandbox.exec("yes; echo never", timeout=50)
    assert (result.limit, result.exit_code) == (OUTPUT_LIMIT, None)
    assert len(result.output) == 1 << 20
    assert sandbox._disk_use() < 1 << 20


def test_children_in_their_own_session_die_with_the_timeout(sandbox: DockerSandbox) -> None:
    result = sandbox.exec(
        "(setsid bash -c 'trap \"\" TERM HUP; while :; do sleep 0.1; date +%s%N > /tmp/alive; done' &); sleep 60",
        timeout=1,
    )
    assert result.timed_out
    before = sandbox.exec("cat /tmp/alive").output
    time.sleep(0.5)
    assert sandbox.exec("cat /tmp/alive").output == before


@pytest.mark.parametrize("command", ["kill -9 -1", "kill -9 $(cat /proc/[0-9]*/stat | cut -d' ' -f1)"])
def test_a_command_that_kills_everything_ends_clearly(sandbox: DockerSandbox, command: str) -> None:
    try:
        result = sandbox.exec(f"{command}; sleep 30", timeout=40)
    except SandboxLost:
        with pytest.raises(SandboxLost):
            sandbox.exec("true")
    else:
        assert result.exit_code in {None, 137} and not result.timed_out
        assert sandbox.exec("echo survived").output == b"survived\n"


def test_a_stopped_server_is_lost_not_waited_for(sandbox: DockerSandbox) -> None:
    assert sandbox._channel is not None
    sandbox._channel._patience = 3.0
    stop = "read -r _ _ _ parent _ < /proc/$PPID/stat; kill -STOP $parent; sleep 100"
    began = time.monotonic()
    with pytest.raises(SandboxLost, match="silent"):
        sandbox.exec(stop, timeout=80)
    assert time.monotonic() - began < 30


def test_the_container_is_killed_in_the_middle_of_a_command(sandbox: DockerSandbox, client: Any) -> None:
    timer = threading.Timer(0.5, lambda: client.api.kill(sandbox.name))
    timer.start()
    with pytest.raises(SandboxLost, match="ended with 137"):
        sandbox.exec("sleep 30")
    timer.join()


def test_the_connection_breaks_in_the_middle_of_a_command(sandbox: DockerSandbox, client: Any) -> None:
    assert sandbox._channel is not None
    transport: Any = sandbox._channel._transport
    timer = threading.Timer(0.5, lambda: transport._socket.shutdown(socket.SHUT_RDWR))
    timer.start()
    with pytest.raises(SandboxLost):
        sandbox.exec("sleep 30")
    timer.join()
    assert not client.api.inspect_container(sandbox.name)["State"]["Running"]


class Relay(threading.Thread):
    """Stands between a client and the engine's socket, until it is cut: then neither answers nor keeps a connection."""

    def __init__(self, path: Path, engine: str) -> None:
        super().__init__(daemon=True)
        self.path = path
        self._engine = engine
        self._open: list[socket.socket] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._engine)
                self._open += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 16):
                target.sendall(content)
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        self.path.unlink()
        for connection in (self._server, *self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()


@pytest.fixture
def relay(client: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    """A way to the engine that can be cut; what was left in the engine because of that is removed afterwards."""
    url = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not url.startswith("unix://"):
        pytest.fail("this test needs an engine behind a local socket")
    with tempfile.TemporaryDirectory() as folder:  # a socket's path must be short
        thread = Relay(Path(folder, "s"), url.removeprefix("unix://"))
        thread.start()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{thread.path}")
        yield thread
        if thread.path.exists():
            thread.cut()
        thread.join(5)
    for container in ours(client)[0]:
        client.api.remove_container(container, force=True)


def test_the_engine_goes_away_in_the_middle_of_a_command(relay: Relay, client: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # docker's own: a socket that it could not connect
        with make_docker(limits=SMALL) as sandbox:
            timer = threading.Timer(1.0, relay.cut)
            timer.start()
            began = time.monotonic()
            with pytest.raises(EngineUnavailable, match="does not answer"):
                sandbox.exec("sleep 30")
            timer.join()
            assert time.monotonic() - began < 20
            with pytest.raises(EngineUnavailable):
                sandbox.exec("true")
        gc.collect()
    names = {item.name for item in leftovers.find(client, everybody=True)}
    assert sandbox.name in names, "what could not be removed is found by its label later"


def test_the_channel_is_killed_in_the_middle_of_a_command(sandbox: DockerSandbox, client: Any) -> None:
    kill = "read -r _ _ _ parent _ < /proc/$PPID/stat; sleep 0.5; kill -9 $parent; sleep 100"
    began = time.monotonic()
    with pytest.raises(SandboxLost, match="stream ended"):
        sandbox.exec(kill, timeout=80)
    assert time.monotonic() - began < 20
    assert not client.api.inspect_container(sandbox.name)["State"]["Running"], "nothing goes on in it unseen"


def test_the_whole_file_system_holds_nothing_of_the_future(tmp_path: Path) -> None:
    with make_docker() as sandbox:
        assert_future_is_out_of_reach(sandbox, tmp_path)
        others = "--exclude-dir=proc --exclude-dir=sys --exclude-dir=usr"
        found = sandbox.exec(f"grep -rlsF -e {shlex.quote(SOLUTION)} -e {tmp_path} {others} /")
        assert (found.exit_code, found.output) == (1, b"")


def test_files_environment_and_socket_of_the_host_are_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Any
) -> None:
    planted = tmp_path / "planted"
    planted.write_text("planted-secret")
    monkeypatch.setenv("PLANTED", "planted-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:planted-secret@proxy.example:1")
    with make_docker(limits=SMALL) as sandbox:
        result = sandbox.exec(
            f"cat {planted}; env; cat /proc/[0-9]*/environ /proc/self/mountinfo; ls -a / /root /run /var/run; "
            "find / -xdev -type s"
        )
        assert b"planted-secret" not in result.output and b"docker.sock" not in result.output
        assert sandbox.exec("ls /var/run/docker.sock /run/containerd").exit_code != 0
        assert socket.gethostname().encode() not in sandbox.exec("hostname; cat /etc/hostname").output
        boot_disk = sandbox.exec("ls /dev").output.split()
        assert not [name for name in boot_disk if name.startswith((b"sd", b"vd", b"nvme", b"dm-", b"mem", b"kmsg"))]


def test_the_kernel_cannot_be_turned_against_the_host(sandbox: DockerSandbox) -> None:
    for command in (
        "mount -t tmpfs none /mnt",
        "mknod /tmp/disk b 254 0",
        "echo 1 > /proc/sys/kernel/panic",
        "echo c > /proc/sysrq-trigger",
        "chroot / true",
        "unshare -m true",
        "date -s 2000-01-01",
        "dmesg",
        "grep -c . /proc/kcore",
        "cat /dev/mem",
        "cd /sys/fs/cgroup/memory || exit 1; echo -1 > memory.limit_in_bytes",
        "cd /sys/fs/cgroup; [ ! -e memory ] && echo max > memory.max",
        "hostname other",
    ):
        assert sandbox.exec(command).exit_code != 0, command
    assert sandbox.exec("grep -E 'NoNewPrivs|Seccomp:' /proc/self/status").output == b"NoNewPrivs:\t1\nSeccomp:\t2\n"
