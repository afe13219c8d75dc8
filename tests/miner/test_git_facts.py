"""The git source on generated histories: what was built is what is found, and what plain git says."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from miner.git_facts import Refs, count_lines, read_refs
from prchain.core.git import GitRepository, process
from tests.miner.gitworld import GITHUB, LINK, SUBMODULE, Content, Landed, Reading, World, git, lines

NUMBERED = {
    "merge": "Merge pull request #{} from bob/x",
    "queue": "Auto merge of #{} - bob:x, r=ada",
    "squash": "Change (#{})",
    "trailer": "Change\n\nPR-URL: https://github.com/o/r/pull/{}",
    "old squash": "Change (gh-{})",
}
STYLES = (*NUMBERED, "plain merge", "rebase", "numbered rebase", "fast forward", "open")


@dataclass(frozen=True)
class Step:
    """One pull request of a generated history."""

    style: str
    commits: int
    age: int
    """How many commits of the branch it was made before."""
    pushes: int
    """Direct pushes between its making and its landing."""
    branch: str


STEPS = st.lists(
    st.builds(
        Step,
        style=st.sampled_from(STYLES),
        commits=st.integers(1, 3),
        age=st.integers(0, 4),
        pushes=st.integers(0, 2),
        branch=st.sampled_from(["main", "main", "main", "v1"]),
    ),
    min_size=1,
    max_size=9,
)


def first_parents(world: World, branch: str) -> list[int]:
    found = [world.made(branch).number]
    while world.made(found[-1]).parents:
        found.append(world.made(found[-1]).parents[0])
    return found


def play(world: World, steps: list[Step]) -> dict[int, Landed]:
    """Build the history; returns what must be found of each landing, without its evidence."""
    world.commit("main", {"README.md": "hi"}, "start", author="admin")
    world.branch("v1", world.commit("main", {"core.py": lines("core")}, "core", author="admin"))
    expected = {}
    for number, step in enumerate(steps, 1):
        author = f"dev {number}"
        # Numberless landings are told on the default branch alone.
        branch = step.branch if step.style in NUMBERED or step.style == "numbered rebase" else "main"
        line = first_parents(world, branch)
        start = line[0] if step.style == "fast forward" else line[min(step.age, len(line) - 1)]
        files: list[dict[str | bytes, Content]] = [{f"p{number}/{n}.py": lines(number, n)} for n in range(step.commits)]
        head = world.propose(number, *files, base=start, author=author)
        if step.style != "fast forward":
            for push in range(step.pushes):
                world.commit(branch, {"pushed.txt": f"{number} {push}"}, f"push {number} {push}", author="admin")
        base = world.made(branch).number
        if step.style == "open":
            continue
        if step.style in ("merge", "queue", "plain merge"):
            message = NUMBERED.get(step.style, "Merge branch 'x'").format(number)
            found = ("merge", world.merge(branch, head, message))
        elif step.style in ("rebase", "numbered rebase"):
            numbered = step.style == "numbered rebase"
            landed = world.rebase(branch, head, suffix=f" (#{number})" if numbered else "")
            found = ("squash" if numbered and step.commits == 1 else "rebase", landed[-1])
        elif step.style == "fast forward":
            found = ("fast_forward", world.branch("main", head))
        else:
            found = ("squash", world.squash(branch, head, NUMBERED[step.style].format(number)))
        expected[number] = Landed(found[0], base, found[1], branch, None)
    return expected


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_what_was_built_is_what_is_found(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "r.git")
        expected = play(world, steps)
        found = Reading(world)
        landed = {n: Landed(x.style, x.base, x.commit, x.branch, None) for n, x in found.landed.items()}
        assert landed == expected
        for number, step in enumerate(steps, 1):
            head = world.refs[f"refs/pull/{number}/head"]
            assert found.own(number) == list(range(head - step.commits + 1, head + 1))
        assert [number for number in found.carried if number in landed] == []


def test_own_commits_of_a_merge_are_what_rev_list_says(tmp_path: Path) -> None:
    world = World(tmp_path / "r.git")
    world.commit("main", {"a": "1"}, "start")
    world.branch("x", "main")
    world.commit("x", {"x": "1"}, "one", author="bob")
    push = world.commit("main", {"b": "1"}, "push")
    synced = world.commit("x", {"b": "1"}, "Merge main", parents=[world.made("x").number, push], author="bob")
    world.commit("x", {"x": "2"}, "two", author="bob")
    later = world.commit("main", {"b": "2"}, "push")
    head = world.pull(1, "x")
    merge = world.merge("main", head, "Merge pull request #1 from bob/x")
    found = Reading(world)
    plain = git(world.path, "rev-list", "--reverse", "--topo-order", world.sha(head), f"^{world.sha(later)}").split()
    assert world.shas(found.own(1)) == plain
    assert synced in found.own(1)
    assert found.landed[1].commit == merge


@pytest.fixture
def moved(tmp_path: Path) -> World:
    """A landing with renames, and one without; removed and added paths of both."""
    world = World(tmp_path / "r.git")
    world.commit("main", {**{f"{n}.py": lines(n) for n in "abcd"}, "sub": (SUBMODULE, b"1" * 40)}, "start")
    first = world.propose(
        1,
        {
            "a.py": None,
            "lib/a.py": lines("a") + "x\n",
            "b.py": lines("b", 2),
            "sub": None,
            "dep": (SUBMODULE, b"1" * 40),
        },
    )
    world.commit("main", {"pushed": "1"}, "push")
    world.squash("main", first, "Move a (#1)")
    second = world.propose(2, {"c.py": None, "lib/c.py": lines("c") + "x\n", "link": (LINK, b"d.py")})
    world.commit("main", {"pushed": "2"}, "push")
    world.merge("main", second, "Merge pull request #2 from bob/x")
    world.save()
    return world


def files_of(world: World) -> dict[int, dict[str, str]]:
    found = Reading(world)
    repository = GitRepository.open(world.path)
    return {n: {c.path: c.status for c in changes} for n, changes in found.facts.files(repository, found.landed)}


def make_partial(world: World) -> None:
    """Let it look like a partial clone that lacks a file."""
    lose(world, "lib/a.py")
    with (world.path / "config").open("a") as config:
        config.write('[remote "origin"]\n\turl = /nowhere\n\tpromisor = true\n')


def lose(world: World, name: str) -> None:
    blob = git(world.path, "rev-parse", f"main:{name}").strip()
    (world.path / "objects" / blob[:2] / blob[2:]).unlink()


MOVED = {
    1: {"lib/a.py": "R", "b.py": "M", "dep": "R"},
    2: {"lib/c.py": "R", "link": "A"},
}


class TestFiles:
    def test_are_those_of_plain_git_with_renames(self, moved: World) -> None:
        assert files_of(moved) == MOVED

    def test_a_missing_blob_costs_the_renames_of_its_own_patch(self, moved: World) -> None:
        lose(moved, "lib/a.py")
        assert files_of(moved) == {
            1: {"a.py": "D", "lib/a.py": "A", "b.py": "M", "sub": "D", "dep": "A"},
            2: MOVED[2],
        }

    def test_a_missing_blob_of_a_changed_file_costs_no_rename(self, moved: World) -> None:
        lose(moved, "b.py")
        assert files_of(moved) == MOVED

    def test_a_partial_clone_gives_up_renames_at_once(self, moved: World) -> None:
        make_partial(moved)
        assert {status for files in files_of(moved).values() for status in files.values()} == {"A", "D", "M"}


class TestCounts:
    def test_with_and_without_a_missing_blob(self, moved: World) -> None:
        lose(moved, "b.py")
        found = Reading(moved)
        repository = GitRepository.open(moved.path)
        files = dict(found.facts.files(repository, found.landed))
        pairs = [(moved.sha(found.landed[n].base), moved.sha(found.landed[n].commit)) for n in (1, 2)]
        counted = list(count_lines(repository, pairs, [files[n] for n in (1, 2)]))
        assert {p: (c.additions, c.deletions) for p, c in counted[0].items() if p != "dep"} == {"lib/a.py": (1, 0)}
        assert {p: (c.additions, c.deletions) for p, c in counted[1].items()} == {"lib/c.py": (1, 0), "link": (1, 0)}

    def test_of_a_partial_clone_are_none(self, moved: World) -> None:
        make_partial(moved)
        repository = GitRepository.open(moved.path)
        assert list(count_lines(repository, [("a", "b")] * 2, [[], []])) == [{}, {}]


def test_git_processes_do_not_grow_with_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []
    real = process.GitStream.__enter__

    def enter(stream: Any) -> Any:
        started.append(stream._verb)
        return real(stream)

    monkeypatch.setattr(process.GitStream, "__enter__", enter)
    counts = []
    for size in (1, 6):
        world = World(tmp_path / f"{size}.git")
        play(world, [Step(style, 2, 1, 1, "v1" if style == "squash" else "main") for style in STYLES * size])
        started.clear()
        found = Reading(world)
        repository = GitRepository.open(world.path)
        assert len(list(found.facts.files(repository, found.landed))) == len(found.landed) >= 9 * size
        counts.append(len(started))
    assert counts[0] == counts[1] <= 20


class TestFingerprint:
    def refs(self) -> Iterator[Refs]:
        yield Refs("main", {"main": "1", "a": "2"}, {1: "3", 2: "4"})
        yield Refs("a", {"main": "1", "a": "2"}, {1: "3", 2: "4"})
        yield Refs("main", {"main": "1"}, {1: "3", 2: "4"})
        yield Refs("main", {"main": "2", "a": "2"}, {1: "3", 2: "4"})
        yield Refs("main", {"main": "1", "a": "2"}, {1: "3"})
        yield Refs("main", {"main": "1", "a": "2"}, {1: "3", 3: "4"})

    def test_differs_with_every_ref_and_not_with_their_order(self) -> None:
        assert len({refs.fingerprint for refs in self.refs()}) == 6
        assert Refs("main", {"a": "2", "main": "1"}, {2: "4", 1: "3"}).fingerprint == next(self.refs()).fingerprint


def test_heads_of_refs_are_read_at_one_moment(moved: World) -> None:
    refs = read_refs(GitRepository.open(moved.path), GITHUB.pull_heads)
    assert (refs.default_branch, set(refs.branches), set(refs.heads)) == ("main", {"main"}, {1, 2})
