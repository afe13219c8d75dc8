"""Every pull request has exactly one outcome, chosen by the strongest thing that is known."""

from __future__ import annotations

from itertools import product

import pytest

from miner.outcomes import OUTCOMES, Evidence, choose

EVERYTHING = [
    Evidence(landed, carried, state, merge, gone, has_head, git_read)
    for landed, carried, state, merge, gone, has_head, git_read in product(
        (None, "squash on main"),
        (None, "with #2"),
        (None, "open", "closed", "merged"),
        (None, "f" * 40),
        (None, "2024-01-01T00:00:00Z"),
        (True, False),
        (True, False),
    )
]


@pytest.mark.parametrize(
    ("evidence", "outcome", "reason"),
    [
        (Evidence(landed="squash on main"), "landed", "squash on main"),
        (Evidence(landed="squash on main", gone_at="2024", state="closed"), "landed", "squash on main"),
        (Evidence(gone_at="2024", state="open", carried="x"), "gone", "not on the forge since 2024"),
        (Evidence(carried="with #2", state="merged"), "carried", "with #2"),
        (
            Evidence(state="merged", merge_sha="f" * 40),
            "merged_unlocated",
            f"merge commit {'f' * 12}, not borne out by a branch",
        ),
        (Evidence(state="merged"), "merged_unlocated", "no merge commit named, not borne out by a branch"),
        (Evidence(state="merged", git_read=False), "merged_unlocated", "the git history was not read"),
        (Evidence(state="open"), "open", None),
        (Evidence(state="closed"), "closed", None),
        (Evidence(), "unlanded", None),
        (Evidence(has_head=False), "unlanded", "no pull head"),
    ],
)
def test_the_strongest_evidence_wins(evidence: Evidence, outcome: str, reason: str | None) -> None:
    assert choose(evidence) == (outcome, reason)


def test_every_combination_has_an_outcome_and_landed_is_landed() -> None:
    for evidence in EVERYTHING:
        outcome, _ = choose(evidence)
        assert outcome in OUTCOMES
        assert (outcome == "landed") == (evidence.landed is not None)
        assert outcome not in {"not_selected", "unsettled"}
