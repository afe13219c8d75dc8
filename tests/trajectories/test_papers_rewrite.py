"""The rewritten step of P2T's appendix I (getmoto/moto#6041, window 22, in our words), and its counterfactual: the gate
of code lets both through, since both name only what was seen; the judge refuses the claim of the second (J1)."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pytest

from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request, ToolCall
from prchain.core.llm.price import Price
from sql.ledger import SqlLedger
from sql.store import Store
from tests.databases import open_new
from tests.models import FakeModel
from trajectories.agents.scaffolds.turns import ParsedCall, read_turn
from trajectories.agents.steps.conversation import Step, steps_of, transcript
from trajectories.agents.tools.toolset import toolset
from trajectories.curation.windows.grounding import form_faults, unshown
from trajectories.curation.windows.judging import LlmClaimJudge
from trajectories.curation.windows.shown import observed
from trajectories.model import Entry, EntryKind

ROOTS = ("/testbed",)
FILE = "moto/ec2/responses/security_groups.py"
QUERY = (
    "ec2.describe_security_group_rules does not use filters: called with a group-id filter, it returns the rules of "
    "all security groups."
)
VIEWED = (
    "   186\t    def describe_security_groups(self):\n"
    "   190\t    def describe_security_group_rules(self):\n"
    "   196\t        group_id = self._get_param('GroupId')\n"
    "   197\t        filters = self._get_param('Filter')\n"
)
TOOLS = toolset("full")


def turn(step: int, words: str, tool: str, arguments: dict[str, Any], shown: str) -> list[Entry]:
    call = ToolCall("c", tool, json.dumps(arguments))
    return [
        Entry(2 * step, 1, 1, step, EntryKind.TURN, "assistant", words, tool_calls=(call,)),
        Entry(2 * step + 1, 1, 1, step, EntryKind.OBSERVATION, "tool", shown, tool_call_id="c", tool_name=tool),
    ]


PREFIX = [
    *turn(21, "Where is it?", "bash", {"command": "grep -rn describe_security_group_rules moto"}, f"{FILE}:190: def"),
    *turn(
        22,
        "I read the handler.",
        "str_replace_editor",
        {"command": "view", "path": f"/testbed/{FILE}", "view_range": [186, 210]},
        VIEWED,
    ),
]
EMPTY_THOUGHT = steps_of(
    turn(23, "", "bash", {"command": "grep -n describe_security_group_rules moto/ec2/models"}, "")
)[0]

SIBLING = Reply(
    "Before I go deeper, I look at how describe_security_groups in the same file reads its filters.",
    "curator",
    tool_calls=(
        ToolCall(
            "c", "bash", json.dumps({"command": f"grep -n 'def describe_security_groups\\|filters' {FILE} | head -20"})
        ),
    ),
)
LEAP = Reply(
    "_get_param looks its name up exactly, which is why 'Filter' never fits; I confirm it in the handler.",
    "curator",
    tool_calls=(ToolCall("c", "bash", json.dumps({"command": f"grep -n _get_param {FILE}"})),),
)


def in_repository(words: Collection[str]) -> set[str]:
    """Of these words those that the repository defines."""
    return set(words) & {"describe_security_groups", "describe_security_group_rules", "_get_param", "filters"}


def parsed(reply: Reply) -> tuple[ParsedCall, ...]:
    return read_turn(reply, reply.tool_calls, TOOLS.tools, TOOLS.ending).calls


@pytest.mark.parametrize("reply", [SIBLING, LEAP])
def test_code_finds_nothing_in_either(reply: Reply) -> None:
    shown = observed(QUERY, PREFIX, ROOTS)
    assert form_faults(reply.text, parsed(reply), EMPTY_THOUGHT) == []
    assert unshown(reply.text, parsed(reply), shown, in_repository, ROOTS) == []


def test_the_helper_that_nobody_has_seen_is_found_by_code() -> None:
    reply = Reply(
        "The other handlers use _filters_from_querystring, so I look at that.",
        "curator",
        tool_calls=(ToolCall("c", "bash", json.dumps({"command": "grep -rn _filters_from_querystring moto/ec2"})),),
    )
    faults = unshown(reply.text, parsed(reply), observed(QUERY, PREFIX, ROOTS), in_repository, ROOTS)
    assert {fault.words for fault in faults} == {"name _filters_from_querystring was not shown"}


def test_the_judge_refuses_the_claim_alone(tmp_path: Any) -> None:
    def answer(request: Request) -> str:
        """A reader of the prompt: the body of `_get_param` was not shown."""
        text = request.messages[-1].content
        proposed = text[text.index("<<<proposed step") :]
        body_seen = "def _get_param" in text
        claims = "_get_param looks its name up exactly" in proposed
        reasons = ["J1: it says what _get_param does before its body was shown"] if claims and not body_seen else []
        return json.dumps({"valid": not reasons, "reasons": reasons})

    store: Store = open_new(tmp_path / "prchain.db")
    gateway = Gateway(SqlLedger(store, "run"), default=Route(FakeModel(answer), Price(1.0, 1.0)))
    judge = LlmClaimJudge(gateway, sample=0)

    def verdict(reply: Reply) -> list[str]:
        entry = Entry(0, 1, 1, 23, EntryKind.TURN, "assistant", reply.text, tool_calls=reply.tool_calls)
        step: Step = steps_of([entry])[0]
        return [fault.rule for fault in judge.judge("t/1/1/2", QUERY, PREFIX, transcript([step.turn])).faults]

    assert verdict(SIBLING) == []
    assert verdict(LEAP) == ["J1"]
