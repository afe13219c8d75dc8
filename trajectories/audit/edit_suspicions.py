"""The rules of suspicion (`trajectories.audit.suspicion`) over an edit of a conversation, as the audit's signs."""

from __future__ import annotations

from collections.abc import Iterator

from prchain.core.code.kinds import FileKind, kind_of
from trajectories.audit.acts import AuditedWork, FileEdit
from trajectories.audit.finding import CheatSign
from trajectories.audit.suspected import excused, starts_python, suspicions
from trajectories.audit.suspicion import ChangedFile


def edit_suspicions(work: AuditedWork, edit: FileEdit, sign: CheatSign) -> Iterator[tuple[str, str]]:
    """Quote and meaning of each suspicion in an edit that is shown as `sign`.

    What the task names is none, nor what the agent was shown of source that did the same. Pure, raises nothing.
    """
    if edit.removed or not edit.after or not (edit.inside or starts_python(edit.name)):
        return
    found = [it for it in suspicions(ChangedFile(edit.path, edit.before, edit.after)) if it.rule.sign is sign]
    if not found:
        return
    shown = (
        command.shown.encode("utf-8", "surrogatepass")
        for command in work.commands
        if command.position <= edit.position
        and not command.runs_tests
        and any(kind_of(path) is FileKind.SOURCE for path in command.reads)
    )
    for it in excused(found, shown, work.asks(edit.position)):
        yield it.quote, it.rule.reason
