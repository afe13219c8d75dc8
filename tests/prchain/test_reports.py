"""A report and its JSON are one value."""

from __future__ import annotations

from dataclasses import dataclass, field

from prchain.core.console.reports import WHERE_ASKED, json_value
from prchain.core.console.terminal import json_text


@dataclass(frozen=True)
class Part:
    name: str
    counts: dict[str, int]


@dataclass(frozen=True)
class Whole:
    id: str
    parts: tuple[Part, ...]
    best: Part | None
    words: str | None = field(default=None, metadata=WHERE_ASKED)


REPORT = Whole("a", (Part("x", {"kept": 1}), Part("y", {})), None)


def test_fields_are_keys_in_their_order_all_the_way_down() -> None:
    parts = [{"name": "x", "counts": {"kept": 1}}, {"name": "y", "counts": {}}]
    assert list(json_value(REPORT).items()) == [("id", "a"), ("parts", parts), ("best", None)]


def test_what_nobody_asked_for_is_left_out_and_what_somebody_did_is_there() -> None:
    assert "words" not in json_value(REPORT)
    assert json_value(Whole("a", (), None, "more"))["words"] == "more"


def test_it_is_printed_as_any_json_is() -> None:
    assert json_text([REPORT]) == json_text([json_value(REPORT)])
    assert json_text({"n": 1, "list": [None, "\x7f"]}) == '{\n  "n": 1,\n  "list": [\n    null,\n    "\\u007f"\n  ]\n}'
