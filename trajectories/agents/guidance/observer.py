"""The observer ``prm``: a process reward model that guides a running agent (SWE-PRM, section 3.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from prchain.core.llm.gateway import Question
from trajectories.agents.guidance.advice import advice_prompt, is_told_raw, words_for_agent
from trajectories.agents.guidance.detecting import find_all
from trajectories.agents.guidance.reading import MODEL, Reading, WindowFinding, prompt_of, read_window, render
from trajectories.agents.guidance.rows import WindowPlace, WindowRow, write_window
from trajectories.agents.guidance.schedule import asked_after
from trajectories.agents.guidance.settings import PURPOSE, SAMPLING, PrmSettings, Schedule
from trajectories.agents.guidance.window import StepWindow, stage_entries
from trajectories.agents.scaffolds.scaffold import Advice, ObservedAttempt, Observer
from trajectories.model import Entry
from trajectories.verdicts.hidden import of_the_reference

NAME = "prm"

ON_TRACK = "on_track"
"""Why a window was not told: it is on track, and only others are."""

_TOKENS_IN, _TOKENS_OUT = 7_100, 640
"""Tokens of one call: table 4, SWE-PRM_D with the closed model: 51,443 and 4,621 in 7.24 calls."""


@dataclass(frozen=True)
class PrmKind:
    """The kind; satisfies `trajectories.agents.scaffolds.scaffold.ObserverKind` and `SampledKind`."""

    chosen: PrmSettings

    name = NAME
    version = "1"

    @property
    def settings(self) -> Mapping[str, Any]:
        """See `ObserverKind`."""
        return self.chosen.decided

    @property
    def prompts(self) -> Mapping[str, str]:
        """See `ObserverKind`."""
        return {prompt.name: prompt.hash for prompt in (prompt_of(self.chosen), advice_prompt())}

    @property
    def purposes(self) -> Sequence[str]:
        """See `ObserverKind`."""
        return () if self.chosen.schedule is Schedule.NONE else (PURPOSE,)

    @property
    def sampling(self) -> Mapping[str, Mapping[str, float]]:
        """See `SampledKind`."""
        return {PURPOSE: SAMPLING}

    def calls(self, steps: float) -> Mapping[str, tuple[float, float, float]]:
        """See `ObserverKind`."""
        if self.chosen.schedule is Schedule.NONE:
            return {}
        asked = max(steps - 1, 0) // self.chosen.every
        return {PURPOSE: (asked, asked * _TOKENS_IN, asked * _TOKENS_OUT)}

    def observe(self, attempt: ObservedAttempt) -> Observer:
        """See `ObserverKind`."""
        return partial(self._advise, attempt)

    def _advise(self, attempt: ObservedAttempt, entries: Sequence[Entry]) -> Advice | None:
        chosen = self.chosen
        own = stage_entries(entries, attempt.position)

        def fired() -> frozenset[int]:
            return frozenset(finding.step or 0 for finding in found_by_code(chosen, entries, 0))

        if not own or own[-1].step not in asked_after(own, chosen.schedule, chosen.every, fired)[-1:]:
            return None
        window = StepWindow.of(own, chosen.window)
        assert window is not None
        found = found_by_code(chosen, entries, window.first)
        prompt = prompt_of(chosen)
        messages = render(chosen, attempt.overview, attempt.query, window, attempt.tools)
        question = Question(PURPOSE, attempt.subject, prompt, messages, sample=attempt.sample, attempt=attempt.attempt)
        reading = read_window(attempt.gateway, chosen, question, window, attempt.tools)
        reading = replace(reading, findings=(*reading.findings, *found))
        fault = None if is_told_raw(chosen, reading) else reading.fault
        why_not = fault or (ON_TRACK if chosen.send == "suboptimal" and reading.suboptimal is False else None)
        words = None if why_not else words_for_agent(chosen, reading)
        leaks = attempt.leaks(_own_words(reading, words), entries) if words else ()
        trajectory = attempt.subject.partition("/")[0]
        place = WindowPlace(trajectory, attempt.position, attempt.attempt, attempt.subject, window.last)
        row = WindowRow(
            place,
            window,
            chosen,
            attempt.gateway.model_name(PURPOSE),
            prompt.hash,
            reading,
            sent=words is not None,
            why_not=why_not,
            leaks=[finding for finding in leaks if of_the_reference(finding)],
        )
        details: dict[str, Any] = {"window": place.id}
        if chosen.keep == "last":
            details["keep"] = "last"
        return Advice(words, details=details, record=partial(write_window, row=row), usd=reading.usd)


def make_prm(**settings: str) -> PrmKind:
    """The kind from settings by name, as ``--observer prm:NAME=VALUE,...`` has them.

    Raises pydantic's `ValidationError`, and `UsageError`.
    """
    return PrmKind(PrmSettings.model_validate(settings))


def _own_words(reading: Reading, told: str) -> str:
    """What the model says to the agent, without our frame and without quotes; what is told of a reply that could not be
    read."""
    if reading.assessment is None:
        return told
    recoveries = [finding.recovery for finding in reading.findings if finding.kept and finding.found_by == MODEL]
    return "\n".join([*recoveries, reading.assessment.guidance, *([reading.action] if reading.action else [])])


def found_by_code(settings: PrmSettings, entries: Sequence[Entry], first: int) -> list[WindowFinding]:
    """What detectors find in a conversation, from the step `first` on; nothing where they are off."""
    found = () if settings.detectors == "off" else find_all(entries, first)
    return [WindowFinding(it.category, it.detector, it.evidence, it.step, it.recovery) for it in found]
