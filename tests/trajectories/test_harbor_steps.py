"""What happens between two steps of an exported chain: our own rule of state, with what the script ships alone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

from environments.checkouts.state import next_state
from environments.stages import Stage, StagePatch
from prchain.core.errors import UsageError
from prchain.core.git.trees import TreeStore
from tests.prchain.treeworld import Content, new_store, plant
from tests.trajectories.harborworld import Files, lay, stage_world, take
from trajectories.export.tasks.harbor.drift import setup_script, step_pack, step_said
from trajectories.export.tasks.harbor.inside.plain_git import PlainStore
from trajectories.export.tasks.harbor.inside.said import StageSaid, paths_of
from trajectories.export.tasks.harbor.inside.step import move_folder, next_tree
from trajectories.export.tasks.harbor.inside.work_tree import FolderRules, tree_of_folder
from trajectories.export.tasks.harbor.objects import graders_pack

BASE_1: Files = {
    ".gitignore": "*.log\n",
    "app.py": "".join(f"line {number}\n" for number in range(20)),
    "other.py": "".join(f"other {number}\n" for number in range(20)),
    "tests/test_app.py": "old test\n",
    "docs/page": "a page\n" * 9,
}
LANDED_1: Files = {
    **BASE_1,
    "app.py": BASE_1["app.py"].replace("line 3\n", "THE REFERENCE DID THIS\n"),
    "reference_only.py": "A FILE OF THE REFERENCE\n" * 3,
    "tests/test_app.py": "test of stage 1\n",
}
BASE_2: Files = {
    **LANDED_1,
    "app.py": LANDED_1["app.py"].replace("line 16\n", "upstream did this\n"),
    "docs/moved": LANDED_1["docs/page"],
    "upstream.py": "new upstream\n",
    "tests/test_app.py": "test of stage 1\nmore\n",
}
del BASE_2["docs/page"]
LANDED_2: Files = {**BASE_2, "app.py": BASE_2["app.py"].replace("line 9\n", "THE SECOND REFERENCE\n")}

AGENTS: dict[str, Files] = {
    "the reference": LANDED_1,
    "nothing": BASE_1,
    "another way": {**BASE_1, "app.py": BASE_1["app.py"].replace("line 5\n", "the agent's\n"), "mine.py": "mine\n"},
    "a conflict": {**BASE_1, "app.py": BASE_1["app.py"].replace("line 16\n", "the agent's\n")},
    "a file that upstream changed is gone": {path: text for path, text in BASE_1.items() if path != "app.py"},
    "a renamed file": {
        **{path: text for path, text in BASE_1.items() if path != "docs/page"},
        "docs/renamed": BASE_1["docs/page"] + "more\n",
    },
    "a folder in a file's place": {**BASE_1, "upstream.py": "the agent's own\n", "tests/test_app.py": "changed\n"},
}


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


def trees(files: Files) -> dict[str | bytes, Content]:
    found: dict[str | bytes, Content] = {}
    found.update(files.items())
    return found


def stages(store: TreeStore) -> tuple[Stage, Stage]:
    base, landed, later, last = (
        store.commit(plant(store, trees(files))) for files in (BASE_1, LANDED_1, BASE_2, LANDED_2)
    )
    return Stage(1, 1, base, landed, "2026-01-01"), Stage(2, 2, later, last, "2026-01-02")


PATCHES = [StagePatch(test_paths=(b"tests/test_app.py",))]


@pytest.fixture
def said(tmp_path: Path) -> StageSaid:
    return stage_world(tmp_path / "world").said


def of_the_hook(store: TreeStore, said: StageSaid, agent: Files, place: Path) -> tuple[str, str]:
    """S_t by the script's own pack and the agent's files alone, and by our own rule."""
    before, stage = stages(store)
    step = step_said(store, before, stage, PATCHES, said)
    own = PlainStore.made(place)
    take(own, step_pack(store, step))
    found = next_tree(own, step, plant(own, trees(agent))).tree
    ours = next_state(
        store,
        landed_before=before.landed,
        agent_tree=plant(store, trees(agent)),
        base=stage.base,
        test_paths=sorted(paths_of(step.test_paths)),
    )
    return found, ours.tree


@pytest.mark.parametrize("way", AGENTS)
def test_the_script_gives_the_tree_of_our_own_rule(store: TreeStore, said: StageSaid, tmp_path: Path, way: str) -> None:
    found, ours = of_the_hook(store, said, AGENTS[way], tmp_path / "hook.git")
    assert found == ours


def test_so_it_does_for_agents_drawn_at_random(store: TreeStore, said: StageSaid, tmp_path: Path) -> None:
    dice = Random(48)
    for number in range(6):
        agent = dict(dice.choice([BASE_1, LANDED_1]))
        for path in dice.sample(sorted(agent), 3):
            lines = agent[path].splitlines(keepends=True)
            lines[dice.randrange(len(lines))] = f"drawn {number}\n"
            agent[dice.choice([path, f"new/{path}"])] = "".join(lines)
        del agent[dice.choice(sorted(set(agent) - {".gitignore"}))]
        found, ours = of_the_hook(store, said, agent, tmp_path / f"hook{number}.git")
        assert found == ours, agent


def test_the_script_ships_no_line_of_a_reference_that_is_to_come(
    store: TreeStore, said: StageSaid, tmp_path: Path
) -> None:
    before, stage = stages(store)
    own = PlainStore.made(tmp_path / "hook.git")
    take(own, step_pack(store, step_said(store, before, stage, PATCHES, said)))
    with own.stream("cat-file", "--batch", "--batch-all-objects") as output:
        shipped = output.read()
    assert b"upstream did this" in shipped
    # Nor what of the earlier reference upstream left as it was: the agent has work of its own in that place.
    assert b"THE SECOND REFERENCE" not in shipped and b"A FILE OF THE REFERENCE" not in shipped


def _has_new_python() -> bool:
    asked = ["/usr/bin/python3", "-c", "import sys; print(sys.version_info >= (3, 11))"]
    return subprocess.run(asked, capture_output=True, check=True).stdout.strip() == b"True"


def hostile(folder: Path, marks: Path) -> None:
    """What an agent can leave: hooks, filters, drivers, programs that take the place of git's."""
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q"], check=True, capture_output=True)
    for name, value in {
        "filter.x.clean": f"touch {marks}/filter",
        "merge.x.driver": f"touch {marks}/driver",
        "core.fsmonitor": f"touch {marks}/monitor",
        "core.hooksPath": str(folder / "hooks"),
        "diff.external": f"touch {marks}/diff",
    }.items():
        subprocess.run([*git, "config", name, value], check=True)
    lay(
        folder,
        {".gitattributes": "*.py filter=x merge=x\n", "hooks/post-index-change": f"#!/bin/sh\ntouch {marks}/hook\n"},
    )
    (folder / "hooks/post-index-change").chmod(0o755)
    program = folder / "git"
    program.write_text(f"#!/bin/sh\ntouch {marks}/git\n", encoding="utf-8")
    program.chmod(0o755)


@pytest.mark.skipif(
    not (Path("/usr/bin/python3").exists() and Path("/usr/bin/git").exists()), reason="needs what images have"
)
def test_the_script_runs_in_a_hostile_folder_and_leaves_nothing(
    store: TreeStore, said: StageSaid, tmp_path: Path
) -> None:
    if not _has_new_python():
        pytest.skip("the machine's python3 is older than those of images")
    folder, marks = tmp_path / "agent", tmp_path / "marks"
    marks.mkdir()
    lay(folder, {**AGENTS["another way"], "made.log": "junk"})
    hostile(folder, marks)
    before, stage = stages(store)
    script = setup_script(store, before, stage, PATCHES, said, "canary")
    (folder / "setup.sh").write_bytes(script)
    left_before = set(Path("/var/tmp").glob("prchain-*"))
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "GIT_DIR": "/nonexistent", "PYTHONPATH": str(folder)}
    done = subprocess.run(["/bin/bash", "setup.sh"], cwd=folder, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(marks.iterdir())
    assert set(Path("/var/tmp").glob("prchain-*")) <= left_before
    agent = {
        **AGENTS["another way"],
        ".gitattributes": "*.py filter=x merge=x\n",
        "hooks/post-index-change": (folder / "hooks/post-index-change").read_text(encoding="utf-8"),
        "git": (folder / "git").read_text(encoding="utf-8"),
    }
    assert "upstream did this" in (folder / "app.py").read_text(encoding="utf-8")
    assert "the agent's" in (folder / "app.py").read_text(encoding="utf-8")
    assert (folder / "tests/test_app.py").read_text(encoding="utf-8") == BASE_2["tests/test_app.py"]
    assert not (folder / "setup.sh").exists() and not (folder / "docs/page").exists()
    assert {*agent, "made.log", "upstream.py", "docs/moved"} - {"docs/page"} == {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and ".git" not in path.relative_to(folder).parts[:1]
    }
    everything = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    objects = subprocess.run(
        ["git", "-C", str(folder), "cat-file", "--batch", "--batch-all-objects"], capture_output=True, check=True
    ).stdout
    for line in (b"THE REFERENCE DID THIS", b"A FILE OF THE REFERENCE", b"THE SECOND REFERENCE"):
        assert line not in everything + objects
    log = subprocess.run(["git", "-C", str(folder), "log", "--oneline"], capture_output=True, check=True).stdout
    assert log.count(b"\n") == 1
    status = subprocess.run(["git", "-C", str(folder), "status", "--short"], capture_output=True, check=True).stdout
    assert b"app.py" not in status


@pytest.mark.skipif(
    not (Path("/usr/bin/python3").exists() and Path("/usr/bin/git").exists()), reason="needs what images have"
)
@pytest.mark.parametrize(("way", "conflicts"), [("the reference", 0), ("another way", 0), ("a conflict", 1)])
def test_what_the_script_leaves_in_the_folder_is_s_t_where_upstream_drifted(
    store: TreeStore, said: StageSaid, tmp_path: Path, way: str, conflicts: int
) -> None:
    if not _has_new_python():
        pytest.skip("the machine's python3 is older than those of images")
    before, stage = stages(store)
    assert store.tree_of(before.landed) != store.tree_of(stage.base), "upstream has to have done something meanwhile"
    ours = next_state(
        store,
        landed_before=before.landed,
        agent_tree=plant(store, trees(AGENTS[way])),
        base=stage.base,
        test_paths=[b"tests/test_app.py"],
    )
    assert len(ours.conflicts) == conflicts
    folder = tmp_path / "agent"
    lay(folder, AGENTS[way])
    (folder / "setup.sh").write_bytes(setup_script(store, before, stage, PATCHES, said, "canary"))
    done = subprocess.run(["/bin/bash", "setup.sh"], cwd=folder, capture_output=True, check=True)
    assert done.stdout.decode() == f"{ours.tree}: {conflicts} conflicts\n", done.stderr
    rules = FolderRules(store.entries(before.base), before.base)
    own = PlainStore.open(tmp_path / "folder.git", [store.path])
    assert tree_of_folder(own, str(folder).encode(), rules) == ours.tree
    committed = ["git", "-C", str(folder), "rev-parse", "HEAD^{tree}"]
    assert subprocess.run(committed, capture_output=True, check=True, text=True).stdout.strip() == ours.tree


def test_a_script_that_cannot_do_it_leaves_the_tree_and_lets_the_step_begin(
    store: TreeStore, said: StageSaid, tmp_path: Path
) -> None:
    """Harbor ends a trial where it fails, and an agent could want that."""
    before, stage = stages(store)
    script = setup_script(store, before, stage, PATCHES, said, "canary")
    head, mark, _ = script.partition(b"\n# packed\n")
    folder = tmp_path / "agent"
    lay(folder, {"app.py": "the agent's\n"})
    (folder / "setup.sh").write_bytes(head + mark + b"AAAA\n")
    done = subprocess.run(["/bin/bash", "setup.sh"], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0 and done.stderr
    assert [path.name for path in folder.iterdir()] == ["app.py"]


def test_a_pack_has_the_same_bytes_however_the_store_holds_its_objects(store: TreeStore) -> None:
    numbers = [Random(number).random() for number in range(3000)]
    text = "".join(f"{number}\n" for number in numbers)
    commits = [
        store.commit(plant(store, {"tests/test_a.py": text + extra, "b": text[::-1] + extra})) for extra in ("", "more")
    ]
    loose = graders_pack(store, commits, (), {b"b"})
    git = ["git", f"--git-dir={store.path}"]
    for number, commit in enumerate(commits):
        subprocess.run([*git, "update-ref", f"refs/heads/{number}", commit], check=True)
    subprocess.run([*git, "-c", "pack.compression=1", "gc", "-q", "--prune=now"], check=True)
    assert not list(store.path.glob("objects/[0-9a-f][0-9a-f]")) and list(store.path.glob("objects/pack/*.pack"))
    assert graders_pack(store, commits, (), {b"b"}) == loose


def test_a_repository_with_a_setup_script_of_its_own_has_no_steps(
    store: TreeStore, said: StageSaid, tmp_path: Path
) -> None:
    with_script = store.commit(plant(store, trees({**BASE_2, "setup.sh": "echo\n"})))
    before, stage = stages(store)
    other = Stage(2, 2, with_script, with_script, stage.landed_at)
    with pytest.raises(UsageError, match=r"setup\.sh of its own"):
        setup_script(store, before, other, PATCHES, said, "canary")


def test_a_folder_is_moved_past_what_stands_in_the_way(tmp_path: Path) -> None:
    own = PlainStore.made(tmp_path / "own.git")
    before = plant(own, {"a": "1", "deep/er/file": "2", "keep": "3"})
    after = plant(own, {"a/b": "1", "keep": "4", "link/x": "5"})
    folder = tmp_path / "folder"
    lay(folder, {"a": "1", "deep/er/file": "2", "keep": "3", "junk.log": "j"})
    (folder / "link").symlink_to(tmp_path)
    move_folder(own, folder, before, after)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
        "a/b",
        "keep",
        "link/x",
        "junk.log",
    }
    assert not (tmp_path / "x").exists() and not (folder / "deep").exists()
