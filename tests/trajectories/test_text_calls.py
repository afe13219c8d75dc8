"""Calls as text: what is written is read back, damaged replies are read or told, and a stage is worked through."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.cli import run
from prchain.core.errors import UsageError
from prchain.core.llm.model import Message, Reply, Request, ToolCall, Usage
from sql.tables import Trajectory
from tests.models import FakeModel
from tests.trajectories.demoworld import Ran
from tests.trajectories.miniworld import on_the_path
from tests.trajectories.rolloutworld import PolicyReply, RolloutWorld, rollout_world, works
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.kinds import SCAFFOLDS
from trajectories.agents.scaffolds.text_calls import on_the_wire, parse, read, written
from trajectories.agents.scaffolds.turns import named_calls, read_turn
from trajectories.agents.tools.toolset import toolset
from trajectories.export.export import export
from trajectories.export.formats import chosen_format
from trajectories.export.options import ExportOptions
from trajectories.options import RolloutOptions
from trajectories.rollouts.rollout import roll
from trajectories.rows import read_entries

TOOLS = toolset("full")

NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,30}", fullmatch=True)
VALUE = st.text(max_size=200) | st.lists(st.sampled_from([
    "\n", " ", "\t", "x = 1", "<b>", "</b>", "<parameter", "</parameter>", "<function", "if a < b:", '"', "\\", "é",
]), max_size=12).map("".join)  # fmt: skip
"""Texts, and such as code and markup are made of."""


def is_plain(value: str) -> bool:
    """Whether no line of it begins as the protocol's own do."""
    starts = ("<parameter", "</parameter", "<function", "</function", "<tool_call", "</tool_call")
    return not any(line.lstrip().lower().startswith(starts) for line in value.split("\n"))


@given(name=NAME, values=st.dictionaries(NAME, VALUE.filter(is_plain), max_size=4))
def test_a_call_that_was_written_is_read_back(name: str, values: dict[str, str]) -> None:
    said, (call,) = parse(f"I do it.\n{written(ToolCall('1', name, json.dumps(values)))}")
    assert (said, call.name, dict(call.values), call.body) == ("I do it.", name, values, "")


@given(
    calls=st.lists(st.tuples(NAME, st.dictionaries(NAME, VALUE.filter(is_plain), max_size=3)), min_size=1, max_size=4)
)
def test_several_calls_are_read_back_in_their_order(calls: list[tuple[str, dict[str, str]]]) -> None:
    text = "\n".join(written(ToolCall("1", name, json.dumps(values))) for name, values in calls)
    assert [(call.name, dict(call.values)) for call in parse(text)[1]] == calls


@given(code=st.text(max_size=60))
def test_a_file_that_speaks_of_the_protocol_inside_of_a_line_is_read_back(code: str) -> None:
    text = f"x = '</parameter> <parameter=a> <function=f> </function> {code}'.strip()"
    if is_plain(text):
        call = ToolCall("1", "str_replace_editor", json.dumps({"command": "create", "file_text": text}))
        assert dict(parse(written(call))[1][0].values)["file_text"] == text


@given(text=st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    for reply in (text, f"<function=bash>{text}", f"<function=bash><parameter=command>{text}</function>"):
        read(Reply(reply, "m"), TOOLS.schemas)


def test_values_that_are_no_texts_are_read_by_the_tools_schema() -> None:
    values = {"command": "view", "path": "/r/a.py", "view_range": [1, 20]}
    text = written(ToolCall("1", "str_replace_editor", json.dumps(values)))
    (call,) = read(Reply(text, "m"), TOOLS.schemas).tool_calls
    assert json.loads(call.arguments) == values


def test_a_reply_whose_calls_the_endpoint_has_read_stays_as_it_is() -> None:
    reply = Reply("<function=bash>", "m", tool_calls=(ToolCall("1", "bash", "{}"),))
    assert read(reply, TOOLS.schemas) is reply


LS = {"command": "ls"}
P = "<parameter=command>"
DAMAGED: list[tuple[str, Any]] = [
    # read as they were meant
    ("<function=bash><parameter=command>ls</parameter></function>", LS),
    ("<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\nThat is it.", LS),
    ("<function=bash>\n<parameter=command>\nls\n</parameter>\n", LS),
    ("<function=bash>\n<parameter=command>\nls\n</function>", LS),
    ("<function=bash>\n<parameter=command>\nls\n", LS),
    ("<function=bash>\n<parameter=command>ls", LS),
    ("<function=bash>\nls\n</function>", LS),
    ("<function=bash>ls</function>", LS),
    ("<function=bash>\nls", LS),
    ('<function=bash>\n{"command": "ls"}\n</function>', LS),
    ('<function="bash">\n<parameter="command">\nls\n</parameter>\n</function>', LS),
    ("<function='bash'>\n<parameter='command'>\nls\n</parameter>\n</function>", LS),
    ('<function name="bash">\n<parameter name="command">\nls\n</parameter>\n</function>', LS),
    ("<function = bash>\n<parameter = command>\nls\n</parameter>\n</function>", LS),
    ("<FUNCTION=bash>\n<PARAMETER=command>\nls\n</PARAMETER>\n</FUNCTION>", LS),
    ("<function=bash >\n<parameter=command >\nls\n</parameter >\n</function >", LS),
    ("<tool_call>\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>", LS),
    ("<tool_call>\n<function=bash>\n<parameter=command>\nls\n</tool_call>", LS),
    ("<tool_call><function=bash>ls</tool_call>", LS),
    ("```xml\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n```", LS),
    ("<function=bash>\n\n<parameter=command>\nls\n</parameter>\n\n</function>", LS),
    ("<function=bash>\r\n<parameter=command>ls</parameter>\r\n</function>", LS),
    ("<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</function>", LS),
    ("<function=bash>\n<parameter=command>\nls\n</parameter>\n</parameter>\n</function>", LS),
    ("<function=bash>\n<parameter=command>\npwd\n</parameter>\n<parameter=command>\nls\n</parameter>\n</function>", LS),
    ("I call <function> now.\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>", LS),
    ("<function=bash>\n<parameter=command>\nif [ 1 -lt 2 ]; then echo '<b>'; fi\n</parameter>\n</function>",
     {"command": "if [ 1 -lt 2 ]; then echo '<b>'; fi"}),
    ("<function=bash>\n<parameter=command>\ncat <<E\n  indented\nE\n</parameter>\n</function>",
     {"command": "cat <<E\n  indented\nE"}),
    ("<function=str_replace_editor>\n<parameter=command>view\n<parameter=path>/r/a\n</function>",
     {"command": "view", "path": "/r/a"}),
    ("<function=submit>\n</function>", {}),
    ("<function=submit></function>", {}),
    ("<function=submit>", {}),
    # told as a fault
    ("<function=bash>\n</function>", "bad_arguments"),
    ("<function=bash>\n<parameter=cmd>\nls\n</parameter>\n</function>", "bad_arguments"),
    ("<function=str_replace_editor>\nview /r/a\n</function>", "bad_arguments"),
    ("<function=str_replace_editor>\n<parameter=command>\nview\n</parameter>\n<parameter=path>\n/r/a\n</parameter>\n"
     "<parameter=view_range>\none to ten\n</parameter>\n</function>", "bad_arguments"),
    ("<function=shell>\n<parameter=command>\nls\n</parameter>\n</function>", "unknown_tool"),
    ("<function=>\n<parameter=command>\nls\n</parameter>\n</function>", "no_call"),
    ("<function bash>\n<parameter=command>\nls\n</parameter>\n</function>", "no_call"),
    ("function=bash\nparameter=command\nls", "no_call"),
    ("<parameter=command>\nls\n</parameter>", "no_call"),
    ("```bash\nls\n```", "no_call"),
    ("", "empty"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meant"), DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_reply_is_read_as_it_was_meant_or_told_as_a_fault(text: str, meant: Any) -> None:
    assert len(DAMAGED) >= 40
    reply = read(Reply(text, "m"), TOOLS.schemas)
    turn = read_turn(reply, named_calls(reply, 1), TOOLS.tools, TOOLS.ending)
    if isinstance(meant, str):
        assert str(turn.fault) == meant and (turn.words or turn.calls[0].words)
    else:
        assert turn.fault is None and json.loads(turn.calls[0].call.arguments) == meant


def test_on_the_wire_calls_and_results_are_texts_and_the_system_tells_the_form() -> None:
    calls = (ToolCall("1", "bash", '{"command": "ls"}'), ToolCall("2", "think", "no JSON"))
    messages = [
        Message("system", "You work."), Message("user", "Do."), Message("assistant", "I look.", calls),
        Message("tool", "a.py", (), "1"), Message("tool", "(noted)", (), "2"), Message("user", "Hint."),
    ]  # fmt: skip
    system, user, turn, answer, hint = on_the_wire(messages, TOOLS.schemas)
    assert system.content.startswith("You work.\n\n") and "<function=NAME>" in system.content
    assert all(f"\n{name}: " in system.content for name in TOOLS.tools) and "- command" in system.content
    assert [it.role for it in (user, turn, answer, hint)] == ["user", "assistant", "user", "user"]
    assert turn.content.startswith("I look.\n\n<function=bash>\n<parameter=command>\nls\n</parameter>\n</function>")
    assert (answer.content, hint.content) == ("a.py\n\n(noted)", "Hint.")
    assert not any(it.tool_calls or it.tool_call_id for it in (turn, answer))


# ---- a stage


@pytest.fixture
def world(tmp_path: Path) -> Iterator[RolloutWorld]:
    with rollout_world(tmp_path, [(1, 2, 3)]) as found:
        yield found


def model_that_writes_calls() -> FakeModel:
    """The policy of the other tests, in SWE-agent's protocol. Its first reply of a conversation has no call."""

    def answer(request: Request) -> Reply:
        messages = [{"role": message.role, "content": message.content} for message in request.messages]
        said: PolicyReply = works(messages)
        agent = "<function=NAME>" in request.messages[0].content
        if agent and len(request.messages) == 2:
            return Reply("I shall look first.", "fake", usage=Usage(100, 0, 10))
        text = said.text
        if said.tool is not None:
            text = f"{text}\n\n{written(ToolCall('', said.tool, json.dumps(dict(said.arguments))))}"
        return Reply(text, "fake", usage=Usage(100, 0, 10))

    return FakeModel(answer, "fake")


def test_a_chain_is_worked_through_in_texts_and_exported_as_calls(world: RolloutWorld, tmp_path: Path) -> None:
    model = model_that_writes_calls()
    name = roll(world.context(model, calls="text"), world.chains[0], 0)
    assert world.outcome(name)[:2] == ("accepted", 3)
    of_agent = [request for request in model.asked if "<function=NAME>" in request.messages[0].content]
    assert of_agent and not any(request.tools for request in of_agent)
    assert not any(message.role == "tool" or message.tool_calls for one in of_agent for message in one.messages)
    assert "A call is written so:" in of_agent[1].messages[-1].content, "the fault was told, with the form"
    with world.store.reading() as tx:
        entries = read_entries(tx, name)
    assert any(entry.tool_calls for entry in entries) and not any(
        "<function=" in entry.content for entry in entries[:2]
    )
    assert not any("<function=" in entry.content for entry in entries if entry.role == "assistant")
    options, out = ExportOptions(), tmp_path / "sft.jsonl"
    export(world.store, chosen_format("openai", options), options, out)
    (row,) = map(json.loads, out.read_text().splitlines())
    calls = [call["function"]["name"] for message in row["messages"] for call in message.get("tool_calls") or ()]
    assert {"bash", "submit"} <= set(calls) and row["tools"]


def test_a_chain_of_the_demo_is_worked_through_by_a_script_that_writes_calls(
    finished_demo: Ran, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chdir(finished_demo.copied(tmp_path / "demo")):
        script = Path("script.jsonl")
        lines = [json.loads(line) for line in script.read_text().splitlines()]
        for line in lines:
            if line["purpose"] == "agent" and (calls := line.pop("tool_calls", None)):
                texts = [written(ToolCall("", one["name"], json.dumps(one.get("arguments", {})))) for one in calls]
                line["reply"] = "\n\n".join([line.get("reply", ""), *texts])
        script.write_text("".join(json.dumps(line) + "\n" for line in lines))
        line = [
            "rollouts",
            "run",
            "--limit",
            "1",
            "--agent",
            "calls=text",
            "--backend",
            "unsafe-local",
            "--unsafe-local",
        ]
        assert run([*line, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["outcomes"] == {"accepted": 1}


def test_the_form_of_calls_makes_another_rollout_and_its_prompt_is_one_of_it(world: RolloutWorld) -> None:
    native, text = (roll(world.context(model, calls=calls), world.chains[0], 0) for model, calls in (
        (None, "native"), (model_that_writes_calls(), "text"),
    ))  # fmt: skip
    assert native != text
    stored = {one: (options, prompts) for one, options, prompts in world.rows(Trajectory, "id", "options", "prompts")}
    assert "text_calls" in stored[text][1] and "text_calls" not in stored[native][1]
    assert RolloutOptions(calls="native").hash() == RolloutOptions().hash(), "no id changes"


@pytest.mark.mini
def test_mini_swe_agent_calls_its_tool_by_the_endpoint_alone() -> None:
    on_the_path()
    with pytest.raises(UsageError, match="leave calls=text out"):
        SCAFFOLDS["mini"].make(RolloutOptions(scaffold="mini", calls="text"))
    assert LoopSettings.of(RolloutOptions(calls="text")).calls == "text"
