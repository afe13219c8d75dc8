"""The judge: a model that reads whether an agent's patch has the effect of the reference.

The paper's evaluator, (comment, s) = E(q, p, p_ref), section 3.3 and appendix D: a score from 0 to 1 and a comment. A
reply that does not parse is no verdict: the attempt is unscored, which is neither 0 nor 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator

from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.errors import BadReply, CandidateCut, ContextTooLong
from prchain.core.llm.gateway import CostEstimate, Gateway, Question
from prchain.core.llm.model import Message
from prchain.core.llm.prompts import Fence, load_prompt
from prchain.core.secrets.scrub import scrub_mined
from trajectories.verdicts.patch_text import FileText, PatchText, file_texts, render_patch

JUDGE = "judge"
"""The purpose of its calls, and the name of its prompt."""

VERDICTS = "2"
"""The version of the code that makes verdicts of replies and test runs (what is shown of patches, gates, the leak check
of comments): raised if the same replies and test runs get another verdict. Since 2 a judge is shown another prompt only
where a text holds a special token (broken), a text file a NUL (shown), or a patch a binary file (its extent says so):
that is rare, and was decided to be no other version."""

AGAIN = "comment_again"
"""The prompt with which `trajectories.verdicts.comments` rewrites a comment that leaks."""

EMPTY = "The attempt changed nothing."
"""The comment on an empty patch, which is judged without a call."""

HALVINGS = 2
"""How often the room of both patches is halved if the prompt does not fit the model's context."""

_UNSCORED = (BadReply, ContextTooLong)
"""Errors that leave an attempt unscored: asking again did not help. Others are of the endpoint or the run."""

_CUT, _TOO_LONG = CandidateCut("").name, ContextTooLong("").name


class VerdictReply(BaseModel):
    """The verdict as the model gives it. The comment comes first, so that the score follows from it.

    Bounds are checked here: not every endpoint keeps to those of a schema.
    """

    model_config = ConfigDict(extra="forbid")

    comment: str = Field(description="the gravest findings, or that the candidate does what was asked for")
    score: float = Field(ge=0, le=1, description="0.0 to 1.0; 1.0 is without a grave fault")

    @field_validator("comment")
    @classmethod
    def _not_empty(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text


_CODE = re.compile(r"(?m)^<<<\w+ ([0-9a-f]{16})$")
_HEX = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Judgement:
    """The judge's verdict on an attempt.

    It has either `score` (0 to 1) and `comment`, or `error`, the name of the failure: ``bad_reply``,
    ``model_refused``, ``context_too_long``, or ``candidate_cut``.
    """

    score: float | None
    comment: str | None
    error: str | None = None
    usd: float | None = 0.0
    """Its cost, paid now or before the run was killed; None if unknown, or without a verdict."""
    stored: bool = False
    """Whether it came from the ledger, without a new cost."""
    notes: tuple[str, ...] = ()
    """On patches that the judge saw only in part."""
    saw_tests: bool = False
    """Whether results of hidden tests stood in its prompt."""

    @property
    def scored(self) -> bool:
        """Whether there is a verdict."""
        return self.score is not None

    def accepts(self, threshold: float) -> bool | None:
        """Whether the score reaches the threshold; None without a score."""
        return None if self.score is None else self.score >= threshold


@dataclass(frozen=True, slots=True)
class Case:
    """What is judged: a query, the diff B_t..M_t, and the diff S_t..A_t, as `judged_patch` gives them."""

    query: str
    reference_patch: bytes
    agent_patch: bytes
    candidate_first: bool = False
    """Whether the agent's patch is before the reference in the prompt; a fair judge gives the same score."""
    results: str | None = None
    """What hidden tests said of the agent's patch (`trajectories.verdicts.results`), for a judge that is to see it."""

    @property
    def empty(self) -> bool:
        """Whether the agent's patch is empty."""
        return not self.agent_patch.strip()


class Judge:
    """Judges attempts. Safe for several threads, as its gateway is.

    `room` is the number of characters shown of each patch (`trajectories.verdicts.patch_text` says which); two patches
    of 60,000 are about 30,000 tokens. `max_tokens` and `temperature` override those of the settings. With `sees_tests`
    its prompt tells what results of hidden tests mean.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        room: int = 60_000,
        max_tokens: int | None = None,
        temperature: float | None = None,
        sees_tests: bool = False,
    ) -> None:
        self._gateway = gateway
        self._room = room
        self._sees_tests = sees_tests
        self._max_tokens = max_tokens
        self._temperature = temperature
        self._prompt = load_prompt("trajectories.verdicts", JUDGE)

    @property
    def gateway(self) -> Gateway:
        """The gateway of its calls."""
        return self._gateway

    @property
    def model(self) -> str:
        """The name of the model that judges."""
        return self._gateway.model_name(JUDGE)

    @property
    def prompts(self) -> dict[str, str]:
        """Names and hashes of its prompt and of the prompt that rewrites its comments."""
        return {prompt.name: prompt.hash for prompt in (self._prompt, load_prompt("trajectories.verdicts", AGAIN))}

    def judge(
        self,
        *,
        subject: str,
        sample: int,
        attempt: int,
        query: str,
        reference_patch: bytes,
        agent_patch: bytes,
        candidate_first: bool = False,
        results: str | None = None,
    ) -> Judgement:
        """The verdict on one attempt. An empty patch is scored 0 without a call.

        Nor is there a call, or a score, where changes would be missing in a file that the reference touches: they could
        be what decides. `results` is of `trajectories.verdicts.results`, and None for a judge that is not to see it.
        `subject`, `sample` and `attempt` distinguish the calls in the ledger; a stored verdict is not paid for again.
        Raises `LlmError` if the endpoint, the budget or the script fails, and `GitError` for an invalid patch.
        """
        case = Case(query, reference_patch, agent_patch, candidate_first, results)
        if case.empty:
            return Judgement(0.0, EMPTY)
        saw_tests = results is not None
        texts = file_texts(reference_patch), file_texts(agent_patch)
        for halvings in range(HALVINGS + 1):
            shown = _shown(*texts, self._room >> halvings)
            if shown.decisive_cut:
                return Judgement(
                    None, None, _TOO_LONG if halvings else _CUT, usd=None if halvings else 0.0, notes=shown.notes
                )
            messages = self._messages(case, shown)
            question = self._question(messages, subject, sample, attempt)
            try:
                answer = self._gateway.ask_verdict(question, VerdictReply)
            except _UNSCORED as failure:
                if isinstance(failure, ContextTooLong) and halvings < HALVINGS:
                    continue
                return Judgement(None, None, failure.name, usd=None, notes=shown.notes, saw_tests=saw_tests)
            comment = scrub_mined(_without_codes(answer.value.comment, messages)).strip()
            return Judgement(answer.value.score, comment, None, answer.cost, answer.stored, shown.notes, saw_tests)
        raise AssertionError("the last round returns or raises")

    def estimate(self, case: Case, *, subject: str, sample: int = 0, attempt: int = 0) -> CostEstimate:
        """The cost of a verdict with one call; nothing if it is stored, or is given without a call."""
        if case.empty:
            return CostEstimate()
        shown = _shown(file_texts(case.reference_patch), file_texts(case.agent_patch), self._room)
        if shown.decisive_cut:
            return CostEstimate()
        messages = self._messages(case, shown)
        return self._gateway.estimate(self._question(messages, subject, sample, attempt), VerdictReply)

    def _question(self, messages: tuple[Message, ...], subject: str, sample: int, attempt: int) -> Question:
        question = Question(JUDGE, subject, self._prompt, messages, self._max_tokens, self._temperature)
        return replace(question, sample=sample, attempt=attempt)

    def _messages(self, case: Case, shown: _Shown) -> tuple[Message, ...]:
        """The prompt with its material fenced.

        Of a patch, only the numbers of its files are outside the fence, nothing of its content.
        """
        query = scrub_mined(case.query).strip()
        own_texts = [shown.candidate.text] if case.results is None else [shown.candidate.text, case.results]
        # What attempts at a stage share comes first and is the same text, so that an endpoint's cache serves it.
        fence = Fence(query, shown.reference.text, unlike=own_texts)
        own = Fence(fence.nonce, *own_texts)
        return self._prompt.render(
            nonce=fence.nonce,
            query=fence("query", query),
            reference=fence("reference", shown.reference.text),
            candidate=own("candidate", shown.candidate.text),
            candidate_nonce=own.nonce,
            reference_extent=shown.reference.extent(),
            candidate_extent=shown.candidate.extent(),
            candidate_first=case.candidate_first,
            sees_tests=self._sees_tests,
            results=None if case.results is None else own("results", case.results),
        )


_WRITTEN_BY_TOOLS = frozenset({FileKind.LOCK, FileKind.GENERATED, FileKind.VENDORED})
"""A cut in these says nothing of the work."""


class _Shown(NamedTuple):
    """Both patches within their room."""

    reference: PatchText
    candidate: PatchText
    decisive_cut: bool
    """Whether the candidate lacks changes in a file that the reference touches and that people write: for lack of room,
    or because it is binary where the reference's is not."""

    @property
    def notes(self) -> tuple[str, ...]:
        """On the changes that are not shown."""
        sides = (("reference", self.reference), ("candidate", self.candidate))
        return tuple(f"{name} patch: {side.extent()}" for name, side in sides if not side.whole or side.hidden)


def _shown(references: Sequence[FileText], candidates: Sequence[FileText], room: int) -> _Shown:
    """The patches in `room` characters each. The reference's text is the same whatever the candidate is."""
    touched = {reference.path for reference in references}
    candidate = render_patch(candidates, room, first=touched)
    judged = {path for path in touched if kind_of(path) not in _WRITTEN_BY_TOOLS}
    read = {reference.path for reference in references if not reference.hidden}
    cut = not judged.isdisjoint((*candidate.cut, *candidate.left_out, *read.intersection(candidate.hidden)))
    return _Shown(render_patch(references, room), candidate, cut)


def _without_codes(comment: str, messages: Sequence[Message]) -> str:
    """A comment without the codes of the prompt's fences: the agent reads it, and could end a fence with one."""
    codes = {code for message in messages for code in _CODE.findall(message.content)}
    return _HEX.sub(lambda match: "" if match[0] in codes else match[0], comment)
