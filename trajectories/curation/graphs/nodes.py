"""The nodes of a process graph: a statement, its kind, and the unlocker that shows it (P2T, section 4.1).

An unlocker is an action that can be run again and the output that it really gave. Six kinds of actions exist (P2T,
appendix D): view lines of a file, view the problem statement, run a command, create a file, replace a text, think.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from hashlib import sha256
from typing import Any, Self

HASH_LENGTH = 16
"""Hexadecimal digits of a statement's hash."""


class NodeKind(StrEnum):
    """What a node is: a fact about the code before the fix, or a milestone on the way to it."""

    STATIC_FACT = "static_fact"
    """Read, without running the code: text of files, searches."""
    DYNAMIC_FACT = "dynamic_fact"
    """Seen by running the code."""
    REPRODUCE_SCRIPT = "reproduce_script"
    ISSUE_ANALYSIS = "issue_analysis"
    FIX_PLAN = "fix_plan"
    CODE_EDIT = "code_edit"
    VALIDATION = "validation"


FACTS = (NodeKind.STATIC_FACT, NodeKind.DYNAMIC_FACT)

MILESTONES = (
    NodeKind.REPRODUCE_SCRIPT,
    NodeKind.ISSUE_ANALYSIS,
    NodeKind.FIX_PLAN,
    NodeKind.CODE_EDIT,
    NodeKind.VALIDATION,
)
"""In the order in which they follow each other (P2T, appendix D)."""


class ActionTool(StrEnum):
    """What an unlocker's action does."""

    VIEW = "view"
    VIEW_PROBLEM = "view_problem_statement"
    BASH = "bash"
    CREATE = "create"
    STR_REPLACE = "str_replace"
    THINK = "think"


NEEDED: Mapping[ActionTool, tuple[str, ...]] = {
    ActionTool.VIEW: ("path", "first", "last"),
    ActionTool.VIEW_PROBLEM: (),
    ActionTool.BASH: ("command",),
    ActionTool.CREATE: ("path", "content"),
    ActionTool.STR_REPLACE: ("path", "old", "new"),
    ActionTool.THINK: ("thought",),
}
"""The fields that an action has to have; `ActionTool.CREATE` may have a command, too, which is run afterwards."""


@dataclass(frozen=True, slots=True)
class Action:
    """An action that can be run again. Fields that its tool does not use are None."""

    tool: ActionTool
    path: str | None = None
    """Of a file, from the root of the repository, or absolute for one that lies outside of it."""
    first: int | None = None
    """The first line of a view; lines are counted from 1."""
    last: int | None = None
    command: str | None = None
    content: str | None = None
    """Of a new file."""
    old: str | None = None
    new: str | None = None
    thought: str | None = None

    @property
    def missing(self) -> tuple[str, ...]:
        """The fields that its tool needs and that it lacks."""
        return tuple(name for name in NEEDED[self.tool] if getattr(self, name) is None)

    @property
    def superfluous(self) -> tuple[str, ...]:
        """The fields that it has and that its tool does not use."""
        used = {"tool", *NEEDED[self.tool], *(("command",) if self.tool is ActionTool.CREATE else ())}
        return tuple(field.name for field in fields(self) if field.name not in used and getattr(self, field.name))

    @property
    def writes(self) -> bool:
        """Whether it writes a file by itself."""
        return self.tool in {ActionTool.CREATE, ActionTool.STR_REPLACE}

    @property
    def text(self) -> str:
        """Everything that it says, for the search of names in it."""
        lines = f"lines {self.first}-{self.last}" if self.first is not None else None
        parts = (self.path, lines, self.command, self.content, self.old, self.new, self.thought)
        return "\n".join(part for part in parts if part)

    def words(self) -> str:
        """One line for people."""
        match self.tool:
            case ActionTool.VIEW:
                return f"VIEW {self.path}:{self.first}-{self.last}"
            case ActionTool.VIEW_PROBLEM:
                return "VIEW problem_statement"
            case ActionTool.BASH:
                return f"BASH {self.command}"
            case ActionTool.CREATE:
                return f"CREATE {self.path}" + (f", then {self.command}" if self.command else "")
            case ActionTool.STR_REPLACE:
                return f"STR_REPLACE {self.path}"
            case ActionTool.THINK:
                return f"THINK {self.thought}"

    def row(self) -> dict[str, Any]:
        """The fields that are not None, as they are stored."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def to_json(self) -> str:
        """The same as one line of JSON."""
        return json.dumps(self.row(), sort_keys=True)

    @classmethod
    def from_row(cls, values: Mapping[str, Any]) -> Self:
        """The action whose `row` it is."""
        return cls(**{**values, "tool": ActionTool(values["tool"])})


@dataclass(frozen=True, slots=True)
class Node:
    """One node. `observation` is what its action really printed; `round` is the round that proposed it, from 1."""

    name: str
    """Unique in its graph."""
    kind: NodeKind
    statement: str
    action: Action
    observation: str = ""
    round: int = 1

    @property
    def hash(self) -> str:
        """Of the canonical statement."""
        return statement_hash(self.statement)

    @property
    def claim(self) -> tuple[str, ...]:
        """Nodes with the same one are one node (P2T, appendix D: S1, which is of facts). Of the milestones, a plan may
        say what the edit does, and several edits may be described by the same words."""
        if self.kind in FACTS:
            return (self.hash,)
        return (self.hash, self.kind, *((self.action.to_json(),) if self.kind is NodeKind.CODE_EDIT else ()))

    @property
    def shown(self) -> str:
        """What its action lets an agent see that was not there before: the output, and a file that it makes."""
        made = self.action.path if self.action.tool is ActionTool.CREATE else None
        return "\n".join(filter(None, (made, self.observation)))

    @property
    def written(self) -> bool:
        """Whether the agent writes its text itself, so that what it names need not have been shown before."""
        return self.action.writes or self.action.tool is ActionTool.THINK


_MARKS = {ord(mark): None for mark in '`*"\u201c\u201d\u00ab\u00bb'} | dict.fromkeys((0x2018, 0x2019), "'")
"""Markdown's marks and double quotes, which go, and typographic apostrophes."""

_BLANKS = re.compile(r"\s+")


def canonical(statement: str) -> str:
    """A statement without what does not change its claim: case, white space, quotes, Markdown, the last full stop."""
    text = unicodedata.normalize("NFKC", statement).casefold().translate(_MARKS)
    return _BLANKS.sub(" ", text).strip(" .!;,:")


def statement_hash(statement: str) -> str:
    """The first hexadecimal digits of the SHA-256 of the canonical statement."""
    return sha256(canonical(statement).encode("utf-8", "replace")).hexdigest()[:HASH_LENGTH]
