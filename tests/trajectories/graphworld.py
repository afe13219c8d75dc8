"""Process graphs in the repository of `tests.trajectories.rolloutworld`, whose stages count as proved, and two models
that make them: proposer and critic as functions of the conversation alone.

The graph of a stage takes three rounds. In the first, code refuses two nodes and merges one, and the critic prunes one
and revises another; the second adds a fact; the third adds nothing.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from environments.backends import BACKENDS
from environments.briefing import Briefing
from environments.checkouts.checkout import Extraction, place_tree
from environments.images.provide import Provider
from environments.sandboxes.sandbox import ExecResult, LaidFolder, Sandbox, SandboxConfig
from prchain.core.errors import SandboxError, SandboxFileError, SandboxLimit, SandboxLost
from prchain.core.git.trees import TreeStore
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.price import Price
from prchain.core.settings import Settings
from sql.ledger import SqlLedger
from sql.store import Store
from sql.tables import Base, GraphEdge, GraphMessage, GraphNode, GraphRow, LlmCall, StageTests
from tests.environments.folder_sandbox import FolderSandbox
from tests.trajectories.rolloutworld import Policy, PolicyModel, PolicyReply, RolloutWorld, bash, rollout_world
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.run import GraphChoice, GraphContext, GraphRun

WORKDIR = "/testbed"
PRICE = Price(1.0, 4.0)
KEPT = ("listing", "again", "absent", "repro", "analysis", "plan", "edit", "check", "wide.2", "late")
"""The nodes of each graph, in the order in which they were made."""
FALLEN = {
    "name": "merged",
    "leak": "refused",
    "untrue": "refused",
    "vague": "prune",
    "wide": "revise",
}
"""Its other candidates, and what became of them."""


# ---- the models


def node(id: str, kind: str, statement: str, observation: str = "", **action: Any) -> dict[str, Any]:
    """A candidate as the proposer writes it."""
    return {"id": id, "kind": kind, "statement": statement, "action": action, "observation": observation}


def think(id: str, kind: str, thought: str) -> dict[str, Any]:
    """An analysis or a plan."""
    return node(id, kind, thought, tool="think", thought=thought)


def runs(id: str, statement: str, command: str, observation: str, kind: str = "dynamic_fact") -> dict[str, Any]:
    """A node with a command."""
    return node(id, kind, statement, observation, tool="bash", command=command)


def part(number: int) -> str:
    """The file that a stage brings."""
    return f"def part_number_{number}():\n    return {number}\n"


def edit(number: int, content: str | None = None) -> dict[str, Any]:
    """The edit that is the reference of a stage."""
    text = part(number) if content is None else content
    statement = f"Write part {number}"
    return node("edit", "code_edit", statement, tool="create", path=f"src/part_{number}.py", content=text)


def steps(number: int) -> list[dict[str, Any]]:
    """The fewest nodes that lead to the reference of a stage."""
    return [
        think("analysis", "issue_analysis", f"No file holds the value {number}"),
        think("plan", "fix_plan", f"Add the file src/part_{number}.py with the value {number}"),
        edit(number),
    ]


def nodes_of(number: int, round_: int) -> list[dict[str, Any]]:
    """What the proposer proposes for the stage of a pull request in a round."""
    path = f"src/part_{number}.py"
    probe = f"test -e {path} && echo there || echo absent"
    if round_ == 2:
        return [runs("late", "The check fails in the same way a second time", "sh check.sh; sh check.sh", "absent")]
    if round_ > 2:
        return []
    script = {"tool": "create", "path": "check.sh", "content": f"{probe}\n", "command": "sh check.sh"}
    view = {"tool": "view", "path": "pyproject.toml", "first": 2, "last": 2}
    return [
        runs("listing", "The repository has a project file beside its sources", "ls", "pyproject.toml", "static_fact"),
        node("name", "static_fact", "The project is called `till`", 'name = "till"', **view),
        runs("again", "The project is called till.", "grep -c till pyproject.toml", "1"),
        runs("absent", f"Part {number} is not there yet", probe, "absent"),
        runs("leak", f"No function `part_number_{number}` exists", "ls src", "__init__.py", "static_fact"),
        runs("untrue", "The README is about a shop", "cat README.md", "# shop"),
        node("vague", "static_fact", f"{number} is wanted", query_line(number), tool="view_problem_statement"),
        node("wide", "static_fact", "The README is short", "# till", tool="view", path="README.md", first=1, last=1),
        node("repro", "reproduce_script", f"A check for part {number} fails", "absent", **script),
        *steps(number),
        runs("check", f"Part {number} gives {number}", f"cat {path}", f"    return {number}", "validation"),
    ]


def query_line(number: int) -> str:
    """What the query says of the value."""
    return f"which holds the value {number}."


def verdicts_of(number: int, round_: int, names: Sequence[str]) -> dict[str, Any]:
    """What the critic says to these candidates."""
    mended = runs("wide", "The README says nothing of parts", "grep -c part README.md || true", "0")
    special: dict[str, dict[str, Any]] = {
        "vague": {"verdict": "prune", "reasons": ["H5: it holds two claims"]},
        "wide": {"verdict": "revise", "reasons": ["S3: this is seen by a command"], "patched_node": mended},
    }
    feedback = [{"gap": f"Nobody has run the check of part {number} twice.", "look": "Run check.sh again."}]
    return {
        "verdicts": [{"id": name, **special.get(name, {"verdict": "keep"})} for name in names],
        "feedback": feedback if round_ == 1 else [],
    }


def keeping(names: Sequence[str]) -> dict[str, Any]:
    """The answer of a critic that keeps all of these and has nothing to say."""
    return {"verdicts": [{"id": name, "verdict": "keep"} for name in names]}


def node_names(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """The ids of these candidates."""
    return [str(candidate["id"]) for candidate in nodes]


Nodes = Callable[[int, int], Sequence[Mapping[str, Any]]]
Verdicts = Callable[[int, int, Sequence[str]], Mapping[str, Any]]


def distilling(nodes: Nodes = nodes_of, verdicts: Verdicts = verdicts_of) -> Policy:
    """Proposer and critic with these answers; in the first round each looks around before."""

    def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        number, round_ = stage_and_round(messages)
        turns = sum(message["role"] == "assistant" for message in messages)
        if is_critic(messages):
            if round_ == 1 and turns == 0:
                return bash("grep -n till pyproject.toml")
            names = re.findall(r"(?m)^<<<node (\S+) ", str(messages[1]["content"]))
            return PolicyReply(json.dumps(verdicts(number, round_, names)))
        looks = ["ls src; echo looked > seen.txt", f"cat seen.txt; test -e src/part_{number}.py || echo absent"]
        if round_ == 1 and turns < len(looks):
            return bash(looks[turns])
        return PolicyReply(json.dumps({"nodes": list(nodes(number, round_))}))

    return policy


def is_critic(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a conversation is the critic's."""
    return "You are the critic" in str(messages[0]["content"])


def stage_and_round(messages: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """The pull request and the round of a conversation."""
    opening = str(messages[1]["content"])
    number, round_ = re.search(r"part number (\d+) in", opening), re.search(r"(?m)^Round (\d+) of", opening)
    assert number and round_, opening
    return int(number[1]), int(round_[1])


# ---- sandboxes


Before = Callable[[str, str], None]
"""Called before a sandbox does something, with what (a method's name) and its words; may raise."""


def nothing(what: str, words: str) -> None:
    """The hook that does nothing."""


class GraphFolder(FolderSandbox):
    """A folder that commands and files know as `WORKDIR`, as in all sandboxes of a real backend."""

    def __init__(self, folder: Path, before: Before = nothing) -> None:
        folder.mkdir()
        super().__init__(folder)
        self.config = SandboxConfig(None, WORKDIR)
        self._before = before
        self._ended: SandboxError | None = None

    def _here(self, path: str) -> str:
        return path.replace(WORKDIR, str(self.folder))

    def _does(self, what: str, words: str = "") -> None:
        if self._ended is not None:
            raise SandboxLost("it has ended")
        try:
            self._before(what, words)
        except (SandboxLost, SandboxLimit) as error:
            self._ended = error
            raise

    def start(self) -> None:
        self._does("start")

    def exec(self, command: str, **how: Any) -> ExecResult:
        self._does("exec", command)
        cwd = how.pop("cwd", None)
        result = super().exec(self._here(command), cwd=None if cwd is None else self._here(cwd), **how)
        return ExecResult(result.exit_code, result.output.replace(str(self.folder).encode(), WORKDIR.encode()))

    def read(self, path: str) -> bytes:
        self._does("read", path)
        return super().read(self._here(path))

    def write(self, path: str, content: bytes, *, mode: int = 0o644) -> None:
        self._does("write", path)
        place = Path(self._here(path))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        except OSError as error:
            raise SandboxFileError(f"{path}: {error.strerror}") from error

    def put(self, folder: str, archive: BinaryIO | bytes) -> None:
        super().put(self._here(folder), archive)

    def snapshot(self) -> str:
        self._does("snapshot")
        return super().snapshot()

    def restore(self, snapshot: str) -> None:
        self._does("restore")
        super().restore(snapshot)


@dataclass
class GraphPlace:
    """Workplaces in such folders."""

    trees: TreeStore
    folder: Path
    before: Before = nothing

    def sandbox(self, laid: Sequence[LaidFolder] = ()) -> Sandbox:
        return GraphFolder(Path(tempfile.mkdtemp(dir=self.folder)) / "testbed", self.before)

    def briefing(self, sandbox: Sandbox) -> Briefing:
        return Briefing("Python 3.11.9", "all", "python -m pytest FILES")

    def place(self, sandbox: Sandbox, tree: str, *, history: Sequence[str] = (), begun_from: str | None = None) -> None:
        place_tree(sandbox, self.trees, tree, history=history)
        self.before("placed", tree)

    def extract(self, sandbox: Sandbox, *, start_tree: str, rules_from: str) -> Extraction:
        raise NotImplementedError

    def without_refresh_outputs(self, tree: str, start_tree: str) -> str:
        raise NotImplementedError


# ---- the world


def graph_run(
    store: Store,
    folder: Path,
    model: Any = None,
    *,
    budget: float | None = None,
    run: str = "run",
    before: Before = nothing,
    secrets: tuple[str, ...] = (),
    options: Mapping[str, Any] | None = None,
    **choice: Any,
) -> GraphRun:
    """A run over the chains of a world in `folder`, with a model of this process."""
    settings = Settings(db=str(store.url.database), data_dir=folder / "data")
    chosen = GraphOptions(**{"backend": "unsafe-local", **(options or {})})
    route = Route(model or PolicyModel(distilling()), PRICE)
    gateway = Gateway(SqlLedger(store, run), default=route, budget_usd=budget, pause=lambda tries: None)
    backend = BACKENDS[chosen.backend]
    context = GraphContext(
        store,
        gateway,
        Provider(settings, images=backend.needs_image),
        backend,
        chosen,
        settings.mirrors_dir,
        settings.data_dir,
        secrets,
        lambda _, trees: GraphPlace(trees, folder, before),
    )
    return GraphRun(context, GraphChoice(**choice))


@dataclass
class GraphWorld:
    """Chains with tasks and proved tests in a database."""

    rollouts: RolloutWorld

    @property
    def folder(self) -> Path:
        """Where it lies."""
        return self.rollouts.folder

    @property
    def store(self) -> Store:
        """Its database."""
        return self.rollouts.store

    def run(self, model: Any = None, **how: Any) -> GraphRun:
        """See `graph_run`."""
        return graph_run(self.store, self.folder, model, **how)

    def prove(self, chain_id: str, outcomes: Mapping[int, str]) -> None:
        """The rows that `prchain environments validate` writes: position to outcome."""
        classes = {"f2p": ["tests/test_parts.py::test_part"]}
        values: dict[str, Any] = {
            "chain_id": chain_id,
            "reason": None,
            "image": None,
            "recipe": None,
            "runner": "pytest",
            "command": None,
            "files": [],
            "classes": classes,
            "removed": [],
            "tampered": [],
            "stage_image": None,
            "seconds": 1.0,
        }
        with self.store.transaction() as tx:
            tx.upsert(StageTests, [{**values, "position": at, "outcome": it} for at, it in outcomes.items()])

    def rows(self, table: type[Base], *columns: str, **equals: Any) -> list[tuple[Any, ...]]:
        """Some columns of the rows of a table."""
        return self.rollouts.rows(table, *columns, **equals)

    def ids(self) -> list[str]:
        """The graphs."""
        return [name for (name,) in self.rows(GraphRow, "id")]

    def outcomes(self) -> dict[tuple[str, int], str]:
        """Chain and stage to the outcome of the graph."""
        return {(chain, at): it for chain, at, it in self.rows(GraphRow, "chain_id", "position", "outcome")}

    def outcome(self, graph_id: str) -> tuple[str, str | None]:
        """Outcome and reason."""
        ((outcome, reason),) = self.rows(GraphRow, "outcome", "reason", id=graph_id)
        return outcome, reason

    def verdicts(self, graph_id: str) -> dict[str, str]:
        """Name to verdict of each candidate, in order."""
        return dict(self.rows(GraphNode, "name", "verdict", graph_id=graph_id))

    def reasons(self, graph_id: str) -> dict[str, str]:
        """Name to the reasons of each candidate that has some."""
        rows = self.rows(GraphNode, "name", "reasons", graph_id=graph_id)
        return {name: " ".join(f"{it['rule']}: {it['words']}" for it in reasons) for name, reasons in rows}

    def whole(self) -> dict[str, Any]:
        """All stored rows of the graphs, by natural key: without times, costs and workers."""
        return graph_facts(self.store)

    def calls(self, state: str = "stored") -> list[tuple[Any, ...]]:
        """What identifies each call of a state."""
        return self.rollouts.calls(state)

    def assert_sums(self) -> None:
        """Check the money and the tokens of each graph against the ledger."""
        columns = ("subject", "state", "usd", "reserved_usd", "tokens_in", "tokens_out")
        calls = [row for row in self.rows(LlmCall, *columns) if row[1] != "released"]
        for name, usd, *tokens in self.rows(GraphRow, "id", "usd", "tokens_in", "tokens_out"):
            own = [row for row in calls if row[0].startswith(f"{name}/")]
            spent = sum(reserved if cost is None else cost for _, _, cost, reserved, _, _ in own)
            assert abs(usd - spent) < 1e-9
            assert tokens == [sum(row[4] or 0 for row in own), sum(row[5] or 0 for row in own)]


_GRAPH = (
    "id",
    "chain_id",
    "position",
    "trajectory_id",
    "start_tree",
    "target_tree",
    "models",
    "options",
    "decided_by",
    "outcome",
    "reason",
    "rounds",
    "empty_rounds",
    "dropped_rounds",
    "dropped_edges",
    "feedback",
    "tokens_in",
    "tokens_out",
)
_NODE = (
    "graph_id",
    "ordinal",
    "name",
    "kind",
    "statement",
    "statement_hash",
    "action",
    "claimed",
    "observation",
    "round",
    "verdict",
    "verdict_round",
    "reasons",
    "level",
)
_EDGE = ("graph_id", "source", "target", "reason")
_PASSING = ("at", "seconds", "usd")
"""Fields of a message that differ from run to run."""


def graph_facts(store: Store, *, tokens: bool = True) -> dict[str, Any]:
    """All stored rows of the graphs of a database: without times, costs and workers; sums of tokens on demand."""
    columns = _GRAPH if tokens else tuple(name for name in _GRAPH if not name.startswith("tokens"))
    with store.reading() as tx:
        messages = []
        for *key, values in tx.rows(GraphMessage, "graph_id", "round", "purpose", "ordinal", "entry"):
            entry = {name: value for name, value in values.items() if name not in _PASSING}
            messages.append((*key, entry))
        return {
            "graphs": [dict(zip(columns, row, strict=True)) for row in tx.rows(GraphRow, *columns)],
            "nodes": [dict(zip(_NODE, row, strict=True)) for row in tx.rows(GraphNode, *_NODE)],
            "edges": [tuple(row) for row in tx.rows(GraphEdge, *_EDGE)],
            "messages": messages,
        }


@contextmanager
def graph_world(
    folder: Path, chains: Sequence[Sequence[int]] = ((1, 2),), *, proved: bool = True, url: str | None = None
) -> Iterator[GraphWorld]:
    """The world of `rollout_world`, with proved tests."""
    with rollout_world(folder, chains, url=url) as rollouts:
        world = GraphWorld(rollouts)
        if proved:
            for chain_id, numbers in zip(rollouts.chains, chains, strict=True):
                world.prove(chain_id, dict.fromkeys(range(1, len(numbers) + 1), "proved"))
        yield world
