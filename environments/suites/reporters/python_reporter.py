"""Runs pytest or unittest and signs what becomes of every test; see `environments.suites.testlogs.events`.

Runs as a script inside a sandbox. Standard input holds one JSON object: ``key`` (hex), ``report`` (path of the log),
``runner`` (pytest or unittest), ``arguments``, ``files`` (those that hold what is run), ``seconds``, which one test may
take, and for pytest ``plugins`` (those that are loaded, by entry point; null: all that are installed) and
``hooks`` (files of the tree that may implement hooks; null: any). The key stands neither in the
environment nor in the command line; who has the rights of this process can find it all the same.

It runs on Python 3.6 and newer, and on pytest 3.0 and newer.
"""

# ruff: noqa: PLC0415  what a runner needs is imported once it is known which one runs

import contextlib
import hashlib
import hmac
import json
import os
import signal
import sys
from typing import Any, Dict, List, Optional, Set, Tuple

_AUTOLOAD = "PYTEST_DISABLE_PLUGIN_AUTOLOAD"
_PLUGINS = "pytest11"
"""The group of entry points that pytest's plugins are in."""
STATUSES = {"passed": "passed", "failed": "failed", "skipped": "skipped"}


class Log:
    """The signed log. Events of a forked child are dropped: it would go on where its parent is."""

    def __init__(self, path: str, key: bytes) -> None:
        self._stream = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        # What code under test may replace later is held here.
        write, mac, dumps, process = os.write, hmac.new, json.dumps, os.getpid
        stream, owner, digest = self._stream, os.getpid(), hashlib.sha256
        count = 0

        def say(event: str, **fields: Any) -> None:
            nonlocal count
            if process() != owner:
                return
            text = dumps({"n": count, "e": event, **fields}).encode()
            count += 1
            write(stream, mac(key, text, digest).hexdigest().encode() + b" " + text + b"\n")

        self.say = say


class TooLong(BaseException):
    """A test took longer than it may; no ``except Exception`` of the code under test catches it."""


class Clock:
    """Interrupts what runs too long in this thread, again and again until it ends.

    It leaves the alarm to code that has a handler of its own for it.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._handler = self._ring
        signal.signal(signal.SIGALRM, self._handler)

    def start(self) -> None:
        """Begin to count."""
        if signal.getsignal(signal.SIGALRM) == self._handler:
            signal.setitimer(signal.ITIMER_REAL, self._seconds, min(self._seconds, 5.0))

    def stop(self) -> None:
        """End to count."""
        if signal.getsignal(signal.SIGALRM) == self._handler:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _ring(self, *_: Any) -> None:
        raise TooLong(f"took longer than {self._seconds:g} s")


def session_plugins(log: Log, files: List[str]) -> Tuple[List[Any], Any]:
    """The plugins that report on a session in one process, and what ends the log.

    What they need is held in cells and not in attributes, which code under test finds more easily. `files` are those of
    the hidden tests: what functions of these stand in for is no cheat.
    """
    import pytest

    say, watched, original = log.say, _watched(), _watched
    failed: Set[Any] = set()
    told: Set[str] = set()
    wired: List[Tuple[Any, Any]] = []
    quiet = (pytest.skip.Exception, pytest.exit.Exception, KeyboardInterrupt)
    own = {code for file in files for code in _code_objects(file)}

    def look() -> None:
        """Say what was replaced in the runner by now, also if it is put back later."""
        now = original()
        for name, code_object in watched.items():
            new = now.get(name)
            if new is not code_object and name not in told and new not in own:
                told.add(name)
                say("tampered", what=name)
        if any(hook.function is not function for hook, function in wired) and "hooks" not in told:
            told.add("hooks")
            say("tampered", what="hooks of the runner")

    def report(result: Any) -> None:
        status = STATUSES.get(result.outcome)
        expected = hasattr(result, "wasxfail")
        place = (result.nodeid, result.when)
        if hasattr(result, "context"):  # a subtest; one that did not fail says nothing of its test
            failed.discard(place)
            if status == "failed":
                say("result", id=result.nodeid, s="failed")
            return
        if place in failed:
            failed.discard(place)  # the test may run again
            if status == "passed" and not expected:
                status = "failed"
                say("overruled", what=result.nodeid)
        if result.when == "call":
            if expected and status in ("passed", "skipped"):
                status = "xpass" if status == "passed" else "xfail"
        elif status == "failed":
            status = "error"
        elif status == "skipped" and expected:
            status = "xfail"
        elif status == "passed":
            return
        if status is not None:  # a rerun's report, for one, is no result
            say("result", id=result.nodeid, s=status)

    class PytestReporter:
        """Says what becomes of every test."""

        def pytest_load_initial_conftests(self) -> None:
            # Installed plugins have been loaded, and may replace what they like; the tree's own code has not.
            watched.update(original())

        @pytest.hookimpl(trylast=True)
        def pytest_configure(self, config: Any) -> None:
            for name in _HOOKS:
                wired.extend((hook, hook.function) for hook in _implementations(getattr(config.hook, name, None)))

        def pytest_itemcollected(self, item: Any) -> None:
            say("collected", id=item.nodeid)

        def pytest_collectreport(self, report: Any) -> None:
            if report.outcome == "failed":
                say("result", id=report.nodeid, s="error")

        def pytest_runtest_logstart(self, nodeid: str) -> None:
            say("begin", id=nodeid)

        def pytest_runtest_logreport(self, report: Any) -> None:
            look()
            told_of(report)

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_makereport(self, item: Any, call: Any) -> Any:
            # What really happened, which every hook may write over in the report.
            if call.excinfo is not None and not call.excinfo.errisinstance(quiet):
                failed.add((item.nodeid, call.when))
            yield

    def finish(code: int) -> None:
        look()
        say("end", exit=code)

    told_of = report
    plugins = [PytestReporter()]
    return plugins, finish


class HookGuard:
    """A pytest plugin: says which plugins and which files of the tree implement hooks, and takes others of the tree out
    again."""

    def __init__(self, log: Log, allowed: Optional[List[str]]) -> None:
        self._say = log.say
        self._allowed = None if allowed is None else {_module_of(path) for path in allowed}
        self._root = os.path.realpath(os.getcwd()) + os.sep

    def pytest_plugin_registered(self, plugin: Any, manager: Any) -> None:
        path = self._of_tree(plugin)
        if path is None:
            return
        if self._allowed is None or _module_of(path) in self._allowed:
            self._say("hook", what=path)
            return
        self._say("refused", what=path)
        manager.unregister(plugin)

    def pytest_configure(self, config: Any) -> None:
        if self._allowed is not None:
            return
        self._say("plugin", what="")  # there may be none
        for plugin, _ in config.pluginmanager.list_plugin_distinfo():
            name = config.pluginmanager.get_name(plugin)
            if name:
                self._say("plugin", what=name)

    def _of_tree(self, plugin: Any) -> Optional[str]:
        """The file of a plugin, relative to the root of the tree; None for what is not of the tree."""
        module = plugin
        if not isinstance(plugin, type(sys)):
            module = sys.modules.get(getattr(plugin, "__module__", "") or "")
        file = os.path.realpath(getattr(module, "__file__", None) or os.sep)
        if not file.startswith(self._root) or "site-packages" in file:
            return None
        return file[len(self._root) :]


def _implementations(hook: Any) -> List[Any]:
    """What implements a hook of pytest; before pluggy 0.7 it stands in two lists, and before pytest 3.0 in none."""
    if hasattr(hook, "get_hookimpls"):
        return list(hook.get_hookimpls())
    return [*getattr(hook, "_nonwrappers", ()), *getattr(hook, "_wrappers", ())]


def _module_of(path: str) -> str:
    """A module's path without what tells a file from a package."""
    package = os.sep + "__init__.py"
    return path[: -len(package if path.endswith(package) else ".py")] if path.endswith(".py") else path


def _code_objects(path: str) -> Set[Any]:
    """The code of all functions in a file, equal to what an interpreter makes of them; a file name says nothing, for
    any code can be given one."""
    found: Set[Any] = set()
    try:
        with open(path, "rb") as file:
            left = [compile(file.read(), os.path.realpath(path), "exec", dont_inherit=True)]
    except (OSError, SyntaxError, ValueError):
        return found
    while left:
        code = left.pop()
        found.add(code)
        left += [it for it in code.co_consts if isinstance(it, type(code))]
    return found


_HOOKS = (
    "pytest_itemcollected",
    "pytest_runtest_protocol",
    "pytest_runtest_setup",
    "pytest_runtest_call",
    "pytest_runtest_teardown",
    "pytest_pyfunc_call",
    "pytest_runtest_makereport",
    "pytest_runtest_logreport",
)
"""Hooks that decide what becomes of a test."""


def _watched() -> Dict[str, Any]:
    """The code of functions that decide on pass or fail, so that a replaced one is noticed."""
    import _pytest.python
    import _pytest.runner

    try:
        from _pytest import reports
    except ImportError:  # before pytest 3.6
        reports = _pytest.runner  # type: ignore[misc]
    call = _pytest.runner.CallInfo
    places = {
        # Before pytest 4.4 and 4.1 what these do stands in makereport and in `CallInfo.__init__`.
        "TestReport.from_item_and_call": _function_of(reports.TestReport, "from_item_and_call"),
        "TestReport.__init__": reports.TestReport.__init__,
        "runner.pytest_runtest_makereport": _pytest.runner.pytest_runtest_makereport,
        "runner.pytest_runtest_call": _pytest.runner.pytest_runtest_call,
        "runner.call_runtest_hook": getattr(_pytest.runner, "call_runtest_hook", None),
        "runner.CallInfo.from_call": _function_of(call, "from_call"),
        "runner.CallInfo.__init__": None if hasattr(call, "from_call") else call.__init__,
        "runner.runtestprotocol": _pytest.runner.runtestprotocol,
        "python.pytest_pyfunc_call": _pytest.python.pytest_pyfunc_call,
        "python.Function.runtest": _pytest.python.Function.runtest,
    }
    return {**{name: getattr(place, "__code__", None) for name, place in places.items()}, **_watched_in_unittest()}


def _function_of(owner: Any, name: str) -> Any:
    """The function behind a class method; None where there is none of that name."""
    return getattr(getattr(owner, name, None), "__func__", None)


def _watched_in_unittest() -> Dict[str, Any]:
    import unittest.case

    case = unittest.case.TestCase
    names = ["run", "fail", "_callTestMethod", "__call__", "__getattribute__", "_baseAssertEqual"]
    names += [
        "_getAssertEqualityFunc",
        "assertEqual",
        "assertTrue",
        "assertFalse",
        "assertIn",
        "assertIs",
        "assertRaises",
    ]
    outcome = getattr(unittest.case, "_Outcome", None)
    executor = getattr(getattr(outcome, "testPartExecutor", None), "__wrapped__", None)
    found = {f"unittest.TestCase.{name}": getattr(getattr(case, name, None), "__code__", None) for name in names}
    return {**found, "unittest.testPartExecutor": getattr(executor, "__code__", None)}


def run_pytest(log: Log, order: Dict[str, Any], clock: Clock) -> int:
    """Run pytest in this process."""
    import pytest

    plugins, finish = session_plugins(log, order["files"])
    autoload = os.environ.get(_AUTOLOAD)
    planted = _digests(order["files"])

    class PhaseLimits:
        """Each phase of a test has the time anew: what goes wrong outside of them would end the session. All tests
        run, in this process, whatever the project's configuration says."""

        def pytest_collection_finish(self) -> None:
            if _digests(order["files"]) != planted:
                log.say("tampered", what="test files")

        @pytest.hookimpl(tryfirst=True)
        def pytest_load_initial_conftests(self) -> None:
            # By now this session has its plugins; what tests start of pytest has the environment's own.
            if autoload is None:
                os.environ.pop(_AUTOLOAD, None)
            else:
                os.environ[_AUTOLOAD] = autoload

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_cmdline_main(self, config: Any) -> Any:
            option = config.option
            option.maxfail = 0
            if hasattr(option, "numprocesses"):  # of pytest-xdist
                option.numprocesses, option.dist, option.tx = None, "no", []
            if hasattr(option, "stepwise"):
                option.stepwise = False
            yield

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_setup(self) -> Any:
            clock.start()
            yield
            clock.stop()

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_call(self) -> Any:
            clock.start()
            yield
            clock.stop()

        @pytest.hookimpl(hookwrapper=True, tryfirst=True)
        def pytest_runtest_teardown(self) -> Any:
            clock.start()
            yield
            clock.stop()

    log.say("start", runner="pytest")
    left_out = _without_path(order["files"])
    for path in left_out:
        log.say("left_out", what=path)
    arguments, known = [it for it in order["arguments"] if it not in left_out], order["plugins"]
    if known is not None and _names_plugins():
        os.environ[_AUTOLOAD] = "1"
        arguments = [*(part for name in known for part in ("-p", name)), *arguments]
        _take_for_entry_points(known)
    elif known is not None:
        _load_only(known)
    code = int(pytest.main(arguments, plugins=[HookGuard(log, order["hooks"]), *plugins, PhaseLimits()]))
    finish(code)
    return code


def _names_plugins() -> bool:
    """Whether ``-p`` takes the name of an entry point; before pytest 4.4 it imports a module of that name: of
    pytest-socket, whose entry point is ``socket``, the standard library's."""
    from _pytest.config import PytestPluginManager

    return "consider_entry_points" in PytestPluginManager.import_plugin.__code__.co_varnames


def _take_for_entry_points(known: List[str]) -> None:
    """Have pytest take no module for the plugin of that name: pytest-asyncio's entry point is ``asyncio``, and of the
    standard library's module, which is loaded, pytest warns that its assertions cannot be rewritten, which ends a
    session whose settings make errors of warnings."""
    from _pytest.assertion.rewrite import AssertionRewritingHook

    mark = AssertionRewritingHook.mark_rewrite

    def mark_others(self: Any, *names: str) -> None:
        mark(self, *(name for name in names if name not in known or name not in sys.modules))

    AssertionRewritingHook.mark_rewrite = mark_others  # type: ignore[method-assign]


def _load_only(known: List[str]) -> None:
    """Have a pytest that loads all installed plugins by itself load only those of these names."""
    from _pytest.config import PytestPluginManager

    load = PytestPluginManager.load_setuptools_entrypoints

    def load_known(self: Any, *names: Any, **named: Any) -> Any:
        for name in _entry_points():
            if name not in known:
                self.set_blocked(name)
        return load(self, *names, **named)

    PytestPluginManager.load_setuptools_entrypoints = load_known  # type: ignore[method-assign]


def _entry_points() -> Set[str]:
    """The names of all plugins that metadata tell of, by whichever library pytest reads it."""
    found: Set[str] = set()
    packages: List[Any] = []
    with contextlib.suppress(ImportError):
        from importlib.metadata import distributions

        packages += distributions()
    with contextlib.suppress(ImportError):
        from importlib_metadata import distributions as installed

        packages += installed()
    with contextlib.suppress(ImportError):
        import pkg_resources

        found.update(point.name for point in pkg_resources.iter_entry_points(_PLUGINS))
    found.update(point.name for package in packages for point in package.entry_points if point.group == _PLUGINS)
    return found


def _without_path(files: List[str]) -> List[str]:
    """Have pytest take names of files for paths that hold what marks a part of a file in its node ids (``[``, ``::``).
    Those that are not there, or that it cannot be given, for it would run none of the others."""
    import _pytest.main

    gone = [path for path in files if not os.path.exists(path)]
    odd = [path for path in files if ("[" in path or "::" in path) and path not in gone]
    resolve = getattr(_pytest.main, "resolve_collection_argument", None)
    if resolve is None:  # pytest 5 and older, which have brackets in paths
        return [*gone, *(path for path in odd if "::" in path)]
    if odd:

        def resolved(invocation_path: Any, arg: str, *more: Any, **named: Any) -> Any:
            if arg not in odd:
                return resolve(invocation_path, arg, *more, **named)
            # As the file's folder, whose name may be as odd, down from one that there is.
            found = resolve(invocation_path, os.curdir, *more, **{**named, "as_pypath": False})
            if isinstance(found, tuple):
                return (found[0] / arg, [])
            import dataclasses  # which Python 3.6 lacks, and pytest before 8 does without

            return dataclasses.replace(found, path=found.path / arg)

        _pytest.main.resolve_collection_argument = resolved
    return gone


def _digests(paths: List[str]) -> List[str]:
    """What stands in the files."""
    found = []
    for path in paths:
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found.append(hashlib.sha256(file.read()).hexdigest())
    return found


def run_unittest(log: Log, order: Dict[str, Any], clock: Clock) -> int:
    """Run the modules of these names with unittest in this process."""
    import unittest

    class SignedResult(unittest.TextTestResult):
        def startTest(self, test: Any) -> None:  # noqa: N802  the names are unittest's
            log.say("begin", id=test.id())
            super().startTest(test)
            clock.start()

        def stopTest(self, test: Any) -> None:  # noqa: N802
            clock.stop()
            super().stopTest(test)

        def _say(self, test: Any, status: str) -> None:
            log.say("result", id=test.id(), s=status)

        def addSuccess(self, test: Any) -> None:  # noqa: N802
            self._say(test, "passed")
            super().addSuccess(test)

        def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
            self._say(test, "failed")
            super().addFailure(test, err)

        def addError(self, test: Any, err: Any) -> None:  # noqa: N802
            self._say(test, "error")
            super().addError(test, err)

        def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
            self._say(test, "skipped")
            super().addSkip(test, reason)

        def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
            self._say(test, "xfail")
            super().addExpectedFailure(test, err)

        def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
            self._say(test, "xpass")
            super().addUnexpectedSuccess(test)

        def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
            if err is not None:
                self._say(test, "failed" if issubclass(err[0], test.failureException) else "error")
            super().addSubTest(test, subtest, err)

    log.say("start", runner="unittest")
    watched = _watched_in_unittest()
    suite = unittest.TestSuite(_loaded(name) for name in order["arguments"])
    pending = [suite]
    while pending:
        for test in pending.pop():
            if isinstance(test, unittest.TestSuite):
                pending.append(test)
            else:
                log.say("collected", id=test.id())
    kind: Any = SignedResult  # its stream is of a type that older Pythons lack
    result = unittest.TextTestRunner(resultclass=kind, verbosity=2).run(suite)
    code = 0 if result.wasSuccessful() else 1
    now = _watched_in_unittest()
    for name, code_object in watched.items():
        if now[name] is not code_object:
            log.say("tampered", what=name)
    log.say("end", exit=code)
    return code


def _loaded(name: str) -> Any:
    """The tests of a module; for one that cannot be imported, whatever it raises, a test that fails under its name: the
    loader of unittest knows of `ImportError` alone, and lets others end the run."""
    import unittest

    try:
        return unittest.defaultTestLoader.loadTestsFromName(name)
    except (Exception, SystemExit) as error:  # what the module raises can be anything
        reason = error

        def failed(self: Any) -> None:
            raise reason

        # As unittest calls modules that lack something that they import.
        case = type("_FailedTest", (unittest.TestCase,), {"__module__": "unittest.loader", name: failed})
        return case(name)


def _load_runner() -> None:
    """Import pytest and its own plugins, with what they need of the standard library: the tree could put modules in
    their way."""
    import pdb  # noqa: F401  pytest imports it later

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401

    from _pytest.config import get_config

    get_config()


def main() -> int:
    """Read the order from standard input, close it, and run the tests from the working directory."""
    order = json.loads(sys.stdin.buffer.read())
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    log = Log(order.pop("report"), bytes.fromhex(order.pop("key")))
    run = run_unittest if order["runner"] == "unittest" else run_pytest
    import unittest.case  # noqa: F401  as pytest, before the tree can put a module of that name in its way

    if run is run_pytest:
        _load_runner()
    sys.path[0] = os.getcwd()  # as `python -m pytest` has it, in place of the folder of this script
    return run(log, order, Clock(order["seconds"]))


if __name__ == "__main__":
    sys.exit(main())
