"""A rollout by an agent program whose process is killed with SIGKILL: real processes, sandboxes of bubblewrap."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sql.tables import TrajectoryMessage
from tests.endpoint import Answer, Call, FakeEndpoint, wait_for
from tests.trajectories.rolloutworld import answering
from tests.trajectories.test_programs import finishes
from tests.trajectories.test_rollout_killed import billed, finish, ids, start, worlds
from tests.trajectories.toyagent import install_toy

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bubblewrap")

TOY = ("--scaffold", "toy", "--agent", "context=stage", "--refinements", "0")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """pytest's own folders are closed to the user nobody, which root becomes."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_killed_in_the_middle_of_an_attempt_it_begins_again_and_no_stored_reply_is_paid_twice(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRCHAIN_AGENTS_DIR", "agents")
    with worlds(open_folder, [(1, 2)]) as (calm, rough):
        for world in (calm, rough):
            install_toy(world.folder, backend="local")
        with FakeEndpoint(answering(finishes)) as endpoint:
            assert finish(start(calm.folder, endpoint, *TOY))["outcomes"] == {"accepted": 1}
            expected = billed(endpoint)
        reached, killed = threading.Event(), threading.Event()
        inner = answering(finishes)

        def holds(call: Call) -> Answer:
            """Holds back the second turn of stage 2 until the asking process is dead."""
            messages = call.body["messages"]
            if not reached.is_set() and "Task 2 of 2" in str(messages) and messages[-1]["role"] == "tool":
                reached.set()
                killed.wait(60)
            return inner(call)

        with FakeEndpoint(holds) as endpoint:
            run = start(rough.folder, endpoint, *TOY)
            assert reached.wait(120)
            run.kill()
            run.communicate()
            killed.set()
            wait_for(lambda: endpoint.idle)
            (name,) = ids(rough)
            assert rough.stages(name) == [(1, "accepted"), (2, "running")]
            positions = [row[0] for row in rough.rows(TrajectoryMessage, "position", trajectory_id=name)]
            assert positions.count(2) == 1, "of an attempt nothing is kept before its end but its query"
            assert finish(start(rough.folder, endpoint, *TOY))["outcomes"] == {"accepted": 1}
            bill = billed(endpoint)
        assert bill.keys() == expected.keys(), "the same questions, and no others"
        assert sorted(bill.values()) == [1] * (len(bill) - 1) + [2], "only the call in flight may be paid twice"
        assert ids(calm) == [name]
        assert rough.whole(name) == calm.whole(name)
