from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.sandboxes.sandbox import OUT_OF_MEMORY, OUTPUT_LIMIT, PROCESS_LIMIT, ExecResult
from trajectories.agents.tools.observations import (
    SUBMISSION,
    bytes_for,
    command_details,
    command_observation,
    cut,
    is_submission,
)


def observation_of(result: ExecResult, most: int = 100) -> tuple[str, int]:
    return command_observation(result, most=most, timeout=30)


def test_a_short_output_stands_whole_behind_its_return_code() -> None:
    assert observation_of(ExecResult(2, b"a\nb\n")) == ("<returncode>2</returncode>\n<output>\na\nb\n</output>", 0)
    assert observation_of(ExecResult(0, b""))[0] == "<returncode>0</returncode>\n<output>\n</output>"


def test_a_pipeline_tells_of_a_failed_command_before_its_last_one() -> None:
    content, _ = observation_of(ExecResult(0, b"a\n", pipestatus=(1, 0)))
    assert content == "<returncode>0</returncode>\n<pipestatus>1 0</pipestatus>\n<output>\na\n</output>"
    content, _ = observation_of(ExecResult(1, b"a\n", pipestatus=(2, 0, 1)))
    assert content.startswith("<returncode>1</returncode>\n<pipestatus>2 0 1</pipestatus>\n")


@pytest.mark.parametrize("codes", [(), (3,), (0, 3), (141, 0), (0, 141, 1)])
def test_a_return_code_that_hides_nothing_stands_alone(codes: tuple[int, ...]) -> None:
    result = ExecResult(codes[-1] if codes else 0, b"", pipestatus=codes)
    assert "pipestatus" not in observation_of(result)[0]
    assert command_details(result, 0) == {"exit_code": result.exit_code}


def test_a_long_output_is_cut_to_head_and_tail_and_says_how_much_is_missing() -> None:
    content, omitted = observation_of(ExecResult(0, b"H" * 50 + b"m" * 70 + b"T" * 50))
    assert omitted == 70 and "70 characters elided" in content
    assert f"<output_head>\n{'H' * 50}\n</output_head>" in content
    assert f"<output_tail>\n{'T' * 50}\n</output_tail>" in content
    assert "m" * 10 not in content


def test_what_the_sandbox_left_out_counts() -> None:
    content, omitted = observation_of(ExecResult(0, b"H" * 400 + b"T" * 400, omitted=1_000_000, head=400))
    assert omitted == 1_000_700 and "1000700 characters elided" in content
    assert content.count("H" * 50) == 1 and content.count("T" * 50) == 1


def test_head_and_tail_of_what_the_sandbox_cut_are_not_mixed_up_where_they_are_short() -> None:
    content, omitted = observation_of(ExecResult(0, b"HHTT", omitted=9, head=2))
    assert "<output_head>\nHH\n" in content and "<output_tail>\nTT\n" in content and omitted == 9


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (ExecResult(None, b"part", timed_out=True), "more than 30 seconds"),
        (ExecResult(None, b"y", limit=OUTPUT_LIMIT), "without end"),
        (ExecResult(137, b"", limit=OUT_OF_MEMORY), "memory"),
        (ExecResult(0, b"", limit=PROCESS_LIMIT), "too many"),
        (ExecResult(None, b""), "from outside"),
    ],
)
def test_what_ended_a_command_is_told(result: ExecResult, words: str) -> None:
    content, _ = observation_of(result)
    assert content.startswith("<exception>") and words in content.split("</exception>")[0]
    assert f"<returncode>{-1 if result.exit_code is None else result.exit_code}</returncode>" in content


@given(st.binary(max_size=3000), st.integers(2, 200))
def test_any_bytes_are_shown_within_the_limit(output: bytes, most: int) -> None:
    content, omitted = observation_of(ExecResult(0, output), most)
    assert len(content) <= most + 600 and omitted >= 0
    content.encode()


@given(st.text(alphabet="aé€😀", max_size=400), st.integers(1, 50))
def test_enough_bytes_are_asked_for_to_fill_head_and_tail(text: str, most: int) -> None:
    raw = text.encode()
    limit = bytes_for(most)
    if len(raw) <= limit:
        return
    half = limit // 2
    content, _ = observation_of(
        ExecResult(0, raw[:half] + raw[len(raw) - half :], omitted=len(raw) - 2 * half, head=half), most
    )
    assert f"<output_head>\n{text[: most - most // 2]}\n" in content
    assert f"<output_tail>\n{text[len(text) - most // 2 :]}\n" in content


@pytest.mark.parametrize(
    ("output", "code", "submits"),
    [
        (SUBMISSION, 0, True),
        (f"\n  {SUBMISSION} \nrest\n", 0, True),
        (f"{SUBMISSION}\r\n", 0, True),
        (SUBMISSION, 1, False),
        (SUBMISSION, None, False),
        (f"x\n{SUBMISSION}", 0, False),
        (f"{SUBMISSION} x", 0, False),
        ("", 0, False),
    ],
)
def test_the_word_on_the_first_line_of_a_command_that_succeeded_submits(
    output: str, code: int | None, submits: bool
) -> None:
    assert is_submission(ExecResult(code, output.encode())) is submits


def test_a_text_is_cut_in_its_middle() -> None:
    assert cut("abc", 3) == "abc"
    assert cut("aaaaazzzzz", 4) == "aa\n[... 6 characters left out ...]\nzz"
