"""A database of made trajectories, for pages to be timed on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from tests.databases import open_new
from tests.trajectories.sampleworld import SampleWorld, Talk

WORDS = "parse amount unit reader sign total error test value option cache buffer stream index token".split()  # noqa: SIM905
STAGES = 5


def talk_of(steps: int, tokens: int, rng: random.Random) -> Talk:
    """A conversation of so many steps and, at four characters a token, tokens."""
    size = max(tokens * 4 // (steps * 2), 40)
    talk = Talk().system()
    before = 0
    for step in range(steps):
        position = step * STAGES // steps + 1
        if position != before:
            talk.query(position)
        before = position
        talk.bash(f"python3 -m pytest -q tests/test_{step}.py", _text(size * 3 // 2, rng), _text(size // 2, rng))
    return talk


def _text(size: int, rng: random.Random) -> str:
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append("    " * rng.randrange(3) + " ".join(rng.choices(WORDS, k=9)))
        length += len(lines[-1]) + 1
    return "\n".join(lines)


def fill(file: Path, sizes: Sequence[tuple[int, int]]) -> None:
    """Make a database with a trajectory of each (steps, tokens), under ids that count from 0."""
    rng = random.Random(0)
    with closing(open_new(file)) as store:
        world = SampleWorld(store)
        for number, (steps, tokens) in enumerate(sizes):
            chain = world.chain(f"c{number // 4:015x}", length=STAGES, first=number // 4 * STAGES + 1)
            world.trajectory(f"{number:016x}", chain, talk_of(steps, tokens, rng), sample=number % 4)
