"""Exported lines: they fit the schema, hold everything a rollout needs, and nothing that they should not."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from chains.tasks.export import TaskExportOptions, UnreadableTask, records, task_lines, write_lines
from chains.tasks.record import SCHEMA_VERSION, TaskRecord, schema_text
from prchain.core.errors import IncompleteRepository, NotARepository, UsageError
from prchain.core.git import GitRepository
from sql.ledger import SqlLedger
from sql.tables import ChainStage, Repository, Selection, Task, TaskStage
from tests.chains.taskworld import CHAIN, OVERVIEW, QUERIES, FakeModel, TaskWorld, gateway_of, good_answer, mined, shop
from tests.miner.gitworld import Content, World, git

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskWorld]:
    folder = tmp_path_factory.mktemp("export")
    with mined(folder, shop(folder), [CHAIN, (1, 2), (2, 3)]) as task_world:
        task_world.say(2, title="Count coupons once; ask joe@example.org")

        def answer(request: Any) -> Any:
            if request.subject.startswith(task_world.chains[1]) and request.purpose == "query":
                return {"query": "def redeem_once(self, code): pass"}
            if request.purpose == "query" and request.subject.startswith(task_world.chains[2]):
                return {"query": QUERIES[int(request.subject[-1]) + 1]}
            return good_answer(request)

        task_world.run(gateway_of(FakeModel(answer), SqlLedger(task_world.store, "run"))).run()
        yield task_world


def exported(world: TaskWorld, **options: Any) -> list[TaskRecord]:
    return list(records(world.store, world.folder / "mirrors", TaskExportOptions(**options)))


def test_the_schema_in_the_docs_is_that_of_the_records() -> None:
    text = (ROOT / "docs" / "tasks.schema.json").read_text(encoding="utf-8")
    assert text == schema_text(), "write docs/tasks.schema.json anew from chains.tasks.record.schema_text()"
    assert json.loads(text)["properties"]["schema_version"]["const"] == SCHEMA_VERSION


def test_lines_round_trip_and_come_in_one_order(world: TaskWorld, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "tasks.jsonl"
    out.parent.mkdir()
    assert write_lines(task_lines(exported(world)), out) == 2
    lines = out.read_text(encoding="utf-8").splitlines()
    read = [TaskRecord.model_validate_json(line) for line in lines]
    assert read == exported(world)
    assert [task_record.chain_id for task_record in read] == sorted([world.chains[0], world.chains[2]])
    assert write_lines(task_lines(exported(world)), tmp_path / "again.jsonl") == 2
    assert (tmp_path / "again.jsonl").read_bytes() == out.read_bytes()
    assert [path.name for path in out.parent.iterdir()] == ["tasks.jsonl"]


def test_a_record_holds_what_a_rollout_needs(world: TaskWorld) -> None:
    record = next(task_record for task_record in exported(world) if task_record.chain_id == world.chains[0])
    assert record.repository.model_dump() == {"host": "github.com", "name": "shop/till", "location": None}
    assert (record.language, record.licence, record.strategy, record.score) == ("python", "MIT", "reference", 1.0)
    assert (record.outcome, record.overview, record.model) == ("ready", OVERVIEW, "fake")
    cost = {"calls": 7, "tokens_in": 700, "tokens_out": 70, "usd": pytest.approx(0.00084), "unanswered": 0}
    assert record.cost.model_dump() == cost
    first, second, third = record.stages
    assert [stage.query for stage in record.stages] == list(QUERIES.values())
    assert (second.number, second.url) == (2, "https://github.com/shop/till/pull/2")
    assert second.title == "Count coupons once; ask [email]"
    assert second.files == ("src/till/cart.py", "src/till/coupons.py") and second.test_files == (
        "tests/test_coupons.py",
    )
    told = [(need.kind, need.text, need.path) for need in second.interface]
    place = "src/till/coupons.py"
    assert told == [("class", "CouponLedger", place), ("module", "coupons", place), ("method", "redeem_once", place)]
    assert (record.verdict, second.verdict, second.unmet, second.needs_of) == ("solvable", "solvable", (), "patch")
    assert first.evidence is None and second.evidence is not None
    assert (second.evidence.relation, second.evidence.confidence) == ("follow_up", 0.9)
    assert second.evidence.signs[0].sign == "shared_files"
    assert [citation.field for citation in second.evidence.citations] == ["landing"]
    assert "Follow-up to #1" in second.evidence.citations[0].snippet
    assert "docs/coupons.md" in second.source_patch and "docs/coupons.md" not in second.files
    assert "test_coupons" in second.test_patch and "test_coupons" not in second.source_patch
    assert (second.lossy, third.lossy) == (False, True)


def test_a_bare_merge_is_titled_by_its_branch(tmp_path: Path) -> None:
    bare = {1: "Merge pull request #1 from ada/bank-rounding", 2: "Merge pull request #2 from ada/x\n\nCoupons"}
    with mined(tmp_path, shop(tmp_path, messages=bare), [(1, 2)]) as task_world:
        task_world.run(FakeModel()).run()
        (task,) = exported(task_world)
    assert [stage.title for stage in task.stages] == ["bank-rounding", "Coupons"]


def test_the_paper_mode_withholds_the_interface(world: TaskWorld) -> None:
    for record in exported(world, interface="paper"):
        assert record.interface_mode == "paper"
        assert {stage.interface for stage in record.stages} == {()}


def test_rejected_texts_are_not_exported(world: TaskWorld) -> None:
    (record,) = exported(world, outcome="query_rejected")
    assert record.chain_id == world.chains[1]
    assert [stage.outcome for stage in record.stages] == ["query_rejected", "not_reached"]
    assert {stage.query for stage in record.stages} == {None} and record.overview is None
    assert record.stages[0].findings
    assert "redeem_once(self" not in json.dumps([stage.query for stage in record.stages])


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[TaskWorld]:
    """Two tasks that are ready, of their own database."""
    with mined(tmp_path, shop(tmp_path), [CHAIN, (1, 2)]) as task_world:
        task_world.run(FakeModel()).run()
        yield task_world


def test_tasks_of_retired_chains_are_exported_on_request_only_and_say_so(pair: TaskWorld) -> None:
    assert {task_record.selection for task_record in exported(pair)} == {"selected"} and len(exported(pair)) == 2
    with pair.store.transaction() as tx:
        query = update(Selection).where(Selection.chain_id == pair.chains[0])
        tx.connection.execute(query.values(outcome="retired", reason="chosen anew"))
    assert [task_record.chain_id for task_record in exported(pair)] == [pair.chains[1]]
    selections = {task_record.chain_id: task_record.selection for task_record in exported(pair, retired=True)}
    assert selections == {pair.chains[0]: "retired", pair.chains[1]: "selected"}


def test_a_commit_that_is_gone_is_named_and_the_other_chains_are_exported(pair: TaskWorld) -> None:
    lost = "1" * 40
    with pair.store.transaction() as tx:
        stage = (ChainStage.chain_id == pair.chains[0], ChainStage.position == 2)
        tx.connection.execute(update(ChainStage).where(*stage).values(landed_sha=lost))
    unread: list[UnreadableTask] = []
    lines = list(records(pair.store, pair.folder / "mirrors", TaskExportOptions(), unread.append))
    assert [line.chain_id for line in lines] == [pair.chains[1]]
    (unreadable_task,) = unread
    assert (unreadable_task.chain_id, unreadable_task.repository, unreadable_task.outcome) == (
        pair.chains[0],
        "shop/till",
        "incomplete_repository",
    )
    assert lost in unreadable_task.reason and "#2" in unreadable_task.reason
    with pytest.raises(IncompleteRepository):
        exported(pair)
    pair.world.path.rename(pair.folder / "away.git")
    assert not list(records(pair.store, pair.folder / "mirrors", TaskExportOptions(), unread.append))
    assert [unreadable.outcome for unreadable in unread[1:]] == ["not_a_repository"] * 2
    with pytest.raises(NotARepository):
        exported(pair)


def test_a_line_is_ascii_so_that_no_reader_breaks_it(pair: TaskWorld, tmp_path: Path) -> None:
    text = "One\u2028two\u2029three\u0085four é \U0001f600."
    with pair.store.transaction() as tx:
        tx.connection.execute(update(TaskStage).values(query=text))
    assert write_lines(task_lines(exported(pair)), tmp_path / "tasks.jsonl") == 2
    content = (tmp_path / "tasks.jsonl").read_bytes()
    assert content.isascii()
    lines = content.decode().splitlines()
    assert len(lines) == 2
    assert TaskRecord.model_validate_json(lines[0]).stages[0].query == text


def test_a_task_without_stages_is_a_record_too(pair: TaskWorld) -> None:
    with pair.store.transaction() as tx:
        tx.connection.execute(update(Task).where(Task.chain_id == pair.chains[1]).values(outcome="defect"))
        tx.delete(TaskStage, chain_id=pair.chains[1])
    (record,) = exported(pair, outcome="defect")
    assert [(stage.outcome, stage.query) for stage in record.stages] == [("not_reached", None)] * 2


def test_source_and_test_patch_on_the_base_give_the_landed_tree(world: TaskWorld, tmp_path: Path) -> None:
    record = next(task_record for task_record in exported(world) if task_record.chain_id == world.chains[0])
    for stage in record.stages:
        if stage.lossy:
            continue
        assert applied(world, tmp_path / str(stage.position), stage.base_sha, stage.source_patch, stage.test_patch) == (
            git(world.world.path, "rev-parse", f"{stage.landed_sha}^{{tree}}").strip()
        )


def test_a_patch_with_renames_binaries_and_odd_bytes_is_parted_without_loss(world: TaskWorld, tmp_path: Path) -> None:
    from chains.tasks.export import _patch
    from chains.tasks.rows import read_task_chain
    from prchain.core.code.reference import split

    with world.store.reading() as tx:
        stage = read_task_chain(tx, world.chains[0]).stages[2]
    repository = GitRepository.open(world.world.path)
    (patch,) = repository.patches([(stage.base_sha, stage.landed_sha)])
    reference = split(patch)
    assert any(file.old_path for file in patch) and any(file.binary for file in patch)
    without = [file for file in (*reference.source, *reference.other) if file.path != "src/till/umlaut.py"]
    source, lossy = _patch(repository, stage, without)
    test, also = _patch(repository, stage, reference.test)
    assert not lossy and not also and "GIT binary patch" in source
    index = git_index(tmp_path / "odd", world, stage.base_sha)
    for text in (source, test):
        run_git(index, world, "apply", "--cached", "-", stdin=text.encode())
    blob = git(world.world.path, "rev-parse", f"{stage.landed_sha}:src/till/umlaut.py").strip()
    run_git(index, world, "update-index", "--add", "--cacheinfo", f"100644,{blob},src/till/umlaut.py")
    tree = run_git(index, world, "write-tree").decode().strip()
    assert tree == git(world.world.path, "rev-parse", f"{stage.landed_sha}^{{tree}}").strip()


def test_a_path_that_is_no_utf8_is_quoted_in_the_patch_which_applies(tmp_path: Path) -> None:
    with mined(tmp_path, shop(tmp_path, patches={2: {b"src/caf\xe9.py": "x = 1\n"}}), [CHAIN]) as world:
        world.run(FakeModel()).run()
        stage = exported(world)[0].stages[1]
        assert not stage.lossy and r'"b/src/caf\351.py"' in stage.source_patch and "src/caf\\xe9.py" in stage.files
        assert applied(world, tmp_path / "index", stage.base_sha, stage.source_patch, stage.test_patch) == (
            git(world.world.path, "rev-parse", f"{stage.landed_sha}^{{tree}}").strip()
        )


def test_paths_that_look_like_patterns_or_escapes_are_asked_for_as_they_are(tmp_path: Path) -> None:
    git_world = shop(
        tmp_path, patches={2: {"src/[a]*.py": "y = 1\n", "src/back\\xe9.py": "z = 1\n", "src/:é.py": "w = 1\n"}}
    )
    with mined(tmp_path, git_world, [CHAIN]) as world:
        world.run(FakeModel()).run()
        (record,) = exported(world)
        stage = record.stages[1]
        assert not stage.lossy
        assert applied(world, tmp_path / "index", stage.base_sha, stage.source_patch, stage.test_patch) == (
            git(world.world.path, "rev-parse", f"{stage.landed_sha}^{{tree}}").strip()
        )


@pytest.mark.parametrize("before", ["VERSION = 1\n", ("120000", b"shop.py")], ids=["file", "link"])
def test_a_folder_that_replaces_a_file_takes_no_hidden_test_into_the_source_patch(
    tmp_path: Path, before: Content
) -> None:
    plugin = "src/till/plugin.py"
    patches: dict[int, dict[str | bytes, Content]] = {
        1: {plugin: before},
        2: {
            plugin: None,
            f"{plugin}/__init__.py": "VERSION = 2\n",
            f"{plugin}/tests/test_hidden.py": "def test_it():\n    assert True\n",
        },
    }
    with mined(tmp_path, shop(tmp_path, patches=patches), [CHAIN]) as world:
        world.run(FakeModel()).run()
        stage = exported(world)[0].stages[1]
        assert "test_hidden" not in stage.source_patch and stage.test_patch.count("test_hidden.py b/") == 1
        assert f"a/{plugin}/__init__.py" in stage.source_patch and "deleted file mode" in stage.source_patch
        assert applied(world, tmp_path / "index", stage.base_sha, stage.source_patch, stage.test_patch) == (
            git(world.world.path, "rev-parse", f"{stage.landed_sha}^{{tree}}").strip()
        )


ODD: dict[str | bytes, Content] = {
    "plain.py": "1\n",
    "a b/c d.py": "2\n",
    "x b/x": "3\n",
    'quo"te': "4\n",
    "back\\slash": "5\n",
    b"\a\b\t\n\v\f\r\x01\x1f\x7f": "6\n",
    "é": "7\n",
    b"\xff\xfe": "8\n",
    "-dash": "9\n",
    ":(top)x": "10\n",
    "link": ("120000", b"plain.py"),
    "bin": b"\0\1\2diff --git a/x b/x\n",
    "folder/deep": "11\n",
    "[a]*": "12\n",
    "said": "\ndiff --git a/plain.py b/plain.py\n-diff --git a/link b/link\n",
    "none": "no line end",
}


@pytest.mark.parametrize("arguments", [1, 1000])
def test_the_patch_of_each_path_is_its_part_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: int
) -> None:
    monkeypatch.setattr("prchain.core.git.repository._ARGUMENTS", arguments)
    git_world = World(tmp_path / "odd.git")
    first = git_world.commit("main", {"folder": "a file\n", "said": "x\ny\nz\n", "link": "a file\n"})
    files = {**ODD, "folder": None}
    second = git_world.commit("main", files)
    git_world.save()
    repository = GitRepository.open(git_world.path)
    old, new = git_world.sha(first), git_world.sha(second)
    names = [path.encode() if isinstance(path, str) else path for path in files]
    paths = {name: name.decode("utf-8", "surrogateescape") for name in sorted(names)}
    whole = repository.patch_text(old, new)
    parts = {name: repository.patch_text(old, new, [path]) for name, path in paths.items()}
    assert all(part.startswith(b"diff --git ") for part in parts.values())
    assert sum(map(len, parts.values())) == len(whole) and all(part in whole for part in parts.values())
    assert repository.patch_text(old, new, list(paths.values())) == whole
    assert repository.patch_text(old, new, ["fold", "folder/dee"]) == b""
    whole.decode("ascii")


@pytest.mark.parametrize(
    ("location", "public"),
    [
        ("https://example.org/o/r.git", "https://example.org/o/r.git"),
        ("https://user:secret@example.org/o/r.git", "https://example.org/o/r.git"),
        ("git@example.org:o/r.git", "git@example.org:o/r.git"),
        ("/home/me/mirrors/r.git", None),
        ("file:///home/me/r.git", None),
        ("FILE:///home/me/r.git", None),
    ],
)
def test_no_place_on_this_machine_is_told(location: str, public: str | None) -> None:
    from chains.tasks.export import _public

    assert _public(location) == public


def test_a_mirror_of_ours_is_found_by_its_clone_url(world: TaskWorld, tmp_path: Path) -> None:
    mirror = tmp_path / "mirrors" / "github.com" / "shop" / "till.git"
    mirror.parent.mkdir(parents=True)
    mirror.symlink_to(world.world.path)
    key = {"id": world.repository_id, "host": "github.com", "owner": "shop", "name": "till"}
    try:
        with world.store.transaction() as tx:
            tx.upsert(Repository, [{**key, "location": "https://example.org/shop/till.git"}])
        record = next(records(world.store, tmp_path / "mirrors", TaskExportOptions()))
        assert record.repository.location == "https://example.org/shop/till.git"
        assert record.stages[0].source_patch
    finally:
        with world.store.transaction() as tx:
            tx.upsert(Repository, [{**key, "location": str(world.world.path)}])


def test_a_file_is_replaced_only_on_demand_and_only_whole(world: TaskWorld, tmp_path: Path) -> None:
    out = tmp_path / "tasks.jsonl"
    out.write_text("precious")
    with pytest.raises(UsageError, match="--force"):
        write_lines(task_lines(exported(world)), out)

    def broken() -> Iterator[TaskRecord]:
        yield exported(world)[0]
        raise UsageError("pulled out")

    with pytest.raises(UsageError, match="pulled out"):
        write_lines(task_lines(broken()), out, force=True)
    assert out.read_text() == "precious" and [path.name for path in tmp_path.iterdir()] == ["tasks.jsonl"]
    assert write_lines(task_lines(exported(world)), out, force=True) == 2
    with pytest.raises(UsageError, match="cannot be written"):
        write_lines(task_lines(exported(world)), out / "below.jsonl")


def applied(world: TaskWorld, index: Path, base: str, *patches: str) -> str:
    """The tree of the base with the patches applied by plain git."""
    index_file = git_index(index, world, base)
    for patch in patches:
        run_git(index_file, world, "apply", "--cached", "-", stdin=patch.encode())
    return run_git(index_file, world, "write-tree").decode().strip()


def git_index(index: Path, world: TaskWorld, base: str) -> Path:
    run_git(index, world, "read-tree", base)
    return index


def run_git(index: Path, world: TaskWorld, *arguments: str, stdin: bytes = b"") -> bytes:
    environment = {
        **os.environ,
        "GIT_INDEX_FILE": str(index),
        "GIT_DIR": str(world.world.path),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    process = subprocess.run(["git", *arguments], input=stdin, capture_output=True, check=False, env=environment)
    assert process.returncode == 0, process.stderr
    return process.stdout


@pytest.mark.parametrize("name", ["pipe", "folder", "missing/tasks.jsonl"])
def test_what_is_no_ordinary_file_is_never_replaced_even_by_force(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match=r"no ordinary file|no folder"):
        write_lines(iter(()), tmp_path / name, force=True)
    assert (tmp_path / "pipe").is_fifo() and not (tmp_path / "missing").exists()
