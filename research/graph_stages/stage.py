"""A stage of a real chain: its reference, its sandbox, and the script of a graph made of hand-written nodes."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.graph_stages.cases import HandStage
from research.graph_stages.edits import edits_of
from sql.store import Store
from trajectories.curation.graphs.bench import Bench
from trajectories.curation.graphs.distill import Distiller
from trajectories.curation.graphs.nodes import Node, NodeKind
from trajectories.curation.graphs.options import CRITIC, PROPOSER
from trajectories.curation.graphs.reference import TargetPatch, target_patch
from trajectories.curation.graphs.rounds import GraphState
from trajectories.curation.graphs.rows import read_candidates
from trajectories.curation.graphs.run import GraphContext, GraphUnit
from trajectories.curation.graphs.shapes import NodeReply
from trajectories.rollouts.chain_context import ChainContext
from trajectories.task import StageTask, read_task


@dataclass(frozen=True)
class RealStage:
    """A stage with its unit, its reference patch and the right nodes, edits among them."""

    unit: GraphUnit
    chain: ChainContext
    task: StageTask
    target: TargetPatch
    right: Mapping[str, NodeReply]

    @property
    def facts(self) -> list[str]:
        """The names of the facts."""
        return [name for name, node in self.right.items() if node.kind in {"static_fact", "dynamic_fact"}]


def real_stage(context: GraphContext, unit: GraphUnit, hand: HandStage) -> RealStage:
    """A stage as the graph's run finds it. Raises `CurationError`, `GitError`."""
    with context.store.reading() as tx:
        task = read_task(tx, unit.chain_id)
    chain = context.chain(task)
    stage = task.stages[unit.position - 1]
    target = target_patch(chain.git, chain.trees, stage.stage, unit.start, stage.interface)
    early = [node for node in hand.nodes if node.kind != "validation"]
    late = [node for node in hand.nodes if node.kind == "validation"]
    nodes = [*early, *edits_of(chain.trees, target.source), *late]
    return RealStage(unit, chain, stage, target, {node.id: node for node in nodes})


def script_lines(stage: RealStage) -> Iterator[dict[str, Any]]:
    """The replies of both agents, for `prchain.core.llm.scripted`: a look around and all right nodes, a verdict on
    each, and then nothing more."""
    graph = stage.unit.id
    call = {"id": "call_1", "name": "bash", "arguments": {"command": "git status --short; ls"}}
    nodes = [node.model_dump(exclude_none=True) for node in stage.right.values()]
    verdicts = [{"id": name, "verdict": "keep"} for name in stage.right]
    yield {"purpose": PROPOSER, "subject": f"{graph}/1", "reply": "A look around.", "tool_calls": [call]}
    yield {"purpose": PROPOSER, "subject": f"{graph}/1", "reply": {"nodes": nodes}}
    yield {"purpose": CRITIC, "subject": f"{graph}/1", "reply": {"verdicts": verdicts}}
    yield {"purpose": PROPOSER, "subject": f"{graph}/2", "reply": {"nodes": []}}


def write_script(path: Path, stages: Iterable[RealStage]) -> None:
    """Write the replies for some stages."""
    lines = [json.dumps(line, ensure_ascii=False) for stage in stages for line in script_lines(stage)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@contextmanager
def distiller(context: GraphContext, stage: RealStage) -> Iterator[Distiller]:
    """What makes a graph of the stage, with its sandbox. Raises `SandboxError`, `ImageError`."""
    workplace = stage.chain.workplace(stage.task)
    with Bench(workplace, stage.unit.start, stage.task.query, context.options) as bench:
        roots = (bench.replayer.sandbox.config.workdir,)
        yield Distiller(stage.chain.trees, stage.target, stage.task.query, bench, context.options, roots)


def stored_state(store: Store, graph_id: str) -> GraphState:
    """The candidates of a graph as they are stored."""
    with store.reading() as tx:
        return GraphState(read_candidates(tx, graph_id), rounds=1)


def unlike_landed(stage: RealStage, nodes: Sequence[Node]) -> list[str]:
    """The source paths whose bytes after the edits are not those of the landed commit, read from the mirror itself.

    Where upstream went on between the stages, S_t and the landed commit agree on them all the same: carried on the
    reference, S_t is B_t.
    """
    files: dict[str, bytes | None] = {}
    entries = stage.chain.trees.entries(stage.unit.start)

    def read(path: str) -> bytes | None:
        if path in files:
            return files[path]
        entry = entries.get(path.encode("utf-8", "surrogateescape"))
        return None if entry is None else stage.chain.trees.blob(entry.blob)

    for node in nodes:
        if node.kind is NodeKind.CODE_EDIT:
            files |= made_by_hand(node, read)
    landed = stage.chain.trees.entries(stage.task.stage.landed)
    wrong = []
    for path in {*stage.target.paths, *files}:
        entry = landed.get(path.encode("utf-8", "surrogateescape"))
        if read(path) != (None if entry is None else stage.chain.git.blob(entry.blob)):
            wrong.append(path)
    return sorted(wrong)


def made_by_hand(node: Node, read: Callable[[str], bytes | None]) -> dict[str, bytes | None]:
    """What an edit makes, computed without the code that is tested: `bytes.replace`, nothing more."""
    action = node.action
    path = str(action.path)
    match action.tool:
        case "create":
            return {path: str(action.content).encode("utf-8", "surrogateescape")}
        case "str_replace":
            before = read(path) or b""
            old, new = (str(text).encode("utf-8", "surrogateescape") for text in (action.old, action.new))
            if 0 < before.count(b"\r\n") == before.count(b"\n"):
                old, new = (text.replace(b"\n", b"\r\n") for text in (old, new))
            return {path: before.replace(old, new, 1)}
        case _:
            return dict.fromkeys(shlex.split(str(action.command))[1:])
