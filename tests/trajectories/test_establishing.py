"""Which nodes the verifier is asked of, and which of its answers count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import ToolCall
from tests.memory_ledger import MemoryLedger
from tests.models import FakeModel
from trajectories.agents.steps.conversation import Step, steps_of, transcript
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.windows.establishing import LlmVerifier, StepFindings, fits, is_quoted, node_words
from trajectories.curation.windows.options import Asked
from trajectories.model import Entry, EntryKind


def step(words: str, *calls: tuple[str, str, str], error: str | None = None) -> Step:
    """A step with calls: tool, arguments in JSON, and what the observation shows."""
    tool_calls = tuple(ToolCall(f"c{place}", tool, arguments) for place, (tool, arguments, _) in enumerate(calls))
    entries = [Entry(0, 1, 1, 1, EntryKind.TURN, "assistant", words, tool_calls=tool_calls)]
    entries += [
        Entry(place + 1, 1, 1, 1, EntryKind.OBSERVATION, "tool", shown, tool_call_id=f"c{place}", error=error)
        for place, (_, _, shown) in enumerate(calls)
    ]
    [made] = steps_of(entries)
    return made


def node(kind: NodeKind, statement: str, tool: ActionTool, **action: Any) -> Node:
    return Node("n", kind, statement, Action(tool, **action))


VIEW = node(NodeKind.STATIC_FACT, "`load` takes a file", ActionTool.VIEW, path="src/shop/load.py", first=10, last=20)
PROBE = node(NodeKind.DYNAMIC_FACT, "load() fails", ActionTool.BASH, command="python -c 'import shop.load'")
PLAN = node(NodeKind.FIX_PLAN, "Close the file in `load_all`", ActionTool.THINK, thought="Close it.")
ANALYSIS = node(
    NodeKind.ISSUE_ANALYSIS,
    "The pool of `valid_factors` forgets where a part came from, so a word of one section goes with anything",
    ActionTool.THINK,
    thought="It is the header.",
)
EDIT = node(
    NodeKind.CODE_EDIT, "`load_all` closes", ActionTool.STR_REPLACE, path="src/shop/load.py", old="x", new="secret"
)

LOOK = ("str_replace_editor", '{"command": "view", "path": "/testbed/src/shop/load.py"}', "    10\tdef load_all(x):")
CAT = (
    "bash",
    '{"command": "cat src/shop/load.py"}',
    "<returncode>0</returncode>\n<output>\ndef load_all(x):\n</output>",
)
WRITE = (
    "str_replace_editor",
    '{"command": "str_replace", "path": "/testbed/src/shop/load.py", "new_str": "a b"}',
    "ok",
)
LONG = "I think that `load_all` never closes the file that it opened, so it has to."


@pytest.mark.parametrize(
    ("wanted", "taken", "fit"),
    [
        (VIEW, step("", LOOK), True),
        (VIEW, step("", CAT), True),
        (VIEW, step("", WRITE), False),
        (VIEW, step("", ("bash", '{"command": "ls docs"}', "index.md")), False),
        (PROBE, step("", LOOK), False),
        (PROBE, step("", ("bash", '{"command": "python -c \'import shop.load\'"}', "boom")), True),
        (PLAN, step(LONG), True),
        (PLAN, step("Go on.", LOOK), False),
        (ANALYSIS, step("What came from the header forgets its section, and anything goes with it then."), True),
        (ANALYSIS, step("The next thing that I would like to do here is something else altogether."), False),
        (PLAN, step("", ("think", '{"thought": "close it in load_all"}', "noted")), True),
        (EDIT, step("", WRITE), True),
        (EDIT, step("", LOOK), False),
        (EDIT, step("", ("bash", '{"command": "sed -i s/x/y/ src/shop/load.py"}', "")), True),
    ],
)
def test_a_node_fits_a_step_by_tool_and_by_something_that_both_name(wanted: Node, taken: Step, fit: bool) -> None:
    assert fits(wanted, taken, ("/testbed",)) is fit


def test_a_node_that_names_nothing_fits_any_step_of_its_tool() -> None:
    plain = node(NodeKind.STATIC_FACT, "There are few files", ActionTool.BASH, command="ls")
    assert fits(plain, step("", CAT))


@pytest.mark.parametrize(
    ("wanted", "taken", "evidence", "quoted"),
    [
        (VIEW, step("", LOOK), "def load_all(x):", True),
        (VIEW, step("", LOOK), "10\tdef load_all(x):", True),
        (VIEW, step("", LOOK), "def load_some(x):", False),
        (VIEW, step("def load_some(x):", LOOK), "def load_some(x):", False),
        (VIEW, step("", CAT), "</output>", False),
        (VIEW, step("", CAT), "  ", False),
        (PROBE, step("", ("bash", '{"command": "x"}', "<output>\n1\n</output>")), "1", True),
        (PROBE, step("", ("bash", '{"command": "x"}', "<output>\n21\n</output>")), "1", False),
        (PLAN, step(LONG), "never closes the file", True),
        (PLAN, step("", ("think", '{"thought": "I close it"}', "noted")), "I close it", True),
        (PLAN, step("", LOOK), "def load_all(x):", False),
        (EDIT, step("", WRITE), "a b", True),
        (EDIT, step("", WRITE, error="no_match"), "a b", False),
        (EDIT, step("", WRITE), "ok", False),
    ],
)
def test_evidence_is_a_quote_of_what_shows_the_node_in_the_step(
    wanted: Node, taken: Step, evidence: str, quoted: bool
) -> None:
    assert is_quoted(wanted, taken, evidence) is quoted


def test_readers_are_shown_of_an_edit_its_file_alone() -> None:
    assert "secret" not in node_words(EDIT)
    assert "src/shop/load.py" in node_words(EDIT)


def test_readers_are_shown_the_action_of_other_nodes() -> None:
    assert "python -c 'import shop.load'" in node_words(PROBE)
    assert "lines 10 to 20" in node_words(VIEW)
    assert "Close it." not in node_words(PLAN), "the thought is the proposer's, which knows the reference"


def test_a_transcript_has_all_but_the_system_message() -> None:
    entries = [
        Entry(0, 1, 1, 0, EntryKind.SYSTEM, "system", "be good"),
        Entry(1, 1, 1, 0, EntryKind.QUERY, "user", "do it"),
        *[entry for made in [step("why", LOOK)] for entry in (made.turn, *made.observations)],
    ]
    text = transcript(entries)
    assert "be good" not in text
    assert text.index("do it") < text.index("why") < text.index("def load_all")


class TestOfAllTheSession:
    """`est=prefix`: any step may show a node, which the latest one then completes."""

    EARLIER = "def load_all(x):"

    def asked(self, matched: int | None, evidence: str, asked: Asked = Asked.PREFIX) -> StepFindings:
        before = step("", CAT)
        [latest] = steps_of([
            Entry(9, 1, 1, 2, EntryKind.TURN, "assistant", "Nothing else calls it."),
            Entry(10, 1, 1, 2, EntryKind.OBSERVATION, "tool", "src/shop/load.py:10: load"),
        ])  # fmt: skip
        finding = {"id": "n", "established": True, "evidence": evidence, "reason": ""}
        reply = json.dumps({"nodes": [finding | ({"matched_action": matched} if asked is Asked.PREFIX else {})]})
        verifier = LlmVerifier(Gateway(MemoryLedger(), Route(FakeModel(lambda request: reply))), asked, sample=0)
        return verifier.established("t/1", "q", [before.turn, *before.observations], latest, [VIEW])

    def test_an_earlier_step_may_show_it_and_the_latest_one_establishes_it(self) -> None:
        found = self.asked(1, self.EARLIER)
        assert [(it.node, it.step) for it in found.established] == [("n", 2)]
        assert found.notes == ("step 2: n was shown by step 1",)

    def test_the_latest_step_may_show_it_as_ever(self) -> None:
        found = self.asked(2, "src/shop/load.py:10: load")
        assert [it.step for it in found.established] == [2] and not found.notes

    @pytest.mark.parametrize("matched", [None, 2, 7])
    def test_the_quote_stands_in_the_step_that_is_named(self, matched: int | None) -> None:
        found = self.asked(matched, self.EARLIER)
        assert not found.established
        assert found.notes == ("step 2: the evidence of n is not what the step shows",)

    def test_elsewhere_the_latest_step_alone_shows_it(self) -> None:
        assert not self.asked(None, self.EARLIER, Asked.EACH).established
