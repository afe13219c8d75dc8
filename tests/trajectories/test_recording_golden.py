"""What agents really send at their pinned versions, and what they make of our answers: kept from runs of ours.

`tests/trajectories/data/exchanges/NAME-VERSION.json` is what the agent's own program asked our recorder, over a folder
with one file and a scripted model, and the replies, as `make exchanges` runs and writes them. Its makers' prose is
numbered (``[text 1]``), and of declarations of tools some are left out; nothing else is changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prchain.core.llm.model import Reply, Request
from prchain.core.llm.wire import body_of
from tests.trajectories.sdkreader import read_stream, read_whole
from trajectories.model import EntryKind
from trajectories.programs.spec import Programs
from trajectories.recording.chat import AskedChat, content_text, events, read_asked, whole
from trajectories.recording.conversation import Answered, Branch, RecordedConversations
from trajectories.recording.exchanges import Exchange, SentRequest, packed, unpacked

FILES = sorted((Path(__file__).parent / "data" / "exchanges").glob("*.json"))


def exchanges(file: Path) -> list[tuple[AskedChat, Reply]]:
    rows = json.loads(file.read_text())
    return [
        (read_asked(json.dumps(row["request"]).encode()), Reply.from_json(json.dumps(row["reply"]))) for row in rows
    ]


def taken(file: Path, changed: Mapping[str, str] | None = None, volatile: tuple[str, ...] = ()) -> list[Branch]:
    """The conversations of the file; in requests after the second, `changed` texts stand in place of others."""
    all_ = RecordedConversations(str, volatile)
    for number, (asked, reply) in enumerate(exchanges(file)):
        messages = list(asked.messages)
        for old, new in (changed or {}).items() if number > 1 else ():
            messages = [replace(it, content=it.content.replace(old, new)) for it in messages]
        all_.take(messages, asked.tools, Answered(reply, 0.5, 1.0, "2026"), SentRequest(asked.body))
    return all_.branches


def test_there_is_one_of_each_agent_that_ships_at_its_version() -> None:
    shipped = {f"{name}-{program.version}" for name, program in Programs().items()}
    assert shipped == {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_an_agent_sends_is_parsed_and_written_again_the_same(file: Path) -> None:
    for asked, _ in exchanges(file):
        # What is content in parts for the model is one text for the trajectory.
        sent = [{**it, "content": content_text(it["content"])} for it in asked.body["messages"]]
        assert body_of(Request(asked.messages, 9), "m")["messages"] == sent
        kept = Exchange(asked.body, 0, Reply("r", "m"))
        assert unpacked(packed([kept], str)) == [kept]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_we_answer_is_what_openais_client_reads(file: Path) -> None:
    for _, reply in exchanges(file):
        for read in (
            read_whole(whole(reply, "x", 1)),
            read_stream([b"".join(events(reply, "x", 1, with_usage=True))]),
        ):
            assert read == replace(reply, finish=read.finish)
            assert read.finish == ("tool_calls" if reply.tool_calls else reply.finish)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_agents_session_is_one_conversation_with_its_replies_where_it_says_them(file: Path) -> None:
    branches = taken(file)
    main = branches[-1]
    turns = [it for it in main.entries if it.kind is EntryKind.TURN]
    assert [len(it.replies) for it in branches] == [1] * (len(branches) - 1) + [3]
    assert len(branches) == (2 if "opencode" in file.stem else 1), "opencode has a title made"
    assert all("loss" not in it.details for it in turns), "each is a reply of ours"
    assert [it.reasoning for it in turns] == ["Look first.", None, None], "reasoning is kept"
    assert [len(it.tool_calls) for it in turns][:2] == [2, 1], "parallel calls"
    observed = [it for it in main.entries if it.kind is EntryKind.OBSERVATION]
    assert [it.tool_name for it in observed] == [turns[0].tool_calls[0].name] * 3
    assert "return a - b" in observed[1].content
    assert main.tools == exchanges(file)[-1][0].tools and main.tools, "tools are those of the last request"


def test_a_session_that_goes_on_the_next_day_is_one_conversation() -> None:
    (file,) = [it for it in FILES if "opencode" in it.stem]
    dates = {"Sat Nov 28 2026": "Sun Nov 29 2026"}
    assert any("Sat Nov 28 2026" in it.content for asked, _ in exchanges(file) for it in asked.messages)
    volatile = Programs()["opencode"].volatile
    assert len(taken(file, dates, volatile)) == 2
    assert len(taken(file, dates)) == 3, "by the words that it is known to change alone"


def test_messages_of_an_agent_hold_no_long_text_of_its_makers() -> None:
    texts = [
        part for file in FILES for it in _messages(file) for part in content_text(it.get("content")).split("[text")
    ]
    assert max(map(len, texts)) < 200
    told = [tool for file in FILES for asked, _ in exchanges(file) for tool in asked.tools]
    assert told and all(found.startswith("[text ") for found in _descriptions(told))


def _descriptions(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [item for name, item in value.items() if name == "description" and isinstance(item, str)]
        return own + [it for item in value.values() for it in _descriptions(item)]
    return [it for item in value for it in _descriptions(item)] if isinstance(value, list) else []


def _messages(file: Path) -> list[Any]:
    return [message for row in json.loads(file.read_text()) for message in row["request"]["messages"]]
