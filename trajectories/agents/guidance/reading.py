"""Asking a model about one window, and what counts of its reply: the same while an agent runs and in a replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from prchain.core.errors import BadReply, ContextTooLong
from prchain.core.llm.gateway import Answer, CostEstimate, Gateway, Question
from prchain.core.llm.prompts import Prompt, load_prompt
from prchain.core.llm.replies import UnfitReply
from prchain.core.storable import clean_text
from trajectories.agents.guidance.actions import agents_call, tool_lines
from trajectories.agents.guidance.assessment import Assessment, TaskStatus
from trajectories.agents.guidance.evidence import WindowText
from trajectories.agents.guidance.examples import example_reply
from trajectories.agents.guidance.reply import from_json, json_shape, read_reply, read_simple
from trajectories.agents.guidance.serialise import variables
from trajectories.agents.guidance.settings import SAMPLING, PrmSettings
from trajectories.agents.guidance.variants import PrmStyle
from trajectories.agents.guidance.window import StepWindow

UNREADABLE = "unreadable"
"""The fault of a reply without a status or without guidance; other faults are the names of errors."""

MODEL = "model"
"""Who found a category: the model, or a detector by its name."""

UNQUOTED = "unquoted"

_WANTED = {
    PrmStyle.CONCISE: "one or two sentences, specific to what it does",
    PrmStyle.DETAILED: "in detail, specific to what it does: what to stop, what to do next and in which order, and by "
    "what it sees that it is done",
}


@dataclass(frozen=True, slots=True)
class WindowFinding:
    """A category that was found in a window."""

    category: str
    found_by: str
    evidence: str
    step: int | None
    recovery: str
    kept: bool = True
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of a window. `assessment` is None where there is a `fault`."""

    assessment: Assessment | None
    fault: str | None
    findings: tuple[WindowFinding, ...]
    """The model's, then those of detectors."""
    action: str | None = None
    """The recommended call, if it is one of the agent's tools."""
    tokens_in: int | None = None
    tokens_out: int | None = None
    usd: float | None = None
    seconds: float = 0.0
    text: str = ""
    """The reply as it came; empty where none did."""

    @property
    def suboptimal(self) -> bool | None:
        """Whether a finding of the model is kept, or the status is not on track; None where nothing says so."""
        if self.assessment is None or self.assessment.status is None:
            return None
        detected = any(finding.kept and finding.found_by == MODEL for finding in self.findings)
        return detected or self.assessment.status is not TaskStatus.ON_TRACK


def prompt_of(settings: PrmSettings) -> Prompt:
    """The prompt of a variant. Raises `PromptError`."""
    of_taxonomy = "listings" if settings.rules == "paper" else "taxonomy"
    return load_prompt("trajectories.agents.guidance", "simple" if settings.style is PrmStyle.SIMPLE else of_taxonomy)


def render(
    settings: PrmSettings, overview: str | None, query: str, window: StepWindow, tools: Sequence[Mapping[str, Any]]
) -> tuple[Any, ...]:
    """The messages of the question about a window (`prchain.core.llm.model.Message`). Raises `PromptError`."""
    values = variables(overview, query, window)
    taxonomy = settings.categories
    if taxonomy is not None:
        values |= {
            "families": taxonomy.families,
            "names": ", ".join(f'"{category.name}"' for category in taxonomy.categories),
            "detailed": settings.style is PrmStyle.DETAILED,
            "json": settings.reply == "json",
            "wanted": _WANTED[settings.style],
            "tools": tool_lines(tools) if settings.action else [],
            "example": example_reply(settings) if settings.example else "",
        }
    return prompt_of(settings).render(**values)


def read_window(
    gateway: Gateway,
    settings: PrmSettings,
    question: Question,
    window: StepWindow,
    tools: Sequence[Mapping[str, Any]],
) -> Reading:
    """Ask about a window. `question` has purpose, subject, sample, attempt and messages (`render`).

    A reply that cannot be read, a refusal and a prompt that is too long are faults of the reading. Raises other
    `LlmError`: an endpoint that cannot be reached, a spent budget.
    """
    try:
        answer, assessment, fault = _asked(gateway, settings, _sampled(gateway, question))
    except (BadReply, ContextTooLong) as error:
        return Reading(None, error.name, ())
    usage = answer.reply.usage
    cost = (usage.tokens_in, usage.tokens_out, answer.cost, answer.seconds, answer.reply.text)
    if assessment is None:
        return Reading(None, fault, (), None, *cost)
    action = None if assessment.action is None else agents_call(assessment.action, tools)
    findings = _findings(assessment, window, any_evidence=settings.evidence == "any")
    return Reading(assessment, None, tuple(findings), action, *cost)


def estimate_window(gateway: Gateway, settings: PrmSettings, question: Question) -> CostEstimate:
    """What `read_window` would cost at most; nothing for a stored reply."""
    taxonomy = settings.categories
    shape = json_shape(taxonomy, action=settings.action) if taxonomy and settings.reply == "json" else None
    return gateway.estimate(_sampled(gateway, question), shape)


def _sampled(gateway: Gateway, question: Question) -> Question:
    sampling = gateway.resolved(question.purpose, usual=SAMPLING)
    return replace(
        question,
        max_tokens=sampling["max_tokens"],
        temperature=sampling.get("temperature"),
        top_p=sampling.get("top_p"),
    )


def _asked(
    gateway: Gateway, settings: PrmSettings, question: Question
) -> tuple[Answer[Any], Assessment | None, str | None]:
    taxonomy = settings.categories
    if taxonomy is not None and settings.reply == "json":
        answer = gateway.ask_verdict(question, json_shape(taxonomy, action=settings.action))
        return answer, from_json(answer.value, taxonomy), None
    text = gateway.ask(question)
    try:
        if taxonomy is None:
            return text, read_simple(text.value), None
        return text, read_reply(text.value, taxonomy, action=settings.action), None
    except UnfitReply:
        return text, None, UNREADABLE


def _findings(assessment: Assessment, window: StepWindow, *, any_evidence: bool) -> list[WindowFinding]:
    words = WindowText(window)
    findings = []
    for detection in assessment.detections:
        step = words.step_of(detection.evidence)
        kept = step is not None or any_evidence
        findings.append(
            WindowFinding(
                detection.category,
                MODEL,
                clean_text(detection.evidence),
                step,
                clean_text(detection.recovery),
                kept,
                None if kept else UNQUOTED,
            )
        )
    return findings
