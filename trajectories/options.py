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
from prchain.core.told import Within, told
from trajectories.model import NO_LIMITS, AgentLimits

STAGE_STEPS = 100
"""The default limit of a stage's steps."""

MAX_TOKENS = 8192
"""Tokens of one reply of the agent, where neither a flag nor the settings say."""

_STAGE_LIMITS = AgentLimits(steps=STAGE_STEPS)

AGENT = Within("--agent", "Agent", "How it is asked, and what it reads.")
GATE = Within("--gate", "Stages", "What accepts a stage.")
SANDBOX_KEYS = Within("--sandbox", "Sandbox", "What runs there, for how long.")


class Gate(StrEnum):
    """What has to hold for a stage to be accepted."""

    JUDGE = "judge"
    """The judge's score reaches the threshold (the paper's rule)."""
    TESTS = "tests"
    """Every F2P and P2P test passes: rejection sampling by tests alone, SWE-Gym's baseline."""
    BOTH = "both"
    EITHER = "either"
    JUDGE_AUDIT = "judge+audit"
    """With ``+audit`` nothing is accepted that the rules of suspicion (`trajectories.audit.suspected`), or a model
    (`audited_by`), point at."""
    TESTS_AUDIT = "tests+audit"
    BOTH_AUDIT = "both+audit"
    EITHER_AUDIT = "either+audit"

    @property
    def voices(self) -> Gate:
        """The gate without the audit: who says yes or no."""
        return Gate(self.partition("+")[0])

    @property
    def audits(self) -> bool:
        """Whether suspicion refuses what the voices accept."""
        return "+" in self


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
    "audited_by": "rules",
    "calls": "native",
    "shell": "plain",
}
"""Option to the value that an id leaves out, as JSON. A line is never changed, even if today's default is another:
existing ids would change. A new option gets the value that held before the option existed."""

ELSEWHERE = frozenset({"scaffold", "observers", "temperature", "top_p", "max_tokens"})
"""Options that an identity holds in other fields: scaffold, observers, and the agent's sampling settings."""

_ENUMS: Mapping[str, type[StrEnum]] = {"carry": Carry, "gate": Gate, "on_fail": OnFail}
"""Fields whose value may be given as a word."""


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """How an agent works on a chain, and what accepts its work."""

    scaffold: str = "react"
    tools: Literal["full", "bash", "swe-agent"] = told(
        "full",
        "full: bash, editor, think, submit; bash: that alone; swe-agent: no think.",
        "Agent",
        why="baselines that have bash alone, or SWE-agent's tools",
    )
    context: Literal["chain", "stage"] = told(
        "chain",
        "Whether the conversation lasts over the chain, or begins anew with each stage.",
        AGENT,
        why="compares long contexts with short ones",
    )
    calls: Literal["native", "text"] = told(
        "native",
        "How tools are called: as the endpoint has it, or in the text of replies, as SWE-agent's models have it.",
        AGENT,
        why="SWE-agent-LM and others, and servers that read no calls",
    )
    shell: Literal["plain", "swe-agent"] = told(
        "plain",
        "bash that ends what takes long, or SWE-agent's: it goes on, an empty command shows more, ctrl+c ends it.",
        AGENT,
        why="SWE-agent-LM and others know it so; needs --tools swe-agent",
    )
    carry: Carry = told(
        Carry.AGENT,
        "Whose work on the earlier stages a stage starts with.",
        "Stages",
        why="later stages without the agent's earlier mistakes",
    )
    history: int = told(
        0,
        "Commits of the repository's past that the agent sees.",
        SANDBOX_KEYS,
        why="agents that read `git log`; the past can hold what a task asks for",
        least=0,
    )
    gate: Gate = told(
        Gate.JUDGE,
        "What accepts a stage.",
        GATE,
        why="the paper's rule, its baselines, and agents that cheat",
        head=True,
    )
    threshold: float = told(
        0.8,
        "The judge's score that accepts.",
        GATE,
        why="a calibrated judge has its own",
        least=0,
        most=1,
    )
    refinements: int = told(
        3, "How often a rejected attempt is sent back.", "Stages", why="the paper's three; 0: one attempt", least=0
    )
    on_fail: OnFail = told(
        OnFail.STOP,
        "After a stage that failed: stop, or go on with the agent's work or the reference.",
        "Stages",
        why="evaluation wants every stage, training data the accepted ones",
    )
    min_length: int = told(
        2, "Accepted stages, from the first on, that make a chain.", "Stages", why="chains of one stage", least=1
    )
    stage_limits: AgentLimits = told(
        _STAGE_LIMITS,
        "For a stage, all of its attempts together.",
        "Stages",
        why="an agent that goes round and round ends",
    )
    chain_limits: AgentLimits = told(NO_LIMITS, "For the whole chain.", "Stages", why="what a trajectory may cost")
    temperature: float | None = told(
        None,
        "How the agent is sampled.",
        AGENT,
        why="several samples of a chain differ",
        least=0,
        most=2,
        unset="that of [purposes.agent], else the endpoint's",
    )
    top_p: float | None = told(
        None,
        "The share of likely tokens that it is sampled from.",
        AGENT,
        why="the papers' runs name it",
        least=0,
        most=1,
        above=True,
        unset="that of [purposes.agent], else the endpoint's",
    )
    max_tokens: int = told(
        MAX_TOKENS,
        "Tokens of one reply.",
        AGENT,
        why="models that think long",
        least=1,
        unset=f"those of [purposes.agent], else {MAX_TOKENS}",
    )
    context_tokens: int | None = told(
        None,
        "What the agent's model takes, prompt and reply together.",
        AGENT,
        why="servers that say nothing, or cut prompts in silence",
        least=1,
        unset="found out",
    )
    overflow: Literal["stop", "elide"] = told(
        "stop",
        "When the context is full: end the attempt, or leave out the oldest observations.",
        AGENT,
        why="models with short contexts",
    )
    observation_chars: int = told(
        10_000,
        "Characters of an observation; more is cut out of its middle.",
        AGENT,
        why="models with short contexts",
        least=200,
    )
    command_timeout: float = told(
        120.0,
        "Seconds of one command of the agent's.",
        SANDBOX_KEYS,
        why="repositories whose builds take minutes",
        least=1,
    )
    test_timeout: float = told(
        900.0,
        "Seconds of one run of a stage's tests.",
        SANDBOX_KEYS,
        why="as --timeout of `environments validate`",
        least=1,
    )
    track_steps: bool = told(
        True,
        "Keep the tree after each step; without it attempts cannot be gone on with.",
        SANDBOX_KEYS,
        why="disks that are short of room",
        name="track",
    )
    interface: Literal["appended", "paper"] = told(
        "appended",
        "Whether the agent is told the names that hidden tests need.",
        "Agent",
        why="paper: without, as the paper has it",
    )
    tests: Literal["always", "gate"] = told(
        "always",
        "Run proved tests on every attempt, or only where the gate or the judge needs them.",
        GATE,
        why="tests that take long",
    )
    judge_sees: Literal["patches", "tests"] = told(
        "patches",
        "Whether the judge is told what hidden tests say, where they can be run.",
        GATE,
        why="a judge that errs less, which the paper does not have",
        name="sees",
    )
    audited_by: Literal["rules", "model"] = told(
        "rules",
        "Who looks over accepted work with `+audit`: rules, or a model after them.",
        GATE,
        why="work that only seems to be done has no usual means",
        name="by",
    )
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
        for name in ("temperature", "top_p"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, float(getattr(self, name)))
        if not 0 <= self.threshold <= 1:
            raise UsageError("the threshold must be between 0 and 1")
        for name, least in (("refinements", 0), ("min_length", 1), ("history", 0), ("max_tokens", 1)):
            if getattr(self, name) < least:
                raise UsageError(f"{name.replace('_', ' ')} must be {least} or more")
        if self.judge_sees == "tests" and not self.asks_judge:
            raise UsageError(f"the gate `{self.gate}` asks no judge, so there is none that could see tests")
        if self.asks_auditor and not self.gate.audits:
            raise UsageError(f"the gate `{self.gate}` audits nothing; `{self.gate}+audit:by=model` does")
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
        return self.gate.voices is not Gate.TESTS

    @property
    def asks_auditor(self) -> bool:
        """Whether a model audits what the gate would accept."""
        return self.audited_by == "model"

    @property
    def needs_tests(self) -> bool:
        """Whether the gate uses tests."""
        return self.gate.voices is not Gate.JUDGE

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
