"""Turns of real agents that speak of tests that pass, and what readers said of them: does the turn claim, plainly, that
tests pass, and had the agent seen that they do?

The trajectories are read from mirrors, as those of `research.prm_windows`; here are ids and labels alone. Turns of half
of the trajectories are drawn by hash: some as they stand, some ``cut``. Agents seldom claim what they did not see, so
of a cut one everything that ran after the last run of tests that failed is left out, or all that ran where none failed:
a real text, after a real run that failed or after none.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from research.prm_windows.conversation import RealTrajectory
from trajectories.agents.shell.programs import bash_command
from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.audit.seen_tests import SeenTests, seen_tests
from trajectories.audit.unfounded import unfounded_claims
from trajectories.model import Entry

FIRST_CLAIMS = "asked first: 1 of 38 flagged turns wrong, 9 of 46 missed; and one wrong in all trajectories"
LABELS = Path(__file__).with_name("claims.csv")
_SPEAKS = re.compile(
    r"(?i)\btests?\b[^.\n]{0,60}\b(?:pass|green|succe)|\b(?:pass|green|succe)\w*[^.\n]{0,40}\btests?\b"
)
"""Wider than any claim."""


class SpokenTurn(NamedTuple):
    """A turn that speaks of tests that pass."""

    trajectory: str
    step: int
    cut: bool
    entries: tuple[Entry, ...]
    """The conversation up to it."""

    @property
    def place(self) -> tuple[str, int, bool]:
        """What names it."""
        return self.trajectory, self.step, self.cut

    @property
    def flagged(self) -> bool:
        """Whether the audit takes it for an unfounded claim."""
        return any(claim.step == self.step for claim in unfounded_claims(self.entries))


def spoken_turns(trajectories: Iterable[RealTrajectory]) -> Iterator[SpokenTurn]:
    """All such turns of the half that no rule was tuned on, as they stand and cut."""
    for trajectory in trajectories:
        if int(trajectory.name[-1], 16) < 8:
            continue
        steps = steps_of(trajectory.entries)
        for at, step in enumerate(steps):
            if _SPEAKS.search(step.turn.content):
                for cut in (False, True):
                    kept = _cut(steps[:at]) if cut else steps[:at]
                    entries = (*(entry for it in kept for entry in (it.turn, *it.observations)), step.turn)
                    yield SpokenTurn(trajectory.name, step.number, cut, entries)


def drawn(turns: Sequence[SpokenTurn], count: int) -> list[SpokenTurn]:
    """So many turns by hash: half of them cut; of those that stand, half after a run that failed or without one."""
    ordered = sorted(turns, key=lambda it: hashlib.sha256(repr(it.place).encode()).digest())
    cut = [it for it in ordered if it.cut]
    standing = [it for it in ordered if not it.cut]
    risky = [it for it in standing if last_seen(it.entries) not in {SeenTests.PASSED, SeenTests.UNKNOWN}]
    calm = [it for it in standing if it not in risky]
    return [*cut[: count // 2], *risky[: count // 4], *calm[: count // 4]]


def last_seen(entries: Iterable[Entry]) -> SeenTests:
    """What the last run of tests showed."""
    found = [shown for step in steps_of(entries) for shown in _shown(step) if shown is not SeenTests.SCRIPT]
    return found[-1] if found else SeenTests.NO_RUN


def read_labels() -> dict[tuple[str, int, bool], bool]:
    """Place to whether readers found the claim unfounded."""
    with LABELS.open(newline="", encoding="utf-8") as file:
        return {
            (row["trajectory"], int(row["step"]), row["cut"] == "yes"): row["unfounded"] == "yes"
            for row in csv.DictReader(file)
        }


def _cut(steps: Sequence[Step]) -> list[Step]:
    last = next((at for at in range(len(steps) - 1, -1, -1) if SeenTests.FAILED in _shown(steps[at])), -1)
    return (
        [step for at, step in enumerate(steps) if at <= last or not _shown(step)]
        if last >= 0
        else [step for step in steps if not _shown(step)]
    )


def _shown(step: Step) -> list[SeenTests]:
    found = []
    for call, arguments, observation in step.calls:
        command = bash_command(call, arguments, observation)
        if command is not None and observation is not None and (shown := seen_tests(command, observation)) is not None:
            found.append(shown)
    return found
