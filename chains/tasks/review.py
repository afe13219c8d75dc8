"""The reviewer of queries: a model that reads which parts of the reference's structure a query gives away.

The leak check (`prchain.core.leaks`) finds names, literals and lines. A solution that is retold in plain words, or a
later stage that is announced, has none of them. What the reviewer finds goes back to the query's writer as leaks do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from chains.tasks.context import StageContext
from chains.tasks.excerpt import ExcerptLimits, patch_excerpt
from chains.tasks.model import TaskChain
from prchain.core.code.needs import interface_of
from prchain.core.errors import ContextTooLong
from prchain.core.leaks import Finding
from prchain.core.leaks.finding import finding
from prchain.core.llm.excerpt import cut
from prchain.core.llm.gateway import CostEstimate, Gateway, Question
from prchain.core.llm.model import Message
from prchain.core.llm.prompts import Fence, load_prompt
from prchain.core.llm.purposes import REVIEW
from prchain.core.secrets.scrub import scrub_mined

HALVINGS = 2
"""How often the room of the patch is halved where the prompt does not fit the model."""

_MOST_FINDINGS = 12
_LONGEST_WHY = 400
_LONGEST_QUERY = 20_000
_TITLE_LIMIT = 500
_FILES_SHOWN = 20
_FEWEST_QUOTED = 3
"""Words of a quote; fewer stand in any query."""
_WORD = re.compile(r"\w+")


class ReviewFinding(BaseModel):
    """One finding as the model gives it."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["solution_retold", "stage_announced"] = Field(description="what the query gives away")
    part: str = Field(description="the part of the patch's structure that can be rebuilt")
    quote: str = Field(description="the words of the query, copied exactly")
    why: str = Field(description="how these words lead to that part, and what to say instead")
    certain: bool = Field(description="whether the words leave hardly another way")

    @field_validator("part", "quote", "why")
    @classmethod
    def _not_empty(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text


class ReviewReply(BaseModel):
    """The review as the model gives it."""

    model_config = ConfigDict(extra="forbid")

    findings: list[ReviewFinding] = Field(description="what the query gives away, the gravest first; may be empty")


class QueryReviewer:
    """Reviews queries. Safe for several threads, as its gateway is."""

    def __init__(self, gateway: Gateway, limits: ExcerptLimits) -> None:
        self._gateway = gateway
        self._limits = limits
        self._prompt = load_prompt("chains.tasks", REVIEW)

    @property
    def prompts(self) -> dict[str, str]:
        """Its prompt's name and hash."""
        return {self._prompt.name: self._prompt.hash}

    def review(
        self,
        query: str,
        chain: TaskChain,
        contexts: Sequence[StageContext],
        position: int,
        *,
        subject: str,
        attempt: int = 0,
    ) -> list[Finding]:
        """What the query of the stage at a 1-based position gives away, leaks first.

        A finding is a leak if the reviewer is certain of it and quotes words that the query has; else it is a warning.
        `subject` and `attempt` tell the calls apart in the ledger. Raises `LlmError`.
        """
        limits = self._limits
        for halvings in range(HALVINGS + 1):
            question = self._question(query, chain, contexts, position, limits, subject, attempt)
            try:
                reply = self._gateway.ask_verdict(question, ReviewReply).value
            except ContextTooLong:
                if halvings == HALVINGS:
                    raise
                limits = limits.halved()
                continue
            findings = (_finding(found, query, position) for found in reply.findings[:_MOST_FINDINGS])
            return sorted(dict.fromkeys(findings), key=lambda finding: finding.severity != "leak")
        raise AssertionError("the last round returns or raises")

    def estimate(
        self,
        query: str,
        chain: TaskChain,
        contexts: Sequence[StageContext],
        position: int,
        *,
        subject: str,
        attempt: int = 0,
    ) -> CostEstimate:
        """The cost of one review."""
        question = self._question(query, chain, contexts, position, self._limits, subject, attempt)
        return self._gateway.estimate(question, ReviewReply)

    def _question(
        self,
        query: str,
        chain: TaskChain,
        contexts: Sequence[StageContext],
        position: int,
        limits: ExcerptLimits,
        subject: str,
        attempt: int,
    ) -> Question:
        messages = self._messages(query, chain, contexts, position, limits)
        return Question(REVIEW, subject, self._prompt, messages, attempt=attempt)

    def _messages(
        self, query: str, chain: TaskChain, contexts: Sequence[StageContext], position: int, limits: ExcerptLimits
    ) -> tuple[Message, ...]:
        context = contexts[position - 1]
        material = {
            "patch": patch_excerpt(context.source_texts, limits.patch),
            "interface": cut("\n".join(need.words() for need in interface_of(context.needs)), limits.body),
            "later": cut("\n".join(map(_stage_line, contexts[position:])), limits.body),
            "query": cut(scrub_mined(query), _LONGEST_QUERY),
        }
        fence = Fence(*material.values())
        fenced = {label: fence(label, text.strip() or "(none)") for label, text in material.items()}
        return self._prompt.render(nonce=fence.nonce, repository=chain.full_name, **fenced)


def _stage_line(context: StageContext) -> str:
    files = ", ".join(context.files[:_FILES_SHOWN])
    return scrub_mined(f"Stage {context.stage.position}: {cut(context.texts.title, _TITLE_LIMIT)} ({files})")


def _finding(found: ReviewFinding, query: str, position: int) -> Finding:
    """A finding of the reply. What it quotes that the query has not is an invention, or of another text."""
    quoted = _WORD.findall(found.quote.lower())
    said = f" {' '.join(quoted)} " in f" {' '.join(_WORD.findall(query.lower()))} "
    sure = found.certain and said and len(quoted) >= _FEWEST_QUOTED
    why = scrub_mined(" ".join(f"{found.part}: {found.why}".split()))
    return finding(
        found.kind,
        "leak" if sure else "warning",
        scrub_mined(found.quote),
        position if found.kind == "solution_retold" else None,
        why=why if len(why) <= _LONGEST_WHY else why[: _LONGEST_WHY - 1] + "…",
    )
