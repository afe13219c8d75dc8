"""The sandbox in containers: the common suite, what only an engine has, and what a crash leaves behind."""

from __future__ import annotations

import errno
import gc
import io
import os
import secrets
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import docker
import pytest

import environments.sandboxes.docker
from environments.checkouts import listing
from environments.checkouts.checkout import extract_tree, place_tree
from environments.checkouts.tracking import Tracker
from environments.sandboxes import flat_image, frozen_layers, leftovers, taken_layers
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.docker_stream import engine_errors
from environments.sandboxes.engine import connect
from environments.sandboxes.local_files import remove_folder
from environments.sandboxes.own_layers import area, engine_layers
from environments.sandboxes.relaying import relayed
from environments.sandboxes.sandbox import ResourceLimits, SandboxConfig
from environments.sandboxes.shared_files import read_shared
from prchain.core.errors import EngineUnavailable, ImageMissing, SandboxError, SandboxLost, SnapshotUnknown
from prchain.core.processes.alive import this_process
from tests.environments import conformance
from tests.environments.bare_image import bare_image
from tests.environments.layered_trees import START, listings_of_agents
from tests.environments.relays import serving_echo
from tests.environments.stream_conformance import StreamConformance
from tests.prchain.treeworld import new_store, plant

IMAGE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
LABEL = "prchain.test"
ROOT = Path(__file__).parents[2]
MORE = 1
"""Steps beyond the layers that a snapshot may have."""

MAKE_ODD_FILES = (
    "mkdir d; ln -s /etc/none link; echo x > d/own; chown 12:34 d/own; chmod 4750 d/own; ln d/own hard; mkfifo pipe; "
    "chmod 1777 d; truncate -s 1M sparse; touch -d '2001-02-03 04:05:06.789' old; touch $'\\377\\n'; "
    "rm -r /usr/share/doc"
)
MAKE_ODD = ("chown", "find", "ln", "mkfifo", "rm", "sort", "stat", "touch", "truncate")
"""Programs that this and a look at it need."""
CAPABILITY = "SCHILY.xattr.security.capability"

pytestmark = pytest.mark.docker


def make_docker(**fields: Any) -> DockerSandbox:
    """A small sandbox that is not started."""
    values: dict[str, Any] = {
        "image": IMAGE,
        "limits": ResourceLimits(memory_bytes=512 << 20, processes=128, disk_bytes=2 << 30),
        "labels": {LABEL: "sandbox"},
        "environment": {"FROM_PLACE": "of the place"},
    }
    return DockerSandbox(SandboxConfig(**(values | fields)), relay_image=lambda client: IMAGE)


def _with_capability(name: str) -> bytes:
    """A tar of a program that may open raw sockets."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo(name)
        member.mode = 0o755
        member.pax_headers = {CAPABILITY: "\1\0\0\2\0\x20" + "\0" * 14}
        archive.addfile(member)
    return out.getvalue()


def ours(client: Any) -> tuple[list[str], list[str]]:
    """Ids of the containers and snapshots that this process has in the engine."""
    label = f"{leftovers.OWNER}={this_process()}"
    containers = client.api.containers(all=True, filters={"label": label})
    images = client.api.images(filters={"label": label})
    return [item["Id"] for item in containers], [item["Id"] for item in images]


def _copies(folder: Path | None = None) -> list[Path]:
    """The folders of this process that hold what sandboxes wrote."""
    owner = str(this_process())
    found = (folder or Path(tempfile.gettempdir())).glob(f"{leftovers.LOCAL_PREFIX}*/{leftovers.OWNER_FILE}")
    return [path.parent for path in found if path.read_text(encoding="utf-8") == owner]


def _layers(client: Any) -> list[Path]:
    """The layers that this process has beside those of the engine."""
    layers_at = engine_layers(client)
    return _copies(area(layers_at)) if layers_at else []


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of the engine; at the end no sandbox of ours may be left in it."""
    found = connect()
    yield found
    assert (ours(found), _layers(found)) == (([], []), [])
    found.close()


class TestDocker(conformance.Conformance, StreamConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def make(cls) -> Callable[..., DockerSandbox]:
        return make_docker

    def test_another_user_than_root(self, make: Callable[..., DockerSandbox]) -> None:
        with make(user="1234:1234", workdir="/tmp/work") as sandbox:
            assert (
                sandbox.exec("id -u; id -g; grep CapEff /proc/self/status").output
                == b"1234\n1234\nCapEff:\t0000000000000000\n"
            )
            sandbox.exec("kill -9 1")
            assert sandbox.exec("echo alive").output == b"alive\n"
            sandbox.write("/tmp/own", b"x")
            assert sandbox.exec("stat -c %u /tmp/own").output == b"1234\n"

    def test_a_relay_needs_nothing_of_the_image_and_shares_nothing_but_the_network(
        self, make: Callable[..., DockerSandbox], client: Any
    ) -> None:
        containers = len(ours(client)[0])
        with bare_image(client, IMAGE) as image, make(image=image) as box, serving_echo() as address:
            assert box.exec("python3 || node || nc || perl || socat").exit_code == 127
            with relayed(box.listen(), address) as port:
                command = "exec 3<>/dev/tcp/127.0.0.1/%d; echo hello >&3; read -r line <&3; echo $line"
                assert box.exec(command % port.number).output == b"hello\n"
                assert box.leftovers() == 0
                assert b"relay" not in box.exec("for p in /proc/[0-9]*; do cat $p/cmdline; done").output
                assert box._companion is not None
                host = client.api.inspect_container(box._companion.name)["HostConfig"]
                assert (host["NetworkMode"], host["CapDrop"]) == (f"container:{box._container.id}", ["ALL"])
        assert len(ours(client)[0]) == containers
        with make() as box:
            box._relay_image = None
            with pytest.raises(ImageMissing):
                box.listen()

    def test_names_labels_and_limits_of_a_container(self, make: Callable[..., DockerSandbox], client: Any) -> None:
        with make() as sandbox:
            found = client.api.inspect_container(sandbox.name)
            host = found["HostConfig"]
            assert found["Config"]["Labels"][leftovers.SANDBOX] == sandbox.name
            assert (found["Mounts"], host["Binds"], host["NetworkMode"]) == ([], None, "none")
            assert (host["CapDrop"], host["SecurityOpt"], host["Privileged"]) == (["ALL"], ["no-new-privileges"], False)
            assert (host["PidsLimit"], host["Memory"], host["MemorySwap"]) == (128, 512 << 20, 512 << 20)
            assert host["Init"] is True and host["NanoCpus"] == 2_000_000_000
        with pytest.raises(SandboxLost), engine_errors("looking"):
            client.api.inspect_container(sandbox.name)

    def test_counts_of_the_machine_are_not_shown_and_what_programs_read_is(
        self, make: Callable[..., DockerSandbox]
    ) -> None:
        with make() as sandbox:
            told = "cat /proc/sys/fs/file-nr /proc/sys/fs/inode-state /proc/interrupts /proc/vmstat /proc/diskstats"
            assert sandbox.exec(f"{told} /proc/pressure/* 2> /dev/null").output == b""
            assert sandbox.exec("ls -A /sys/firmware /proc/acpi /proc/scsi; cat /proc/keys").output.count(b"\n") <= 5
            for path in ("meminfo", "stat", "cpuinfo", "loadavg", "sys/fs/file-max"):
                assert sandbox.exec(f"cat /proc/{path}").output, path

    def test_no_file_tells_by_time_that_another_sandbox_put_it_out_of_memory(
        self, make: Callable[..., DockerSandbox]
    ) -> None:
        largest = "find /usr/share -xdev -type f -printf '%s %p\n' | sort -n | tail -1 | cut -d' ' -f2-"
        with make() as first, make() as second:
            file = second.exec(largest).text.strip()
            look = f"fincore -b -n -o RES,SIZE {file}"
            first.exec(f"cat {file} > /dev/null; dd if={file} iflag=nocache count=0")
            before, size = map(int, second.exec(look).text.split())
            assert before < size, "what one does in the memory of the machine, the other sees"

            def kept_when_read() -> int:
                read_shared(second)
                return int(second.exec(look).text.split()[0])

            # A sandbox of another test that ends meanwhile takes out of memory what it was the first to read.
            assert max(kept_when_read() for _ in range(3)) >= size

    def test_a_missing_image_and_a_missing_engine_have_names(
        self, make: Callable[..., DockerSandbox], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        with pytest.raises(ImageMissing, match="prchain/no-such"):
            make(image="prchain/no-such:1").start()
        with pytest.raises(ImageMissing):
            make(image=None)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # docker's own: a socket that it could not connect
            with pytest.raises(EngineUnavailable):
                make().start()
            gc.collect()

    @pytest.fixture
    def by_images(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Snapshots are images, as where the engine's layers cannot be read."""
        monkeypatch.setattr(environments.sandboxes.docker, "reads_attributes", lambda _: False)

    @pytest.fixture
    def by_copies(self, make: Callable[..., DockerSandbox]) -> None:
        """Snapshots are copies of what was written."""
        with make() as sandbox:
            if sandbox.upper_layer("/testbed") is None:
                pytest.skip("the engine's layers cannot be read here")

    @pytest.mark.usefixtures("by_images")
    def test_snapshots_go_with_their_family(self, make: Callable[..., DockerSandbox], client: Any) -> None:
        containers, images = (len(ids) for ids in ours(client))
        sandbox = make()
        sandbox.start()
        first = sandbox.snapshot()
        other = sandbox.branch(first)
        other.snapshot()
        sandbox.close()
        assert [len(ids) for ids in ours(client)] == [containers + 1, images + 2]
        other.close()
        assert [len(ids) for ids in ours(client)] == [containers, images]

    @pytest.mark.usefixtures("by_images")
    def test_the_engine_keeps_of_what_is_forgotten_only_what_something_stands_on(
        self, make: Callable[..., DockerSandbox], client: Any
    ) -> None:
        images = set(ours(client)[1])

        def kept() -> int:
            return len(set(ours(client)[1]) - images)

        with make() as box:
            first = box.snapshot()
            box.forget(box.snapshot())
            assert kept() == 1
            box.restore(first)
            second = box.snapshot()
            box.forget(first)
            assert kept() == 2, "the sandbox began with it, and the second snapshot stands on it"
            box.restore(second)
            third = box.snapshot()
            with box.branch(third) as other:
                box.restore(third)
                for snapshot in (second, third):
                    box.forget(snapshot)
                assert kept() == 3
                box.restore(other.snapshot())
                assert kept() == 4
                assert other.exec("echo on").output == b"on\n"
            assert kept() == 4
        assert kept() == 0

    @pytest.mark.usefixtures("by_images")
    def test_what_the_engine_did_not_remove_is_removed_the_next_time(
        self, make: Callable[..., DockerSandbox], client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        images = len(ours(client)[1])
        with make() as box:
            snapshot = box.snapshot()
            with monkeypatch.context() as patch:

                def refuse(*_: Any, **__: Any) -> None:
                    raise docker.errors.APIError("planted")

                patch.setattr(box._client.api, "remove_image", refuse)
                box.forget(snapshot)
            assert len(ours(client)[1]) == images + 1
            box.forget("none")
            assert len(ours(client)[1]) == images

    @pytest.mark.usefixtures("by_images")
    @pytest.mark.parametrize("most", [4, pytest.param(flat_image.MOST_LAYERS, marks=pytest.mark.whole)])
    def test_more_steps_than_an_image_can_have_layers(
        self, make: Callable[..., DockerSandbox], most: int, client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(environments.sandboxes.docker, "MOST_LAYERS", most)
        steps, layers = most + MORE, []
        # A few megabytes: a snapshot of one layer is all of an image.
        with bare_image(client, IMAGE, ("wc",)) as image, make(image=image) as box:
            environment = box.exec("env").output
            for step in range(steps):
                assert box.exec(f"echo {step} > step{step}; echo {step} >> all").exit_code == 0
                snapshot = box.snapshot()
                box.restore(snapshot)
                layers.append(flat_image.would_have_layers(box._client, box._container))
            assert box.exec("cat all").output == b"".join(b"%d\n" % step for step in range(steps))
            assert box.exec("ls step* | wc -l").output == b"%d\n" % steps
            assert box.exec("env").output == environment
        assert max(layers) == most and layers[-1] < steps

    @pytest.fixture
    def small(self, client: Any) -> Iterator[str]:
        """An image of a few megabytes: each flat snapshot is all of it."""
        with bare_image(client, IMAGE, MAKE_ODD) as image:
            yield image

    def test_a_flat_snapshot_a_copy_and_a_layer_hold_what_a_commit_holds(
        self, make: Callable[..., DockerSandbox], client: Any, small: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        odd = ["PATH=/opt/own:/usr/bin:/bin", 'ODD=it\'s "$HOME" \\ \n end', "EMPTY="]
        with make(image=small, user="0") as box:
            assert (
                box.exec("mkdir -p /usr/share/doc/a; echo x > /usr/share/doc/a/b; cd /usr; ln bin/ls ls").exit_code == 0
            )
            made = box._container.commit(conf={"Env": odd, "User": "agent", "WorkingDir": "/usr"})
        listing = (
            "find / -xdev \\( -path /proc -o -path /sys -o -path /tmp/.prchain \\) -prune -o -printf '%p %y %m %U %G %l"
        )
        try:
            with make(image=made.id, user="0") as box:
                assert box.exec(MAKE_ODD_FILES).exit_code == 0
                box.put("/testbed", _with_capability("able"))
                seen, shared = [], Path(box._container.attrs["GraphDriver"]["Data"]["UpperDir"]).is_dir()
                copied = box.snapshot()
                with box.branch(copied) as other, monkeypatch.context() as patch:
                    patch.setattr(frozen_layers, "_MOST_NAMES", 0)
                    layered = other.snapshot()
                    assert (other._container is None) is shared
                monkeypatch.setattr(environments.sandboxes.docker, "reads_attributes", lambda _: False)
                box._looked_for_upper = False
                by_commit = box.snapshot()
                monkeypatch.setattr(environments.sandboxes.docker, "MOST_LAYERS", 0)
                for snapshot in (copied, layered, by_commit, box.snapshot()):
                    box.restore(snapshot)
                    assert bool(box._ground.layers) is (shared and snapshot is layered)
                    image = client.api.inspect_image(box._ground.image)
                    stream, _ = client.api.get_archive(box.name, "/testbed/able")
                    with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as archive:
                        (able,) = archive.getmembers()
                    # Sizes of folders are the file system's; the engine makes these files for each container.
                    files = box.exec(
                        f"{listing}\\n' ! -type d -o -printf '%p %m %U %G\\n' | sort", output_limit=32 << 20
                    )
                    times = box.exec("stat -c '%n %s %h %Y' /testbed/* /usr/bin/*", output_limit=32 << 20)
                    runs = client.api.inspect_container(box.name)["Config"]
                    config = {key: runs[key] for key in ("Env", "User", "WorkingDir", "Entrypoint", "Cmd")}
                    config["Env"].sort()
                    seen.append((box.exec("env").output, config, files.output, times.output, able.pax_headers))
                assert len(image["RootFS"]["Layers"]) == 1
                assert seen[0] == seen[1] == seen[2] == seen[3]
                assert odd[1].encode() in seen[1][0] and b"/testbed/d/own f 4750 12 34" in seen[1][2]
                assert b"/usr/ls f" in seen[1][2] and b"/usr/share/doc" not in seen[1][2]
                assert CAPABILITY in seen[1][4]
        finally:
            client.api.remove_image(made.id, force=True, noprune=True)

    def test_a_tree_takes_the_place_of_a_folder_of_somebody_else(
        self, make: Callable[..., DockerSandbox], tmp_path: Path
    ) -> None:
        store = new_store(tmp_path)
        tree = plant(store, {"a": "a\n", "d/b": "b\n"})
        with make(user="0") as sandbox:
            assert sandbox.exec("touch left; mkdir -p d; chown -R 12345:12345 .").exit_code == 0
            place_tree(sandbox, store, tree)
            assert sandbox.exec("find . ! -uid 0; ls; git status --porcelain").output == b"a\nd\n"
        with make(user="agent") as sandbox:
            place_tree(sandbox, store, tree)
            assert sandbox.exec("find . ! -user agent; ls; git status --porcelain").output == b"a\nd\n"

    def test_a_tree_is_followed_step_by_step(self, make: Callable[..., DockerSandbox], tmp_path: Path) -> None:
        store = new_store(tmp_path)
        start = plant(store, {"a": "a\n", "d/b": "b\n", ".gitignore": "*.log\n"})
        with make(user="agent") as sandbox:
            place_tree(sandbox, store, start)
            tracker = Tracker(sandbox, store, start_tree=start, ignore_rules_from=start)
            trees = [tracker.take()]
            for command in (
                "true",
                "touch -r a /tmp/time; echo b > a; touch -r /tmp/time a",
                "mv d e; echo x > e/new.log; chmod +x e/b",
                "ln -s /etc/passwd link; printf x > $'odd\\n\\377'; git add -A; git commit -qm mine; rm -rf .git",
                "echo 'find() { :; }' >> ~/.bashrc; rm a",
                "mkdir shut; echo hidden > shut/file; chmod 0 shut",
            ):
                assert sandbox.exec(command).exit_code == 0
                trees.append(tracker.take())
                assert trees[-1] == extract_tree(sandbox, store, start_tree=start, ignore_rules_from=start).tree, (
                    command
                )
            assert trees[0] == trees[1] == start and len(set(trees)) == 6

    @pytest.mark.parametrize(("user", "most_names"), [("agent", 0), ("0", 0), ("agent", 2_000)])
    def test_trees_are_read_out_of_the_upper_layer_where_it_is_this_machines(
        self,
        make: Callable[..., DockerSandbox],
        user: str,
        most_names: int,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """The tree lies under that layer, in an image, or in it."""
        monkeypatch.setattr(frozen_layers, "_MOST_NAMES", most_names)
        store = new_store(tmp_path)
        with make(user=user) as sandbox:
            place_tree(sandbox, store, plant(store, START))
            sandbox.restore(sandbox.snapshot())
            if sandbox.upper_layer("/testbed") is None:
                pytest.skip("the engine's layers cannot be read here")
            assert sandbox.exec("ls -A /tmp").output == b".prchain\n"
            assert listings_of_agents(sandbox, store, monkeypatch) < 4

    @pytest.mark.usefixtures("by_images")
    def test_a_snapshot_pauses_a_container_in_which_something_runs_and_no_other(
        self, make: Callable[..., DockerSandbox], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with make() as sandbox:
            pauses = []
            commit = sandbox._client.api.commit

            def noted(*arguments: Any, **named: Any) -> Any:
                pauses.append(named["pause"])
                return commit(*arguments, **named)

            monkeypatch.setattr(sandbox._client.api, "commit", noted)
            sandbox.snapshot()
            stream = sandbox.stream("sleep 60")
            sandbox.snapshot()
            stream.close()
            sandbox.snapshot()
            sandbox.exec("sleep 60 >/dev/null 2>&1 &")
            sandbox.snapshot()
            assert pauses == [False, True, False, True]

    @pytest.mark.usefixtures("by_copies")
    def test_little_that_was_written_is_kept_without_the_engine(
        self, make: Callable[..., DockerSandbox], client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        images, layout = len(ours(client)[1]), "find . -printf '%p %y %m %U %G %l %T@\\n' | sort; ls /usr/share"
        with make(user="0") as box:
            monkeypatch.setattr(box._client.api, "commit", lambda *_, **__: pytest.fail("the engine made an image"))
            box.exec(f"{MAKE_ODD_FILES}; export A=b; cd d", session="s")
            expected, first = box.exec(layout).output, box.snapshot()
            box.exec("rm -r ./* /usr/share/perl; mkdir -p d /usr/share/doc/new; echo two > d/own")
            later, second = box.exec(layout).output, box.snapshot()
            with box.branch(first) as other:
                assert other.exec(layout).output == expected and b"doc\n" not in expected
                assert other.exec("pwd; echo $A", session="s").output == b"/testbed/d\nb\n"
                other.exec("rm -rf /testbed; cd /; echo more > /more", cwd="/")
                with other.branch(other.snapshot()) as third:
                    assert third.exec("cat /more; ls /testbed").output == b"more\n"
                assert box.exec(layout).output == later
                box.restore(second)
                assert box.exec(layout).output == later != expected
                box.forget(second)
                box.close()
                other.restore(first)
                assert other.exec(layout).output == expected
                assert len(ours(client)[1]) == images and len(_copies()) == 1
        assert _copies() == []

    @pytest.mark.usefixtures("by_copies")
    @pytest.mark.parametrize("cause", ["it runs", "a stream", "another engine's layers", "in memory"])
    def test_the_engine_keeps_what_can_be_no_copy_and_no_layer(
        self, make: Callable[..., DockerSandbox], client: Any, monkeypatch: pytest.MonkeyPatch, cause: str
    ) -> None:
        images = len(ours(client)[1])
        with make() as box:
            box.exec("echo one > file")
            first = box.snapshot()
            monkeypatch.setattr(frozen_layers, "_MOST_NAMES", 1)
            match cause:
                case "it runs":
                    box.exec("sleep 60 >/dev/null 2>&1 &")
                case "a stream":
                    box.stream("sleep 60")
                case "in memory":
                    box.exec("echo kept > /dev/shm/it")
                case _:
                    box._family.layers_at, box._looked_for_upper = Path("/none"), False
            second = box.snapshot()
            assert len(ours(client)[1]) == images + 1 and len(os.listdir(_copies()[0])) == 2, "the owner and the first"
            if cause == "another engine's layers":
                with pytest.raises(EngineUnavailable, match="layers"):
                    box.restore(first)
            if cause == "in memory":
                assert box.exec("cat /dev/shm/it").output == b"kept\n"
            box.restore(second)
            assert box.exec("cat file").output == b"one\n"

    @pytest.mark.usefixtures("by_copies")
    @pytest.mark.parametrize("runs", ["a process", "a stream"])
    def test_what_runs_stands_still_while_it_is_copied_and_goes_on(
        self, make: Callable[..., DockerSandbox], client: Any, runs: str
    ) -> None:
        images, count = len(ours(client)[1]), "while :; do echo x >> count; echo x >> again; done"
        with make() as box:
            if runs == "a stream":
                box.stream(count)
            else:
                box.exec(f"({count}) >/dev/null 2>&1 &")
            while not box.exec("cat again").output:
                pass
            with box.branch(box.snapshot()) as other:
                one, two = map(int, other.exec("wc -l < count; wc -l < again").output.split())
                assert one - two in (0, 1)
            assert int(box.exec("sleep 0.1; wc -l < count").output) > one, "it goes on"
            assert len(ours(client)[1]) == images and not _layers(client)

    @pytest.mark.usefixtures("by_copies")
    def test_what_is_much_is_a_layer_upon_which_the_sandbox_goes_on(
        self, make: Callable[..., DockerSandbox], client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(frozen_layers, "_MOST_BYTES", 1 << 20)
        with make() as box:
            monkeypatch.setattr(box._client.api, "commit", lambda *_, **__: pytest.fail("the engine made an image"))
            layout = "find . -printf '%p %y %m %U %G %l %T@\n' | sort; ls -A /tmp"
            box.exec("head -c 2M /dev/urandom > much; mkdir d; echo x > d/own; export A=b; cd d", session="s")
            expected, first = box.exec(layout).output, box.snapshot()
            assert box._container is None and len(_layers(client)) == 1
            with box.branch(first) as other:
                assert other.exec(layout).output == expected
                assert other.exec("pwd; echo $A; rm -r ../d", session="s").output == b"/testbed/d\nb\n"
            assert box.exec("pwd; echo $A", session="s").output == b"/testbed/d\nb\n"
            for step in range(3):
                box.exec(f"echo {step} > step")
                last = box.snapshot()
            assert len(_layers(client)) == 1, "the later ones are copies of what came since"
            assert box.exec("head -c 300000 /dev/zero > new").exit_code == 0
            assert 300_000 <= box._disk_use() < 1 << 20, "what lies in a layer does not count"
            box.exec("rm -r d; mkdir d; echo y > d/new; head -c 3M /dev/urandom > much")
            later, second = box.exec(layout).output, box.snapshot()
            assert len(_layers(client)) == 2
            box.restore(last)
            assert box.exec("cat step; ls d; wc -c < much").output == b"2\nown\n2097152\n"
            box.forget(second)
            assert len(_layers(client)) == 1
            box.restore(first)
            assert box.exec(layout).output == expected != later
            other = box.branch(first)
            box.close()
            other.forget(first)
            assert other.exec("cat d/own").output == b"x\n" and len(_layers(client)) == 1
            other.close()
        assert not _layers(client)

    @pytest.fixture
    def by_layers(self, by_copies: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """Snapshots of sandboxes in which nothing runs are layers."""
        monkeypatch.setattr(frozen_layers, "_MOST_NAMES", 0)

    @pytest.mark.usefixtures("by_layers")
    def test_a_sandbox_that_goes_on_upon_its_layer_is_as_it_was(
        self, make: Callable[..., DockerSandbox], client: Any
    ) -> None:
        look = "stat -c '%n %a %U %Y' / /etc /testbed /tmp; ls -A / /etc/mtab /.dockerenv 2>&1; cat /etc/mtab"
        with make(user="0") as box:
            box.exec("chmod 711 /; chmod 700 /etc; rm /.dockerenv /etc/mtab; echo own > /etc/mtab; chown 12 /testbed")
            expected = box.exec(look).output
            box.snapshot()
            assert box._container is None and box.exec(look).output == expected
            assert b"own" in expected and b"/ 711" in expected

    @pytest.mark.usefixtures("by_layers")
    @pytest.mark.parametrize("place", ["/etc/hosts", "/dev/own", "/dev/shm/own", "/data/own"])
    def test_what_lies_in_no_layer_is_not_lost_by_a_snapshot(
        self, make: Callable[..., DockerSandbox], client: Any, small: str, place: str
    ) -> None:
        made = client.containers.create(small, command=["none"])
        image = made.commit(changes="VOLUME /data")
        made.remove()
        try:
            with make(image=image.id if place.startswith("/data") else small, user="0") as box:
                assert box.exec(f"echo kept >> {place}").exit_code == 0
                box.snapshot()
                assert box.exec(f"read -r -d '' text < {place}; echo \"$text\"").text.endswith("kept\n")
        finally:
            client.api.remove_image(image.id, force=True, noprune=True)

    @pytest.mark.usefixtures("by_layers")
    def test_what_is_hidden_in_a_sandbox_writes_into_no_snapshot(
        self, make: Callable[..., DockerSandbox], client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with make() as box:
            box.exec("for i in {1..40}; do (while :; do echo x >> count$i; done) > /dev/null 2>&1 & done")
            while not box.exec("cat count40").output:
                pass
            with monkeypatch.context() as patch:
                patch.setattr(box, "leftovers", lambda: 0)
                box.snapshot()
            (layer,) = _layers(client)
            sizes = [path.stat().st_size for path in sorted(layer.glob("diff/testbed/count*"))]
            box._remove_left()
            box._removal.shutdown()
            box._removal = ThreadPoolExecutor(1)
            assert sizes == [path.stat().st_size for path in sorted(layer.glob("diff/testbed/count*"))]
            assert len(sizes) == 40 and box.leftovers() == 0

    @pytest.mark.usefixtures("by_layers")
    def test_a_sandbox_goes_on_upon_the_image_that_it_began_with(
        self, make: Callable[..., DockerSandbox], client: Any, small: str
    ) -> None:
        name = f"prchain-test/moves-{os.getpid()}"
        client.api.tag(IMAGE, name)
        try:
            with make(image=name) as box:
                box.exec("echo one > file")
                first = box.snapshot()
                client.api.tag(small, name, force=True)
                assert box.exec("cat file; command -v git").output == b"one\n/usr/bin/git\n"
                with box.branch(first) as other:
                    assert other.exec("cat file; command -v git").output == b"one\n/usr/bin/git\n"
        finally:
            client.api.remove_image(name, force=True, noprune=True)

    @pytest.mark.usefixtures("by_layers")
    @pytest.mark.parametrize("fails", ["pause", "rename", "new_layer"])
    def test_a_layer_that_cannot_be_taken_is_an_image_and_the_sandbox_is_as_it_was(
        self, make: Callable[..., DockerSandbox], client: Any, small: str, monkeypatch: pytest.MonkeyPatch, fails: str
    ) -> None:
        def refuse(*_: Any, **__: Any) -> None:
            raise docker.errors.APIError("planted") if fails == "pause" else OSError(errno.EXDEV, "planted")

        with make(image=small) as box:
            box.exec("echo one > file; (while :; do :; done) > /dev/null 2>&1 &")
            monkeypatch.setattr(box, "leftovers", lambda: 0)
            container = box._container
            with monkeypatch.context() as patch:
                rename = Path.rename
                if fails == "rename":
                    patch.setattr(Path, "rename", lambda *it: refuse() if it[0].name == "diff" else rename(*it))
                else:
                    patch.setattr(taken_layers, fails, refuse)
                snapshot = box.snapshot()
            assert box._container is container and not _layers(client)
            monkeypatch.undo()
            assert box.leftovers() == 1, "it goes on"
            box.restore(snapshot)
            assert box.exec("cat file").output == b"one\n"

    @pytest.mark.usefixtures("by_copies")
    @pytest.mark.parametrize("most", [0, 2000])
    def test_a_start_that_fails_once_loses_nothing(
        self, make: Callable[..., DockerSandbox], client: Any, monkeypatch: pytest.MonkeyPatch, most: int
    ) -> None:
        monkeypatch.setattr(frozen_layers, "_MOST_NAMES", most)
        with make() as box:
            box.exec("echo one > file")
            first = box.snapshot()
            for planted in ("create_container", "start"):
                if most:
                    box.exec("echo two > file")
                with monkeypatch.context() as patch:

                    def refuse(*_: Any, **__: Any) -> None:
                        raise docker.errors.APIError("planted")

                    patch.setattr(type(box._client.api), planted, refuse)
                    with pytest.raises(SandboxError, match="planted"):
                        box.restore(first)
                assert box.exec("cat file").output in ({b"one\n", b"two\n"} if planted[0] == "c" else {b"one\n"})
            box.restore(first)
            assert box.exec("cat file").output == b"one\n"

    @pytest.mark.usefixtures("by_layers")
    def test_a_sandbox_that_made_itself_unfit_to_start_is_lost_and_the_engine_is_not_to_blame(
        self, make: Callable[..., DockerSandbox], client: Any
    ) -> None:
        with make(user="0") as box:
            box.exec("rm -rf /testbed; touch /testbed", cwd="/")
            box.snapshot()
            with pytest.raises(SandboxLost, match="what was written"):
                box.exec("true")

    @pytest.mark.usefixtures("by_copies")
    @pytest.mark.parametrize("cause", ["it runs", "too many layers"])
    def test_what_is_on_a_layer_and_can_be_no_other_one_is_kept_with_all_files(
        self, make: Callable[..., DockerSandbox], small: str, monkeypatch: pytest.MonkeyPatch, cause: str
    ) -> None:
        """The engine knows nothing of what its layers of ours hold."""
        monkeypatch.setattr(frozen_layers, "_MOST_NAMES", 0)
        with make(image=small) as box:
            box.exec("echo one > file")
            box.snapshot()
            box.exec("echo two > other")
            if cause == "it runs":
                box.exec("(while :; do :; done) > /dev/null 2>&1 &")
            else:
                monkeypatch.setattr(taken_layers, "has_room", lambda _: False)
            snapshot = box.snapshot()
            assert bool(box._ground.layers) is (cause == "it runs"), "it goes on upon the image"
            box.restore(snapshot)
            assert box._ground.layers == () and box.exec("cat file other").output == b"one\ntwo\n"

    @pytest.mark.usefixtures("by_copies")
    def test_a_layer_that_is_gone_is_an_unknown_snapshot(
        self, make: Callable[..., DockerSandbox], client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(frozen_layers, "_MOST_NAMES", 0)
        with make() as box:
            first = box.snapshot()
            remove_folder(_layers(client)[0])
            with pytest.raises(SnapshotUnknown):
                box.branch(first)
            with pytest.raises(SnapshotUnknown):
                box.exec("true")

    @pytest.mark.usefixtures("by_copies")
    def test_a_branch_of_an_image_lists_no_file_again(
        self, make: Callable[..., DockerSandbox], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = new_store(tmp_path)
        start = plant(store, START)
        with make() as box:
            place_tree(box, store, start)
            monkeypatch.setattr(frozen_layers, "_MOST_NAMES", 0)
            box.restore(box.snapshot())
            tracker = Tracker(box, store, start_tree=start, ignore_rules_from=start)
            tracker.take()
            box.exec("rm -r d; mkdir d; echo new > d/new; rm a")
            tree, known = tracker.take(), tracker.known()
            with box.branch(box.snapshot()) as other:
                assert len(other._family._snapshots) == 2 and known is not None
                monkeypatch.setattr(listing, "list_files", lambda *_: pytest.fail("all files are listed"))
                copied = Tracker(other, store, start_tree=start, ignore_rules_from=start)
                copied.begin_as(known)
                assert copied.take() == tree != start
                other.exec("rm many/x")
                assert copied.take() == extract_tree(other, store, start_tree=start, ignore_rules_from=start).tree

    @pytest.mark.usefixtures("by_copies")
    def test_a_restored_sandbox_never_leaves_its_image_to_nobody(
        self, make: Callable[..., DockerSandbox], client: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A kept place goes when no container stands on it, and others may look for that at any time."""
        with make() as box:
            snapshot, stop, stood = box.snapshot(), box._stop, []

            def standing() -> int:
                filters = {"ancestor": box._ground.image, "label": LABEL}
                return len(client.api.containers(all=True, filters=filters))

            def noted() -> None:
                stop()
                stood.append(standing())

            before = standing()
            monkeypatch.setattr(box, "_stop", noted)
            box.restore(snapshot)
            monkeypatch.undo()
            assert stood == [before]

    @pytest.mark.parametrize("cause", ["driver", "place", "attributes", "mount"])
    def test_an_upper_layer_that_is_not_known_to_be_the_containers_is_none(
        self, make: Callable[..., DockerSandbox], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cause: str
    ) -> None:
        with make() as sandbox:
            attributes = sandbox._container.attrs
            match cause:
                case "driver":
                    attributes["GraphDriver"]["Name"] = "fuse-overlayfs"
                case "place":
                    attributes["GraphDriver"]["Data"]["UpperDir"] = str(tmp_path)
                case "attributes":
                    monkeypatch.setattr(environments.sandboxes.docker, "reads_attributes", lambda _: False)
                case _:
                    attributes["Mounts"] = [{"Destination": "/testbed/data"}]
            assert sandbox.upper_layer("/testbed") is None
            assert sandbox.exec("ls -A /tmp").output == b".prchain\n"


def test_what_a_killed_process_leaves_is_found_and_removed_and_nothing_else(client: Any) -> None:
    code = (
        "import os, signal\nfrom tests.environments.test_sandbox_docker import make_docker\n"
        "from environments.sandboxes import frozen_layers\n"
        "box = make_docker()\nbox.start()\nbox.branch(box.snapshot())\nprint(box.name, flush=True)\n"
        "frozen_layers._MOST_NAMES = 0\nstream = box.stream('sleep 60')\nbox.snapshot()\nstream.close()\n"
        "box.snapshot()\nbox.exec('true')\nos.kill(os.getpid(), signal.SIGKILL)"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == -9, ran.stderr
    left = leftovers.clear_local()
    assert all(left.values())
    with make_docker() as alive:
        assert not alive.upper_layer("/") or left, "a copy of what was written"
        found = leftovers.find(client)
        assert ran.stdout.strip() in {item.name for item in found}
        assert [item.kind for item in found].count("container") >= 2
        assert [item.kind for item in found].count("snapshot") >= 1
        assert alive.name not in {item.name for item in found}
        assert leftovers.remove(client, found) == []
        assert leftovers.find(client) == []
        layers = leftovers.clear_local(area(engine_layers(client) or Path("/none")))
        assert all(layers.values()) and len(layers) == (alive.upper_layer("/") is not None)
        assert alive.exec("echo alive").output == b"alive\n"
        assert alive.name in {item.name for item in leftovers.find(client, everybody=True)}


def test_who_takes_the_place_of_a_run_that_was_cut_off_leaves_no_layer_of_it(client: Any) -> None:
    code = (
        "import os, sys\nfrom environments.sandboxes import frozen_layers\n"
        "from tests.environments.test_sandbox_docker import make_docker\n"
        "frozen_layers._MOST_NAMES = 0\nbox = make_docker()\nbox.start()\nbox.snapshot()\nbox.exec('true')\n"
        "box.snapshot()\nbox.branch(box.snapshot())\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'environments.sandboxes.heir', '7'])"
    )
    place = area(engine_layers(client) or Path("/none"))
    before = {*place.glob(f"{leftovers.LOCAL_PREFIX}*")}
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 7, ran.stderr
    assert "of the run ended" in ran.stderr
    assert leftovers.find(client) == [] and {*place.glob(f"{leftovers.LOCAL_PREFIX}*")} <= before


LOOK = """
import os, statistics, sys, time
def look(name):
    begin = time.perf_counter_ns()
    try:
        os.stat("/usr/bin/" + name)
    except OSError:
        return time.perf_counter_ns() - begin
times = [statistics.median(look(f"{kind}{number}") for number in range(800)) for kind in sys.argv[1:]]
print(times[0] / times[-1])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root tells an engine's control groups")
def test_names_that_were_looked_for_in_a_sandbox_are_found_missing_no_sooner_in_the_next_one(client: Any) -> None:
    """A run of all tests told the processes of a later grade so what is right."""

    def ratio(sandbox: DockerSandbox, *kinds: str) -> float:
        return float(sandbox.exec(f"python3 -c '{LOOK}' {' '.join(kinds)}").text)

    with make_docker() as other:
        for _ in range(5):  # of times that are measured beside others' tests
            secret, new = secrets.token_hex(4), secrets.token_hex(4)
            with make_docker() as sandbox:
                ratio(sandbox, secret)
                sandbox.forget_names()
            if (found := ratio(other, secret, new)) > 0.85:
                break
    assert found > 0.85


def test_a_container_that_is_removed_under_a_command_is_lost(client: Any) -> None:
    with make_docker() as sandbox:
        timer = threading.Timer(0.5, lambda: client.api.remove_container(sandbox.name, force=True))
        timer.start()
        with pytest.raises(SandboxLost, match=r"removed|ended"):
            sandbox.exec("sleep 30")
        timer.join()
        with pytest.raises(SandboxLost):
            sandbox.exec("true")


CUT_OFF = """
import secrets
import signal
import sys
import prchain.cli
from contextlib import nullcontext
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.sandbox import SandboxConfig
from prchain.core.console.progress import SILENT
from prchain.core.runs import UnitResult, run_units

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started without it

class Unit:
    def __init__(self, key):
        self.key = self.group = key

class Work:
    title = "units"
    spent = lambda self: None
    holding = lambda self, unit: nullcontext()

    def work_on(self, unit, tell):
        while True:  # one whose container goes makes another
            with DockerSandbox(SandboxConfig(sys.argv[1], labels={sys.argv[2]: "cut off"})) as sandbox:
                sys.stdout.write("working\\n")  # at once: another thread may write, too
                sys.stdout.flush()
                sandbox.exec("sleep 600")

    def failed(self, unit, outcome, reason):
        print("stored", outcome, flush=True)
        return UnitResult(unit, outcome, reason)

def run(arguments):
    try:
        run_units(Work(), [Unit("a"), Unit("b")], workers=2, progress=SILENT)
    except KeyboardInterrupt:
        return prchain.cli.INTERRUPTED
    return 0

prchain.cli.run = run
prchain.cli.main()
"""


def test_ctrl_c_ends_the_containers_of_the_run_and_no_others(client: Any) -> None:
    label = f"{LABEL}.cut-off"
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with make_docker() as other:
        process = subprocess.Popen(
            [sys.executable, "-c", CUT_OFF, IMAGE, label],
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["working\n"] * 2
        assert len(client.api.containers(filters={"label": label})) == 2
        process.send_signal(signal.SIGINT)
        printed, err = process.communicate(timeout=60)
        assert (process.returncode, printed, err) == (130, "", "prchain: 2 containers of the run ended\n")
        assert client.api.containers(all=True, filters={"label": label}) == []
        assert other.exec("echo there").output == b"there\n"
