"""The literals that the tests of a file of Rust ask for: in assertions, in what helpers are given to compare with, and
in the variables and tables that are compared. Pure; what is not understood asks for nothing."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from environments.suites.canaries.rustasserts import ASSERTING, NOT_VALUES, Part, RustCall, RustFile
from environments.suites.canaries.rusttokens import RustTest, RustToken, arguments

LEFT, RIGHT = 1, 2
"""The sides of a comparison."""
STANDARD, SAME, WRITTEN, UNORDERED = range(4)
"""What is known of the types that are compared: what `Debug` shows is told of those of the standard library, of two
that are the same, too, of any, or of any without their order."""
_MORE = re.compile(
    r"\.(?:repeat|collect|iter|into_iter|len|is_empty|as_ref|as_slice|as_deref|cloned|copied|clone|concat|join|rev|chars"
    r"|bytes|trim|unwrap_or_default)|mut|ref|from_(?:static|iter|secs|millis|micros|nanos|secs_f64)"
    r"|(?:format|formatdoc|indoc|concat|json|\w*(?:vec|map|set|array)|error_(?:node_)?position)!"
)
"""More words in lower case that change nothing of what is written out."""
_OWN = re.compile(
    r"Some|None|Ok|Err|String|Vec|Box|Rc|Arc|Cow|Borrowed|Owned|OsString?|OsStr|PathBuf|Path|Duration|Range\w*|Default"
    r"|Cell|RefCell|HashMap|HashSet|BTreeMap|BTreeSet|VecDeque|Ordering|Less|Equal|Greater|Ip\w*Addr|SocketAddr\w*"
    r"|NonZero\w*|Wrapping|PhantomData|Self|[A-Z][A-Z0-9_]*"
)
"""Types and values of the standard library, and constants."""
_ANY_TYPE = re.compile(r"into|collect|borrow|as_ref|\w+(?:vec|map|set|array)")
"""What gives values of any type, that of the tested code included."""
_BEFORE = re.compile(r"mut|in|return|ref|else|match|if|as|dyn")
"""Words behind which brackets are an array."""
_UNORDERED = re.compile(r"Hash(?:Map|Set)$|hash_?(?:map|set)$|collect$|from_iter$")
"""What may have another order each time."""
_SHOWN = re.compile(r"e?println?|format|write(?:ln)?|dbg|panic")
"""Macros that show values."""
_OTHERS = re.compile(
    r"assert_(?:.*(?:match|approx|relative|diff|delta|ulps|snapshot|near|close|json|err|ok|ne).*|[gl][te])"
)
"""Assertions of libraries that have no ``assert_eq!`` in them."""
_SAME_ITEMS = re.compile(r"\|&?\((\w+),(\w+)\)\|[*&]*(?:\1==[*&]*\2|\2==[*&]*\1)")
"""What asks of two sequences whether they have the same items."""
_TABLE = 10_000
"""Tokens of a table."""
_PATTERN = 40
"""Tokens of a pattern of a loop."""
_ROUNDS = 3
"""Helpers that call helpers."""


class RustAsked(NamedTuple):
    """Literals that are compared by one call, by their tokens; `call` is None where a macro makes the test. The other
    side is told, if the `side` of the literals is known, as far as its types are `known`."""

    call: RustCall | None
    literals: list[int]
    side: int
    known: int


class RustSequences(NamedTuple):
    """Two sequences whose items a call compares, ``assert!(left.zip(right).all(|(a, b)| a == b))``, and what compares
    these."""

    call: RustCall
    left: Part
    right: Part
    same: Part


class _Helper(NamedTuple):
    """A function, or a rule of a macro: its parameters, those that are compared with something, which with which other
    one, and whether more may follow that are as the last one."""

    parameters: list[str]
    body: Part
    asked: set[int]
    pairs: set[tuple[int, int]]
    repeats: bool

    @property
    def asks_last(self) -> bool:
        """Whether what follows is compared, too."""
        return self.repeats and len(self.parameters) - 1 in self.asked


class _Compared(NamedTuple):
    """What a call compares: parts with sides, and which of them with which other one, by their places here."""

    call: RustCall
    parts: list[tuple[Part, int]]
    pairs: list[tuple[int, int]]


class _Body(NamedTuple):
    """The tokens of a test or helper, what is compared there, and the tokens of what is only compared or shown."""

    tokens: Part
    compared: list[_Compared]
    free: set[int]


class AskedFile(RustFile):
    """What a file's tests ask for."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._helpers: dict[str, list[_Helper]] = {}
        self._words: dict[str, list[int]] = {}
        self._opens = {closes: opens for opens, closes in self.pairs.items()}
        for number, token in enumerate(self.found):
            if token.kind == "word":
                self._words.setdefault(token.text, []).append(number)
            if token.text == "fn" and (found := self._function(number + 1)):
                self._helpers.setdefault(self.found[number + 1].text, []).append(found)
            if token.text == "macro_rules" and self.is_one_of(number + 1, "!") and number + 3 in self.pairs:
                self._helpers.setdefault(self.found[number + 2].text, []).extend(self._rules(number + 3))
        for _ in range(_ROUNDS):
            for helpers in self._helpers.values():
                for it in helpers:
                    if it.parameters:
                        self._learn(it)

    def asked(self, test: RustTest) -> Iterator[RustAsked]:
        """What a test asks for."""
        if test.is_macro:
            given = arguments(self.found, self.pairs, *test.body)
            name = self.found[test.attributes[0]].text
            helper = self._asked_places(name, len(given))
            places = set(helper[0] if helper else range(1, len(given)))
            values = list[list[Part]]()
            for place, (begin, end) in enumerate(given):
                # Such as ``size = 4`` in a list of what is asked for.
                is_named = self.found[begin].kind == "word" and self.is_one_of(begin + 1, "=", "=>") and begin + 2 < end
                if is_named and any(it.asks_last for it in self._helpers.get(name, ())):
                    places.add(place)
                value = (begin + 2 if is_named else begin, end)
                values.append([value] if self.is_value(*value, _MORE) else [])
            for first, second in helper[1] if helper else ():
                self._drop(values, first, second)
            for value in (value for place in sorted(places) for value in values[place]):
                known = self._known(*value)
                yield RustAsked(None, list(self.literals(*value)), 0, known if helper or known != SAME else STANDARD)
        body = self._body(test.body)
        alone: dict[str, bool] = {}
        for compared in body.compared:
            here = [[part] if self.is_value(*part, _MORE) else [] for part, _ in compared.parts]
            values = list(here)
            paired = {it: other for pair in compared.pairs for it, other in (pair, pair[::-1])}
            for place, (part, _) in enumerate(compared.parts):
                # What is compared with a value that is written out is what the code gives.
                if not here[place] and not (place in paired and here[paired[place]]):
                    values[place] = list(self._values(body, part, alone))
            for first, second in compared.pairs:
                self._drop(values, first, second)
            name = compared.call.name
            is_here = name == "assert_eq" or name in self._helpers
            for (part, side), found in zip(compared.parts, values, strict=True):
                for value in found:
                    both = [self._known(*part), self._known(*value)]
                    # Of a helper that is elsewhere it is not known what it makes of a value.
                    is_less = STANDARD in both or (max(both) == SAME and not is_here)
                    known = STANDARD if is_less else max(both)
                    yield RustAsked(compared.call, list(self.literals(*value)), side, known)

    def sequences(self, test: RustTest) -> Iterator[RustSequences]:
        """The sequences that a test compares."""
        found = self.found
        for call in self.asserted(*test.body) if not test.is_macro else ():
            begin, end = call.parts[0]
            opens = self._opens.get(end - 1, 0)
            closes = opens - 3
            zips = self._opens.get(closes, 0)
            texts = [[it.text for it in found[it - 2 : it]] for it in (opens, zips)]
            if (
                call.name not in ("assert", "debug_assert")
                or texts != [[".", "all"], [".", "zip"]]
                or zips - 2 <= begin
            ):
                continue
            same = "".join(it.text for it in found[opens + 1 : end - 1])
            is_plain = not any(
                self.is_one_of(it, "!", "*", "&&", "||", "==", "!=", "=") for it in self.top(begin, zips)
            )
            if _SAME_ITEMS.fullmatch(same) and is_plain:
                yield RustSequences(call, (begin, zips - 2), (zips + 1, closes), (opens + 1, end - 1))

    def _drop(self, values: list[list[Part]], first: int, second: int) -> None:
        """Of two values that are compared with each other one is asked for: that which calls less, or the second."""
        if all(any(True for part in values[it] for _ in self.literals(*part)) for it in (first, second)):
            calls = [sum(self._calls(*part) for part in values[it]) for it in (first, second)]
            values[second if calls[0] < calls[1] else first] = []

    def _calls(self, begin: int, end: int) -> int:
        return sum(
            it.text[0].islower() and self.is_one_of(number + 1, "(") for number, it in self._numbered(begin, end)
        )

    def _numbered(self, begin: int, end: int) -> Iterator[tuple[int, RustToken]]:
        return enumerate(self.found[begin:end], begin)

    def literals(self, begin: int, end: int) -> Iterator[int]:
        """The literals of a value whose like can stand in their place."""
        found = self.found
        fixed = [
            (number + 1, self.pairs[number + 2])
            for number in range(begin, end - 2)
            if NOT_VALUES.fullmatch(found[number].text)
            and found[number].text not in ("format", "concat")
            and found[number + 1].text == "!"
            and number + 2 in self.pairs
        ]
        fixed.extend(
            (number, self.pairs[number])
            for number in range(begin, end)
            if number in self.pairs and found[number].text == "[" and self._is_indexed(number - 1)
        )
        for number in range(begin, end):
            token, before = found[number], found[number - 1].text if number else ""
            if any(first < number < last for first, last in fixed):
                continue
            if token.kind == "number":
                # Not a field of a tuple, a length of an array, a constant of a type, or the bits of a shift.
                is_shift = number > 1 and before in ("<", ">") and found[number - 2].text == before
                is_type = (before in ("<", ",") and self.is_one_of(number + 1, ">")) or (
                    before == "<" and self.is_one_of(number + 1, ",")
                )
                if before not in (".", ";") and not is_shift and not is_type:
                    yield number
            elif token.kind in ("text", "raw", "letter") or token.text in ("true", "false"):
                yield number

    def _is_indexed(self, number: int) -> bool:
        """Whether brackets behind a token take a part of it."""
        it = self.found[number] if number >= 0 else None
        return it is not None and (
            it.text in (")", "]")
            or it.kind in ("text", "raw")
            or (it.kind == "word" and not _BEFORE.fullmatch(it.text))
        )

    def is_format(self, number: int) -> bool:
        """Whether a text has places for what else is given."""
        return (
            self.is_one_of(number - 1, "(", "[", "{")
            and self.is_one_of(number - 2, "!")
            and self.is_one_of(number - 3, "format", "formatdoc")
        )

    def _compared(self, begin: int, end: int) -> Iterator[_Compared]:
        for call in self.asserted(begin, end):
            if call.name == "assert_eq" and len(call.parts) > 1 and not self.is_one_of(call.first - 1, "::", "."):
                yield _Compared(call, [(call.parts[0], LEFT), (call.parts[1], RIGHT)], [(0, 1)])
        for call in self.calls(begin, end, wide=True):
            places, pairs = self._asked_places(call.name, len(call.parts)) or ([], [])
            is_known = call.name in self._helpers or _OTHERS.fullmatch(call.name)
            if not is_known and ASSERTING.match(call.name) and len(call.parts) > 1:
                places = [len(call.parts) - 1]
            if places:
                numbered = [(places.index(first), places.index(second)) for first, second in pairs]
                yield _Compared(call, [(call.parts[it], 0) for it in places], numbered)

    def _asked_places(self, name: str, count: int) -> tuple[list[int], list[tuple[int, int]]] | None:
        """The arguments of a helper that are compared, and which with which; None of one that is not in this file."""
        helpers = self._helpers.get(name)
        if helpers is None:
            return None
        asking = [it for it in helpers if it.asked]
        places = {place for it in asking for place in it.asked if place < count}
        for it in asking:
            places -= set(range(len(it.parameters))) - it.asked
        if all(it.asks_last for it in asking):
            places.update(range(max((len(it.parameters) for it in asking), default=count), count))
        pairs = {pair for it in asking for pair in it.pairs if places.issuperset(pair)}
        return sorted(places), sorted(pairs)

    def _function(self, number: int) -> _Helper | None:
        """The function whose name stands here."""
        place, depth = number + 1, 0
        while place < len(self.found) and (depth or self.is_one_of(place, "<")):
            depth += self.is_one_of(place, "<") - self.is_one_of(place, ">")
            place += 1
        if not self.is_one_of(place, "(") or place not in self.pairs:
            return None
        closes, parameters = self.pairs[place], list[str]()
        place += 1
        while place < closes:
            if self.found[place].text == ":":
                parameters.append(self.found[place - 1].text)
            place = self.pairs.get(place, place) + 1
        body = next((it for it in range(closes, min(closes + 60, len(self.found))) if self.is_one_of(it, "{")), 0)
        return (
            _Helper(parameters, (body + 1, self.pairs[body]), set(), set(), repeats=False)
            if body in self.pairs
            else None
        )

    def _rules(self, opens: int) -> Iterator[_Helper]:
        """The rules of a macro. Of one that makes tests what stands behind the name is given."""
        place, end = opens + 1, self.pairs[opens]
        while place in self.pairs and place < end:
            closes = self.pairs[place]
            if not self.is_one_of(closes + 1, "=>") or closes + 2 not in self.pairs:
                return
            found = [
                (self.found[it].text, self.found[it + 2].text)
                for it in range(place + 2, closes - 2)
                if self.found[it - 1].text == "$" and self.found[it + 1].text == ":"
            ]
            names = [number for number, (_, kind) in enumerate(found) if kind == "ident"]
            parameters = [name for name, _ in found[names[0] + 1 if names else 0 :]]
            body = (closes + 3, self.pairs[closes + 2])
            # What is matched against cannot be any literal.
            if {kind for _, kind in found} <= {"expr", "literal", "tt", "ident", "ty", "meta", "path", "block"}:
                repeats = any(self.is_one_of(it, "$") and self.is_one_of(it + 1, "(") for it in range(place, closes))
                yield _Helper(parameters, body, set(), set(), repeats)
            place = body[1] + 1 + self.is_one_of(body[1] + 1, ";")

    def _learn(self, helper: _Helper) -> None:
        body = self._body(helper.body)
        for it in body.compared:
            names = [self._variables(*part) or [] for part, _ in it.parts]
            asked = [
                {place for place, name in enumerate(helper.parameters) if name in found} & self._alone(helper, body)
                for found in names
            ]
            helper.asked.update(*asked)
            helper.pairs.update((a, b) for first, second in it.pairs for a in asked[first] for b in asked[second])

    def _alone(self, helper: _Helper, body: _Body) -> set[int]:
        return {place for place, name in enumerate(helper.parameters) if self._is_only_compared(name, body)}

    def _variables(self, begin: int, end: int) -> list[str] | None:
        """The variables of a value whose other parts are written out, or their fields (``case.wanted``); None where
        something is computed."""
        variables = list[str]()
        for number, it in self._numbered(begin, end):
            if it.kind != "word" or self.is_value(number, number + 1, _MORE):
                continue
            if self.is_one_of(number + 1, "(", "!"):
                return None
            if not self.is_one_of(number - 1, "."):
                variables.append(it.text)
            elif variables and self.is_one_of(number - 2, variables[-1]):
                variables[-1] += f".{it.text}"
            else:
                return None
        return variables

    def _body(self, body: Part) -> _Body:
        compared = list(self._compared(*body))
        free = [part for it in compared for part, _ in it.parts if self._variables(*part) is not None]
        for call in self.asserted(*body):
            free.extend(call.parts[2 if call.name.endswith(("_eq", "_ne")) else 1 :])
        for number in range(*body):
            if _SHOWN.fullmatch(self.found[number].text) and number + 2 in self.pairs:
                free.append((number, self.pairs[number + 2]))
        return _Body(body, compared, {it for part in free for it in range(*part)})

    def _is_only_compared(self, name: str, body: _Body) -> bool:
        """Whether a variable is nothing that the tested code is given."""
        variable, _, field = name.partition(".")
        return all(
            number in body.free
            or self.is_one_of(number - 1, ".")
            or self.is_one_of(number + 1, ":")
            or self._is_bound(number)
            or (field and self._is_other_field(number + 1, field))
            for number in self._uses(variable, *body.tokens)
        )

    def _uses(self, variable: str, begin: int, end: int) -> list[int]:
        """Where a word stands between two places."""
        places = self._words.get(variable, [])
        return places[bisect_left(places, begin) : bisect_left(places, end)]

    def _is_other_field(self, number: int, field: str) -> bool:
        return (
            self.is_one_of(number, ".")
            and not self.is_one_of(number + 1, field)
            and not self.is_one_of(number + 2, "(")
        )

    def _is_bound(self, number: int) -> bool:
        """Whether a variable gets its value here."""
        if self.is_one_of(number - 1, "let") or (
            self.is_one_of(number - 1, "mut") and self.is_one_of(number - 2, "let")
        ):
            return True
        for it in reversed(self.found[max(0, number - _PATTERN) : number]):
            if it.text in ("for", "in"):
                return it.text == "for"
            if it.kind != "word" and it.text not in ("(", ")", ",", "&"):
                return False
        return False

    def _values(self, body: _Body, part: Part, alone: dict[str, bool]) -> Iterator[Part]:
        """What is written out of a value that is compared: here, or where a variable gets it. Whether a variable is
        only compared is kept in `alone`."""
        if self.is_value(*part, _MORE):
            yield part
            return
        variables = self._variables(*part)
        if variables is not None and any(True for _ in self.literals(*part)):
            yield part
        for name in variables or ():
            if name not in alone:
                alone[name] = self._is_only_compared(name, body)
            if alone[name]:
                for value in self._given(name, body.tokens[0], part[0]):
                    if self.is_value(*value, _MORE):
                        yield value

    def _given(self, name: str, begin: int, end: int) -> list[Part]:
        """The values that a variable gets last before a place."""
        variable, _, field = name.partition(".")
        for number in reversed(self._uses(variable, begin, end)):
            if self._is_bound(number):
                if self.found[number - 1].text in ("let", "mut"):
                    parts = [it] if (it := self._assigned(number)) else []
                else:
                    parts = self._of_table(number, begin)
                return [found for part in parts if (found := self._field(field, *part))] if field else parts
        return []

    def _field(self, name: str, begin: int, end: int) -> Part | None:
        """What a field of a value gets."""
        for number in range(begin + 1, end - 1):
            begins = self.found[number].text == name and self.is_one_of(number - 1, "{", ",")
            if begins and self.is_one_of(number + 1, ":"):
                place = number + 2
                while place < end and not self.is_one_of(place, ",", "}"):
                    place = self.pairs.get(place, place) + 1
                return (number + 2, min(place, end))
        return None

    def _assigned(self, number: int) -> Part | None:
        """What a variable gets by ``let``."""
        equals = None
        place = number + 1
        while place < len(self.found) and not self.is_one_of(place, ";", "}"):
            if equals is None and self.found[place].text == "=":
                equals = place
            place = self.pairs.get(place, place) + 1
        return (equals + 1, place) if equals else None

    def _of_table(self, number: int, begin: int) -> list[Part]:
        """What a variable of a loop gets: a part of each row of a table that is written out."""
        place = number
        while self.found[place].text != "for":
            place -= 1
        pattern = [it for it in range(place + 1, number + 1) if self.found[it].text not in ("&", "mut", "ref")]
        while not self.is_one_of(place, "in") and place < len(self.found):
            place += 1
        block = next(
            (it for it in range(place, min(place + _TABLE, len(self.found))) if self.is_one_of(it, "{")), place
        )
        if any(self.is_one_of(it, "enumerate") for it in range(place, block)):
            pattern = pattern[3:]
        column = None
        if pattern and self.found[pattern[0]].text == "(":
            column = sum(self.found[it].text == "," for it in pattern)
            if sum(self.found[it].text == "(" for it in pattern) > 1:
                return []
        elif len(pattern) != 1:
            return []
        first = self._array(place + 1)
        if first < len(self.found) and self.found[first].kind == "word":
            given = self._given(self.found[first].text, begin, place)
            first = self._array(given[0][0]) if given else first
        if not self.is_one_of(first, "[") or first not in self.pairs:
            return []
        rows = arguments(self.found, self.pairs, first + 1, self.pairs[first])
        if column is None:
            return rows
        cells = list[Part]()
        for before, _ in rows:
            begins = before + self.is_one_of(before, "&")
            if not self.is_one_of(begins, "(") or begins not in self.pairs:
                return []
            row = arguments(self.found, self.pairs, begins + 1, self.pairs[begins])
            cells.extend(row[column : column + 1])
        return cells

    def _array(self, number: int) -> int:
        """The bracket of an array that is written here."""
        while self.is_one_of(number, "&"):
            number += 1
        return number + 2 if self.is_one_of(number, "vec") and self.is_one_of(number + 1, "!") else number

    def _known(self, begin: int, end: int) -> int:
        """What is known of the types of a value: where types of the tested code are, and all of what they hold is
        written out, then what `Debug` shows of them is known, too."""
        words = {it.text for it in self.found[begin:end] if it.kind == "word"}
        types = [
            number
            for number, it in self._numbered(begin, end)
            if it.kind == "word" and it.text[:1].isupper() and not _OWN.fullmatch(it.text)
        ]
        is_made = any(
            self.is_one_of(number + 1, "::")
            and self.found[number + 2].text[:1].islower()
            and self.is_one_of(number + 3, "(")
            for number in types
        )
        if is_made or (not types and any(_ANY_TYPE.fullmatch(it) for it in words)):
            return STANDARD
        if not types and "json" not in words:
            return SAME
        return UNORDERED if any(_UNORDERED.match(it) for it in words) else WRITTEN
