"""Landings whose files a mirror lacks: what the stages after mining say of them (issue 20, point 10)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import update

from prchain import cli
from sql.tables import Candidate, Landing, Task
from tests.chains.taskworld import CHAIN, TEST_COUPONS, TEST_RECEIPT, FakeModel, TaskWorld, good_answer, mined, shop
from tests.miner.gitworld import git


@pytest.fixture
def till(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskWorld]:
    """The shop, mined whole, with one chain."""
    monkeypatch.chdir(tmp_path)
    with mined(tmp_path, shop(tmp_path), [CHAIN]) as world:
        yield world


def lose(world: TaskWorld, content: str) -> Callable[[], Path]:
    """Take a file's content out of the repository; returns what brings it back."""
    repository = world.world.path
    name = git(repository, "hash-object", "--stdin", stdin=content.encode()).strip()
    stored = repository / "objects" / name[:2] / name[2:]
    away = stored.rename(world.folder / name)
    return partial(away.rename, stored)


def build_chains(
    world: TaskWorld, capsys: pytest.CaptureFixture[str], strategy: str, *more: str
) -> dict[int, tuple[str, str]]:
    """Outcome and reason of each candidate after a run that a user types."""
    options = ("--licence", "any", "--min-lines", "0", "--strategy", strategy, *more)
    with world.store.transaction() as tx:
        tx.delete(Candidate)
    status = cli.run(["chains", "build", "--db", world.database, *options])
    shown = capsys.readouterr()
    assert status == (1 if "no chain is chosen" in shown.err else 0)
    assert "Traceback" not in shown.out + shown.err
    return {
        number: (outcome, reason)
        for number, outcome, reason in world.rows(Candidate, "number", "outcome", "reason", strategy=strategy)
    }


@pytest.mark.parametrize("strategy", ["reference", "evidence"])
@pytest.mark.parametrize(("content", "number"), [(TEST_COUPONS, 2), (TEST_RECEIPT, 3)])
def test_a_landing_whose_patch_lacks_a_file_is_no_stage_and_says_what_to_do(
    content: str, number: int, strategy: str, till: TaskWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = build_chains(till, capsys, strategy)
    bring_back = lose(till, content)
    lacking = build_chains(till, capsys, strategy)
    outcome, reason = lacking[number]
    assert outcome == "patch_unreadable"
    assert "the mirror lacks files of its patch" in reason and "`prchain mine`" in reason
    assert [n for n, (outcome, _) in lacking.items() if outcome == "patch_unreadable"] == [number]
    bring_back()
    assert build_chains(till, capsys, strategy) == whole


def test_a_landing_on_a_tree_that_lacked_files_when_it_was_mined_is_no_stage(
    till: TaskWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = build_chains(till, capsys, "evidence")
    with till.store.transaction() as tx:
        tx.connection.execute(update(Landing).where(Landing.number == 3).values(missing_files=2))
    outcome, reason = build_chains(till, capsys, "evidence")[3]
    assert (outcome, whole[3][0] != outcome) == ("tree_incomplete", True)
    assert "lacked 2 files of the tree before it" in reason and "`prchain mine`" in reason
    kept = build_chains(till, capsys, "evidence", "--keep", "tree_incomplete")
    assert kept == whole


def test_a_chain_whose_files_are_lost_later_is_named_by_its_task_and_written_once_they_are_there(
    till: TaskWorld,
) -> None:
    model = FakeModel(good_answer)
    bring_back = lose(till, TEST_COUPONS)
    [result] = till.run(model).run().results
    assert result.outcome == "incomplete_repository"
    assert result.reason is not None and "\n" not in result.reason and "fetch the repository anew" in result.reason
    assert till.rows(Task, "outcome", "reason") == [("incomplete_repository", result.reason)]
    assert model.asked == [], "what cannot be read costs nothing"
    [unread] = till.run(model).estimate()[2]
    assert (unread.outcome, unread.reason) == ("incomplete_repository", result.reason)
    bring_back()
    assert [result.outcome for result in till.run(model).run().results] == ["ready"]
