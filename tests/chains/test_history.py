"""What a landing is called, from the message of its commit."""

from __future__ import annotations

import pytest

from chains.history import title_below


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ("Merge pull request #7 from ann/fix\n\nRound as banks do\n\nAnd why.", "Round as banks do"),
        ("Merge pull request #7 from ann/fix\nRound as banks do", "Round as banks do"),
        ("Merge pull request #7 from ann/fix\r\n\r\n  Round as banks do \r\nAnd why.", "Round as banks do"),
        ("Merge pull request #7 from ann/fix\n\n \n\n", ""),
        ("Merge pull request #7 from ann/fix", ""),
        ("", ""),
    ],
)
def test_the_title_of_a_merge_is_the_first_line_below_its_subject(message: str, title: str) -> None:
    assert title_below(message) == title
