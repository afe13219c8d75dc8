"""What a detector is: code that finds, without a model, that an agent's work goes wrong.

Detectors read a conversation that grows. What they say of a step follows from the entries up to the end of that step,
so a later look at the same conversation finds the same and more. Everything in entries may be hostile: no detector
raises, and each takes time linear in the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

from environments.sandboxes.sandbox import WORKDIR
from prchain.core.llm.model import ToolCall
from trajectories.agents.steps.conversation import Step, steps_of
from trajectories.agents.tools.bash import Bash
from trajectories.agents.tools.edits import EDITOR
from trajectories.model import Entry, EntryKind

LONGEST_EVIDENCE = 300
"""Characters."""
_CUT = " [...]"


@dataclass(frozen=True, slots=True)
class DetectorFinding:
    """Something that goes wrong at a step."""

    detector: str
    """`Detector.name`."""
    category: str
    """`trajectories.agents.guidance.taxonomy.Category.name`, of the taxonomy that ships."""
    step: int
    """`Entry.step` of the step at which it is seen."""
    evidence: str
    """One line for people, which quotes the call or the output; at most `LONGEST_EVIDENCE` characters."""
    recovery: str
    """One sentence: what to do about it."""


@dataclass(frozen=True)
class WatchedWork:
    """What detectors read: the entries of a stage from its query on, or of several stages one after the other, oldest
    first. Its steps and their calls are read once for all detectors."""

    entries: Sequence[Entry]
    first_step: int = 0
    """Nobody asks for findings before this step (`Entry.step`): a detector may leave them out, and gives all others."""

    @cached_property
    def steps(self) -> Sequence[Step]:
        """Its steps, in order."""
        return steps_of(self.entries)

    @cached_property
    def attempts(self) -> Sequence[Sequence[Step]]:
        """The steps of each attempt, in order. A rejection is a reason to look at everything once more, so most
        detectors begin anew with each attempt."""
        groups = groupby(self.steps, key=lambda step: (step.turn.position, step.turn.attempt))
        return [list(steps) for _, steps in groups]

    @cached_property
    def workdir(self) -> str:
        """The folder of the repository in the sandbox, as the first query tells it."""
        query = next((entry for entry in self.entries if entry.kind is EntryKind.QUERY), None)
        told = query.details.get("workdir") if query is not None else None
        return told if isinstance(told, str) and told.startswith("/") else WORKDIR


@dataclass(frozen=True)
class Detector:
    """A detector. `category` is that of all its findings."""

    name: str
    help: str
    """One line for users."""
    category: str
    find: Callable[[WatchedWork], list[DetectorFinding]]
    """All findings from `WatchedWork.first_step` on, oldest first, and perhaps earlier ones. Pure, and
    raises nothing."""


def tree_of(step: Step) -> str | None:
    """The tree after a step; None where the step did not change it."""
    return next((entry.tree for entry in reversed(step.observations) if entry.tree is not None), None)


def call_words(call: ToolCall, arguments: Mapping[str, Any]) -> str:
    """A call for people: of bash the command, of the editor what it does to which file."""
    command, path = arguments.get("command"), arguments.get("path")
    if call.name == Bash.name and isinstance(command, str):
        return f"`{command}`"
    if call.name == EDITOR and isinstance(command, str) and isinstance(path, str):
        return f"{call.name} {command} {path}"
    return f"{call.name} {call.arguments}"


def one_line(text: str, most: int = LONGEST_EVIDENCE) -> str:
    """A text as one line of printable characters, cut to `most` characters."""
    head = text[: 4 * most]
    line = " ".join("".join(char if char.isprintable() else " " for char in head).split())
    if len(line) <= most and len(head) == len(text):
        return line
    return line[: most - len(_CUT)] + _CUT
