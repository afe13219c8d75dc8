"""A small repository with a chain of five stages in a database, and a model that works through it.

The model is a function of the conversation alone, so that equal requests get equal replies, in this process or
behind an endpoint in another one.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from environments.backends import BACKENDS
from environments.briefing import Briefing
from environments.checkouts.checkout import Extraction, extract_tree, place_repository, place_tree
from environments.images.provide import Provider
from environments.sandboxes.sandbox import ExecResult, LaidFolder, Sandbox
from prchain.core.git.trees import TreeStore
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.model import Reply, Request, ToolCall, Usage
from prchain.core.llm.price import Price
from prchain.core.settings import Settings
from sql.ledger import SqlLedger
from sql.store import Store
from sql.tables import (
    Base,
    Chain,
    ChainStage,
    LlmCall,
    Repository,
    Selection,
    Task,
    TaskStage,
    Trajectory,
    TrajectoryMessage,
    TrajectoryStage,
    Verdict,
)
from tests.databases import new_database
from tests.endpoint import Answer, Call, completion
from tests.environments.folder_sandbox import FolderSandbox
from tests.miner.gitworld import Content, World
from tests.models import FakeModel
from trajectories.options import RolloutOptions
from trajectories.programs.choice import make_scaffold
from trajectories.rollouts.rollout import RunContext
from trajectories.rollouts.run import RolloutChoice, RolloutRun

NAME = "shop/till"
STAGES = 5
OVERVIEW = "The till learns its five parts one after the other, and each of them stands on those before it."
SHORTER = (
    "The till learns its first parts one after the other, so that whoever sells things can rely on them. The work "
    "begins with the part that holds the smallest value and goes on with the next one, which stands beside it. Each "
    "part keeps to what is there already, and nothing that stood before is changed by it in any way at all, so that "
    "what works today goes on working. Shops that use the till see new values and no other difference between before "
    "and after."
)
COMMENT = "The part is a draft yet, and its value is not what was asked for."
START: dict[str | bytes, Content] = {
    "pyproject.toml": '[project]\nname = "till"\nversion = "1"\n',
    "src/__init__.py": "",
    "README.md": "# till\n",
}


def query(position: int) -> str:
    """The query of a stage."""
    return f"Give the till its part number {position} in src/part_{position}.py, which holds the value {position}."


@dataclass(frozen=True)
class PolicyReply:
    """A reply of the model: a text, or a call of a tool."""

    text: str = ""
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)


Policy = Callable[[Sequence[Mapping[str, Any]]], PolicyReply]
"""From the messages of a request, as OpenAI's wire has them."""


def bash(command: str) -> PolicyReply:
    """A call of the tool bash."""
    return PolicyReply("On it.", "bash", {"command": command})


SUBMIT = PolicyReply("Done.", "submit", {})


def works(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
    """Writes the part of each stage, a draft of the second one at first; the judge rejects drafts."""
    first = str(messages[0]["content"])
    everything = "\n".join(str(message["content"]) for message in messages)
    if "You review code" in first:
        draft = "draft" in str(messages[-1]["content"])
        return PolicyReply(
            json.dumps({"comment": COMMENT if draft else "It does what was asked for.", "score": 0.3 if draft else 1.0})
        )
    if "You rewrite the introduction" in first:
        return PolicyReply(json.dumps({"overview": SHORTER}))
    if "You edit comments" in first:
        return PolicyReply(json.dumps({"comment": "Something that was asked for is not there yet."}))
    assert "<task>" in everything
    position, turns, reviewed = place_of(messages)
    return part_of(position, turns, reviewed, draft=position == 2)


def part_of(position: int, turns: int, reviewed: bool, *, draft: bool = False) -> PolicyReply:
    """The agent's next turn in a stage."""
    path = f"src/part_{position}.py"
    if reviewed:
        return [bash(f"echo 'value = {position}' > {path}"), SUBMIT][min(turns, 1)]
    written = f"value = {position}" + ("  # draft" if draft else "")
    return [bash(f"echo '{written}' > {path}"), bash("cat src/part_*.py | sort"), SUBMIT][min(turns, 2)]


def place_of(messages: Sequence[Mapping[str, Any]]) -> tuple[int, int, bool]:
    """The stage, the agent's turns since the last query or comment, and whether that was a comment."""
    position, turns, reviewed = 0, 0, False
    for message in messages:
        content = str(message["content"])
        if message["role"] == "user" and (match := re.search(r"Task (\d+) of \d+", content)):
            position, turns, reviewed = int(match[1]), 0, False
        elif message["role"] == "user" and "<review>" in content:
            turns, reviewed = 0, True
        elif message["role"] == "assistant":
            turns += 1
    return position, turns, reviewed


def answering(policy: Policy = works) -> Callable[[Call], Answer]:
    """The policy behind an endpoint."""

    def part(call: Call) -> Answer:
        reply = policy(call.body["messages"])
        if reply.tool is None:
            return completion(reply.text)(call)
        function = {"name": reply.tool, "arguments": json.dumps(dict(reply.arguments))}
        calls = [{"id": f"call_{len(call.body['messages'])}", "type": "function", "function": function}]
        return completion(reply.text, tool_calls=calls, finish_reason="tool_calls")(call)

    return part


class PolicyModel(FakeModel):
    """The policy as a model in this process. `before` is called with each request and may raise."""

    def __init__(
        self, policy: Policy = works, before: Callable[[Request], None] = lambda request: None, name: str = "fake"
    ) -> None:
        def answer(request: Request) -> Reply:
            before(request)
            reply = policy([{"role": message.role, "content": message.content} for message in request.messages])
            calls: tuple[ToolCall, ...] = ()
            if reply.tool is not None:
                calls = (ToolCall(f"call_{len(request.messages)}", reply.tool, json.dumps(dict(reply.arguments))),)
            reason = "tool_calls" if calls else "stop"
            return Reply(reply.text, name, reason, tool_calls=calls, usage=Usage(100, 0, 10))

        super().__init__(answer, name)


@dataclass
class FolderPlace:
    """Workplaces in folders of this machine. `before` sees every command."""

    trees: TreeStore
    folder: Path
    before: Callable[[str], None] = lambda command: None

    def sandbox(self, laid: Sequence[LaidFolder] = ()) -> Sandbox:
        return _Folder(Path(tempfile.mkdtemp(dir=self.folder)) / "testbed", self.before)

    def briefing(self, sandbox: Sandbox) -> Briefing:
        return Briefing("Python 3.11.9", "all", "python -m pytest FILES")

    def place(self, sandbox: Sandbox, tree: str, *, history: Sequence[str] = (), begun_from: str | None = None) -> None:
        place_tree(sandbox, self.trees, tree, history=history)
        if begun_from is not None:
            place_repository(sandbox, self.trees, begun_from, history=history)

    def extract(self, sandbox: Sandbox, *, start_tree: str, rules_from: str) -> Extraction:
        return extract_tree(sandbox, self.trees, start_tree=start_tree, ignore_rules_from=rules_from)

    def without_refresh_outputs(self, tree: str, start_tree: str) -> str:
        return tree


class _Folder(FolderSandbox):
    def __init__(self, folder: Path, before: Callable[[str], None]) -> None:
        folder.mkdir()
        super().__init__(folder)
        self._before = before

    def exec(self, command: str, **how: Any) -> ExecResult:
        self._before(command)
        return super().exec(command, **how)


@dataclass
class RolloutWorld:
    """A repository with chains and tasks in a database."""

    folder: Path
    store: Store
    world: World
    chains: list[str] = field(default_factory=list)
    bases: dict[int, int] = field(default_factory=dict)
    """Pull request to the mark of its base, and of what landed."""
    landed: dict[int, int] = field(default_factory=dict)

    @property
    def database(self) -> str:
        """The path of the database."""
        return str(self.store.url.database)

    def settings(self) -> Settings:
        """The settings of every run here."""
        agents = self.folder / "agents"
        return Settings(db=self.database, data_dir=self.folder / "data", agents_dir=agents if agents.is_dir() else None)

    def add_chain(self, numbers: Sequence[int], *, name: str | None = None, score: float = 1.0) -> str:
        """The rows of a chain with its task."""
        chain_id = name or f"{len(self.chains) + 1:016x}"
        stages, queries = [], []
        for position, number in enumerate(numbers, 1):
            stages.append(
                {
                    "chain_id": chain_id,
                    "position": position,
                    "repository_id": 1,
                    "number": number,
                    "branch": "main",
                    "base_sha": self.world.sha(self.bases[number]),
                    "landed_sha": self.world.sha(self.landed[number]),
                    "landed_at": "2026-01-01T00:00:00Z",
                    "subject": f"Part {number} (#{number})",
                    "source_files": 1,
                    "source_lines": 2,
                    "test_files": 0,
                    "test_lines": 0,
                    "relation": None,
                    "confidence": None,
                    "signs": None,
                }
            )
            queries.append(
                {
                    "chain_id": chain_id,
                    "position": position,
                    "outcome": "ready",
                    "reason": None,
                    "plan": "p",
                    "query": query(number),
                    "interface": [],
                    "files": [f"src/part_{number}.py"],
                    "findings": [],
                    "attempts": 1,
                }
            )
        with self.store.transaction() as tx:
            tx.upsert(
                Chain,
                [{"id": chain_id, "repository_id": 1, "length": len(numbers), "licence": "MIT", "language": "python"}],
            )
            tx.upsert(ChainStage, stages)
            tx.upsert(
                Selection,
                [
                    {
                        "strategy": "reference",
                        "chain_id": chain_id,
                        "score": score,
                        "reason": None,
                        "outcome": "selected",
                        "selected_at": "2026-01-01T00:00:00Z",
                    }
                ],
            )
            tx.upsert(
                Task,
                [
                    {
                        "chain_id": chain_id,
                        "outcome": "ready",
                        "reason": None,
                        "overview": OVERVIEW,
                        "findings": [],
                        "attempts": 1,
                        "model": "m",
                        "prompts": {},
                        "created_at": "2026-01-01T00:00:00Z",
                    }
                ],
            )
            tx.upsert(TaskStage, queries)
        self.chains.append(chain_id)
        return chain_id

    def context(
        self,
        model: Any = None,
        *,
        budget: float | None = None,
        run: str = "run",
        overrides: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> RunContext:
        """A context with a model of this process, and folders for sandboxes; `overrides` replace its fields."""
        chosen = RolloutOptions(**{"backend": "unsafe-local", **options})
        route = Route(model or PolicyModel(), Price(1.0, 2.0))
        gateway = Gateway(SqlLedger(self.store, run), default=route, budget_usd=budget, pause=lambda tries: None)
        settings = self.settings()
        fields: dict[str, Any] = {
            "pause": lambda tries: None,
            "make_workplace": lambda _, trees: FolderPlace(trees, self.folder),
            **(overrides or {}),
        }
        return RunContext(
            self.store,
            gateway,
            Provider(settings, images=BACKENDS[chosen.backend].needs_image),
            BACKENDS[chosen.backend],
            make_scaffold(chosen, settings, BACKENDS[chosen.backend]),
            chosen,
            settings.mirrors_dir,
            settings.data_dir,
            **fields,
        )

    def run(self, context: RunContext, **choice: Any) -> RolloutRun:
        """A run over the chains."""
        return RolloutRun(context, RolloutChoice(**choice))

    def rows(self, table: type[Base], *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
        """Some columns of the rows of a table."""
        with self.store.reading() as tx:
            return [tuple(row) for row in tx.rows(table, *columns, **equals)]

    def outcome(self, trajectory: str) -> tuple[str, int, str | None]:
        """Outcome, accepted stages and reason."""
        ((outcome, accepted, reason),) = self.rows(Trajectory, "outcome", "accepted", "reason", id=trajectory)
        return outcome, accepted, reason

    def stages(self, trajectory: str) -> list[tuple[int, str]]:
        """Position and outcome of each stage."""
        return [(a, b) for a, b in self.rows(TrajectoryStage, "position", "outcome", trajectory_id=trajectory)]

    def whole(self, trajectory: str) -> dict[str, Any]:
        """All stored results of a rollout, by natural key: without times, costs, and the marks of a new sandbox."""
        messages = []
        columns = (
            "ordinal",
            "position",
            "attempt",
            "step",
            "kind",
            "role",
            "content",
            "reasoning",
            "tool_calls",
            "tool_call_id",
            "tool_name",
            "error",
            "details",
            "tokens_in",
            "tokens_out",
            "tree",
            "cwd",
        )
        for row in self.rows(TrajectoryMessage, *columns, trajectory_id=trajectory):
            message = dict(zip(columns, row, strict=True))
            details = message["details"]
            details.pop("restored", None)
            details.get("program", {}).pop("session", None)  # holds times of files
            messages.append(message | {"details": details})
        stage = (
            "position",
            "outcome",
            "reason",
            "start_tree",
            "end_tree",
            "conflicts",
            "reset_tests",
            "check",
            "endings",
            "attempts",
            "steps",
        )
        verdict = (
            "position",
            "attempt",
            "tree",
            "accepted",
            "gate",
            "score",
            "comment",
            "shown",
            "findings",
            "judge_error",
            "tests",
            "grade",
        )
        own = ("chain_id", "sample", "outcome", "reason", "accepted", "overview", "steps")
        return {
            "own": self.rows(Trajectory, *own, id=trajectory),
            "messages": messages,
            "stages": self.rows(TrajectoryStage, *stage, trajectory_id=trajectory),
            "verdicts": self.rows(Verdict, *verdict, trajectory_id=trajectory),
        }

    def calls(self, state: str = "stored") -> list[tuple[Any, ...]]:
        """What identifies each call of a state."""
        return self.rows(LlmCall, "purpose", "subject", "sample", "attempt", "request_hash", state=state)


@contextmanager
def rollout_world(
    folder: Path, chains: Sequence[Sequence[int]] = ((1, 2, 3, 4, 5),), *, url: str | None = None
) -> Iterator[RolloutWorld]:
    """The world, with these chains of its five pull requests, in the database at `url`; None: a SQLite file."""
    world = World(folder / "till.git")
    world.commit("main", START, "start")
    bases, landed = {}, {}
    for number in range(1, STAGES + 1):
        world.commit("main", {"unrelated": f"{number}\n"}, f"push {number}")
        bases[number] = world.made("main").number
        part = f"def part_number_{number}():\n    return {number}\n"
        landed[number] = world.commit("main", {f"src/part_{number}.py": part}, f"Part {number} (#{number})")
    world.save()
    store = Store.open(url or new_database(folder / "prchain.db"))
    with store.transaction() as tx:
        tx.upsert(Repository, [_repository(world)])
    rollouts = RolloutWorld(folder, store, world, bases=bases, landed=landed)
    for numbers in chains:
        rollouts.add_chain(numbers)
    try:
        yield rollouts
    finally:
        store.close()


def _repository(world: World) -> dict[str, Any]:
    return {
        "id": 1,
        "host": "github.com",
        "owner": "shop",
        "name": "till",
        "location": str(world.path),
        "default_branch": "main",
        "node_id": None,
    }
