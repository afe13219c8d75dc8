"""Running a stage's tests in a sandbox, so that the code under test cannot say itself how they ended.

For Python and JavaScript the results come from a reporter of ours (`environments/suites/reporters`): a file outside the
tree, in a folder with a random name made for this run, which signs each result with a key that it takes from its
standard input before code of the tree runs. Nothing that a test prints is read. Closed by this: printed summaries,
forged, truncated or replayed reports, ``os._exit(0)`` and crashes (a test that began and did not end is an error, one
that never began is missing), wrong exit codes, a hook that turns a failure into a pass (the failure stands, and a note
says so), replaced functions of the runner (nothing passed), hooks of other files of the tree than M_t's, a module of
the tree that has the runner's name, and plugins or options in the environment. What steers a runner in files comes from
M_t (`environments.checkouts.overlay`).

Not closed, because tests and the code under test share a process: code that searches the memory of that process for the
key (or, with jest and vitest, speaks the private protocol between worker and parent), and code that makes assertions
true, as an object that equals everything does. Canaries catch both where the code does not know which tests are hidden
(`environments.suites.canaries`). Go, Cargo and Maven have a parent of ours that signs what they print and their exit
code, and ends tests that take too long; but that text is what the test binary prints. Results that contradict
themselves, the counts or the exit code are distrusted.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import ClassVar

from environments.sandboxes.sandbox import ExecResult, Sandbox
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.canary import Canary, CanaryKind, CanaryResults
from environments.suites.canaries.masks import TOLD_LIMIT
from environments.suites.runner import Runner, TestCommand
from environments.suites.runners import RUNNERS
from environments.suites.testlogs import EventLog, Status, failures, join, read_events
from prchain.core.errors import RunnerMissing, SandboxFileError
from prchain.core.git.output import name_text

REPORT_LIMIT = 64 << 20
"""Bytes of a report that are read; 100,000 tests of pytest sign about 40 MB."""


TEST_SECONDS = 180.0
"""What one test may take before it fails. Without the network, one that waits for a server would use up the time of the
whole run (celery's take nine minutes); runners on Node have limits of seconds by themselves."""

_ENDED = (0, 1)
"""Exit codes of runners that ran all tests (pytest's reference, "Exit codes"; others have no more)."""

_ENVIRONMENT = {
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "CI": "1",
    "TZ": "UTC",
    "CARGO_TERM_COLOR": "never",
}


_WITH_MASKS = {"RUST_TEST_THREADS": "2"}
"""Masks know a macro's test by its thread, and old harnesses give tests none of their own where they run one at a
time (seen with Rust 1.65)."""

LEFT_OUT = "left out: "
"""Begins those of `TestRun.notes` that name a file, folder or target that the runner cannot be given."""


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
    """Signs that somebody meddled: foreign lines, gaps, tampered parts of the runner, distrusted passes. And what was
    left out."""
    observed: RunnerBaseline = field(default_factory=RunnerBaseline)
    """What was loaded and replaced in the runner."""
    cheats: tuple[str, ...] = ()
    """Why the run is not believed, each a line: a canary that passes, a function of the runner that was replaced."""
    copied: tuple[str, ...] = ()
    """The tests whose canary passes (`environments.suites.canaries.canary.CanaryResults.copied`), sorted."""
    settled: bool = False
    """A duel has shown that a test fails: no other run of the tree changes that."""
    told: str = ""
    """What masks told (`environments.suites.canaries.masks.told`)."""
    taken_back: tuple[str, ...] = ()
    """What the tree's own changes do not count (`environments.checkouts.overlay.Overlay.taken_back`)."""
    __test__: ClassVar[bool] = False  # no class of tests, whatever pytest thinks of its name

    @property
    def usable(self) -> bool:
        """Whether tests may be classified by this run: one that was out of time or memory tells only of the machine."""
        return self.infra is None and not self.timed_out

    @property
    def left_out(self) -> tuple[str, ...]:
        """The files, folders and targets that the runner cannot be given."""
        return tuple(note.removeprefix(LEFT_OUT) for note in self.notes if note.startswith(LEFT_OUT))


RUNNER_MISSING = RunnerMissing("").name
"""`TestRun.infra` of a run whose runner did not start."""


def run_tests(
    sandbox: Sandbox,
    command: TestCommand,
    files: Sequence[str],
    *,
    timeout: float,
    workdir: str | None = None,
    baseline: RunnerBaseline | None = None,
    canaries: Sequence[Canary] = (),
    named: Sequence[str] = (),
    masked: str = "",
) -> TestRun:
    """Run the tests of these files (paths from the tree's root) once; `timeout` in seconds, for all of them. With
    `named`, what the runner has for some tests of the files (`Runner.named`), these are run alone. `masked` is the
    report of masks that stand in the files, in a folder made for it; what cannot be read of it has told nothing.

    `canaries` stand in the files (`environments.suites.canaries`). Where one of them passes that has to fail or to be
    skipped, or where a function of the runner was replaced, somebody cheats: no test passed, each pass is an error, and
    `TestRun.cheats` says why. What the reference does itself is given as its `baseline` (`TestRun.observed` of a run on
    M_t) and left alone; without one, the runner loads what it finds, and canaries say nothing.

    Raises what the sandbox raises (`SandboxError`): the engine's failures are no result. Without files nothing is run.
    Files that the runner cannot be given are left out, and named in `TestRun.notes`.
    """
    runner = RUNNERS[command.runner]
    left_out = runner.left_out(files)
    files = [path for path in files if path not in left_out]
    lost = [LEFT_OUT + path for path in left_out]
    if not files:
        return TestRun({}, "", 0.0, 0, notes=tuple(lost))
    known = baseline or RunnerBaseline()
    key = secrets.token_bytes(32)
    if masked:
        sandbox.write(masked, b"")
    more = _WITH_MASKS if masked else {}
    command = replace(command, environment={**more, **command.environment})
    ran, log, unread = _start(sandbox, command, files, named, known, key, timeout=timeout, workdir=workdir)
    words = _read(sandbox, masked, TOLD_LIMIT)[0].decode("utf-8", "replace") if masked else ""
    told = _signed(runner, log, key, ran, known) if command.signed else _printed(runner, log, ran)
    trusted = command.signed and runner.reports
    if not trusted:
        told.statuses, doubts = distrust(told.statuses, told.exit_code)
        told.notes += doubts
    lost += told.left_out
    results = CanaryResults(canaries, told.statuses, runner.name_of, lambda test: runner.file_of(test, files))
    # What the runner refused to be given in this tree holds none that could fail.
    not_run = {path for path in files if LEFT_OUT + " ".join(runner.given([path])) in lost}
    asked = [canary for canary in canaries if canary.file not in not_run]
    cheats = (*told.cheats, *_cheats(results, asked, known, told.exit_code, command.signed, trusted))
    infra = ran.limit if ran.limit == "out_of_memory" else unread if unread == _TOO_LARGE else None
    if unread and not (told.started or infra):
        told.notes.append(f"no report: {unread}")
    return TestRun(
        _doubted(results.others) if cheats else results.others,
        ran.text[-8000:],
        ran.seconds,
        ran.exit_code,
        ran.timed_out,
        told.exit_code is not None,
        infra or (None if told.started else RUNNER_MISSING),
        (*lost, *told.notes),
        told.observed.with_canaries(results.fit()),
        cheats,
        tuple(sorted(set(results.copied(known.slots)))),
        told=words,
    )


def _start(
    sandbox: Sandbox,
    command: TestCommand,
    files: Sequence[str],
    named: Sequence[str],
    known: RunnerBaseline,
    key: bytes,
    *,
    timeout: float,
    workdir: str | None,
) -> tuple[ExecResult, bytes, str]:
    """Run the command, with our reporters beside it: how that ended, the report, and why there is none to read."""
    runner = RUNNERS[command.runner]
    tools = f"/tmp/.{secrets.token_hex(12)}"
    report = f"{tools}/{secrets.token_hex(8)}"
    for name, content in reporters(command.template).items():
        sandbox.write(f"{tools}/{name}", content)
    given = runner.given(files)
    order = {
        "key": key.hex(),
        "report": report,
        "runner": runner.name,
        "seconds": TEST_SECONDS,
        "plugins": known.plugins,
        "hooks": known.hooks,
        "arguments": [
            *(argument.replace("{tools}", tools) for argument in command.arguments),
            *(named or given),
        ],
        "files": given,
    }
    ran = sandbox.exec(
        _filled(command.template, files=runner.files_text(files), tools=tools, report=report),
        timeout=timeout,
        cwd=workdir or sandbox.config.workdir,
        environment={**_ENVIRONMENT, **command.environment},
        output_limit=1 << 16,
        stdin=json.dumps(order).encode() if command.signed else b"",
    )
    log, unread = _read(sandbox, report)
    sandbox.exec(f"rm -rf {tools}", cwd="/")
    return ran, log, unread.replace(report, "")


@dataclass(slots=True)
class _Told:
    """What a report tells, before it is held against the exit code and canaries."""

    statuses: dict[str, Status]
    exit_code: int | None
    """The runner's own; None where it did not come to its end."""
    started: bool
    notes: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    cheats: list[str] = field(default_factory=list)
    observed: RunnerBaseline = field(default_factory=RunnerBaseline)


def _signed(runner: Runner, log: bytes, key: bytes, ran: ExecResult, known: RunnerBaseline) -> _Told:
    """What our reporter signed."""
    events = read_events(log, key, timed_out=ran.timed_out)
    # What a proof of before did not look for may be the project's own.
    asked = known.watched or not events.watched
    signs = (
        ("overruled: {}", events.overruled),
        ("refused a hook of the tree: {}", events.refused),
        (f"took longer than {TEST_SECONDS:g} s: {{}}", [test for _, test in events.overtime]),
        ("{} foreign lines in the report", [events.foreign] if events.foreign else []),
        ("events are missing", [None] if events.gap else []),
    )
    return _Told(
        dict(events.statuses) if runner.reports else printed_statuses(runner, events),
        events.exit_code,
        events.started or ran.timed_out,
        notes=[words.format(what) for words, found in signs for what in found],
        left_out=[LEFT_OUT + name_text(what) for what in events.left_out],
        cheats=[f"replaced in the runner: {what}" for what in events.tampered if asked and what not in known.replaced],
        observed=RunnerBaseline(events.tampered, events.plugins, events.hooks, watched=events.watched),
    )


def _printed(runner: Runner, log: bytes, ran: ExecResult) -> _Told:
    """What the runner itself wrote."""
    statuses = runner.parse(log.decode("utf-8", "replace"))
    return _Told(statuses, ran.exit_code, started=bool(statuses) or ran.exit_code not in {126, 127})


def _cheats(
    results: CanaryResults,
    asked: Sequence[Canary],
    known: RunnerBaseline,
    exit_code: int | None,
    signed: bool,
    trusted: bool,
) -> Iterator[str]:
    """Why canaries say that somebody cheats, of those that the reference bears out; `asked` were run."""
    expected = set(known.slots)
    yield from (f"a test that must not pass passes: {slot}" for slot in sorted(results.passed()) if slot in expected)
    failing = (CanaryKind.FAIL, CanaryKind.ARGUMENT)
    must_fail = any(it.kind in failing and it.slot in expected for it in asked)
    if must_fail and not trusted and exit_code == 0:
        yield "exit code 0 although a test must fail"
    if signed:
        gone = sorted(results.gone(ended=exit_code in _ENDED))
        yield from (f"a test that was planted is gone: {slot}" for slot in gone if slot in expected)


def printed_statuses(runner: Runner, events: EventLog) -> dict[str, Status]:
    """What a runner's output says, signed by its parent, with the tests that took too long, in the log's own ids. Each
    file that it wrote is read by itself: what one holds says nothing of another."""
    texts = events.files or (events.printed,)
    statuses = join(report for text in texts for report in runner.parse(text).items())
    for printed, late in events.overtime:
        for test in runner.parse(printed):
            if test == late or test.endswith(f" {late}") or test == late.replace(" ", "."):
                statuses[test] = Status.timed_out
    return statuses


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


_TOO_LARGE = "report_too_large"


def _read(sandbox: Sandbox, report: str, most: int = REPORT_LIMIT) -> tuple[bytes, str]:
    """The report of `most` bytes, and why it cannot be read: what was said, or that it is too large."""
    # What tests put in its place, such as a pipe that nobody writes to, is waited for by no one.
    counted = sandbox.exec(f"test ! -e {report} -o -f {report} && wc -c <{report}", cwd="/")
    size = counted.output.strip()
    if not size.isdigit():
        return b"", " ".join(counted.text.split())[:200] or f"wc ended with {counted.exit_code}"
    if int(size) > most:
        return b"", _TOO_LARGE
    try:
        return sandbox.read(report), "" if int(size) else "it is empty"
    except SandboxFileError as error:
        return b"", str(error)[:200]


_BESIDE = {
    "parent_reporter.py": ("parent_kinds.py", "python_reporter.py"),
    "mocha_reporter.cjs": ("signed_log.cjs", "watched.cjs"),
    **dict.fromkeys(("jest_reporter.cjs", "node_reporter.cjs", "vitest_reporter.mjs"), ("signed_log.cjs",)),
}
"""Reporter to the files that it loads from its own folder."""


def reporters(template: str) -> dict[str, bytes]:
    """By file name those of our reporters that a command needs (each is a command in the sandbox): those that its
    template names and what they load; all of them where it names none."""
    folder = resources.files("environments.suites.reporters")
    files = {path.name: path for path in folder.iterdir() if path.is_file() and not path.name.startswith("__")}
    named = [name for name in files if f"{{tools}}/{name}" in template] or list(files)
    wanted = dict.fromkeys(it for name in named for it in (name, *_BESIDE.get(name, ())))
    return {name: files[name].read_bytes() for name in wanted}
