"""Special tokens in texts: broken, so that no trainer takes a file's words for the model's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.llm.special_tokens import (
    NAMED,
    THINKING,
    broken_tokens,
    mended,
    without_special_tokens,
    without_thinking_marks,
)

BAR = "\uff5c"
MARKS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|channel|>",
    "<|im_middle|>",
    "<|tool_calls_section_begin|>",
    "<|/tool_call|>",
    "<|vision_start|>",
    f"<{BAR}Assistant{BAR}>",
    f"<{BAR}end▁of▁sentence{BAR}>",
    "<SPECIAL_11>",
    "<extra_id_1>",
    "<unused94>",
    "<reserved_106>",
    "[unused9]",
    *NAMED,
)


@pytest.mark.parametrize("mark", MARKS)
def test_a_mark_gets_a_blank_before_its_end(mark: str) -> None:
    found = without_special_tokens(f"a{mark}{mark}b")
    assert mark not in found
    assert found.replace(" ", "") == f"a{mark}{mark}b"
    assert without_special_tokens(found) == found


@given(st.lists(st.sampled_from([*MARKS, "<|", "|>", "im_end", "<", ">", " ", "x", "[INST", "]"])).map("".join))
def test_no_mark_is_left_wherever_they_stand(text: str) -> None:
    found = without_special_tokens(text)
    assert not [mark for mark in MARKS if mark in found]
    assert found.replace(" ", "") == text.replace(" ", "")


@given(st.lists(st.sampled_from([*MARKS, "<|", "|>", "im_end", "<", "x", "[INST", "]", "\n"])).map("".join))
def test_a_text_is_whole_again_with_what_stands_broken_in_it(text: str) -> None:
    shown = without_special_tokens(text)
    assert mended(shown, broken_tokens(shown)) == text


@pytest.mark.parametrize(
    "text",
    [
        "a <| b |> c",
        "x = a<|>b",
        "<||>",
        "if a <b> c",
        "[INSTALL]",
        "</s> <s>",
        "f |> g",
        "[|x|]",
        "prog [ARGS]...",
        "<role>ADMIN</role>",
        "<unused>",
        "[unused]",
        "[e~]",
        "<SPECIAL_X>",
    ],
)
def test_code_that_only_looks_like_one_stays(text: str) -> None:
    assert without_special_tokens(text) == text


@pytest.mark.parametrize("mark", THINKING)
def test_marks_of_thoughts_are_broken_only_where_that_is_asked_for(mark: str) -> None:
    assert without_special_tokens(mark) == mark
    assert without_thinking_marks(f"a{mark}") == f"a{mark[:-1]} >"
