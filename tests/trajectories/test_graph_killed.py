"""Process graphs whose process is killed at any moment: the rows at the end, and what is paid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.trajectories.graphworld import FALLEN, KEPT, graph_world

ROOT = Path(__file__).parents[2]


def test_killed_at_every_point_in_turn_a_run_leaves_the_rows_of_a_calm_one_and_pays_no_stored_reply_twice(
    tmp_path: Path,
) -> None:
    for name in ("calm", "rough"):
        (tmp_path / name).mkdir()
    with graph_world(tmp_path / "calm") as calm, graph_world(tmp_path / "rough") as rough:
        assert calm.run().run(1).counts == {"converged": 1}
        process = subprocess.run(
            [sys.executable, "-m", "tests.trajectories.graphkills", str(rough.folder)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        points = [json.loads(line) for line in (rough.folder / "points").read_text().splitlines()]
        assert len(points) >= 100
        assert {point[0] for point in points} >= {"before", "after", "request", "exec", "write", "snapshot", "restore"}
        assert rough.whole() == calm.whole()
        (name,) = rough.ids()
        assert rough.verdicts(name) == dict.fromkeys(KEPT, "keep") | FALLEN
        assert max(Counter(rough.calls()).values()) == 1
        assert Counter(rough.calls()) == Counter(calm.calls())
        assert rough.calls("reserved"), "what was in flight counts as spent"
        rough.assert_sums()
