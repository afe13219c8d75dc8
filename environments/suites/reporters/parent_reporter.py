"""Runs go, cargo or maven and signs what they print or write; see `environments.suites.testlogs.events`.

    python3 parent_reporter.py COMMAND...

Runs as a script inside a sandbox, outside of the tested processes. Standard input holds one JSON object: ``key`` (hex),
``report`` (path of the log), ``runner`` (go, cargo or surefire) and ``seconds``, which one test may take. Where one
takes longer, everything is ended, ``overtime`` names it, and the others run again without it. The memory of this
process is closed to others of its user (prctl(2), PR_SET_DUMPABLE), for the key is in it.
"""

from __future__ import annotations

import codecs
import contextlib
import ctypes
import json
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from python_reporter import Log

ROUNDS = 8
"""Times that the tests are run: one less may take too long."""
PIECE = 1 << 16
_PR_SET_DUMPABLE = 4
_LINGER = 2.0
"""Seconds in which output is read after the command ended; a process that it left behind may hold the pipe."""


class Slow:
    """The tests that run, by their name, and since when; tells which of them have run for too long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: dict[str, float] = {}

    def begin(self, test: str, ago: float = 0.0) -> None:
        """It runs, since so many seconds."""
        self._since.setdefault(test, time.monotonic() - ago)

    def end(self, test: str) -> None:
        """It does not run."""
        self._since.pop(test, None)

    def late(self) -> list[str]:
        """Those that took too long."""
        now = time.monotonic()
        return [test for test, since in self._since.items() if now - since > self._seconds]


class Go:
    """``go test -json``. A test is named by package and name, with a space between."""

    files = None

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def commands(self, command: list[str], late: list[str]) -> list[list[str]]:
        """What runs all tests but the late ones: where a folder has one, its other tests by their names, for
        ``-skip`` is newer than go 1.20."""
        words = [word for word in command if not word.startswith(".")]
        folders = [word for word in command if word.startswith(".")]
        plain, others = list(folders), []
        for folder in folders if late else ():
            listed = subprocess.run(
                [*(word for word in words if word != "-json"), "-list", ".", folder],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            ).stdout.splitlines()
            package = next((line.split("\t")[1] for line in listed if line.startswith("ok") and "\t" in line), "")
            without = {
                name.partition("/")[0] for it in late for path, _, name in [it.partition(" ")] if path == package
            }
            if without:
                names = [line for line in listed if re.fullmatch(r"(?:Test|Example|Fuzz)\w*", line)]
                plain.remove(folder)
                others.append(
                    [*words, "-run", f"^({'|'.join(name for name in names if name not in without)})$", folder]
                )
        return [*([[*words, *plain]] if plain else []), *others]

    def line(self, line: str, slow: Slow) -> None:
        """Take an event: what waits for others that run beside it, or has subtests that end, is not slow."""
        if not line.startswith('{"'):
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict) or not isinstance(event.get("Test"), str):
            return
        test, action = f"{event.get('Package')} {event['Test']}", event.get("Action")
        if action in ("run", "cont"):
            slow.begin(test)
        elif action in ("pause", "pass", "fail", "skip"):
            slow.end(test)
        parent = test.rpartition("/")[0]
        while parent and action in ("run", "pass", "fail", "skip"):
            slow.end(parent)
            if action != "run":
                slow.begin(parent)
            parent = parent.rpartition("/")[0]


class Cargo:
    """``cargo test``. A test is named as its harness does."""

    files = None
    _START = re.compile(r"test (\S.*?)(?: - should panic)? \.\.\. ?")
    _LONG = re.compile(r"test (\S.*?) has been running for over (\d+) seconds")
    _END = re.compile(r"test (\S.*?)(?: - should panic)? \.\.\. .*")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def commands(self, command: list[str], late: list[str]) -> list[list[str]]:
        """The command, with the late ones skipped."""
        skips = [word for test in late for word in ("--skip", test)]
        return [[*command, "--", "--exact", *skips] if late else command]

    def line(self, line: str, slow: Slow) -> None:
        """Take a line, or the beginning of one that is not at its end: a harness with one thread names a test before
        it runs it; one with several threads names those that take over a minute."""
        if found := self._START.fullmatch(line):
            slow.begin(found[1])
        elif found := self._LONG.fullmatch(line):
            slow.begin(found[1], float(found[2]))
        elif found := self._END.fullmatch(line):
            slow.end(found[1])


class Surefire:
    """Maven. JUnit 5 has a limit of its own for each test; with others the whole run has one."""

    files = re.compile(r"(?:.*/)?target/surefire-reports/TEST-[^/]*\.xml")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def commands(self, command: list[str], late: list[str]) -> list[list[str]]:
        """The command with JUnit's limit."""
        return [[*command, f"-Djunit.jupiter.execution.timeout.testable.method.default={self._seconds:g} s"]]

    def line(self, line: str, slow: Slow) -> None:
        """Maven's output names no test that runs."""


KINDS: dict[str, Any] = {"go": Go, "cargo": Cargo, "surefire": Surefire}


class Output:
    """What a command prints, said piece by piece."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def take(self, piece: bytes, *, final: bool = False) -> list[str]:
        """Say it; the lines that it ends, and last the one that it begins."""
        text = self._decoder.decode(piece, final)
        if text:
            self._log.say("output", text=text)
        *lines, self._rest = (self._rest + text).split("\n")
        self._rest = self._rest[-PIECE:]
        return [*lines, self._rest]


def run(command: list[str], kind: Any, log: Log, seconds: float) -> tuple[int, list[str]]:
    """Run a command: its exit code, and the tests that took too long, for which it was ended."""
    slow, output = Slow(seconds), Output(log)
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    stream = child.stdout.fileno()  # type: ignore[union-attr]
    late: list[str] = []
    ended: float | None = None
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while not late and (ended is None or time.monotonic() - ended < _LINGER):
            if selector.select(0.5):
                piece = os.read(stream, PIECE)
                if not piece:
                    break
                sys.stdout.buffer.write(piece)  # for people
                for line in output.take(piece) if kind.files is None else ():
                    kind.line(line, slow)
            if ended is None and child.poll() is not None:
                ended = time.monotonic()
            late = slow.late()
    if not late:
        child.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    code = child.wait()
    if kind.files is None:
        output.take(b"", final=True)
    return code, late


def reports(pattern: re.Pattern[str]) -> list[str]:
    """The files below the working directory whose path matches; links are not followed."""
    found = [os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names]
    return sorted(
        path for path in found if pattern.fullmatch(path) and os.path.isfile(path) and not os.path.islink(path)
    )


def main(command: list[str]) -> int:
    """Run the order on standard input; the command's exit code."""
    from python_reporter import Log  # noqa: PLC0415  beside it in a sandbox, where it is no module of a package

    order = json.load(sys.stdin)
    if shutil.which(command[0]) is None:
        return 127
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    log = Log(order["report"], bytes.fromhex(order["key"]))
    kind = KINDS[order["runner"]](order["seconds"])
    log.say("start", runner=order["runner"])
    for path in reports(kind.files) if kind.files else ():
        os.remove(path)
    late: list[str] = []
    for number in range(ROUNDS):
        code, more = 0, list[str]()
        for one in kind.commands(command, late):
            found, more = run(one, kind, log, order["seconds"])
            code = code or found
            if more:
                break
        if not more:
            break
        late += more
        for test in more:
            log.say("overtime", what=test)
        if number < ROUNDS - 1:
            log.say("again")
    for path in reports(kind.files) if kind.files else ():
        with open(path, encoding="utf-8", errors="replace") as file:
            log.say("output", text=file.read())
    code = 128 - code if code < 0 else code
    log.say("end", exit=code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
