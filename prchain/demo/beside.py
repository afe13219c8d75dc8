"""Two trajectories at one stage, beside each other: a line a step."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import PurePosixPath

from sql.store import Store, Transaction
from sql.tables import Trajectory
from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.agents.tools.edits import EDITOR
from trajectories.privileged import CURATED
from trajectories.rows import read_entries, read_verdicts, stored_trajectory

WIDTH = 80
_GAP = " | "
_COLUMN = (WIDTH - len(_GAP)) // 2

_EDITS = {"str_replace": "edit"}
"""What a line calls the editor's commands, where it has no room for their names."""


def curated_of(store: Store, chain: str) -> str | None:
    """The newest curated trajectory of the chain whose id begins so; None where there is none. Raises `StoreError`."""
    with store.reading() as tx:
        return _of_chain(tx, chain, curated=True)


def plain_of(store: Store, chain: str) -> str | None:
    """The same of a plain rollout."""
    with store.reading() as tx:
        return _of_chain(tx, chain, curated=False)


def _of_chain(tx: Transaction, chain: str, *, curated: bool) -> str | None:
    rows = [
        (started, name)
        for name, chain_id, scaffold, started in tx.rows(Trajectory, "id", "chain_id", "scaffold", "started_at")
        if chain_id.startswith(chain) and (scaffold == CURATED) is curated
    ]
    return max(rows)[1] if rows else None


def beside(store: Store, left: str, right: str, position: int, workdir: str | None) -> Iterator[str]:
    """The lines for the steps of two trajectories at a stage, by their ids: number, tool, and the beginning of the
    call, in which paths below `workdir` are relative. Where work was handed in the line says what came of it; a step
    that the curator wrote is marked. Raises `StoreError`."""
    columns = []
    with store.reading() as tx:
        for name in (left, right):
            columns.append([_title(tx, name), *_lines(tx, name, position, workdir)])
    for one, other in zip_longest(*columns, fillvalue=""):
        yield f"{one:<{_COLUMN}}{_GAP}{other}" if other else one


def _title(tx: Transaction, name: str) -> str:
    row = stored_trajectory(tx, name)
    what = "curated trajectory" if row.scaffold == CURATED else "plain rollout"
    return f"{what} {name[:6]}: {row.outcome}"[:_COLUMN]


def _lines(tx: Transaction, name: str, position: int, workdir: str | None) -> Iterator[str]:
    accepted = {it.attempt for it in read_verdicts(tx, name) if it.position == position and it.accepted}
    steps = steps_of(entry for entry in read_entries(tx, name) if entry.position == position)
    for step in steps:
        if step.submits:
            words = "submit: accepted" if step.turn.attempt in accepted else "submit: not accepted"
        else:
            words = call_words(step, workdir)
        mark = "*" if "curated" in step.turn.details else " "
        yield f"{step.number:>3}{mark} {' '.join(words.split())}"[:_COLUMN].rstrip()


def call_words(step: Step, workdir: str | None) -> str:
    """The first call of a step in a line, in which paths below `workdir` are relative."""
    if not step.calls:
        return "no call"
    call, arguments, _ = step.calls[0]
    more = len(step.calls) - 1
    if call.name == EDITOR:
        place = PurePosixPath(str(arguments.get("path", "")))
        path = place.relative_to(workdir) if workdir and place.is_relative_to(workdir) else place
        command = str(arguments.get("command", ""))
        words = f"{_EDITS.get(command, command)}: {path}"
    else:
        words = f"{call.name}: {next(iter(arguments.values()), '')}"
    return words + (f" (+{more})" if more else "")
