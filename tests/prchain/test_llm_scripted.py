from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from prchain.core.errors import ScriptExhausted, ScriptUnknown, SettingsError
from prchain.core.llm.model import Message, Reply, Request, ToolCall, Usage
from prchain.core.llm.scripted import ScriptedModel


def asking(text: str = "hello", purpose: str = "query", subject: str = "c:1") -> Request:
    return Request((Message("system", "sys"), Message("user", text)), 10, purpose=purpose, subject=subject)


def test_lines_answer_in_order_each_once() -> None:
    model = ScriptedModel([{"reply": "one"}, {"reply": "two"}])
    assert [model.complete(asking()).text for _ in range(2)] == ["one", "two"]
    assert model.unused == 0
    with pytest.raises(ScriptExhausted, match='query of c:1: "hello"') as caught:
        model.complete(asking())
    assert not caught.value.billed


@pytest.mark.parametrize(
    "line", [{"purpose": "judge"}, {"subject": "c:2"}, {"contains": "goodbye"}, {"purpose": "query", "contains": "bye"}]
)
def test_a_line_answers_only_what_it_fits(line: dict[str, Any]) -> None:
    model = ScriptedModel([line | {"reply": "x"}])
    with pytest.raises(ScriptUnknown, match="no line for query of c:1") as caught:
        model.complete(asking("hello " * 100))
    assert len(str(caught.value)) < 200
    assert model.unused == 1


def test_a_line_that_repeats_answers_for_ever() -> None:
    model = ScriptedModel([{"contains": "sys", "reply": {"a": "ü"}, "repeat": True}])
    assert {model.complete(asking()).text for _ in range(5)} == {'{"a": "ü"}'}


def test_a_line_can_be_all_that_an_endpoint_can_say() -> None:
    line = {
        "reply": "",
        "tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}, {"name": "f", "arguments": "{", "id": "x"}],
        "usage": {"in": 10, "cached": 5, "out": 2},
    }
    assert ScriptedModel([line]).complete(asking()) == Reply(
        "",
        "scripted",
        "tool_calls",
        tool_calls=(ToolCall("call_1", "bash", '{"command": "ls"}'), ToolCall("x", "f", "{")),
        usage=Usage(10, 5, 2),
    )
    refused = ScriptedModel([{"refusal": "no", "finish": "content_filter"}]).complete(asking())
    assert (refused.refusal, refused.finish) == ("no", "content_filter")


def test_usage_may_be_an_estimate_by_what_was_sent_and_said() -> None:
    line = {"reply": "über", "tool_calls": [{"name": "bash", "arguments": "{}"}], "usage": "estimate", "repeat": True}
    model = ScriptedModel([line])
    short, long = (model.complete(asking("x" * length)).usage for length in (0, 400))
    assert short.tokens_in is not None and long.tokens_in == short.tokens_in + 100
    assert (short.tokens_cached, short.tokens_out, long.tokens_out) == (None, 3, 3)


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text(
        json.dumps({"reply": "line\u2028one"}, ensure_ascii=False) + '\n\n{"reply": "two"}\n', encoding="utf-8"
    )
    model = ScriptedModel.load(path)
    assert [model.complete(asking()).text for _ in range(2)] == ["line\u2028one", "two"]


@pytest.mark.parametrize(
    ("line", "words"), [("{", "JSON"), ('{"replay": "x"}', "replay"), ('{"reply": 5}', "reply"), ("[]", "object")]
)
def test_a_bad_line_is_named_with_file_and_number(line: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text(f'{{"reply": "x"}}\n{line}\n')
    with pytest.raises(SettingsError, match=rf"script\.jsonl, line 2: .*{words}"):
        ScriptedModel.load(path)


@pytest.mark.parametrize("content", [None, b"\xff"])
def test_a_script_that_cannot_be_read_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "script.jsonl"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=r"script\.jsonl cannot be read"):
        ScriptedModel.load(path)


def test_no_line_is_given_to_two_threads() -> None:
    model = ScriptedModel([{"reply": str(number)} for number in range(200)])
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: model.complete(asking()).text, range(200)))
    assert sorted(replies, key=int) == [str(number) for number in range(200)]
