"""A text as the leak check reads it: what is code, what is a path, and which words stand marked as code."""

from __future__ import annotations

import html
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from prchain.core.code.identifiers import is_code_name
from prchain.core.leaks.folding import fold, joined
from prchain.core.leaks.vocabulary import lists

_FENCE = re.compile(r"(?m)^[ \t>]{0,40}(```+|~~~+)")
_SPAN = re.compile(r"``(?!`)([^`\n]{1,400})``|`([^`\n]{1,400})`")
_QUOTED = re.compile(r"\"([^\"\n]{1,400})\"|(?<![\w'])'([^'\n]{1,400})'(?!\w)")
_CHUNK = re.compile(r"[^\s\"'`()<>\[\]{},;:|*]+")
_WORD = re.compile(r"\b[^\W\d][\w$]*")
_HYPHENATED = re.compile(r"\b[^\W\d]\w*(?:-\w+)+")
_RUN = re.compile(r"(?<![\w/.])(?<!\w-)[^\W\d_][^\W_]*+(?:(?:-[^\W_]++){2,}+|(?:/[^\W_]++){2,}+)(?![\w/-])")
"""Three or more words joined by hyphens, or by slashes."""
_LONGEST_PATH = 300


@dataclass(frozen=True, slots=True)
class Word:
    """A word of the text. `marked` says that the text shows it as code: in backticks or quotes, called, or dotted.

    `shown` is how it stands in the text, where that is in parts.
    """

    text: str
    marked: bool
    spelling: str = ""


class TextReading:
    """One text, read once, against the paths that exist at the base and those of the chain."""

    def __init__(self, text: str, paths: Collection[str], chain_paths: Collection[str]) -> None:
        self.text = fold(html.unescape(text)).replace("\\_", "_")
        self.named_paths = frozenset(_named_paths(self.text, chain_paths))
        """The chain's paths that the text names in full."""
        self._path_chunks = _path_chunks(self.text, paths, chain_paths)

    @cached_property
    def fences(self) -> list[str]:
        """What opens the fenced code blocks."""
        return [match[1] for match in _FENCE.finditer(self.text)][::2]

    @cached_property
    def spans(self) -> list[str]:
        """The texts between backticks within a line."""
        return [(match[1] or match[2]).strip() for match in _SPAN.finditer(self.text)]

    @cached_property
    def quotes(self) -> list[str]:
        """The texts between quotation marks within a line."""
        return [(match[1] or match[2]).strip() for match in _QUOTED.finditer(self.text)]

    @cached_property
    def lines(self) -> list[str]:
        """Its lines without the white space around them."""
        return [line.strip() for line in self.text.split("\n")]

    @cached_property
    def masked(self) -> str:
        """The text with blanks in place of the paths it names: the words in them do not count."""
        text = self.text
        for path in sorted(self.named_paths, key=len, reverse=True):
            text = _whole(path).sub(lambda match: " " * len(match[0]), text)
        return _CHUNK.sub(lambda match: " " * len(match[0]) if _trim(match[0]) in self._path_chunks else match[0], text)

    @cached_property
    def path_words(self) -> frozenset[str]:
        """The words of the paths that the text names: files and folders, without endings."""
        paths = {*self.named_paths, *self._path_chunks}
        return frozenset(
            word for path in paths for part in path.split("/") for word in (part, *part.split(".")) if word
        )

    @cached_property
    def words(self) -> list[Word]:
        """Every word and hyphenated name outside of paths, once; marked when it is marked somewhere."""
        masked = self.masked
        marked: set[str] = set()
        plain: set[str] = set()
        for match in _WORD.finditer(masked):
            (marked if _is_marked(masked, match.start(), match.end()) else plain).add(match[0])
        marked_spans = [match[1] or match[2] for match in _SPAN.finditer(masked)]
        marked_spans += [quote for quote in self.quotes if " " not in quote]
        for span in marked_spans:
            whole = span.strip().removeprefix("--")
            if _HYPHENATED.fullmatch(whole):
                marked.add(whole)
            if whole not in self._path_chunks:
                marked.update(_WORD.findall(span))
        if self.fences:
            marked |= plain
        found = [Word(word, True) for word in sorted(marked)] + [Word(word, False) for word in sorted(plain - marked)]
        return [*found, *self._hidden(marked | plain)]

    def _hidden(self, seen: set[str]) -> Iterator[Word]:
        """Names that stand in parts: joined by hyphens or slashes, or with markup or accents in them.

        A compound with a word of grammar inside (`end-to-end`) is English.
        """
        drawn = joined(self.masked)
        for word in dict.fromkeys(_WORD.findall(drawn) if drawn != self.masked else ()):
            if word not in seen and is_code_name(word):
                yield Word(word, False)
        for run in dict.fromkeys(_RUN.findall(drawn)):
            parts = re.split("[-/]", run)
            if lists().function_words.isdisjoint(part.lower() for part in parts[1:-1]):
                yield Word("_".join(parts), False, run)


def _is_marked(text: str, start: int, end: int) -> bool:
    before = text[max(start - 2, 0) : start]
    after = text[end : end + 2]
    if after[:1] == "(" and after not in {"(s", "(e"}:
        return True
    if after == "::" or before == "::" or before[-1:] == "@":
        return True
    joined_before = before[-1:] == "." and (before[:1].isalnum() or before[:1] in "_)]")
    joined_after = after[:1] == "." and (after[1:].isalpha() or after[1:] == "_")
    return joined_before or joined_after


def _whole(path: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(path)}(?![\w/-])")


def _named_paths(text: str, paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path in text and _whole(path).search(text):
            yield path


def _trim(chunk: str) -> str:
    return chunk.strip("/").rstrip(".!?").removeprefix("./").rstrip("/")


def _path_chunks(text: str, paths: Collection[str], chain_paths: Collection[str]) -> frozenset[str]:
    """The chunks of a text that are paths, the ends of paths, folders, or modules by their dotted name."""
    candidates: dict[str, str] = {}
    for chunk in _CHUNK.findall(text):
        trimmed = _trim(chunk)
        if len(trimmed) <= _LONGEST_PATH and ("/" in chunk or "." in trimmed):
            candidates.setdefault(trimmed, trimmed)
            if "/" not in trimmed:
                candidates.setdefault(trimmed.replace(".", "/"), trimmed)
    lasts = {key.rpartition("/")[2] for key in candidates}
    found: set[str] = set()
    folders: set[str] = set()
    for path in (*paths, *chain_paths):
        folder, _, name = path.rpartition("/")
        folders.add(folder)
        if name in lasts:
            found.update(_ends(path, candidates))
        stem = name.partition(".")[0]
        if stem in lasts and stem != name:
            found.update(_ends(f"{folder}/{stem}" if folder else stem, candidates, modules=True))
    for folder in _with_parents(folders):
        if folder.rpartition("/")[2] in lasts:
            found.update(_ends(folder, candidates))
    return frozenset(found)


def _ends(path: str, candidates: dict[str, str], *, modules: bool = False) -> Iterator[str]:
    """The chunks that are this path or an end of it; for a module's path, ends of several parts only."""
    parts = path.split("/")
    for start in range(len(parts) - modules):
        chunk = candidates.get("/".join(parts[start:]))
        if chunk is not None:
            yield chunk


def _with_parents(folders: set[str]) -> set[str]:
    every: set[str] = set()
    for folder in folders:
        current = folder
        while current and current not in every:
            every.add(current)
            current = current.rpartition("/")[0]
    return every
