"""How many chains each strategy would give: counted without choosing any."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from chains.cli import chains
from chains.yields import ChainYield, RepositoryYields, total_yields
from sql.tables import Chain, Selection
from tests.chains.chainworld import NAME, grown, mined


@pytest.fixture
def counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    monkeypatch.setenv("PRCHAIN_DATA_DIR", str(tmp_path))
    with mined(tmp_path, grown(tmp_path)) as store:
        database = str(store.engine.url)
        result = CliRunner().invoke(chains, ["yield", NAME, "--json", "--db", database], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        with store.reading() as tx:
            assert tx.count(Chain) == tx.count(Selection) == 0
        text = CliRunner().invoke(chains, ["yield", "--db", database]).output
        assert ": yield: done, 0" not in text and re.search(
            r": yield: [1-9][\d,]* landed pull requests surveyed\n", text
        )
        assert "reference *" in text and max(map(len, text.splitlines())) <= 80
    (found,) = json.loads(result.stdout)
    return list(found["yields"])


def row(rows: list[dict[str, object]], strategy: str, floor: float, worth: float) -> dict[str, object]:
    (found,) = [one for one in rows if (one["strategy"], one["floor"], one["worth"]) == (strategy, floor, worth)]
    return found


def test_every_strategy_is_counted_at_its_own_floors_and_at_others(counted: list[dict[str, object]]) -> None:
    assert {(one["strategy"], one["own"]) for one in counted} == {
        (strategy, own) for strategy in ("reference", "lineage", "evidence") for own in (True, False)
    }
    reference = row(counted, "reference", 0.7, 0.0)
    assert (reference["chains"], reference["stages"], reference["lengths"]) == (1, 3, {"3": 1})
    assert reference["per_thousand"] == 375.0
    assert reference["with_tests"] == 0


def test_several_repositories_are_summed_point_by_point() -> None:
    def found(name: str, chains: int, real: float | None) -> RepositoryYields:
        lengths = {2: chains} if chains else {}
        row = ChainYield(name, "evidence", 0.9, 0.5, True, 100, chains, lengths, 2 * chains, chains, 0.0, real, real)
        return RepositoryYields(name, 100, Counter({"lineage": chains}), (row,))

    total = total_yields([found("o/a", 3, 0.9), found("o/b", 1, 0.5), found("o/c", 0, None)])
    (row,) = total.rows
    assert (total.repository, total.landed, total.sources) == ("3 repositories", 300, Counter({"lineage": 4}))
    assert (row.chains, row.lengths, row.stages, row.with_tests, row.per_thousand) == (4, {2: 4}, 8, 4, 26.7)
    assert (row.every_step_real, row.sensible) == (0.8, 0.8)


def test_higher_floors_give_less_and_better(counted: list[dict[str, object]]) -> None:
    low, high = row(counted, "evidence", 0.7, 0.0), row(counted, "evidence", 0.9, 0.7)
    assert low["stages"] >= high["stages"]  # type: ignore[operator]
    assert low["sensible"] <= low["every_step_real"] <= 1  # type: ignore[operator]
