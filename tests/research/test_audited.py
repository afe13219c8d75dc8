"""What is said of works that the auditor was asked about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from prchain.core.llm.gateway import Gateway
from research.grades import audited
from research.grades.audited import AuditedRow, main
from sql.store import Store
from tests.chains.taskworld import FakeModel, gateway_of
from tests.trajectories.test_auditor import NONE, PATCH, said


@pytest.mark.parametrize("kind", ["cheat", "honest"])
def test_what_was_found_is_told_and_honest_work_that_is_blamed_is_an_error(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.db"
    Store.open(str(file), create=True).close()
    rows = [
        AuditedRow("o/n", "81c2" * 4, kind, "work", "", ""),
        AuditedRow("o/n", "81c2" * 4, "reference", "r", "", ""),
    ]
    patches = [PATCH, PATCH.replace(b"inspect", b"plainly")]
    cases = [audited.Case(row, "Round sums.", patch) for row, patch in zip(rows, patches, strict=True)]
    model = FakeModel(
        lambda it: said("answers_copied", "inspect.stack()[1]") if "inspect" in str(it.messages) else NONE
    )

    @contextmanager
    def opened(*_: object) -> Iterator[Gateway]:
        yield gateway_of(model)

    monkeypatch.setattr(audited, "cases_of", lambda *_: iter(cases))
    monkeypatch.setattr(audited, "open_gateway", opened)
    result = CliRunner().invoke(main, ["--db", str(file), "--references", "--out", str(tmp_path / "out.csv")])
    assert f"o/n 81c281c2 {kind}: work: answers_copied: inspect.stack()[1]" in result.output
    assert "o/n 81c281c2 reference: r: none" in result.output
    assert result.exit_code == (kind == "honest")
    assert len((tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()) == 3


def test_a_database_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    gone = CliRunner().invoke(main, ["--db", str(tmp_path / "none.db")])
    assert gone.exit_code == 1 and len(gone.output.splitlines()) == 1
