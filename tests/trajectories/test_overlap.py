"""Files of texts that no sample should hold: however they are written, what they hold is found, or they are refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from prchain.cli import run
from prchain.errors import UsageError
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.overlap import Overlap

QUERY = "Please let the till print every coupon that was used, in the order in which they were scanned."
BROKEN = QUERY.replace(" ", "\n")
"""As JSON, whose line breaks are two characters, it has no 13 words in a row but once it is read as JSON."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    with sample_world(tmp_path) as made:
        made.chain("c1")
        made.trajectory("t1", "c1", Talk().system().query(1, QUERY).bash("ls").submit())
        yield made


def looked(world: SampleWorld, folder: Path, content: str | bytes, capsys: pytest.CaptureFixture[str]) -> str:
    """What standard error says of an overlap with a file."""
    (folder / "texts").write_bytes(content.encode() if isinstance(content, str) else content)
    assert run(["export", "--out", "-", "--overlap", str(folder / "texts"), "--db", str(folder / "prchain.db")]) == 0
    said = capsys.readouterr()
    assert [json.loads(line)["metadata"]["trajectory_id"] for line in said.out.splitlines()] == ["t1"]
    return said.err


@pytest.mark.parametrize(
    ("content", "entry"),
    [
        (json.dumps([{"id": 1}, {"problem": BROKEN}], indent=1), 2),
        (json.dumps([{"id": 1}, {"problem": BROKEN}]), 2),
        (json.dumps({"problems": [BROKEN]}, indent=1), 1),
        ("\ufeff" + json.dumps({"id": 1}) + "\n" + json.dumps({"problem": BROKEN}) + "\n", 2),
        (f"{'[' * 5_000}\n[broken\n{QUERY}\n", 3),
    ],
)
def test_texts_are_found_however_their_json_is_laid_out(
    content: str, entry: int, world: SampleWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = looked(world, tmp_path, content, capsys)
    assert f"1 of 1 samples share 13 words in a row with texts\n  t1: entries {entry}\n" in said


def test_without_a_card_standard_error_tells_the_result(
    world: SampleWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = looked(world, tmp_path, " ".join(f"word{number}" for number in range(13)), capsys)
    assert "0 of 1 samples share" in said and "entries" not in said


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "holds no text of 13 words"),
        (b"one two three\n" * 20, "holds no text of 13 words"),
        (json.dumps([{"id": number} for number in range(50)]).encode(), "holds no text of 13 words"),
        (b"PAR1\x15\x00" + QUERY.encode() + b"PAR1", "is no text in UTF-8"),
        (QUERY.encode("utf-16"), "is no text in UTF-8"),
    ],
)
def test_a_file_in_which_nothing_could_be_found_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "texts").write_bytes(content)
    with pytest.raises(UsageError, match=why):
        Overlap.load(tmp_path / "texts")


def test_one_text_a_line_is_numbered_as_an_editor_numbers_it(tmp_path: Path) -> None:
    (tmp_path / "texts").write_text(f"short\n\n{QUERY}\n")
    found = Overlap.load(tmp_path / "texts")
    assert found.items == 3 and set(found.grams.values()) == {3}
