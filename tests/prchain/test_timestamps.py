"""Times as every table keeps them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.timestamps import FORMAT, of_unix


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_600_000_000, "2020-09-13T12:26:40Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ],
)
def test_seconds_since_1970_are_told_in_utc(seconds: int, text: str) -> None:
    assert of_unix(seconds) == text


@given(st.integers(0, 253_402_300_799))
def test_seconds_since_1970_are_told_as_the_c_library_does(seconds: int) -> None:
    assert of_unix(seconds) == time.strftime(FORMAT, time.gmtime(seconds))
