"""The options of a process graph: every number of its rounds is one of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from environments.backends import BACKENDS, DEFAULT
from environments.checkouts.carry import Carry
from prchain.core.errors import UsageError
from prchain.core.told import Within, told
from trajectories.options import AGENT, SANDBOX_KEYS
from trajectories.options import DEFAULTS as ROLLOUT_DEFAULTS

PROPOSER = "proposer"
CRITIC = "critic"
"""The purposes of the calls."""

SAMPLING: Mapping[str, float | int] = {"temperature": 0.4, "top_p": 0.95, "max_tokens": 8192}
"""How both agents are sampled where the settings do not say (P2T, appendix D)."""

ROUNDS = Within("--rounds", "Graph", "Rounds of proposer and critic at most, and what ends them.")

DEFAULTS: Mapping[str, Any] = {
    "rounds": 6,
    "empty_rounds": 2,
    "tool_calls": 40,
    "schema_repeats": 2,
    "nodes": 30,
    "wide_view": 60,
    "most_dropped": 0.25,
    "command_timeout": 120.0,
    "observation_chars": 10_000,
    "backend": ROLLOUT_DEFAULTS["backend"],
}
"""Option to the value that an id leaves out. A line is never changed, even if today's default is another."""


@dataclass(frozen=True, slots=True)
class GraphOptions:
    """How process graphs are made. Defaults are the paper's (P2T, appendix D), where it names a number."""

    carry: Carry = told(
        Carry.AGENT,
        "agent: the first stage; reference: all stages, each on the developers' work.",
        "Which",
        why="graphs of later stages without a trajectory",
    )
    """It decides S_t, and so enters an id through the tree."""
    rounds: int = told(6, "Rounds at most.", ROUNDS, why="cost", least=1, head=True, metavar="N")
    empty_rounds: int = told(
        2, "So many rounds in a row in which nothing is proposed end the loop.", ROUNDS, why="cost", least=1
    )
    tool_calls: int = told(40, "Tool calls of each agent in a round.", ROUNDS, why="cost", least=0)
    schema_repeats: int = 2
    """How often an agent is told that its answer does not fit, before its round is dropped."""
    nodes: int = told(30, "The most nodes that one answer may propose.", ROUNDS, why="large stages", least=1)
    wide_view: int = 60
    """Lines from which on a view is narrowed to its evidence."""
    most_dropped: float = 0.25
    """The share of edges by name that may close a cycle, and are dropped, in a graph that can be used."""
    command_timeout: float = told(
        120.0, "Seconds of one command.", SANDBOX_KEYS, why="repositories whose builds take minutes", least=1
    )
    observation_chars: int = told(
        10_000,
        "Characters of an observation; more is cut out of its middle.",
        AGENT,
        why="models with short contexts",
        least=200,
    )
    backend: str = DEFAULT
    """A name of `environments.backends`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "carry", Carry(self.carry))
        for name in ("command_timeout", "most_dropped"):
            object.__setattr__(self, name, float(getattr(self, name)))
        BACKENDS.named(self.backend)
        if self.carry is Carry.NONE:
            raise UsageError("a graph carries the agent's work on, or the reference's; --carry none has no use here")
        if not 0 <= self.most_dropped <= 1:
            raise UsageError("most dropped must be between 0 and 1")
        for name in ("rounds", "empty_rounds", "nodes", "wide_view", "observation_chars"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name.replace('_', ' ')} must be 1 or more")
        for name in ("tool_calls", "schema_repeats"):
            if getattr(self, name) < 0:
                raise UsageError(f"{name.replace('_', ' ')} must be 0 or more")

    @property
    def chosen(self) -> dict[str, Any]:
        """The options in an identity: those that are not at their default."""
        row = asdict(self)
        return {name: row[name] for name in DEFAULTS if row[name] != DEFAULTS[name]}
