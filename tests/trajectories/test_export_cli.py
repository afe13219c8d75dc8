"""What the export command refuses before it writes anything, and what it leaves behind when it is interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from prchain.cli import run
from sql.tables import TrajectoryStage
from tests.trajectories.sampleworld import SampleWorld, Talk, sample_world
from trajectories.export.write import Files, JsonLines


@pytest.fixture
def empty_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SampleWorld]:
    """A chain without trajectories."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRCHAIN_DB", "prchain.db")
    with sample_world(tmp_path) as world:
        world.chain("c1")
        yield world


@pytest.fixture
def world(empty_world: SampleWorld) -> SampleWorld:
    empty_world.trajectory("t1", "c1")
    return empty_world


def files() -> dict[str, bytes]:
    """The files in the working directory, without SQLite's shared memory."""
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.suffix != ".db-shm"}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The error message of a wrong command line, which writes nothing."""
    before = files()
    assert run(["export", *arguments]) == 2
    assert files() == before
    output = capsys.readouterr()
    assert output.out == ""
    return output.err


@pytest.mark.parametrize("form", ["slime", "swebench"])
@pytest.mark.parametrize("name", ["prchain.db", "./prchain.db", "prchain.db-wal", "prchain.toml", "linked"])
def test_what_the_command_reads_is_never_replaced(
    form: str, name: str, world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("prchain.toml").write_text("workers = 3\n")
    Path("linked").symlink_to("prchain.db")
    assert "which this command reads" in refused(capsys, "--format", form, "--out", name, "--force")


@pytest.mark.parametrize(
    ("out", "read", "option"),
    [
        ("bench.jsonl", "bench.jsonl", "--overlap"),
        ("sft.jsonl", "sft.validation.jsonl", "--overlap"),
        ("sft.jsonl", "sft.jsonl.card.json", "--overlap"),
        ("tokenizer.json", "tokenizer.json", "--tokenizer"),
    ],
)
def test_no_file_beside_the_samples_replaces_one_that_is_read(
    out: str, read: str, option: str, world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(read).write_text("{}")
    message = refused(capsys, "--out", out, option, read, "--split", "0.5", "--force")
    assert f"{read} would replace {read}" in message


def test_the_template_beside_a_tokenizer_is_not_replaced(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("tokenizer.json").write_text("{}")
    Path("tokenizer_config.json").write_text("{}")
    message = refused(capsys, "--out", "tokenizer_config.json", "--tokenizer", "tokenizer.json", "--force")
    assert "would replace tokenizer_config.json" in message


@pytest.mark.parametrize("form", ["slime", "swebench"])
@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--outcome", "acepted", "no trajectory is of the outcome acepted; there are: accepted (1)"),
        ("--outcome", "accepted,acepted", "no trajectory is of the outcome acepted"),
        ("--repository", "shop/tilll", "shop/tilll has not been mined"),
        ("--model", "agent-2", "no trajectory is of the model agent-2; there are: agent-1 (1)"),
    ],
)
def test_names_that_nothing_has_are_refused_and_make_no_empty_file(
    form: str, option: str, name: str, said: str, world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "--format", form, "--out", "out.jsonl", option, name)


def test_an_outcome_that_none_has_yet_is_no_mistake(world: SampleWorld) -> None:
    assert run(["export", "--out", "out.jsonl", "--outcome", "accepted_prefix rate_limited"]) == 1
    world.trajectory("t2", "c1", sample=1, outcome="no_recipe")
    assert run(["export", "--out", "other.jsonl", "--outcome", "no_recipe"]) == 0
    assert len(Path("other.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("--split", "0.5"),
        ("--max-tokens", "9"),
        ("--rows", "turns"),
        ("--overlap", "prchain.db"),
        ("--mask", "guidance"),
    ],
)
def test_predictions_refuse_the_options_of_samples(
    arguments: tuple[str, str], world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(capsys, "--format", "swebench", "--out", "out.jsonl", *arguments)
    assert f"writes predictions, not samples: leave out {arguments[0]}" in message


@pytest.mark.parametrize("arguments", [("--predictions", "sample=0"), ("--predictions", "like=t1")])
def test_samples_refuse_the_options_of_predictions(
    arguments: tuple[str, str], world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    message = refused(capsys, "--out", "out.jsonl", *arguments)
    assert f"writes samples, not predictions: leave out {arguments[0]}" in message


def test_predictions_are_no_parquet(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert "JSON lines only" in refused(capsys, "--format", "swebench", "--out", "out.parquet")


def prchain(*arguments: str, stdout: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "prchain.cli", *arguments]
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, env={**os.environ, "PYTHONPATH": root}
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize("length", [1, 50_000])
def test_a_full_disk_behind_standard_output_is_said_in_one_line(length: int, world: SampleWorld) -> None:
    world.trajectory("t2", "c1", Talk().system().query(1, "word " * length).bash("ls").submit(), sample=1)
    full = os.open("/dev/full", os.O_WRONLY)
    process = prchain("export", "--out", "-", stdout=full)
    os.close(full)
    assert process.returncode == 1
    assert process.stderr.splitlines() == [
        "prchain: error: no room is left on the disk of standard output; make room and run the command again"
    ]


HALF_WRITTEN = """
import signal
import time
from prchain.cli import main
from trajectories.export.write import HashedFile

write = HashedFile.write

def slow(stream, data):
    count = write(stream, data)
    print("half", flush=True)
    time.sleep(600)
    return count

HashedFile.write = slow
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job is started without it
main()
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_an_export_that_a_signal_ends_leaves_no_hidden_files_and_what_was_there(
    world: SampleWorld, sign: signal.Signals
) -> None:
    Path("out").mkdir()
    Path("out/sft.jsonl").write_text("before")
    command = [sys.executable, "-c", HALF_WRITTEN, "export", "--force", "--out", "out/sft.jsonl"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(command, env=environment, text=True, stdout=-1, stderr=-1) as process:
        assert process.stdout is not None and process.stdout.readline() == "half\n"
        assert len(list(Path("out").iterdir())) > 1
        process.send_signal(sign)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + sign
    assert len([line for line in err.splitlines() if line.startswith("prchain: ")]) == 1
    assert [(path.name, path.read_text()) for path in Path("out").iterdir()] == [("sft.jsonl", "before")]


def test_a_file_that_goes_stays_where_the_new_ones_are_not_written(tmp_path: Path) -> None:
    (tmp_path / "old").write_text("before")
    with pytest.raises(ZeroDivisionError), Files(force=True) as files:
        files.remove(tmp_path / "old")
        raise ZeroDivisionError
    assert (tmp_path / "old").exists()
    with Files(force=True) as files:
        files.open(tmp_path / "new").write(b"new")
        files.remove(tmp_path / "old")
        assert (tmp_path / "old").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_know_are_not_written(number: float, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"), Files() as files:
        JsonLines(files.open(tmp_path / "rows")).write({"arguments": {"number": number}})
    assert list(tmp_path.iterdir()) == []


def test_the_report_for_machines_counts_samples_that_share_text(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "--out", "a.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["samples_that_share_text"] is None
    Path("texts").write_text("nothing of this list of thirteen words stands in the samples of this world")
    assert run(["export", "--out", "b.jsonl", "--json", "--overlap", "texts"]) == 0
    assert json.loads(capsys.readouterr().out)["samples_that_share_text"] == 0


def nothing_exported(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, str]:
    """What an export without rows prints and says beside its progress; it changes no file."""
    before = files()
    assert run(["export", *arguments]) == 1
    assert files() == before
    output = capsys.readouterr()
    *progress, line = output.err.splitlines()
    assert progress in ([], ["samples", "samples: 0 written"])
    return output.out, line


NEXT = "run `prchain rollouts run` first"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("slime", f"nothing to export: no trajectory was kept yet; {NEXT}"),
        ("swebench", f"nothing to export: no stage was tried yet; {NEXT}"),
    ],
)
@pytest.mark.parametrize("out", ["out.jsonl", "-"])
def test_without_a_trajectory_no_file_is_written_and_the_exit_code_is_1(
    form: str, said: str, out: str, empty_world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert nothing_exported(capsys, "--format", form, "--out", out) == ("", said)
    if form == "slime":
        empty_world.trajectory("t1", "c1", outcome="rejected", accepted=0)
        assert nothing_exported(capsys, "--out", out) == ("", said)


@pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
def test_a_real_export_to_the_name_of_one_without_samples_needs_no_force(
    name: str, empty_world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow")
    nothing_exported(capsys, "--out", name, "--split", "0.5")
    empty_world.trajectory("t1", "c1")
    assert run(["export", "--out", name, "--split", "0.5"]) == 0
    assert {path.name for path in Path().glob("out.*")} == {
        name,
        name.replace(".", ".validation."),
        f"{name}.card.md",
        f"{name}.card.json",
    }


def test_without_samples_the_files_of_an_export_before_stay(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["export", "--out", "out.jsonl", "--split", "0.5"]) == 0
    capsys.readouterr()
    _, said = nothing_exported(capsys, "--out", "out.jsonl", "--force", "--outcome", "rejected")
    assert said == "nothing to export: no trajectory was found that fits --outcome"


@pytest.mark.parametrize("out", ["out.jsonl", "-"])
def test_where_all_samples_are_left_out_the_reasons_are_said(
    out: str, world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    world.trajectory("t2", "c1", Talk().system().query(1).bash("ls").submit(), sample=1)
    world.trajectory("t3", "c1", sample=2, outcome="accepted_prefix", accepted=2, overview=None)
    told = nothing_exported(capsys, "--out", out, "--max-tokens", "9", "--retell")
    assert told == ("", "nothing to export: 1 no_overview, 2 too_long")


def test_a_split_that_leaves_a_part_empty_is_remarked(world: SampleWorld, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["export", "--out", "sft.jsonl", "--split", "0.1"]) == 0
    assert "no sample is for validation: its file is empty" in capsys.readouterr().err
    assert Path("sft.jsonl").read_bytes() and not Path("sft.validation.jsonl").read_bytes()


def test_without_samples_the_report_for_machines_is_printed(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    printed, said = nothing_exported(capsys, "--out", "out.jsonl", "--max-tokens", "9", "--json")
    row = json.loads(printed)
    assert (row["samples"], row["rows"], row["files"]) == ({"train": 0}, {"train": 0}, [])
    assert row["left_out"] == {"too_long": 1} and said == "nothing to export: 1 too_long"


@pytest.mark.parametrize("chosen", [("--repository", "shop/till"), ("--model", "agent-1")])
def test_what_chooses_no_kept_trajectory_is_named(
    chosen: tuple[str, str], empty_world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    empty_world.trajectory("t1", "c1", outcome="rejected", accepted=0)
    _, said = nothing_exported(capsys, "--out", "out.jsonl", *chosen)
    assert said == f"nothing to export: no trajectory was kept that fits {chosen[0]}"


def test_without_predictions_no_file_is_written_and_the_report_is_printed(
    world: SampleWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--format", "swebench", "--out", "out.jsonl")
    printed, said = nothing_exported(capsys, *out, "--predictions", "sample=9", "--json")
    assert json.loads(printed) == {"predictions": 0, "left_out": 0, "file": None}
    assert said == "nothing to export: no stage was tried that fits --predictions"
    Path("out.jsonl").write_text("before")
    nothing_exported(capsys, *out, "--predictions", "sample=9", "--force")
    with world.store.transaction() as tx:
        tx.connection.execute(update(TrajectoryStage).values(attempts=0))
    assert run(["export", *out, "--force"]) == 1
    *stages, last = capsys.readouterr().err.splitlines()
    assert len(stages) == 3 and last == "nothing to export: 3 not_tried"
    assert Path("out.jsonl").read_text() == "before"
