"""The rig that measures lineage, on a small repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from research.lineage.__main__ import main
from tests.chains.chainworld import NAME, grown, mined
from tests.chains.test_lineage_trace import traced


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    with mined(tmp_path, grown(tmp_path)) as store:
        traced(store, tmp_path)
    yield str(tmp_path / "prchain.db")


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_owners_are_compared_with_blame(database: str, tmp_path: Path) -> None:
    text = printed("blame", "--db", database, "--mirrors", str(tmp_path), "--landings", "6", "--lines", "300")
    counts = re.search(r"([\d,]+) lines at 6 landings: ([\d,]+) as git blame says", text)
    assert counts is not None and counts[1] == counts[2] != "0"


def test_walks_are_timed_beside_the_log(database: str, tmp_path: Path) -> None:
    text = printed("speed", "--db", database, "--mirrors", str(tmp_path), "--new", "2")
    (row,) = [line.split() for line in text.splitlines() if line.startswith(NAME)]
    assert row[1:4] == ["6", "13", "0"]
    assert "whole)" not in text


def test_what_is_found_is_counted(database: str) -> None:
    text = printed("found", "--db", database)
    (row,) = [line.split() for line in text.splitlines() if line.startswith(NAME)]
    assert row[1] == "8"
