"""What a call of an agent program costs beside its model: read, told from what was said before, forwarded, stored and
answered, on this machine's loopback; and what its calls take on the disk."""

from __future__ import annotations

import http.client
import json
import random
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from prchain.core.llm.price import Price
from prchain.core.secrets.scrub import redact_mined
from research.bench.measures import Measure
from sql.ledger import SqlLedger
from sql.store import Store
from tests.databases import new_database
from tests.models import FakeModel
from tests.trajectories.recordingworld import TOOL
from trajectories.agents.scaffolds.attempt_loop import LoopSettings
from trajectories.agents.scaffolds.scaffold import AttemptSpec
from trajectories.model import Entry, EntryKind
from trajectories.options import RolloutOptions
from trajectories.programs.branches import branches_beside
from trajectories.programs.calls import AttemptCalls
from trajectories.recording.conversation import Branch
from trajectories.recording.recorder import ProgramRecorder
from trajectories.recording.server import Answers, RecordingServer, serving
from trajectories.recording.storing import RecordedProgram, store_branch

SIZE = 200_000
"""Bytes of the last request."""
CALLS = 100
GOAL = 10.0
"""Most milliseconds of a call at that size, but for its model."""
_MEASURED = 20
"""Of the calls, the last ones."""


def run(*, size: int = SIZE, calls: int = CALLS) -> list[Measure]:
    """Measure a session under `prchain record`, and an attempt of a rollout."""
    measures: list[Measure] = []
    for name, made in (("prchain record", _recorder), ("an attempt of a rollout", _attempt)):
        bench = f"a call of an agent program at {size // 1000} kB, {name}"
        with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
            with _store(Path(folder)) as store:
                before = _disk(Path(folder))
                answers = made(store)
                with serving(answers) as server:
                    sent, walls, processors = _session(server, size, calls)
            grown = _disk(Path(folder)) - before  # closed: without what SQLite writes beside it meanwhile
        measures += [
            Measure(bench, "processor time", median(processors) * 1000, "ms", GOAL, note="the agent's HTTP is in it"),
            Measure(bench, "time", median(walls) * 1000, "ms", note="on a machine that does nothing else"),
            Measure(bench, "sent in all", sent / 1e6, "MB", note=f"{calls} calls"),
            Measure(bench, "the database grew by", grown / 1e6, "MB"),
        ]
        if isinstance(answers, AttemptCalls):
            measures.append(Measure(bench, "kept of it as a branch", _kept(answers) / 1e6, "MB"))
    return measures


@contextmanager
def _store(folder: Path) -> Iterator[Store]:
    new_database(folder / "p.db")
    store = Store.open(str(folder / "p.db"))
    try:
        yield store
    finally:
        store.close()


def _disk(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())


def _gateway(store: Store) -> Gateway:
    return Gateway(SqlLedger(store, "bench"), Route(FakeModel(_reply), Price(input=1.0, output=1.0)))


def _reply(request: Request) -> Reply:
    call = ToolCall(f"call_{len(request.messages)}", "bash", json.dumps({"command": f"cat {len(request.messages)}"}))
    return Reply("I look at the next one.", "fake", "tool_calls", tool_calls=(call,), usage=Usage(9, 0, 2))


def _recorder(store: Store) -> Answers:
    program = RecordedProgram("bench", "agent", "fake")
    return ProgramRecorder(_gateway(store), "bench", partial(store_branch, store, program))


def _attempt(store: Store) -> Answers:
    opening = Entry(0, 1, 1, 0, EntryKind.QUERY, "user", "Mend it.")
    spec = AttemptSpec("bench/1", 0, 1, 1, (opening,))
    settings = LoopSettings.of(RolloutOptions())
    return AttemptCalls(_gateway(store), settings, spec, lambda: None, partial(redact_mined, secrets=()))


def _session(server: RecordingServer, size: int, calls: int) -> tuple[int, list[float], list[float]]:
    """Bytes that were sent in all, and wall and processor seconds of the last calls."""
    chance = random.Random(1)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go."}]
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1])
    head = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    sent, walls, processors = 0, [], []
    for _ in range(calls):
        body = json.dumps({"model": "fake", "messages": messages, "tools": [TOOL]}).encode()
        sent += len(body)
        wall, processor = time.perf_counter(), time.process_time()
        connection.request("POST", "/v1/chat/completions", body, head)
        message = json.loads(connection.getresponse().read())["choices"][0]["message"]
        walls.append(time.perf_counter() - wall)
        processors.append(time.process_time() - processor)
        messages.append({name: value for name, value in message.items() if value is not None})
        printed = chance.randbytes(max(size // calls - 300, 10) // 2).hex()
        answered = message["tool_calls"][0]["id"]
        messages.append({"role": "tool", "tool_call_id": answered, "content": printed})
    connection.close()
    return sent, walls[-_MEASURED:], processors[-_MEASURED:]


def _kept(answers: AttemptCalls) -> int:
    opening = answers.spec.entries[-1]
    rows = branches_beside(Branch(-1, []), answers.conversations.branches, opening, answers.clean)
    return sum(len(row.exchanges) for row in rows)
