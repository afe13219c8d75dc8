"""What the hidden tests of a stage need and nothing at its base tells: names that its patch defines, and texts.

The needs that a solver may be told are the stage's interface; it stands below the query. A file of tests that the check
cannot read stands among the needs, too, as `unseen`: nobody can say what it needs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

NeedKind = Literal[
    "class", "function", "method", "parameter", "attribute", "constant", "module", "name", "text", "unseen"
]
Interface = Literal["appended", "paper"]
"""Whether a solver is told the interface: below the query, or, as in the paper (section 4.2), not at all."""

Verdict = Literal["solvable", "unseen", "not_solvable"]
"""Whether query and interface tell what hidden tests need: all; all that is known of them; not all."""

_KINDS = frozenset(get_args(NeedKind))
_NO_NAMES = frozenset({"text", "unseen"})
_MEMBERS = frozenset({"method", "parameter", "attribute"})


@dataclass(frozen=True, slots=True)
class Need:
    """One name or text that hidden tests need; with the kind `unseen` a file of them that is not read."""

    kind: NeedKind
    text: str
    """The name, the text, or the path of the file."""
    owner: str = ""
    """The function of a parameter, the class of a method or an attribute, where that is known."""
    path: str = ""
    """Where the tests look for it, or where M_t defines it; empty for a text."""
    tests: tuple[str, ...] = ()
    """The tests that use it: ``PATH::NAME``, or ``PATH`` for all tests of a file."""
    withheld: str = ""
    """Why a solver is not told: the text is too long, or code. Empty for a part of the interface."""

    @classmethod
    def from_row(cls, row: str | Mapping[str, Any]) -> Need:
        """Of a stored row; a bare name is a need of which no more is known."""
        if isinstance(row, str):
            return cls("name", row)
        values = {name: row.get(name) or "" for name in ("text", "owner", "path", "withheld")}
        kind = row.get("kind", "name")
        return cls(kind if kind in _KINDS else "name", tests=tuple(row.get("tests") or ()), **values)

    def row(self) -> dict[str, Any]:
        """As it is stored and exported: its fields that say something."""
        return {name: list(value) if name == "tests" else value for name, value in asdict(self).items() if value}

    def words(self) -> str:
        """A line that tells a solver of it."""
        if self.kind == "text":
            return json.dumps(self.text, ensure_ascii=False)
        kind = "" if self.kind == "name" else self.kind
        owner = f" of `{self.owner}`" if self.owner and self.kind in _MEMBERS else ""
        details = ", ".join(part for part in (f"{kind}{owner}", self.path) if part)
        return f"`{self.text}`: {details}" if details else f"`{self.text}`"

    def stands_in(self, text: str) -> bool:
        """Whether a text holds it: a name as a word, a text with whatever white space; what is unseen is in none."""
        if self.kind == "unseen":
            return False
        if self.kind != "text":
            return re.search(rf"(?<!\w){re.escape(self.text)}(?!\w)", text) is not None
        return " ".join(self.text.split()) in " ".join(text.split())

    def used_by(self, tests: Collection[str]) -> bool:
        """Whether one of some tests uses it, by their ids; ids that name no file may be of any test."""
        if not self.tests:
            return True
        return any(not _names_file(test) or any(_is_of(test, mine) for mine in self.tests) for test in tests)


def _names_file(test: str) -> bool:
    """Whether an id is ``PATH::NAME``; Cargo's has blanks before the path of a module in it."""
    path, parted, _ = test.partition("::")
    return bool(parted) and " " not in path


def _is_of(test: str, use: str) -> bool:
    return test == use or test.startswith((f"{use}::", f"{use}["))


def parse_needs(stored: Iterable[str | Mapping[str, Any]]) -> tuple[Need, ...]:
    """The needs of a stored list."""
    return tuple(Need.from_row(row) for row in stored)


def interface_of(needs: Iterable[Need], mode: Interface = "appended") -> tuple[Need, ...]:
    """What a solver is told of the needs."""
    return () if mode == "paper" else tuple(need for need in needs if not need.withheld)


def names_of(needs: Iterable[Need]) -> tuple[str, ...]:
    """The names among some needs, sorted, each once."""
    return tuple(sorted({need.text for need in needs if need.kind not in _NO_NAMES}))


def texts_of(needs: Iterable[Need]) -> tuple[str, ...]:
    """The texts among some needs, sorted, each once."""
    return tuple(sorted({need.text for need in needs if need.kind == "text"}))


def unmet(
    query: str, needs: Iterable[Need], mode: Interface = "appended", f2p: Collection[str] | None = None
) -> list[Need]:
    """What hidden tests need and a solver is told neither by the query nor by the interface.

    `f2p` are the ids of the tests that have to pass; without them, all tests that the patch adds or changes count.
    """
    return [
        need
        for need in needs
        if (need.withheld or mode == "paper") and (f2p is None or need.used_by(f2p)) and not need.stands_in(query)
    ]


def verdict_of(lacking: Iterable[Need]) -> Verdict:
    """The verdict on a stage by its `unmet` needs."""
    return worst("unseen" if need.kind == "unseen" else "not_solvable" for need in lacking)


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a task by those on its stages."""
    return max(verdicts, key=get_args(Verdict).index, default="solvable")


def full_query(query: str, told: Sequence[Need]) -> str:
    """The query as a solver reads it: what it is told of the interface stands below it."""
    names = [need.words() for need in told if need.kind != "text"]
    texts = [need.words() for need in told if need.kind == "text"]
    parts = [query]
    if names:
        parts.append(
            "Interface: tests that you cannot see, of this work or of what comes after, use the names below. They do "
            "not exist yet where the tests look for them; what you write has to provide them.\n"
            + "\n".join(f"- {line}" for line in dict.fromkeys(names))
        )
    if texts:
        gap = "; `...` stands for any text" if any("..." in line for line in texts) else ""
        gap += ", with the escapes of JSON" if any("\\" in line for line in texts) else ""
        parts.append(
            f"Texts that these tests use or compare with, word for word{gap}:\n"
            + "\n".join(f"- {line}" for line in dict.fromkeys(texts))
        )
    return "\n\n".join(parts)
