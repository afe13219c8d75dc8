from __future__ import annotations

import pytest

from prchain.core.suggest import meant, nearest


@pytest.mark.parametrize(
    ("name", "found"), [("worker", "workers"), ("WORKERS", "workers"), ("lim", None), ("", None), ("dB", "db")]
)
def test_the_nearest_name_is_found_where_one_is_near(name: str, found: str | None) -> None:
    assert nearest(name, ["db", "workers", "works_of_art"]) == found


def test_where_none_is_near_all_are_told() -> None:
    assert meant("zzz", iter(["db", "workers"]), "known are") == "known are db, workers"
    assert meant("wokers", iter(["db", "workers"]), "known are") == "did you mean workers?"
