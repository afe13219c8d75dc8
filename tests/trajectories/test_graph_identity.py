"""The ids of process graphs: by them a stored graph is found again, and what it cost is not paid twice."""

from __future__ import annotations

from typing import Any

from trajectories.curation.graphs.identity import GraphIdentity


def test_ids_are_those_that_were_made_when_the_rule_was_written_in_whatever_order_fields_come() -> None:
    # A change here is a change of every stored id: then a run would make every graph anew.
    chain = "5f0c" * 4
    assert GraphIdentity(chain, 1, "aa", "bb", "cc", "dd", version="1").id == "9a1327e961b8b8dd"
    models: dict[str, dict[str, Any]] = {"proposer": {"model": "m", "temperature": 0.5}, "critic": {"model": "c"}}
    for order in (models, dict(reversed(models.items()))):
        whole = GraphIdentity(
            chain, 1, "aa", "bb", "cc", "dd", order, {"critic": "2"}, "ee", {"rounds": 2, "backend": "local"}, "1"
        )
        assert whole.id == "5cf231c6bbb3aaae"
