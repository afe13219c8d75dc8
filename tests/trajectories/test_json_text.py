"""Texts that may be JSON: texts that strict readers refuse are not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trajectories.json_text import parsed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(VALUES)
def test_json_is_read_as_it_was_written(value: object) -> None:
    assert parsed(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        '{"a": [Infinity]}',
        "-Infinity",
        "1e999",
        '{"a": -1e999}',
        "[" * 100_000,
        '{"a":' * 100_000,
        "[" * 66 + "]" * 66,
        '{"a":' * 900 + "1" + "}" * 900,
    ],
)
def test_what_strict_readers_refuse_is_no_json(text: str) -> None:
    with pytest.raises(ValueError):
        parsed(text)


def test_as_deep_as_any_tool_goes_it_is_read() -> None:
    assert parsed("[" * 60 + "]" * 60)
