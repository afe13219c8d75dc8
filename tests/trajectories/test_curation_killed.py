"""Curated runs whose process is killed at any moment: the rows at the end, and what is paid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.trajectories.curationkills import WINDOWS, model
from tests.trajectories.curationworld import curation_world
from tests.trajectories.kills import ENOUGH

ROOT = Path(__file__).parents[2]


def test_killed_at_points_in_turn_a_curated_run_leaves_the_rows_of_a_calm_one_and_pays_no_stored_reply_twice(
    tmp_path: Path,
) -> None:
    for name in ("calm", "rough"):
        (tmp_path / name).mkdir()
    with curation_world(tmp_path / "calm") as calm, curation_world(tmp_path / "rough") as rough:
        trajectory = calm.curate(model(), windows=WINDOWS)
        process = subprocess.run(
            [sys.executable, "-m", "tests.trajectories.curationkills", str(rough.folder)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr[-3000:]
        points = [json.loads(line) for line in (rough.folder / "points").read_text().splitlines()]
        assert len(points) >= ENOUGH
        assert {point[0] for point in points} >= {"before", "after", "request", "branch", "snapshot", "restore"}
        assert rough.whole(trajectory) == calm.whole(trajectory)
        stored = Counter(rough.graphs.calls())
        assert max(stored.values()) == 1
        assert stored == Counter(calm.graphs.calls())
        assert rough.graphs.calls("reserved"), "what was in flight counts as spent"
