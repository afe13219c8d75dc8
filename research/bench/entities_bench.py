"""How long the entities of 100 kB of text take: of code and output, and of texts made to be slow."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time

from research.bench.measures import Measure
from trajectories.agents.steps.entities import entities

SIZE = 100_000
"""Characters."""
GOAL = 50.0
"""Milliseconds, of one text."""

HOSTILE = (
    "a.a.",
    "a/",
    "//",
    "__",
    "aA",
    "0",
    "-",
    "a.py:1:",
    "::",
    "a-",
    "L1-L",
    'File "',
    "def ",
    ".",
    "\u0301",
    "http://",
)
"""Units that are repeated to the size."""


def run(*, turns: int = 5) -> list[Measure]:
    """Time each kind of text; of hostile ones the slowest."""
    texts = dict(_texts())
    measures = [Measure("entities", name, _milliseconds(text, turns), "ms", GOAL) for name, text in texts.items()]
    slowest = max((_milliseconds(_repeated(unit), turns), unit) for unit in HOSTILE)
    note = f"of {len(HOSTILE)} texts that repeat one piece: {slowest[1]!r}"
    return [*measures, Measure("entities", "100 kB of one piece again and again", slowest[0], "ms", GOAL, note=note)]


def _texts() -> Iterator[tuple[str, str]]:
    source = "\n".join(path.read_text(encoding="utf-8") for path in sorted(Path(__file__).parent.glob("*.py")))
    yield "100 kB of Python", (source * (SIZE // len(source) + 1))[:SIZE]
    lines = [
        f"{path}:{number}:{line}"
        for path in ("src/a.py", "tests/b.py")
        for number, line in enumerate(source.split("\n"))
    ]
    random.Random(1).shuffle(lines)
    yield "100 kB of grep's output", ("\n".join(lines) * (SIZE // len(source) + 1))[:SIZE]


def _repeated(unit: str) -> str:
    return (unit * (SIZE // len(unit) + 1))[:SIZE]


def _milliseconds(text: str, turns: int) -> float:
    """Processor time, the median of some turns."""
    times = []
    for _ in range(turns):
        start = process_time()
        entities(text)
        times.append((process_time() - start) * 1000)
    return median(times)
