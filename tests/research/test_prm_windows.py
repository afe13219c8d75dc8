"""The rig of real agents' windows, on a made-up repository of trajectories."""

from __future__ import annotations

import csv
import json
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from research.prm_windows import __main__ as rig
from research.prm_windows.database import trajectory_name
from research.prm_windows.public import public_trajectories
from research.prm_windows.sample import drawn
from sql.store import Store
from trajectories.model import EntryKind
from trajectories.rows import read_entries
from trajectories.steps import steps_of


def trajectory(steps: int, command: str = "cat a.py") -> dict[str, Any]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You help."},
        {"role": "user", "content": "Mend it."},
    ]
    for number in range(steps):
        call = {"id": f"c{number}", "function": {"name": "bash", "arguments": json.dumps({"command": command})}}
        messages.append({"role": "assistant", "content": f"Step {number}.", "tool_calls": [call]})
        output = "timed out" if number == 3 else "<returncode>0</returncode>\n<output>\nx = 1\n</output>"
        messages.append({"role": "tool", "content": output, "tool_call_id": f"c{number}"})
    messages[-1] = {"role": "exit", "content": "diff"}
    return {"trajectory_format": "mini-swe-agent-1.1", "instance_id": f"a__b-{steps}", "messages": messages}


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    folder = tmp_path / "mirror"
    folder.mkdir()
    for name, value in {
        "one": trajectory(20),
        "two": trajectory(30, "sed -i s/a/b/ a.py"),
        "short": trajectory(4),
        "other": [1, 2],
    }.items():
        (folder / f"{name}.traj.json").write_text(json.dumps(value))
    (folder / "broken.traj.json").write_text("{")
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    return folder


def test_long_trajectories_are_read_and_named_by_their_blobs(mirror: Path) -> None:
    found = list(public_trajectories(mirror))
    assert {it.instance for it in found} == {"a__b-20", "a__b-30"}
    for one in found:
        blob = subprocess.run(
            ["git", "-C", str(mirror), "rev-parse", one.name], capture_output=True, text=True, check=True
        ).stdout
        assert blob.startswith(one.name)
    plain = next(it for it in found if it.instance == "a__b-20")
    steps = steps_of(plain.entries)
    assert len(steps) == 20 and steps[-1].submits and steps[3].failed and not steps[4].failed
    writing = next(it for it in found if it.instance == "a__b-30")
    assert steps_of(writing.entries)[0].observations[0].tree is not None


def test_a_sample_has_two_windows_of_a_trajectory_at_most_and_is_the_same_again(mirror: Path) -> None:
    found = list(public_trajectories(mirror))
    sample = drawn(found)
    assert len(sample) == 4 and sample == drawn(reversed(found))
    assert all(it.last % 5 == 0 and it.window.last == it.last for it in sample)


def test_it_shows_stores_counts_and_scores(mirror: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = [it for it in drawn(list(public_trajectories(mirror))) if it.trajectory.instance == "a__b-20"]
    labels = tmp_path / "labels.csv"
    rows = [(it.trajectory.name, 1, 1, it.last, "seen-lines", "yes", reader) for it in sample for reader in "XY"]
    rows.append((sample[0].trajectory.name, 1, 1, sample[0].last, "repeated-call", "yes", "X"))
    rows.append((sample[0].trajectory.name, 1, 1, sample[0].last, "repeated-call", "no", "Y"))
    with labels.open("w", newline="") as file:
        head = ("trajectory", "position", "attempt", "last_step", "category", "label", "reader")
        csv.writer(file).writerows([head, *rows])
    monkeypatch.setattr(rig, "LABELS", labels)
    words = ["--mirror", str(mirror), "--show", str(tmp_path / "shown"), "--write-db", str(tmp_path / "real.db")]
    done = CliRunner().invoke(rig.main, words)
    assert done.exit_code == 0, done.output
    assert "2 trajectories, 4 windows" in done.output
    (line,) = [line for line in done.output.splitlines() if line.startswith("seen-lines") and "(" in line]
    assert line.split()[1:4] == ["2", "0", "0"]
    assert len(list((tmp_path / "shown").glob("*.txt"))) == 4
    full = next(it for it in drawn(list(public_trajectories(mirror))) if len(it.window.steps) == 8)
    with closing(Store.open(str(tmp_path / "real.db"))) as store, store.reading() as tx:
        entries = read_entries(tx, trajectory_name(full))
    assert [it.number for it in steps_of(entries)] == list(range(full.window.first, full.last + 2))
    assert [it.kind for it in entries[:2]] == [EntryKind.SYSTEM, EntryKind.QUERY]
    labels.write_text(labels.read_text() + "nobody,1,1,5,seen-lines,yes,X\n")
    assert CliRunner().invoke(rig.main, ["--mirror", str(mirror)]).exit_code == 1
