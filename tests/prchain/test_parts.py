from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from prchain.core.parts import open_part, remove_stale_parts, remove_stale_parts_in

ROOT = Path(__file__).parents[2]

WRITER = """
import sys, time
from pathlib import Path
from prchain.core.parts import open_part
part, stream = open_part(Path(sys.argv[1]))
stream.write(b"half")
stream.flush()
print("open", flush=True)
time.sleep(600)
"""


def writer(path: Path) -> subprocess.Popen[str]:
    """A process in the middle of writing a file."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], env=environment, text=True, stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == "open\n"
    return process


def killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)


def test_what_a_killed_writer_left_is_removed_by_the_next_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    out = tmp_path / "sft.jsonl"
    gone, at_work = writer(tmp_path / "sft.validation.jsonl"), writer(out)
    try:
        killed(gone)
        left = tmp_path / f".sft.validation.jsonl.{gone.pid}.part"
        held = tmp_path / f".sft.jsonl.{at_work.pid}.part"
        assert left.read_bytes() == held.read_bytes() == b"half"
        part, stream = open_part(out)
        stream.close()
        assert sorted(tmp_path.iterdir()) == sorted([held, part])
    finally:
        killed(at_work)
    remove_stale_parts(out)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_named_otherwise_are_left_alone(tmp_path: Path) -> None:
    others = [".other.jsonl.7.part", ".sft.jsonl.part", "sft.jsonl.7.part", ".sft.jsonl.x.part", ".sftx.jsonl.7.part"]
    for name in others:
        (tmp_path / name).touch()
    (tmp_path / ".sft.jsonl.7.part").mkdir()
    (tmp_path / ".sft.jsonl.card.md.8.part").touch()
    remove_stale_parts(tmp_path / "sft.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, ".sft.jsonl.7.part"])


def test_what_was_left_of_files_of_a_pattern_is_removed_at_once(tmp_path: Path) -> None:
    held, stream = open_part(tmp_path / "held.traj.json")
    others = [".notes.txt.7.part", ".a.traj.json.part", "b.traj.json", ".c.traj.json.x.part"]
    for name in [*others, ".a.traj.json.7.part", ".b.c.traj.json.8.part"]:
        (tmp_path / name).touch()
    remove_stale_parts_in(tmp_path, "*.traj.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, held.name])
    stream.close()
