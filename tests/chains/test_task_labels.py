"""`tasks build --labels` writes tasks for chains that people would keep."""

from __future__ import annotations

from pathlib import Path

import pytest

from prchain.core.errors import UsageError
from sql.label_filter import DROP, KEEP, LabelFilter
from sql.labels import write_label
from tests.chains.taskworld import FakeModel, crowd, mined


def test_chains_are_chosen_by_labels_and_those_left_out_are_counted(tmp_path: Path) -> None:
    with mined(tmp_path, crowd(tmp_path, 3), [[1], [2], [3]]) as world:
        first, second, third = (unit.chain_id for unit in world.run(FakeModel()).pending().units)
        with world.store.transaction() as tx:
            write_label(tx, first, "ann", DROP)
            write_label(tx, second, "bob", KEEP)
        taken = {}
        for wanted in LabelFilter:
            pending = world.run(FakeModel(), labels=wanted).pending()
            taken[str(wanted)] = ([unit.chain_id for unit in pending.units], pending.unlabelled)
        assert taken == {
            "any": ([first, second, third], 0),
            "undropped": ([second, third], 1),
            "kept": ([second], 2),
        }
        best = world.run(FakeModel(), labels=LabelFilter.UNDROPPED, limit=1).pending()
        assert [unit.chain_id for unit in best.units] == [second], "the best of those that are left"
        with pytest.raises(UsageError, match=f"people's labels leave chain {first} out of --labels undropped"):
            world.run(FakeModel(), labels=LabelFilter.UNDROPPED, chain=first).pending()
