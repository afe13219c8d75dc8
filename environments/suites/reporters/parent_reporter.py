"""Runs go, cargo, maven or files that print TAP and signs what they print; see `environments.suites.testlogs.events`.

    python3 parent_reporter.py COMMAND...

Runs as a script inside a sandbox, outside of the tested processes. Standard input holds one JSON object: ``key`` (hex),
``report`` (path of the log), ``runner`` (a name in `parent_kinds.KINDS`) and ``seconds``, which one test may take.
Where one takes longer, everything is ended, ``overtime`` names it, and the others run again without it; of files that
print TAP, that file alone. The memory of this process is closed to others of its user (prctl(2), PR_SET_DUMPABLE), for
the key is in it.

It runs on the image's own Python, from 3.6 on.
"""

import codecs
import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, List, Optional, Pattern, Tuple

if TYPE_CHECKING:
    from parent_kinds import Kind
    from python_reporter import Log

ROUNDS = 8
"""Times that the tests are run: one less may take too long."""
PIECE = 1 << 16
MOST_OF_FILE = 1 << 23
"""Characters of what the tests of one file print; a report that is longer lacks its end."""
_PR_SET_DUMPABLE = 4
_LINGER = 2.0
"""Seconds in which output is read after the command ended; a process that it left behind may hold the pipe."""


class Output:
    """What a command prints, said piece by piece."""

    def __init__(self, log: "Optional[Log]") -> None:
        """Without a log the text is kept."""
        self.text = ""
        self._log = log
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def take(self, piece: bytes, *, final: bool = False) -> List[str]:
        """Say it; the lines that it ends, and last the one that it begins."""
        text = self._decoder.decode(piece, final)
        if self._log is None:
            self.text = (self.text + text)[:MOST_OF_FILE]
        elif text:
            self._log.say("output", text=text)
        *lines, self._rest = (self._rest + text).split("\n")
        self._rest = self._rest[-PIECE:]
        return [*lines, self._rest]


def run(command: List[str], kind: "Kind", log: "Log") -> Tuple[int, List[str]]:
    """Run a command: its exit code, and the tests that took too long, for which it was ended."""
    slow, output = kind.slow(), Output(None if kind.is_of_files else log)
    aside = None if kind.is_of_files else subprocess.STDOUT
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=aside, start_new_session=True
    )
    if kind.is_of_files:
        slow.begin(command[-1])
    stream = child.stdout.fileno()  # type: ignore[union-attr]
    late: List[str] = []
    ended: Optional[float] = None
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
    if kind.is_of_files:
        said = {"file": command[-1], "exit": code, "late": bool(late), "text": output.text}
        log.say("file", text=json.dumps(said))
        return code, []
    return code, late


def run_all(commands: List[List[str]], kind: "Kind", log: "Log") -> Tuple[int, List[str]]:
    """Run commands, up to one in which a test takes too long: their exit code, and those tests.

    A command that is refused, for it fails and says nothing of any test, is run part by part; a part that is refused is
    left out, and its exit code says nothing of the others.
    """
    code, refused, is_all_refused = 0, 0, True
    left = list(commands)
    while left:
        command = left.pop(0)
        kind.has_said = not kind.refuses
        found, late = run(command, kind, log)
        if late:
            return found, late
        if kind.has_said or not found:
            code, is_all_refused = code or found, False
        else:
            parts = kind.parts(command)
            if len(parts) > 1:
                left[:0] = parts
            else:
                refused = found
                kind.left_out.append(command[-1])
    return refused if is_all_refused else code, []


def reports(pattern: Pattern[str]) -> List[str]:
    """The files below the working directory whose path matches; links are not followed."""
    found = [os.path.join(folder, name) for folder, _, names in os.walk(".") for name in names]
    return sorted(
        path for path in found if pattern.fullmatch(path) and os.path.isfile(path) and not os.path.islink(path)
    )


def main(command: List[str]) -> int:
    """Run the order on standard input; the command's exit code."""
    # Beside it in a sandbox, where they are no modules of a package.
    from parent_kinds import KINDS  # noqa: PLC0415
    from python_reporter import Log  # noqa: PLC0415

    order = json.load(sys.stdin)
    if shutil.which(command[0]) is None:
        return 127
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    log = Log(order["report"], bytes.fromhex(order["key"]))
    kind = KINDS[order["runner"]](order["seconds"])
    log.say("start", runner=order["runner"])
    for path in reports(kind.files) if kind.files else ():
        os.remove(path)
    late: List[str] = []
    for number in range(ROUNDS):
        code, more = run_all(kind.commands(command, late), kind, log)
        if not more:
            break
        late += more
        for test in more:
            log.say("overtime", what=test)
        if number < ROUNDS - 1:
            log.say("again")
    for what in kind.left_out:
        log.say("left_out", what=what)
    for path in reports(kind.files) if kind.files else ():
        with open(path, encoding="utf-8", errors="replace") as file:
            log.say("file", text=file.read())
    code = 128 - code if code < 0 else code
    log.say("end", exit=code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
