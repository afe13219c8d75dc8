from __future__ import annotations

import enum
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from prchain.core.llm.model import Reply, ToolCall, Usage
from prchain.core.llm.price import Price
from prchain.core.llm.replies import (
    UnfitReply,
    closed_schema,
    find_object,
    in_words,
    keys_in_words,
    read_shape,
    read_text,
)
from tests.growth import assert_linear


class Level(enum.StrEnum):
    LOW = "low"
    HIGH = "high"


class Verdict(BaseModel):
    score: float = Field(ge=0, le=1)
    passed: bool
    steps: int = 0
    level: Level = Level.LOW
    notes: tuple[str, ...] = ()


def verdict(text: str) -> Verdict:
    return read_shape(Reply(text, "m"), Verdict)


GOOD = '{"score": 0.8, "passed": true, "steps": 2, "level": "high", "notes": ["a"]}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"  \n{GOOD}\n",
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}\n```\nI hope this helps.",
        f"Here is my verdict on the set {{x}}: {GOOD} It is {{final {{really}}}}.",
    ],
)
def test_one_object_is_read_whatever_prose_stands_around_it(text: str) -> None:
    assert verdict(text) == Verdict(score=0.8, passed=True, steps=2, level=Level.HIGH, notes=("a",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no JSON object"),
        ("I think it is good.", "no JSON object"),
        ("[0.8, true]", "no JSON object"),
        (f"{GOOD} or rather {GOOD}", "more than one"),
        ('{"score": NaN, "passed": true}', "NaN"),
        ('{"score": Infinity, "passed": true}', "Infinity"),
        ('{"score": -Infinity, "passed": true}', "Infinity"),
        ('{"score": 1e999, "passed": true}', "out of range"),
        ('{"score": 0, "score": 1, "passed": true}', "twice"),
        ('{"score": 0.8, "passed": true', "valid JSON"),
        ('{"why": {"score": 0.8, "passed": true}, "then":', "valid JSON"),
        ('{"score": NaN, "old": {"score": 0.8, "passed": true}}', "NaN"),
        ("{'score': 0.8, 'passed': true}", "valid JSON"),
        ('{score: {"score": 0.8, "passed": true}}', "no JSON object"),
        ("{" * 5, "valid JSON"),
        ('{"score": "0.8", "passed": true}', "score: .*number"),
        ('{"score": true, "passed": true}', "score: .*number"),
        ('{"score": 0.8, "passed": 1}', "passed: .*bool"),
        ('{"score": 0.8, "passed": "true"}', "passed: .*bool"),
        ('{"score": 0.8, "passed": true, "steps": 2.5}', "steps: .*int"),
        ('{"score": 1.2, "passed": true}', "score: .*less than or equal to 1"),
        ('{"passed": true}', "score: .*required"),
        ('{"score": null, "passed": true}', "score: .*number"),
        ('{"score": 0.8, "passed": true, "level": "middle"}', "level: .*'low' or 'high'"),
        ('{"score": 0.8, "passed": true, "notes": "a"}', "notes: .*"),
        ('{"score": %s, "passed": true}' % ("9" * 5000), "."),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_anything_else_is_unfit_and_the_model_is_told_why(text: str, words: str) -> None:
    with pytest.raises(UnfitReply, match=words) as caught:
        verdict(text)
    assert len(caught.value.words) < 1000


WHOLE = json.loads(GOOD)


@pytest.mark.parametrize("more", [{"reasoning": "first I looked"}, {"final_score": 0.1, "x": {"score": 0}, "": None}])
def test_keys_that_nobody_asked_for_are_not_read(more: dict[str, Any]) -> None:
    assert verdict(json.dumps({**more, **WHOLE})) == verdict(json.dumps({**WHOLE, **more})) == verdict(GOOD)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({**WHOLE, "Score": 0.1}, "Score: no such key"),
        ({**WHOLE, "_score_": 0.1}, "_score_: no such key"),
        ({"score": 0.8, "passed": True, "step": 3}, "step: no such key"),
        ({"verdict": WHOLE}, "verdict: no such key was asked for; score: Field required"),
        ({"k" * 5000: 1, "score": 1, "passed": True}, "k: no such key"),
    ],
)
def test_a_key_that_may_be_meant_for_one_that_was_asked_for_is_unfit(value: dict[str, Any], words: str) -> None:
    with pytest.raises(UnfitReply, match=words) as caught:
        verdict(json.dumps(value))
    assert len(caught.value.words) < 1000


def test_a_shape_that_forbids_other_keys_is_spared_them() -> None:
    class Strict(Verdict):
        model_config = ConfigDict(extra="forbid")

    assert read_shape(Reply(GOOD, "m"), Strict).score == 0.8
    with pytest.raises(UnfitReply, match="accepted: no such key was asked for"):
        read_shape(Reply(json.dumps({**WHOLE, "accepted": True}), "m"), Strict)


def test_the_keys_of_a_shape_are_told_with_their_types() -> None:
    assert keys_in_words(closed_schema(Verdict)) == (
        'Reply with one JSON object alone, which has the keys "score" (number from 0 to 1), "passed" (boolean), '
        '"steps" (integer), "level" ("low" or "high"), "notes" (array of string).'
    )


@pytest.mark.parametrize("depth", [64, 300, 600, 900])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_a_reply_that_is_nested_deeply_is_unfit(depth: int, opened: str, closed: str) -> None:
    inner = f"{opened * depth}1{closed * depth}"
    with pytest.raises(UnfitReply, match="nested too deeply"):
        verdict('{"why": "x", "how": ' + inner + "}")


def test_a_reply_may_be_nested_as_shapes_are() -> None:
    assert find_object('{"how": ' + "[" * 63 + "]" * 63 + "}")


def test_at_most_some_faults_are_told() -> None:
    class Wide(BaseModel):
        values: list[int]

    with pytest.raises(UnfitReply) as caught:
        read_shape(Reply(json.dumps({"values": ["x"] * 5000}), "m"), Wide)
    assert caught.value.words.count("values.") == 8


def test_what_no_database_takes_is_taken_out_of_values_and_keys() -> None:
    assert find_object(r'{"a\u0000": ["b\ud800", {"c": "\u0000"}]}') == {"a\ufffd": ["b\ufffd", {"c": "\ufffd"}]}


@given(
    st.dictionaries(
        st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists), max_size=4
    )
)
def test_every_object_is_found_again_in_prose(value: dict[str, Any]) -> None:
    text = f"So:\n```json\n{json.dumps(value, indent=1)}\n```\n{{that}} is it"
    assert find_object(text) == json.loads(json.dumps(value).replace(r"\u0000", r"\ufffd"))


@given(st.text('{}[]":,0aN \\', max_size=60))
def test_any_text_gives_an_object_or_is_unfit(text: str) -> None:
    try:
        assert isinstance(find_object(text), dict)
    except UnfitReply as fault:
        assert fault.words


@pytest.mark.drawn(6)
@pytest.mark.parametrize(("start", "unit"), [("", "{x}"), ('{"a": "', "{"), ("", "{ "), ("", "}")])
def test_the_time_to_refuse_hostile_texts_grows_as_they_do(start: str, unit: str) -> None:
    def read(text: str) -> None:
        with pytest.raises(UnfitReply):
            find_object(text)

    assert_linear(lambda size: start + unit * (size // len(unit)), read, 120_000)


@pytest.mark.parametrize(
    "reply",
    [
        Reply("", "m"),
        Reply(" \n", "m"),
        Reply("x", "m", refusal="no"),
        Reply("x", "m", finish="content_filter"),
        Reply("x", "m", finish="length"),
        Reply("x", "m", tool_calls=(ToolCall("1", "f", "{}"),)),
    ],
)
def test_prose_is_a_whole_text_that_is_not_empty(reply: Reply) -> None:
    with pytest.raises(UnfitReply):
        read_text(reply)
    assert read_text(Reply(" fine\n", "m")) == "fine"


def test_a_schema_is_closed_all_the_way_down() -> None:
    class Inner(BaseModel):
        default: int = 3

    class Outer(BaseModel):
        inner: Inner
        properties: list[Inner] = []

    schema = closed_schema(Outer)
    inner = schema["$defs"]["Inner"]
    assert (inner["required"], inner["additionalProperties"]) == (["default"], False)
    assert (schema["required"], schema["additionalProperties"]) == (["inner", "properties"], False)
    assert "default" not in schema["properties"]["properties"]
    assert json.dumps(schema, sort_keys=True) in in_words(schema)


def test_a_price_is_applied_to_what_was_fresh_cached_and_said() -> None:
    price = Price(input=10, output=100, cached=1)
    assert price.of(Usage(1_000_000, 400_000, 10_000)) == pytest.approx(6 + 0.4 + 1)
    assert Price(10, 100).of(Usage(1_000_000, 400_000, 10_000)) == pytest.approx(11)
    assert price.of(Usage(10, 50, 0)) == pytest.approx(10 * 1 / 1e6)
    assert price.of(Usage(None, None, 5)) is None
    assert price.of(Usage(5, None, None)) is None


@given(
    st.integers(0, 10**6),
    st.integers(0, 10**5),
    st.floats(0, 100),
    st.floats(0, 100),
    st.none() | st.floats(0, 100),
    st.data(),
)
def test_no_usage_within_the_bounds_costs_more_than_the_most(
    size: int, max_tokens: int, paid_in: float, paid_out: float, cached: float | None, data: st.DataObject
) -> None:
    tokens_in = data.draw(st.integers(0, size))
    usage = Usage(tokens_in, data.draw(st.integers(0, tokens_in)), data.draw(st.integers(0, max_tokens)))
    price = Price(paid_in, paid_out, cached)
    cost = price.of(usage)
    assert cost is not None
    assert cost <= price.most(size, max_tokens) * (1 + 1e-12)


REPLIES = st.builds(
    Reply,
    st.text(),
    st.text(),
    st.text(),
    st.none() | st.text(),
    st.none() | st.text(),
    st.lists(st.builds(ToolCall, st.text(), st.text(), st.text())).map(tuple),
    st.builds(Usage, *[st.none() | st.integers(0)] * 4),
)


@given(REPLIES)
def test_a_reply_survives_its_json(reply: Reply) -> None:
    assert Reply.from_json(reply.to_json()) == reply
    assert reply.to_json().isascii()
