"""mini-swe-agent while its endpoint fails: what becomes of the attempt, over the wire, from answer to outcome."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from prchain.core.llm.setup import make_gateway
from prchain.core.settings import Settings
from sql.ledger import SqlLedger
from sql.tables import TrajectoryStage
from tests.endpoint import Answer, Call, FakeEndpoint, Part, completion, cut, error
from tests.trajectories.miniprogram import NAME, SYSTEM, install_mini
from tests.trajectories.rolloutworld import PolicyReply, RolloutWorld, answering, bash, rollout_world, works
from trajectories.branches import read_branches
from trajectories.model import EntryKind
from trajectories.rollouts.rollout import roll
from trajectories.rows import read_entries

pytestmark = pytest.mark.mini

HAND_IN = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


def mends(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
    """Writes what is asked for, and hands it in once it has seen that; reviews as always."""
    if messages[0]["content"] != SYSTEM:
        return works(messages)
    written = any("value = 1" in str(it["content"]) for it in messages if it["role"] == "tool")
    return bash(HAND_IN if written else "echo 'value = 1' > src/part_1.py; cat src/part_1.py")


@dataclass
class MiniRuns:
    """Runs of one rollout by that agent."""

    world: RolloutWorld

    def __call__(self, fault: Part | None, *, once: bool = False) -> tuple[str, str, list[Call]]:
        """Run until it ends; what the agent asks after it has written is answered by the fault, always or `once`.
        Returns outcome, reason, and the agent's calls that arrived."""
        asked: list[Call] = []
        late: list[Call] = []

        def answers(call: Call) -> Answer:
            messages = call.body["messages"]
            if messages[0]["content"] == SYSTEM:
                asked.append(call)
                late.extend([call] if any(it["role"] == "tool" for it in messages) else [])
                if fault is not None and late and not (once and len(late) > 1):
                    return fault(call)
            return answering(mends)(call)

        with FakeEndpoint(answers) as endpoint:
            settings = Settings.load(
                llm_base_url=endpoint.url, llm_model="fake", llm_price_input=1.0, llm_price_output=2.0, llm_max_tries=1
            )
            with closing(make_gateway(settings, SqlLedger(self.world.store, "run"))) as gateway:
                gateway.repeats = 0
                options: dict[str, Any] = {"scaffold": NAME, "context": "stage", "refinements": 0, "min_length": 1}
                context = replace(self.world.context(**options), gateway=gateway, retries=0)
                name = roll(context, self.world.chains[0], 0)
        outcome, _, reason = self.world.outcome(name)
        self.name = name
        return outcome, str(reason), asked


@pytest.fixture
def run(tmp_path: Path) -> Iterator[MiniRuns]:
    with rollout_world(tmp_path, [(1,)]) as world:
        install_mini(world.folder)
        yield MiniRuns(world)


def test_an_endpoint_that_fails_is_no_failure_of_the_agents_and_the_next_run_pays_for_nothing_twice(
    run: MiniRuns,
) -> None:
    first = len(completion()(Call(1, {"model": "fake", "max_tokens": 9}, 1, "", "")).body)
    for number, (fault, outcome) in enumerate(
        [
            (cut(first // 2), "endpoint_unreachable"),
            (error(429, "later"), "rate_limited"),
            (error(500), "endpoint_unreachable"),
        ]
    ):
        ended, reason, asked = run(fault)
        assert ended == outcome, reason
        assert run.world.stages(run.name) == [(1, "running")]
        assert len(asked) == 1 + (number == 0), "only the first run asks the first question"
    ended, _, asked = run(completion(None, refusal="I will not"), once=True)
    assert ended == "accepted" and len(asked) == 2, "what was answered before comes from the ledger"
    assert run.world.rows(TrajectoryStage, "endings", trajectory_id=run.name) == [(["submitted"],)]
    with run.world.store.reading() as tx:
        turns = [entry for entry in read_entries(tx, run.name) if entry.kind is EntryKind.TURN]
        (refused,) = read_branches(tx, run.name)
    assert len(turns) == 2 and refused.replies == 1, "the agent leaves out of its conversation what it cannot use"


def test_what_the_endpoint_refuses_ends_the_agent_by_its_own_rules(run: MiniRuns) -> None:
    outcome, reason, asked = run(error(400, "no such thing"))
    assert outcome == "agent_failed" and len(asked) == 2
    assert "it ended with exit code 1" in reason and "no such thing" in reason
