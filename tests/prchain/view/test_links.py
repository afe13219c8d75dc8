"""How many lines a stage changes of the one before: one number, on whatever page it is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from prchain.cli import cli
from prchain.view.options import ViewOptions
from prchain.view.site import Site
from tests.chains.chainworld import NAME, Shop, build, chosen, mined, module

FIRST = """def rounded_amount(amount):
    # banks round a half to the even side
    rounded_amount_scaled = amount * 100
    rounded_amount_whole = round(rounded_amount_scaled)
    rounded_amount_checked = check(rounded_amount_whole)

    return rounded_amount_checked"""

SECOND = """def rounded_amount(amount):
    # a half goes up, as the law of 2019 has it
    rounded_amount_checked = check(amount)
    rounded_amount_scaled = amount * 1000
    rounded_amount_exact = round(rounded_amount_scaled, 3)

    return rounded_amount_exact"""
"""Of the five lines of `FIRST` that it has no more, one is a comment."""

PRICES = "src/till/prices.py"
CARTS = "src/till/cart.py"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path)
    shop.land(1, {PRICES: module("prices", FIRST), CARTS: module("cart", FIRST)}, "Round amounts")
    moved = module("cart", FIRST.replace("rounded_amount(", "round_cart("))
    shop.land(
        2, {PRICES: module("prices", SECOND), CARTS: None, "src/till/carts.py": moved}, "Round up\n\nFollow-up to #1."
    )
    return shop


def test_every_page_tells_one_number_of_lines(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRCHAIN_DB", str(tmp_path / "prchain.db"))
    monkeypatch.setenv("PRCHAIN_DATA_DIR", str(tmp_path))

    def printed(*words: str) -> str:
        result = CliRunner().invoke(cli, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    with mined(tmp_path, shop) as store:
        build(store, tmp_path / "mirrors", strategy="evidence", floor=0.0, worth=0.0)
        [chain] = chosen(store, "evidence")
        page = printed("chains", "show", chain, "--diff")
        site = Site(store, ViewOptions(), tmp_path / "mirrors", tmp_path, once=True)
        html = (site.render(f"chains/{chain}/index.html") or b"").decode()
    [told] = re.findall(r"changes +(.*) of the stage before", page)
    assert told == "5 lines of code (6 in all)"
    assert f"#2 changes {told} of #1:" in page
    assert len([line for line in page.splitlines() if line.startswith("    - ")]) == 6
    assert "line_dependency     changes what it added" in page, "signs count by other rules"
    assert f"#1  {told}" in printed("show", f"{NAME}#2")
    [row] = [line.split() for line in printed("chains", "lineage", NAME).splitlines() if line.startswith("#2 ")]
    assert f"{row[2]} lines of code" in told
    assert f"Changes {told} of the stage before" in html and f"Stage 2 changes {told} of stage 1" in html
    assert html.count('class="l r lit"') == 6, "of the file that was renamed, too"
    lit = [int(count) for count in re.findall(r">(\d+) lit<", html.partition("Stage 1 beside")[2])]
    assert sorted(lit) == [1, 1, 5, 5], "beside each other"


def test_lines_are_lit_on_both_sides_where_a_file_moved_between_the_stages(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    # Two lines of one text, of which the later one changes one.
    twice = FIRST.replace("return", "log(rounded_amount_checked)\n    log(rounded_amount_checked)\n    return")
    shop.land(1, {PRICES: module("prices", twice)}, "Round amounts")
    rates = "src/shop/rates.py"
    shop.land(2, {PRICES: None, rates: module("prices", twice)}, "Move prices")
    later = SECOND.replace("return", "log(rounded_amount_checked)\n    return")
    shop.land(3, {rates: module("prices", later)}, "Round up\n\nFollow-up to #1.")
    with mined(tmp_path, shop) as store:
        build(store, tmp_path / "mirrors", strategy="evidence", floor=0.0, worth=0.0)
        [chain] = chosen(store, "evidence")
        site = Site(store, ViewOptions(), tmp_path / "mirrors", tmp_path, once=True)
        html = (site.render(f"chains/{chain}/index.html") or b"").decode()
    before, after = html.partition("Stage 1 beside")[2].split('<div><h3><span class="num">#3')
    lit = [re.findall(r'class="l [ar] lit">.*?<code>(.*?)</code>', side) for side in (before, after)]
    assert lit[0] == lit[1] and len(lit[0]) >= 5 and lit[0].count("    log(rounded_amount_checked)") == 1
    assert [re.findall(r">(\d+) lit<", side) for side in (before, after)] == [[str(len(lit[0]))]] * 2
