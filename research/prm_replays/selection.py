"""The windows of real trajectories that are read by hand: those of SWE-bench instances whose repository is at hand."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from research.prm_windows.conversation import RealTrajectory
from research.prm_windows.windows import windows_of
from trajectories.agents.guidance.settings import WINDOW
from trajectories.agents.guidance.window import StepWindow
from trajectories.model import Entry

READ = 30
EACH = 2
"""Windows of one instance, at most."""

REPOSITORIES = (
    "marshmallow-code/marshmallow",
    "pydicom/pydicom",
    "pylint-dev/astroid",
    "sqlfluff/sqlfluff",
)

_INSTANCE = re.compile(r"(.+)__(.+)-(\d+)")


@dataclass(frozen=True)
class Instance:
    """An instance of SWE-bench: the pull request that its reference patch is of."""

    repository: str
    number: int

    @classmethod
    def of(cls, name: str) -> Instance | None:
        """That of a name, ``owner__repository-number``; None for other names."""
        found = _INSTANCE.fullmatch(name)
        return cls(f"{found[1]}/{found[2]}", int(found[3])) if found else None


def selection(
    trajectories: Iterable[RealTrajectory], repositories: Collection[str] = REPOSITORIES
) -> dict[str, tuple[RealTrajectory, StepWindow]]:
    """Trajectory's name to it and its one window that is read: whole windows alone, in the order of their hashes."""
    of_instance: Counter[str] = Counter()
    chosen: dict[str, tuple[RealTrajectory, StepWindow]] = {}
    for _, trajectory, window in sorted(_candidates(trajectories, repositories), key=lambda it: it[0]):
        if len(chosen) < READ and trajectory.name not in chosen and of_instance[trajectory.instance] < EACH:
            of_instance[trajectory.instance] += 1
            chosen[trajectory.name] = trajectory, window
    return dict(sorted(chosen.items()))


def _candidates(
    trajectories: Iterable[RealTrajectory], repositories: Collection[str]
) -> Iterator[tuple[str, RealTrajectory, StepWindow]]:
    for trajectory in trajectories:
        instance = Instance.of(trajectory.instance)
        if instance is None or instance.repository not in repositories:
            continue
        for window in windows_of(trajectory):
            if len(window.steps.steps) == WINDOW:
                text = f"replay {trajectory.name} {window.steps.last}"
                yield hashlib.sha256(text.encode()).hexdigest(), trajectory, window.steps


def cut(trajectory: RealTrajectory, window: StepWindow) -> RealTrajectory:
    """The trajectory without the steps before the window and with one step after it, so that a replay with
    ``--prm D:every=8`` reads this window alone. Steps are numbered from 1."""
    before = window.first - 1
    kept = [it for it in trajectory.entries if not it.step or window.first <= it.step <= window.last + 1]
    return replace(trajectory, entries=tuple(_renumbered(kept, before)))


def _renumbered(entries: Iterable[Entry], before: int) -> Iterator[Entry]:
    for ordinal, entry in enumerate(entries):
        yield replace(entry, ordinal=ordinal, step=entry.step - before if entry.step else 0)
