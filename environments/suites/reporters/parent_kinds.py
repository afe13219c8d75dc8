"""The runners that print or write how tests ended, for `parent_reporter`, beside which this stands in a sandbox.

For Python 3.6 and newer, as that is.
"""

import json
import re
import subprocess
import time
from typing import Any, Dict, List, Optional, Set, Type


class Slow:
    """The tests that run, by their name, and since when; tells which of them have run for too long."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: Dict[str, float] = {}

    def begin(self, test: str, ago: float = 0.0) -> None:
        """It runs, since so many seconds."""
        self._since.setdefault(test, time.monotonic() - ago)

    def end(self, test: str) -> None:
        """It does not run."""
        self._since.pop(test, None)

    def end_all(self, begins: str) -> None:
        """Those whose names begin so do not run."""
        for test in [test for test in self._since if test.startswith(begins)]:
            self.end(test)

    def again(self) -> None:
        """Those that run begin now."""
        self._since = dict.fromkeys(self._since, time.monotonic())

    def late(self) -> List[str]:
        """Those that took too long."""
        now = time.monotonic()
        return [test for test, since in self._since.items() if now - since > self._seconds]


class Kind:
    """How a runner is started, and what its output tells while it runs."""

    files: Any = None
    """The files that the runner writes its report to; None where it prints it."""
    is_of_files = False
    """Whether each command runs one file, its last word, and what it prints (on standard output alone) is that file's
    report."""
    refuses = False
    """Whether it runs nothing where it refuses one part of what it is given."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.left_out: List[str] = []
        """What the runner refused to be given."""
        self.has_said = False
        """Whether the command that runs has said something of a test."""

    def slow(self) -> Slow:
        """What tells which tests of a command take too long."""
        return Slow(self._seconds)

    def commands(self, command: List[str], late: List[str]) -> List[List[str]]:
        """What runs all tests but the late ones."""
        return [command]

    def parts(self, command: List[str]) -> List[List[str]]:
        """The commands of which each runs a part of it; the last word of each is what it runs."""
        return [command]

    def line(self, line: str, slow: Slow) -> None:
        """Take a line of the output, or the beginning of one that is not at its end."""


class Go(Kind):
    """``go test -json``. A test is named by package and name, with a space between."""

    refuses = True
    _BEGINS = re.compile(r"=== (?:RUN|CONT) +(\S+)$")
    _ENDS = re.compile(r"(?:=== PAUSE +|--- (?:PASS|FAIL|SKIP): )(\S+)(?: \([\d.]+s\))?$")

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self._marks_lines = False

    def parts(self, command: List[str]) -> List[List[str]]:
        """The command for each of its folders; go runs none where it refuses one: its path is no import path, it is a
        module of its own, all its files are for other systems (go 1.19)."""
        folders = [word for word in command if word.startswith(".")]
        words = [word for word in command if not word.startswith(".")]
        return [[*words, folder] for folder in folders]

    def commands(self, command: List[str], late: List[str]) -> List[List[str]]:
        """What runs all tests but the late ones: where a folder has one, its other tests by their names, for
        ``-skip`` is newer than go 1.20."""
        words = [word for word in command if not word.startswith(".")]
        folders = [word for word in command if word.startswith(".")]
        plain, others = list(folders), []
        for folder in folders if late else ():
            listed = subprocess.run(
                [*(word for word in words if word != "-json"), "-list", ".", folder],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
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
        """Take an event: what waits for others that run beside it, or has subtests that end, is not slow. Before go
        1.20 there are none of tests that print without a newline: their lines end with what would be one."""
        self.has_said = self.has_said or line.startswith('{"') or line.endswith(" failed]")
        if not line.startswith('{"'):
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        package, action, output = event.get("Package"), event.get("Action"), event.get("Output")
        self._marks_lines = self._marks_lines or action == "start"
        if isinstance(output, str) and not self._marks_lines:
            ended, begun = (pattern.search(output.rstrip("\r\n")) for pattern in (self._ENDS, self._BEGINS))
            if ended:
                slow.end(f"{package} {ended[1]}")
            elif begun:
                slow.begin(f"{package} {begun[1]}")
        if not isinstance(event.get("Test"), str):
            if action in ("pass", "fail", "skip"):
                slow.end_all(f"{package} ")
            return
        test = f"{package} {event['Test']}"
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


class Cargo(Kind):
    """``cargo test``. A test is named as its harness does."""

    _TEST = re.compile(r"test (\S+)(?: - should panic)? \.\.\.(?: |$)")
    _LINE = re.compile(r"test (\S.*?)(?: - should panic)? \.\.\.(?: |$)")
    _LONG = re.compile(r"test (\S.*?) has been running for over (\d+) seconds")
    _WORD = re.compile(r"(?:(?:ok|FAILED)(?: <[\d.]+s>)?|ignored(?:, .*)?)$")

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self._begun = ""
        self._checked: Optional[List[str]] = None

    def commands(self, command: List[str], late: List[str]) -> List[List[str]]:
        """The command, with the late ones skipped, and without the targets that there are not: for one of them Cargo
        would run none. Where none is left it runs the whole package."""
        if self._checked is None:
            self._checked = self._known_alone(command)
        skips = [word for test in late for word in ("--skip", test)]
        return [[*self._checked, "--", "--exact", *skips] if late else self._checked]

    def _known_alone(self, command: List[str]) -> List[str]:
        names = [word for at, word in enumerate(command) if at and command[at - 1] == "--test"]
        known = self._targets(command[0]) if names else None
        if known is None:
            return command
        self.left_out = [f"--test {name}" for name in dict.fromkeys(names) if name not in known]
        without = command[: command.index("--test")] + command[command.index("--test") + 2 * len(names) :]
        return [*without, *(word for name in names if name in known for word in ("--test", known[name]))]

    def _targets(self, cargo: str) -> Optional[Dict[str, str]]:
        """The test targets that run with the package's default features, by their names and by those of their files;
        None where Cargo cannot say."""
        try:
            made = subprocess.run(
                [cargo, "metadata", "--offline", "--no-deps", "--format-version", "1"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=self._seconds,
            )
            read = json.loads(made.stdout)
            packages = [it for it in read["packages"] if it["id"] in read.get("workspace_default_members", [it["id"]])]
            targets = [
                (target["name"], target["src_path"])
                for package in packages
                for target in package["targets"]
                if "test" in target["kind"]
                and set(target.get("required-features", ())) <= _default_features(package.get("features", {}))
            ]
            files = {re.sub(r"(?:/main)?\.rs$", "", path).rpartition("/")[2]: name for name, path in targets}
            return {**files, **{name: name for name, _ in targets}}
        except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError):
            return None

    def line(self, line: str, slow: Slow) -> None:
        """Take a line, or the beginning of one that is not at its end: a harness with one thread names a test before
        it runs it; one with several threads names those that take over a minute. What tests print can stand before
        the name, and before the word."""
        found = self._LONG.search(line)
        if found:
            slow.begin(found[1], float(found[2]))
            return
        named = list(self._TEST.finditer(line)) or [one for one in [self._LINE.match(line)] if one]
        is_done = self._WORD.search(line) is not None
        if named and named[-1][1] == self._begun and not is_done:
            return
        if named or is_done or line.startswith("test result: "):
            slow.end(self._begun)
            self._begun = ""
        for one in named:
            slow.end(one[1])
        if named and not is_done:
            self._begun = named[-1][1]
            slow.begin(self._begun)


def _default_features(features: Dict[str, List[str]]) -> Set[str]:
    """The features that are on by default, with what they switch on."""
    found: Set[str] = set()
    left = ["default"]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += features.get(name, ())
    return found


class Surefire(Kind):
    """Maven. JUnit 5 has a limit of its own for each test; with others the whole run has one."""

    files = re.compile(r"(?:.*/)?target/surefire-reports/TEST-[^/]*\.xml")

    def commands(self, command: List[str], late: List[str]) -> List[List[str]]:
        """The command with JUnit's limit."""
        return [[*command, f"-Djunit.jupiter.execution.timeout.testable.method.default={self._seconds:g} s"]]


class Tap(Kind):
    """Files that print TAP, each in a process of its own. One that says nothing of a test for too long is ended."""

    is_of_files = True
    _SAYS = re.compile(r" *(?:not )?ok \d+(?: |$)")

    def commands(self, command: List[str], late: List[str]) -> List[List[str]]:
        """The command up to ``--`` with each of the files behind it."""
        at = command.index("--")
        return [[*command[:at], path] for path in command[at + 1 :]]

    def line(self, line: str, slow: Slow) -> None:
        """Take a line: where it says something of a test, the time begins anew."""
        if self._SAYS.match(line):
            slow.again()


KINDS: Dict[str, Type[Kind]] = {
    "go": Go,
    "cargo": Cargo,
    "surefire": Surefire,
    "tap": Tap,
    "tape": Tap,
    "ava": Tap,
}
