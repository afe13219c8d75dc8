"""Reading the reply of a process reward model (SWE-PRM, appendix A.1, listings 2-6): prose, keys in text, or JSON.

What a reply says doubtfully it does not say: nothing is detected without an explicit yes behind a category's title.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, create_model

from prchain.core.llm.excerpt import cut
from prchain.core.llm.replies import UnfitReply
from prchain.core.llm.thoughts import separated
from prchain.core.storable import clean_text
from trajectories.agents.guidance.answers import says_yes, status_in
from trajectories.agents.guidance.assessment import Assessment, Detection, TaskStatus
from trajectories.agents.guidance.marks import Mark, marked
from trajectories.agents.guidance.sections import Section, is_fence, is_rule, sections
from trajectories.agents.guidance.taxonomy import Taxonomy
from trajectories.agents.guidance.titles import words_of

LONGEST_GUIDANCE = 20_000
"""Characters, of which head and tail stay. It goes into the agent's context every few steps: five thousand tokens are
far more than guidance takes, and a model that repeats itself to its limit shall not fill the window."""
LONGEST_PART = 2_000
"""Characters of an evidence, a recovery and an action: each is a few sentences, or one call."""

_STATUS_WORDS = "On track, Needs correction, Critical intervention required"
_NOTHING = {"", "na", "none", "null", "notapplicable"}
"""The words of a short text that says that there is none."""
_SHORT = 40
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "`": "`"}  # noqa: RUF001
_HEADING = re.compile(r"\s*#{1,6}\s")


def read_simple(text: str) -> Assessment:
    """The assessment of style simple: all of the reply is guidance, but for thoughts (listing 2).

    Raises `UnfitReply` where nothing is left.
    """
    lines = _plain(text).strip().split("\n")
    if len(lines) > 2 and [place for place, line in enumerate(lines) if is_fence(line)] == [0, len(lines) - 1]:
        lines = lines[1:-1]
    guidance = _prose(lines, LONGEST_GUIDANCE)
    if not guidance:
        raise UnfitReply("Your reply holds no guidance. Write in plain text how the agent shall go on.")
    return Assessment(guidance)


def read_reply(text: str, taxonomy: Taxonomy, *, action: bool) -> Assessment:
    """The assessment that a reply in text form holds (listings 3-6). `action`: a next call was asked for.

    Where none was asked for, one that the reply recommends all the same is left out: it belongs to another variant.
    Raises `UnfitReply` where there is not exactly one status and one guidance.
    """
    found = sections(marked(_plain(text), taxonomy))
    statuses = {status_in(part.value) for part in found if part.mark is Mark.STATUS} - {None}
    guidances = _texts(found, Mark.GUIDANCE, LONGEST_GUIDANCE)
    complaints = []
    if not statuses:
        complaints.append(f"It has no TASK_STATUS: with exactly one of {_STATUS_WORDS}.")
    elif len(statuses) > 1:
        complaints.append(f"It has more than one TASK_STATUS: decide for one of {_STATUS_WORDS}.")
    if not guidances:
        complaints.append("It has no text behind OVERALL_GUIDANCE: and that is what the agent is told.")
    elif len(guidances) > 1:
        complaints.append(
            "It has more than one OVERALL_GUIDANCE: give the final one alone, without examples or drafts."
        )
    if complaints:
        words = " ".join(complaints)
        raise UnfitReply(f"Your reply cannot be read. {words} Write the whole reply again, in the form asked for.")
    actions = _texts(found, Mark.ACTION, LONGEST_PART) if action else []
    return Assessment(
        guidances[0],
        statuses.pop(),
        tuple(_detections(found, taxonomy)),
        actions[0] if len(actions) == 1 else None,  # of two next calls neither is the next
    )


def _detections(found: Sequence[Section], taxonomy: Taxonomy) -> Iterable[Detection]:
    """The categories that the reply detects: each time that it answers, it answers yes."""
    answers: dict[str, set[bool]] = {}
    parts: dict[tuple[str, Mark], str] = {}
    answer: bool | None = False
    for section in found:
        key = section.category, section.mark
        if section.mark is Mark.DETECTED:
            answer = says_yes(section.value[0]) if section.value else False
            if answer is not None:
                answers.setdefault(section.category, set()).add(answer)
        elif answer and section.mark in {Mark.EVIDENCE, Mark.RECOVERY} and not parts.get(key):
            parts[key] = _text(section, LONGEST_PART)
    for category in taxonomy.categories:
        name = category.name
        if answers.get(name) == {True}:
            yield Detection(name, parts.get((name, Mark.EVIDENCE), ""), parts.get((name, Mark.RECOVERY), ""))


def _texts(found: Iterable[Section], mark: Mark, longest: int) -> list[str]:
    """The different texts behind a key."""
    return list(dict.fromkeys(filter(None, (_text(section, longest) for section in found if section.mark is mark))))


def _text(section: Section, longest: int) -> str:
    lines = list(section.lines)
    # A heading at the end of a section belongs to what follows.
    while section.closed and len(lines) > 1 and (is_rule(lines[-1]) or _HEADING.match(lines[-1])):
        lines.pop()
    return _prose(lines, longest)


def _prose(lines: Sequence[str], longest: int) -> str:
    """A text of a reply, as the model wrote it but for what was around it; empty where it says that there is none."""
    kept = list(lines)
    fences = sum(1 for line in kept if is_fence(line))
    while kept and (is_rule(kept[-1]) or (fences % 2 and is_fence(kept[-1]))):
        # An odd mark of a fence at the end closes one that was opened around the reply.
        fences -= is_fence(kept.pop())
    return _bare("\n".join(kept), longest)


def _bare(text: str, longest: int) -> str:
    text = clean_text(text).strip()
    if text.endswith("**") and text.count("**") % 2:
        text = text[:-2].rstrip()
    opening, closing = text[:1], text[-1:]
    if len(text) > 1 and _QUOTES.get(opening) == closing and not {opening, closing} & set(text[1:-1]):
        text = text[1:-1].strip()
    return "" if len(text) < _SHORT and "".join(words_of(text)) in _NOTHING else cut(text, longest)


def _plain(text: str) -> str:
    """A reply without thoughts, with line feeds alone at the ends of lines."""
    return separated(clean_text(text).replace("\r\n", "\n").replace("\r", "\n")).content


class JsonDetection(BaseModel):
    """A category that was detected."""

    category: str
    evidence: str
    recovery: str


def _guidance(text: str) -> str:
    if not _bare(text, LONGEST_GUIDANCE):
        raise ValueError("there is no guidance; tell the agent how to go on")
    return text


class JsonReply(BaseModel):
    """What is to be said of the agent's steps."""

    detections: list[JsonDetection]
    status: TaskStatus
    guidance: Annotated[str, AfterValidator(_guidance)]


class JsonActionReply(JsonReply):
    """What is to be said of the agent's steps, with the next call."""

    recommended_action: str | None = None


def json_shape(taxonomy: Taxonomy, *, action: bool) -> type[JsonReply]:
    """The shape of a reply in JSON, for `prchain.core.llm.gateway.Gateway.ask_for`: no other categories than these fit
    it.

    `action`: with the next call, which may be null.
    """
    literal: Any = Literal
    names = literal[tuple(category.name for category in taxonomy.categories)]
    detection = create_model("Detection", __base__=JsonDetection, category=(names, ...))
    base = JsonActionReply if action else JsonReply
    return create_model("Assessment", __base__=base, detections=(list[detection], ...))  # type: ignore[valid-type]


def from_json(value: JsonReply, taxonomy: Taxonomy) -> Assessment:
    """The assessment that a value of a `json_shape` holds. Raises `UnfitReply` for a category of another taxonomy."""
    found: dict[str, tuple[str, str]] = {}
    for part in value.detections:
        if not taxonomy.has(part.category):
            names = ", ".join(category.name for category in taxonomy.categories)
            raise UnfitReply(f"There is no category {part.category[:80]!r}. The categories are {names}.")
        evidence, recovery = found.get(part.category, ("", ""))
        found[part.category] = (
            evidence or _bare(part.evidence, LONGEST_PART),
            recovery or _bare(part.recovery, LONGEST_PART),
        )
    guidance = _bare(value.guidance, LONGEST_GUIDANCE)
    action = value.recommended_action if isinstance(value, JsonActionReply) else None
    return Assessment(
        guidance,
        value.status,
        tuple(
            Detection(category.name, *found[category.name])
            for category in taxonomy.categories
            if category.name in found
        ),
        _bare(action or "", LONGEST_PART) or None,
    )
