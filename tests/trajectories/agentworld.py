"""What tests of the agent share: a model with scripted replies, a recorder in memory, an opening conversation."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from environments.sandboxes.sandbox import ExecResult, Sandbox
from prchain.core.errors import LlmError
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.ledger import Ledger
from prchain.core.llm.model import Message, Reply, Request, ToolCall, Usage
from prchain.core.llm.price import Price
from tests.environments.scripted_sandbox import ScriptedResult, ScriptedSandbox
from tests.memory_ledger import MemoryLedger
from tests.models import FakeModel
from trajectories.agents.scaffolds.kinds.react import ReactScaffold
from trajectories.agents.scaffolds.scaffold import AttemptResult, AttemptSpec, Observer, Record
from trajectories.model import Entry, EntryKind

ScriptedReply = Reply | LlmError | Callable[[Request], Reply]


class Model(FakeModel):
    """Returns these replies in turn, or raises them."""

    def __init__(self, replies: Iterable[ScriptedReply]) -> None:
        self.replies = list(replies)
        super().__init__(self._next, "said")
        self.requests = self.asked

    def _next(self, request: Request) -> Reply | LlmError:
        if not self.replies:
            raise AssertionError("the model was asked once more than was thought")
        reply = self.replies.pop(0)
        return reply if isinstance(reply, Reply | LlmError) else reply(request)


class Memory:
    """A recorder in memory. `trees` are the sandbox's trees, one per call of `tree`."""

    def __init__(self, trees: Iterable[str | None] = ()) -> None:
        self.batches: list[list[Entry]] = []
        self.records: list[int] = []
        self.trees = list(trees)
        self.tree_calls = 0

    def add(self, entries: Sequence[Entry], records: Sequence[Record] = ()) -> None:
        self.batches.append(list(entries))
        self.records.append(len(records))

    def tree(self) -> str | None:
        self.tree_calls += 1
        return self.trees.pop(0) if self.trees else None

    def restored(self, tree: str) -> None: ...

    @property
    def entries(self) -> list[Entry]:
        return [entry for batch in self.batches for entry in batch]


def call(name: str = "bash", id: str = "c1", **arguments: Any) -> ToolCall:
    return ToolCall(id, name, json.dumps(arguments))


def says(text: str = "Let me look.", *calls: ToolCall, **fields: Any) -> Reply:
    fields.setdefault("usage", Usage(100, 0, 10))
    return Reply(text, "said", fields.pop("finish", "tool_calls" if calls else "stop"), tool_calls=calls, **fields)


def runs(command: str = "ls", **fields: Any) -> Reply:
    return says("Let me look.", call(command=command), **fields)


SUBMIT = says("Done.", call("submit"))
OK = ScriptedResult(lambda _: True, ExecResult(0, b"fine\n"), repeat=True)


def slowly(command: str) -> bool:
    """Matches every command, slowly."""
    time.sleep(0.05)
    return True


def opening(position: int = 1, attempt: int = 1) -> list[Entry]:
    """The system message and the query that open a stage."""
    return [
        Entry(0, 1, 1, 0, EntryKind.SYSTEM, "system", "You work in a sandbox."),
        Entry(1, position, attempt, 0, EntryKind.QUERY, "user", "Mend the parser."),
    ]


def spec(entries: Sequence[Entry] | None = None, **fields: Any) -> AttemptSpec:
    defaults: dict[str, Any] = {"subject": "t1/1", "sample": 0, "position": 1, "attempt": 1}
    return AttemptSpec(entries=opening() if entries is None else entries, **(defaults | fields))


def sandbox_of(*lines: Any, **fields: Any) -> ScriptedSandbox:
    sandbox = ScriptedSandbox(lines or (OK,), **fields)
    sandbox.start()
    return sandbox


def work(
    model: Model,
    *,
    scaffold: ReactScaffold | None = None,
    sandbox: Sandbox | None = None,
    attempt_spec: AttemptSpec | None = None,
    record: Memory | None = None,
    observers: Sequence[Observer] = (),
    ledger: Ledger | None = None,
    price: Price | None = None,
) -> tuple[AttemptResult, Memory]:
    """Run one attempt; its result and its recorder."""
    record = record or Memory()
    gateway = Gateway(ledger or MemoryLedger(), Route(model, price), pause=lambda _: None)
    scaffold = scaffold or ReactScaffold(tools="full")
    attempt = scaffold.attempt(gateway, sandbox or sandbox_of(), attempt_spec or spec(), record, observers)
    return attempt, record


def requires_valid(messages: Sequence[Message]) -> None:
    """The rule of OpenAI's endpoints: the messages after a call answer it, and no other messages do."""
    open_ids: list[str] = []
    for message in messages:
        if message.role == "tool":
            assert message.tool_call_id in open_ids, message
            open_ids.remove(message.tool_call_id)
            continue
        assert not open_ids, f"unanswered: {open_ids}"
        if message.role == "assistant":
            assert message.content or message.tool_calls
            open_ids = [tool_call.id for tool_call in message.tool_calls]
            assert all(open_ids) and len(set(open_ids)) == len(open_ids)
            for tool_call in message.tool_calls:
                assert isinstance(json.loads(tool_call.arguments), dict)
                assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_call.name)
    assert not open_ids


def without_times(entries: Iterable[Entry]) -> list[Entry]:
    return [replace(entry, seconds=0.0, at="", usd=None) for entry in entries]
