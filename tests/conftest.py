"""Shared by the tests of every package: databases, and what happens where something optional is missing."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import hashlib
import importlib
import os
import pickle
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings as hypothesis_settings

from prchain.core import settings
from tests import samples, seconds
from tests.samples import drawn

if TYPE_CHECKING:
    from sqlalchemy import URL

    from tests.trajectories.demoworld import Ran

POSTGRES = "PRCHAIN_TEST_POSTGRES"
GITHUB_SCHEMA = "PRCHAIN_GITHUB_SCHEMA"
DOCKER = "PRCHAIN_TEST_DOCKER"
MINI = "PRCHAIN_TEST_MINI"
BROWSER = "PRCHAIN_TEST_BROWSER"
STRICT = "PRCHAIN_TEST_STRICT"
"""Set where nothing may be skipped: then a skipped test fails."""

RANDOM = "PRCHAIN_TEST_RANDOM"
"""Set to look for new examples; without it every run has the same ones."""

LONG_RUN = 60.0
"""Seconds of tests from which a run says which files were slowest."""

SLOW = 8.0
"""Seconds of a test that no process begins with when the others are about to end."""

ON_POSTGRES = 8
"""Outside of `tests/sql`, of so many tests that run on either database one runs on PostgreSQL, too."""

OURS_ALONE = {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
"""Variables for the run of these tests only, not for the processes that they start."""

OPTIONAL = {"postgres": POSTGRES, "github_schema": GITHUB_SCHEMA, "docker": DOCKER, "mini": MINI, "browser": BROWSER}
"""Marker of a test to the variable that says where its requirement is."""


EXAMPLES = 100 if samples.ALL else 40
"""Of a property that does not say itself how many it needs."""

hypothesis_settings.register_profile("same", derandomize=True, deadline=None, max_examples=EXAMPLES)
"""The same examples in every run: the result of CI does not depend on luck, nor on how busy the machine is."""
hypothesis_settings.register_profile("new", deadline=None)
hypothesis_settings.register_profile("fast", hypothesis_settings.get_profile("same"), max_examples=25)
"""The first of the same examples, for `make test-fast`."""
hypothesis_settings.load_profile("new" if os.environ.get(RANDOM) else "same")


pytest.register_assert_rewrite("tests.environments.conformance")


def pytest_report_header() -> list[str]:
    missing = {
        POSTGRES: "the tests on PostgreSQL",
        GITHUB_SCHEMA: "the comparison with GitHub's published schema",
        DOCKER: "the tests in containers",
        MINI: "the tests with mini-swe-agent",
        BROWSER: "the tests in a browser",
    }
    walked = "walked whole" if samples.ALL else f"drawn from: PRCHAIN_TEST_SEED={samples.SEED} draws the same again"
    return [
        f"tables of kills and faults are {walked}",
        *(f"{name} is not set: {tests} are skipped" for name, tests in missing.items() if not os.environ.get(name)),
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--measure", action="store_true", help=f"write into {seconds.FILE.name} what the tests run take")
    parser.addoption("--until", type=float, help="seconds since 1970: skip tests that have not begun by then")
    parser.addoption("--leave-out", action="append", default=[], help="a test, by its id without parameters")


def pytest_configure(config: pytest.Config) -> None:
    # Under xdist the controller gets the reports of all tests.
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Measured(config.getoption("--measure")))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left = set(config.getoption("--leave-out"))
    tables: dict[tuple[str, int], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if seconds.function_of(item.nodeid) not in left and not _waits(item):
            tables[_table(item)].append(item)
    run = {it for (table, one_in), cases in tables.items() for it in drawn(cases, -(-len(cases) // one_in), table)}
    config.hook.pytest_deselected(items=[item for item in items if item not in run])
    items[:] = _demo_ahead([item for item in items if item in run])


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each of xdist's workers be the first to import a share of the test files.

    All of them import all files, and where nothing is compiled yet each would compile all of them, with pytest's own
    rewriting of the asserts: half a minute of a core. So each finds what the others have compiled.
    """
    worker, workers = (os.environ.get(f"PYTEST_XDIST_{name}", "") for name in ("WORKER", "WORKER_COUNT"))
    if not workers or session.config.args_source is not pytest.Config.ArgsSource.TESTPATHS:
        return
    files = sorted(session.config.rootpath.glob("tests/**/test_*.py"))
    for file in files[int(worker.removeprefix("gw")) :: int(workers)]:
        with contextlib.suppress(ImportError, SyntaxError):  # collecting it says why
            importlib.import_module(".".join(file.relative_to(session.config.rootpath).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Let the garbage collector look at what tests make, not at the modules and the tests again and again: a tenth of a
    run's processor time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _demo_ahead(items: list[pytest.Item]) -> list[pytest.Item]:
    """The first test that needs the finished demo at the head, the others at the end: while one process runs the demo,
    a minute and more, no other one waits for it. Of those the slow ones first, so that all processes end together."""
    needing = [item for item in items if _needs_demo(item)]
    others = [item for item in items if not _needs_demo(item)]
    took = seconds.read()
    slow = [item for item in needing[1:] if took.get(item.nodeid, 0.0) > SLOW]
    return [*needing[:1], *others, *slow, *(item for item in needing[1:] if item not in slow)]


def _needs_demo(item: pytest.Item) -> bool:
    return "finished_demo" in getattr(item, "fixturenames", ())


def _waits(item: pytest.Item) -> bool:
    return not samples.ALL and item.get_closest_marker("whole") is not None


def _table(item: pytest.Item) -> tuple[str, int]:
    """The table of which a test is a case, and of how many of its cases one is run."""
    if _is_second_database(item):
        file, _, _ = item.nodeid.partition("::")
        return f"{file} on PostgreSQL", ON_POSTGRES
    marker = item.get_closest_marker("drawn")
    one_in, *shared = marker.args if marker else (1,)
    return shared[0] if shared else seconds.function_of(item.nodeid), one_in


def _is_second_database(item: pytest.Item) -> bool:
    """Whether a test runs on PostgreSQL that runs on SQLite, too, and whose subject is not the store."""
    callspec = getattr(item, "callspec", None)
    on = callspec.params.get("database_kind") if callspec else None
    return on == "postgres" and Path("tests/sql") not in item.path.relative_to(item.config.rootpath).parents


class Measured:
    """Adds up the seconds of tests, and tells of a long run which files took longest."""

    def __init__(self, kept: bool) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.kept = kept
        """Whether they are written into `tests/seconds.txt`."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[seconds.function_of(report.nodeid)] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if sum(self.seconds.values()) > LONG_RUN:
            terminalreporter.section("twenty slowest files, seconds of one process")
            for line in seconds.slowest(self.seconds, 20):
                terminalreporter.write_line(line)
        if self.kept:
            seconds.write(self.seconds)


def pytest_runtest_setup(item: pytest.Item) -> None:
    until = item.config.getoption("--until")
    if until is not None and time.time() > until:
        pytest.skip("there was no time left")
    for marker, name in OPTIONAL.items():
        if item.get_closest_marker(marker) and not os.environ.get(name):
            pytest.skip(f"{name} is not set")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get(STRICT) and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", f"skipped, but {STRICT} is set: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if os.environ.get(STRICT) and report.skipped:
        report.outcome, report.longrepr = "failed", f"skipped, but {STRICT} is set: {report.longrepr}"
    return report


@pytest.fixture(scope="session", autouse=True)
def _no_options_of_the_users_pytest() -> Iterator[None]:
    """Tests may start pytest itself, without the options of this run."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ.keys() & OURS_ALONE:
            patch.delenv(name)
        yield


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests in containers keep the settings by which this machine reaches base images and package indexes."""
    in_containers = request.node.get_closest_marker("docker") is not None
    for name in settings.Settings.model_fields:
        if not (in_containers and name.startswith("environments_")):
            monkeypatch.delenv(settings.variable(name), raising=False)


@pytest.fixture
def bare_postgres_url() -> Iterator[str]:
    """A PostgreSQL database without tables (a schema of its own), gone after the test."""
    with on_the_server() as (server, do):
        name = f"test_{uuid.uuid4().hex}"
        do(f"CREATE SCHEMA {name}")
        yield server.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)
        do(f"DROP SCHEMA {name} CASCADE")


@pytest.fixture(scope="session")
def migrated_postgres() -> Iterator[str]:
    """The name of a PostgreSQL database that has tables and no rows, to be copied: that takes a fifth of migrations."""
    from sql.store import Store

    with on_the_server() as (server, do):
        name = f"test_{uuid.uuid4().hex}"
        do(f"CREATE DATABASE {name}")
        Store.open(server.set(database=name).render_as_string(hide_password=False)).close()
        yield name
        do(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def postgres_url(migrated_postgres: str) -> Iterator[str]:
    """A PostgreSQL database that has no rows, gone after the test."""
    with on_the_server() as (server, do):
        name = f"test_{uuid.uuid4().hex}"
        do(f"CREATE DATABASE {name} TEMPLATE {migrated_postgres}")
        yield server.set(database=name).render_as_string(hide_password=False)
        do(f"DROP DATABASE {name} WITH (FORCE)")


@contextlib.contextmanager
def on_the_server() -> Iterator[tuple[URL, Callable[[str], None]]]:
    """The URL of the PostgreSQL server, and what has it do something."""
    from sqlalchemy import create_engine, make_url, text

    server = make_url(os.environ[POSTGRES])
    engine = create_engine(server, isolation_level="AUTOCOMMIT")

    def do(statement: str) -> None:
        with engine.connect() as connection:
            connection.execute(text(statement))

    try:
        yield server, do
    finally:
        engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_kind(request: pytest.FixtureRequest) -> str:
    """SQLite, and PostgreSQL where there is one."""
    kind: str = request.param
    return kind


@pytest.fixture
def bare_database_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that has no tables yet, on SQLite and on PostgreSQL."""
    if database_kind == "sqlite":
        return f"sqlite:///{tmp_path / 'prchain.db'}"
    url: str = request.getfixturevalue("bare_postgres_url")
    return url


@pytest.fixture
def database_url(database_kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that has no rows, on SQLite and on PostgreSQL."""
    from tests.databases import new_database

    if database_kind == "sqlite":
        return f"sqlite:///{new_database(tmp_path / 'prchain.db')}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """The demo, run once for the tests of all processes; they must not change it, not even for a moment."""
    from tests.trajectories.demoworld import pack, run_through

    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
    kept = shared / "finished-demo"
    with (shared / "finished-demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            made = run_through(tmp_path_factory.mktemp("demo") / "here")
            pack(made.folder)
            kept.write_bytes(pickle.dumps(made))
    ran: Ran = pickle.loads(kept.read_bytes())
    before = _written(ran.folder)
    yield ran
    assert _written(ran.folder) == before, "a test wrote into the demo that all tests share; take a copy of it"


def _written(folder: Path) -> dict[str, str]:
    """What the files of a demo hold, without those that come and go with the readers of a database."""
    files = (it for it in folder.iterdir() if it.is_file() and not it.name.endswith(("-wal", "-shm", ".lock")))
    return {it.name: hashlib.sha256(it.read_bytes()).hexdigest() for it in files}


@pytest.fixture(scope="session")
def bubblewrap() -> None:
    """For tests that run commands in local sandboxes."""
    from tests.environments.stageworld import bubblewrap_works

    if not bubblewrap_works():
        pytest.skip("bubblewrap is missing, or may not make namespaces")
