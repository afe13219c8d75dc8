"""The hand-written nodes of real stages: their files, and the edits that are derived from a patch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.git.trees import EXECUTABLE, TreeStore
from research.graph_stages.cases import HandChain, HandStage, WrongNode, read_chains
from research.graph_stages.edits import edits_of, replacements
from research.graph_stages.prepare import task_lines
from research.graph_stages.report import StageResult, report
from research.graph_stages.stage import made_by_hand
from research.graph_stages.wrong import Refusal
from tests.prchain.treeworld import Content, new_store, plant
from trajectories.curation.graphs.edits import EditedTree
from trajectories.curation.graphs.gates import form_faults
from trajectories.curation.graphs.nodes import NodeKind
from trajectories.curation.graphs.shapes import NodeReply, ProposerReply, check_proposal

CHAINS = read_chains()
STAGES = [(chain, stage) for chain in CHAINS for stage in chain.stages if stage.nodes]
NAMES = [f"{chain.repository}-{stage.position}-{chain.chain[:4]}" for chain, stage in STAGES]

RULES = {"R1", "R2", "R3", "R4", "R5", "R6", "H1", "H2", "H4", "S1"}

EDIT = NodeReply.model_validate(
    {
        "id": "edit1",
        "kind": "code_edit",
        "statement": "Edit 1",
        "action": {"tool": "str_replace", "path": "a.py", "old": "1", "new": "2"},
    }
)


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


# ---- the files


def test_several_repositories_and_later_stages_are_there() -> None:
    assert len(STAGES) >= 6
    assert len({chain.repository for chain, _ in STAGES}) >= 3
    assert sum(stage.position > 1 for _, stage in STAGES) >= 2


@pytest.mark.parametrize(("chain", "stage"), STAGES, ids=NAMES)
def test_a_stage_has_nodes_of_every_kind_in_good_form(chain: HandChain, stage: HandStage) -> None:
    check_proposal(ProposerReply(nodes=stage.nodes), 60)
    assert len(stage.nodes) >= 10
    assert {node.kind for node in stage.nodes} == {str(kind) for kind in NodeKind} - {"code_edit"}
    assert not [fault for node in stage.nodes for fault in form_faults(node.node(node.id, 1, ()))]


@pytest.mark.parametrize(("chain", "stage"), STAGES, ids=NAMES)
def test_every_wrong_node_names_a_rule_and_can_be_built(chain: HandChain, stage: HandStage) -> None:
    right = {node.id: node for node in stage.nodes} | {"edit1": EDIT, "edit2": EDIT}
    for wrong in stage.wrong:
        assert wrong.rule in RULES
        assert wrong.name[0].islower() and not wrong.name.endswith(".")
        assert wrong.reply(right) != right[wrong.of]


def test_forty_wrong_nodes_break_every_rule_that_code_decides() -> None:
    wrong = [wrong for _, stage in STAGES for wrong in stage.wrong]
    assert len(wrong) >= 40
    assert set(Counter(it.rule for it in wrong)) == RULES


@pytest.mark.parametrize(("chain", "stage"), STAGES, ids=NAMES)
def test_little_of_others_is_quoted(chain: HandChain, stage: HandStage) -> None:
    for node in stage.nodes:
        assert len(node.observation.strip().splitlines()) <= 4
        assert node.action.tool not in {"str_replace"}


def test_a_chains_task_is_made_of_a_plan_and_a_query_a_stage_and_an_overview() -> None:
    for chain in CHAINS:
        lines = list(task_lines(chain))
        assert [line["purpose"] for line in lines] == ["overview", *["plan", "query"] * len(chain.stages)]
        assert not any("\n" in line["reply"].get("overview", "").strip() for line in lines)


# ---- the report

RESULT = StageResult("o/n", 7, 2, "converged", None, (8, 8), (), 1, 17, 20, 5, 9.0, (), ())
WRONG = WrongNode(name="old line numbers", rule="R4", of="fact")


@pytest.mark.parametrize(
    "fault",
    [
        {"outcome": "insufficient"},
        {"facts": (7, 8)},
        {"facts": (0, 0)},
        {"unlike": ("a.py",)},
        {"lost": ("fact: R4: no",)},
        {"refusals": (Refusal(WRONG, ()),)},
        {"refusals": (Refusal(WRONG, ("R1",)),)},
    ],
)
def test_anything_that_is_not_as_it_has_to_be_is_told(fault: dict[str, Any]) -> None:
    assert RESULT.right
    assert not replace(RESULT, **fault).right


def test_a_wrong_node_that_came_through_stands_out() -> None:
    refusals = (Refusal(WRONG, ("R4",)), Refusal(WRONG, ()))
    text = report([replace(RESULT, refusals=refusals)])
    assert "refused by the rule that has to: 1 of 2." in text
    assert "- o/n #7, R4, old line numbers -> R4\n" in text
    assert "FAILED: o/n #7, R4, old line numbers -> CAME THROUGH" in text


# ---- the edits

LINES = "one\ntwo\nthree\nfour\nfive\n"
SAME = "same\n" * 6


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LINES, LINES.replace("three", "III")),
        (LINES, LINES.replace("three\n", "three\nand a half\n")),
        (LINES, LINES.replace("three\n", "")),
        (LINES, "zero\n" + LINES),
        (LINES, LINES.removeprefix("one\n")),
        (LINES, LINES + "six\n"),
        (LINES, LINES.removesuffix("five\n")),
        (LINES, LINES.removesuffix("\n")),
        (LINES.removesuffix("\n"), LINES),
        (LINES.removesuffix("\n"), LINES.removesuffix("\n") + "\nsix"),
        (SAME, "same\n" * 3 + "other\n" + "same\n" * 3),
        (SAME, "same\n" * 5),
        (SAME, "same\n" * 8),
        (LINES + LINES, LINES + LINES.replace("three", "III")),
        (LINES + LINES, LINES.replace("two", "II") + LINES.replace("four", "IV")),
        ("a\n", ""),
        ("", "a\n"),
        ("a\r\nb\r\nc\r\n", "a\r\nB\r\nc\r\n"),
        ("a\r\nb\nc\r\n", "a\r\nb\r\nc\r\n"),
        ("\n\n\n", "\n\n"),
        ("x", "y"),
        ("päth\n", "pfad\n"),
    ],
)
def test_derived_edits_make_the_target(store: TreeStore, before: str, after: str) -> None:
    assert _edited(store, {"a.py": before, "kept": "k"}, {"a.py": after, "kept": "k"}) == 0


def test_files_come_go_and_move(store: TreeStore) -> None:
    before: dict[str | bytes, Content] = {"old.py": "1\n", "moved.py": "2\n", "run.sh": (EXECUTABLE, "3\n")}
    after: dict[str | bytes, Content] = {
        "new.py": "4\n",
        "to/moved.py": "2\n",
        "run.sh": (EXECUTABLE, "5\n"),
        "e": "",
    }
    assert _edited(store, before, after) == 0


@given(
    st.lists(st.sampled_from(["a\n", "b\n", "\n", "a b\n"]), min_size=1, max_size=12),
    st.lists(st.sampled_from(["a\n", "b\n", "\n", "a b\n", "c\n"]), max_size=12),
    st.sampled_from(["", "a", "c"]),
)
def test_replacements_make_any_text_of_any_other(before: list[str], after: list[str], last: str) -> None:
    text, wanted = "".join(before), "".join(after) + last
    for old, new in replacements(text, wanted):
        assert text.count(old) == 1
        text = text.replace(old, new)
    assert text == wanted


def _edited(store: TreeStore, before: dict[str | bytes, Content], after: dict[str | bytes, Content]) -> int:
    """How many paths differ from the target after the derived edits."""
    start, target = plant(store, before), plant(store, after)
    changes = store.diff(start, target)
    tree = EditedTree(store, store.entries(start))
    nodes = [reply.node(reply.id, 1, ()) for reply in edits_of(store, changes)]
    assert not [fault for node in nodes for fault in form_faults(node)]
    assert len({node.hash for node in nodes}) == len(nodes)
    assert not tree.apply_all(nodes)
    by_hand = EditedTree(store, tree.entries)
    for node in nodes:
        by_hand.changed |= made_by_hand(node, by_hand.read)
    assert by_hand.changed == tree.changed
    return sum(tree.blob(change.path) != (change.new.blob if change.new else None) for change in changes)
