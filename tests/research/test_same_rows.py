"""That two databases hold the same facts is found out, and so is where they do not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from sqlalchemy import update

from research.same_rows.__main__ import main
from sql.store import Store
from sql.tables import Trajectory, TrajectoryMessage
from tests.trajectories.demoworld import Ran


def test_a_copy_is_the_same_and_another_word_in_a_message_is_not(
    finished_demo: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, other = finished_demo.folder / "prchain.db", tmp_path / "other.db"
    shutil.copy(first, other)
    store = Store.open(str(other))
    with store.transaction() as tx:
        tx.connection.execute(update(Trajectory).values(started_at="long ago", seconds=99.0, decided_by=None))
    assert main([str(first), str(other)]) == 0
    assert capsys.readouterr().out.endswith("the same facts\n")
    with store.transaction() as tx:
        found = (TrajectoryMessage.ordinal == 3, TrajectoryMessage.content != "")
        tx.connection.execute(update(TrajectoryMessage).where(*found).values(content="something else"))
    store.close()
    assert main([str(first), str(other)]) == 1
    output = capsys.readouterr().out
    assert "only in the second" in output and "something else" in output and "rows unlike" in output
