"""What every sandbox does: one suite, run against each backend that runs commands. Known exceptions stand beside it."""

from __future__ import annotations

import io
import tarfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from environments.checkouts.checkout import extract_tree, move_tree, place_tree
from environments.sandboxes.sandbox import OUTPUT_LIMIT, Sandbox
from prchain.core.errors import SandboxError, SandboxFileError, SandboxLost, SnapshotUnknown
from prchain.core.git.trees import EXECUTABLE, LINK, TreeStore
from tests.miner.gitworld import World
from tests.prchain.treeworld import new_store, plant

Make = Callable[..., Any]
"""Makes a sandbox that is not started; takes the fields of a `SandboxConfig`."""


def tar_of(files: dict[str, bytes], links: dict[str, str] | None = None) -> bytes:
    """A tar with these files and symbolic links."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            archive.addfile(member)
    return out.getvalue()


def members(chunks: Iterator[bytes]) -> dict[str, bytes | str | None]:
    """What a tar holds: content of files, targets of links, None for all else."""
    out: dict[str, bytes | str | None] = {}
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        for member in archive:
            opened = archive.extractfile(member) if member.isfile() else None
            out[member.name] = opened.read() if opened else member.linkname if member.issym() else None
    return out


SOLUTION = "the solution of the developers"

READ_OBJECTS = """
import glob, zlib
for path in glob.glob('.git/**/*', recursive=True) + glob.glob('.git/*'):
    try:
        content = open(path, 'rb').read()
    except OSError:
        continue
    for start in range(len(content)):
        if content[start:start + 1] == b'x':
            try:
                print(zlib.decompressobj().decompress(content[start:]))
            except zlib.error:
                pass
    print(content)
"""
"""Prints all that lies in a repository, and whatever can be inflated from anywhere in it: packs have zlib streams."""


def stage_with_a_future(folder: Path) -> tuple[TreeStore, str, str]:
    """A store that borrows from a mirror, a base in it, and a later commit that solves the task."""
    world = World(folder / "mirror.git")
    world.commit("main", {"a": "base\n", "big": "shared\n" * 1000}, "base")
    world.commit("main", {"a": f"{SOLUTION}\n", "big": "shared\n" * 1000 + "more\n"}, "future")
    world.save()
    return TreeStore.open(folder / "store", [world.path]), world.sha(1), world.sha(2)


def assert_future_is_out_of_reach(sandbox: Sandbox, folder: Path) -> None:
    """No git command and no reading of the object store gives what came after the base."""
    store, base, future = stage_with_a_future(folder)
    commit = place_tree(sandbox, store, base)
    names = [future, *(f"{future}^{{tree}}", store.entries(future)[b"a"].blob, store.tree_of(future))]
    for name in names:
        for command in (f"cat-file -e {name}", f"show {name}", f"checkout {name}", f"log {name}", f"branch x {name}"):
            assert sandbox.exec(f"git {command}").exit_code != 0, command
    for command in (
        "fetch --all",
        "fetch origin",
        f"fetch origin {future}",
        "fetch origin refs/pull/1/head",
        "pull",
        "stash pop",
        "log ORIG_HEAD",
        "log FETCH_HEAD",
        "log HEAD@{1}",
        f"fetch {folder}/mirror.git",
        f"fetch {folder}/store",
    ):
        result = sandbox.exec(f"git {command}", timeout=20)
        assert SOLUTION.encode() not in result.output and future.encode() not in result.output, command
    result = sandbox.exec(
        "git log --all --format=%H; git reflog --all; git tag; git remote -v; git fsck --lost-found; git stash list; "
        "git cat-file --batch-all-objects --batch --unordered; git unpack-objects < .git/objects/pack/*.pack; "
        "git rev-list --all --objects --reflog; git bundle create - --all; git worktree list; git config --list; "
        "cat .git/objects/info/alternates"
    )
    assert commit.encode() in result.output and b"base\n" in result.output
    read = sandbox.exec("python3 -", stdin=READ_OBJECTS.encode(), output_limit=16 << 20)
    assert b"base" in read.output and b"shared" in read.output, "the reading finds what is there"
    for output in (result.output, read.output):
        assert SOLUTION.encode() not in output
        assert not [name for name in names if name.encode() in output]
        assert str(folder).encode() not in output


def _await_leftovers(sandbox: Sandbox, number: int) -> None:
    """Wait until so many processes are left: some end a moment after their command."""
    until = time.monotonic() + 10
    while (found := sandbox.leftovers()) != number:
        assert time.monotonic() < until, f"{found} processes are left, and not {number}"
        time.sleep(0.05)


class Conformance:
    """Subclasses have a fixture `make`; all tests of a class that change nothing share one sandbox."""

    APART = True
    """Whether the host's own files are out of reach."""
    BRANCHES = True
    """Whether a second sandbox can go on from a snapshot."""
    SESSIONS_IN_SNAPSHOTS = True

    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls, make: Make) -> Iterator[Sandbox]:
        with make() as sandbox:
            yield sandbox

    def test_is_a_sandbox(self, sandbox: Sandbox) -> None:
        assert isinstance(sandbox, Sandbox)

    @pytest.mark.parametrize(
        ("command", "code", "output"),
        [
            ("echo hello", 0, b"hello\n"),
            ("echo out; echo err >&2; echo out", 0, b"out\nerr\nout\n"),
            ("exit 3", 3, b""),
            ("echo a; false", 1, b"a\n"),
            ("kill -TERM $$", 143, b""),
            ("kill -9 $$", 137, b""),
            ("no_such_program 2>/dev/null", 127, b""),
            ("printf 'no newline'", 0, b"no newline"),
            (r"printf 'a\0b\377\r\n\0'", 0, b"a\0b\xff\r\n\0"),
            ("echo before; exec >&- 2>&-; exit 4", 4, b"before\n"),
            ("exec 1>/dev/null 2>&1; echo lost", 0, b""),
            ("cat", 0, b""),
            ("yes | head -n 2", 0, b"y\ny\n"),
            ("kill 0; echo survived", 143, b""),
            ("", 0, b""),
            ("# a comment", 0, b""),
            ("cat <<'END'\nfirst\n\\second\nEND", 0, b"first\n\\second\n"),
            ("trap 'echo end' EXIT; exit 5", 5, b"end\n"),
        ],
    )
    def test_a_command_gives_its_output_and_its_exit_code(
        self, sandbox: Sandbox, command: str, code: int, output: bytes
    ) -> None:
        result = sandbox.exec(command)
        assert (result.exit_code, result.output, result.omitted, result.timed_out) == (code, output, 0, False)

    def test_an_error_of_the_shell_names_the_line_of_the_command(self, sandbox: Sandbox) -> None:
        assert sandbox.exec("true\nno_such_program").output == b"bash: line 2: no_such_program: command not found\n"

    def test_look_alikes_of_the_framing_are_output(self, sandbox: Sandbox) -> None:
        forged = "0123456789abcdef0123456789abcdef done 0 0\n" * 3 + "ready /tmp\nend fin\n"
        result = sandbox.exec(f"printf %s '{forged}'; printf %s '{forged}' >&2; exit 9")
        assert (result.exit_code, result.output) == (9, 2 * forged.encode())

    def test_every_byte_comes_through(self, sandbox: Sandbox) -> None:
        content = bytes(range(256)) * 4096
        assert sandbox.exec("cat", stdin=content, output_limit=len(content)).output == content
        assert sandbox.exec("wc -c", stdin=content).output.strip() == str(len(content)).encode()

    def test_a_command_can_be_longer_than_an_argument(self, sandbox: Sandbox) -> None:
        text = "x" * 300_000
        assert sandbox.exec(f"wc -c <<'END'\n{text}\nEND\nexit 7").output.strip() == b"300001"

    def test_head_and_tail_are_kept(self, sandbox: Sandbox) -> None:
        result = sandbox.exec("printf BEGIN; head -c 5000000 /dev/zero; printf END; exit 2", output_limit=1000)
        assert result.output == b"BEGIN" + b"\0" * 992 + b"END"
        assert (result.omitted, result.exit_code, result.head) == (5_000_008 - 1000, 2, 500)
        assert "[... 4999008 bytes left out ...]" in result.text

    def test_endless_output_is_cut_while_it_runs(self, sandbox: Sandbox) -> None:
        began = time.monotonic()
        result = sandbox.exec("yes", timeout=50, output_limit=1000)
        assert (result.exit_code, result.limit, result.timed_out) == (None, OUTPUT_LIMIT, False)
        assert len(result.output) == 1000 and time.monotonic() - began < 40
        assert sandbox.exec("echo next").output == b"next\n"

    def test_what_runs_in_the_background_neither_delays_nor_disturbs(self, sandbox: Sandbox) -> None:
        began = time.monotonic()
        assert b"started\n" in sandbox.exec("(while sleep 0.01; do echo noise; done) & echo started").output
        assert time.monotonic() - began < 5
        time.sleep(0.1)
        assert sandbox.exec("echo own").output == b"own\n"
        assert sandbox.exec("sleep 0.1; echo own").output == b"own\n"

    def test_a_process_of_an_earlier_command_outlives_a_timeout_of_a_later_one(self, sandbox: Sandbox) -> None:
        sandbox.exec("sleep 1000 & echo $! > /tmp/earlier")
        assert sandbox.exec("sleep 5", timeout=0.2).timed_out
        assert sandbox.exec("kill -0 $(cat /tmp/earlier) && kill $(cat /tmp/earlier)").exit_code == 0

    def test_a_timeout_kills_all_that_was_started_and_keeps_the_output(self, sandbox: Sandbox) -> None:
        # Other runs of this test on the same machine have sleeps of their own.
        mark = f".{uuid.uuid4().int % 10**12}"
        asleep = [f"sleep 700{number}{mark}" for number in range(5)]
        result = sandbox.exec(
            f"echo partial; (setsid {asleep[0]} &); (setsid bash -c 'trap \"\" TERM HUP INT; {asleep[1]}' &)\n"
            # A job may be gone before it is disowned, which bash would say.
            f"(setsid bash -c 'env -i setsid {asleep[2]} & disown' & disown) 2>/dev/null\n"
            f"bash -c '{asleep[3]} & {asleep[4]}'",
            timeout=2,
        )
        assert (result.exit_code, result.timed_out, result.output) == (None, True, b"partial\n")
        assert 2 <= result.seconds < 12
        left = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -o 'sleep 700[0-9]%s'"
        assert sandbox.exec(left % mark.replace(".", "[.]")).output == b""

    def test_nothing_of_a_timeout_reaches_the_next_command(self, sandbox: Sandbox) -> None:
        for turn in range(15):
            assert sandbox.exec("echo lost; sleep 5", timeout=0.05).timed_out
            assert sandbox.exec(f"echo {turn}").output == b"%d\n" % turn

    def test_a_stopped_command_times_out(self, sandbox: Sandbox) -> None:
        assert sandbox.exec("kill -STOP $$", timeout=0.5).timed_out

    def test_a_command_that_kills_its_supervisor_ends_clearly(self, sandbox: Sandbox) -> None:
        result = sandbox.exec("kill -9 $PPID; sleep 100", timeout=20)
        assert result.exit_code is None and result.seconds < 15
        assert sandbox.exec("echo next").output == b"next\n"

    def test_working_directory_and_variables(self, sandbox: Sandbox) -> None:
        assert sandbox.exec("pwd").output == sandbox.config.workdir.encode() + b"\n"
        assert sandbox.exec("pwd", cwd="/usr").output == b"/usr\n"
        assert sandbox.exec('echo "$A"', environment={"A": "it's; $B\n"}).output == b"it's; $B\n\n"
        assert sandbox.exec("true", cwd="/no/such").exit_code == 126
        assert sandbox.exec("echo ${FROM_PLACE}").output == b"of the place\n"

    def test_a_session_keeps_working_directory_and_exported_variables(self, sandbox: Sandbox) -> None:
        sandbox.exec("cd /usr; export KEPT=$'a b\\n\\'c'; NOT_EXPORTED=1; exit 4", session="one")
        assert sandbox.exec('pwd; echo "$KEPT$NOT_EXPORTED"', session="one").output == b"/usr\na b\n'c\n"
        assert sandbox.exec('pwd; echo "$KEPT"', session="two").output == sandbox.config.workdir.encode() + b"\n\n"
        assert sandbox.exec('pwd; echo "$KEPT"').output == sandbox.config.workdir.encode() + b"\n\n"
        sandbox.exec("cd lib; unset KEPT FROM_PLACE", session="one")
        assert (
            sandbox.exec('pwd; echo "${KEPT-unset} ${FROM_PLACE-unset}"', session="one").output
            == b"/usr/lib\nunset unset\n"
        )
        sandbox.exec("sleep 5", session="one", timeout=0.2)
        assert sandbox.exec("pwd", session="one").output == b"/usr/lib\n"
        assert sandbox.exec("pwd; echo $X", session="one", cwd="/tmp", environment={"X": "1"}).output == b"/tmp\n1\n"

    @pytest.mark.parametrize("session", [None, "one"])
    def test_each_command_of_the_last_pipeline_says_how_it_ended(self, sandbox: Sandbox, session: str | None) -> None:
        def codes(command: str) -> tuple[int | None, tuple[int, ...]]:
            result = sandbox.exec(command, session=session, pipestatus=True, timeout=5)
            return result.exit_code, result.pipestatus

        assert codes("cd / && (exit 3) | cat | (exit 4)") == (4, (3, 0, 4))
        assert codes("IFS=0; set -Cu; false | true") == (0, (1, 0))
        assert codes("set -eo pipefail; yes | head -1; true") == (141, (141, 0))
        assert codes("true | false; exit 7") == (7, (0, 1))
        assert codes("true") == (0, (0,))
        assert codes("trap : EXIT; false | true") == (0, ()), "what the command before wrote is gone"
        assert codes(" | ".join(["true"] * 100)) == (0, ())
        assert codes("echo 'a b' $'c\n1 done 0 0' >|$__pipes; trap - EXIT") == (0, ())
        assert codes("rm $__pipes; mkfifo $__pipes; trap - EXIT") == (0, ())
        assert codes("rm $__pipes; false | true") == (0, ()), "opening a named pipe would never end"
        assert codes("false | true") == (0, (1, 0))
        assert sandbox.exec("env | grep -c PRCHAIN", session=session, pipestatus=True).output == b"0\n"
        assert sandbox.exec("false | true", session=session).pipestatus == ()

    @pytest.mark.parametrize(
        "arguments", [{"session": "../x"}, {"environment": {"A=B": "c"}}, {"environment": {"A": "\0"}}]
    )
    def test_what_cannot_be_passed_on_is_refused(self, sandbox: Sandbox, arguments: dict[str, Any]) -> None:
        with pytest.raises(SandboxError):
            sandbox.exec("true", **arguments)
        with pytest.raises(SandboxError):
            sandbox.exec("echo a\0b")
        assert sandbox.exec("echo fine").output == b"fine\n"

    def test_files_are_read_and_written(self, sandbox: Sandbox) -> None:
        path = f"{sandbox.config.workdir}/deep/er/it's -x\nname"
        content = bytes(range(256)) * 1000
        sandbox.write(path, content, mode=0o750)
        assert sandbox.read(path) == content
        assert sandbox.exec("stat -c %a deep/er/*").output == b"750\n"
        sandbox.write(path, b"")
        assert sandbox.read(path) == b""
        for wrong in ("/no/such/file", "/usr"):
            with pytest.raises(SandboxFileError):
                sandbox.read(wrong)
        with pytest.raises(SandboxFileError):
            sandbox.write("/proc/none/file", b"x")

    def test_archives_go_in_and_come_out(self, sandbox: Sandbox) -> None:
        folder = f"{sandbox.config.workdir}/tree"
        sandbox.put(folder, tar_of({"a.txt": b"a", "sub/b": b"\0b", "caf\udce9\n": b"bytes"}, {"out": "/etc/passwd"}))
        sandbox.put(folder, io.BytesIO(tar_of({"second": b"2"})))
        assert members(sandbox.get(folder)) == {
            "tree": None,
            "tree/a.txt": b"a",
            "tree/sub": None,
            "tree/sub/b": b"\0b",
            "tree/caf\udce9\n": b"bytes",
            "tree/out": "/etc/passwd",
            "tree/second": b"2",
        }
        assert members(sandbox.get(f"{folder}/out")) == {"out": "/etc/passwd"}
        with pytest.raises(SandboxFileError):
            list(sandbox.get(f"{folder}/none"))
        with pytest.raises(SandboxFileError):
            sandbox.put(folder, b"this is no archive" * 100)

    def test_what_a_command_locked_comes_out_all_the_same(self, sandbox: Sandbox) -> None:
        folder = sandbox.exec(
            "mkdir -p locked/in && echo x > locked/in/f && chmod 000 locked/in/f locked/in locked; pwd"
        )
        found = members(sandbox.get(f"{folder.text.strip()}/locked"))
        assert found["locked/in/f"] == b"x\n"

    def test_what_came_after_the_base_cannot_be_had(self, make: Make, tmp_path: Path) -> None:
        if not self.APART:
            return
        with make() as box:
            assert_future_is_out_of_reach(box, tmp_path)

    def test_a_tree_becomes_another(self, make: Make, tmp_path: Path) -> None:
        store = new_store(tmp_path)
        before = plant(store, {"d/e/x": "x\n", "gone/y": "y\n", "f": "file\n", "same": "s\n", b"-\xff\n": "odd\n"})
        after = plant(
            store,
            {
                "d": (EXECUTABLE, "#!/bin/sh\necho ran\n"),
                "f/g/new": "n\n",
                "same": "s\n",
                b"-\xfe\n/-rf": "odd\n",
                b"l\xff": (LINK, b"../\xff"),
            },
        )
        with make() as box:
            place_tree(box, store, before)
            repository = box.exec("find .git -type f -exec cksum {} +").output
            move_tree(box, store, before, after)
            assert extract_tree(box, store, start_tree=after, ignore_rules_from=after).tree == after
            found = box.exec("./d; find . -name .git -prune -o -type d -printf x | wc -c; find . ! -uid $(id -u)")
            assert found.output == b"ran\n4\n"
            assert box.exec("find .git -type f -exec cksum {} +").output == repository
            move_tree(box, store, after, before)
            assert box.exec("git status --porcelain").output == b""

    def test_snapshot_restore_and_branch(self, make: Make) -> None:
        with make() as box:
            box.exec("echo one > file; cd /tmp; export S=1", session="s")
            first = box.snapshot()
            box.exec("echo two > file; touch other; sleep 1000 &")
            second = box.snapshot()
            box.restore(first)
            assert box.exec("cat file; ls; cat /proc/[0-9]*/cmdline | tr '\\0' ' '").output.startswith(b"one\nfile\n")
            if self.SESSIONS_IN_SNAPSHOTS:
                assert box.exec("pwd; echo $S", session="s").output == b"/tmp\n1\n"
            box.restore(second)
            assert box.exec("cat file other").output == b"two\n"
            with pytest.raises(SnapshotUnknown):
                box.restore("none")
            if not self.BRANCHES:
                return
            with box.branch(first) as other:
                assert other.exec("cat file; echo three > file").output == b"one\n"
                assert box.exec("cat file").output == b"two\n"
                box.close()
                other.restore(second)
                assert other.exec("cat file").output == b"two\n"

    def test_a_forgotten_snapshot_is_gone_and_all_others_stay(self, make: Make) -> None:
        with make() as box:
            box.exec("echo one > file")
            first = box.snapshot()
            box.restore(first)
            box.exec("echo two > file")
            second = box.snapshot()
            box.forget(first)
            box.forget(first)
            box.forget("none")
            with pytest.raises(SnapshotUnknown):
                box.restore(first)
            assert box.exec("cat file").output == b"two\n", "a sandbox goes on that began with what was forgotten"
            third = box.snapshot()
            for snapshot in (second, third):
                box.restore(snapshot)
                assert box.exec("cat file").output == b"two\n"
                box.forget(snapshot)
            assert box.exec("cat file").output == b"two\n"

    def test_a_branch_goes_on_whose_snapshot_is_forgotten(self, make: Make) -> None:
        if not self.BRANCHES:
            return
        with make() as box:
            box.exec("echo one > file")
            first = box.snapshot()
            with box.branch(first) as other:
                box.forget(first)
                other.exec("echo two >> file")
                second = other.snapshot()
                box.restore(second)
                assert box.exec("cat file").output == b"one\ntwo\n"
                other.forget(second)
                assert box.exec("cat file").output == other.exec("cat file").output == b"one\ntwo\n"
                with pytest.raises(SnapshotUnknown):
                    other.branch(second)

    def test_forgetting_works_when_the_sandbox_does_not(self, make: Make) -> None:
        box = make()
        box.forget("none")
        box.start()
        snapshot = box.snapshot()
        box.close()
        box.forget(snapshot)

    def test_processes_that_commands_left_are_counted(self, make: Make) -> None:
        with make() as box:
            assert box.leftovers() == 0
            box.exec("echo own; true | cat")
            assert box.leftovers() == 0
            snapshot = box.snapshot()
            box.exec("sleep 1000 &")
            _await_leftovers(box, 1)
            box.exec("(setsid env -i sleep 1000 >/dev/null 2>&1 &)")
            _await_leftovers(box, 2)
            box.exec("bash -c 'sleep 1000 & sleep 1000'", timeout=0.5)
            _await_leftovers(box, 2)
            # A process that prints holds the pipe of the command; what empties that is no leftover.
            box.exec("exec -a printer bash -c 'while :; do echo noise; read -t 0.01 <> <(:); done' &")
            assert box.exec("echo own").output == b"own\n"
            assert box.exec("echo own").output == b"own\n"
            _await_leftovers(box, 3)
            box.restore(snapshot)
            assert box.leftovers() == 0
            assert box.exec("echo own").output == b"own\n"
            box.exec("sleep 0.5 & sleep 1000 & echo $!")
            _await_leftovers(box, 1)
        with pytest.raises(SandboxLost):
            box.leftovers()

    def test_several_sandboxes_run_at_once(self, make: Make) -> None:
        failures: list[object] = []

        def work(number: int) -> None:
            with make() as box:
                for turn in range(20):
                    result = box.exec(f"echo {number}-{turn}; head -c 20000 /dev/zero", output_limit=1 << 16)
                    if result.output != f"{number}-{turn}\n".encode() + b"\0" * 20000:
                        failures.append(result)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        assert failures == []

    def test_a_sandbox_that_does_not_run_says_so(self, make: Make) -> None:
        box = make()
        with pytest.raises(SandboxLost, match="not started"):
            box.exec("true")
        with closing(box):
            box.start()
            box.start()
            assert box.exec("true").exit_code == 0
        box.close()
        for call in (lambda: box.exec("true"), box.snapshot, box.start, lambda: box.read("/x")):
            with pytest.raises(SandboxLost, match="closed"):
                call()

    def test_a_command_waits_for_the_one_before_it(self, sandbox: Sandbox) -> None:
        times: list[tuple[float, float]] = []

        def work() -> None:
            began = time.monotonic()
            sandbox.exec("sleep 0.2")
            times.append((began, time.monotonic()))

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        ends = sorted(end for _, end in times)
        assert all(later - earlier > 0.15 for earlier, later in pairwise(ends))
