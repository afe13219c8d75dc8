"""What the streams of every sandbox do, and the relay that listens in it: a suite as `conformance` is."""

from __future__ import annotations

import threading
import time

import pytest

from environments.sandboxes.relaying import relayed
from environments.sandboxes.sandbox import Sandbox, SandboxStream
from prchain.core.errors import SandboxError, SandboxLost
from tests.endpoint import wait_for
from tests.environments.conformance import Make
from tests.environments.relays import serving_echo


def everything(stream: SandboxStream, patience: float = 30.0) -> tuple[bytes, bytes]:
    """All that a stream's command prints until it ends: stdout and stderr."""
    parts: dict[bool, bytes] = {False: b"", True: b""}
    until = time.monotonic() + patience
    while time.monotonic() < until:
        try:
            found = stream.receive(1.0)
        except EOFError:
            return parts[False], parts[True]
        if found is not None:
            parts[found[0]] += found[1]
    raise AssertionError(f"the stream does not end: {parts}")


class StreamConformance:
    """What the streams of every sandbox do; subclasses have the fixtures of `Conformance`."""

    def test_every_byte_goes_both_ways(self, sandbox: Sandbox) -> None:
        content = bytes(range(256)) * 8192
        stream = sandbox.stream('cat; echo error >&2; echo "$VALUE"; pwd; exit 7', environment={"VALUE": "it's; $B\n"})

        def feed() -> None:
            stream.send(content)
            stream.end_input()

        sending = threading.Thread(target=feed)
        sending.start()
        out, err = everything(stream)
        sending.join()
        assert (out, err) == (content + b"it's; $B\n\n" + sandbox.config.workdir.encode() + b"\n", b"error\n")
        assert stream.exit_code() == 7
        stream.close()

    def test_it_is_a_conversation(self, sandbox: Sandbox) -> None:
        stream = sandbox.stream('while read -r line; do echo "<$line>"; done; echo over', cwd="/")
        for word in (b"one", b"two", b"three"):
            stream.send(word + b"\n")
            assert stream.receive(20) == (False, b"<" + word + b">\n")
        assert stream.receive(0.05) is None, "nothing comes unasked"
        stream.end_input()
        assert everything(stream) == (b"over\n", b"")
        assert stream.exit_code() == 0
        with pytest.raises(EOFError):
            stream.receive(1)
        stream.close()
        stream.close()

    @pytest.mark.parametrize(("command", "code"), [("kill -9 $$", 137), ("no_such 2>/dev/null", 127), ("", 0)])
    def test_it_says_how_the_command_ended(self, sandbox: Sandbox, command: str, code: int) -> None:
        stream = sandbox.stream(command)
        assert everything(stream) == (b"", b"")
        assert stream.exit_code() == code
        stream.close()

    def test_a_folder_that_is_not_there_and_what_cannot_be_passed_on(self, sandbox: Sandbox) -> None:
        stream = sandbox.stream("true", cwd="/no/such")
        everything(stream)
        assert stream.exit_code() == 126
        stream.close()
        for command, environment in (("a\0b", {}), ("true", {"A=B": "c"}), ("true", {"A": "\0"}), ("#" * 200_000, {})):
            with pytest.raises(SandboxError):
                sandbox.stream(command, environment=environment)

    def test_several_run_side_by_side_and_commands_beside_them(self, sandbox: Sandbox) -> None:
        streams = [sandbox.stream(f"while read -r line; do echo {number}$line; done") for number in range(3)]
        for turn in range(3):
            for number, stream in enumerate(streams):
                stream.send(b"%d\n" % turn)
                assert sandbox.exec("echo beside").output == b"beside\n"
                assert stream.receive(20) == (False, b"%d%d\n" % (number, turn))
        for stream in streams:
            stream.close()

    def test_what_happens_to_commands_does_not_reach_it(self, sandbox: Sandbox) -> None:
        before = sandbox.leftovers()
        stream = sandbox.stream(
            "(setsid bash -c 'while sleep 0.02; do echo >> grown; done' &); echo ready\n"
            "while read -r line; do echo $line; done"
        )
        assert stream.receive(20) == (False, b"ready\n")
        # A stream is no leftover, nor is what left its session, once it has.
        wait_for(lambda: sandbox.leftovers() == before)
        assert sandbox.exec("sleep 5; echo never", timeout=0.3).timed_out
        assert sandbox.exec("echo own").output == b"own\n"
        stream.send(b"alive\n")
        assert stream.receive(20) == (False, b"alive\n")
        sizes = [sandbox.exec("sleep 0.2; wc -c < grown").output for _ in range(2)]
        assert int(sizes[0]) < int(sizes[1]), "what it started in the background goes on, too"
        stream.close()
        sizes = [sandbox.exec("sleep 0.2; wc -c < grown").output for _ in range(2)]
        assert sizes[0] == sizes[1], "a close ends all of it"
        with pytest.raises((BrokenPipeError, EOFError)):
            stream.send(b"more\n")
            stream.receive(1)

    def test_a_command_that_ignores_signals_and_floods_is_ended(self, sandbox: Sandbox) -> None:
        stream = sandbox.stream("trap '' TERM INT HUP PIPE; while :; do head -c 100000 /dev/zero; done")
        assert stream.receive(20) is not None
        began = time.monotonic()
        stream.close()
        assert time.monotonic() - began < 15
        assert sandbox.exec("echo next").output == b"next\n"

    def test_it_ends_when_its_command_does_whatever_that_left(self, sandbox: Sandbox) -> None:
        stream = sandbox.stream("sleep 1000 & echo left")
        assert everything(stream)[0] == b"left\n"
        assert stream.exit_code() == 0
        stream.close()

    def test_the_end_of_a_command_is_told_to_who_sends(self, sandbox: Sandbox) -> None:
        stream = sandbox.stream("exec 0<&-; sleep 0.2")
        with pytest.raises(BrokenPipeError):
            for _ in range(400):
                stream.send(bytes(1 << 16))
        stream.close()

    def test_it_ends_with_its_sandbox(self, make: Make) -> None:
        box = make()
        box.start()
        stream = box.stream("echo begun; sleep 1000")
        assert stream.receive(20) == (False, b"begun\n")
        ended: list[bool] = []

        def wait() -> None:
            everything(stream)
            ended.append(True)

        waiting = threading.Thread(target=wait)
        waiting.start()
        box.close()
        waiting.join(timeout=20)
        assert ended
        with pytest.raises(SandboxError):
            stream.exit_code()
        with pytest.raises(SandboxLost):
            box.stream("true")
        stream.close()

    def test_connections_in_the_sandbox_come_out_here(self, sandbox: Sandbox) -> None:
        with serving_echo() as address, relayed(sandbox.listen(), address) as port:
            talk = (
                f"exec 3<>/dev/tcp/127.0.0.1/{port.number}; printf 'a\\0b' >&3; head -c 3 <&3 | od -An -c; "
                "for i in 1 2 3; do (exec 4<>/dev/tcp/127.0.0.1/%d; echo $i >&4; read -r l <&4; echo $l) & done; wait"
            )
            result = sandbox.exec(talk % port.number, timeout=30)
            assert sorted(result.text.split()) == ["1", "2", "3", "\\0", "a", "b"]
            assert not port.broken
        assert b"refused" in sandbox.exec(f"exec 3<>/dev/tcp/127.0.0.1/{port.number}").output.lower()
