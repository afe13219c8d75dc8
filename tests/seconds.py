"""How long tests take: measured in a run, kept in `tests/seconds.txt`, and told.

A line there is seconds and what took them: a test of at least `LONG` seconds, all its cases together, or what the other
tests of a file take together. Seconds of one process on the machine that measured last: for shares, not for promises.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

FILE = Path(__file__).with_name("seconds.txt")

LONG = 0.5

Seconds = dict[str, float]
"""Test (its id without parameters), or test file for the rest of its tests, to seconds."""


def function_of(nodeid: str) -> str:
    """A test's id without its parameters."""
    return nodeid.partition("[")[0]


def file_of(name: str) -> str:
    """The test file of a test's id, or of a line of `FILE`."""
    return name.partition("::")[0]


def read() -> Seconds:
    """What was measured last."""
    lines = (line.split(" ", 1) for line in FILE.read_text(encoding="utf-8").splitlines())
    return {name: float(seconds) for seconds, name in lines}


def folded(tests: Mapping[str, float]) -> Seconds:
    """The lines of tests' seconds."""
    found: Seconds = defaultdict(float)
    for name, seconds in tests.items():
        found[name if seconds >= LONG else file_of(name)] += seconds
    return {name: max(0.01, float(f"{seconds:.2g}")) for name, seconds in found.items()}


def write(tests: Mapping[str, float]) -> None:
    """Keep what tests took; files of which none was run keep their lines."""
    ran = {file_of(name) for name in tests}
    kept = {name: seconds for name, seconds in read().items() if file_of(name) not in ran}
    lines = sorted((kept | folded(tests)).items())
    FILE.write_text("".join(f"{seconds:g} {name}\n" for name, seconds in lines), encoding="utf-8")


def by_file(seconds: Mapping[str, float]) -> Seconds:
    """Test file to the seconds of all its tests."""
    found: Seconds = defaultdict(float)
    for name, took in seconds.items():
        found[file_of(name)] += took
    return found


def told(seconds: float) -> str:
    """Seconds for people."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def slowest(seconds: Mapping[str, float], count: int) -> Iterable[str]:
    """A line for each of the files that take longest."""
    for file, took in sorted(by_file(seconds).items(), key=lambda item: -item[1])[:count]:
        yield f"{took:7.1f} s  {file}"
