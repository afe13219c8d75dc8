"""All signs in a conversation."""

from __future__ import annotations

from collections.abc import Iterable

from trajectories.agents.steps.foreign import as_ours
from trajectories.audit.finding import AuditFinding
from trajectories.audit.reading import read_work
from trajectories.audit.rules import RULES
from trajectories.model import Entry


def audit(entries: Iterable[Entry], project: str | None = None) -> tuple[AuditFinding, ...]:
    """The signs of cheating in a conversation, in the order of steps.

    `project` is the repository's name, ``owner/name``. Commands and edits of other agents' tools are read as ours are,
    where their tools are known (`trajectories.agents.steps.foreign`). Verdicts, outcomes and trees are not looked at:
    what the agent was told and shown, and what it did, is all. Pure, raises nothing, and takes time linear in the
    conversation.
    """
    work = read_work(as_ours(entries), project)
    found = {finding for rule in RULES.values() for finding in rule.find(work)}
    return tuple(sorted(found, key=lambda it: (it.step, it.sign, it.evidence, it.meaning)))
