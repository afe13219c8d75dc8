"""What tests of every package share: databases to test on, and what happens where something optional is missing."""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings as hypothesis_settings

from prchain import settings

if TYPE_CHECKING:
    from tests.trajectories.demoworld import Ran

POSTGRES = "PRCHAIN_TEST_POSTGRES"
GITHUB_SCHEMA = "PRCHAIN_GITHUB_SCHEMA"
DOCKER = "PRCHAIN_TEST_DOCKER"
MINI = "PRCHAIN_TEST_MINI"
STRICT = "PRCHAIN_TEST_STRICT"
"""Set where nothing may be skipped: a skipped test fails there."""

RANDOM = "PRCHAIN_TEST_RANDOM"
"""Set to look for new examples; `make test` runs the same ones every time."""

OPTIONAL = {"postgres": POSTGRES, "github_schema": GITHUB_SCHEMA, "docker": DOCKER, "mini": MINI}
"""Marker of a test to the variable that says where the thing is that it needs."""


hypothesis_settings.register_profile("same", derandomize=True, deadline=None)
"""The same examples in every run: what CI says of a commit does not depend on luck, nor on how busy the machine is."""
hypothesis_settings.register_profile("new", deadline=None)
hypothesis_settings.load_profile("new" if os.environ.get(RANDOM) else "same")


def pytest_report_header() -> list[str]:
    missing = {
        POSTGRES: "the tests on PostgreSQL",
        GITHUB_SCHEMA: "the comparison with GitHub's published schema",
        DOCKER: "the tests in containers",
        MINI: "the tests with mini-swe-agent",
    }
    return [f"{name} is not set: {tests} are skipped" for name, tests in missing.items() if not os.environ.get(name)]


def pytest_runtest_setup(item: pytest.Item) -> None:
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


@pytest.fixture(autouse=True)
def _no_settings_of_the_user(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests in containers keep how this machine reaches base images and package indexes."""
    in_containers = request.node.get_closest_marker("docker") is not None
    for name in settings.Settings.model_fields:
        if not (in_containers and name.startswith("environments_")):
            monkeypatch.delenv(settings.variable(name), raising=False)


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """An empty PostgreSQL database (a schema of its own), gone after the test."""
    from sqlalchemy import create_engine, make_url, text

    name = f"test_{uuid.uuid4().hex}"
    server = make_url(os.environ[POSTGRES])
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    yield server.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)
    with engine.connect() as connection:
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database that is empty: SQLite, and PostgreSQL where there is one."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'prchain.db'}"
    url = request.getfixturevalue("postgres_url")
    assert isinstance(url, str)
    return url


@pytest.fixture(scope="session")
def finished_demo(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The demo, run once for every test of a process that looks at it; they leave it as it is."""
    from tests.trajectories.demoworld import run_through

    return run_through(tmp_path_factory.mktemp("demo") / "here")
