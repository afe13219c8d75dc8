"""The command for lineage, as a user types it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prchain.cli import cli, run
from tests.chains.chainworld import NAME, grown, mined


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with mined(tmp_path, grown(tmp_path)):
        pass
    monkeypatch.setenv("PRCHAIN_DB", str(tmp_path / "prchain.db"))
    monkeypatch.setenv("PRCHAIN_DATA_DIR", str(tmp_path))
    yield str(tmp_path / "prchain.db")


def call(*arguments: str) -> Any:
    return CliRunner().invoke(cli, arguments, catch_exceptions=False)


def test_the_strongest_pairs_are_printed_with_their_shares() -> None:
    printed = call("chains", "lineage", NAME).stdout
    assert f"{NAME}: walked 17 commits" in printed
    (row,) = [line.split() for line in printed.splitlines() if line.startswith("#2 ")]
    assert row == ["#2", "#1", "3", "100%", "60%", "0", "yes", "round_half_even_amount"]
    again = call("chains", "lineage", NAME, "--json")
    page = json.loads(again.stdout)
    assert sum(page["outcomes"].values()) == page["landed"] == 8
    assert {(pair["source"], pair["target"]) for pair in page["pairs"]} >= {(2, 1), (3, 2), (5, 4)}


def test_pairs_are_limited_filtered_and_of_one_pull_request() -> None:
    def pairs(*arguments: str) -> list[tuple[int, int]]:
        page = json.loads(call("chains", "lineage", *arguments, "--json").stdout)
        return [(pair["source"], pair["target"]) for pair in page["pairs"]]

    assert len(pairs(NAME, "--limit", "1")) == 1
    assert {number for pair in pairs(f"{NAME}#2") for number in pair} <= {1, 2, 3}
    assert (2, 1) not in pairs(NAME, "--uncited")
    assert not pairs(NAME, "--min-lines", "100")


def test_the_lines_of_a_pair_are_printed_and_others_lines_are_marked() -> None:
    printed = call("chains", "lineage", f"{NAME}#2", "--diff").stdout
    assert "#2 changes 3 lines of code of #1:" in printed
    assert "    -     round_half_even_amount_result = round_half_even_amount_intermediate * 2" in printed
    assert "    +     round_half_even_amount_result = round_half_even_amount_intermediate * 7" in printed


def test_show_prints_lineage_both_ways_once_it_was_found() -> None:
    assert "changes lines of" not in call("show", f"{NAME}#2").stdout
    call("chains", "lineage", NAME)
    printed = call("show", f"{NAME}#2").stdout
    assert "changes lines of" in printed and "#1  3 lines of code" in printed
    assert "lines changed by" in printed and "#3  3 lines of code" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nobody/nothing"], "has not been mined"),
        ([f"{NAME}#99"], "has no pull request #99"),
        ([f"{NAME}#x"], "is not OWNER/NAME or OWNER/NAME#N"),
    ],
)
def test_bad_input_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chains", "lineage", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and len(error.strip().splitlines()) == 1
