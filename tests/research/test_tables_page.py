"""The page of tables is what the declarations say."""

from __future__ import annotations

from pathlib import Path

from research.tables_page import page
from sql.tables import Base

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def test_the_page_is_what_its_module_prints() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), "run: python -m research.tables_page > docs/tables.md"


def test_the_page_has_every_table_with_every_column_once() -> None:
    tables = dict(part.split("\n", 1) for part in page().split("\n### ")[1:])
    assert tables.keys() == Base.metadata.tables.keys()
    for name, table in Base.metadata.tables.items():
        lines = [line.split("`")[1] for line in tables[name].splitlines() if line.startswith("- `")]
        assert lines == [column.name for column in table.columns]


def test_words_below_a_column_stand_beside_it_with_its_kind() -> None:
    lines = page().splitlines()
    assert "- `usd` (real, or null): What it cost by its usage; null where the price is not known, or nothing came" in (
        line[: line.find(" back")] for line in lines
    )
    assert "- `landed_sha` (text)" in lines
    assert "``" not in page()
