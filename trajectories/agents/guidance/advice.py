"""What an agent reads of a window: all of a reading, or its guidance alone (SWE-PRM, table 1, "policy input")."""

from __future__ import annotations

import json
from collections.abc import Sequence

from prchain.core.llm.prompts import Prompt, load_prompt
from trajectories.agents.guidance.assessment import Assessment, TaskStatus
from trajectories.agents.guidance.reading import UNREADABLE, Reading, WindowFinding
from trajectories.agents.guidance.settings import PrmSettings
from trajectories.agents.guidance.variants import Reads

_QUOTE = 300
"""Characters of a quote: it comes from what the agent has read, and is to be found again, not read again."""

_STATUS = {
    TaskStatus.ON_TRACK: "on track",
    TaskStatus.NEEDS_CORRECTION: "needs correction",
    TaskStatus.CRITICAL: "critical, correction is needed now",
}


def advice_prompt() -> Prompt:
    """The template of the words. Raises `PromptError`."""
    return load_prompt("trajectories.agents.guidance", "advice")


def words_for_agent(settings: PrmSettings, reading: Reading) -> str:
    """The text of the inserted turn. The reading has an assessment, or can be told without one (`is_told_raw`)."""
    assessment = reading.assessment
    if settings.words == "raw":
        return reading.text.strip() if assessment is None or settings.reads is Reads.ALL else _own(assessment, reading)
    assert assessment is not None
    told = settings.reads is Reads.ALL
    findings = [_told(settings, it) for it in told_findings(settings, reading.findings)] if told else []
    status = assessment.status if told else None
    [message] = advice_prompt().render(
        status=None if status is None else _STATUS[status],
        findings=findings,
        guidance=assessment.guidance,
        action=reading.action,
    )
    return message.content


def is_told_raw(settings: PrmSettings, reading: Reading) -> bool:
    """Whether the agent is told a reply that could not be read: as it is, where it reads all of them so."""
    return (
        settings.words == "raw"
        and settings.reads is Reads.ALL
        and reading.fault == UNREADABLE
        and bool(reading.text.strip())
    )


def _own(assessment: Assessment, reading: Reading) -> str:
    return "\n\n".join([assessment.guidance, *([reading.action] if reading.action else [])])


def told_findings(settings: PrmSettings, findings: Sequence[WindowFinding]) -> list[WindowFinding]:
    """The findings that the agent is told: kept ones of the model, and those of detectors where the settings say so."""
    return [it for it in findings if it.kept and (it.found_by == "model" or settings.detectors == "tell")]


def _told(settings: PrmSettings, finding: WindowFinding) -> tuple[str, str, str]:
    taxonomy = settings.categories
    titles = {} if taxonomy is None else {category.name: category.title for category in taxonomy.categories}
    title = titles.get(finding.category, finding.category.replace("_", " ").capitalize())
    # A JSON string cannot be closed from within.
    evidence = json.dumps(_line(finding.evidence), ensure_ascii=False) if finding.evidence.strip() else ""
    return title, evidence, _line(finding.recovery, _QUOTE * 4)


def _line(text: str, most: int = _QUOTE) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 4]} ..."
