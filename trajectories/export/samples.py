"""The neutral form of a sample, from which every format is made: a conversation with a loss decision for each turn.

Pure: from values to values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prchain.core.llm.model import Role, ToolCall
from prchain.core.llm.token_ids import ReplyTokens
from trajectories.audit.finding import AuditFinding
from trajectories.model import EntryKind, Reason
from trajectories.provenance import TrajectoryOrigin


@dataclass(frozen=True, slots=True)
class SampleMessage:
    """One message. `train` is true only for assistant turns."""

    role: Role
    content: str
    kind: EntryKind
    train: bool
    reason: Reason
    position: int
    attempt: int
    step: int
    reasoning: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    name: str | None = None
    """The tool's name, in a tool's message."""
    elided: bool = False
    """Whether older observations were left out of its request, to fit the model's context."""
    broken_marks: int = 0
    """How many of its texts had special tokens broken (`prchain.core.llm.special_tokens`)."""
    replaced: Mapping[str, int] = field(default_factory=dict)
    """How many secrets and addresses of each kind were replaced in it (`prchain.core.secrets.scrub`)."""
    fault: str | None = None
    """`Entry.error`: what was wrong with a turn, or why a tool did not do what was asked."""
    copied: bool = False
    """Whether it came with the beginning of the trajectory that this one was branched off, or extends."""
    tokens_in: int | None = None
    """Of the turn's prompt, cached ones included; None where its endpoint did not tell."""
    tokens_cached: int | None = None
    tokens_out: int | None = None
    usd: float | None = None
    """What the turn's call cost; None where its price is not known."""
    seconds: float = 0.0
    """Of a turn: waiting for the model; of an observation: running the tool."""
    at: str = ""
    """When it was stored (`prchain.core.timestamps`)."""
    tokens: ReplyTokens | None = None
    """Of a turn, where they are known and tell nothing that was taken out of the texts."""


@dataclass(frozen=True, slots=True)
class SampleVerdict:
    """What was said of one round of a stage: `sql.tables.rolled.Verdict`, without the judge's own words, which may tell
    of the reference."""

    position: int
    attempt: int
    accepted: bool | None
    gate: str
    score: float | None = None
    tests: str | None = None
    tree: str | None = None


@dataclass(frozen=True, slots=True)
class SampleStage:
    """A stage of a sample, with the verdict that accepted it."""

    position: int
    attempts: int
    score: float | None = None
    tests: str | None = None
    tree: str | None = None
    """A_t."""
    proof: str | None = None
    """What the proof of its tests is worth (`sql.strength.Worth`); None where they are not proved."""
    safeguard: str | None = None
    """What guarded the grade (`prchain.core.safeguards.Safeguard`); None where no tests ran, or that was not kept."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One conversation to train on."""

    id: str
    trajectory_id: str
    chain_id: str | None
    """None of an import."""
    turns: tuple[SampleMessage, ...]
    stages: tuple[SampleStage, ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    """In OpenAI's form."""
    overview: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further metadata: repository, model, licence ... (`trajectories.export.reading`)."""
    verdicts: tuple[SampleVerdict, ...] = ()
    """Those on all rounds of its stages, also where it is a part of a sample."""
    signs: tuple[AuditFinding, ...] | None = None
    """What the audit finds in it; None where that was not asked."""
    parent: tuple[str, int] | None = None
    """The trajectory that it was branched off, or extends, and the last step that both share."""
    provenance: TrajectoryOrigin | None = None
    """Where it is from, of an import."""

    @property
    def trained(self) -> int:
        """How many turns are under loss."""
        return sum(turn.train for turn in self.turns)

    @property
    def tool_calls(self) -> int:
        """How many tool calls its turns make."""
        return sum(len(turn.tool_calls) for turn in self.turns)

    @property
    def elided_turns(self) -> int:
        """How many turns were made without some older observations."""
        return sum(turn.elided for turn in self.turns)

    @property
    def broken_marks(self) -> int:
        """How many of its texts held special tokens."""
        return sum(turn.broken_marks for turn in self.turns)

    def part(self, name: str, turns: Sequence[SampleMessage], stages: Iterable[SampleStage]) -> Sample:
        """A sample of some of its turns, without the cost of the whole, which would count twice in a sum."""
        return replace(self, id=name, turns=tuple(turns), stages=tuple(stages), facts={**self.facts, "usd": None})


def without_untrained_tail(sample: Sample) -> Sample:
    """The sample up to its last turn under loss: nothing is learned from what follows."""
    last = max((index for index, turn in enumerate(sample.turns) if turn.train), default=-1)
    return replace(sample, turns=sample.turns[: last + 1])


def with_missing_answers(turns: Sequence[SampleMessage]) -> tuple[SampleMessage, ...]:
    """The turns with an empty observation for every unanswered call, except calls of the last turn.

    Endpoints and templates require an answer to each call before any other message. Interrupted runs and
    mini-swe-agent's submissions leave calls without an answer.
    """
    messages: list[SampleMessage] = []
    open_calls: list[ToolCall] = []
    caller: SampleMessage | None = None
    for turn in turns:
        if turn.role == "tool":
            open_calls = [call for call in open_calls if call.id != turn.tool_call_id]
        elif caller is not None:
            messages += [_empty_answer(caller, call) for call in open_calls]
            open_calls, caller = [], None
        if turn.role == "assistant":
            open_calls, caller = list(turn.tool_calls), turn
        messages.append(turn)
    return tuple(messages)


def _empty_answer(caller: SampleMessage, call: ToolCall) -> SampleMessage:
    return SampleMessage(
        "tool",
        "",
        EntryKind.OBSERVATION,
        False,
        Reason.OBSERVATION,
        caller.position,
        caller.attempt,
        caller.step,
        tool_call_id=call.id,
        name=call.name,
    )


def piece(sample: Sample, positions: Sequence[int], number: int, *, lead: bool) -> Sample:
    """The part of a sample that holds some stages, with the system message before it.

    With `lead` the overview is put before the first query, unless the query holds it: the part is complete by itself.
    """
    chosen = [turn for turn in sample.turns if turn.position in positions]
    if chosen and chosen[0].kind is not EntryKind.SYSTEM:
        chosen = [turn for turn in sample.turns[:1] if turn.kind is EntryKind.SYSTEM] + chosen
    if lead and sample.overview:
        first = next((index for index, turn in enumerate(chosen) if turn.kind is EntryKind.QUERY), None)
        if first is not None and sample.overview not in chosen[first].content:
            chosen[first] = replace(chosen[first], content=f"{sample.overview}\n\n{chosen[first].content}")
    stages = [stage for stage in sample.stages if stage.position in positions]
    return without_untrained_tail(sample.part(f"{sample.id}-{number}", chosen, stages))


def per_turn(sample: Sample) -> Iterator[Sample]:
    """One sample for every turn under loss: it ends with that turn, which alone is under loss.

    A conversation of n turns becomes n rows that hold n²/2 turns: for trainers that cannot mask turns in another way.
    """
    context: list[SampleMessage] = []
    number = 0
    for turn in sample.turns:
        if turn.train:
            number += 1
            reached = [stage for stage in sample.stages if stage.position <= turn.position]
            yield sample.part(f"{sample.id}#{number}", [*context, turn], reached)
            context.append(replace(turn, train=False, reason=Reason.CONTEXT))
        else:
            context.append(turn)
