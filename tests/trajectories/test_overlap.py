"""Files of texts that no sample should hold: their texts are found in any layout, or the file is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from prchain.cli import run
from prchain.core.errors import UsageError
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.overlap import Overlap

QUERY = "Please let the till print every coupon that was used, in the order in which they were scanned."
BROKEN = QUERY.replace(" ", "\n")
"""In JSON a line break is an escape, so the 13 words are found only if the text is parsed."""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SampleWorld]:
    with sample_world(tmp_path) as world:
        world.chain("c1")
        world.trajectory("t1", "c1", Talk().system().query(1, QUERY).bash("ls").submit())
        yield world


def overlap_report(world: SampleWorld, folder: Path, content: str | bytes, capsys: pytest.CaptureFixture[str]) -> str:
    """The report on standard error on the overlap with a file."""
    (folder / "texts").write_bytes(content.encode() if isinstance(content, str) else content)
    assert run(["export", "--out", "-", "--overlap", str(folder / "texts"), "--db", str(folder / "prchain.db")]) == 0
    output = capsys.readouterr()
    assert [json.loads(line)["metadata"]["trajectory_id"] for line in output.out.splitlines()] == ["t1"]
    return output.err


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
    output = overlap_report(world, tmp_path, content, capsys)
    assert f"1 of 1 samples share 13 words in a row with texts\n  t1: entries {entry}\n" in output


def test_without_a_card_standard_error_tells_the_result(
    world: SampleWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = overlap_report(world, tmp_path, " ".join(f"word{number}" for number in range(13)), capsys)
    assert "0 of 1 samples share" in output and "entries" not in output


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
