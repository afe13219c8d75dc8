"""What the pages of curation and guidance say of a window, a graph and a finding."""

from __future__ import annotations

from typing import Any

import pytest

from prchain.view.curated import filled, why
from prchain.view.guided import passage_of
from prchain.view.process_graphs import picture
from trajectories.curation.windows.candidates import MALFORMED, OPEN
from trajectories.curation.windows.selection import CommitRule, FloorRule, FloorUnit, ScoredCandidate, choose


def candidate(number: int, effectiveness: float, length: int, outcome: str = OPEN, **more: Any) -> dict[str, Any]:
    counted = [["node"] * round(effectiveness * 10)]
    return {
        "number": number,
        "effectiveness": effectiveness,
        "length": length,
        "outcome": outcome,
        "counted": counted,
        "faults": [],
        "establishments": [],
        **more,
    }


def window(candidates: list[dict[str, Any]], commit: CommitRule = CommitRule.SHORTEST) -> dict[str, Any]:
    rule = FloorRule(0.5, FloorUnit.PROGRESS, 4)
    scored = [
        ScoredCandidate(it["number"], it["number"] < 2, it["effectiveness"], 0, it["length"])
        for it in candidates
        if it["outcome"] == OPEN
    ]
    chosen, how = choose(scored, rule, commit, "key")
    return {"chosen": chosen.number, "how": str(how), "floor": rule.height, "candidates": candidates}


@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        (
            [(0.9, 300), (0.6, 100), (0.2, 50)],
            ["longer: 300", "committed: the shortest", "below the floor: 0.20 of 0.5"],
        ),
        ([(0.3, 80), (0.4, 100)], ["less effective: 0.30, not 0.40", "committed: none clears the floor"]),
        ([(0.4, 80), (0.4, 100)], ["committed: none clears the floor", "longer: 100, not 80"]),
        ([(0.6, 80), (0.6, 80)], ["committed: the shortest", "as long and as effective"]),
        ([(0.8, 80), (0.6, 80)], ["committed: the shortest", "as long, and less effective"]),
    ],
)
def test_it_says_why_each_candidate_lost(candidates: list[tuple[float, int]], words: list[str]) -> None:
    rows = [candidate(number, *values) for number, values in enumerate(candidates)]
    of = window(rows)
    for row, start in zip(rows, words, strict=True):
        assert why(row, of, rows, FloorUnit.PROGRESS).startswith(start)


def test_a_rewrite_that_breaks_a_rule_is_no_candidate_and_says_which() -> None:
    faults = [{"rule": "C3", "words": "it calls no tool"}]
    rows = [candidate(0, 0.9, 80), candidate(2, 0.0, 0, MALFORMED, faults=faults)]
    assert why(rows[1], window(rows), rows, FloorUnit.PROGRESS) == "no candidate: malformed (C3: it calls no tool)"


def test_where_one_is_drawn_the_others_above_the_floor_were_not() -> None:
    rows = [candidate(0, 0.9, 80), candidate(1, 0.8, 90), candidate(2, 0.1, 10)]
    of = window(rows, CommitRule.RANDOM)
    said = sorted(why(row, of, rows, FloorUnit.PROGRESS) for row in rows)
    assert said == ["below the floor: 0.10 of 0.5", "committed: drawn of those above the floor", "not drawn"]


def test_only_committed_steps_fill_a_graph() -> None:
    own = [{"node": "early", "step": 1}, {"node": "late", "step": 6}]
    other = [{"node": "other", "step": 1}]
    candidates = [candidate(0, 1, 1, establishments=own), candidate(1, 1, 1, establishments=other)]
    first = {"step": 0, "committed": 5, "chosen": 0, "candidates": candidates}
    again = [{"node": "early", "step": 6}, {"node": "late", "step": 7}]
    second = {"step": 5, "committed": 5, "chosen": 0, "candidates": [candidate(0, 1, 1, establishments=again)]}
    assert filled([first, second]) == {"early": 1, "late": 7}


def test_a_node_stands_below_what_it_needs_and_a_wide_level_takes_more_rows() -> None:
    names = [f"fact{number}" for number in range(7)]
    nodes = [{"name": name, "kind": "static_fact", "level": 0, "statement": "word " * 60} for name in names]
    nodes.append({"name": "edit", "kind": "code_edit", "level": 1, "statement": "<b>short</b>"})
    edges = [
        {"source": "fact6", "target": "edit", "reason": "order"},
        {"source": "gone", "target": "edit", "reason": ""},
    ]
    drawn = picture(nodes, edges, {"fact0": 3})
    place = {node.name: (node.x, node.y) for node in drawn.nodes}
    assert len(set(place.values())) == 8
    assert place["fact0"][1] == place["fact4"][1] < place["fact5"][1] < place["edit"][1]
    assert all(
        node.x + drawn.node_width <= drawn.width and node.y + drawn.node_height <= drawn.height for node in drawn.nodes
    )
    assert all(len(node.lines) <= 2 for node in drawn.nodes) and len(drawn.lines) == 1 and drawn.lines[0].order
    assert [node.step for node in drawn.nodes if node.step] == [3]


def test_a_quote_is_shown_in_the_words_around_it() -> None:
    text = "a" * 1_000 + " the quote " + "b" * 1_000
    before, quote, after = passage_of(text, "the quote") or ("", "", "")
    assert quote == "the quote" and before.startswith("… a") and after.endswith("b …") and len(before + after) < 700
    assert passage_of(text, "another") is None and passage_of(text, " ") is None
