"""The rows of trajectories of others: each document in one transaction, so that an import that was killed goes on.

A document is known by its hash: whoever imports it again adds nothing, but may say anew whose it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import update

from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import BadDocument
from prchain.core.secrets.scrub import redact_mined
from prchain.core.storable import clean_text
from prchain.core.timestamps import now
from sql.store import Store, Transaction
from sql.tables import ImportedTrajectory, Trajectory, TrajectoryMessage
from trajectories.identity import LENGTH
from trajectories.imports.atif import is_atif, read_atif
from trajectories.imports.document import ForeignTrajectory
from trajectories.imports.files import ReadDocument, document_files, read_documents
from trajectories.model import EntryKind
from trajectories.outcomes import IMPORTED
from trajectories.provenance import UNKNOWN, read_provenance
from trajectories.rows import read_trajectory, row_of, write_stage, write_verdict


@dataclass(slots=True)
class TrajectoryImportReport:
    """What became of the documents."""

    imported: int = 0
    known: int = 0
    """Those that were there."""
    relabelled: int = 0
    """Of these: now with another source or licence."""
    bad: int = 0
    passed_over: int = 0
    """JSON files of a folder that are of no such format."""
    steps: int = 0
    """Of the agents, in what was imported."""
    without_licence: int = 0
    """Imported or known, and nobody said."""
    without_source: int = 0
    secrets: int = 0
    """What looks like a secret and was replaced."""
    left_out: Counter[str] = field(default_factory=Counter)
    """What was in the imported ones and was not taken, by kind."""

    @property
    def good(self) -> int:
        """Documents whose trajectories are there."""
        return self.imported + self.known

    def row(self) -> dict[str, Any]:
        """As a JSON value."""
        return {name: dict(it) if isinstance(it := getattr(self, name), dict) else it for name in self.__slots__}


class TrajectoryImporter:
    """Imports documents. `source` and `licence` stand before what a document says of itself; `secrets` are the
    user's, which are taken out of texts, as is what looks like one."""

    def __init__(
        self, store: Store, *, source: str | None = None, licence: str | None = None, secrets: tuple[str, ...] = ()
    ) -> None:
        self._store = store
        self._source = clean_text(source)[:255] if source else None
        self._licence = clean_text(licence)[:64] if licence else None
        self._secrets = secrets

    def run(self, path: Path, tell: Callable[[str], None], progress: Progress = SILENT) -> TrajectoryImportReport:
        """Import a file, or all documents of a folder; of one that holds no trajectory, `tell` gets a line.

        Raises `UsageError` for a path without files, and `StoreError`.
        """
        report, files = TrajectoryImportReport(), document_files(path)
        task = progress.task("files", len(files))
        for file in files:
            for read in read_documents(file):
                self._take(read, report, tell, named=path == file)
            task.advance()
        task.done(f"{report.imported:,} imported")
        return report

    def _take(
        self, read: ReadDocument, report: TrajectoryImportReport, tell: Callable[[str], None], *, named: bool
    ) -> None:
        if not named and not read.reason and not is_atif(read.value):
            report.passed_over += 1  # folders of jobs hold settings and results, too
            return
        secrets: Counter[str] = Counter()
        try:
            if read.reason:
                raise BadDocument(read.reason)
            found = read_atif(read.value, partial(redact_mined, secrets=self._secrets, counts=secrets))
            with self._store.transaction() as tx:
                self._write(tx, found, report)
        except BadDocument as error:
            report.bad += 1
            tell(f"{read.place}: {error}")
        else:
            report.secrets += secrets.total()

    def _write(self, tx: Transaction, found: ForeignTrajectory, report: TrajectoryImportReport) -> None:
        name = found.content[:LENGTH]
        source, licence = self._source or found.source, self._licence or found.licence
        known = read_provenance(tx, name)
        if known is not None and known.content == found.content:
            report.known += 1
            source, licence = self._source or known.source, self._licence or known.licence
            if (source, licence) != (known.source, known.licence):
                report.relabelled += 1
                row = update(ImportedTrajectory).where(ImportedTrajectory.trajectory_id == name)
                tx.connection.execute(row.values(source=source, licence=licence))
        elif known is not None or read_trajectory(tx, name) is not None:
            raise BadDocument("has the id of another trajectory")
        else:
            report.imported += 1
            report.left_out += found.left_out
            report.steps += sum(entry.kind is EntryKind.TURN for entry in found.entries)
            tx.upsert(Trajectory, [foreign_row(name, found)])
            tx.upsert(ImportedTrajectory, [origin_row(name, found, source, licence)])
            # A time that nobody told is not that of the import.
            tx.upsert(TrajectoryMessage, [{**row_of(name, entry), "at": entry.at} for entry in found.entries])
            for stage in found.stages:
                write_stage(tx, name, stage)
            for verdict in found.verdicts:
                write_verdict(tx, name, verdict)
        report.without_licence += licence is None
        report.without_source += source is None


def foreign_row(name: str, found: ForeignTrajectory, outcome: str = IMPORTED) -> Mapping[str, Any]:
    """The row of a trajectory without a chain in ``trajectories``."""
    times = [entry.at for entry in found.entries if entry.at]
    return {
        "id": name,
        "chain_id": None,
        "sample": found.sample,
        "parent_id": None,
        "parent_step": None,
        "scaffold": IMPORTED,
        "model": found.model or UNKNOWN,
        "judge": found.judge,
        "options": {},
        "options_hash": "",
        "prompts": {},
        "tools": found.tools,
        "decided_by": None,
        "outcome": outcome,
        "reason": None,
        "accepted": 0,
        "overview": None if found.overview is None else clean_text(found.overview),
        "usd": found.usd,
        "tokens_in": found.tokens_in,
        "tokens_out": found.tokens_out,
        "steps": sum(entry.kind is EntryKind.TURN for entry in found.entries),
        "seconds": 0.0,
        "worker": None,
        "tries": 0,
        "started_at": times[0] if times else "",
        "finished_at": times[-1] if times else None,
    }


def origin_row(name: str, found: ForeignTrajectory, source: str | None, licence: str | None) -> Mapping[str, Any]:
    """Its row in ``imported_trajectories``."""
    return {
        "trajectory_id": name,
        "content": found.content,
        "form": found.form,
        "source": source,
        "licence": licence,
        "session": found.session,
        "document": found.document,
        "agent": found.agent,
        "agent_version": found.agent_version,
        "repository": found.repository,
        "told": found.told,
        "left_out": found.left_out,
        "imported_at": now(),
    }
