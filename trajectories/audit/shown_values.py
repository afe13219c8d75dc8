"""Where values that an agent writes into source were shown before: in tests, in their output, or elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from prchain.kinds import FileKind, kind_of
from trajectories.audit.acts import Act, AgentCommand, AuditedWork, FileEdit

_VALUE = re.compile(
    r"\"((?:[^\"\\\n]|\\.){0,300})\"|'((?:[^'\\\n]|\\.){0,300})'|`([^`\n]{0,300})`"
    r"|(?<![\w.])(-?[0-9][0-9_]{0,40}(?:\.[0-9]{1,40})?(?:e[+-]?[0-9]{1,3})?)(?![\w])"
)
_TEST_WORD = re.compile(
    r"(?:^|[\s/'\"=])(?:[\w./-]*/)?(?:test_[\w-]+|[\w-]+_test|[\w-]+\.(?:test|spec))\.\w+|\btests?/[\w./-]+\.\w+"
)
_PLAIN_WORD = re.compile(r"[A-Za-z_-]{1,12}")


@dataclass(slots=True)
class ShownValues:
    """Texts and numbers that a conversation has shown so far."""

    tests: set[str] = field(default_factory=set)
    """In tests, and in what runs of tests print."""
    runs: set[str] = field(default_factory=set)
    """In what runs of tests print."""
    others: set[str] = field(default_factory=set)
    """Anywhere else, the task and what the agent wrote first included; in small letters."""
    asked: str = ""

    def from_test(self, value: str) -> bool:
        """Whether a value is known from tests alone."""
        return value in self.tests and not self._is_known(value)

    def from_run(self, value: str) -> bool:
        """Whether a value is known from what runs of tests printed, and neither from the task nor from source."""
        return value in self.runs and not self._is_known(value)

    def _is_known(self, value: str) -> bool:
        return value.lower() in self.others or value in self.asked

    def wrote(self, text: str) -> None:
        """Take note of what the agent writes: what no test had shown is its own."""
        self.others.update(value.lower() for value in values_in(text) if value not in self.tests)

    def take(self, act: AgentCommand) -> None:
        """Take note of what a command shows."""
        self.wrote(act.command)
        values = values_in(act.shown)
        shows_tests = any(kind_of(path) is FileKind.TEST for path in act.reads)
        if act.runs_tests:
            found = set(values)
            self.runs |= found
            self.tests |= found
        elif shows_tests or (not act.reads and _TEST_WORD.search(act.command[:5_000])):
            self.tests.update(values)
        else:
            self.others.update(map(str.lower, values))


def values_in(text: str) -> Iterator[str]:
    """The quoted texts and the numbers in a text."""
    for match in _VALUE.finditer(text):
        if match[4]:
            yield match[4].replace("_", "")
        elif quoted := match[1] or match[2] or match[3]:
            yield quoted.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')


def with_values(work: AuditedWork) -> Iterator[tuple[Act, ShownValues]]:
    """Each act that stands, with what was shown before it."""
    shown = ShownValues()
    standing = set(map(id, work.edits))
    position: int | None = None
    for act in work.acts:
        if act.position != position:
            position, shown.asked = act.position, work.asks(act.position)
            shown.others.update(map(str.lower, values_in(shown.asked)))
        if isinstance(act, AgentCommand):
            shown.take(act)
        elif id(act) in standing:
            yield act, shown
            if isinstance(act, FileEdit):
                shown.wrote(act.after)


def is_telling(value: str) -> bool:
    """Whether a value is no everyday one, as small numbers and short words are."""
    if re.fullmatch(r"-?[0-9.e+-]+", value):
        return len(re.sub(r"[^0-9]", "", value).strip("0")) >= 3
    return len(value) >= 5 and not _PLAIN_WORD.fullmatch(value)


def is_specific(value: str) -> bool:
    """Whether a value stands for a result, and is no name or message."""
    if re.fullmatch(r"-?[0-9.e+-]+", value):
        return len(re.sub(r"[^0-9]", "", value).strip("0")) >= 4
    if len(value) <= 12 and re.fullmatch(r"[\w.-]+", value) and sum(map(str.isdigit, value)) < 3:
        return False  # a name, as utf-8-sig
    marks = sum(not char.isalnum() and not char.isspace() and char != "_" for char in value)
    return len(value) >= 6 and (any(map(str.isdigit, value)) or marks >= 2)
