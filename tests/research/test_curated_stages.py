"""The rig of curated real stages: what its scripted models say, and what its report calls a fault."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from prchain.core.llm.model import Message, Reply, Request
from research.curated_stages.models import StageScript, StagesModel, calls_of
from research.curated_stages.report import faults, report
from research.curated_stages.runs import CuratedChain
from trajectories.curation.graphs.shapes import NodeReply

NODES = [
    {"id": "f1", "kind": "static_fact", "statement": "It is read", "observation": "1: x",
     "action": {"tool": "view", "path": "a.py", "first": 1, "last": 2}},
    {"id": "f2", "kind": "dynamic_fact", "statement": "It fails", "observation": "boom",
     "action": {"tool": "bash", "command": "cd /tmp && x"}},
    {"id": "p1", "kind": "fix_plan", "statement": "Mend it", "observation": "",
     "action": {"tool": "think", "thought": "I mend it."}},
]  # fmt: skip
STAGE = StageScript("Mend the reader of files.", {str(it["id"]): NodeReply.model_validate(it) for it in NODES})
RESULT = CuratedChain(
    "o/r", "c" * 16, "accepted", None, [(1, "accepted")], [(9, 10)], [], [], {"agent": 3}, 40, {"x": (1, 0.5)}, 2.0
)


def request(purpose: str, *messages: Message) -> Request:
    return Request(messages=messages, max_tokens=10, purpose=purpose, subject="t/1/1/0")


def walk() -> list[Reply]:
    """The agent's turns from the beginning to its submission."""
    model = StagesModel([STAGE])
    messages = [Message("system", "be good"), Message("user", f"<task>{STAGE.query}</task>")]
    replies: list[Reply] = []
    while not replies or replies[-1].tool_calls[0].name != "submit":
        reply = model.complete(request("agent", *messages))
        replies.append(reply)
        messages += [Message("assistant", reply.text, reply.tool_calls), Message("tool", "out", (), "c")]
    return replies


def test_the_agent_does_what_the_nodes_do_in_their_order_and_hands_in() -> None:
    done = [(call.name, json.loads(call.arguments)) for reply in walk() for call in reply.tool_calls]
    wanted = [(tool, dict(arguments)) for node in STAGE.nodes.values() for tool, arguments in calls_of(node)]
    assert [call for call in done if call in wanted] == wanted
    assert done[-1] == ("submit", {})
    assert len(done) > len(wanted) + 1, "some of its looks are wasted"


def test_a_command_that_changes_folders_leaves_the_session_where_it_was() -> None:
    [(_, arguments)] = calls_of(STAGE.nodes["f2"])
    assert arguments["command"] == "(cd /testbed; cd /tmp && x\n)"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (RESULT, []),
        (replace(RESULT, stages=[(1, "rejected")]), ["stage 1 is rejected"]),
        (replace(RESULT, outcome="defect", reason="boom"), ["the trajectory is defect: boom"]),
        (replace(RESULT, coverage=[(2, 10)]), ["only 2 of 10 nodes were established"]),
        (replace(RESULT, leaks=["curator: x"]), ["leak: curator: x"]),
    ],
)
def test_what_is_not_as_it_has_to_be_is_a_fault(result: CuratedChain, words: list[str]) -> None:
    assert faults(result) == words


def test_the_report_has_a_row_for_each_chain() -> None:
    text = report([RESULT])
    assert "| o/r | cccccccc | accepted | 1 | 9 of 10 |" in text
    assert text.endswith("1 of 1 chains as they have to be, with 1 stages")
