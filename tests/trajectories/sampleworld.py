"""A database of handmade trajectories for the tests of exports and figures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from prchain.core.llm.model import Role, ToolCall
from sql.store import Store, Transaction
from sql.tables import (
    Chain,
    ChainStage,
    ImportedTask,
    LlmCall,
    Repository,
    Selection,
    Task,
    TaskStage,
    Trajectory,
    TrajectoryStage,
    Verdict,
)
from tests.databases import new_database
from trajectories.model import Entry, EntryKind
from trajectories.rows import row_of

BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command.",
        "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    },
}
EDIT = {
    "type": "function",
    "function": {
        "name": "str_replace_editor",
        "description": "View and change files.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}, "path": {"type": "string"}, "old_str": {"type": "string"}},
            "required": ["command", "path"],
        },
    },
}
OVERVIEW = "Over three stages the till learns coupons, refunds and receipts."
SHORTER = "Over two stages the till learns coupons and refunds."
SYSTEM = "You work in a repository. Héllo \u2028 there."


@dataclass
class Talk:
    """Builds a conversation: each method adds the entries that a rollout would store."""

    entries: list[Entry] = field(default_factory=list)
    position: int = 1
    attempt: int = 1
    step: int = 0

    def _add(self, kind: EntryKind, role: Role, content: str, **fields: Any) -> None:
        place = (len(self.entries), self.position, self.attempt, self.step)
        self.entries.append(Entry(*place, kind, role, content, **fields))

    def system(self, text: str = SYSTEM) -> Talk:
        self._add(EntryKind.SYSTEM, "system", text)
        return self

    def query(self, position: int, text: str | None = None, overview: str = OVERVIEW) -> Talk:
        self.position, self.attempt = position, 1
        lead = f"{overview}\n\n" if position == 1 else ""
        self._add(EntryKind.QUERY, "user", text or f"{lead}Stage {position}: do thing {position}.")
        return self

    def comment(self, text: str = "The total is wrong.") -> Talk:
        self.attempt += 1
        self._add(EntryKind.COMMENT, "user", text)
        return self

    def guide(self, text: str = "Look at the tests first.") -> Talk:
        self._add(EntryKind.GUIDANCE, "user", text)
        return self

    def turn(self, text: str = "", *calls: tuple[str, Mapping[str, Any] | str], **fields: Any) -> Talk:
        """An assistant turn with calls of (tool, arguments)."""
        self.step += 1
        tool_calls = tuple(
            ToolCall(
                f"call_{self.step}_{place}", name, arguments if isinstance(arguments, str) else json.dumps(arguments)
            )
            for place, (name, arguments) in enumerate(calls)
        )
        self._add(EntryKind.TURN, "assistant", text, tool_calls=tool_calls, **fields)
        return self

    def observation(self, text: str, *, call: int = 0, **fields: Any) -> Talk:
        """A tool's observation on a call of the last turn."""
        last = next(entry for entry in reversed(self.entries) if entry.kind is EntryKind.TURN)
        if not last.tool_calls:
            self._add(EntryKind.OBSERVATION, "user", text, **fields)
            return self
        tool_call = last.tool_calls[call]
        self._add(EntryKind.OBSERVATION, "tool", text, tool_call_id=tool_call.id, tool_name=tool_call.name, **fields)
        return self

    def bash(
        self, command: str, output: str = "ok", text: str = "", reasoning: str | None = None, **fields: Any
    ) -> Talk:
        """A turn that runs a command, and its output."""
        answer = f"<returncode>0</returncode>\n<output>\n{output}\n</output>"
        return self.turn(text, ("bash", {"command": command}), reasoning=reasoning).observation(answer, **fields)

    def submit(self) -> Talk:
        """The turn that ends an attempt."""
        return self.turn("Done.", ("submit", {})).observation("Submitted.")


def long_talk() -> Talk:
    """Three stages: the second is accepted in round 2, and everything that can be masked happens once."""
    talk = Talk().system().query(1)
    talk.bash("ls", "src tests", "I look around.")
    talk.turn("", ("bash", {"command": "cat a"}), ("str_replace_editor", {"command": "view", "path": "/a"}))
    talk.observation("a", call=0).observation("1 a", call=1)
    talk.turn("Let me", ("bash", '{"command": "broken'), error="bad_arguments").observation(
        "No JSON.", error="bad_arguments"
    )
    talk.turn("", ("str_replace_editor", {"command": "str_replace", "path": "/a", "old_str": "x"}))
    talk.observation("No such text.", error="no_match")
    talk.turn("I only talk.", error="no_call").observation("Call a tool.")
    talk.submit()
    talk.query(2).bash("sed -i s/1/2/ a", reasoning="Two is right.").submit().comment()
    talk.guide().bash("pytest", "1 passed", "Now the tests.").submit()
    talk.query(3).bash("echo é\u2028 > b").submit()
    return talk


@dataclass
class SampleWorld:
    """A store with chains, and trajectories that tests add."""

    store: Store

    def chain(
        self,
        chain_id: str,
        *,
        length: int = 3,
        repository: tuple[str, str] = ("shop", "till"),
        first: int = 1,
        licence: str | None = "MIT",
        overview: str | None = OVERVIEW,
        shas: Sequence[tuple[str, str]] = (),
        location: str = "/nowhere",
    ) -> str:
        """A chain of the pull requests `first`, `first` + 1, ... with its task; returns the id."""
        owner, name = repository
        with self.store.transaction() as tx:
            known = {(row[1], row[2]): row[0] for row in tx.rows(Repository, "id", "owner", "name")}
            number = known.get(repository, len(known) + 1)
            tx.insert_new(
                Repository,
                [
                    {
                        "id": number,
                        "host": "github.com",
                        "owner": owner,
                        "name": name,
                        "location": location,
                        "default_branch": "main",
                        "node_id": None,
                    }
                ],
            )
            tx.upsert(
                Chain,
                [{"id": chain_id, "repository_id": number, "length": length, "licence": licence, "language": "python"}],
            )
            tx.upsert(
                ChainStage,
                [
                    {
                        "chain_id": chain_id,
                        "position": place,
                        "repository_id": number,
                        "number": first + place - 1,
                        "branch": "main",
                        "base_sha": (shas or [("b" * 40, "")] * length)[place - 1][0],
                        "landed_sha": (shas or [("", "c" * 40)] * length)[place - 1][1],
                        "landed_at": f"2024-01-0{place}T00:00:00Z",
                        "subject": "s",
                        "source_files": 1,
                        "source_lines": 1,
                        "test_files": 1,
                        "test_lines": 1,
                        "relation": None,
                        "confidence": None,
                        "signs": None,
                    }
                    for place in range(1, length + 1)
                ],
            )
            tx.upsert(
                Task,
                [
                    {
                        "chain_id": chain_id,
                        "outcome": "ready",
                        "reason": None,
                        "overview": overview,
                        "findings": [],
                        "attempts": 1,
                        "model": "writer-1",
                        "prompts": {"query": "f00d"},
                        "created_at": "2024-01-01T00:00:00Z",
                    }
                ],
            )
            tx.upsert(
                TaskStage,
                [
                    {
                        "chain_id": chain_id,
                        "position": place,
                        "outcome": "ready",
                        "reason": None,
                        "plan": None,
                        "query": f"do thing {place}",
                        "interface": [],
                        "files": [],
                        "findings": [],
                        "attempts": 1,
                    }
                    for place in range(1, length + 1)
                ],
            )
        return chain_id

    def select(self, chain_id: str, strategy: str) -> None:
        """A strategy chose the chain."""
        row = {"strategy": strategy, "chain_id": chain_id, "score": 1.0, "outcome": "selected", "reason": None}
        with self.store.transaction() as tx:
            tx.upsert(Selection, [{**row, "selected_at": "2024-01-01T00:00:00Z"}])

    def imported(self, chain_id: str, source: str = "Lite", instance_id: str = "shop__till-1") -> None:
        """The chain is a data set's instance, which other data sets may hold, too."""
        empty = ("revision", "split", "licence", "difficulty", "location", "image", "image_by", "workdir", "log_parser")
        row: dict[str, Any] = {
            "chain_id": chain_id,
            "source": source,
            "form": "swe-bench",
            "instance_id": instance_id,
            "base_commit": "a" * 40,
            "imported_at": "2024-01-01T00:00:00Z",
            "benchmark": True,
            "breaks": False,
            **dict.fromkeys(("patch", "test_patch"), ""),
            **{key: list[str]() for key in ("f2p", "p2p", "test_command")},
            **dict.fromkeys(empty),
        }
        with self.store.transaction() as tx:
            tx.upsert(ImportedTask, [row])

    def trajectory(
        self,
        trajectory_id: str,
        chain_id: str,
        talk: Talk | None = None,
        *,
        sample: int = 0,
        outcome: str = "accepted",
        accepted: int | None = None,
        overview: str | None = OVERVIEW,
        trees: Sequence[str | None] | None = None,
        usd: float | None = 0.5,
        model: str = "agent-1",
        judge: str | None = "judge-1",
        tools: Sequence[Mapping[str, Any]] = (BASH, EDIT),
        scaffold: str = "react",
        **options: Any,
    ) -> str:
        """A trajectory; each stage ends with its last attempt in `talk`. Returns the id."""
        entries = (talk or long_talk()).entries
        rounds = {
            entry.position: max(other.attempt for other in entries if other.position == entry.position)
            for entry in entries
        }
        stages = sorted(rounds)
        kept = len(stages) if accepted is None else accepted
        chosen: dict[str, Any] = {
            "gate": "judge",
            "threshold": 0.8,
            "refinements": 3,
            "on_fail": "stop",
            "carry": "agent",
            "context": "chain",
            "tools": "full",
            "temperature": None,
            "overflow": "stop",
            **options,
        }
        with self.store.transaction() as tx:
            tx.upsert(
                Trajectory,
                [
                    {
                        "id": trajectory_id,
                        "chain_id": chain_id,
                        "sample": sample,
                        "parent_id": None,
                        "parent_step": None,
                        "scaffold": scaffold,
                        "model": model,
                        "judge": judge,
                        "options": chosen,
                        "options_hash": "0" * 64,
                        "prompts": {"query": "beef"},
                        "tools": [dict(tool) for tool in tools],
                        "outcome": outcome,
                        "reason": None,
                        "accepted": kept,
                        "overview": overview,
                        "usd": usd,
                        "tokens_in": 1,
                        "tokens_out": 1,
                        "steps": sum(entry.kind is EntryKind.TURN for entry in entries),
                        "seconds": 1.0,
                        "worker": None,
                        "tries": 0,
                        "started_at": "2024-01-01T00:00:00Z",
                        "finished_at": None,
                    }
                ],
            )
            ends = list(trees) if trees is not None else [f"{trajectory_id}-{position}" for position in stages]
            for position, tree in zip(stages, ends, strict=True):
                self._stage(tx, trajectory_id, position, tree, rounds[position], position <= kept)
            self._messages(tx, trajectory_id, entries)
        return trajectory_id

    @staticmethod
    def _stage(tx: Transaction, trajectory_id: str, position: int, tree: str | None, rounds: int, kept: bool) -> None:
        tx.upsert(
            TrajectoryStage,
            [
                {
                    "trajectory_id": trajectory_id,
                    "position": position,
                    "outcome": "accepted" if kept else "rejected",
                    "reason": None,
                    "start_tree": "s",
                    "end_tree": tree,
                    "conflicts": [],
                    "reset_tests": [],
                    "check": {},
                    "endings": [],
                    "attempts": rounds,
                    "steps": 1,
                    "seconds": 1.0,
                }
            ],
        )
        tx.upsert(
            Verdict,
            [
                {
                    "trajectory_id": trajectory_id,
                    "position": position,
                    "attempt": attempt,
                    "tree": tree or "t",
                    "accepted": kept and attempt == rounds,
                    "gate": "judge",
                    "score": 0.9 if kept and attempt == rounds else 0.3,
                    "comment": "c",
                    "shown": None,
                    "findings": [],
                    "judge_error": None,
                    "tests": None,
                    "grade": {},
                    "usd": 0.1,
                    "seconds": 1.0,
                    "at": "2024-01-01T00:00:00Z",
                }
                for attempt in range(1, rounds + 1)
            ],
        )

    def call(self, priced_by: str | None, usd: float | None, day: str, *, state: str = "stored") -> None:
        """A call of the ledger that began on this day; where it was not stored, `usd` was reserved for it."""
        paid = {"usd": usd, "reserved_usd": usd} if state == "stored" else {"reserved_usd": usd}
        texts = dict.fromkeys(("run", "purpose", "subject", "request_hash", "prompt", "prompt_hash", "model"), "x")
        numbers = {"sample": 0, "attempt": 0, "ordinal": 0}
        row = {"state": state, "priced_by": priced_by, "started_at": f"{day}T00:00:00Z", **paid, **texts, **numbers}
        with self.store.transaction() as tx:
            tx.connection.execute(insert(LlmCall).values(row))

    @staticmethod
    def _messages(tx: Transaction, trajectory_id: str, entries: Sequence[Entry]) -> None:
        from sql.tables import TrajectoryMessage

        tx.upsert(TrajectoryMessage, [row_of(trajectory_id, entry) for entry in entries])


@contextmanager
def sample_world(folder: Path, *, url: str | None = None) -> Iterator[SampleWorld]:
    """A world in the database at `url`; None: a SQLite file below `folder`."""
    store = Store.open(url or new_database(folder / "prchain.db"))
    try:
        yield SampleWorld(store)
    finally:
        store.close()
