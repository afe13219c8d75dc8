"""Imported tasks in the database: their ends, their rows, what waits, and what stays as it is."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from errno import ENOSPC
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import MagicMock

import pytest

from chains.imports.importing import Importer
from chains.imports.reading import ReadRow, read_instances
from chains.imports.report import ImportReport
from chains.tasks.export import TaskExportOptions, records
from chains.tasks.rows import read_task_chain
from chains.tasks.swebench import HarnessTests, instance
from environments.stages import open_git, open_trees, read_chain, stage_patches
from prchain.core.errors import DiskFull, NoRepository, UsageError
from prchain.core.git import GitRepository
from prchain.core.git.process import git_failure
from prchain.core.git.trees import TreeStore
from sql.benchmarks import benchmark_chains
from sql.chosen import selected_ids
from sql.repositories import new_repository
from sql.store import Store
from sql.tables import ChainStage, ImportedTask, Repository, Selection, Task, TaskStage
from tests.chains import import_rows
from tests.chains.chainworld import build
from tests.chains.taskworld import CHAIN, NAME, FakeModel, TaskWorld, shop
from tests.databases import new_database
from tests.miner.gitworld import World, git
from tests.miner.minedworld import mined_store

PAIRS = {1: "Round as banks do.", 2: "Count vouchers once."}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return shop(tmp_path)


@pytest.fixture
def store(tmp_path: Path, world: World) -> Store:
    return mined_store(tmp_path, world, NAME)


def landing(world: World, number: int) -> tuple[str, str]:
    """B_t and M_t of a pull request of the shop."""
    for line in git(world.path, "log", "--format=%H %P %s", "main").splitlines():
        sha, parent, subject = line.split(" ", 2)
        if f"(#{number})" in subject:
            return parent, sha
    raise AssertionError(number)


def row_of(world: World, number: int, **changes: Any) -> dict[str, Any]:
    """A pull request as a row of SWE-Gym."""
    base, landed = landing(world, number)
    source = git(world.path, "diff", base, landed, "--", ".", ":!tests")
    test = git(world.path, "diff", base, landed, "--", "tests")
    row = import_rows.swe_gym(instance_id=f"shop__till-{number}", base_commit=base, patch=source, test_patch=test)
    return row | {"problem_statement": f"{PAIRS[number]}\r\n\n  As told.\n"} | changes


def take(
    store: Store, folder: Path, *rows: dict[str, Any], own: Path | None = None
) -> tuple[ImportReport, list[ReadRow]]:
    folder.mkdir(exist_ok=True)
    file = folder / "train.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    told: list[ReadRow] = []
    importer = Importer(store, folder / "data", folder / "mirrors", own)
    return importer.run(read_instances(file, source="lab/set"), told.append), told


def rows(store: Store, table: Any, *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
    with store.reading() as tx:
        return [tuple(row) for row in tx.rows(table, *columns, **equals)]


def test_an_import_is_a_chain_of_one_stage_whose_end_is_the_developers_tree(
    tmp_path: Path, world: World, store: Store
) -> None:
    report, told = take(store, tmp_path, row_of(world, 1), row_of(world, 2))
    assert (report.imported, report.known, report.bad, told) == (2, 0, 0, [])
    with store.reading() as tx:
        ids = selected_ids(tx, "imported")
        chains = {it.stages[0].number: it for it in (read_chain(tx, id_) for id_ in ids)}
    for number in PAIRS:
        base, landed = landing(world, number)
        chain = chains[number]
        git_repository = open_git(chain, tmp_path / "mirrors")
        trees = open_trees(chain, git_repository, tmp_path / "data")
        (stage,) = chain.stages
        assert stage.base == base and stage.landed != landed and not chain.breaks
        assert trees.tree_of(stage.landed) == trees.tree_of(landed)
        (patch,) = stage_patches(git_repository, trees, chain.stages)
        assert patch.source and patch.test
    tasks = rows(store, Task, "outcome", "overview", "model")
    assert tasks == [("ready", "", None)] * 2
    queries = {query for (query,) in rows(store, TaskStage, "query")}
    assert queries == {f"{words}\r\n\n  As told.\n" for words in PAIRS.values()}
    assert rows(store, Repository, "id", "location") == [(1, str(world.path))]


def test_a_stage_in_the_columns_of_each_form_is_the_same_chain_with_the_same_lists(
    tmp_path: Path, world: World, store: Store
) -> None:
    names = [name for name in import_rows.ROWS if name != "swe_smith"]
    stages = [row_of(world, number) for number in PAIRS]
    written = [import_rows.in_form(name, row) for row in stages for name in names]
    (tmp_path / "mine.jsonl").write_text("".join(f"{json.dumps(row, default=str)}\n" for row in written))
    read = list(read_instances(tmp_path / "mine.jsonl", source="lab/set"))
    assert [it.error for it in read] == [None] * len(names) * 2
    inner = {replace(it.instance, source="lab/set").chain_id for it in read if it.instance}
    assert len(inner) == 2, "one chain for each stage, whichever columns told it"
    assert {(it.instance.f2p, it.instance.p2p) for it in read if it.instance} == {
        (tuple(row["FAIL_TO_PASS"]), tuple(row["PASS_TO_PASS"])) for row in stages
    }
    own = [it for it in read if it.instance and it.instance.source == "lab/set"]
    report = Importer(store, tmp_path / "data", tmp_path / "mirrors").run(own, lambda row: None)
    assert (report.imported, report.known, report.bad) == (2, len(own) - 2, 0)
    with store.reading() as tx:
        chains = [read_chain(tx, id_) for id_ in selected_ids(tx, "imported")]
    for chain in chains:
        trees = open_trees(chain, open_git(chain, tmp_path / "mirrors"), tmp_path / "data")
        base, landed = landing(world, chain.stages[0].number)
        assert (chain.stages[0].base, trees.tree_of(chain.stages[0].landed)) == (base, trees.tree_of(landed))


def test_a_second_import_adds_nothing_and_keeps_up_what_the_publisher_says(
    tmp_path: Path, world: World, store: Store
) -> None:
    take(store, tmp_path, row_of(world, 1))
    before = rows(store, ChainStage, "chain_id", "landed_sha"), rows(store, Task, "chain_id", "created_at")
    report, _ = take(store, tmp_path, row_of(world, 1, PASS_TO_PASS=["tests/test_cart.py::test_more"]))
    assert (report.imported, report.known) == (0, 1)
    assert (rows(store, ChainStage, "chain_id", "landed_sha"), rows(store, Task, "chain_id", "created_at")) == before
    assert rows(store, ImportedTask, "p2p") == [(["tests/test_cart.py::test_more"],)]


def test_without_a_repository_a_task_waits_and_is_taken_up_later(tmp_path: Path, world: World) -> None:
    store = Store.open(new_database(tmp_path / "fresh.db"))
    report, _ = take(store, tmp_path, row_of(world, 1), row_of(world, 2, base_commit="0" * 40))
    assert (report.imported, dict(report.waiting)) == (0, {"shop/till": 2})
    assert json.loads(json.dumps(report.row()))["waiting"] == {"shop/till": 2}
    with store.reading() as tx:
        assert selected_ids(tx, "imported") == []
        with pytest.raises(NoRepository, match="was imported without a repository"):
            read_chain(tx, rows(store, ImportedTask, "chain_id")[0][0])
    assert {outcome for (outcome,) in rows(store, Task, "outcome")} == {"waiting"}
    assert rows(store, Repository, "owner", "name", "location") == [("shop", "till", "")]
    clones = tmp_path / "clones"
    clones.mkdir()
    shutil.copytree(world.path, clones / "shop__till.git")
    again, _ = take(store, tmp_path, row_of(world, 1), row_of(world, 2, base_commit="0" * 40), own=clones)
    assert (again.imported, again.known, dict(again.waiting)) == (1, 0, {"shop/till": 1})
    assert sorted(outcome for (outcome,) in rows(store, Selection, "outcome")) == ["selected", "waiting"]
    assert sorted(outcome for (outcome,) in rows(store, Task, "outcome")) == ["ready", "waiting"]


def test_a_fault_that_is_brought_in_is_there_at_the_start_and_gone_at_the_end(
    tmp_path: Path, world: World, store: Store
) -> None:
    base, landed = landing(world, 1)
    fault = git(world.path, "diff", landed, base, "--", "src")
    smith = import_rows.swe_smith(
        instance_id=f"shop__till.{landed[:8]}.x__1", repo=f"swesmith/shop__till.{landed[:8]}", patch=fault
    )
    report, told = take(store, tmp_path, smith)
    assert (report.imported, told) == (1, [])
    with store.reading() as tx:
        chain = read_chain(tx, selected_ids(tx, "imported")[0])
    trees = open_trees(chain, open_git(chain, tmp_path / "mirrors"), tmp_path / "data")
    (stage,) = chain.stages
    assert chain.breaks and trees.tree_of(stage.landed) == trees.tree_of(landed)
    assert {change.path for change in trees.diff(stage.base, stage.landed)} == {
        b"src/till/cart.py",
        b"src/till/prices.py",
        b"tests/test_cart.py",
    }
    # What the names of F2P tests begin with is hidden at the beginning, and is the stage's test patch.
    assert b"tests/test_cart.py" not in trees.entries(stage.base) and b"tests/test_cart.py" in trees.entries(base)
    (patch,) = stage_patches(open_git(chain, tmp_path / "mirrors"), trees, chain.stages)
    assert patch.test == ("tests/test_cart.py",)


def test_what_a_task_was_made_from_stays_behind_it(tmp_path: Path, world: World) -> None:
    store = Store.open(new_database(tmp_path / "fresh.db"))
    own, other = tmp_path / "own", tmp_path / "other"
    shutil.copytree(world.path, own / "shop__till.git")
    take(store, tmp_path, row_of(world, 1), own=own)
    fork = World(other / "till.git")
    fork.commit("main", {"till/cart.py": "LIMIT = 1\n", "tests/test_cart.py": "LIMIT = 1\n"})
    fork.save()
    patches = {"patch": import_rows.PATCH, "test_patch": import_rows.TEST_PATCH}
    report, told = take(store, tmp_path, row_of(world, 2, base_commit=fork.sha("main"), **patches), own=other)
    assert (report.imported, told) == (1, [])
    with store.reading() as tx:
        chains = [read_chain(tx, name) for name in selected_ids(tx, "imported")]
    for chain in chains:
        assert open_git(chain, tmp_path / "mirrors").patch_text(chain.stages[0].base, chain.stages[0].landed)


def test_a_repository_named_in_other_case_takes_no_mirror_from_the_other_rows(tmp_path: Path, world: World) -> None:
    own = tmp_path / "own"
    shutil.copytree(world.path, own / "shop__till.git")
    store = Store.open(new_database(tmp_path / "fresh.db"))
    report, _ = take(store, tmp_path, row_of(world, 1, repo="SHOP/TILL"), row_of(world, 2), own=own)
    assert (report.imported, report.waiting) == (1, {"SHOP/TILL": 1})


def test_a_folder_that_holds_no_whole_repository_is_passed_over(tmp_path: Path, world: World, store: Store) -> None:
    own = tmp_path / "own"
    (own / "till").mkdir(parents=True)
    git(tmp_path, "clone", "--quiet", "--depth", "1", f"file://{world.path}", str(own / "shop__till"))
    git(world.path, "config", "uploadpack.allowFilter", "true")
    git(tmp_path, "clone", "-q", "--bare", "--filter=blob:none", f"file://{world.path}", str(own / "shop__till.git"))
    report, told = take(store, tmp_path, row_of(world, 1), row_of(world, 2), own=own)
    assert (report.imported, told) == (2, [])  # by what was mined
    words = {Path(folder).name: reason for folder, reason in report.passed_over.items()}
    assert sorted(words) == ["shop__till", "shop__till.git", "till"]
    assert "shallow" in words["shop__till"] and "is not a git repository" in words["till"]
    assert "does not hold all files" in words["shop__till.git"]
    elsewhere = Store.open(new_database(tmp_path / "fresh.db"))
    (tmp_path / "b").mkdir()
    waits, told = take(elsewhere, tmp_path / "b", row_of(world, 1), own=own)
    assert (waits.waiting, waits.bad, told) == ({"shop/till": 1}, 0, [])


def test_a_full_disk_under_the_trees_ends_the_import_and_is_no_reason_to_wait(
    tmp_path: Path, world: World, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("prchain.core.git.trees._write", full)
    with pytest.raises(DiskFull, match="no room is left"):
        take(store, tmp_path, row_of(world, 1))
    monkeypatch.setattr(
        TreeStore, "run", MagicMock(side_effect=git_failure("init", "fatal: No space left on device", 128))
    )
    with pytest.raises(DiskFull, match="no room is left"):
        take(store, tmp_path / "other", row_of(world, 1))
    assert rows(store, ImportedTask, "chain_id") == []


def test_a_repository_of_another_object_format_than_the_one_before_is_passed_over(
    tmp_path: Path, world: World, store: Store
) -> None:
    take(store, tmp_path, row_of(world, 1))
    (folder := tmp_path / "own" / "till").mkdir(parents=True)
    git(folder, "init", "-q", "--object-format=sha256")
    git(folder, "-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-q", "--allow-empty", "-m", "Begin")
    head = git(folder, "rev-parse", "HEAD").strip()
    report, _ = take(store, tmp_path, row_of(world, 2, base_commit=head), own=tmp_path / "own")
    assert "another object format" in report.passed_over[str(folder)] and report.waiting.total() == 1


def test_a_row_of_a_repository_is_never_that_of_another_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.transaction() as tx:
        seen, missed = tx.rows, list[bool]()

        def late(table: Any, *columns: str, **equals: Any) -> Any:
            """Another process's row comes to light once its id was asked for."""
            if table is Repository and columns == ("id",) and not missed:
                missed.append(True)
                return [(0,)]
            return seen(table, *columns, **equals)

        monkeypatch.setattr(tx, "rows", late)
        id_ = new_repository(tx, "github.com", "other", "one", "")
        assert new_repository(tx, "github.com", "Other", "One", "") == id_
    assert rows(store, Repository, "owner", "name") == [tuple(NAME.split("/")), ("other", "one")]


def test_two_processes_that_name_repositories_make_two_rows(database_url: str) -> None:
    one, other, made = Store.open(database_url), Store.open(database_url), list[int]()

    def beside() -> None:
        with other.transaction() as tx:
            made.append(new_repository(tx, "github.com", "b", "y", ""))

    thread = Thread(target=beside)
    with one.transaction() as tx:
        made.append(new_repository(tx, "github.com", "a", "x", ""))
        thread.start()
        thread.join(0.2)
    thread.join()
    assert sorted(rows(one, Repository, "owner", "name")) == [("a", "x"), ("b", "y")] and sorted(made) == [1, 2]
    for store in (one, other):
        store.close()


def test_secrets_of_queries_are_replaced_and_counted(tmp_path: Path, world: World, store: Store) -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    report, _ = take(store, tmp_path, row_of(world, 1, problem_statement=f"My token is {token}.\n"))
    assert report.secrets == 1
    for text in (*rows(store, TaskStage, "query"), *rows(store, ChainStage, "subject")):
        assert token not in text[0] and text[0].startswith("My token is ")


def test_values_that_no_column_holds_are_no_end_of_the_others(tmp_path: Path, world: World, store: Store) -> None:
    large = import_rows.swe_rebench(created_at=None, meta={"llm_score": {"difficulty_score": 10**80}})
    file = Path(os.fsdecode(os.fsencode(tmp_path) + b"/s\xff.jsonl"))
    file.write_text(f"{json.dumps(large)}\n{json.dumps(row_of(world, 1))}\n")
    importer = Importer(store, tmp_path / "data", tmp_path / "mirrors")
    report = importer.run(read_instances(file), lambda row: None)
    assert (report.imported, report.waiting.total(), report.bad) == (1, 1, 0)
    assert rows(store, ImportedTask, "source", "difficulty") in ([("s\ufffd", None)] * 2,)


def test_a_mark_stays_until_it_is_taken_off_by_name_and_the_same_task_elsewhere_is_barred(
    tmp_path: Path, world: World, store: Store
) -> None:
    def imported(name: str, source: str, *of: dict[str, Any], training: bool = False) -> ImportReport:
        (tmp_path / name).write_text("".join(f"{json.dumps(row)}\n" for row in of))
        importer = Importer(store, tmp_path / "data", tmp_path / "mirrors")
        return importer.run(read_instances(tmp_path / name, source=source), lambda row: None, training=training)

    def barred() -> set[str]:
        with store.reading() as tx:
            return set(benchmark_chains(tx))

    gym = "SWE-Gym/SWE-Gym"
    same = row_of(world, 2)
    imported("train.jsonl", gym, row_of(world, 1), row_of(world, 1, instance_id="till-other-1"))
    assert barred() == set()
    assert imported("verified.jsonl", gym, same).benchmark == 1
    assert imported("train.jsonl", gym, same).benchmark == 1
    assert len(barred()) == 1
    assert imported("train.jsonl", gym, same, training=True).benchmark == 0
    assert barred() == set()
    tasks = TaskWorld(tmp_path, store, world)
    mined = {number: tasks.add_chain((number,)) for number in (1, 2)}
    both = tasks.add_chain((1, 2))
    assert barred() == set()
    # Barred with it: the same instance, the same pull request under another name, and as we mined it.
    assert imported("b.jsonl", "x/Verified", row_of(world, 1) | {"difficulty": "easy"}).benchmark == 1
    assert len(barred()) == 5 and barred() > {mined[1], both} and mined[2] not in barred()
    # One whose name tells no number is known by the commit that it begins on.
    assert imported("c.jsonl", "x/Verified", row_of(world, 2, instance_id="sales")).benchmark == 1
    assert mined[2] in barred()


def test_a_row_that_says_it_is_ours_is_free_only_where_its_chain_is_here_and_not_barred(
    tmp_path: Path, world: World, store: Store
) -> None:
    tasks = TaskWorld(tmp_path, store, world)
    mined = tasks.add_chain((1,))
    claim = {"difficulty": "", "chain_benchmark": False, "chain_id": mined}

    def marks(*of: dict[str, Any]) -> int:
        (tmp_path / "mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in of))
        importer = Importer(store, tmp_path / "data", tmp_path / "mirrors")
        report = importer.run(read_instances(tmp_path / "mine.jsonl"), lambda row: None)
        assert (report.bad, report.good + report.waiting.total()) == (0, len(of))
        return report.benchmark

    assert marks(row_of(world, 1, **claim)) == 0
    for odd in (
        row_of(world, 2, **claim),
        row_of(world, 1, **claim, repo="other/till"),
        row_of(world, 1, **claim | {"chain_id": "5f0c"}),
        row_of(world, 1, **claim | {"chain_id": 7}),
        row_of(world, 1, **claim | {"chain_id": [mined]}),
        row_of(world, 1, **claim | {"chain_id": "\x00" + mined}),
    ):
        assert marks(odd | {"problem_statement": str(odd)}) == 1
    verified = tmp_path / "verified.jsonl"
    verified.write_text(json.dumps(row_of(world, 1, problem_statement="As they ask it.")))
    Importer(store, tmp_path / "data", tmp_path / "mirrors").run(read_instances(verified), lambda row: None)
    assert marks(row_of(world, 1, **claim, hints_text="later", problem_statement="anew")) == 1


def test_a_chain_does_not_vouch_for_itself(tmp_path: Path, world: World, store: Store) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps(row_of(world, 1, difficulty="")))
    importer = Importer(store, tmp_path / "data", tmp_path / "mirrors")
    importer.run(read_instances(tmp_path / "mine.jsonl"), lambda row: None, training=True)
    ((imported,),) = rows(store, ImportedTask, "chain_id")
    claim = row_of(world, 1, difficulty="", chain_benchmark=False, chain_id=imported)
    (tmp_path / "mine.jsonl").write_text(json.dumps(claim))
    assert importer.run(read_instances(tmp_path / "mine.jsonl"), lambda row: None).benchmark == 1


def test_a_benchmark_s_commit_is_barred_of_whichever_host_and_by_the_beginning_of_its_name(
    tmp_path: Path, world: World, store: Store
) -> None:
    tasks = TaskWorld(tmp_path, store, world)
    mined = {number: tasks.add_chain((number,)) for number in (1, 2)}
    base, _ = landing(world, 1)
    row = row_of(world, 1, repo="fork/other", instance_id="sales", base_commit=base[:10])
    (tmp_path / "verified.jsonl").write_text(json.dumps(row))
    importer = Importer(store, tmp_path / "data", tmp_path / "mirrors")
    report = importer.run(read_instances(tmp_path / "verified.jsonl"), lambda row: None)
    assert (report.waiting, report.benchmark) == ({"fork/other": 1}, 1)
    with store.reading() as tx:
        barred = benchmark_chains(tx)
    assert mined[1] in barred and mined[2] not in barred


@pytest.mark.parametrize(
    ("column", "patch"),
    [
        ("patch", import_rows.PATCH),
        ("test_patch", import_rows.TEST_PATCH),
        ("patch", "diff --git a/x b/x\n--- a/x\n+++ b/../../x\n@@ -0,0 +1 @@\n+x\n"),
        (
            "patch",
            "diff --git a/.git/x b/.git/x\nnew file mode 100755\n--- /dev/null\n+++ b/.git/x\n@@ -0,0 +1 @@\n+x\n",
        ),
        ("patch", "diff --git a/x b/x\n@@ nothing @@\n"),
        ("patch", "diff --git a/missing b/missing\n--- a/missing\n+++ b/missing\n@@ -1,4 +1 @@\n-a\n+b\n"),
    ],
)
def test_a_patch_that_does_not_apply_is_told_by_its_row(
    tmp_path: Path, world: World, store: Store, column: str, patch: str
) -> None:
    report, told = take(store, tmp_path, row_of(world, 2), row_of(world, 1, **{column: patch}))
    assert (report.imported, report.bad) == (1, 1)
    assert str(told[0]).startswith(f"{tmp_path / 'train.jsonl'}, row 2: shop__till-1: {column} does not apply")
    assert len(str(told[0]).splitlines()) == 1


def test_a_patch_that_unpacks_to_more_than_there_is_room_for_is_told_by_its_row_and_not_given_to_git(
    tmp_path: Path, world: World, store: Store
) -> None:
    head = "diff --git a/x b/x\nnew file mode 100644\nindex 0000000..1111111\nGIT binary patch\n"
    bomb = f"{head}literal 99999999999\nIcmZ>A\n\n"
    report, told = take(store, tmp_path, row_of(world, 2), row_of(world, 1, patch=bomb))
    assert (report.imported, report.bad) == (1, 1)
    assert "row 2: shop__till-1: patch: its binary files unpack to 95,367 MB" in str(told[0])


def test_a_patch_that_hides_from_us_a_file_which_git_reads_is_told_by_its_row(
    tmp_path: Path, world: World, store: Store
) -> None:
    between = "index 0000000..1111111\n"
    hidden = f"diff --git a/q b/r\nnew file mode 100644\n--- /dev/null\n{between}+++ b/made.py\n@@ -0,0 +1 @@\n+X = 1\n"
    shown = hidden.replace(between, "")
    report, told = take(store, tmp_path, row_of(world, 1, patch=hidden), row_of(world, 2, patch=shown))
    assert (report.imported, report.bad) == (1, 1)
    assert str(told[0]).endswith("shop__till-1: a patch changes 'made.py', and no line of it names that file")


def test_the_end_tells_how_many_files_could_not_be_read_and_how_many_rows_ask_nothing(
    tmp_path: Path, world: World, store: Store
) -> None:
    (folder := tmp_path / "set").mkdir()
    (folder / "a.json").write_bytes(b'["\xff"]')
    (folder / "b.jsonl").write_text(f"{{\n{json.dumps(row_of(world, 1))}\n")
    (folder / "c.jsonl").write_text(json.dumps(row_of(world, 2, problem_statement="")))
    report = Importer(store, tmp_path / "data", tmp_path / "mirrors").run(read_instances(folder), lambda row: None)
    assert (report.imported, report.bad, report.files_unread, report.no_query) == (1, 3, 1, 1)


def test_imports_freeze_no_pull_request_and_no_model_writes_them(tmp_path: Path, world: World, store: Store) -> None:
    tasks = TaskWorld(tmp_path, store, world)
    take(store, tmp_path, row_of(world, 1))
    with pytest.raises(UsageError, match="imported tasks have the queries of their publishers"):
        tasks.run(FakeModel(), strategy="imported").run()
    report = build(store, tmp_path, strategy="single", shortest=1)
    assert not report.frozen and not report.candidates["frozen"]
    assert len(rows(store, Selection, "chain_id", strategy="imported")) == 1


def test_our_own_instances_come_back_as_they_were(tmp_path: Path, world: World, store: Store) -> None:
    tasks = TaskWorld(tmp_path, store, world)
    tasks.add_chain(CHAIN[:2])
    tasks.run(FakeModel(), strategy="reference").run()
    tests = HarnessTests("till:1", "pytest", "pytest -rA tests/test_prices.py", ["tests/test_prices.py::test_half"], [])
    with_tests = [
        instance(record, stage, tests)
        for record in records(store, tmp_path / "mirrors", TaskExportOptions("reference"))
        for stage in record.stages
    ]
    report, told = take(store, tmp_path, *with_tests)
    assert (report.imported, report.benchmark, told) == (2, 0, [])
    back = list(records(store, tmp_path / "mirrors", TaskExportOptions("imported")))
    stages = {record.stages[0].base_sha: record.stages[0] for record in back}
    for row in with_tests:
        stage = stages[row["base_commit"]]
        assert (stage.source_patch, stage.test_patch) == (row["patch"], row["test_patch"])
        assert stage.query == row["problem_statement"]
    with store.reading() as tx:
        chain = read_task_chain(tx, back[0].chain_id)
    assert GitRepository.open(Path(chain.location)).missing([chain.stages[0].landed_sha]) == set()
    assert {image for (image,) in rows(store, ImportedTask, "image")} == {"till:1"}
