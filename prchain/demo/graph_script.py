"""The replies of the demo's scripted proposer and critic: `prchain.core.llm.scripted` lines, made from the files in
``graphs``.

As in `prchain.demo.script`, a line matches by the text of the conversation, the newest state first: what an
earlier round has put into the graph tells the rounds apart.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from trajectories.curation.graphs.options import CRITIC, PROPOSER
from trajectories.curation.graphs.shapes import FeedbackReply, NodeReply, NodeVerdictReply

_STRICT = ConfigDict(extra="forbid", frozen=True)


class ScriptedRound(BaseModel):
    """What both agents say in a round; the first node's statement tells it from others."""

    model_config = _STRICT

    nodes: tuple[NodeReply, ...] = ()
    keep: tuple[str, ...] = ()
    """What the critic keeps."""
    verdicts: tuple[NodeVerdictReply, ...] = ()
    """Its other verdicts."""
    feedback: tuple[FeedbackReply, ...] = ()


class GraphAnswers(BaseModel):
    """The rounds of one graph; the first begins with a look around."""

    model_config = _STRICT

    opening: str
    """How the query of the stage begins."""
    say: str
    bash: str
    rounds: tuple[ScriptedRound, ...] = Field(min_length=2)


def read_graph_answers() -> dict[str, GraphAnswers]:
    """The answers by the name of their file."""
    folder = resources.files("prchain.demo") / "graphs"
    files = sorted((path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda path: path.name)
    return {
        file.name.removesuffix(".toml"): GraphAnswers.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
        for file in files
    }


def graph_lines() -> Iterator[dict[str, Any]]:
    """The lines of the script."""
    for answers in read_graph_answers().values():
        yield from _graph(answers)


def _graph(answers: GraphAnswers) -> Iterator[dict[str, Any]]:
    marks = [round_.nodes[0].statement for round_ in answers.rounds if round_.nodes]
    for mark, following in reversed(list(zip(marks, answers.rounds[1:], strict=True))):
        yield {"purpose": PROPOSER, "contains": mark, "reply": _proposal(following)}
    yield {"purpose": PROPOSER, "contains": answers.say, "reply": _proposal(answers.rounds[0])}
    call = {"id": "call_1", "name": "bash", "arguments": {"command": answers.bash}}
    yield {"purpose": PROPOSER, "contains": answers.opening, "reply": answers.say, "tool_calls": [call]}
    for mark, round_ in reversed(list(zip(marks, answers.rounds, strict=False))):
        yield {"purpose": CRITIC, "contains": mark, "reply": _verdicts(round_)}


def _proposal(round_: ScriptedRound) -> dict[str, Any]:
    return {"nodes": [node.model_dump(exclude_none=True) for node in round_.nodes]}


def _verdicts(round_: ScriptedRound) -> dict[str, Any]:
    kept = [{"id": name, "verdict": "keep"} for name in round_.keep]
    others = [verdict.model_dump(exclude_none=True) for verdict in round_.verdicts]
    return {"verdicts": [*kept, *others], "feedback": [entry.model_dump() for entry in round_.feedback]}
