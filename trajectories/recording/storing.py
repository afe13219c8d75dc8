"""The rows of what is recorded: each answer in one transaction, so that a recorder that is killed loses what it was
being answered, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from sql.store import Store
from sql.tables import ImportedTrajectory, Trajectory
from trajectories.identity import LENGTH
from trajectories.imports.document import ForeignTrajectory
from trajectories.imports.importing import foreign_row, origin_row
from trajectories.model import EntryKind
from trajectories.outcomes import RECORDED
from trajectories.recording.conversation import Branch
from trajectories.rows import StageRow, write_entries, write_stage

FORM = "chat/completions"
"""The form of what is recorded, as that of an import is its format."""


@dataclass(frozen=True, slots=True)
class RecordedProgram:
    """What is known of a program before it begins."""

    run: str
    agent: str
    model: str
    version: str = ""
    source: str | None = None
    licence: str | None = None
    repository: str | None = None

    def content(self, branch: Branch) -> str:
        """What stands for the hash of a document: a run happens once."""
        return hashlib.sha256(f"{self.run}/{branch.number}".encode()).hexdigest()

    def trajectory_id(self, branch: Branch) -> str:
        """The id of a conversation's trajectory."""
        return self.content(branch)[:LENGTH]


def store_branch(store: Store, program: RecordedProgram, branch: Branch, first: int) -> None:
    """Write a conversation whose entries are stored up to the ordinal `first`. Raises `StoreError`."""
    name, entries = program.trajectory_id(branch), branch.entries
    own = [entry for entry in entries if not entry.details.get("copied")]
    turns = [entry for entry in own if entry.kind is EntryKind.TURN]
    paid = [entry.usd for entry in turns if entry.at]
    told: dict[str, Any] = {"last_reply": branch.last_reply, "with_tools": bool(branch.tools)}
    if branch.left is not None:
        told["parent"] = [program.trajectory_id(branch.left), branch.shared]
    steps = sum(entry.kind is EntryKind.TURN for entry in entries)
    found = ForeignTrajectory(
        content=program.content(branch),
        form=FORM,
        agent=program.agent,
        agent_version=program.version,
        entries=tuple(entries),
        stages=(StageRow(1, RECORDED, attempts=1, steps=steps),),
        model=program.model,
        session=program.run,
        repository=program.repository,
        tools=branch.tools,
        usd=None if None in paid else sum(amount or 0.0 for amount in paid),
        tokens_in=sum(entry.tokens_in or 0 for entry in turns),
        tokens_out=sum(entry.tokens_out or 0 for entry in turns),
        told=told,
    )
    with store.transaction() as tx:
        tx.upsert(Trajectory, [foreign_row(name, found, RECORDED)])
        tx.upsert(ImportedTrajectory, [origin_row(name, found, program.source, program.licence)])
        write_entries(tx, name, entries[first:])
        write_stage(tx, name, found.stages[0])
