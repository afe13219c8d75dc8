"""The titles of a taxonomy in what a model writes: in any decoration, with a number, in singular or plural."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import TypeVar

from trajectories.agents.guidance.taxonomy import Taxonomy

Form = TypeVar("Form")

_LONGEST = 160
"""Characters of a line in which a title is looked for; a title itself has at most 64."""
_LONGEST_REST = 500
"""Characters behind a title on its line, such as its definition; more is prose."""
_MOST_ENDS = 6
"""So many ends of a title are tried in a line."""
_MOST_FAMILY_WORDS = 8

_WORD = re.compile(r"[^\W_]+")
_NUMBER = re.compile(r"(?:\W|_)*+(?:\d{1,3}(?:\.\d{1,3}){0,2}\\?[.)])?+")
_END = re.compile(r"[:：(?–—|→]|(?<=\s)-")  # noqa: RUF001
_DECORATION = " \t*_`~#>|+•·-–—:：.?\"'“”‘’([)]→"  # noqa: RUF001


class Titles:
    """The titles of a taxonomy. A spelling that could stand for two categories stands for none."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        categories = taxonomy.categories
        # From strict to lenient: a user's taxonomy may tell C from C++.
        self._exact = _unambiguous((_folded(category.title), category.name) for category in categories)
        self._by_words = (
            _unambiguous((words_of(category.title), category.name) for category in categories),
            _unambiguous((words_of(category.name), category.name) for category in categories),
        )
        self._singular = _unambiguous((_singular(words_of(category.title)), category.name) for category in categories)
        self._titles = [words_of(category.title) for category in categories]
        self._families = {words_of(family.title) for family in taxonomy.families}

    def whole(self, text: str) -> str | None:
        """The category whose title, or name, a text is; None where it is something else."""
        if len(text) > _LONGEST:
            return None
        for form in (text, text[_end_of_number(text) :]):
            if (name := self._exact.get(_folded(form))) is not None:
                return name
        words = words_of(text)
        plain = words[_start(words) :]
        for named in self._by_words:
            if (name := named.get(words) or named.get(plain)) is not None:
                return name
        return self._singular.get(_singular(plain))

    def at_start(self, line: str) -> tuple[str, str] | None:
        """The category whose title a line begins with, and the rest of the line; None for another line, and for one
        that names more than one category."""
        text = line.strip()
        start = _end_of_number(text[:_LONGEST])
        ends = [found.start() for found in _END.finditer(text, start, _LONGEST)][:_MOST_ENDS]
        for end in (len(text), *reversed(ends)):
            if (name := self.whole(text[:end])) is not None:
                return None if self._names_one(text[end:]) else (name, text[end:].strip(_DECORATION))
        return None

    def _names_one(self, text: str) -> bool:
        said = f" {' '.join(words_of(text[:_LONGEST_REST]))}"
        return len(text) > _LONGEST_REST or any(f" {' '.join(words)}" in said for words in self._titles)

    def is_family(self, line: str) -> bool:
        """Whether a line begins with the title of a family, and says little else."""
        words = words_of(line[:_LONGEST])
        if len(line) > _LONGEST or len(words) > _MOST_FAMILY_WORDS:
            return False
        plain = words[_start(words) :]
        return any(plain[: len(family)] == family for family in self._families)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text in small letters, whatever stands between them."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


def _unambiguous(pairs: Iterable[tuple[Form, str]]) -> dict[Form, str]:
    named: dict[Form, str] = {}
    doubtful = set()
    for form, name in pairs:
        if named.setdefault(form, name) != name:
            doubtful.add(form)
    return {form: name for form, name in named.items() if form not in doubtful}


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().strip(_DECORATION).split())


def _singular(words: tuple[str, ...]) -> tuple[str, ...]:
    return (*words[:-1], words[-1].removesuffix("s")) if words else ()


def _start(words: tuple[str, ...]) -> int:
    """The place of the first word that is neither a number nor says that a category follows."""
    return next((place for place, word in enumerate(words) if not (word.isdigit() or word == "category")), 0)


def _end_of_number(text: str) -> int:
    found = _NUMBER.match(text)
    return found.end() if found else 0
