"""The options of a curated run: every number of its windows, and every question that the paper leaves open."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from prchain.core.errors import UsageError
from prchain.core.told import Within, told
from trajectories.curation.windows.progress import Premature
from trajectories.curation.windows.selection import CommitRule, FloorUnit

CURATOR = "curator"
GROUND = "ground"
ESTABLISH = "establish"
"""The purposes of the calls, besides the agent's."""

READERS = (CURATOR, GROUND, ESTABLISH)

AGENT_SAMPLING: Mapping[str, float | int] = {"temperature": 0.6, "top_p": 0.95, "max_tokens": 2048}
"""How the blinded agent is sampled where the settings do not say (P2T, appendix H)."""

READER_SAMPLING: Mapping[str, float | int] = {"temperature": 0.2, "max_tokens": 2048}
"""The same of curator, judge and verifier."""


class Pick(StrEnum):
    """Who picks the step that is rewritten, and the node that it shall lead to."""

    RULE = "rule"
    """Code: the first step without progress, a repetition, an error or an empty one first; the nearest node."""
    MODEL = "model"
    """The curator, from the frontier."""


class LengthUnit(StrEnum):
    """What a candidate's length counts."""

    TOKENS = "tokens"
    """Response tokens (section 3.3)."""
    ALL = "all"
    """Response tokens and those of observations (figure 6)."""
    STEPS = "steps"
    """Steps (section 4.2 allows either)."""


class Asked(StrEnum):
    """How the verifier is asked what a step establishes."""

    STEP = "step"
    """Once a step, for the nodes whose tool and an entity fit."""
    EACH = "each"
    """Once for each step and each node that is not established (appendix H), of what that step shows."""
    PREFIX = "prefix"
    """The same, and any step of the session so far may show it (appendix H, E1)."""


class EmptyFrontier(StrEnum):
    """How a window is grown in which nothing is left to establish."""

    ONE = "one"
    """One seed, unscored, of which all steps are committed: nothing would tell several apart but their length."""
    USUAL = "usual"
    """As any other (algorithm 1): its candidates have no progress, so that the shortest is the fallback."""


WINDOWS = Within("--windows", "Windows", "How they are grown.")

_OPEN = "a question that the paper leaves open"

DEFAULTS: Mapping[str, Any] = {
    "window": 10,
    "stride": 5,
    "seeds": 2,
    "variants": 1,
    "floor": 0.5,
    "floor_unit": "progress",
    "premature": "defer",
    "pick": "rule",
    "length": "tokens",
    "est": "step",
    "ground": True,
    "commit": "shortest",
    "empty": "one",
}
"""Option to the value that an id leaves out. A line is never changed, even if today's default is another."""

_ENUMS: Mapping[str, type[StrEnum]] = {
    "floor_unit": FloorUnit,
    "premature": Premature,
    "pick": Pick,
    "length": LengthUnit,
    "est": Asked,
    "commit": CommitRule,
    "empty": EmptyFrontier,
}


@dataclass(frozen=True, slots=True)
class WindowOptions:
    """How trajectories are grown. Defaults are the paper's (P2T, section 5.1 and appendix H)."""

    window: int = told(10, "Steps of a candidate: n.", WINDOWS, why="cost", least=1)
    stride: int = told(5, "Steps of it that are committed: delta.", WINDOWS, why="cost", least=1)
    seeds: int = told(2, "Blinded seeds of a window: K.", WINDOWS, why="cost", least=1)
    variants: int = told(
        1,
        "Variants of a seed at most, each towards another node.",
        WINDOWS,
        why="algorithm 1 has one for each node and position, appendix H one a seed",
        least=0,
    )
    floor: float = told(0.5, "What a candidate has to reach.", WINDOWS, why="hard stages reach less", least=0)
    floor_unit: FloorUnit = told(
        FloorUnit.PROGRESS,
        "progress: the sum of shares of the frontier; nodes: new nodes, against the floor times the frontier's.",
        WINDOWS,
        why=_OPEN,
    )
    premature: Premature = told(
        Premature.DEFER,
        "A node that comes before its predecessors waits for a later window; or its step counts nothing.",
        WINDOWS,
        why=_OPEN,
    )
    pick: Pick = told(
        Pick.RULE, "Who picks the step to rewrite and the node to go for: code, or the curator.", WINDOWS, why=_OPEN
    )
    length: LengthUnit = told(LengthUnit.TOKENS, "tokens: of responses; all: of observations, too.", WINDOWS, why=_OPEN)
    est: Asked = told(
        Asked.STEP,
        "The verifier is asked once a step; once for each node; or so, of all the session: prefix.",
        WINDOWS,
        why=_OPEN,
    )
    ground: bool = told(
        True, "Whether rewritten steps have to be grounded.", WINDOWS, why="the ablation of section 5.4"
    )
    commit: CommitRule = told(
        CommitRule.SHORTEST,
        "Which candidate above the floor is committed; tied: any of the most effective ones.",
        WINDOWS,
        why="the ablation of section 5.4",
    )
    empty: EmptyFrontier = told(
        EmptyFrontier.ONE,
        "Where nothing is left to establish: one seed, all of whose steps are committed; or a window as any other.",
        WINDOWS,
        why="algorithm 1 to the letter, which pays for candidates that nothing tells apart",
    )

    def __post_init__(self) -> None:
        for name, kind in _ENUMS.items():
            object.__setattr__(self, name, kind(getattr(self, name)))
        object.__setattr__(self, "floor", float(self.floor))
        for name in ("window", "stride", "seeds"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be 1 or more")
        if self.variants < 0:
            raise UsageError("variants must be 0 or more")
        if self.stride > self.window:
            raise UsageError(f"a stride of {self.stride} steps is more than the window of {self.window}")
        if not 0 <= self.floor < float("inf"):
            raise UsageError("the floor must be 0 or more")

    def to_json(self) -> str:
        """One line of JSON, the same for equal options."""
        return json.dumps(asdict(self), sort_keys=True)

    def scores(self, frontier: Collection[str]) -> bool:
        """Whether candidates of a window with this frontier are several, scored, and committed by their stride."""
        return bool(frontier) or self.empty is EmptyFrontier.USUAL

    @property
    def chosen(self) -> dict[str, Any]:
        """The options in an identity: those that are not at their default."""
        row: dict[str, Any] = json.loads(self.to_json())
        return {field.name: row[field.name] for field in fields(self) if row[field.name] != DEFAULTS[field.name]}
