"""The first answer to a change: the tests that are nearest to it, as many as a minute has room for.

    python -m tests.fast [--base REV] [pytest's arguments]

What changed is what the working tree and the commits since REV hold (the upstream of the branch; without one, the last
commit where the tree is clean). The import graph says which tests that reaches, and how near they are; those that are
nearest run first, short ones before long ones. Says what was left out, and how long the rest takes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests import seconds
from tests.touched import Sources, reached_tests

ROOT = Path(__file__).parents[1]

MINUTE = 60.0
WORKERS = 2
STARTING = 18.0
"""Seconds for starting the workers, importing what is tested, and collecting."""
ROOM = 0.7
"""What part of the minute's other seconds is planned for: machines differ, and the last tests of two workers do not end
together."""
LAST = 6.0
"""Seconds for the tests that run when the minute ends: none begins after that."""
UNKNOWN = 2.0
"""Seconds to expect of a file that was never measured."""


@dataclass
class Plan:
    """What to run of the tests that a change reaches."""

    run: list[str] = field(default_factory=list)
    """Files, whose long tests are left out unless they stand here, too."""
    left: dict[str, float] = field(default_factory=dict)
    """Files, and long tests, to seconds."""
    expected: float = 0.0
    """Seconds of one process."""


def plan(reached: Mapping[str, int], measured: Mapping[str, float], room: float) -> Plan:
    """Choose by distance, then by seconds, what fits into `room` seconds of one process."""
    costs = {file: measured.get(file, 0.0 if _has_lines(file, measured) else UNKNOWN) for file in reached}
    costs |= {name: took for name, took in measured.items() if "::" in name and seconds.file_of(name) in reached}
    order = sorted(costs, key=lambda name: (reached[seconds.file_of(name)], costs[name], name))
    chosen = Plan()
    for name in order:
        if chosen.expected + costs[name] <= room:
            chosen.run.append(name)
            chosen.expected += costs[name]
        else:
            chosen.left[name] = costs[name]
    return chosen


def _has_lines(file: str, measured: Mapping[str, float]) -> bool:
    return any(seconds.file_of(name) == file for name in measured)


def command(chosen: Plan, until: float, arguments: Sequence[str]) -> list[str]:
    """The call of pytest; tests that have not begun `until` then (seconds of `time.time`) are left out."""
    files = [name for name in chosen.run if "::" not in name]
    tests = [name for name in chosen.run if "::" in name and seconds.file_of(name) not in files]
    left = [f"--leave-out={name}" for name in chosen.left if seconds.file_of(name) in files]
    options = ["-q", "-n", str(WORKERS), "--hypothesis-profile", "fast", f"--until={until}"]
    return [sys.executable, "-m", "pytest", *options, *left, *arguments, *files, *tests]


def changed(base: str | None) -> tuple[list[str], str]:
    """The paths that changed, from the root, and since what."""
    if base is None:
        base = _git("rev-parse", "--abbrev-ref", "--symbolic-full-name", "@{upstream}", check=False).strip() or "HEAD"
        if base == "HEAD" and not _git("status", "--porcelain").strip():
            base = "HEAD~1"
    start = _git("merge-base", base, "HEAD").strip()
    paths = _git("diff", "--name-only", "--no-renames", "-z", start).split("\0")
    paths += _git("ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return sorted(path for path in set(paths) if path), base


def _git(*words: str, check: bool = True) -> str:
    process = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if check and process.returncode:
        sys.exit(f"test-fast: git {words[0]}: {process.stderr.strip()}")
    return process.stdout if not process.returncode else ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them; returns pytest's exit code."""
    begun = time.time()
    parser = argparse.ArgumentParser(prog="python -m tests.fast", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--base", help="the revision to compare with (the branch's upstream)")
    options, rest = parser.parse_known_args(arguments)
    paths, base = changed(options.base)
    sources = Sources(ROOT)
    reached = reached_tests(paths, sources)
    count = sum(1 for _ in (ROOT / "tests").rglob("test_*.py"))
    print(f"{len(paths)} files differ from {base}; they reach {len(reached)} of {count} test files", flush=True)
    if not reached:
        return 0
    measured = seconds.read()
    spare = MINUTE - STARTING - (time.time() - begun)
    chosen = plan(reached, measured, WORKERS * spare * ROOM)
    code = subprocess.run(command(chosen, begun + MINUTE - LAST, rest), cwd=ROOT, check=False).returncode
    whole = sum(measured.values()) / WORKERS
    if chosen.left:
        files = {seconds.file_of(name) for name in chosen.left}
        print(
            f"left out for want of time: {len(chosen.left)} parts of {len(files)} test files that the change reaches, "
            f"about {seconds.told(sum(chosen.left.values()) / WORKERS)}, the nearest first:"
        )
        for name in list(chosen.left)[:10]:
            print(f"  {chosen.left[name]:6.1f} s  {name}")
    unreached = f", also of the {count - len(reached)} files that the change does not reach" * (len(reached) < count)
    print(f"took {time.time() - begun:.0f} s; `make test` runs all{unreached}, in about {seconds.told(whole)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
