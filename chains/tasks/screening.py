"""The screener of chains: a model that says, before anything is written, whether a chain is worth a task.

Confidence and worth (`chains.weights`) are fits over signs. Whether two aims were mixed in one pull request, whether
the tests can be told in prose, and whether the second stage needs the first, only reading tells. One call a chain saves
all calls of the chains that are not worth them.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from chains.tasks.context import StageContext
from chains.tasks.excerpt import ExcerptLimits, excerpts, patch_excerpt
from chains.tasks.model import TaskChain
from prchain.core.errors import ContextTooLong
from prchain.core.llm.excerpt import cut
from prchain.core.llm.gateway import CostEstimate, Gateway, Question
from prchain.core.llm.prompts import Fence, load_prompt
from prchain.core.llm.purposes import SCREEN

HALVINGS = 3
"""How often the room of the material is halved where the prompt does not fit the model."""

Relation = Literal["needs", "continues", "mends", "beside", "takes_back"]

LEAST_WORTH = 4
"""What a chain's worth, 1 to 5, has to be at least, unless a run says otherwise: below it readers call a stage trivial,
or its link a pretext."""

_LINKED: frozenset[Relation] = frozenset({"needs", "continues", "mends"})
_TITLE_LIMIT = 500


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


_Words = Annotated[str, AfterValidator(_not_empty)]


class StageScreening(BaseModel):
    """What the model says of one stage."""

    model_config = ConfigDict(extra="forbid")

    aims: list[_Words] = Field(description="what it is for, one entry for each separate thing")
    behaviour: bool = Field(description="whether somebody who uses the program sees a difference")
    tellable: bool = Field(description="whether what its tests compare with can be told in prose")
    tested: bool = Field(description="whether its tests would fail for work that misses the aim")
    why: _Words = Field(description="one sentence on what was hardest to decide")

    @field_validator("aims")
    @classmethod
    def _some(cls, aims: list[str]) -> list[str]:
        if not aims:
            raise ValueError("must have an entry: every stage is for something")
        return aims


class LinkScreening(BaseModel):
    """What the model says of how a stage hangs together with the work before it."""

    model_config = ConfigDict(extra="forbid")

    relation: Relation = Field(description="how it hangs together with the stages before")
    why: _Words = Field(description="one sentence, with what of the patches shows it")


class Screening(BaseModel):
    """What the model says of a chain: a stage each in order, a link for each from the second on, and its worth."""

    model_config = ConfigDict(extra="forbid")

    stages: list[StageScreening] = Field(description="the stages, in their order")
    links: list[LinkScreening] = Field(description="the stages from the second on, in their order")
    worth: int = Field(ge=1, le=5, description="what the whole is worth as a task, 1 to 5")
    why: _Words = Field(description="one sentence on what kept it from being more")

    def faults(self, least_worth: int = LEAST_WORTH) -> tuple[str, ...]:
        """Why the chain is not worth a task, in words; empty where it is."""
        return tuple(self._faults(least_worth))

    def _faults(self, least_worth: int) -> Iterator[str]:
        for position, stage in enumerate(self.stages, 1):
            if len(stage.aims) > 1:
                yield f"stage {position} has several aims"
            if not stage.behaviour:
                yield f"stage {position} changes no behaviour"
            if not stage.tellable:
                yield f"what stage {position}'s tests want cannot be told"
            if not stage.tested:
                yield f"stage {position}'s tests do not test it"
        for position, link in enumerate(self.links, 2):
            if link.relation == "takes_back":
                yield f"stage {position} takes earlier work back"
            elif link.relation not in _LINKED:
                yield f"stage {position} does not follow from the work before"
        if self.worth < least_worth:
            yield f"its worth as a whole is {self.worth} of 5"


@functools.cache
def screening_shape(count: int) -> type[Screening]:
    """The shape of a reply about a chain of `count` stages, which has exactly that many."""

    def counted(value: Screening) -> Screening:
        if (len(value.stages), len(value.links)) != (count, count - 1):
            raise ValueError(f"stages must have {count} entries and links {count - 1}")
        return value

    validators: dict[str, Any] = {"counted": model_validator(mode="after")(counted)}
    return create_model("Screening", __base__=Screening, __validators__=validators)


@dataclass(frozen=True, slots=True)
class _Room:
    """Room for one stage, in characters."""

    patch: int
    tests: int
    texts: int

    @classmethod
    def of(cls, limits: ExcerptLimits, count: int, halvings: int = 0) -> _Room:
        """The room of each of `count` stages where all of them are shown at once."""
        parts = max(count, 2) * 2**halvings // 2
        return cls(limits.patch // 2 // parts, limits.tests // parts, limits.body // parts)


class ChainScreener:
    """Screens chains. Safe for several threads, as its gateway is."""

    def __init__(self, gateway: Gateway, limits: ExcerptLimits, least_worth: int = LEAST_WORTH) -> None:
        self.least_worth = least_worth
        """What the worth of a chain has to be at least."""
        self._gateway = gateway
        self._limits = limits
        self._prompt = load_prompt("chains.tasks", SCREEN)

    @property
    def prompts(self) -> dict[str, str]:
        """Its prompt's name and hash."""
        return {self._prompt.name: self._prompt.hash}

    def screen(self, chain: TaskChain, contexts: Sequence[StageContext], attempt: int = 0) -> Screening:
        """What the model says of a chain; `attempt` tells its calls apart in the ledger. Raises `LlmError`."""
        for halvings in range(HALVINGS + 1):
            question = self._question(chain, contexts, attempt, halvings)
            try:
                return self._gateway.ask_verdict(question, screening_shape(len(contexts))).value
            except ContextTooLong:
                if halvings == HALVINGS:
                    raise
        raise AssertionError("the last round returns or raises")

    def estimate(self, chain: TaskChain, contexts: Sequence[StageContext], attempt: int = 0) -> CostEstimate:
        """The cost of one screening."""
        question = self._question(chain, contexts, attempt)
        return self._gateway.estimate(question, screening_shape(len(contexts)))

    def _question(
        self, chain: TaskChain, contexts: Sequence[StageContext], attempt: int, halvings: int = 0
    ) -> Question:
        room = _Room.of(self._limits, len(contexts), halvings)
        material = [_material(context, room) for context in contexts]
        fence = Fence(*(text for stage in material for text in stage.values()))
        stages = [
            "\n\n".join(fence(label, text.strip() or "(none)") for label, text in stage.items()) for stage in material
        ]
        messages = self._prompt.render(
            nonce=fence.nonce, repository=chain.full_name, count=len(contexts), stages=stages
        )
        return Question(SCREEN, screening_subject(chain.id), self._prompt, messages, attempt=attempt)


def screening_subject(chain_id: str) -> str:
    """The subject of the call for a screening, as the ledger keeps it."""
    return f"{chain_id}/screening"


def screening_words(row: Mapping[str, Any]) -> Iterator[str]:
    """What a screening (the fields of `Screening`) says, for people: a line for each stage, each link and the whole."""
    for position, stage in enumerate(row["stages"], 1):
        if position > 1:
            link = row["links"][position - 2]
            yield f"link to stage {position}: {link['relation']} ({link['why']})"
        lacks = [name for name in ("behaviour", "tellable", "tested") if not stage[name]]
        faults = f"; not {' or '.join(lacks)}" if lacks else ""
        yield f"stage {position}: {'; '.join(stage['aims'])}{faults} ({stage['why']})"
    yield f"worth: {row['worth']} of 5 ({row['why']})"


def _material(context: StageContext, room: _Room) -> dict[str, str]:
    texts = context.texts
    parts = {
        "title": cut(texts.title, _TITLE_LIMIT),
        "description": cut(texts.body, room.texts),
        "commits": "\n\n".join(excerpts(texts.untold_commits(), room.texts)),
        "issues": "\n\n".join(excerpts(context.issues, room.texts)),
        "patch": patch_excerpt(context.source_texts, room.patch),
        "tests": patch_excerpt(context.test_texts, room.tests),
    }
    return parts | {"found": cut(context.link, room.texts)} if context.link else parts
