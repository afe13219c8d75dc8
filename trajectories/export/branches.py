"""What agent programs asked beside the conversations that ended their attempts, as samples of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sql.store import Transaction
from trajectories.audit.auditing import audit
from trajectories.branches import BranchRow, read_branches
from trajectories.export.masks import loss_decisions
from trajectories.export.options import ExportOptions
from trajectories.export.samples import Sample, with_missing_answers
from trajectories.export.scrubber import Scrubber
from trajectories.model import Entry, EntryKind
from trajectories.provenance import project_of
from trajectories.recording.chat import read_asked
from trajectories.recording.conversation import COPIED_REPLY, Answered, FollowedRequest, RecordedConversations
from trajectories.recording.exchanges import Exchange, unpacked

BRANCH = "branch"
"""A conversation that a recorded program had beside the one that ended it; ``--branches all`` takes it."""


def branch_samples(
    tx: Transaction, main: Sample, options: ExportOptions, secrets: tuple[str, ...] = ()
) -> Iterator[Sample]:
    """The samples of what was asked beside the conversation of `main`, in its stages. What stands in `main`, or in
    another branch, is not under loss."""
    positions = {stage.position for stage in main.stages}
    accepted = {verdict.position: verdict.attempt for verdict in main.verdicts if verdict.accepted}
    for row in read_branches(tx, main.trajectory_id):
        if row.position in positions:
            yield _sample(row, main, accepted, options, secrets)


def _sample(
    row: BranchRow, main: Sample, accepted: Mapping[int, int], options: ExportOptions, secrets: tuple[str, ...]
) -> Sample:
    exchanges = unpacked(row.exchanges)
    branch = RecordedConversations(str).follow(map(_followed, exchanges))
    entries = [replace(entry, position=row.position, attempt=row.attempt) for entry in branch.entries]
    known, scrubber = exchanges[0].known, Scrubber(secrets)
    decisions = loss_decisions(entries, accepted, options.masks, options.refinements)
    turns = [
        scrubber.turn(entry, *decision, reasoning=options.reasoning != "drop", copied=entry.ordinal < known)
        for entry, decision in zip(entries, decisions, strict=True)
        if options.guidance == "keep" or entry.kind is not EntryKind.GUIDANCE
    ]
    name = f"{main.id}.{row.position}.{row.attempt}.{row.number}"
    part = main.part(name, with_missing_answers(turns), [it for it in main.stages if it.position == row.position])
    shared = sum(turn.copied and turn.role == "assistant" for turn in turns)
    signs = None if main.signs is None else tuple(audit(entries, project_of(str(main.facts.get("repository")))))
    tools = tuple(scrubber.value(tool) for tool in branch.tools)
    return replace(part, tools=tools, overview=None, parent=(main.id, shared), signs=signs)


def _followed(exchange: Exchange) -> FollowedRequest:
    asked = read_asked(json.dumps(exchange.body).encode())
    answered = Answered(exchange.reply, exchange.usd, exchange.seconds, exchange.at)
    return FollowedRequest(asked.messages, asked.tools, exchange.known, answered, exchange.words)


def as_main(entries: Sequence[Entry]) -> list[Entry]:
    """The entries of a recorded conversation without the one that it left: what it has from there is its own."""
    return [_own(entry) if entry.details.get("copied") == COPIED_REPLY else entry for entry in entries]


def _own(entry: Entry) -> Entry:
    details = {name: value for name, value in entry.details.items() if name not in ("copied", "loss")}
    return replace(entry, details=details)


def beside_main(recorded: Iterable[tuple[str, str | None, Mapping[str, Any]]]) -> frozenset[str]:
    """Those of recorded trajectories (id, run, what is told of it) that did not end their run: not the one with the
    last reply, of those with tools, if any has some."""
    runs: dict[str, list[tuple[bool, int, str]]] = {}
    for name, run, told in recorded:
        if run is not None and "last_reply" in told:  # else it was recorded before this was told
            runs.setdefault(run, []).append((bool(told.get("with_tools")), int(told["last_reply"]), name))
    return frozenset(name for found in runs.values() for _, _, name in sorted(found)[:-1])
