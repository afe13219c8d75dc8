"""What an export costs: memory that does not grow with the number of trajectories, and how fast they are written."""

from __future__ import annotations

import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import select

from research.bench.measures import Measure
from sql.json_text import as_stored
from sql.tables import Chain, ChainStage, Task, TaskStage, Trajectory, TrajectoryMessage, TrajectoryStage, Verdict
from tests.trajectories.sampleworld import OVERVIEW, SampleWorld, Talk, sample_world

TRAJECTORIES = 10_000
TOKENS = 85_000
"""The paper's mean; at four bytes a token."""
CALLS = 116
STAGES = 5
REDUCTION = 10
"""The first export has so many times fewer trajectories, to compare the memory."""

GROWTH_GOAL = 1.25
"""Most memory of the large export, as a multiple of the small one's; each trajectory keeps about a kilobyte."""
MEMORY_GOAL = 300.0
"""MB."""

_TEXT = "x = check(self.value, 'name')  # the 1st of 2\nreturn {key: item for key in rows}\n<output> src/till/a.py:12 é"


def run(*, trajectories: int = TRAJECTORIES, tokens: int = TOKENS) -> list[Measure]:
    """Export generated trajectories; takes about two bytes on the disk for every byte of a sample."""
    bench = f"export of {trajectories:,} trajectories of {tokens:,} tokens"
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as name:
        folder = Path(name)
        small = _measured(folder / "small", max(trajectories // REDUCTION, 1), tokens)
        large = _measured(folder / "large", trajectories, tokens)
    megabytes = large["bytes"] / 1e6
    return [
        Measure(bench, "peak memory", large["peak"] / 1e6, "MB", MEMORY_GOAL),
        Measure(bench, "peak memory, against a tenth of them", large["peak"] / small["peak"], "x", GROWTH_GOAL),
        Measure(bench, "time", large["seconds"], "s", note=f"{megabytes:,.0f} MB written"),
        Measure(bench, "trajectories", trajectories / large["seconds"], "/s"),
        Measure(bench, "written", megabytes / large["seconds"], "MB/s"),
    ]


def _measured(folder: Path, trajectories: int, tokens: int) -> dict[str, float]:
    folder.mkdir()
    with sample_world(folder) as world:
        fill(world, trajectories, tokens)
    out, peak = folder / "sft.jsonl", folder / "peak"
    started = time.perf_counter()
    subprocess.run(
        [
            sys.executable,
            "-m",
            "research.bench.child",
            str(peak),
            "export",
            "--out",
            str(out),
            "--split",
            "0.05:by=chain",
            "--db",
            str(folder / "prchain.db"),
        ],
        check=True,
        capture_output=True,
        cwd=Path(__file__).parents[2],
    )
    seconds = time.perf_counter() - started
    files = [*folder.glob("sft*.jsonl")]
    size = sum(file.stat().st_size for file in files)
    lines = sum(_lines(file) for file in files)
    assert lines == trajectories, f"{lines} of {trajectories} were written"
    for file in (*files, folder / "prchain.db"):
        file.unlink()
    return {"seconds": seconds, "peak": float(peak.read_text()), "bytes": float(size)}


def _lines(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


def fill(world: SampleWorld, trajectories: int, tokens: int) -> None:
    """Write one ordinary trajectory, and copies of its rows under other ids; each gets new messages."""
    short = Talk().system()
    for position in range(1, STAGES + 1):
        short.query(position)
    world.trajectory("t", world.chain("c", length=STAGES), short)
    rng = random.Random(0)
    with world.store.transaction() as tx:
        tx.delete(TrajectoryMessage)
        for table in (Chain, ChainStage, Task, TaskStage, Trajectory, TrajectoryStage, Verdict):
            columns = [column.name for column in table.__table__.columns]
            stored = select(*as_stored(table.__table__.columns))
            rows = [dict(zip(columns, row, strict=True)) for row in tx.connection.execute(stored)]
            tx.bulk(table, columns, _copies(rows, trajectories))
        tx.delete(Trajectory, id="t")
        columns = [column.name for column in TrajectoryMessage.__table__.columns]
        messages = (row for index in range(trajectories) for row in _messages(f"t{index:07}", tokens, rng))
        tx.bulk(TrajectoryMessage, columns, ([row.get(name, _EMPTY.get(name)) for name in columns] for row in messages))


def _copies(rows: Sequence[dict[str, Any]], count: int) -> Iterator[list[Any]]:
    """The rows `count` times, with new ids of trajectories and chains, and new numbers of stages."""
    for index in range(count):
        ids = {"t": f"t{index:07}", "c": f"c{index:07}"}
        for row in rows:
            copy = {name: ids.get(value, value) if name.endswith("id") else value for name, value in row.items()}
            if "number" in copy:
                copy["number"] = index * STAGES + copy["position"] + STAGES
            yield list(copy.values())


_EMPTY: dict[str, Any] = {"tool_calls": "[]", "details": "{}", "seconds": 0.0, "at": "", "attempt": 1}


def _messages(name: str, tokens: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """The rows of one conversation; columns not named are as in `_EMPTY`, or null."""
    size = tokens * 4 // (CALLS * 2)
    text = _TEXT * (size * 2 // len(_TEXT) + 2)
    ordinal = itertools.count()

    def row(kind: str, role: str, content: str, position: int, step: int, **fields: Any) -> dict[str, Any]:
        return {
            "trajectory_id": name,
            "ordinal": next(ordinal),
            "kind": kind,
            "role": role,
            "content": content,
            "position": position,
            "step": step,
            **fields,
        }

    yield row("system", "system", "You work in a repository.", 1, 0)
    before = 0
    for step in range(1, CALLS + 1):
        position = (step - 1) * STAGES // CALLS + 1
        if position != before:
            lead = f"{OVERVIEW}\n\n" if position == 1 else ""
            yield row("query", "user", f"{lead}{name}: do thing {position}.", position, step - 1)
        before = position
        start = rng.randrange(len(_TEXT))
        reply, observation = text[start : start + size // 2], text[start : start + size * 3 // 2]
        call = f'[{{"id": "{step}", "name": "bash", "arguments": "{{\\"command\\": \\"ls {name}\\"}}"}}]'
        yield row("turn", "assistant", reply, position, step, tool_calls=call)
        yield row("observation", "tool", observation, position, step, tool_call_id=str(step), tool_name="bash")
