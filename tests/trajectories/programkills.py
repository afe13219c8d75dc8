"""A rollout by an agent program that is killed at every point of its work (`tests.trajectories.kills`).

The program is the toy, a process of its own beside the rollout; its model is in this process, and writes down what it
is paid for.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from environments.sandboxes.sandbox import LaidFolder, Sandbox
from prchain.core.llm.model import Reply, Request
from sql.store import Store, Transaction
from sql.tables import LlmCall, TrajectoryMessage, TrajectoryStage
from tests.environments.folder_sandbox import FolderSandbox
from tests.trajectories.kills import FatalStore, Points, hash_of, kill_everywhere
from tests.trajectories.rolloutworld import FolderPlace, PolicyModel, RolloutWorld, works
from trajectories.programs.attempt import ProgramAttempt
from trajectories.programs.calls import AttemptCalls
from trajectories.recording import server
from trajectories.rollouts.rollout import RunContext, _begin, roll

_MOST = 400

SETTLED = "SqlLedger._end"
"""What stores a reply."""

_STEPS: tuple[tuple[str, Any, str], ...] = (
    ("received", AttemptCalls, "answer"),
    ("turn", AttemptCalls, "_keep"),
    ("tree", AttemptCalls, "look"),
    ("delivered", server._ProgramHandler, "_send"),
    ("session", ProgramAttempt, "_with_session"),
)
"""Points that are no transaction: after these, or as they begin, for what is received. An attempt ends with one."""

KINDS = tuple(what for what, _, _ in _STEPS)


class PaidModel(PolicyModel):
    """Writes down each reply as it is given, and is a point before and after that."""

    def __init__(self, points: Points, bill: Path) -> None:
        super().__init__(works)
        self._points = points
        self._bill = bill

    def complete(self, request: Request) -> Reply:
        """See `FakeModel.complete`."""
        words = (request.purpose, request.subject, len(request.messages), hash_of(request))
        self._points.reach("request", *words)
        reply = super().complete(request)
        with self._bill.open("a") as file:
            file.write(f"{words}\n")
        self._points.reach("answered", *words)
        return reply


@dataclass
class OnePlace(FolderPlace):
    """One sandbox at a time, always in the same folder: agents are told where they are, and ask accordingly."""

    def sandbox(self, laid: Sequence[LaidFolder] = ()) -> Sandbox:
        """See `FolderPlace.sandbox`; what the last one left is gone, with what ran in it."""
        box = self.folder / "testbed"
        for link in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                if Path(os.readlink(link)).is_relative_to(self.folder):
                    os.kill(int(link.parts[2]), signal.SIGKILL)
        home = Path("/tmp") / f"agent-{hashlib.sha256(str(box).encode()).hexdigest()[:8]}"
        for path in (self.folder, home):
            shutil.rmtree(path, ignore_errors=True)
        box.mkdir(parents=True)
        return FolderSandbox(box)


def context(world: RolloutWorld, model: PolicyModel) -> RunContext:
    """One session for the chain, with a comment; equal worlds side by side have their sandboxes in one place."""
    box = world.folder.parent / "box"
    return world.context(model, scaffold="toy", overrides={"make_workplace": lambda _, trees: OnePlace(trees, box)})


def _state(tx: Transaction, writer: str) -> list[object]:
    state: list[object] = [tx.count(TrajectoryMessage), tx.count(TrajectoryStage)]
    if writer != _begin.__qualname__:  # which every process does
        state.append(tx.count(LlmCall, state="stored"))
    return state


def _made_fatal(owner: Any, name: str, reach: Callable[[], None], *, before: bool) -> None:
    inner = getattr(owner, name)

    @functools.wraps(inner)
    def wrapped(*arguments: Any, **named: Any) -> Any:
        if before:
            reach()
        result = inner(*arguments, **named)
        if not before:
            reach()
        return result

    setattr(owner, name, wrapped)


def _run(world: RolloutWorld) -> None:
    points = Points(world.folder / "points")
    store = FatalStore.at(world.folder, points, _state)
    counts: Counter[tuple[str, int]] = Counter()

    def reach(what: str) -> None:
        """The how manieth since the last that was stored of the trajectory."""
        with store.reading() as tx:
            stored = tx.count(TrajectoryMessage)
        counts[what, stored] += 1
        points.reach(what, stored, counts[what, stored])

    for what, owner, name in _STEPS:
        _made_fatal(owner, name, functools.partial(reach, what), before=what == "received")
    own = RolloutWorld(world.folder, store, world.world, world.chains)
    name = roll(context(own, PaidModel(points, world.folder / "bill")), world.chains[0], 0)
    assert own.outcome(name)[0] == "accepted", own.outcome(name)
    store.close()


def main(folder: Path) -> None:
    """Kill the rollout of the world in a folder."""
    store = Store.open(str(folder / "prchain.db"))
    world = RolloutWorld(folder, store, None, ["0000000000000001"])  # type: ignore[arg-type]
    context(world, PolicyModel())  # loads what is loaded late
    store.close()
    kill_everywhere(lambda: _run(world), most=_MOST)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
