"""The audit of stored trajectories, one in memory at a time: counts, findings, and how they are printed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import select

from prchain.core.console.terminal import counted, say, say_prose, say_table
from sql.chosen import find_chain
from sql.store import Store, Transaction
from sql.tables import Chain, ImportedTrajectory, Repository, Trajectory
from trajectories.agents.steps.foreign import as_ours, is_read
from trajectories.audit.auditing import audit
from trajectories.audit.finding import AuditFinding, CheatSign
from trajectories.rows import find_trajectory, read_entries

_MOST_TOOLS = 8


class AuditTarget(NamedTuple):
    """A trajectory and the project that it works on, ``owner/name``; None where nobody says."""

    id: str
    project: str | None
    imported: bool = False


@dataclass(slots=True)
class SignCounts:
    """How many findings there are of each sign, and in how many trajectories."""

    audited: int = 0
    with_one: int = 0
    """Trajectories with a finding of any sign."""
    findings: Counter[tuple[CheatSign, str]] = field(default_factory=Counter)
    """By sign and meaning."""
    trajectories: Counter[tuple[CheatSign, str]] = field(default_factory=Counter)
    signs: Counter[CheatSign] = field(default_factory=Counter)
    """Trajectories by sign."""

    def add(self, findings: tuple[AuditFinding, ...]) -> None:
        """Count a trajectory."""
        self.audited += 1
        self.with_one += bool(findings)
        self.findings.update((it.sign, it.meaning) for it in findings)
        self.trajectories.update({(it.sign, it.meaning) for it in findings})
        self.signs.update({it.sign for it in findings})

    def row(self) -> dict[str, dict[str, int]]:
        """CheatSign to its numbers; only signs that were found."""
        totals: Counter[CheatSign] = Counter()
        for (sign, _), count in self.findings.items():
            totals[sign] += count
        return {
            str(sign): {"trajectories": self.signs[sign], "findings": totals[sign]}
            for sign in CheatSign
            if totals[sign]
        }


@dataclass(slots=True)
class AuditReport:
    """The audit of a store."""

    counts: SignCounts = field(default_factory=SignCounts)
    findings: list[tuple[str, AuditFinding]] = field(default_factory=list)
    """With the trajectory's id."""
    unread: Counter[str] = field(default_factory=Counter)
    """Tools of imported trajectories to calls of them that no rule reads."""

    def row(self) -> dict[str, Any]:
        """The report as a JSON value."""
        return {
            "trajectories": self.counts.audited,
            "with_a_sign": self.counts.with_one,
            "signs": self.counts.row(),
            "findings": [
                {
                    "trajectory": id_,
                    "stage": it.position,
                    "step": it.step,
                    "sign": str(it.sign),
                    "evidence": it.evidence,
                    "meaning": it.meaning,
                }
                for id_, it in self.findings
            ],
            **({"unread_calls": dict(sorted(self.unread.items()))} if self.unread else {}),
        }


def audit_store(
    store: Store, trajectory: str | None = None, chain: str | None = None, repository: str | None = None
) -> AuditReport:
    """Audit the trajectories of a store. Raises `UsageError` for an unknown trajectory or chain."""
    report = AuditReport()
    with store.reading() as tx:
        for stored in _chosen(tx, trajectory, chain, repository):
            entries = read_entries(tx, stored.id)
            findings = audit(entries, stored.project)
            report.counts.add(findings)
            if stored.imported:
                calls = [call for entry in as_ours(entries) for call in entry.tool_calls]
                report.unread.update(call.name for call in calls if not is_read(call))
            report.findings += [(stored.id, it) for it in findings]
    return report


def audit_counts(tx: Transaction, stages: Mapping[str, int], projects: Mapping[str, str | None]) -> SignCounts:
    """The counts over some trajectories: `stages` is how many of its stages count, from the first on, by id; `projects`
    what each works on."""
    counts = SignCounts()
    for id_, last in stages.items():
        entries = [entry for entry in read_entries(tx, id_) if entry.position <= last]
        counts.add(audit(entries, projects.get(id_)))
    return counts


def _chosen(
    tx: Transaction, trajectory: str | None, chain: str | None, repository: str | None
) -> Iterator[AuditTarget]:
    query = (
        select(
            Trajectory.id, Repository.owner + "/" + Repository.name, ImportedTrajectory.repository, Trajectory.chain_id
        )
        .outerjoin(Chain, Chain.id == Trajectory.chain_id)
        .outerjoin(Repository, Repository.id == Chain.repository_id)
        .outerjoin(ImportedTrajectory, ImportedTrajectory.trajectory_id == Trajectory.id)
        .order_by(Trajectory.chain_id, Trajectory.sample, Trajectory.id)
    )
    if trajectory is not None:
        query = query.where(Trajectory.id == find_trajectory(tx, trajectory))
    if chain is not None:
        query = query.where(Trajectory.chain_id == find_chain(tx, chain))
    for id_, name, told, chain_id in list(tx.connection.execute(query)):
        project = name or told
        if repository is None or (project or "").lower() == repository.lower():
            yield AuditTarget(str(id_), project, imported=chain_id is None)


def print_audit(report: AuditReport) -> None:
    """Print the table of signs, then each finding."""
    counts = report.counts
    if not counts.audited:
        say("no trajectory to audit")
        return
    audited = counted(counts.audited, "trajectory")
    if report.unread:
        tools = ", ".join(f"{name} ({count:,})" for name, count in report.unread.most_common(_MOST_TOOLS))
        say_prose(f"calls of imported trajectories that no rule reads: {report.unread.total():,}, of {tools}")
    if not counts.with_one:
        say(f"{audited} audited: no sign of cheating")
        return
    rows = [
        (sign, meaning, f"{counts.findings[sign, meaning]:,}", f"{counts.trajectories[sign, meaning]:,}")
        for sign, meaning in sorted(counts.findings)
    ]
    say_table(("sign", "what", "findings", "trajectories"), rows)
    say()
    lines = [(id_, it.position, it.step, it.sign, it.evidence) for id_, it in report.findings]
    say_table(("trajectory", "stage", "step", "sign", "evidence"), lines)
    say()
    say(f"{counted(len(lines), 'finding')} in {counts.with_one:,} of {audited}; a sign is a reason to read, no proof")
