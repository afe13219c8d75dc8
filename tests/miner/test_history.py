"""Lines through a history: which commit of a branch brought which commits in."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from miner.history import History, branch_commits, branch_line, default_line
from prchain.core.git import RawCommit
from tests.miner.gitworld import World, facts_of, git


def raw(sha: str, *parents: str, message: str = "m", email: str = "a@b", time: int = 1) -> RawCommit:
    return RawCommit(sha, parents, f"tree {sha}", "a", email, time, "c", time, message.encode())


def test_parents_outside_of_the_history_are_left_out() -> None:
    history = History([raw("b", "a", "missing"), raw("a")])
    assert history.parents == [(1,), ()]
    assert len(history) == 2


def test_subject_is_the_first_paragraph_on_one_line() -> None:
    history = History([raw("a", message="\none\ntwo\n\nthree"), raw("b", message=""), raw("c", message="x\r\n\r\ny")])
    assert [history.subject(n) for n in range(2)] == ["one two", ""]


def test_signature_forgets_the_number_at_the_end_of_a_subject() -> None:
    texts = ["Fix a", "Fix a (#12)", "Fix a (gh-12)", "Fix a (GH-12)\n\nbody"]
    other = ["Fix a (once)", "Fix (#12) a", "(#12) Fix a", "Fix a (#1) b"]
    history = History([raw(str(n), message=text) for n, text in enumerate(texts + other)])
    assert len({history.signature(n) for n in range(len(texts))}) == 1
    assert len({history.signature(n) for n in range(len(texts) + len(other))}) == 1 + len(other)


def test_signature_tells_authors_and_times_apart() -> None:
    history = History([raw("a"), raw("b", email="x@y"), raw("c", time=2)])
    assert len({history.signature(n) for n in range(3)}) == 3


def test_a_history_of_a_hundred_thousand_commits_needs_no_deep_stack() -> None:
    count = 100_000
    history = History(raw(str(n), *([str(n + 1)] if n + 1 < count else [])) for n in range(count))
    line = default_line(history, "main", 0)
    assert (line.order(0), line.order(count - 1), line.at(0)) == (count - 1, 0, count - 1)


@st.composite
def graphs(draw: st.DrawFn) -> list[tuple[str, list[int]]]:
    """Commits as (branch or nothing, parents): random shapes with merges, roots, criss-crosses and octopuses."""
    commits: list[tuple[str, list[int]]] = []
    for number in range(1, draw(st.integers(2, 14)) + 1):
        parents = draw(st.lists(st.integers(1, number - 1), max_size=3, unique=True)) if number > 1 else []
        commits.append((draw(st.sampled_from(["main", "v1", "x", ""])), parents))
    commits.append(("main", draw(st.lists(st.integers(1, len(commits)), min_size=1, max_size=2, unique=True))))
    return commits


@settings(max_examples=20, deadline=None)
@given(graphs())
def test_positions_are_what_git_says_of_ancestry(graph: list[tuple[str, list[int]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "r.git")
        for number, (branch, parents) in enumerate(graph, 1):
            world.commit(branch or None, {"f": str(number)}, str(number), parents=parents)
        world.pull(1, "main")
        history = facts_of(world).history
        tips = {b: history.index[world.sha(b)] for b in ("main", "v1", "x") if f"refs/heads/{b}" in world.refs}
        trunk = default_line(history, "main", tips.pop("main"))
        lines = [trunk]
        for branch, tip in tips.items():
            commits, fork = branch_commits(history, tip, trunk)
            if commits:
                lines.append(branch_line(history, branch, commits, fork, trunk))
        for line in lines:
            plain = git(world.path, "rev-list", "--first-parent", "--reverse", line.branch).split()
            assert [history.shas[c] for c in line.commits] == plain[line.fork + 1 :] or line.fork >= 0
            known: dict[str, int] = {}
            for position, commit in enumerate(line.commits, line.fork + 1):
                for sha in git(world.path, "rev-list", history.shas[commit]).split():
                    known.setdefault(sha, position)
            for commit, sha in enumerate(history.shas):
                order = line.order(commit)
                assert (order is not None) == (sha in known)
                if order is not None and order > line.fork:
                    assert order == known[sha]
                assert line.position(commit) == (order if commit in line.commits else None)
