"""Whole runs of `prchain mine` with the git source: what is stored, what a rerun does, what a kill leaves."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from miner import git_reading, git_rows
from miner.git_rows import PullRequestSelection
from miner.mine import MineOptions, Miner, RepositoryReport
from miner.repositories import parse_entry
from prchain.core.console.progress import open_progress
from prchain.core.errors import StoreUnavailable
from prchain.core.git import path_text, process
from sql.tables import (
    Base,
    Citation,
    Commit,
    Landing,
    LandingFile,
    MineRun,
    PullRequest,
    PullRequestCommit,
    RefusedClaim,
    Repository,
)
from tests.databases import store_at
from tests.miner.gitworld import EXECUTABLE, SUBMODULE, World, git, lines
from tests.samples import ALL, SEED

FACTS: tuple[type[Base], ...] = (
    Repository,
    PullRequest,
    Commit,
    PullRequestCommit,
    Landing,
    LandingFile,
    RefusedClaim,
    Citation,
)


ROOT = Path(git_reading.__file__).parents[1]


def build(path: Path, count: int = 12, *, name: str = "r") -> World:
    """A repository with landings of every style, an open pull request, a refused claim and a citation."""
    world = World(path / f"{name}.git")
    world.commit("main", {f"src/{n}.py": lines(name, n) for n in range(count)}, "start")
    world.branch("v1", "main")
    for number in range(1, count + 1):
        base = "v1" if number % 6 == 5 else None
        head = world.propose(
            number,
            {f"src/{number - 1}.py": lines(name, number, "new")},
            {f"new/{number}.bin": b"\0%d" % number},
            base=base,
        )
        world.commit("main", {"pushed": f"{number}"}, f"push {number}")
        if number % 6 == 0:
            continue
        if number % 6 == 5:
            world.squash("v1", head, f"Fix {number} (#{number})")
        elif number % 6 == 1:
            world.merge("main", head, f"Merge pull request #{number} from bob/x\n\nFollow-up to #{max(1, number - 1)}")
        elif number % 6 == 2:
            world.rebase("main", head)
        else:
            world.squash("main", head, f"Fix {number} (#{number})\n\nFollow-up to #{number - 1}")
    world.commit("main", {"trac": "x"}, "Old ticket (#4711)")
    world.save()
    return world


class Lab:
    """A database, a new one unless it is there, and the runs over it."""

    def __init__(self, folder: Path, name: str = "prchain.db") -> None:
        self.folder = folder
        self.store = store_at(folder / name)

    def mine(self, source: World | str, *, name: str = "o/r", **options: Any) -> RepositoryReport:
        """Mine one repository and return its report."""
        place = source if isinstance(source, str) else str(source.path)
        spec = parse_entry(f"{name} = {place}", "github.com", self.folder)
        with open_progress(stream=io.StringIO(), secrets=()) as progress:
            miner = Miner(
                self.store,
                MineOptions(source="git", **options),
                mirrors=self.folder / "mirrors",
                progress=progress,
            )
            return miner.mine(spec)

    def rows(self, table: type[Base], *columns: str) -> list[tuple[Any, ...]]:
        """Some columns of every row."""
        with self.store.reading() as tx:
            return [tuple(row) for row in tx.rows(table, *columns)]

    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every fact by natural key, without surrogate ids and places on this machine."""
        found = {}
        names = {i: f"{owner}/{name}" for i, owner, name in self.rows(Repository, "id", "owner", "name")}
        for table in FACTS:
            columns = [c.name for c in table.__table__.columns if c.name not in {"id", "repository_id", "location"}]
            keyed = [] if table is Repository else ["repository_id"]
            rows = [(names[row[0]], *row[1:]) if keyed else row for row in self.rows(table, *keyed, *columns)]
            found[table.__tablename__] = sorted(rows, key=repr)
        return found


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    created = Lab(tmp_path)
    yield created
    created.store.close()


@contextmanager
def another(folder: Path) -> Iterator[Lab]:
    """A second, empty database."""
    created = Lab(folder, f"other-{len(list(folder.glob('other-*.db')))}.db")
    yield created
    created.store.close()


def fresh(folder: Path, world: World, **options: Any) -> dict[str, list[tuple[Any, ...]]]:
    """The facts of a single run over the world as it is now."""
    with another(folder) as lab:
        assert lab.mine(world, **options).error is None
        return lab.facts()


class TestRerun:
    def test_nothing_new_is_unchanged_and_writes_no_fact(self, lab: Lab) -> None:
        world = build(lab.folder)
        assert (first := lab.mine(world)).outcome == "mined"
        before = lab.facts()
        again = lab.mine(world)
        assert (again.outcome, again.pull_requests, again.landed) == ("unchanged", 12, first.landed)
        assert lab.facts() == before
        assert [row[0] for row in lab.rows(MineRun, "outcome")] == ["mined", "unchanged"]
        assert {outcome for (outcome,) in lab.rows(PullRequest, "outcome")} == {"landed", "unlanded"}

    def test_what_is_new_gives_the_rows_of_a_single_run(self, lab: Lab) -> None:
        world = build(lab.folder)
        lab.mine(world)
        head = world.propose(20, {"src/1.py": lines("twenty")}, {"src/2.py": None})
        world.commit("main", {"pushed": "again"}, "push")
        world.merge("main", head, "Merge pull request #20 from bob/x\n\nReverts #3")
        world.propose(21, {"src/3.py": lines("open")})
        world.save()
        assert lab.mine(world).outcome == "mined"
        assert lab.facts() == fresh(lab.folder, world)

    def test_a_rewritten_head_and_a_rewritten_trunk_leave_nothing_behind(self, lab: Lab) -> None:
        world = build(lab.folder)
        lab.mine(world)
        world.propose(6, {"src/5.py": lines("another attempt")}, message="rewritten")
        world.propose(12, {"src/5.py": lines("first")}, message="rewritten too")
        world.branch("main", 1)
        world.commit("main", {"src/0.py": "x"}, "force-pushed")
        world.save()
        lab.mine(world)
        assert lab.facts() == fresh(lab.folder, world)

    def test_an_open_pull_request_that_lands_later(self, lab: Lab) -> None:
        world = build(lab.folder)
        lab.mine(world)
        head = world.refs["refs/pull/6/head"]
        base = world.commit("main", {"pushed": "more"}, "push")
        landed = world.squash("main", head, "Fix 6 (#6)")
        world.save()
        lab.mine(world)
        assert lab.facts() == fresh(lab.folder, world)
        assert (6, world.sha(base), world.sha(landed)) in lab.rows(Landing, "number", "base_sha", "landed_sha")

    def test_a_pull_head_that_is_gone_keeps_its_row(self, lab: Lab) -> None:
        world = build(lab.folder)
        lab.mine(world)
        del world.refs["refs/pull/6/head"]
        world.save()
        lab.mine(world)
        assert (6, "unlanded", "no pull head") in lab.rows(PullRequest, "number", "outcome", "reason")

    def test_new_rules_decide_anew(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        world = build(lab.folder)
        lab.mine(world)
        monkeypatch.setattr(git_reading, "GIT_RULES", "next")
        assert lab.mine(world).outcome == "mined"


class TestSelection:
    def test_limit_takes_the_newest_and_a_full_run_the_rest(self, lab: Lab) -> None:
        world = build(lab.folder)
        lab.mine(world, selection=PullRequestSelection(limit=3))
        outcomes = dict(lab.rows(PullRequest, "number", "outcome"))
        assert {n for n, outcome in outcomes.items() if outcome == "not_selected"} == set(range(1, 10))
        assert {reason for n, reason in lab.rows(PullRequest, "number", "reason") if n < 10} == {"--limit 3"}
        assert {n for (n,) in lab.rows(Landing, "number")} == {10, 11}
        assert lab.mine(world, selection=PullRequestSelection(limit=3)).outcome == "unchanged"
        assert lab.mine(world).outcome == "mined"
        assert lab.facts() == fresh(lab.folder, world)

    def test_since_is_the_time_of_the_landing(self, lab: Lab) -> None:
        world = build(lab.folder)
        with another(lab.folder) as whole:
            whole.mine(world)
            landed_at = dict(whole.rows(Landing, "number", "landed_at"))
        since = landed_at[8]
        lab.mine(world, selection=PullRequestSelection(since=since))
        assert {n for (n,) in lab.rows(Landing, "number")} == {n for n, at in landed_at.items() if at >= since}
        assert ("not_selected", f"--since {since}") in lab.rows(PullRequest, "outcome", "reason")
        lab.mine(world)
        assert lab.facts() == fresh(lab.folder, world)

    def test_a_narrow_run_keeps_the_facts_of_a_wider_one(self, lab: Lab) -> None:
        world = build(lab.folder)
        lab.mine(world)
        before = lab.facts()
        lab.mine(world, selection=PullRequestSelection(limit=2))
        assert lab.facts() == before


class TestLineCounts:
    def test_equal_plain_git_and_are_counted_once(self, lab: Lab) -> None:
        world = build(lab.folder)
        moved = world.made("main").files[b"src/1.py"][1] + b"more\n"
        head = world.propose(
            30,
            {"src/1.py": None, "moved/1.py": moved, "tool": (EXECUTABLE, b"#!\n"), "nl": "no end"},
            {"sub": (SUBMODULE, b"1" * 40), "link": ("120000", b"nl"), "tab\tnew\nline": "1\n2\n", b"bad\xff": "1\n"},
        )
        world.commit("main", {"pushed": "z"}, "push")
        world.squash("main", head, "Move (#30)")
        world.save()
        assert lab.mine(world, line_counts=True).outcome == "mined"
        for number, base, landed, counts in lab.rows(Landing, "number", "base_sha", "landed_sha", "counts"):
            stored = {
                path: (added, removed)
                for n, path, added, removed in lab.rows(LandingFile, "number", "path", "additions", "deletions")
                if n == number
            }
            assert counts == "done"
            assert stored == plain_counts(world.path, base, landed)
        notes = set(lab.rows(LandingFile, "path", "note"))
        assert {("sub", "submodule"), ("new/1.bin", "binary"), ("moved/1.py", None)} <= notes
        assert lab.mine(world, line_counts=True).outcome == "unchanged"

    def test_survive_a_new_pull_request(self, lab: Lab) -> None:
        world = build(lab.folder)
        lab.mine(world, line_counts=True)
        before = lab.rows(LandingFile, "number", "path", "additions", "deletions")
        head = world.propose(99, {"src/late.py": "late\n"})
        world.squash("main", head, "Late (#99)")
        world.save()
        lab.mine(world)
        after = lab.rows(LandingFile, "number", "path", "additions", "deletions")
        assert set(before) <= set(after) and (99, "src/late.py", None, None) in after

    def test_as_a_second_pass_over_a_stored_history(self, lab: Lab) -> None:
        world = build(lab.folder)
        lab.mine(world)
        assert {counts for (counts,) in lab.rows(Landing, "counts")} == {"none"}
        assert lab.mine(world, line_counts=True).outcome == "mined"
        assert lab.facts() == fresh(lab.folder, world, line_counts=True)

    def test_goes_on_after_the_batch_that_was_stored(self, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
        world = build(lab.folder)
        monkeypatch.setattr(git_reading, "_COUNTED_AT_ONCE", 3)
        real, batches = git_rows.write_counts, []

        def write_counts(tx: Any, repository_id: int, repository: Any, landings: Sequence[Any]) -> None:
            batches.append([landing[0] for landing in landings])
            if len(batches) == 3:
                raise StoreUnavailable("pulled out")
            real(tx, repository_id, repository, landings)

        monkeypatch.setattr(git_rows, "write_counts", write_counts)
        with pytest.raises(StoreUnavailable):
            lab.mine(world, line_counts=True)
        assert lab.mine(world, line_counts=True).outcome == "mined"
        counted = [number for batch in batches[:2] + batches[3:] for number in batch]
        assert sorted(counted) == sorted(number for (number,) in lab.rows(Landing, "number"))
        assert lab.facts() == fresh(lab.folder, world, line_counts=True)

    def test_a_missing_blob_costs_its_own_file_only(self, lab: Lab) -> None:
        world = build(lab.folder)
        moved = world.made("main").files[b"src/1.py"][1] + b"more\n"
        head = world.propose(30, {"src/1.py": None, "moved/1.py": moved, "src/2.py": "two\n", "src/3.py": "three\n"})
        world.commit("main", {"pushed": "z"}, "push")
        world.squash("main", head, "Move (#30)")
        world.save()
        blob = git(world.path, "rev-parse", "main:src/2.py").strip()
        (world.path / "objects" / blob[:2] / blob[2:]).unlink()
        assert lab.mine(world, line_counts=True).error is None
        columns = ("number", "path", "status", "additions", "deletions", "note")
        stored = {row[1:] for row in lab.rows(LandingFile, *columns) if row[0] == 30}
        assert stored == {
            ("moved/1.py", "R", 1, 0, None),
            ("src/2.py", "M", None, None, "missing_blob"),
            ("src/3.py", "M", 1, 12, None),
        }
        assert dict(lab.rows(Landing, "number", "counts"))[30] == "partial"
        assert {c for n, c in lab.rows(Landing, "number", "counts") if n != 30} == {"done"}


def plain_counts(path: Path, base: str, landed: str) -> dict[str, tuple[int | None, int | None]]:
    """What `git diff --numstat -M` says, read independently."""
    parts = iter(
        git(path, "diff", "--numstat", "-M", "-z", base, landed).encode("utf-8", "surrogateescape").split(b"\0")
    )
    found: dict[str, tuple[int | None, int | None]] = {}
    for part in parts:
        if part:
            added, removed, name = part.split(b"\t", 2)
            if not name:
                next(parts)
                name = next(parts)
            found[path_text(name)] = (None, None) if added == b"-" else (int(added), int(removed))
    return found


class TestMirrors:
    def test_a_url_is_mirrored_and_caught_up(self, lab: Lab) -> None:
        world = build(lab.folder)
        url = f"file://{world.path}"
        assert lab.mine(url).error is None
        world.propose(40, {"src/1.py": "x"})
        world.save()
        assert lab.mine(url).outcome == "mined"
        assert lab.mine(url).outcome == "unchanged"
        mirrored = lab.facts()
        assert mirrored["pull_requests"] == fresh(lab.folder, world)["pull_requests"]


def write_list(folder: Path, **worlds: World | str) -> Path:
    """A list of repositories ``o/NAME``."""
    text = "".join(f"o/{n} = {w if isinstance(w, str) else w.path}\n" for n, w in worlds.items())
    (folder / "repos.txt").write_text(text)
    return folder / "repos.txt"


def prchain(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start the command as a user does."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "prchain.cli", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


class TestCommand:
    def test_a_failing_repository_does_not_hurt_the_other(self, tmp_path: Path) -> None:
        (tmp_path / "broken").mkdir()
        listed = write_list(tmp_path, r=build(tmp_path), broken=str(tmp_path / "broken"), s=build(tmp_path, name="s"))
        run = prchain(tmp_path, "mine", str(listed), "--source", "git", "--workers", "2", "--db", "all.db", "--json")
        out, err = run.communicate(timeout=60)
        assert run.returncode == 1, err
        outcomes = {row["repository"]: row["outcome"] for row in json.loads(out)}
        assert outcomes == {"o/r": "mined", "o/broken": "not_a_repository", "o/s": "mined"}
        assert "Traceback" not in err
        lab = Lab(tmp_path, "all.db")
        with another(tmp_path) as alone:
            for name in "rs":
                alone.mine(str(tmp_path / f"{name}.git"), name=f"o/{name}")
            expected, found = alone.facts(), lab.facts()
        lab.store.close()
        for table in ("pull_requests", "landings", "landing_files", "citations", "pull_request_commits"):
            assert found[table] == expected[table]

    def test_killed_at_random_times(self, tmp_path: Path) -> None:
        world = build(tmp_path, 30)
        listed = write_list(tmp_path, r=world)
        command = ("mine", str(listed), "--source", "git", "--db", "killed.db", "--line-counts")
        chance = random.Random(5)
        for _ in range(3):
            run = prchain(tmp_path, *command)
            time.sleep(chance.uniform(0.2, 1.2))
            run.kill()
            run.communicate()
        run = prchain(tmp_path, *command)
        _, err = run.communicate(timeout=60)
        assert run.returncode == 0, err
        lab = Lab(tmp_path, "killed.db")
        found = lab.facts()
        lab.store.close()
        assert found == fresh(tmp_path, world, line_counts=True)


_KILLED = """
import io, os, signal, sys
from pathlib import Path
from miner import citation_rows, git_reading, git_rows
from miner.mine import MineOptions, Miner
from miner.repositories import parse_entry
from prchain.core.git import process
from prchain.core.console.progress import open_progress
from sql import store as stores

folder, world, *points = sys.argv[1:]
git_reading._COUNTED_AT_ONCE = 4
left = [-1]
calls = [0]

def counted(owner, name):
    real = getattr(owner, name)
    def call(*args, **kwargs):
        calls[0] += 1
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kwargs)
    setattr(owner, name, call)

for owner, name in ((process.GitStream, "__enter__"), (process.GitStream, "__exit__"), (stores.Transaction, "bulk"),
                    (stores.Transaction, "upsert"), (stores.Transaction, "delete"), (stores.Store, "transaction"),
                    (citation_rows, "rebuild"), (git_rows, "write"), (git_rows, "write_counts")):
    counted(owner, name)

def run(database, point):
    left[0] = point
    store = stores.Store.open(str(Path(folder) / database))
    with open_progress(stream=io.StringIO(), secrets=()) as progress:
        options = MineOptions(source="git", line_counts=True)
        miner = Miner(store, options, mirrors=Path(folder), progress=progress)
        report = miner.mine(parse_entry("o/r = " + world, "github.com", Path(folder)))
    store.close()
    return report

def child(database, point):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if run(database, point).error is None else 3)
    return os.waitpid(pid, 0)[1]

if not points:
    run("counting.db", -1)
    print(calls[0])
for point in points:
    killed = child(f"point-{point}.db", int(point))
    again = child(f"point-{point}.db", -1)
    print(point, os.WIFSIGNALED(killed), os.waitstatus_to_exitcode(again))
"""


def test_killed_at_many_points_the_next_run_ends_with_the_same_rows(tmp_path: Path) -> None:
    world = build(tmp_path)

    def drive(*points: int) -> list[str]:
        command = [sys.executable, "-c", _KILLED, str(tmp_path), str(world.path), *map(str, points)]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert process.returncode == 0, process.stderr
        return process.stdout.splitlines()

    total = int(drive()[0])
    points = random.Random(f"{SEED} calls of mining").sample(range(1, total), 12 if ALL else 4)
    assert drive(*points) == [f"{point} True 0" for point in points]
    expected = fresh(tmp_path, world, line_counts=True)
    for point in points:
        lab = Lab(tmp_path, f"point-{point}.db")
        assert lab.facts() == expected, f"killed at call {point} of {total}"
        lab.store.close()


def test_git_processes_do_not_grow_with_the_pull_requests(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    real = process.GitStream.__enter__

    def enter(stream: Any) -> Any:
        started[-1] += 1
        return real(stream)

    monkeypatch.setattr(process.GitStream, "__enter__", enter)
    for count in (12, 60):
        started.append(0)
        lab.mine(build(lab.folder, count, name=f"n{count}"), name=f"o/n{count}", line_counts=True)
    assert started[0] == started[1] <= 25


def test_a_run_that_was_killed_is_told_from_one_under_way(lab: Lab) -> None:
    world = build(lab.folder)
    lab.mine(world)
    with lab.store.transaction() as tx:
        tx.upsert(
            MineRun,
            [
                {
                    "id": 1,
                    "outcome": "running",
                    "finished_at": None,
                    "spec": f"o/r = {world.path}",
                    "source": "git",
                    "started_at": "2024-01-01T00:00:00Z",
                }
            ],
        )
    lab.mine(world)
    assert [outcome for (outcome,) in lab.rows(MineRun, "outcome")] == ["interrupted", "unchanged"]
