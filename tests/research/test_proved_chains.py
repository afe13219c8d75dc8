"""The list of proved chains, by which anyone can prove them again."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from pathlib import Path

from sql.strength import Worth


def test_every_chain_is_whole_and_each_stage_has_tests_that_show_its_work() -> None:
    with (Path(__file__).parents[2] / "research" / "proved_chains.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    positions = defaultdict(list)
    for row in rows:
        positions[row["repository"], row["chain"]].append(int(row["position"]))
        assert re.fullmatch("[0-9a-f]{40} [0-9a-f]{40}", f"{row['base']} {row['landed']}")
        assert int(row["f2p"]) > 0 <= int(row["p2p"])
        assert row["worth"] in {*Worth} - {Worth.NOT_MEASURED} and int(row["caught"]) <= int(row["undone"])
    assert all(found == list(range(1, len(found) + 1)) and len(found) > 1 for found in positions.values())
    assert len(positions) >= 15 and len({repository for repository, _ in positions}) >= 8
