"""The judge of a rewritten step: whether its claims follow from the conversation (the neural half of Ground; P2T,
section 4.2 and appendix H). It knows neither the reference nor the node that the step shall lead to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import BaseModel

from prchain.core.errors import BadReply, ContextTooLong
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.prompts import Fence, Prompt, load_prompt
from trajectories.agents.steps.conversation import transcript
from trajectories.curation.windows.grounding import RewriteFault
from trajectories.curation.windows.options import GROUND
from trajectories.curation.windows.questions import reader_question
from trajectories.model import Entry

_RULES = ("J1", "J2", "J3", "J4")


class GroundReply(BaseModel):
    """The judge's verdict."""

    valid: bool
    reasons: list[str]


@dataclass(frozen=True, slots=True)
class ClaimVerdict:
    """What is wrong with a step; nothing where it is grounded. `usd` is the cost of the verdict, None: not known."""

    faults: tuple[RewriteFault, ...]
    usd: float | None = 0.0


class ClaimJudge(Protocol):
    """Judges rewritten steps."""

    def judge(self, subject: str, query: str, before: Sequence[Entry], proposed: str) -> ClaimVerdict:
        """The verdict on a step, given as text, after the conversation `before`. Raises `LlmError`."""


class LlmClaimJudge:
    """The judge by a model. Without a verdict a step counts as not grounded."""

    def __init__(self, gateway: Gateway, *, sample: int) -> None:
        self._gateway = gateway
        self._sample = sample
        self._prompt = judge_prompt()

    def judge(self, subject: str, query: str, before: Sequence[Entry], proposed: str) -> ClaimVerdict:
        """See `ClaimJudge`."""
        past = transcript(before)
        messages = self._prompt.render(query=query, past=past, step=proposed, fence=Fence(query, past, proposed))
        question = reader_question(self._gateway, GROUND, subject, self._prompt, messages, self._sample)
        try:
            answer = self._gateway.ask_verdict(question, GroundReply)
        except (BadReply, ContextTooLong) as error:
            return ClaimVerdict((RewriteFault("judge", f"no verdict: {error.name}"),), None)
        if answer.value.valid:
            return ClaimVerdict((), answer.cost)
        reasons = answer.value.reasons or ["no reason given"]
        return ClaimVerdict(tuple(map(_fault, reasons)), answer.cost)


def _fault(reason: str) -> RewriteFault:
    rule = next((rule for rule in _RULES if reason.lstrip().upper().startswith(rule)), "judge")
    return RewriteFault(rule, reason.lstrip().removeprefix(rule).lstrip(": "))


def judge_prompt() -> Prompt:
    """The judge's prompt. Raises `PromptError`."""
    return load_prompt("trajectories.curation", GROUND)
