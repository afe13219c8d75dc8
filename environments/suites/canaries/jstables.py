"""The rows that tests of JavaScript and TypeScript walk through, by the tokens of a file: loops around tests and in
them, ``test.each``, and what functions of the file are called with. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from environments.suites.canaries.jstokens import DECLARING, TESTS, JsToken, JsTokens, TokenRange

_WALKING = frozenset({"forEach", "map"})
_NAMING = DECLARING | {"function"}
_KEYS = 6
"""Tokens of ``Object.keys(a)``."""
_MOST_WALKS = 1_000
"""Loops and functions of a file; one that has more is left alone."""
_DEEPEST = 20
"""Functions around a loop that are looked at."""
_AHEAD = 8
"""Tokens that are looked at behind one."""
_SHOWN = re.compile(r"%[sdifjopO]")
"""What shows an argument in a title of ``test.each``, one after the other."""

Path = tuple[str | int, ...]
"""Keys and numbers that lead from a row to a part of it."""


class JsColumn(NamedTuple):
    """A part of each row that a name stands for: what is written there, the tokens where the name means that, the name
    and the key behind it (empty: it is the part itself), and whether the title of its test shows its text."""

    parts: tuple[TokenRange, ...]
    scope: TokenRange
    name: str
    key: str
    is_shown: bool


@dataclass(frozen=True, slots=True)
class _Walk:
    """A loop: where its names mean a row, which part of one each means, where they are declared, and the rows. Of
    ``Object.entries`` a row is the value of a pair. Where names walk through the keys of an object the object's own
    name means a row, where such a `key` stands in brackets behind it. A function's rows are its calls."""

    scope: TokenRange
    names: dict[str, Path]
    declared: frozenset[int]
    rows: Sequence[TokenRange]
    title: str = ""
    are_pairs: bool = False
    key: str = ""
    is_function: bool = False


class JsTables:
    """The loops and the functions of a file."""

    def __init__(self, tokens: JsTokens) -> None:
        # What is looked at behind the last token is none.
        self._tokens = JsTokens([*tokens.all, *[JsToken("", 0, "")] * _AHEAD], tokens.partner, ())
        self._all, self._partner = self._tokens.all, self._tokens.partner
        self._block: list[int] = []
        """By token: the number of the brace that opens the innermost block around it, or -1."""
        self._declared = defaultdict[str, list[int]](list)
        self._named = Counter[str]()
        """How often a name is declared, for a function or anything else."""
        self._calls = defaultdict[str, list[int]](list)
        """By the name of a function: its calls' opening parentheses."""
        opened = [-1]
        for number, it in enumerate(self._all):
            if it.text == "}" and len(opened) > 1:
                opened.pop()
            self._block.append(opened[-1])
            if number and self._all[number - 1].text in DECLARING:
                self._declared[it.text].append(number)
            if number and self._all[number - 1].text in _NAMING:
                self._named[it.text] += 1
            if it.text == "{" and it.kind == "sign":
                opened.append(number)
            if it.text == "(" and number and self._all[number - 1].kind == "word":
                before = self._all[number - 2].text if number > 1 else ""
                if before not in (".", "?.", "function", "new"):
                    self._calls[self._all[number - 1].text].append(number)
        self._walks: list[_Walk] = []
        self._opened: list[_Walk] = []
        """The functions around the token that is looked at."""
        for number in range(len(self._all) - 1):
            while self._opened and self._opened[-1].scope.end < number:
                self._opened.pop()
            found = [*self._walk(number)]
            self._walks += found
            self._opened += [it for it in found if it.is_function]
            if len(self._walks) > _MOST_WALKS:
                self._walks = []
                break

    def column(self, part: TokenRange) -> JsColumn | None:
        """The column that the name at the beginning of a part means there, with the key behind it."""
        name = self._all[part.begin].text
        around = [it for it in self._walks if it.scope.begin < part.begin < it.scope.end and name in it.names]
        if not around:
            return None
        walk = max(around, key=lambda it: it.scope.begin)
        path, key = walk.names[name], ""
        first = part.begin + 1
        if walk.key:
            within = [it.text for it in self._all[first : min(first + 3, part.end)]]
            if within[:2] != ["[", walk.key] or within[2:] not in (["]"], ["as"]):
                return None
            first = self._partner[first] + 1
        after = [it.text for it in self._all[first : min(first + 2, part.end)]]
        if after[:1] == ["."] and len(after) > 1:
            key = after[1]
            path = (*path, key)
        if walk.are_pairs and path[:1] != (1,):
            return None
        is_shown = bool(walk.title) and self._is_shown(walk, path)
        if is_shown and (len(path) > 1 or {*_SHOWN.findall(walk.title)} != {"%s"} or "$" in walk.title):
            return None
        rows = (self._at(row, path[1:] if walk.are_pairs else path) for row in walk.rows)
        return JsColumn(tuple(it for it in rows if it is not None), walk.scope, name, key, is_shown)

    def is_asked_alone(self, column: JsColumn, asked: Collection[int]) -> bool:
        """Whether the column is read by what is `asked` for (numbers of tokens) alone; other parts of a row may be
        read by others."""
        walk = next(it for it in self._walks if it.scope == column.scope)
        for number in range(column.scope.begin, column.scope.end):
            it = self._all[number]
            if it.text != column.name or it.kind != "word" or number in asked or number in walk.declared:
                continue
            if self._all[number - 1].text in (".", "?.", "typeof"):  # ``as keyof typeof a`` is a type
                continue
            after = number + 1
            if walk.key and self._all[after].text == "[":
                after = self._partner[after] + 1
            is_member = self._all[after].text == "." and self._all[after + 1].kind == "word"
            if not (column.key and is_member and self._all[after + 1].text != column.key):
                return False
        return True

    def functions(self) -> Iterator[TokenRange]:
        """Where the file's functions stand that are called in it."""
        return (it.scope for it in self._walks if it.is_function)

    def _is_shown(self, walk: _Walk, path: Path) -> bool:
        """Whether a title shows a part of its row."""
        shown = len(_SHOWN.findall(walk.title))
        first = path[0] if path else None
        if isinstance(first, int):
            return first < shown or "$" in walk.title
        return shown > 0 or first is None or f"${first}" in walk.title

    # Loops

    def _walk(self, number: int) -> Iterator[_Walk]:
        word, after = self._all[number], self._all[number + 1]
        before = self._all[number - 1].text if number else ""
        if word.kind != "word":
            return
        if word.text == "for" and after.text == "(":
            yield from self._for(number)
        elif number and self._all[number - 1].text in _NAMING:
            yield from self._called(number)
        elif word.text in _WALKING and after.text == "(" and before == "." and number > 1:
            function = self._function(number + 2)
            walked = self._ending(number - 2)
            rows = self._rows(walked, number)
            scope = TokenRange(number, self._partner[number + 1])
            if function is not None and rows is not None:
                yield self._made(scope, function[:1], *rows)
            elif function and self._all[function[0].begin].kind == "word" and walked.end - walked.begin == _KEYS:
                yield from self._by_keys(scope, self._all[function[0].begin].text, walked, number)
        elif word.text == "each" and after.text == "(" and before == "." and self._all[number - 2].text in TESTS:
            yield from self._each(number)

    def _for(self, number: int) -> Iterator[_Walk]:
        opening = number + 1
        closing = self._partner[opening]
        words = (it for it in self._tokens.outer(self._tokens.inside(opening)) if self._all[it].text in ("of", "in"))
        of = next(words, None)
        if of is None or self._all[opening + 1].text not in DECLARING or closing + 2 >= len(self._all):
            return
        first = closing + 1
        while first < len(self._all) - 1 and first not in self._partner:
            first += 1
        if self._partner.get(first, 0) <= first:
            return
        scope, walked = TokenRange(number, self._partner[first]), TokenRange(of + 1, closing)
        rows = self._rows(walked, number) if self._all[of].text == "of" else None
        if rows is not None:
            yield self._made(scope, [TokenRange(opening + 2, of)], *rows)
        elif of == opening + 3:
            yield from self._by_keys(scope, self._all[opening + 2].text, walked, number)

    def _by_keys(self, scope: TokenRange, key: str, walked: TokenRange, number: int) -> Iterator[_Walk]:
        """A loop at a token through the keys of what is `walked`: an object's name, or ``Object.keys`` of it."""
        begin = walked.begin
        if [it.text for it in self._all[begin : begin + 4]] == ["Object", ".", "keys", "("]:
            begin += 4
        is_name = self._all[begin].kind == "word" and self._all[begin + 1].text == ")"
        rows = self._entries(self._values(begin, number)) if is_name else []
        if rows:
            yield _Walk(scope, {self._all[begin].text: ()}, frozenset({begin}), rows, key=key)

    def _called(self, number: int) -> Iterator[_Walk]:
        """``function check(a, wanted) {..}``, ``const check = (a, wanted) => {..}``: its rows are its calls."""
        name = self._all[number].text
        calls = self._calls[name] if self._named[name] == 1 else ()
        if self._all[number - 1].text == "function":
            opening = number + 1
        elif self._all[number + 1].text == "=":
            opening = number + 2
            while self._all[opening].text in ("async", "function"):
                opening += 1
        else:
            return
        if not calls or self._all[opening].text != "(":
            return
        body = self._partner[opening] + 1
        # Between parameters and body may be a type of TypeScript.
        while body + 1 < len(self._all) and self._all[body].text not in ("{", "=>", ";"):
            body = max(self._partner.get(body, body), body) + 1
        if self._all[body].text == "=>":
            body += 1
        if self._all[body].text == "{":
            scope = TokenRange(opening, self._partner[body])
            rows = [TokenRange(it, self._partner[it] + 1) for it in calls if it != opening]
            yield self._made(scope, self._inside(opening), rows, False, are_columns=True, is_function=True)

    def _each(self, number: int) -> Iterator[_Walk]:
        """``test.each([[1, 2]])('title', (a, b) => ..)``."""
        closing = self._partner[number + 1]
        if closing + 2 >= len(self._all) or self._all[closing + 1].text != "(":
            return
        opening = closing + 1
        title, comma = self._all[opening + 1], self._all[opening + 2]
        function = self._function(opening + 3) if title.kind == "text" and comma.text == "," else None
        rows = self._rows(TokenRange(number + 2, closing), number)
        if function is None or rows is None or rows[1]:
            return
        scope = TokenRange(opening, self._partner[opening])
        if rows[0] and all(self._all[it.begin].text == "[" for it in rows[0]):
            yield self._made(scope, function, *rows, title=title.text, are_columns=True)
        else:
            yield self._made(scope, function[:1], *rows, title=title.text)

    def _made(
        self,
        scope: TokenRange,
        bound: Sequence[TokenRange],
        rows: Sequence[TokenRange],
        are_pairs: bool,
        *,
        title: str = "",
        are_columns: bool = False,
        is_function: bool = False,
    ) -> _Walk:
        names: dict[str, Path] = {}
        declared = set[int]()
        for place, part in enumerate(bound):
            for number, path in self._bound(part, (place,) if are_columns else ()):
                names[self._all[number].text] = path
                declared.add(number)
        return _Walk(scope, names, frozenset(declared), rows, title, are_pairs, is_function=is_function)

    def _function(self, number: int) -> list[TokenRange] | None:
        """The parameters of a function that begins there; None where none does."""
        if self._all[number].text == "async":
            number += 1
        if self._all[number].text == "function":
            number += 1
            while self._all[number].text != "(" and number + 1 < len(self._all):
                number += 1
        if self._all[number].text == "(":
            return self._inside(number)
        is_arrow = self._all[number].kind == "word" and self._all[number + 1].text == "=>"
        return [TokenRange(number, number + 1)] if is_arrow else None

    def _bound(self, part: TokenRange, path: Path) -> Iterator[tuple[int, Path]]:
        """The names that a parameter or a declaration binds, by their tokens, and to which part of a row."""
        first = self._all[part.begin]
        if first.kind == "word":
            yield part.begin, path
        elif first.text == "[":
            for place, it in enumerate(self._inside(part.begin)):
                yield from self._bound(it, (*path, place))
        elif first.text == "{":
            for it in self._inside(part.begin):
                key = self._all[it.begin]
                if key.kind == "word" and (bound := self._written(it)) is not None:
                    yield from self._bound(bound, (*path, key.text))
                elif key.kind == "word":
                    yield it.begin, (*path, key.text)

    # Rows

    def _ending(self, number: int) -> TokenRange:
        """The expression that ends with a token: a name, a list, or a call of ``Object.entries``."""
        begin = self._partner.get(number, number)
        while begin and self._all[number].text == ")" and self._all[begin - 1].kind == "word":
            begin -= 1
            if self._all[begin - 1].text != ".":
                break
            begin -= 1
        return TokenRange(min(begin, number), number + 1)

    def _rows(self, part: TokenRange, number: int) -> tuple[Sequence[TokenRange], bool] | None:
        """The rows that an expression is, as a loop at a token sees it, and whether they are pairs."""
        begin, end = part
        while end - begin > 2 and self._all[begin].text == "(" and self._partner.get(begin) == end - 1:
            begin, end = begin + 1, end - 1
        if begin >= end:
            return None
        texts = [it.text for it in self._all[begin : begin + 4]]
        if texts == ["Object", ".", "entries", "("]:
            entries = self._entries(self._values(begin + 4, number))
            return (entries, True) if entries else None
        found = [it for it in self._values(begin, number) if self._all[it].text == "["]
        return ([row for it in found for row in self._inside(it)], False) if found else None

    def _entries(self, objects: Sequence[int]) -> list[TokenRange]:
        """The values of the objects among these."""
        found = [part for it in objects if self._all[it].text == "{" for part in self._inside(it)]
        return [written for it in found if (written := self._written(it)) is not None]

    def _values(self, begin: int, number: int) -> Sequence[int]:
        """The first tokens of the lists and objects that are written at a token, or that the name there was declared to
        be, where a loop sees it, or that its function is called with."""
        if self._all[begin].text in ("[", "{"):
            return [begin]
        name = self._all[begin]
        if name.kind != "word":
            return []
        declared = self._declared.get(name.text, [])
        before = reversed(declared[: bisect_left(declared, number)])
        found = next((it for it in before if self._block[it] == -1 or number < self._partner[self._block[it]]), None)
        if found is not None:
            value = self._tokens.declared_value(found, number)
            given = [] if value is None else [value]
        else:
            around = [it for it in self._opened[-_DEEPEST:] if name.text in it.names]
            parts = [self._at(row, it.names[name.text]) for it in around[-1:] for row in it.rows]
            given = [it.begin for it in parts if it is not None]
        return [it for it in given if self._all[it].text in ("[", "{")]

    def _inside(self, opening: int) -> list[TokenRange]:
        """What commas part in a group."""
        return self._tokens.parted(self._tokens.inside(opening))

    def _written(self, part: TokenRange) -> TokenRange | None:
        """The value of an entry of an object, behind its key."""
        begin, end = part
        return TokenRange(begin + 2, end) if end > begin + 2 and self._all[begin + 1].text == ":" else None

    def _at(self, row: TokenRange, path: Path) -> TokenRange | None:
        """The part of a row to which a path leads, where it is written out."""
        for step in path:
            opening = ("[", "(") if isinstance(step, int) else ("{",)
            if self._all[row.begin].text not in opening or self._partner.get(row.begin) != row.end - 1:
                return None
            parts = self._inside(row.begin)
            if isinstance(step, int):
                found = parts[step] if step < len(parts) else None
            else:
                found = next((self._written(it) for it in parts if self._key(it.begin) == step), None)
            if found is None:
                return None
            row = found
        return row

    def _key(self, number: int) -> str:
        it = self._all[number]
        return it.text[1:-1] if it.kind == "text" else it.text
