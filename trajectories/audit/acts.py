"""What an agent did, in order: commands that it ran, and files that it changed."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from environments.sandboxes.sandbox import WORKDIR
from prchain.core.code.kinds import FileKind, kind_of
from trajectories.audit.unfounded import UnfoundedClaim


@dataclass(frozen=True)
class AgentCommand:
    """A command that ran, or the agent's look at a file by its editor, which has no programs."""

    position: int
    step: int
    command: str
    programs: tuple[tuple[str, ...], ...]
    """The words of its simple commands, without programs that only run others."""
    scripts: tuple[str, ...]
    """Texts of Python that it runs."""
    reads: tuple[str, ...]
    """Files whose lines it shows; of the repository without its folder."""
    shown: str
    runs_tests: bool


@dataclass(frozen=True)
class FileEdit:
    """A file was changed, as far as the call tells."""

    position: int
    step: int
    path: str
    """Of a file of the repository without its folder; absolute elsewhere."""
    before: str = ""
    """The text that was taken away."""
    after: str = ""
    """The text that was put in."""
    whole: bool = False
    """`after` is the whole file."""
    removed: bool = False
    """The file is gone."""
    existed: bool = True
    """The agent did not make the file."""
    appended: bool = False
    """Something came to the end of the file."""
    known: bool = True
    """`before` is what was there; else nobody saw it."""

    @property
    def inside(self) -> bool:
        """Whether it is a file of the repository."""
        return not self.path.startswith("/")

    @property
    def name(self) -> str:
        """The file's name without folders."""
        return posixpath.basename(self.path)

    @cached_property
    def kind(self) -> FileKind:
        """The role of the file."""
        return kind_of(self.path)


@dataclass(frozen=True, slots=True)
class FileRestored:
    """A file is as it was before the agent's edits; None: all files."""

    position: int
    step: int
    path: str | None


_MOST_ASKED = 20_000
"""Characters."""

Act = AgentCommand | FileEdit | FileRestored


@dataclass(frozen=True, eq=False)
class AuditedWork:
    """What rules read of a conversation."""

    acts: Sequence[Act]
    asked: Mapping[int, str] = field(default_factory=dict)
    """Stage to what the agent was told: query, comments, guidance."""
    workdir: str = WORKDIR
    claims: Sequence[UnfoundedClaim] = ()
    """What it said of tests without having seen it."""
    packages: frozenset[str] = frozenset()
    """Names under which the project under work is installed, in small letters with ``_``."""

    @cached_property
    def edits(self) -> Sequence[FileEdit]:
        """The edits, without those of files that were restored later in the same stage."""
        kept: list[FileEdit] = []
        restored: set[str] = set()
        position: int | None = None
        everything = False
        for act in reversed(self.acts):
            if act.position != position:
                position, everything = act.position, False
                restored.clear()
            if isinstance(act, FileRestored):
                everything = everything or act.path is None
                restored.add(act.path or "")
            elif isinstance(act, FileEdit) and not everything and act.path not in restored:
                kept.append(act)
        return kept[::-1]

    @property
    def commands(self) -> Sequence[AgentCommand]:
        """The commands."""
        return [act for act in self.acts if isinstance(act, AgentCommand)]

    def asks(self, position: int) -> str:
        """What the agent was told in a stage; of very much, the beginning."""
        return self.asked.get(position, "")[:_MOST_ASKED]


_CHANGES = re.compile(
    r"(?i)\b(?:updat|chang|edit|fix|adapt|adjust|rewrit|rewrote|remov|delet|drop|mov|renam|extend|port|replac|skip|"
    r"mark|convert|migrat|configur|refactor|add|correct|mend|set|implement)\w*"
)
_SENTENCE = re.compile(r"(?<=[.!?:;])\s+|\n+")


def asks_to_change(asked: str, name: str) -> bool:
    """Whether a sentence of what was asked names a thing and speaks of changing something."""
    return name in asked and any(
        name in sentence and _CHANGES.search(sentence.replace(name, " ")) for sentence in _SENTENCE.split(asked)
    )
