"""Harbor's task folders as chains: what is read, what is refused in one line, and what the database holds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import tomli_w

from chains.imports.ends import TESTS, StepTrees
from chains.imports.importing import Importer
from chains.imports.instance import Instance
from chains.imports.reading import ReadRow, read_instances
from chains.imports.report import ImportReport
from environments.images.published.said import read_published
from environments.stages import open_git, open_trees, read_chain, stage_patches
from environments.suites.runners import RUNNERS
from environments.suites.testfiles import is_test_file
from environments.suites.testlogs import Status
from prchain.core.errors import BadInstance, ImageError
from prchain.core.git.output import path_text
from prchain.core.git.trees import FILE, TreeEntry, TreeStore
from sql.chosen import selected_ids
from sql.store import Store
from sql.tables import Chain, ChainStage, ImportedTask, Task, TaskStage
from tests.databases import open_new
from trajectories.studies.evaluation.stored import instances_of

IMAGE = "registry.example/lab/till:1"
REWARD = "#!/bin/bash\npython -m unittest && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"


def single(folder: Path) -> Path:
    """A task of one step."""
    for path, text in (
        ("instruction.md", "<!-- harbor canary 1 -->\n\nRound as banks do.\n"),
        ("tests/test.sh", REWARD),
        ("tests/expected/total.txt", "14\n"),
        ("solution/solve.sh", "#!/bin/bash\nsed -i s/round/bank/ till.py\n"),
    ):
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    (folder / "tests" / "test.sh").chmod(0o755)
    return configured(folder)


def configured(folder: Path, **changes: object) -> Path:
    values = {
        "schema_version": "1.4",
        "task": {"name": "lab/till-7"},
        "metadata": {"repository": "shop/till", "license": "MIT"},
        "environment": {"docker_image": IMAGE, "workdir": "/testbed", "env": {"TZ": "UTC 1"}},
        "verifier": {"environment_mode": "separate", "env": {"DEPTH": "3"}},
    }
    (folder / "task.toml").write_text(tomli_w.dumps(values | changes), encoding="utf-8")
    return folder


def chain_of(folder: Path) -> Path:
    """A task of two steps; the second one's tests are laid over the task's."""
    single(folder)
    (folder / "instruction.md").unlink()
    for name, text in (("1", "Round as banks do."), ("2", "Count vouchers once.")):
        place = folder / "steps" / name
        (place / "solution").mkdir(parents=True)
        (place / "instruction.md").write_text(text)
        (place / "solution" / "solve.sh").write_text("#!/bin/bash\n")
    (folder / "steps" / "2" / "tests").mkdir()
    (folder / "steps" / "2" / "tests" / "vouchers.txt").write_text("1\n")
    (folder / "steps" / "2" / "workdir").mkdir()
    (folder / "steps" / "2" / "workdir" / "setup.sh").write_text("#!/bin/bash\n")
    return configured(folder, steps=[{"name": "1", "min_reward": 1.0}, {"name": "2"}])


class Played:
    """Trees as an engine would give them: each step adds a file, and between them upstream adds one."""

    def __init__(self, why: Exception | None = None) -> None:
        self.why, self.asked = why, 0

    def take(self, instance: Instance, store: TreeStore) -> str:
        raise AssertionError("a folder's trees are played")

    def play(self, instance: Instance, store: TreeStore) -> tuple[str, Sequence[StepTrees]]:
        self.asked += 1
        if self.why is not None:
            raise self.why
        files: dict[bytes, TreeEntry] = {}
        trees = []
        for step in instance.steps:
            files[b"upstream%d" % len(files)] = TreeEntry(FILE, store.write_blob(b"theirs\n"))
            base = store.write_tree(files)
            files[f"till{step.name}.py".encode()] = TreeEntry(FILE, store.write_blob(step.query.encode()))
            trees.append(StepTrees(base, store.write_tree(files)))
        return instance.workdir or "/app", trees


def take(store: Store, place: Path, path: Path, images: Played | None = None) -> tuple[ImportReport, list[ReadRow]]:
    told: list[ReadRow] = []
    importer = Importer(store, place / "data", place / "mirrors", None, images)
    return importer.run(read_instances(path), told.append), told


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_new(tmp_path / "p.db")


def read(folder: Path) -> ReadRow:
    (row,) = read_instances(folder)
    return row


def test_a_folder_of_several_steps_is_a_chain_whose_stages_have_its_tests_as_their_test_patch(
    tmp_path: Path, store: Store
) -> None:
    chain_of(tmp_path / "tasks" / "till-7")
    report, told = take(store, tmp_path, tmp_path / "tasks", Played())
    assert (report.imported, report.bad, report.waiting.total(), told) == (1, 0, 0, [])
    with store.reading() as tx:
        (id_,) = selected_ids(tx, "imported")
        chain = read_chain(tx, id_)
        said = read_published(tx, id_)
        assert list(tx.rows(TaskStage, "position", "query", "outcome")) == [
            (1, "Round as banks do.", "ready"),
            (2, "Count vouchers once.", "ready"),
        ]
        assert list(tx.rows(Chain, "length", "licence")) == [(2, "MIT")]
        assert list(tx.rows(Task, "outcome", "overview")) == [("ready", "")]
        assert [it.published for it in instances_of(tx, [id_]).values()] == ["till-7__s1", "till-7__s2"]
    git = open_git(chain, tmp_path / "mirrors")
    trees = open_trees(chain, git, tmp_path / "data")
    first, second = stage_patches(git, trees, chain.stages)
    assert (first.source, first.test) == (("till1.py",), (f"{TESTS}/expected/total.txt", f"{TESTS}/test.sh"))
    assert set(second.test) == {*first.test, f"{TESTS}/vouchers.txt"} and second.source == ("till2.py",)
    assert not any(path.startswith(TESTS.encode()) for it in chain.stages for path in trees.entries(it.base))
    landed = trees.entries(chain.stages[1].landed)
    assert landed[f"{TESTS}/test.sh".encode()].mode == "100755"
    runner = RUNNERS["harbor"].name
    assert [it for it in map(path_text, landed) if is_test_file(it, runner)] == [f"{TESTS}/test.sh"]
    assert said is not None and said.has_own_tests and said.changed == ("till1.py", "till2.py")
    assert (said.image, said.workdir) == (IMAGE, "/testbed")
    assert said.commands == ("export TZ='UTC 1'", "DEPTH=3 /tests/test.sh")


def test_a_folder_waits_for_its_image_and_is_taken_up_later_under_the_same_id(tmp_path: Path, store: Store) -> None:
    single(tmp_path / "till-7")
    report, _ = take(store, tmp_path, tmp_path / "till-7")
    assert report.waiting == {"shop/till": 1}
    report, _ = take(store, tmp_path, tmp_path / "till-7", Played(ImageError("there is no image")))
    assert report.waiting.total() == 1 and report.passed_over == {IMAGE: "there is no image"}
    images = Played()
    report, _ = take(store, tmp_path, tmp_path / "till-7", images)
    assert (report.imported, report.waiting.total(), images.asked) == (1, 0, 1)
    for again in (images, None):
        report, _ = take(store, tmp_path, tmp_path / "till-7", again)
        assert (report.known, report.imported, images.asked) == (1, 0, 1), "what was made is not made again"
    with store.reading() as tx:
        rows = list(tx.rows(ImportedTask, "patch", "workdir", "form"))
        assert rows == [("diff --git a/till.py b/till.py\n", "/testbed", "harbor")]
        assert list(tx.rows(ChainStage, "subject", "test_files")) == [("Round as banks do.", 2)]


def test_an_id_follows_from_what_lies_in_the_folder_and_not_from_where_it_lies(tmp_path: Path) -> None:
    one = single(tmp_path / "a" / "till-7")
    instance = read(one).instance
    assert instance is not None
    shutil.copytree(tmp_path / "a", tmp_path / "b" / "a")
    (other,) = (it.instance for it in read_instances(tmp_path / "b" / "a"))
    assert other is not None and other.chain_id == instance.chain_id
    (tmp_path / "b" / "a" / "till-7" / "tests" / "expected" / "total.txt").write_text("15\n")
    (other,) = (it.instance for it in read_instances(tmp_path / "b" / "a"))
    assert other is not None and other.chain_id != instance.chain_id
    assert replace(instance, patch="diff --git a/x b/x\n").chain_id == instance.chain_id


def without(name: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).unlink()


def written(name: str, content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)

    return write


def said(**changes: object) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        configured(folder, **changes)

    return write


def linked(folder: Path) -> None:
    (folder / "tests" / "data").symlink_to("/etc")


def piped(folder: Path) -> None:
    os.mkfifo(folder / "tests" / "pipe")


ENVIRONMENT = {"docker_image": IMAGE, "workdir": "/testbed"}
SWITCH = "python3 /opt/prchain/environment.py switch /opt/prchain/environments/2.gz"


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (written("task.toml", b"steps = [\n"), "task.toml is no TOML: "),
        (written("task.toml", b"a = '\xff'\n"), "task.toml is no UTF-8 text from byte 6 on"),
        (
            written("task.toml", b"x = " + b"[" * 100_000),
            "task.toml is no TOML that can be read: it is nested too deep",
        ),
        (without("instruction.md"), "it has no instruction.md"),
        (written("instruction.md", b"<!-- canary -->\n \n"), "instruction.md is blank: nothing is asked"),
        (without("tests/test.sh"), "it has no tests/test.sh"),
        (without("solution/solve.sh"), "it has no solution/solve.sh: without an oracle"),
        (said(environment={}), "it has no docker_image; build its image"),
        (said(environment={"docker_image": "--privileged"}), "environment.docker_image is '--privileged'"),
        (said(environment=ENVIRONMENT | {"workdir": "testbed"}), "environment.workdir is 'testbed'"),
        (said(environment=ENVIRONMENT | {"os": "windows"}), "environment.os is not linux"),
        (said(environment=[1]), "environment is no table"),
        (said(verifier={"environment": {"docker_image": IMAGE}}), "verifier.environment: its tests have an image"),
        (said(verifier={"env": {"KEY": "${KEY}"}}), "verifier.env takes KEY from the environment of who runs it"),
        (said(solution={"env": {"A B": "1"}}), "solution.env holds 'A B', which is no variable"),
        (said(steps=[]), "steps is no list of 1 to 100 tables"),
        (said(steps=[{"name": "../../etc"}]), "the name of step 1 is '../../etc', which is no name of a folder"),
        (said(steps=[{"name": "a"}]), "it has no steps/a/instruction.md"),
        (
            said(
                steps=[{"name": "a", "verifier": {"collect": [{"command": "x /opt/prchain/environment.py switch y"}]}}]
            ),
            "step a: verifier.collect: the next step has another environment",
        ),
        (said(artifacts=["/data/out.db"]), "the artifact '/data/out.db' lies outside of /testbed"),
        (said(task={"name": "lab/till 7"}), "task.name is 'till 7', which is no name of an instance"),
        (
            written("environment/docker-compose.yaml", b"services:\n  db:\n    image: x\n"),
            "docker-compose.yaml says more",
        ),
        (written("tests/Dockerfile", b"FROM x\n"), "tests/Dockerfile: its tests have an image of their own"),
        (linked, "tests/data is a link that leads out of the folder"),
        (piped, "tests/pipe is neither a file nor a folder"),
    ],
)
def test_a_malformed_folder_is_told_in_one_line_and_ends_no_other(
    tmp_path: Path, store: Store, spoil: Callable[[Path], None], words: str
) -> None:
    spoil(single(tmp_path / "tasks" / "bad"))
    configured(single(tmp_path / "tasks" / "good"), task={"name": "lab/good-1"})
    report, told = take(store, tmp_path, tmp_path / "tasks", Played())
    assert (report.imported, report.bad) == (1, 1)
    (line,) = map(str, told)
    assert words in line and line.startswith(f"{tmp_path}/tasks/bad: ") and "\n" not in line and len(line) < 400


def test_scripts_that_fail_and_oracles_that_do_nothing_are_the_folder_s_fault(tmp_path: Path, store: Store) -> None:
    single(tmp_path / "till-7")
    _, told = take(store, tmp_path, tmp_path / "till-7", Played(BadInstance("solve.sh ends with 2: no such file")))
    assert str(told[0]) == f"{tmp_path}/till-7: till-7: solve.sh ends with 2: no such file"

    class Idle(Played):
        def play(self, instance: Instance, store: TreeStore) -> tuple[str, Sequence[StepTrees]]:
            workdir, (trees,) = super().play(instance, store)
            return workdir, [StepTrees(trees.landed, trees.landed)]

    _, told = take(store, tmp_path, tmp_path / "till-7", Idle())
    assert "the oracle leaves the work folder as it was" in told[0].reason


def test_a_row_of_a_file_cannot_name_a_folder(tmp_path: Path) -> None:
    single(tmp_path / "till-7")
    file = tmp_path / "rows.jsonl"
    file.write_text(f'{{"task folder": "{tmp_path}/till-7"}}\n')
    assert "it is no folder with a task.toml" in read(file).reason


@pytest.mark.parametrize(
    ("reward", "statuses"),
    [
        ("1", {"reward": Status.passed}),
        (" 0.5\n", {"reward": Status.failed}),
        (".5", {"reward": Status.failed}),
        ('{"reward": 1.0, "f2p": 0.0}', {"reward": Status.passed}),
        ('{"style": 0, "speed": 2}', {"speed": Status.passed, "style": Status.failed}),
        ('{"reward": true}', {}),
        ('{"reward": NaN}', {}),
        ("inf", {}),
        ("{}", {}),
        ("", {}),
        ("1 of 3", {}),
        ('["1"]', {}),
    ],
)
def test_a_reward_of_one_passes_and_what_harbor_refuses_is_no_test(reward: str, statuses: dict[str, Status]) -> None:
    assert RUNNERS["harbor"].parse(reward) == statuses
