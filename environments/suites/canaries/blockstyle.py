"""How a test file of JavaScript is written: what is planted in it looks like its tests. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self


@dataclass(frozen=True, slots=True)
class BlockStyle:
    """Of a test, and where it does not tell of its file: the quotes, the head of its function, what ends a statement,
    and the indentation of a line in it."""

    HEAD: ClassVar[re.Pattern[str]] = re.compile(
        r"[ \t]*(?:it|test)\(\s*(['\"`])(?:(?!\1).)*\1,\s*"
        r"(?P<way>(?:async\s*)?(?:(?:\(\)|\(t\)|t)\s*=>|function\s*\w*\s*\(t?\))\s*\{)\s*$",
        re.M,
    )
    """A line of a test whose function takes nothing, or what Node's and tap's tests take."""

    WAITING: ClassVar[re.Pattern[str]] = re.compile(
        r"[ \t]*(?:it|test)\(\s*(['\"`])(?:(?!\1).)*\1,\s*"
        r"(?P<way>(?:\((?:t, ?)?(?P<callback>DONE)\)\s*=>|(?P<bare>DONE)\s*=>"
        r"|function\s*\w*\s*\((?:t, ?)?(?P<named>DONE)\))\s*\{)\s*$".replace("DONE", "(?:done|cb|callback|next)"),
        re.M,
    )
    """A line of a test that ends when its function calls what it is given."""

    quote: str
    way: str
    end: str
    indent: str

    @classmethod
    def of(cls, found: re.Match[str], form: re.Pattern[str] = HEAD) -> Self:
        """That of the test with this first line, or of its file where that has not this `form`; ``string`` of the match
        is the file's text, and it ends with the title's first quote."""
        text = found.string
        if (head := form.match(text, found.start())) is not None:
            way = head["way"]
        else:
            way = "function () {" if re.search(r"\b(?:it|test)\([^\n]*\bfunction\b", text) else "() => {"
        quote = text[found.end() - 1]
        inner = re.search(r"\n([ \t]+)", text)
        end = ";" if re.search(r"^[ \t]*\}\);", text, re.M) else ""
        return cls("'" if quote == "`" else quote, way, end, inner[1] if inner else "  ")

    def around(self, function: str, name: str, body: Sequence[str]) -> list[str]:
        """The lines of a test."""
        return [f"{function}({self.quote}{name}{self.quote}, {self.way}", *body, f"}}){self.end}"]
