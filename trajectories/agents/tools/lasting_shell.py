"""A shell that lasts beside a sandbox's other commands, so that a command in it can go on while the agent thinks.

One interactive bash without a terminal reads commands from a stream (`environments.sandboxes.sandbox.Sandbox.stream`)
and prints a mark, random and passed to no command, after each. Interactive, because an interrupt ends only such a
shell's command and not the shell itself.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass

from environments.sandboxes.channel import HeadTail
from environments.sandboxes.sandbox import Sandbox, SandboxStream
from prchain.core.errors import SandboxLost

# Whoever starts us in the background of a script has all that follows ignore interrupts; no shell can take that back.
_BEGIN = (
    "set -- bash --noprofile --norc --noediting -i\n"
    'env --default-signal=INT true 2>/dev/null && set -- env --default-signal=INT "$@"\n'
    'exec "$@" 2>&1'
)
_QUIET = "PS1= PS2= PROMPT_COMMAND=; set +o history +H; shopt -u huponexit"
_BEGINNING = 30.0
"""Seconds that the shell may take to begin, and to answer a question of ours."""
_AGAIN = 0.5
"""Seconds after which a command is interrupted again."""
_MOST_ANSWER = 1 << 20
"""Bytes of an answer to a question of ours."""
_MARK_LENGTH = 5_000
"""Bytes of a mark with code and folder: a path has at most 4,096."""


@dataclass(frozen=True, slots=True)
class ShellOutput:
    """What a command printed since it was last looked at.

    `exit_code` is None while it runs on, and where nobody knows how it ended. `head` and `tail` are its output's
    beginning and end, with `omitted` bytes between them.
    """

    exit_code: int | None
    head: bytes
    tail: bytes
    omitted: int
    runs: bool = False
    cwd: str | None = None
    """The shell's folder afterwards, where it is known."""
    ended: bool = False
    """Whether the shell ended with the command."""


class LastingShell:
    """One shell. Begins with the first command; after its end the next command begins another."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._stream: SandboxStream | None = None
        self._pid = 0
        self._mark = b""
        self._rest = b""
        self.runs = False
        """Whether a command runs."""

    @property
    def begun(self) -> bool:
        """Whether the shell is there."""
        return self._stream is not None

    def begin(self, setup: str, environment: Mapping[str, str]) -> None:
        """Begin the shell in the sandbox's workdir with these variables, and run `setup` in it. Raises `SandboxLost`
        and its causes."""
        self.close()
        self._stream = self._sandbox.stream(_BEGIN, environment=environment)
        text = self.ask(f'{_QUIET}\n{setup}\necho "$$"')
        found = re.search(rb"(\d+)\s*\Z", text)
        if found is None:
            self.close()
            raise SandboxLost("the agent's shell did not begin")
        self._pid = int(found[1])

    def run(self, command: str, seconds: float, most: int) -> ShellOutput:
        """Run a command, and wait so long for its end. It has no input. Raises `SandboxLost` and its causes."""
        self.runs, self._rest = True, b""
        self._mark = secrets.token_hex(16).encode()
        self._send(f"eval -- {shlex.quote(command)} </dev/null\n{self._marking()}")
        return self.more(seconds, most)

    def ask(self, commands: str) -> bytes:
        """What commands of ours print, at most `_MOST_ANSWER` bytes; empty where the shell does not answer."""
        self.runs, self._rest = True, b""
        self._mark = secrets.token_hex(16).encode()
        self._send(f"{commands}\n{self._marking()}")
        found = self.more(_BEGINNING, _MOST_ANSWER)
        if found.runs:
            self.close()
        return b"" if found.omitted or found.runs else found.head + found.tail

    def more(self, seconds: float, most: int) -> ShellOutput:
        """What the running command prints until its end, or for so long. At most `most` bytes of it are kept."""
        return self._look(HeadTail(most), seconds)

    def _look(self, kept: HeadTail, seconds: float) -> ShellOutput:
        assert self._stream is not None
        until = time.monotonic() + seconds
        while True:
            place = self._rest.find(self._mark)
            line = self._rest[place : place + _MARK_LENGTH].partition(b"\n") if place >= 0 else (b"", b"", b"")
            if line[1]:
                # The mark stands on a line of its own, whose beginning is ours, too.
                kept.add(self._rest[: max(place - 1, 0)])
                self._rest, self.runs = b"", False
                return _output(kept, *_read_mark(line[0]))
            if place < 0 and len(self._rest) > len(self._mark):
                keep = len(self._mark) + 1
                kept.add(self._rest[:-keep])
                self._rest = self._rest[-keep:]
            remaining = until - time.monotonic()
            if remaining <= 0:
                if place < 0:
                    kept.add(self._rest.removesuffix(self._partial()))
                    self._rest = self._partial()
                return _output(kept, None, None, runs=True)
            try:
                found = self._stream.receive(remaining)
            except EOFError:
                return self._over(kept)
            self._rest += found[1] if found is not None else b""

    def interrupt(self, seconds: float, most: int) -> ShellOutput:
        """Interrupt the running command, as ctrl+c at a terminal does, and wait so long for its end; one that does not
        end by then is killed, with the shell."""
        kept, until = HeadTail(most), time.monotonic() + seconds
        while time.monotonic() < until:
            # A loop goes on where the interrupt meets a command of it at its very end: hence several.
            self._sandbox.exec(f"kill -INT -- -{self._pid}", timeout=_BEGINNING, cwd="/")
            found = self._look(kept, min(_AGAIN, max(until - time.monotonic(), 0.0)))
            if not found.runs:
                return found
        self.close()
        return _output(kept, None, None, ended=True)

    def close(self) -> None:
        """End the shell with all that it has started. Never fails."""
        stream, self._stream, self.runs, self._rest = self._stream, None, False, b""
        if stream is not None:
            stream.close()

    def _marking(self) -> str:
        return f'printf \'\\n{self._mark.decode()} %s %q\\n\' "$?" "$PWD"\n'

    def _partial(self) -> bytes:
        """What may be the beginning of the mark's line, at the end of what was read."""
        whole = b"\n" + self._mark
        return next((whole[:n] for n in range(len(whole), 0, -1) if self._rest.endswith(whole[:n])), b"")

    def _send(self, text: str) -> None:
        assert self._stream is not None
        with contextlib.suppress(BrokenPipeError):  # the next look at it says how it ended
            self._stream.send(text.encode("utf-8", "surrogateescape"))

    def _over(self, kept: HeadTail) -> ShellOutput:
        """The output of a command that ended its shell."""
        assert self._stream is not None
        kept.add(self._rest)
        code = self._stream.exit_code()
        self.close()
        return _output(kept, code, None, ended=True)


def _output(
    kept: HeadTail, code: int | None, cwd: str | None, *, runs: bool = False, ended: bool = False
) -> ShellOutput:
    head, tail, omitted = kept.parts()
    return ShellOutput(code, head, tail, omitted, runs, cwd, ended)


def _read_mark(line: bytes) -> tuple[int | None, str | None]:
    """Code and folder of a mark's line; None what cannot be read."""
    _, code, *folder = [*line.split(b" ", 2), b""][:3]
    try:
        words = shlex.split(folder[0].decode("utf-8"))
    except ValueError:
        words = []
    plain = len(words) == 1 and words[0].startswith("/") and not folder[0].startswith(b"$'")
    return int(code) if code.isdigit() else None, words[0] if plain else None
