"""Where values that an agent writes into source were shown before: in tests, in their output, or elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from prchain.core.code.kinds import FileKind, kind_of
from trajectories.audit.acts import AgentCommand, AuditedWork, FileEdit

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
    """Texts and numbers of a conversation, each with the number of the act that showed it first."""

    work: AuditedWork
    tests: dict[str, int] = field(default_factory=dict)
    """In tests, and in what runs of tests print."""
    runs: dict[str, int] = field(default_factory=dict)
    """In what runs of tests print."""
    others: dict[str, int] = field(default_factory=dict)
    """Anywhere else, the task and what the agent wrote first included; in small letters."""

    @classmethod
    def of(cls, work: AuditedWork) -> ShownValues:
        """The values of a conversation."""
        shown = cls(work)
        position: int | None = None
        for at, act in enumerate(work.acts):
            if act.position != position:
                position = act.position
                shown._add(shown.others, map(str.lower, values_in(work.asks(position))), at)
            if isinstance(act, FileEdit):
                shown._wrote(act.after, at)
            elif isinstance(act, AgentCommand):
                shown._wrote(act.command, at)
                shown._saw(act, at)
        return shown

    def from_test(self, value: str, at: int) -> bool:
        """Whether a value is known from tests alone when an act comes."""
        return self.tests.get(value, at) < at and not self._is_known(value, at)

    def from_run(self, value: str, at: int) -> bool:
        """Whether a value is known from what runs of tests printed, and neither from the task nor from source."""
        return self.runs.get(value, at) < at and not self._is_known(value, at)

    def _is_known(self, value: str, at: int) -> bool:
        return self.others.get(value.lower(), at) < at or value in self.work.asks(self.work.acts[at].position)

    def _wrote(self, text: str, at: int) -> None:
        """What no test had shown is the agent's own."""
        self._add(self.others, (value.lower() for value in values_in(text) if value not in self.tests), at)

    def _saw(self, act: AgentCommand, at: int) -> None:
        values = values_in(act.shown)
        shows_tests = any(kind_of(path) is FileKind.TEST for path in act.reads)
        if act.runs_tests:
            found = set(values)
            self._add(self.runs, found, at)
            self._add(self.tests, found, at)
        elif shows_tests or (not act.reads and _TEST_WORD.search(act.command[:5_000])):
            self._add(self.tests, values, at)
        else:
            self._add(self.others, map(str.lower, values), at)

    @staticmethod
    def _add(place: dict[str, int], values: Iterable[str], at: int) -> None:
        for value in values:
            place.setdefault(value, at)


@lru_cache(maxsize=1)
def shown_values(work: AuditedWork) -> ShownValues:
    """The values of a conversation, read once for all rules."""
    return ShownValues.of(work)


def source_edits(work: AuditedWork) -> Iterator[tuple[int, FileEdit]]:
    """The edits of source in the repository that stand, each with its number among the acts."""
    standing = set(map(id, work.edits))
    for at, act in enumerate(work.acts):
        if id(act) in standing and isinstance(act, FileEdit) and act.inside and act.kind is FileKind.SOURCE:
            yield at, act


def values_in(text: str) -> Iterator[str]:
    """The quoted texts and the numbers in a text."""
    for match in _VALUE.finditer(text):
        if match[4]:
            yield match[4].replace("_", "")
        elif quoted := match[1] or match[2] or match[3]:
            yield quoted.replace("\\n", "\n").replace("\\'", "'").replace('\\"', '"')


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
