"""Running a stage's tests in a sandbox, so that the code under test cannot say itself how they ended.

For Python and JavaScript the results come from a reporter of ours (`environments/suites/reporters`): a file outside the
tree, in a folder with a random name made for this run, which signs each result with a key that it takes from its
standard input before code of the tree runs. Nothing that a test prints is read. Closed by this: printed summaries,
forged, truncated or replayed reports, ``os._exit(0)`` and crashes (a test that began and did not end is an error, one
that never began is missing), wrong exit codes, a hook that turns a failure into a pass (the failure stands, and a note
says so), replaced functions of the runner (`tampered`: nothing passed), a module of the tree that has the runner's
name, and plugins or options in the environment. Files that steer a runner come from M_t or are reported:
`environments.checkouts.overlay`.

Not closed, because tests and the code under test share a process: code that searches the memory of that process for the
key (or, with jest and vitest, speaks the private protocol between worker and parent), and code that makes assertions
true, as an object that equals everything does. Go, Cargo and Maven are worse: their text is what the test binary
prints, so results that contradict themselves, the counts or the exit code are distrusted, but a binary that prints a
whole consistent run and leaves with code 0 is believed.
"""

from __future__ import annotations

import json
import posixpath
import re
import secrets
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources

from environments.sandboxes.sandbox import Sandbox
from environments.suites.testlogs import PARSERS, Status, failures, read_events
from prchain.errors import SandboxFileError

REPORT_LIMIT = 64 << 20
"""Bytes of a report that are read; 100,000 tests of pytest sign about 40 MB."""


@dataclass(frozen=True, slots=True)
class TestCommand:
    """How a repository's tests are run.

    `template` is a shell command with ``{files}`` (the test files as this runner takes them), ``{tools}`` (the folder
    of our reporters) and, where the command writes the report itself, ``{report}``. `parser` is a name of `PARSERS`;
    with `signed` our reporter writes the report, and the parser only decides how files are named. `arguments` go to
    pytest before the files, in its own process. `environment` is added to the sandbox's.
    """

    template: str
    parser: str
    signed: bool = True
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


TestCommand.__test__ = False  # type: ignore[attr-defined]  # no class of tests, whatever pytest thinks of its name

_PIPED = "2>&1 | cat >{report}; exit ${PIPESTATUS[0]}"
"""Tests inherit a pipe, in which nothing that was written can be changed, and not the report."""
_SUREFIRE_FILES = "find . -path '*/target/surefire-reports/TEST-*.xml' -type f"

COMMANDS: dict[str, TestCommand] = {
    "pytest": TestCommand(
        "python {tools}/python_reporter.py", "pytest",
        arguments=("-p", "no:randomly", "--continue-on-collection-errors", "-o", "cache_dir={tools}/cache"),
    ),
    "unittest": TestCommand("python {tools}/python_reporter.py", "unittest"),
    "jest": TestCommand(
        "jest --ci --runTestsByPath {files} --reporters={tools}/jest_reporter.cjs", "jest"
    ),
    "vitest": TestCommand("vitest run {files} --reporter={tools}/vitest_reporter.mjs", "vitest"),
    "mocha": TestCommand("mocha --reporter {tools}/mocha_reporter.cjs {files}", "mocha"),
    "go": TestCommand(f"go test -json -count=1 {{files}} {_PIPED}", "go", signed=False),
    "cargo": TestCommand(
        f"cargo test --offline --no-fail-fast --color never {{files}} {_PIPED}", "cargo", signed=False
    ),
    "surefire": TestCommand(
        f"{_SUREFIRE_FILES} -delete; mvn -o -B ${{MAVEN_WAY:-}} test -Dtest={{files}} -DfailIfNoTests=false"
        " -Dsurefire.failIfNoSpecifiedTests=false -Dmaven.test.failure.ignore=false;"
        f" code=$?; {_SUREFIRE_FILES} -exec cat {{}} + >{{report}}; exit $code",
        "surefire", signed=False,
    ),
}  # fmt: skip
"""The command for each runner, as recipes name it."""

TEST_SECONDS = 180.0
"""What one test of pytest or unittest may take before it fails. Without the network, one that waits for a server would
use up the time of the whole run (celery's take nine minutes); runners on Node have limits of seconds by themselves."""

_ENVIRONMENT = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "CI": "1",
    "TZ": "UTC",
    "CARGO_TERM_COLOR": "never",
}


@dataclass(frozen=True, slots=True)
class TestRun:
    """One run. `statuses` holds what was seen; what is not in it is missing."""

    statuses: dict[str, Status]
    tail: str
    """The end of what was printed, for people; nothing is concluded from it."""
    seconds: float
    exit_code: int | None
    timed_out: bool = False
    complete: bool = True
    """The runner came to its end and said so."""
    infra: str | None = None
    """Why the run says nothing: runner_missing, report_too_large, or the name of a sandbox's error."""
    notes: tuple[str, ...] = ()
    """Signs that somebody meddled: foreign lines, gaps, tampered parts of the runner, distrusted passes."""
    tampered: tuple[str, ...] = ()
    """Functions of the runner that the code under test replaced."""

    @property
    def usable(self) -> bool:
        """Whether tests may be classified by this run: one that was out of time or memory says what the machine can."""
        return self.infra is None and not self.timed_out


TestRun.__test__ = False  # type: ignore[attr-defined]


def run_tests(
    sandbox: Sandbox,
    command: TestCommand,
    files: Sequence[str],
    *,
    timeout: float,
    workdir: str | None = None,
    replaced_by_reference: Collection[str] = (),
) -> TestRun:
    """Run the tests of these files (paths from the tree's root) once; `timeout` in seconds, for all of them.

    Where the code under test replaced a function of the runner, no test passed: each pass is an error. Replacements
    that the reference makes (`TestRun.tampered` of a run on M_t) are given as `replaced_by_reference` and left alone.

    Raises what the sandbox raises (`SandboxError`): the engine's failures are no result. Without files nothing is run.
    """
    if not files:
        return TestRun({}, "", 0.0, 0)
    tools = f"/tmp/.{secrets.token_hex(12)}"
    report, key = f"{tools}/{secrets.token_hex(8)}", secrets.token_bytes(32)
    for name, content in _reporters().items():
        sandbox.write(f"{tools}/{name}", content)
    named = arguments_of(command.parser, files)
    order = {
        "key": key.hex(),
        "report": report,
        "runner": command.parser,
        "seconds": TEST_SECONDS,
        "arguments": [*(one.replace("{tools}", tools) for one in command.arguments), *named],
    }
    shown = ",".join(map(shlex.quote, named)) if command.parser == "surefire" else shlex.join(named)
    ran = sandbox.exec(
        _filled(command.template, files=shown, tools=tools, report=report),
        timeout=timeout,
        cwd=workdir or sandbox.place.workdir,
        environment={**_ENVIRONMENT, **command.environment},
        output_limit=1 << 16,
        stdin=json.dumps(order).encode() if command.signed else b"",
    )
    log, too_large = _read(sandbox, report)
    sandbox.exec(f"rm -rf {tools}", cwd="/")
    tail = ran.text[-8000:]
    infra = ran.limit if ran.limit == "out_of_memory" else "report_too_large" if too_large else None
    if command.signed:
        events = read_events(log, key, timed_out=ran.timed_out)
        infra = infra or (None if events.started or ran.timed_out else "runner_missing")
        tampered = tuple(what for what in events.tampered if what not in replaced_by_reference)
        notes = [f"replaced in the runner: {what}" for what in tampered]
        notes += [f"overruled: {test}" for test in events.overruled]
        notes += [f"{events.foreign} foreign lines in the report"] if events.foreign else []
        notes += ["events are missing"] if events.gap else []
        complete = events.exit_code is not None
        statuses = _doubted(events.statuses) if tampered else events.statuses
        return TestRun(
            statuses, tail, ran.seconds, ran.exit_code, ran.timed_out, complete, infra, tuple(notes), events.tampered
        )
    statuses = PARSERS[command.parser](log.decode("utf-8", "replace"))
    if ran.exit_code in {126, 127} and not statuses:
        infra = infra or "runner_missing"
    statuses, distrusted = distrust(statuses, ran.exit_code)
    return TestRun(
        statuses, tail, ran.seconds, ran.exit_code, ran.timed_out, ran.exit_code is not None, infra, distrusted
    )


def _filled(template: str, **values: str) -> str:
    """The template with its names replaced, in one pass; other braces are the shell's."""
    return re.sub(rf"{{({'|'.join(values)})}}", lambda match: values[match[1]], template)


def distrust(statuses: Mapping[str, Status], exit_code: int | None) -> tuple[dict[str, Status], tuple[str, ...]]:
    """Statuses of an unsigned report, held against the runner's exit code (None: it was killed).

    A runner that fails without a failed test did not do what its report tells: no test of it passed.
    """
    if exit_code == 0 or failures(statuses) or exit_code is None:
        return dict(statuses), ()
    if not any(status is Status.passed for status in statuses.values()):
        return dict(statuses), ()
    return _doubted(statuses), (f"exit code {exit_code} without a failed test: passes distrusted",)


def _doubted(statuses: Mapping[str, Status]) -> dict[str, Status]:
    return {test: Status.error if status is Status.passed else status for test, status in statuses.items()}


def arguments_of(parser: str, files: Sequence[str]) -> list[str]:
    """The files as a runner takes them.

    unittest: dotted modules. Go: the packages' folders. Cargo: ``--test name`` for targets below ``tests/``; with any
    other file the whole package's tests, for unit tests live in the source. Surefire: class names. Others: paths.
    """
    match parser:
        case "unittest":
            named = [path.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for path in files]
        case "go":
            named = [f"./{posixpath.dirname(path)}".rstrip("/") for path in files]
        case "surefire":
            named = [posixpath.splitext(posixpath.basename(path))[0] for path in files]
        case "cargo":
            targets = [_cargo_target(path) for path in files]
            named = [] if None in targets else [part for one in dict.fromkeys(targets) for part in ("--test", str(one))]
            return named
        case _:
            named = [f"./{path}" if path.startswith("-") else path for path in files]
    return list(dict.fromkeys(named))


def _cargo_target(path: str) -> str | None:
    """The integration test target that a path belongs to: ``tests/name.rs`` or ``tests/name/...``."""
    parts = path.split("/")
    if len(parts) >= 2 and parts[0] == "tests" and (len(parts) > 2 or parts[1].endswith(".rs")):
        return parts[1].removesuffix(".rs")
    return None


def _read(sandbox: Sandbox, report: str) -> tuple[bytes, bool]:
    """The report, and whether it was too large to be read."""
    size = sandbox.exec(f"wc -c <{report}", cwd="/").output.strip()
    if not size.isdigit():
        return b"", False
    if int(size) > REPORT_LIMIT:
        return b"", True
    try:
        return sandbox.read(report), False
    except SandboxFileError:
        return b"", False


def _reporters() -> dict[str, bytes]:
    """Our reporters by file name."""
    folder = resources.files("environments.suites.reporters")
    wanted = (".cjs", ".mjs", "_reporter.py")
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.name.endswith(wanted)}
