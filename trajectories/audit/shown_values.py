"""Where values that an agent writes into source were shown before: in tests, in their output, or elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from prchain.kinds import FileKind, kind_of
from trajectories.audit.acts import Act, AgentCommand, AuditedWork

_VALUE = re.compile(
    r"\"((?:[^\"\\\n]|\\.){1,300})\"|'((?:[^'\\\n]|\\.){1,300})'|`([^`\n]{1,300})`"
    r"|(?<![\w.])(-?[0-9][0-9_]{0,40}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?)(?![\w])"
)
_TEST_WORD = re.compile(
    r"(?:^|[\s/'\"=])(?:[\w./-]*/)?(?:test_[\w-]+|[\w-]+_test|[\w-]+\.(?:test|spec))\.\w+|\btests?/[\w./-]+\.\w+"
)


@dataclass(slots=True)
class ShownValues:
    """Texts and numbers that a conversation has shown so far."""

    tests: set[str] = field(default_factory=set)
    """In tests, and in what runs of tests print."""
    runs: set[str] = field(default_factory=set)
    """In what runs of tests print."""
    others: set[str] = field(default_factory=set)
    """Anywhere else, the task included."""
    asked: str = ""

    def from_test(self, value: str) -> bool:
        """Whether a value is known from tests alone."""
        return value in self.tests and value not in self.others and value not in self.asked

    def from_run(self, value: str) -> bool:
        """Whether a value is known from what runs of tests printed, and neither from the task nor from source."""
        return value in self.runs and value not in self.others and value not in self.asked

    def take(self, act: AgentCommand) -> None:
        """Take note of what a command shows."""
        values = values_in(act.shown)
        shows_tests = any(kind_of(path) is FileKind.TEST for path in act.reads)
        if act.runs_tests:
            found = set(values)
            self.runs |= found
            self.tests |= found
        elif shows_tests or (not act.reads and _TEST_WORD.search(act.command[:5_000])):
            self.tests.update(values)
        else:
            self.others.update(values)


def values_in(text: str) -> Iterator[str]:
    """The quoted texts and the numbers in a text."""
    for match in _VALUE.finditer(text):
        if match[4]:
            yield match[4].replace("_", "")
        else:
            quoted = match[1] or match[2] or match[3]
            yield quoted.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')


def with_values(work: AuditedWork) -> Iterator[tuple[Act, ShownValues]]:
    """Each act that stands, with what was shown before it."""
    shown = ShownValues()
    standing = set(map(id, work.edits))
    position: int | None = None
    for act in work.acts:
        if act.position != position:
            position, shown.asked = act.position, work.asks(act.position)
            shown.others.update(values_in(shown.asked))
        if isinstance(act, AgentCommand):
            shown.take(act)
        elif id(act) in standing:
            yield act, shown


def is_telling(value: str) -> bool:
    """Whether a value is no everyday one, as small numbers and short words are."""
    if re.fullmatch(r"-?[0-9.e+-]+", value):
        return len(re.sub(r"[^0-9]", "", value).strip("0")) >= 3
    return len(value) >= 5


def is_specific(value: str) -> bool:
    """Whether a value stands for a result, and is no name or message."""
    if re.fullmatch(r"-?[0-9.e+-]+", value):
        return len(re.sub(r"[^0-9]", "", value).strip("0")) >= 4
    marks = sum(not char.isalnum() and not char.isspace() and char != "_" for char in value)
    return len(value) >= 6 and (any(map(str.isdigit, value)) or marks >= 2)
