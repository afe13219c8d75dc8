"""Which tests `make test-fast` takes, and which cases of a table a seed draws."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import samples
from tests.fast import UNKNOWN, command, plan
from tests.seconds import LONG, by_file, folded
from tests.touched import Sources, distances, reached_tests

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources(ROOT)


@pytest.mark.parametrize(
    ("path", "reaches", "by"),
    [
        ("miner/landing.py", "tests/miner/test_landing.py", "an import"),
        ("chains/cli.py", "tests/test_exit_codes.py", "a command's name as a text"),
        ("trajectories/agents/guidance/observer.py", "tests/trajectories/test_observers.py", "an entry point"),
        ("environments/suites/runners/go.py", "tests/environments/test_testlogs.py", "a catalogue"),
        ("tests/trajectories/demoworld.py", "tests/test_readme_runs.py", "a fixture of conftest.py"),
        ("tests/trajectories/graphkills.py", "tests/trajectories/test_graph_killed.py", "a process that it starts"),
        ("sql/queries/funnel.sql", "tests/sql/test_queries.py", "a file beside modules"),
        ("docs/outcomes.md", "tests/test_outcomes_page.py", "its name"),
        ("Makefile", "tests/test_makefile.py", "its name"),
        ("sql/migrations/versions/m0004_baseline.py", "tests/sql/test_migrate.py", "a package that a module finds"),
        ("miner/gone.py", "tests/miner/test_mine.py", "what is left of its folder"),
        ("tests/conftest.py", "tests/prchain/test_parts.py", "every test has it"),
    ],
)
def test_a_change_reaches_tests(path: str, reaches: str, by: str, sources: Sources) -> None:
    assert reaches in reached_tests([path], sources), by


def test_a_change_reaches_no_test_that_has_nothing_to_do_with_it(sources: Sources) -> None:
    assert "tests/prchain/test_paths.py" not in reached_tests(["miner/landing.py"], sources)
    assert reached_tests(["tests/miner/test_report.py"], sources) == {"tests/miner/test_report.py": 0}


def test_a_test_is_as_far_from_a_change_as_its_imports_are_long() -> None:
    importers = {"a": {"b", "tests.test_a"}, "b": {"tests.test_b", "a"}}
    assert distances(["a"], importers) == {"a": 0, "b": 1, "tests.test_a": 1, "tests.test_b": 2}


def test_near_tests_come_first_long_ones_wait_and_what_is_left_has_its_seconds() -> None:
    measured = {"t/near.py": 1.0, "t/near.py::test_long": 9.0, "t/far.py": 3.0, "t/farther.py": 30.0}
    chosen = plan({"t/far.py": 2, "t/near.py": 1, "t/new.py": 2, "t/farther.py": 3}, measured, 7.0)
    assert chosen.run == ["t/near.py", "t/new.py", "t/far.py"] and chosen.expected == 4.0 + UNKNOWN
    assert chosen.left == {"t/near.py::test_long": 9.0, "t/farther.py": 30.0}
    words = command(chosen, 0.0, ["-k", "x"])
    assert "--leave-out=t/near.py::test_long" in words
    assert words[-5:] == ["-k", "x", *chosen.run]


def test_a_file_of_long_tests_alone_is_run_where_there_is_room() -> None:
    chosen = plan({"t/long.py": 0}, {"t/long.py::test_it": 5.0}, 6.0)
    assert chosen.run == ["t/long.py", "t/long.py::test_it"] and command(chosen, 0.0, [])[-1] == "t/long.py"


def test_seconds_are_kept_by_file_and_by_long_test() -> None:
    kept = folded({"f.py::test_a": 0.2, "f.py::test_b": 0.1, "f.py::test_c": LONG})
    assert kept == {"f.py": 0.3, "f.py::test_c": LONG}
    assert by_file(kept) == {"f.py": pytest.approx(LONG + 0.3)}


def test_a_seed_draws_the_same_rows_again_in_order_and_others_draw_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "ALL", False)
    rows = list(range(30))
    seen: set[int] = set()
    for seed in map(str, range(60)):
        monkeypatch.setattr(samples, "SEED", seed)
        found = samples.drawn(rows, 5, "a table")
        assert found == samples.drawn(rows, 5, "a table") == sorted(found) and len(set(found)) == 5
        seen |= set(found)
    assert seen == set(rows)
    assert 0 < sum(samples.is_drawn(str(row), 8) for row in range(800)) < 200
    monkeypatch.setattr(samples, "ALL", True)
    assert samples.drawn(rows, 5, "a table") == rows and samples.is_drawn("any", 8)


def test_one_in_eight_tests_runs_on_the_second_database_and_all_of_the_store_do() -> None:
    files = ["tests/trajectories/test_rows.py", "tests/sql/test_lock.py"]
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *files]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PRCHAIN_TEST", "PYTEST"))}
    listed = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True).stdout

    def count(file: str, database: str) -> int:
        return sum(line.startswith(file) and f"[{database}" in line for line in listed.splitlines())

    assert count(files[0], "postgres") == -(-count(files[0], "sqlite") // 8) > 0
    assert count(files[1], "postgres") == count(files[1], "sqlite") > 0
