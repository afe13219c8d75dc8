"""The comment that a rejected agent reads: the judge's, once nothing in it leaks, and the kinds of test failures.

A comment that leaks is rewritten by the model from the query, the comment and the findings alone, so that it can lose
secrets but not gain any; if that does not help, a neutral text replaces it. Of the tests only the kind of failure is
told, in fixed sentences: no name of a test or file, no number and no output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field, field_validator

from environments.suites.outcomes import TAMPERED, Grade
from prchain.core.errors import BadReply, ContextTooLong
from prchain.core.leaks import Finding, leak_words, until_clean
from prchain.core.llm.excerpt import cut
from prchain.core.llm.gateway import Gateway, Question
from prchain.core.llm.prompts import Fence, load_prompt
from prchain.core.secrets.scrub import scrub_mined
from trajectories.options import Gate
from trajectories.verdicts.gates import grade_accepts
from trajectories.verdicts.judge import AGAIN, JUDGE, Judgement

REPEATS = 2
"""How often a comment that leaks is rewritten at most."""

NEUTRAL = (
    "The result does not do everything that was asked for yet. Read the task once more, compare it with what your "
    "changes do, also in special cases and in what has to stay as it is, and go on from here."
)
"""The comment where nothing else may be shown."""

_LONGEST_COMMENT, _LONGEST_QUERY = 6_000, 20_000
"""The most characters of a comment and of a query in the prompt."""

_TEST_SENTENCES = (
    ("f2p_failed", "Not everything that was asked for works yet, as running it shows."),
    ("earlier_broken", "Something that earlier stages of this work brought is broken by these changes."),
    ("p2p_broken", "Something that worked before these changes is broken by them."),
    ("carried_failure", "Something of the project that was broken when this stage began is broken still."),
)
"""A field of `Grade`, and the sentence for it."""

Check = Callable[[str], Sequence[Finding]]


class CommentReply(BaseModel):
    """The comment as the model writes it again."""

    comment: str = Field(description="the comment, plain English prose")

    @field_validator("comment")
    @classmethod
    def _not_empty(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text


@dataclass(frozen=True, slots=True)
class CommentFinding:
    """A finding in a comment, as stored in `sql.tables.Verdict.findings`.

    `round` 0 is the comment as the judge wrote it; the other fields are those of `prchain.core.leaks.Finding`.
    """

    round: int
    kind: str
    severity: str
    evidence: str
    stage: int | None = None


@dataclass(frozen=True, slots=True)
class AgentComment:
    """The comment that the agent is shown, and how it was made."""

    text: str
    findings: tuple[CommentFinding, ...] = ()
    """The findings of every round, with warnings."""
    rounds: int = 0
    """How often the comment was rewritten."""
    neutral: bool = False
    """Whether the judge's comment could not be shown."""
    usd: float | None = 0.0
    """The cost of rewriting, paid now or in an earlier run; None if unknown."""


def comment_for_agent(
    gateway: Gateway,
    judgement: Judgement | None,
    grade: Grade | None,
    check: Check,
    *,
    gate: Gate | str,
    threshold: float,
    query: str,
    subject: str,
    sample: int = 0,
    attempt: int = 0,
) -> AgentComment:
    """The comment for the agent of a rejected attempt.

    It holds only what the gate counts and what rejected the attempt: if tests failed, a judge that accepted or gave no
    score adds nothing. `check` is `trajectories.verdicts.hidden.CommentCheck`; `subject`, `sample` and `attempt` are
    those of the judge's question. Raises `LlmError` if the endpoint, the budget or the script fails.
    """
    gate = Gate(gate).voices
    if grade is not None and grade.outcome == TAMPERED:
        # What betrays a cheat is of use to the next one.
        return AgentComment(NEUTRAL, neutral=True)
    comment = AgentComment("")
    if gate is not Gate.TESTS and judgement and judgement.comment and judgement.accepts(threshold) is False:
        comment = _checked_comment(
            gateway,
            judgement.comment,
            check,
            query,
            Question(JUDGE, subject, load_prompt("trajectories.verdicts", AGAIN), (), sample=sample, attempt=attempt),
        )
    parts = [comment.text] if comment.text else []
    if gate is not Gate.JUDGE and grade is not None and grade_accepts(grade) is False:
        parts.append(" ".join(sentence for name, sentence in _TEST_SENTENCES if getattr(grade, name)))
    return replace(comment, text="\n\n".join(parts) or NEUTRAL)


def _checked_comment(gateway: Gateway, comment: str, check: Check, query: str, question: Question) -> AgentComment:
    """The comment, unchanged or rewritten, or the neutral text.

    A rewrite that changed nothing ends it: the next question would be the same, with the same answer.
    """
    usd: float | None = 0.0
    questions: list[Question] = []

    def rewrite(number: int, text: str, findings: Sequence[Finding]) -> str | None:
        nonlocal usd
        next_question = _rewrite_question(question, query, text, findings)
        if next_question in questions:
            return None
        questions.append(next_question)
        try:
            answer = gateway.ask_for(next_question, CommentReply)
        except (BadReply, ContextTooLong):
            usd = None
            return None
        usd = None if usd is None or answer.cost is None else usd + answer.cost
        return scrub_mined(answer.value.comment).strip()

    versions = until_clean(scrub_mined(comment).strip(), check, rewrite, REPEATS)
    found = tuple(
        CommentFinding(number, finding.kind, finding.severity, finding.evidence, finding.stage)
        for number, findings in enumerate(versions.findings)
        for finding in findings
    )
    if versions.clean:
        return AgentComment(versions.text, found, len(questions), usd=usd)
    return AgentComment(NEUTRAL, found, len(questions), neutral=True, usd=usd)


def _rewrite_question(question: Question, query: str, comment: str, findings: Sequence[Finding]) -> Question:
    words = leak_words(findings)
    material = {
        "query": cut(scrub_mined(query).strip(), _LONGEST_QUERY),
        "comment": cut(comment, _LONGEST_COMMENT),
        "findings": words,
    }
    fence = Fence(*material.values())
    fenced = {label: fence(label, text) for label, text in material.items()}
    assert question.prompt is not None
    return replace(question, messages=question.prompt.render(nonce=fence.nonce, **fenced))
