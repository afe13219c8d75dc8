"""Counting what hidden tests need."""

from __future__ import annotations

import csv
from pathlib import Path

from click.testing import CliRunner

from prchain.core.code.needs import Need
from research.needs.__main__ import main
from research.needs.sheets import ReadStage, write_sheets
from tests.chains.taskworld import mined, shop


def test_needs_of_single_stages_are_counted_and_listed(tmp_path: Path) -> None:
    with mined(tmp_path, shop(tmp_path), []) as world:
        for number in (1, 2):
            world.add_chain([number], strategy="single")
        arguments = ["--db", world.database, "--mirrors", str(tmp_path), "--out", str(tmp_path / "needs.csv")]
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.output.split("\n")[1].split()[:8] == ["shop/till", "2", "2", "0", "0", "2", "0", "0"]
    with (tmp_path / "needs.csv").open(encoding="utf-8", newline="") as stream:
        rows = {(row["number"], row["words"]) for row in csv.DictReader(stream)}
    assert ("1", "`round_half_even_cents`: function, src/till/prices.py") in rows
    assert ("2", "`CouponLedger`: class, src/till/coupons.py") in rows


def test_sheets_hide_their_verdict_and_the_key_tells_it(tmp_path: Path) -> None:
    need = Need("function", "round_up", "src/a.py")
    stages = [
        ReadStage("o/r", "/m", number, "b1", "b2", f"Message {number}", (need,) if number % 2 else ())
        for number in range(40)
    ]
    write_sheets(stages, tmp_path)
    with (tmp_path / "key.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert sorted(row["verdict"] for row in rows) == ["not solvable"] * 10 + ["solvable"] * 10
    for row in rows:
        text = (tmp_path / f"{row['sheet']}.md").read_text(encoding="utf-8")
        assert "solvable" not in text
        assert ("round_up" in text) == (row["verdict"] == "solvable" and int(row["number"]) % 2 == 1)
        assert ("round_up" in row["lacks"]) == (row["verdict"] == "not solvable")
