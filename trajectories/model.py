"""The values of a rollout: messages, tool results, usage and limits.

A trajectory is one conversation over a whole chain. Every message knows its stage, its attempt and its step, so that
exports can cut, mask and count without reading texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from prchain.core.llm.model import Message, Role, ToolCall
from prchain.core.told import told
from trajectories.tokens import TurnTokens


class EntryKind(StrEnum):
    """The role of a message in the trajectory."""

    SYSTEM = "system"
    QUERY = "query"
    """A stage's query; the first one begins with the overview."""
    TURN = "turn"
    """A reply of the model."""
    OBSERVATION = "observation"
    """A tool's result; for a turn without a call, the words that say so."""
    COMMENT = "comment"
    """The verdict's comment after a rejected attempt: the agent refines."""
    GUIDANCE = "guidance"
    """What an observer inserted."""


class TurnFault(StrEnum):
    """What was wrong with an assistant turn. The turn is stored, and the model is told of its fault."""

    EMPTY = "empty"
    """Neither text nor a call."""
    NO_CALL = "no_call"
    """Text without a call, where the scaffold wants one."""
    BAD_ARGUMENTS = "bad_arguments"
    """A call whose arguments are not JSON, or do not fit the tool."""
    UNKNOWN_TOOL = "unknown_tool"
    REFUSAL = "refusal"
    CUT_OFF = "cut_off"
    """The reply reached the limit of its length; its calls were not run."""


class Reason(StrEnum):
    """Why a turn is under loss in an export (`TURN`), or why it is not (all others)."""

    TURN = "turn"
    SYSTEM = "system"
    USER = "user"
    """A query, or a verdict's comment."""
    OBSERVATION = "observation"
    GUIDANCE = "guidance"
    """An observer's words."""
    REFINEMENT = "refinement"
    """A turn of an attempt that was rejected."""
    FAULTY = "faulty"
    TOOL_ERROR = "tool_error"
    """A turn whose tool did not do what was asked (SWE-Lego's masking)."""
    COMMAND_ERROR = "command_error"
    """A turn whose bash command failed (SWE-Lego's masking, too)."""
    UNFOUNDED_CLAIM = "unfounded_claim"
    """A turn that says that tests pass, which the agent had not seen."""
    GUIDED = "guided"
    """The turn right after an observer's words, which the trained model will not get."""
    UNTRAINED = "untrained"
    """A turn of others that their document keeps from training: copied context, or no model's words."""
    CONTEXT = "context"
    """A turn before the last one of a per-turn row; it is under loss in a row of its own, which may be of another
    sample with the same beginning."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One message of a trajectory; a row of ``trajectory_messages`` (`sql.tables.rolled`), whose columns these are."""

    ordinal: int
    position: int
    attempt: int
    step: int
    kind: EntryKind
    role: Role
    content: str
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    error: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    tokens_in: int | None = None
    tokens_cached: int | None = None
    tokens_out: int | None = None
    usd: float | None = None
    seconds: float = 0.0
    tree: str | None = None
    cwd: str | None = None
    at: str = ""
    tokens: TurnTokens | None = None
    """Of a turn whose endpoint gave them; a row of ``message_tokens``, which only exports read."""

    def message(self) -> Message:
        """The message that a model gets."""
        return Message(self.role, self.content, self.tool_calls, self.tool_call_id)


class Ending(StrEnum):
    """How an attempt at a stage ended."""

    SUBMITTED = "submitted"
    STEP_LIMIT = "step_limit"
    CALL_LIMIT = "call_limit"
    TOKEN_LIMIT = "token_limit"
    COST_LIMIT = "cost_limit"
    TIME_LIMIT = "time_limit"
    CONTEXT_LIMIT = "context_limit"
    """The conversation does not fit the model's context any more."""
    FAULTY = "faulty"
    """Too many faulty turns in a row."""
    STOPPED = "stopped"
    """An observer stopped the run."""
    FAILED = "failed"
    """An agent program ended and said that it had failed, or asked nothing more."""


LIMITS = frozenset({Ending.STEP_LIMIT, Ending.CALL_LIMIT, Ending.TOKEN_LIMIT, Ending.COST_LIMIT, Ending.TIME_LIMIT})
"""Endings at a limit of the user's."""

_KEY = "Stages"


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """What an agent may use, for one stage (all of its attempts together) or for a chain. None: no limit.

    Tokens are those of replies and of prompts, cached ones included; cost is in USD, as far as prices are known.
    """

    steps: int | None = told(None, "Steps.", _KEY, why="the papers' limit, and their axis", least=1)
    calls: int | None = told(
        None, "Calls of tools.", _KEY, why="the axis of daVinci-Agency's figure 7; a step may make several", least=1
    )
    tokens: int | None = told(None, "Tokens of prompts and replies.", _KEY, why="where prices are not known", least=1)
    usd: float | None = told(
        None, "USD of the agent's calls.", _KEY, why="what one stage may cost", least=0, above=True
    )
    seconds: float | None = told(
        None,
        "Minutes of models and tools.",
        _KEY,
        why="servers of one's own have a price in time",
        least=0,
        above=True,
        name="minutes",
        times=60,
    )

    def __post_init__(self) -> None:
        for name in ("usd", "seconds"):
            if (most := getattr(self, name)) is not None:
                object.__setattr__(self, name, float(most))  # 1 is 1.0, also in an identity

    @property
    def given(self) -> dict[str, float]:
        """Unit to limit, of the limits that there are."""
        return {unit: most for unit, most in asdict(self).items() if most is not None}


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """Usage so far, in the units of `AgentLimits`."""

    steps: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0
    calls: int = 0

    def __add__(self, other: AgentUsage) -> AgentUsage:
        return AgentUsage(
            self.steps + other.steps,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.seconds + other.seconds,
            self.calls + other.calls,
        )

    def over(self, limits: AgentLimits) -> Ending | None:
        """The first limit that is reached; None where there is room for another step."""
        pairs = (
            (self.steps, limits.steps, Ending.STEP_LIMIT),
            (self.calls, limits.calls, Ending.CALL_LIMIT),
            (self.tokens, limits.tokens, Ending.TOKEN_LIMIT),
            (self.usd, limits.usd, Ending.COST_LIMIT),
            (self.seconds, limits.seconds, Ending.TIME_LIMIT),
        )
        return next((ending for used, most, ending in pairs if most is not None and used >= most), None)


NO_LIMITS = AgentLimits()
NOTHING_USED = AgentUsage()
