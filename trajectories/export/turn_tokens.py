"""Token ids of the turns of a sample, and the one sequence that they may make: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from prchain.core.llm.token_ids import ReplyTokens
from trajectories.export.options import ExportOptions
from trajectories.export.samples import SampleMessage
from trajectories.model import Entry, EntryKind
from trajectories.tokens import TokenSequence, sequence_of


def tokened(
    turns: Sequence[SampleMessage],
    entries: Sequence[Entry],
    known: Mapping[int, ReplyTokens],
    options: ExportOptions,
) -> list[SampleMessage]:
    """The turns of these entries with their tokens, up to the first message of which something was taken out: the
    prompts after it hold it. So none are told where guidance or reasoning is left out."""
    guided = any(entry.kind is EntryKind.GUIDANCE for entry in entries)
    thought = any(entry.reasoning for entry in entries)
    if not known or (guided and options.guidance == "drop") or (thought and options.reasoning == "drop"):
        return [*turns]
    found: list[SampleMessage] = []
    untouched = True
    for turn, entry in zip(turns, entries, strict=True):
        untouched = untouched and not turn.replaced and not turn.broken_marks
        found.append(replace(turn, tokens=known.get(entry.ordinal)) if untouched else turn)
    return found


def token_sequence(turns: Sequence[SampleMessage]) -> TokenSequence | None:
    """See `trajectories.tokens.sequence_of`; turns that no model said count as any."""
    return sequence_of([(turn.tokens, turn.train) for turn in turns if turn.role == "assistant"])
