"""The query constructor: from a stage's context to its plan, and from the plan to a query that does not leak.

The paper's section 4.2 and its appendix C: q = f(x, p, R), by way of an execution plan. A text that leaks is requested
again with the findings, up to `REPEATS` times; then it is rejected and its findings are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from pydantic import BaseModel, Field, field_validator

from chains.tasks.context import StageContext
from chains.tasks.excerpt import ExcerptLimits, excerpts, patch_excerpt
from chains.tasks.model import LocatedFinding, TaskChain
from chains.tasks.review import QueryReviewer
from prchain.core.code.needs import interface_of, names_of
from prchain.core.errors import ContextTooLong
from prchain.core.leaks import Finding, check, leak_words, leaking, refusers, until_clean
from prchain.core.leaks.finding import Finder
from prchain.core.llm.excerpt import cut
from prchain.core.llm.gateway import CostEstimate, Gateway, Question
from prchain.core.llm.model import Message
from prchain.core.llm.prompts import Fence, Prompt, load_prompt
from prchain.core.llm.purposes import OVERVIEW, PLAN, QUERY
from prchain.core.runs import Tell
from prchain.core.secrets.scrub import scrub_mined

REPEATS = 3
"""How often a text that leaks is requested again."""
ROUND = 1 + REPEATS
"""Attempts of one round. ``--retry`` begins another round, so that its replies are separate from the stored ones."""
HALVINGS = 2
"""How often the material is halved when it does not fit the model."""

_MATERIAL = "material"
_PROMPTS = (_MATERIAL, PLAN, QUERY, OVERVIEW, "again")
_NAMES = "names"
_WITHHELD = "withheld"

SaidNames = Literal["none", "interface", "withheld"]
"""Which of the names that the work introduces a query may say: none, those of the interface, or none where the agent is
not told the interface either, as in the paper; then the query's writer is told of none."""

_MIN_PATCH = 100
"""A limit for patches, in characters, below which nothing is cut any more."""
_TITLE_LIMIT = 500
_NONE = "(none)"
_NAMES_SHOWN = 300
_FILES_SHOWN = 200
_REJECTED_LIMIT = 6_000
"""Characters of a rejected text that the model gets back; more is a patch, not a query."""
_TYPICAL_PLAN, _TYPICAL_QUERY = 1_800, 1_500
"""Characters of a plan and of a query, for estimates."""

_Shape = TypeVar("_Shape", bound=BaseModel)
_T = TypeVar("_T")


class PlanReply(BaseModel):
    """The plan as the model gives it."""

    why: str = Field(description="the problem or aim behind the work")
    where: str = Field(description="the files and parts of the system, with their roles")
    how: str = Field(description="the idea of the solution, by purposes and conditions")

    @field_validator("why", "where", "how")
    @classmethod
    def _not_empty(cls, text: str) -> str:
        if not text.strip():
            raise ValueError("must not be empty")
        return text


class QueryReply(BaseModel):
    """The query as the model gives it."""

    query: str = Field(description="the query, plain English prose")


class OverviewReply(BaseModel):
    """The overview as the model gives it."""

    overview: str = Field(description="the overview, plain English prose")


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text and its findings: of the leak check and, where it is asked, of the reviewer."""

    text: str
    findings: tuple[Finding, ...]
    attempts: int
    """How often it was written, with earlier rounds."""
    refused: tuple[Finder, ...] = ()
    """Who refused the versions of this round that leaked, in their order."""

    @property
    def clean(self) -> bool:
        """Whether it may be shown to an agent."""
        return not leaking(self.findings)


class QueryConstructor:
    """Writes plans, queries and overviews. Safe for several threads, as its gateway is.

    With `review`, a query that passes the leak check is also read by `chains.tasks.review`. With other `names` than
    ``none``, the query's prompt gets another rule, whose hash is then one of the task's.
    """

    def __init__(
        self,
        gateway: Gateway,
        limits: ExcerptLimits | None = None,
        *,
        review: bool = False,
        names: SaidNames = "none",
    ) -> None:
        self._gateway = gateway
        self._limits = limits or ExcerptLimits()
        self._reviewer = QueryReviewer(gateway, self._limits) if review else None
        self._says_interface = names == "interface"
        self._withholds = names == "withheld"
        rules = {"interface": _NAMES, "withheld": _WITHHELD}
        self._rule = rules.get(names)
        wanted = _PROMPTS if self._rule is None else (*_PROMPTS, self._rule)
        self._prompts = {name: load_prompt("chains.tasks", name) for name in wanted}

    @property
    def model(self) -> str:
        """The name of the model that writes queries."""
        return self._gateway.model_name(QUERY)

    @property
    def prompts(self) -> dict[str, str]:
        """Each prompt's name and hash."""
        reviewer = self._reviewer.prompts if self._reviewer else {}
        return {name: prompt.hash for name, prompt in self._prompts.items()} | reviewer

    def plan(self, chain: TaskChain, context: StageContext, round_: int = 0) -> str:
        """The execution plan of a stage. Raises `LlmError`."""

        def ask(limits: ExcerptLimits) -> str:
            reply = self._gateway.ask_for(self._plan_question(chain, context, limits, round_), PlanReply).value
            return "\n\n".join(f"{name}: {text.strip()}" for name, text in reply)

        return scrub_mined(
            self._fitting(ask, lambda limits: self._plan_question(chain, context, limits, round_).messages)
        )

    def query(
        self,
        chain: TaskChain,
        contexts: Sequence[StageContext],
        position: int,
        plan: str,
        earlier: Sequence[str] = (),
        start: int = 0,
        tell: Tell = lambda words: None,
    ) -> CheckedText:
        """The query of the stage at a 1-based position, from attempt `start` on. Raises `LlmError`.

        `earlier` are the queries of the stages before it, first to last, as a solver reads them. `tell` takes what is
        asked for.
        """
        context = contexts[position - 1]
        facts = [context.facts for context in contexts]
        if self._says_interface:
            facts = [replace(it.facts, interface=it.facts.interface | interface_names(it)) for it in contexts]
        subject = stage_subject(chain.id, position)

        def messages(limits: ExcerptLimits) -> tuple[Message, ...]:
            return self._query_messages(chain, context, plan, earlier, limits)

        def findings(text: str) -> list[Finding]:
            found = check(text, facts, position, kind="query", paths_at_base=context.paths_at_base)
            if self._reviewer is None or leaking(found):
                return found
            tell("review")
            return [*self._reviewer.review(text, chain, contexts, position, subject=subject, attempt=start), *found]

        return self._until_clean(QUERY, subject, messages, QueryReply, findings, start, tell)

    def overview(
        self,
        chain: TaskChain,
        contexts: Sequence[StageContext],
        queries: Sequence[str],
        start: int = 0,
        tell: Tell = lambda words: None,
    ) -> CheckedText:
        """The overview of a chain whose queries are written; `tell` takes what is asked for. Raises `LlmError`."""
        facts = [context.facts for context in contexts]

        def messages(limits: ExcerptLimits) -> tuple[Message, ...]:
            return self._overview_messages(chain, contexts, queries, limits)

        def findings(text: str) -> list[Finding]:
            return check(text, facts, 0, kind="overview", paths_at_base=contexts[0].paths_at_base)

        return self._until_clean(OVERVIEW, overview_subject(chain.id), messages, OverviewReply, findings, start, tell)

    def estimates(
        self, chain: TaskChain, contexts: Sequence[StageContext], starts: Mapping[int, int], start: int = 0
    ) -> Iterator[CostEstimate]:
        """What the calls for some stages and for the overview cost if every text is clean.

        `starts` maps the position of each stage to the attempt that it begins at; `start` is that of the overview.
        """
        for position, attempt in starts.items():
            context = contexts[position - 1]
            yield self._gateway.estimate(self._plan_question(chain, context, self._limits, attempt // ROUND), PlanReply)
            earlier = ["x" * _TYPICAL_QUERY] * (position - 1)
            messages = self._query_messages(chain, context, "x" * _TYPICAL_PLAN, earlier, self._limits)
            subject = stage_subject(chain.id, position)
            yield self._gateway.estimate(self._question(QUERY, subject, messages, attempt), QueryReply)
            if self._reviewer is not None:
                typical = "x" * _TYPICAL_QUERY
                yield self._reviewer.estimate(typical, chain, contexts, position, subject=subject, attempt=attempt)
        texts = ["x" * _TYPICAL_QUERY] * len(contexts)
        messages = self._overview_messages(chain, contexts, texts, self._limits)
        yield self._gateway.estimate(
            self._question(OVERVIEW, overview_subject(chain.id), messages, start), OverviewReply
        )

    def _until_clean(
        self,
        purpose: str,
        subject: str,
        messages: Callable[[ExcerptLimits], tuple[Message, ...]],
        shape: type[_Shape],
        findings: Callable[[str], list[Finding]],
        start: int,
        tell: Tell,
    ) -> CheckedText:
        turns: tuple[Message, ...] = ()

        def ask(attempt: int) -> str:
            again = attempt - start
            tell(f"{purpose}, again ({again} of {REPEATS})" if again else purpose)

            def ask_within(limits: ExcerptLimits) -> str:
                question = self._question(purpose, subject, (*messages(limits), *turns), attempt)
                return str(getattr(self._gateway.ask_for(question, shape).value, purpose))

            return scrub_mined(self._fitting(ask_within, messages)).strip()

        def rewrite(number: int, text: str, found: Sequence[Finding]) -> str:
            nonlocal turns
            turns += self._rejection(purpose, text, found)
            return ask(start + number)

        versions = until_clean(ask(start), findings, rewrite, REPEATS)
        attempts = start + len(versions.findings)
        return CheckedText(versions.text, versions.findings[-1], attempts, tuple(refusers(versions.findings)))

    def _rejection(self, purpose: str, text: str, found: Sequence[Finding]) -> tuple[Message, ...]:
        """The rejected text as the model's turn, and the findings as ours."""
        rejected_reply = json.dumps({purpose: cut(text, _REJECTED_LIMIT)}, ensure_ascii=False)
        words = leak_words(found)
        fence = Fence(words)
        request = self._prompts["again"].render(nonce=fence.nonce, findings=fence("findings", words))
        return Message("assistant", rejected_reply), *request

    def _fitting(
        self, ask: Callable[[ExcerptLimits], _T], messages: Callable[[ExcerptLimits], tuple[Message, ...]]
    ) -> _T:
        """What `ask` returns with the largest limits that fit the model; `messages` gives the prompt for some limits.

        Limits that cut no more than the limits before are skipped. Raises `ContextTooLong` where none fits.
        """
        limits = self._limits
        for _ in range(HALVINGS):
            try:
                return ask(limits)
            except ContextTooLong:
                before = messages(limits)
                limits = limits.halved()
                while messages(limits) == before and limits.patch > _MIN_PATCH:
                    limits = limits.halved()
        return ask(limits)

    def _question(self, purpose: str, subject: str, messages: tuple[Message, ...], attempt: int = 0) -> Question:
        prompt: Prompt = self._prompts[purpose]
        return Question(purpose=purpose, subject=subject, prompt=prompt, messages=messages, attempt=attempt)

    def _plan_question(self, chain: TaskChain, context: StageContext, limits: ExcerptLimits, round_: int) -> Question:
        fence, start = self._material(chain, context, limits)
        request = self._prompts[PLAN].render(nonce=fence.nonce)
        messages = _joined(start, request)
        return self._question(PLAN, stage_subject(chain.id, context.stage.position), messages, round_)

    def _query_messages(
        self, chain: TaskChain, context: StageContext, plan: str, earlier: Sequence[str], limits: ExcerptLimits
    ) -> tuple[Message, ...]:
        said = interface_names(context) if self._says_interface else ()
        names = [name for name in context.names if name not in said]
        interface = () if self._withholds else interface_of(context.needs)
        own = {
            "plan": plan,
            "files": cut(scrub_mined("\n".join(context.named_files[:_FILES_SHOWN])), limits.body),
            "names": cut(", ".join(names[:_NAMES_SHOWN]), limits.body),
            "interface": cut("\n".join(need.words() for need in interface), limits.body),
            "link": context.link,
            "earlier": "\n\n".join(
                f"(stage {stage})\n{text}" for stage, text in enumerate(excerpts(list(earlier), limits.issues), 1)
            ),
        }
        fence, start = self._material(chain, context, limits, unlike=tuple(own.values()))
        own_fence = Fence(fence.nonce, *own.values())
        request = self._prompts[QUERY].render(
            own_nonce=own_fence.nonce,
            position=context.stage.position,
            count=len(chain.stages),
            **{label: own_fence(label, text.strip() or _NONE) for label, text in own.items()},
        )
        asked = _joined(start, request)
        return asked if self._rule is None else _joined(asked, self._prompts[self._rule].render())

    def _material(
        self, chain: TaskChain, context: StageContext, limits: ExcerptLimits, unlike: Sequence[str] = ()
    ) -> tuple[Fence, tuple[Message, ...]]:
        """What the requests for a stage's plan and for its query begin with, the same for both: an endpoint's cache of
        prefixes serves it for every request but the first."""
        texts = context.texts
        material = {
            "title": cut(texts.title, _TITLE_LIMIT),
            "description": cut(texts.body, limits.body),
            "commits": "\n\n".join(excerpts(texts.untold_commits(), limits.commits)),
            "discussion": "\n\n".join(excerpts(texts.discussion, limits.discussion)),
            "issues": "\n\n".join(excerpts(context.issues, limits.issues)),
            "patch": patch_excerpt(context.source_texts, limits.patch),
            "tests": patch_excerpt(context.test_texts, limits.tests),
        }
        fence = Fence(*material.values(), unlike=unlike)
        return fence, self._render(_MATERIAL, fence, material, repository=chain.full_name)

    def _overview_messages(
        self, chain: TaskChain, contexts: Sequence[StageContext], queries: Sequence[str], limits: ExcerptLimits
    ) -> tuple[Message, ...]:
        # An overview is written from what an agent may read. Titles and links can leak, and the overview is checked.
        texts = excerpts(list(queries), limits.patch)
        parts = []
        for context, text in zip(contexts, texts, strict=True):
            follows = f"\nfollows: {context.link}" if context.link else ""
            parts.append(f"Stage {context.stage.position}: {cut(context.texts.title, _TITLE_LIMIT)}{follows}\n{text}")
        material = {"stages": "\n\n".join(parts)}
        fence = Fence(*material.values())
        return self._render(OVERVIEW, fence, material, repository=chain.full_name, count=len(queries))

    def _render(self, name: str, fence: Fence, material: dict[str, str], **variables: object) -> tuple[Message, ...]:
        """The prompt with its material fenced; empty material is shown as missing."""
        fenced = {label: fence(label, text.strip() or _NONE) for label, text in material.items()}
        return self._prompts[name].render(nonce=fence.nonce, **variables, **fenced)


def _joined(start: tuple[Message, ...], request: tuple[Message, ...]) -> tuple[Message, ...]:
    """A request below the material that its messages end with: one message, as chat templates want the roles to
    alternate."""
    *head, last = start
    [asked] = request
    return (*head, Message(last.role, f"{last.content}\n\n{asked.content}"))


def stage_subject(chain_id: str, position: int) -> str:
    """The subject of the calls for a stage, as the ledger keeps it."""
    return f"{chain_id}/{position}"


def overview_subject(chain_id: str) -> str:
    """The subject of the calls for an overview."""
    return f"{chain_id}/overview"


def interface_names(context: StageContext) -> frozenset[str]:
    """The names that a solver of the stage is told."""
    return frozenset(names_of(interface_of(context.needs)))


def all_findings(context: StageContext, checked: CheckedText) -> tuple[dict[str, object], ...]:
    """The findings in a stage's row: those of its query, and those of the passages of its issues that were left out."""
    found = [*(LocatedFinding("query", finding) for finding in checked.findings), *context.issue_findings]
    return tuple(finding.row() for finding in found)
