"""What decides a process graph, and the id that follows from it, by the rule of trajectories (`trajectories.identity`).

Machine, workers, budgets and waits do not enter, nor does the trajectory on whose work the stage starts: its tree does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

from trajectories.identity import LENGTH

VERSION = "1"
"""Increased when the same replies make another graph."""


@dataclass(frozen=True, slots=True)
class GraphIdentity:
    """Everything that decides a graph."""

    chain: str
    position: int
    start: str
    """S_t."""
    landed: str
    """M_t, the commit that the reference leads to."""
    query: str
    """Hash of the query as an agent reads it."""
    tests: str
    """Hash of the stage's F2P tests."""
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Purpose to model and sampling settings, as resolved."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Name to hash."""
    tools: str = ""
    """Hash of the tools' schemas."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those that are not at their default."""
    version: str = VERSION

    @property
    def id(self) -> str:
        """The id of the graph."""
        return sha256(json.dumps(self.row(), sort_keys=True).encode()).hexdigest()[:LENGTH]

    def row(self) -> dict[str, Any]:
        """The fields, the same for equal identities; empty ones are left out."""
        values = {name: value for name, value in asdict(self).items() if value not in (None, {}, "")}
        return {"of": "process graph", **values}
