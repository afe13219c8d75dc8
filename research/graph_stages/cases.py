"""The stages and the nodes that were written for them by hand: the files in ``stages``, one a chain."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from chains.tasks.query import PlanReply
from trajectories.curation.graphs.shapes import NodeReply

FOLDER = Path(__file__).with_name("stages")

_STRICT = ConfigDict(extra="forbid", frozen=True)

Held = Literal["nothing", "plan", "graph"]
"""What the graph holds before a wrong node comes: nothing; all right nodes but edits and validations; all of them."""

Source = Literal["landed", "before", "line"]
"""What a wrong node takes of the stage when the rig runs: what its action prints after the reference, or before the
edits, as its observation; or the longest line that the reference adds, into its statement."""


class WrongNode(BaseModel):
    """A node that has to be refused, and the rule that has to do it. It is the right node that `of` names, or a derived
    edit (``edit1``), but for what `change`, `action` and `without` say."""

    model_config = _STRICT

    name: str
    """What is wrong with it."""
    rule: str
    held: Held = "nothing"
    of: str
    source: Source | None = None
    change: dict[str, object] = {}
    action: dict[str, object] = {}
    without: tuple[str, ...] = ()
    """Fields of the action that it lacks."""

    def reply(self, right: Mapping[str, NodeReply]) -> NodeReply:
        """The node as a proposer gives it; `right` are the right nodes by name."""
        given = right[self.of].model_dump()
        action = {**given["action"], **self.action} | dict.fromkeys(self.without)
        statement = f"{given['statement']}, said once more"
        values = {**given, "id": "wrong", "statement": statement, **self.change, "action": action}
        return NodeReply.model_validate(values)


class HandStage(BaseModel):
    """A stage: how its task is worded, its right nodes without the edits, and wrong ones."""

    model_config = _STRICT

    position: int
    plan: PlanReply
    query: str
    nodes: tuple[NodeReply, ...] = ()
    wrong: tuple[WrongNode, ...] = ()


class HandChain(BaseModel):
    """A chain by its id."""

    model_config = _STRICT

    repository: str
    chain: str
    strategy: Literal["reference", "single"] = "reference"
    overview: str
    stages: tuple[HandStage, ...] = Field(min_length=1)


def read_chains(folder: Path = FOLDER) -> list[HandChain]:
    """The chains, by the names of their files. Raises `pydantic.ValidationError`, `tomllib.TOMLDecodeError`."""
    files = sorted(folder.glob("*.toml"))
    return [HandChain.model_validate(tomllib.loads(file.read_text(encoding="utf-8"))) for file in files]
