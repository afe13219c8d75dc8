"""The words that a conversation has shown: taken late, where they are asked for, and the same as if taken at once."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.code.identifiers import spellings
from tests.growth import assert_linear
from trajectories.agents.guidance.shown_words import ShownWords

PIECES = ["read", "Read", "lines", "keepAll", "KEEP_ALL", "keep_all", "_", "__", "x1", "\\n", ".", "é", "\u212a", " "]

texts = st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=8)
names = st.lists(st.sampled_from(PIECES[:9]), min_size=1, max_size=3).map("".join)


def holds(shown: list[str], name: str) -> bool:
    """Take all words at once, and look at every run of each."""
    words = set()
    for text in shown:
        small = text.lower()
        words |= {*re.findall(r"\w+", small), *re.findall(r"\\[nrtbsdw](\w+)", small)}
    runs = set()
    for word in words:
        parts = word.split("_")
        if 2 <= len(parts) <= 6:
            runs |= {"_".join(parts[a:b]) for a in range(len(parts)) for b in range(a + 1, len(parts) + 1)} - {""}
    return any(form.lower() in words | runs for form in (name, name.strip("_"), *spellings(name)))


@given(texts, st.lists(names, min_size=1, max_size=40))
def test_names_are_held_as_if_all_words_had_been_taken_at_once(shown: list[str], asked: list[str]) -> None:
    words = ShownWords()
    given: list[str] = []
    for text, name in zip([*shown, *[""] * len(asked)], asked, strict=False):
        words.add(text)
        given.append(text)
        assert words.holds_name(name) == holds(given, name)


@pytest.mark.drawn(6)
@pytest.mark.parametrize("unit", ["keep_all ", "absent ", "a_b_c_d_e_f ", "é_keep "])
def test_time_is_linear_in_texts_and_questions_together(unit: str) -> None:
    def make(size: int) -> list[str]:
        return [f"{unit}{number} " * 3 for number in range(size)]

    def work(shown: list[str]) -> None:
        words = ShownWords()
        for number, text in enumerate(shown):
            words.add(text)
            words.holds_name(f"nobody_has_shown_{number}")

    assert_linear(make, work, 2_000)
