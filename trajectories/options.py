"""The options of a rollout: what decides it besides the chain, the models and the sample's number."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from hashlib import sha256
from typing import Any, Literal, Self

from environments.backends import BACKENDS, DEFAULT
from environments.checkouts.carry import Carry
from prchain.core.errors import UsageError
from trajectories.model import NO_LIMITS, AgentLimits

STAGE_STEPS = 100
"""The default limit of a stage's steps."""

MAX_TOKENS = 8192
"""Tokens of one reply of the agent, where neither a flag nor the settings say."""

_STAGE_LIMITS = AgentLimits(steps=STAGE_STEPS)


class Gate(StrEnum):
    """What has to hold for a stage to be accepted."""

    JUDGE = "judge"
    """The judge's score reaches the threshold (the paper's rule)."""
    TESTS = "tests"
    """Every F2P and P2P test passes: rejection sampling by tests alone, SWE-Gym's baseline."""
    BOTH = "both"
    EITHER = "either"


class OnFail(StrEnum):
    """What comes after a stage that was not accepted."""

    STOP = "stop"
    """Nothing: the accepted prefix is the trajectory."""
    CONTINUE = "continue"
    """The next stage, on what the agent left."""
    REFERENCE = "reference"
    """The next stage, on what the developers merged."""


DEFAULTS: Mapping[str, Any] = {
    "tools": "full",
    "context": "chain",
    "carry": "agent",
    "history": 0,
    "gate": "judge",
    "threshold": 0.8,
    "refinements": 3,
    "on_fail": "stop",
    "min_length": 2,
    "stage_limits": {"steps": 100},
    "chain_limits": {},
    "context_tokens": None,
    "overflow": "stop",
    "observation_chars": 10_000,
    "command_timeout": 120.0,
    "test_timeout": 900.0,
    "track_steps": True,
    "interface": "appended",
    "tests": "always",
    "backend": "docker",
    "judge_sees": "patches",
}
"""Option to the value that an id leaves out, as JSON. A line is never changed, even if today's default is another:
existing ids would change. A new option gets the value that held before the option existed."""

ELSEWHERE = frozenset({"scaffold", "observers", "temperature", "max_tokens"})
"""Options that an identity holds in other fields: scaffold, observers, and the agent's sampling settings."""

_ENUMS: Mapping[str, type[StrEnum]] = {"carry": Carry, "gate": Gate, "on_fail": OnFail}
"""Fields whose value may be given as a word."""


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """How an agent works on a chain, and what accepts its work."""

    scaffold: str = "react"
    tools: Literal["bash", "full"] = "full"
    context: Literal["chain", "stage"] = "chain"
    """Whether one conversation lasts over all stages, or each stage begins a new one."""
    carry: Carry = Carry.AGENT
    history: int = 0
    """Number of commits of the base's history that go into the sandbox."""
    gate: Gate = Gate.JUDGE
    threshold: float = 0.8
    refinements: int = 3
    """How often a rejected attempt is sent back."""
    on_fail: OnFail = OnFail.STOP
    min_length: int = 2
    """Accepted stages, from the first one on, that make a chain."""
    stage_limits: AgentLimits = _STAGE_LIMITS
    chain_limits: AgentLimits = NO_LIMITS
    temperature: float | None = None
    max_tokens: int = MAX_TOKENS
    """Of one reply."""
    context_tokens: int | None = None
    """Size of the model's context, prompt and reply together; None: unknown until the endpoint refuses a prompt."""
    overflow: Literal["stop", "elide"] = "stop"
    observation_chars: int = 10_000
    command_timeout: float = 120.0
    """Seconds."""
    test_timeout: float = 900.0
    """Seconds, for one run of a stage's tests."""
    track_steps: bool = True
    """Whether the tree is stored after each step that changed it; else a rollout can resume at attempts only."""
    interface: Literal["appended", "paper"] = "appended"
    tests: Literal["always", "gate"] = "always"
    """Whether a stage's proved tests run on every attempt, or only where the gate or the judge needs them."""
    judge_sees: Literal["patches", "tests"] = "patches"
    """``patches``: query and both patches, the paper's form; ``tests``: also what hidden tests said, where they ran."""
    backend: str = DEFAULT
    """A name of `environments.backends`."""
    observers: tuple[str, ...] = ()
    """Each as ``--observer`` takes it: ``NAME`` or ``NAME:setting=value,...``."""

    def __post_init__(self) -> None:
        for name, kind in _ENUMS.items():
            object.__setattr__(self, name, kind(getattr(self, name)))
        BACKENDS.named(self.backend)
        object.__setattr__(self, "observers", tuple(self.observers))
        for name in ("threshold", "command_timeout", "test_timeout"):
            object.__setattr__(self, name, float(getattr(self, name)))  # 60 is 60.0, also in an identity
        if self.temperature is not None:
            object.__setattr__(self, "temperature", float(self.temperature))
        if not 0 <= self.threshold <= 1:
            raise UsageError("the threshold must be between 0 and 1")
        for name, least in (("refinements", 0), ("min_length", 1), ("history", 0), ("max_tokens", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name.replace('_', ' ')} must be {least} or more")
        if self.judge_sees == "tests" and not self.asks_judge:
            raise UsageError("the gate `tests` asks no judge, so there is none that could see tests")
        if self.context_tokens is not None and self.context_tokens <= self.max_tokens:
            raise UsageError(
                f"a context of {self.context_tokens:,} tokens leaves no room for a prompt where a reply may have "
                f"{self.max_tokens:,}; raise context tokens or lower max tokens"
            )
        for name, limits in (("stage", self.stage_limits), ("chain", self.chain_limits)):
            for unit, most in asdict(limits).items():
                if most is not None and not 0 < most < math.inf:
                    raise UsageError(f"the limit of {unit} for a {name} must be above 0 and finite")

    @property
    def asks_judge(self) -> bool:
        """Whether the gate needs the judge's score."""
        return self.gate is not Gate.TESTS

    @property
    def needs_tests(self) -> bool:
        """Whether the gate uses tests."""
        return self.gate is not Gate.JUDGE

    @property
    def runs_tests(self) -> bool:
        """Whether a stage's proved tests run on every attempt."""
        return self.tests == "always" or self.needs_tests or self.judge_sees == "tests"

    @property
    def limits_cost(self) -> bool:
        """Whether any limit is in USD: that needs the price of the agent's model."""
        return self.stage_limits.usd is not None or self.chain_limits.usd is not None

    @classmethod
    def from_row(cls, stored: Mapping[str, Any]) -> Self:
        """The options whose fields were stored; one that is missing has the value it had then (`DEFAULTS`)."""
        values = {
            field.name: stored.get(field.name, DEFAULTS.get(field.name))
            for field in fields(cls)
            if field.name in stored or field.name in DEFAULTS
        }
        for name in ("stage_limits", "chain_limits"):
            values[name] = AgentLimits(**values[name])
        return cls(**values)

    @property
    def chosen(self) -> dict[str, Any]:
        """The options in an identity: those that are not at their default."""
        row = asdict(self)
        for name in ("stage_limits", "chain_limits"):
            row[name] = {unit: most for unit, most in row[name].items() if most is not None}
        return {name: row[name] for name in DEFAULTS if row[name] != DEFAULTS[name]}

    def hash(self) -> str:
        """SHA-256 of the chosen options, in hex digits."""
        return sha256(json.dumps(self.chosen, sort_keys=True).encode()).hexdigest()
