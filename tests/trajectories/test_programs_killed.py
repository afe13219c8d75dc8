"""A rollout by an agent program whose process is killed with SIGKILL: real processes, sandboxes of bubblewrap."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sql.tables import TrajectoryMessage
from tests.endpoint import Answer, Call, FakeEndpoint, wait_for
from tests.trajectories.kills import ENOUGH
from tests.trajectories.programkills import KINDS, SETTLED, context
from tests.trajectories.rolloutworld import Policy, PolicyModel, PolicyReply, answering, bash, rollout_world, works
from tests.trajectories.test_programs import finishes
from tests.trajectories.test_rollout_killed import billed, finish, ids, start, worlds
from tests.trajectories.toyagent import install_toy
from trajectories.rollouts.rollout import roll

ROOT = Path(__file__).parents[2]

TOY = ("--scaffold", "toy", "--agent", "context=stage", "--refinements", "0")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """pytest's own folders are closed to the user nobody, which root becomes."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def in_stage_2(call: Call) -> bool:
    """The second turn of stage 2."""
    messages = call.body["messages"]
    return "Task 2 of 2" in str(messages) and messages[-1]["role"] == "tool"


def after_a_comment(call: Call) -> bool:
    """The second turn after a comment, in a session that began with stage 1."""
    return in_stage_2(call) and "<review>" in str(call.body["messages"])


def test_killed_at_points_in_turn_it_leaves_the_rows_of_a_calm_run_and_no_stored_reply_is_paid_twice(
    tmp_path: Path,
) -> None:
    with worlds(tmp_path, [(1, 2)]) as (calm, rough):
        for world in (calm, rough):
            install_toy(world.folder)
        name = roll(context(calm, PolicyModel()), calm.chains[0], 0)
        assert calm.stages(name) == [(1, "accepted"), (2, "accepted")]
        process = subprocess.run(
            [sys.executable, "-m", "tests.trajectories.programkills", str(rough.folder)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0, process.stderr
        points = [json.loads(line) for line in (rough.folder / "points").read_text().splitlines()]
        assert len(points) >= ENOUGH
        assert {point[0] for point in points} >= {"before", "after", "request", "answered", *KINDS}
        assert ids(rough) == ids(calm) == [name]
        assert rough.whole(name) == calm.whole(name)
        assert Counter(rough.calls()) == Counter(calm.calls()) and max(Counter(rough.calls()).values()) == 1
        # What was answered and not stored when its process was killed is paid again, and nothing else.
        lost = [point for point in points if point[0] == "answered" or point[:2] == ["before", SETTLED]]
        assert len((rough.folder / "bill").read_text().splitlines()) == len(rough.calls()) + len(lost)
        assert len(rough.calls("reserved")) >= len(lost), "what was in flight counts as spent"


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bubblewrap")
@pytest.mark.drawn(2)
@pytest.mark.parametrize(
    ("options", "policy", "at", "attempt"),
    [(TOY, finishes, in_stage_2, 1), (TOY[:2], works, after_a_comment, 2)],
    ids=["a session a stage", "a session for the chain"],
)
def test_killed_in_the_middle_of_an_attempt_it_begins_again_and_no_stored_reply_is_paid_twice(
    open_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    policy: Policy,
    at: Callable[[Call], bool],
    attempt: int,
) -> None:
    monkeypatch.setenv("PRCHAIN_AGENTS_DIR", "agents")
    with worlds(open_folder, [(1, 2)]) as (calm, rough):
        for world in (calm, rough):
            install_toy(world.folder, backend="local")
        with FakeEndpoint(answering(policy)) as endpoint:
            assert finish(start(calm.folder, endpoint, *options))["outcomes"] == {"accepted": 1}
            expected = billed(endpoint)
        reached, killed = threading.Event(), threading.Event()
        inner = answering(policy)

        def holds(call: Call) -> Answer:
            """Holds back a turn until the asking process is dead."""
            if not reached.is_set() and at(call):
                reached.set()
                killed.wait(60)
            return inner(call)

        with FakeEndpoint(holds) as endpoint:
            run = start(rough.folder, endpoint, *options)
            assert reached.wait(120)
            run.kill()
            run.communicate()
            killed.set()
            wait_for(lambda: endpoint.idle)
            (name,) = ids(rough)
            assert rough.stages(name) == [(1, "accepted"), (2, "running")]
            places = rough.rows(TrajectoryMessage, "position", "attempt", trajectory_id=name)
            assert places.count((2, attempt)) == 1, "of an attempt nothing is kept before its end but what opened it"
            assert finish(start(rough.folder, endpoint, *options))["outcomes"] == {"accepted": 1}
            bill = billed(endpoint)
        assert bill.keys() == expected.keys(), "the same questions, and no others"
        assert sorted(bill.values()) == [1] * (len(bill) - 1) + [2], "only the call in flight may be paid twice"
        assert ids(calm) == [name]
        assert rough.whole(name) == calm.whole(name)


KEY = "key-of-the-endpoint-7f3a9c"

LOOK = r"""python3 - <<'END'
import glob, os, socket, urllib.error, urllib.request
for pattern in ("/proc/[0-9]*/environ", "/proc/[0-9]*/cmdline", "/tmp/**/*", "/.prchain/*"):
    for name in glob.glob(pattern, recursive=True):
        try:
            content = open(name, "rb").read()
        except OSError:
            continue
        words = content.split(b"\0")
        for at, word in enumerate(words):
            if name.endswith("cmdline") and word.endswith(b"/agent.py"):
                base_url, token = words[at + 1].decode(), words[at + 2].decode()
        print(name, content[:5000])


def asked(path, token, body=None):
    request = urllib.request.Request(base_url + path, body, {"Authorization": "Bearer " + token})
    try:
        return urllib.request.urlopen(request, timeout=20).status
    except urllib.error.HTTPError as error:
        return error.code


def said(head):
    port = int(base_url.split(":")[2].split("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
        raw.sendall(f"POST /v1/chat/completions HTTP/1.1\r\nAuthorization: Bearer {token}\r\n{head}\r\n\r\n".encode())
        return int(raw.recv(100).split()[1])


def reached(place):
    try:
        socket.create_connection(place, timeout=3).close()
        return True
    except OSError:
        return False


codes = [asked("/models", "another"), asked("/models", token)]
codes += [asked("/files", token), asked("/embeddings", token, b"{}")]
codes += [said("Transfer-Encoding: chunked"), said("Content-Length: 99999999999")]
print("PROBED", codes, reached(("127.0.0.1", PORT)), reached(("1.1.1.1", 53)))
END"""


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bubblewrap")
def test_what_runs_in_the_sandbox_has_no_key_and_reaches_nothing_but_its_endpoint(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRCHAIN_AGENTS_DIR", "agents")

    def looks(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        """Looks around in its first turn."""
        if messages[-1]["role"] != "tool" and "Task 1 of 2" in str(messages):
            return bash(LOOK.replace("PORT", endpoint.url.rpartition(":")[2].partition("/")[0]))
        return finishes([*messages[:2], *messages[4:]] if "Task 1 of 2" in str(messages) else messages)

    calls: list[Call] = []

    def answers(call: Call) -> Answer:
        calls.append(call)
        return answering(looks)(call)

    with rollout_world(open_folder, [(1, 2)]) as world, FakeEndpoint(answers) as endpoint:
        install_toy(world.folder, backend="local")
        run = start(world.folder, endpoint, *TOY, key=KEY)
        output = "".join(run.communicate(timeout=300))
        assert run.returncode == 0, output
    seen = json.dumps([call.body for call in calls])
    looked = str(calls[1].body["messages"][-1]["content"])
    assert looked.endswith("PROBED [401, 200, 404, 404, 411, 413] False False\n"), looked[-500:]
    assert "/environ b" in looked and "agent.py" in looked and "task.md" in looked
    assert {call.key for call in calls} == {KEY}
    assert KEY not in seen + output
    held = [path for path in open_folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert held == []
