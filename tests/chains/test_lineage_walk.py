"""The walk: owners of lines over histories of every shape."""

from __future__ import annotations

from pathlib import Path

import pytest

from chains.lineage.landings import LandedRange
from chains.lineage.tracer import Tracer
from chains.lineage.walk import WalkedLanding
from prchain.core.console.progress import SILENT
from prchain.core.git import GitRepository
from tests.chains.lineageworld import generated, slow_owners
from tests.miner.gitworld import git


def walked(path: Path, ranges: list[LandedRange]) -> tuple[Tracer, list[WalkedLanding]]:
    tracer = Tracer(GitRepository.open(path), path.parent / "lineage", ranges, SILENT.task(""))
    assert tracer.begin(None, ()) == "it is the first"
    return tracer, tracer.walk()


def every_commit(path: Path) -> list[LandedRange]:
    """Each first-parent commit of each branch as a landing of its own."""
    found: dict[str, LandedRange] = {}
    for branch in ("main", "one", "two"):
        for line in git(path, "rev-list", "--first-parent", "--parents", branch).splitlines():
            sha, *parents = line.split()
            found.setdefault(sha, LandedRange(len(found) + 1, branch, parents[0] if parents else "", sha, True))
    return list(found.values())


@pytest.mark.parametrize("seed", range(20))
def test_owners_are_those_of_a_slow_and_obvious_replay(tmp_path: Path, seed: int) -> None:
    world = generated(tmp_path / "world.git", seed)
    tracer, landings = walked(world.path, every_commit(world.path))
    walk = tracer.finished
    assert len({one.landing.number for one in landings}) == len(landings) == len(tracer.commits)
    for tip in tracer.tips:
        owners = slow_owners(world.path, tip, walk.credited)
        ours = walk.states[tip].lines.files
        assert {name.decode(): None if lines is None else list(lines) for name, lines in ours.items()} == owners
