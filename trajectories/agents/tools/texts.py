"""A file's text as an editor handles it: every byte is preserved, and lines are those that a reader sees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from prchain.core.storable import clean_text

_LOOKED_AT = 8000
"""Git's rule for binary files: a NUL in so many first bytes."""

_LONGEST_LINE = 2000
"""Characters of a line that are shown."""


@dataclass(frozen=True, slots=True)
class Text:
    """A file's content with ``\\n`` at the ends of lines, whatever the file has.

    Bytes that are no UTF-8 stand in it as lone surrogates (PEP 383), so that they survive an edit elsewhere. `crlf`
    says that all lines of the file end in CR LF; where only some do, the CRs are characters of the text.
    """

    text: str
    crlf: bool = False

    @classmethod
    def of(cls, content: bytes) -> Self | None:
        """The text of a file's bytes; None for a binary file."""
        if b"\0" in content[:_LOOKED_AT]:
            return None
        text = content.decode("utf-8", "surrogateescape")
        # A second CR before a line's end could not be told from one of an edit.
        crlf = "\r\n" in text and text.count("\r\n") == text.count("\n") and "\r\r\n" not in text
        return cls(text.replace("\r\n", "\n") if crlf else text, crlf)

    def content(self) -> bytes:
        """The file's bytes."""
        text = self.text.replace("\n", "\r\n") if self.crlf else self.text
        return text.encode("utf-8", "surrogateescape")

    def with_text(self, text: str) -> Text:
        """Another text in the same form; line ends of it that are CR LF become those of the file."""
        return Text(text.replace("\r\n", "\n") if self.crlf else text, self.crlf)

    def lines(self) -> list[str]:
        """The lines without their ends; a last line end begins no line."""
        lines = self.text.split("\n")
        return lines[:-1] if lines[-1] == "" else lines

    def places(self, part: str) -> list[int]:
        """Offsets of a part, overlapping ones included."""
        offsets = []
        at = self.text.find(part)
        while at >= 0:
            offsets.append(at)
            at = self.text.find(part, at + 1)
        return offsets

    def line_at(self, place: int) -> int:
        """The number of the line, from 1, of an offset in the text."""
        return self.text.count("\n", 0, place) + 1

    def similar(self, part: str) -> list[int]:
        """Numbers of the lines where a part matches if white space at both ends of each line is ignored."""
        part_lines = [line.strip() for line in part.strip("\n").split("\n")]
        if not any(part_lines):
            return []
        lines = [line.strip() for line in self.lines()]
        last = len(lines) - len(part_lines)
        return [
            at + 1
            for at in range(last + 1)
            if lines[at] == part_lines[0] and lines[at : at + len(part_lines)] == part_lines
        ]


def numbered(lines: list[str], first: int, most: int) -> tuple[str, int]:
    """Numbered lines, as many as fit into `most` characters but at least one, and their count."""
    out: list[str] = []
    room = most
    for number, line in enumerate(lines, first):
        text = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]} [... line of {len(line)} characters]"
        row = f"{number:6}\t{clean_text(text)}"
        room -= len(row) + 1
        if room < 0 and out:
            break
        out.append(row)
    return "\n".join(out), len(out)
