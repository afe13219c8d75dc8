"""`export --labels` takes trajectories over chains that people would keep."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sql.label_filter import DROP, KEEP, LabelFilter
from sql.labels import write_label
from tests.trajectories.sampleworld import sample_world
from tests.trajectories.test_export import run_export
from trajectories.export.options import ExportOptions
from trajectories.export.paired import _candidate_pairs, _set_options
from trajectories.export.pairs import SETS


def test_an_export_leaves_out_what_people_would_drop_and_counts_it(tmp_path: Path) -> None:
    with sample_world(tmp_path) as world:
        for number in (1, 2, 3):
            world.trajectory(f"t{number}", world.chain(f"c{number}", first=10 * number))
        with world.store.transaction() as tx:
            write_label(tx, "c1", "ann", KEEP)
            write_label(tx, "c2", "bob", DROP)
        taken = {}
        for wanted in LabelFilter:
            rows, report = run_export(world, tmp_path, labels=wanted, duplicates="keep")
            taken[str(wanted)] = ({row["metadata"]["chain_id"] for row in rows}, dict(report.left_out))
        assert taken["any"] == ({"c1", "c2", "c3"}, {})
        assert taken["undropped"] == ({"c1", "c3"}, {"unlabelled": 1})
        assert taken["kept"] == ({"c1"}, {"unlabelled": 2})
        assert report.card["options"]["labels"] == "kept"


@pytest.mark.parametrize("pairs", sorted(SETS))
def test_pairs_leave_it_out_too(tmp_path: Path, pairs: str) -> None:
    with sample_world(tmp_path) as world:
        world.trajectory("t1", world.chain("c1"))
        with world.store.transaction() as tx:
            write_label(tx, "c1", "ann", DROP)
        options = ExportOptions(pairs=pairs, labels=LabelFilter.UNDROPPED)  # type: ignore[arg-type]
        left_out: Counter[str] = Counter()
        with world.store.reading() as tx:
            assert _candidate_pairs(tx, options, _set_options(options), left_out) == []
        assert left_out["unlabelled"] == 1
