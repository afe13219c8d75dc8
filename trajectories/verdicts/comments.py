"""What a rejected agent reads: the judge's comment once it gives nothing away, and what kind of thing the tests found.

A comment that leaks is written again by the model, from the query, the comment and the findings alone, so that it can
lose secrets and gain none; where that does not help, a neutral line takes its place. Of the tests only the kind of
failure is told, in words of ours: no test, file, number or output of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pydantic import BaseModel, Field, field_validator

from environments.suites.outcomes import Grade
from prchain.errors import BadReply, ContextTooLong
from prchain.excerpt import cut
from prchain.leaks import Finding, leak_words, until_clean
from prchain.llm.gateway import Gateway, Question
from prchain.llm.prompts import Fence, load_prompt
from prchain.scrub import scrub_mined
from trajectories.options import Gate
from trajectories.verdicts.gates import voice_of_tests
from trajectories.verdicts.judge import AGAIN, JUDGE, Judgement

REPEATS = 2
"""How often a comment that leaks is asked for again."""

NEUTRAL = (
    "The result does not do everything that was asked for yet. Read the task once more, compare it with what your "
    "changes do, also in special cases and in what has to stay as it is, and go on from here."
)
"""What is shown where there is nothing that may be said."""

_LONGEST_COMMENT, _LONGEST_QUERY = 6_000, 20_000
"""Characters of a comment and of a query that the model is shown."""

_OF_TESTS = (
    ("f2p_failed", "Not everything that was asked for works yet, as running it shows."),
    ("earlier_broken", "Something that earlier stages of this work brought is broken by these changes."),
    ("p2p_broken", "Something that worked before these changes is broken by them."),
    ("carried_failure", "Something of the project that was broken when this stage began is broken still."),
)
"""Field of `Grade` to what is said of it."""

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
    """A finding in a comment, as `sql.tables.Verdict.findings` keeps it.

    `round` 0 is the comment as the judge wrote it; the other fields are those of `prchain.leaks.Finding`.
    """

    round: int
    kind: str
    severity: str
    evidence: str
    stage: int | None = None


@dataclass(frozen=True, slots=True)
class AgentComment:
    """What the agent is shown, and how it came about."""

    text: str
    findings: tuple[CommentFinding, ...] = ()
    """Of every round, warnings among them."""
    rounds: int = 0
    """How often the comment was asked for again."""
    neutral: bool = False
    """Whether the judge had something to say that could not be shown."""
    usd: float | None = 0.0
    """What asking again cost when it was paid for; None where that is not known."""


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
    """The words that go back to the agent of a rejected attempt.

    Only voices that the gate listens to and that said no are heard: a judge that accepted, or is unscored, adds nothing
    where tests failed. `check` is `trajectories.verdicts.hidden.CommentCheck`; `subject`, `sample` and `attempt` are
    those of the judge's question. Raises `LlmError` where the endpoint, the budget or the script fails.
    """
    gate = Gate(gate)
    shown = AgentComment("")
    if gate is not Gate.TESTS and judgement and judgement.comment and judgement.accepts(threshold) is False:
        shown = _checked(
            gateway,
            judgement.comment,
            check,
            query,
            Question(JUDGE, subject, load_prompt("trajectories.verdicts", AGAIN), (), sample=sample, attempt=attempt),
        )
    parts = [shown.text] if shown.text else []
    if gate is not Gate.JUDGE and grade is not None and voice_of_tests(grade) is False:
        parts.append(" ".join(said for name, said in _OF_TESTS if getattr(grade, name)))
    return replace(shown, text="\n\n".join(parts) or NEUTRAL)


def _checked(gateway: Gateway, comment: str, check: Check, query: str, question: Question) -> AgentComment:
    """The comment, as it is or written again, or the neutral line.

    A rewrite that comes back as it was would be the same question again, which has the same answer.
    """
    usd: float | None = 0.0
    asked: list[Question] = []

    def again(number: int, text: str, findings: Sequence[Finding]) -> str | None:
        nonlocal usd
        following = _again(question, query, text, findings)
        if following in asked:
            return None
        asked.append(following)
        try:
            answer = gateway.ask_for(following, CommentReply)
        except (BadReply, ContextTooLong):
            usd = None
            return None
        usd = None if usd is None or answer.cost is None else usd + answer.cost
        return scrub_mined(answer.value.comment).strip()

    versions = until_clean(scrub_mined(comment).strip(), check, again, REPEATS)
    found = tuple(
        CommentFinding(number, finding.kind, finding.severity, finding.evidence, finding.stage)
        for number, findings in enumerate(versions.findings)
        for finding in findings
    )
    if versions.clean:
        return AgentComment(versions.text, found, len(asked), usd=usd)
    return AgentComment(NEUTRAL, found, len(asked), neutral=True, usd=usd)


def _again(question: Question, query: str, comment: str, findings: Sequence[Finding]) -> Question:
    words = leak_words(findings)
    material = {
        "query": cut(scrub_mined(query).strip(), _LONGEST_QUERY),
        "comment": cut(comment, _LONGEST_COMMENT),
        "findings": words,
    }
    fence = Fence(*material.values())
    fenced = {label: fence(label, text) for label, text in material.items()}
    return replace(question, messages=question.prompt.render(nonce=fence.nonce, **fenced))
