"""A guided rollout that is killed at every point of its work (`tests.trajectories.kills`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from prchain.core.llm.model import Request
from sql.store import Store, Transaction
from sql.tables import LlmCall, PrmWindow, TrajectoryMessage
from tests.trajectories.kills import FatalStore, Points, hash_of, kill_everywhere
from tests.trajectories.prmmodels import looping, prm_reply
from tests.trajectories.rolloutworld import FolderPlace, PolicyModel, RolloutWorld
from trajectories.agents.guidance.observer import make_prm
from trajectories.model import AgentLimits
from trajectories.rollouts.rollout import RunContext, _begin, roll

_MOST = 600


def guided_context(
    world: RolloutWorld, model: Any, before: Any = lambda command: None, budget: float | None = None
) -> RunContext:
    """A context in which some windows are told, one is on track and silent, and one cannot be read."""
    kind = make_prm(every="2", window="3", send="suboptimal")
    return world.context(
        model,
        budget=budget,
        overrides={
            "observers": (kind,),
            "make_workplace": lambda _, trees: FolderPlace(trees, world.folder, before),
        },
        min_length=1,
        refinements=1,
        stage_limits=AgentLimits(steps=14),
    )


def guided_model(before: Any = lambda request: None) -> PolicyModel:
    """The policy with a model that is no help at first."""

    def prm(messages: Any) -> str:
        text = str(messages[-1]["content"])
        if "steps, 1 to 2" in text:
            return "I cannot say."
        return prm_reply(status="On track", category="") if "steps, 2 to 4" in text else prm_reply()

    return PolicyModel(looping(prm), before)


def _state(tx: Transaction, writer: str) -> list[object]:
    state: list[object] = [tx.count(TrajectoryMessage), tx.count(PrmWindow)]
    if writer != _begin.__qualname__:  # which every process does
        state.append(tx.count(LlmCall, state="stored"))
    return state


def _run(world: RolloutWorld) -> None:
    points = Points(world.folder / "points")
    store = FatalStore.at(world.folder, points, _state)
    own = RolloutWorld(world.folder, store, world.world, world.chains, world.bases, world.landed)

    def asked(request: Request) -> None:
        points.reach("request", request.purpose, request.subject, len(request.messages), hash_of(request))

    def ran(command: str) -> None:
        with store.reading() as tx:
            points.reach("command", tx.count(LlmCall, state="stored"))

    name = roll(guided_context(own, guided_model(asked), ran), world.chains[0], 0)
    assert own.outcome(name)[0] == "accepted", own.outcome(name)
    store.close()


def main(folder: Path) -> None:
    """Kill the rollout of the world in a folder."""
    store = Store.open(str(folder / "prchain.db"))
    world = RolloutWorld(folder, store, None, ["0000000000000001"])  # type: ignore[arg-type]
    guided_context(world, guided_model())  # loads what is loaded late
    store.close()
    kill_everywhere(lambda: _run(world), most=_MOST)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
