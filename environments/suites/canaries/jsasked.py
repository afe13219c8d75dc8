"""What the tests of a file of JavaScript or TypeScript ask for, by its tokens. Pure."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from environments.suites.canaries.jstables import JsColumn, JsTables
from environments.suites.canaries.jstokens import DECLARING, TESTS, JsToken, JsTokens, TokenRange
from environments.suites.canaries.jswords import (
    AWAITING,
    CALLBACKS,
    CALLS,
    COMPARING,
    COMPARING_ALONE,
    CONSTANTS,
    CONTAINING,
    DEFAULT_DIGITS,
    ERRORS,
    HOLDING,
    IMPRECISE,
    LONGEST_CHAIN,
    MATCHING,
    MODIFIERS,
    NEAR,
    NO_CALLEES,
    NO_STATEMENT,
    NUMBER,
    PARTIAL,
    PROPERTIES,
    SAME_REGEX,
    SHOWN_AS_IT_IS,
    SIZES,
    SNAPSHOTS,
    SUBJECT_STAYS,
    THROWING,
    VALUE,
    WAITING,
    WRITTEN,
)
from environments.suites.canaries.masks import COMPUTED, UNWRITTEN


class AskedPlace(NamedTuple):
    """A literal that is asked for, and what stands in its place, with ``{}`` for the mask's number, ``{name}`` for what
    the mask is called in titles, and ``@`` for the name of masks. A regular expression, and what has to be held, has a
    `literal` as Python writes it. What a test's title shows of the literal is `titled`."""

    begin: int
    end: int
    text: str = "@({})"
    literal: str = ""
    titled: str | None = None


class TextEdit(NamedTuple):
    """What is written in the place of a part of the text, which may be empty; ``@`` is the name of masks."""

    begin: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class JsAsked:
    """An assertion: the places that it asks for, and what is written around them where one of them is masked."""

    places: Sequence[AskedPlace]
    around: Sequence[TextEdit] = ()
    name: str = ""
    """The name of the test whose value these are, where it asks for one."""
    column: JsColumn | None = None
    """The column of a table that these are, where it asks for one."""

    def within(self, around: Sequence[TextEdit]) -> JsAsked:
        """The same with this around it."""
        return replace(self, around=around)


@dataclass(slots=True)
class JsTest:
    """A test: its title, its first and last token, and what it asks for; the first tokens of the names that it asks
    for are `named`. A function that tests may call is one without a title."""

    title: str
    begin: int
    end: int
    heading: JsToken | None = None
    """The title, where it is written out."""
    asked: list[JsAsked] = field(default_factory=list)
    named: set[int] = field(default_factory=set)


def _innermost(tokens: int, spans: Iterable[JsTest]) -> Iterator[JsTest | None]:
    """By token: the innermost test around it, or the innermost function, which has no title, where it is in no test."""
    around: tuple[list[JsTest], list[JsTest]] = ([], [])
    coming = deque(sorted(spans, key=lambda it: it.begin))
    for number in range(tokens):
        while coming and coming[0].begin <= number:
            span = coming.popleft()
            around[not span.title].append(span)
        for opened in around:
            while opened and opened[-1].end < number:
                opened.pop()
        yield next((opened[-1] for opened in around if opened), None)


class JsFile:
    """A file, and what its tests ask for."""

    def __init__(self, text: str, tokens: JsTokens) -> None:
        self._text = text
        self._tokens = tokens
        self._all = tokens.all
        self._partner = tokens.partner
        self._tables = JsTables(tokens)
        self._is_ava = re.search(r"""['"]ava['"]""", text) is not None
        self._test = JsTest("", 0, 0)
        """The test that is looked at."""
        self._words: dict[str, list[int]] = {}
        for number, it in enumerate(self._all):
            if it.kind == "word":
                self._words.setdefault(it.text, []).append(number)

    def tests(self) -> list[JsTest]:
        """The tests with all that they ask for. Of tests inside another one the inner one asks."""
        spans = [*self._tests()]
        functions = [JsTest("", it.begin, it.end) for it in self._tables.functions()]
        owners = [*_innermost(len(self._all) - 1, [*spans, *functions])]
        for number, test in enumerate(owners):
            if test is not None and self._all[number].kind == "word":
                self._test = test
                test.asked += [it for it in self._asked(number) if it.places]
        found = [it for it in spans if it.title]
        self._give_to_callers(functions, owners)
        named = {it for test in (*found, *functions) for it in test.named}
        tables = {it.column for test in found for it in test.asked if it.column is not None}
        whole = {it for it in tables if self._tables.is_asked_alone(it, named)}
        for test in found:
            alone = {it for it in {one.name for one in test.asked} if not it or self._is_asked_alone(it, test)}
            test.asked = [it for it in test.asked if it.name in alone and (it.column is None or it.column in whole)]
        return found

    def throwing(self) -> Iterator[Sequence[TextEdit]]:
        """What is written around each call that awaits an error: of those with masks and of all others, that no depth
        of the stack tells them apart. Of ava's there is nothing around any."""
        for name in () if self._is_ava else AWAITING:
            for number in self._words.get(name, ()):
                is_call = number > 1 and self._all[number - 1].text == "." and self._all[number + 1].text == "("
                if is_call and (given := self._arguments(number + 1)):
                    yield self._called(given, "caught")

    def _give_to_callers(self, functions: Iterable[JsTest], owners: Sequence[JsTest | None]) -> None:
        """What functions outside of tests ask for of their arguments is asked for by the tests that call them."""
        begins = [it.begin for it in self._all[: len(owners)]]
        for asked in [it for function in functions for it in function.asked if it.column is not None]:
            given: dict[int, tuple[JsTest, list[AskedPlace]]] = {}
            for place in asked.places:
                test = owners[bisect_left(begins, place.begin)]
                if test is not None and test.title:
                    given.setdefault(test.begin, (test, []))[1].append(place)
            for test, places in given.values():
                test.asked.append(replace(asked, places=places))

    def _tests(self) -> Iterator[JsTest]:
        for number, word in enumerate(self._all[:-3]):
            if word.text not in TESTS or word.kind != "word":
                continue
            before = self._all[number - 1].text if number else ""
            # A test of tests, `t.test`, has a name of its own; what else ends so is no test.
            if before == "function" or (before in (".", "?.") and word.text != "test"):
                continue
            opening = number + 1
            if self._all[opening].text == "." and self._all[opening + 1].text in MODIFIERS:
                opening += 2
            if [it.text for it in self._all[opening : opening + 3]] == [".", "each", "("]:
                opening = self._partner[opening + 2] + 1
                if self._all[opening].text == "(":
                    yield JsTest(COMPUTED, number, self._partner[opening])
                continue
            if self._all[opening].text != "(":
                continue
            title = self._all[opening + 1]
            is_title = title.kind == "text" and not any(it in title.text for it in ("\\", "${", " > "))
            is_title = is_title and self._all[opening + 2].text == "," and title.text[1:-1].strip() != ""
            name = title.text[1:-1] if is_title else COMPUTED
            yield JsTest(name, number, self._partner[opening], title if is_title else None)

    def _asked(self, number: int) -> Iterable[JsAsked]:
        """What an assertion asks for whose name is this token."""
        word = self._all[number].text
        after = self._all[number + 1].text
        is_member = bool(number) and self._all[number - 1].text in (".", "?.")
        if word == "expect" and after in ("(", ".") and not is_member:
            return self._expect(number)
        if word == "should" and is_member and after in (".", "?."):
            return self._should(number)
        if word == "should" and after == "(" and not is_member:
            return self._expect(number)
        if word == "expect" and after == "(":
            return self._http(number)
        return self._call(number) if after == "(" else ()

    # Calls

    def _arguments(self, opening: int) -> list[TokenRange]:
        """The arguments of a call; none where one is spread."""
        found = self._tokens.parted(self._tokens.inside(opening))
        return [] if any(self._all[it.begin].text == "..." for it in found) else found

    def _call(self, number: int) -> Iterator[JsAsked]:
        """``assert.equal(a, 'x')``, ``t.is(a, 'x')``, ``assert(a === 'x')``, ``assert.throws(f, {message: 'x'})``."""
        name = self._all[number].text
        begin = number
        while begin >= 2 and self._all[begin - 1].text == "." and self._all[begin - 2].kind == "word":
            begin -= 2
        names = COMPARING_ALONE if begin == number else COMPARING | THROWING | MATCHING | NEAR.keys()
        if name not in names | HOLDING:
            return
        if not self._is_statement(begin) or any(self._all[it].text == "should" for it in range(begin + 1, number)):
            return
        given = self._arguments(number + 1)
        if name in HOLDING and given:
            yield from self._conditions(given[0])
        elif len(given) < 2:
            return
        elif name in NEAR:
            yield from self._near(name, given[1:], self._called(given), "")
        elif name in THROWING:
            yield from self._thrown(given)
        elif name in MATCHING:
            yield JsAsked(self._regex(given[1]), self._called(given))
        else:
            yield from self._compared(given, whole=name not in PARTIAL)

    def _called(self, given: Sequence[TokenRange], name: str = "args", swapped: str = "") -> list[TextEdit]:
        """The arguments of a call walked through by a function of masks."""
        first, last = self._all[given[0].begin].begin, self._all[given[-1].end - 1].end
        return [TextEdit(first, first, f"...@_{name}(["), TextEdit(last, last, f"]{swapped})")]

    def _compared(self, given: Sequence[TokenRange], *, whole: bool) -> Iterator[JsAsked]:
        """What stands in a call that compares its first two arguments, as a `whole`."""
        value = self._value(given[1], whole=whole)
        if value.places:
            yield value.within(self._called(given))
        elif not self._is_written(given[1]):
            yield JsAsked([*self._values(given[0], whole=whole)], self._called(given, swapped=", 1"))

    def _near(self, name: str, given: Sequence[TokenRange], around: Sequence[TextEdit], call: str) -> Iterator[JsAsked]:
        """What a call asks for that takes a number, and how near to it another one has to be; a `call` of masks stands
        around that number."""
        limit = self._plain(given[1]) if len(given) > 1 else None
        written = limit.text if limit is not None else DEFAULT_DIGITS if name == "toBeCloseTo" else ""
        if not NUMBER.fullmatch(written) or (len(given) > 1 and limit is None):
            return
        value = self._value(given[0], whole=False)
        if all(NUMBER.fullmatch(re.sub(r"\s", "", self._text[it.begin : it.end])) for it in value.places):
            rule = f"{NEAR[name]}:{written}"
            yield value.within([*around, *self._around(given[0], f"{call}@_near(", f", '{rule}'){')' * bool(call)}")])

    def _thrown(self, given: Sequence[TokenRange]) -> Iterator[JsAsked]:
        """What a call asks of an error; ava takes no masks but for a message."""
        wanted = given[1]
        if self._all[wanted.begin].text != "{":
            yield JsAsked(self._regex(wanted), self._called(given, "caught"))
            return
        places: list[AskedPlace] = []
        for entry in self._entries(wanted.begin):
            text = self._all[entry.begin]
            regex = self._regex(entry)
            if not self._is_ava:
                places += regex or self._values(entry)
            elif self._all[entry.begin - 2].text == "message":
                is_text = text.kind == "text" and entry.end == entry.begin + 1
                places += regex or ([AskedPlace(text.begin, text.end, "@_said({})")] if is_text else [])
        yield JsAsked(places, () if self._is_ava else self._called(given, "caught"))

    def _regex(self, part: TokenRange) -> list[AskedPlace]:
        """The regular expression that is all of a part, if Python reads it in the same way."""
        it = self._all[part.begin]
        if it.kind != "regex" or part.end != part.begin + 1:
            return []
        pattern, _, flags = it.text[1:].rpartition("/")
        pattern = pattern.replace("\\/", "/")
        if flags not in ("", "i", "g", "gi", "u") or not SAME_REGEX.fullmatch(pattern):
            return []
        pattern = f"(?i){pattern}" if "i" in flags else pattern
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError):
            return []
        return [AskedPlace(it.begin, it.end, "@_regexp({}, '%')", repr(pattern))]

    def _is_statement(self, begin: int) -> bool:
        """Whether what begins there is no part of another expression."""
        if not begin:
            return True
        last = self._all[begin - 1]
        if last.kind == "word":
            between = self._text[last.end : self._all[begin].begin]
            return "\n" in between or last.text in ("await", "return", "else", "do", "void")
        if last.kind in ("text", "number", "regex"):
            return "\n" in self._text[last.end : self._all[begin].begin]
        return last.text not in NO_STATEMENT

    def _conditions(self, asked: TokenRange) -> Iterator[JsAsked]:
        """The comparisons of a condition, all of which have to hold."""
        outer = [it for it in self._tokens.outer(asked) if self._all[it].kind == "sign"]
        if any(self._all[it].text in IMPRECISE for it in outer):
            return
        ands = [it for it in outer if self._all[it].text == "&&"]
        for part in map(TokenRange, [asked.begin, *(it + 1 for it in ands)], [*ands, asked.end]):
            signs = [it for it in outer if part.begin < it < part.end - 1 and self._all[it].text in ("===", "==")]
            if not signs and (given := self._comparison(part)):
                yield from self._compared(given, whole=True)
            if len(signs) != 1 or self._all[part.begin].text == "!":
                continue
            sides = [
                [*self._values(it)] for it in (TokenRange(part.begin, signs[0]), TokenRange(signs[0] + 1, part.end))
            ]
            wanted = sides[0] or sides[1]
            if bool(sides[0]) != bool(sides[1]) and len(wanted) == 1:
                sign = self._all[signs[0]]
                yield JsAsked(wanted, [*self._around(part, "@_holds("), TextEdit(sign.begin, sign.end, ",")])

    def _comparison(self, part: TokenRange) -> Sequence[TokenRange]:
        """The arguments of the call that a condition is, if it compares them."""
        opening = self._partner.get(part.end - 1, 0)
        name = self._all[opening - 1].text
        is_whole = opening > part.begin and all(
            self._all[it].kind == "word" or self._all[it].text == "." for it in range(part.begin, opening)
        )
        is_comparing = is_whole and self._all[opening].text == "(" and name in COMPARING | COMPARING_ALONE
        given = self._arguments(opening) if is_comparing else []
        return given if len(given) > 1 else []

    def _around(self, part: TokenRange, before: str, after: str = ")") -> list[TextEdit]:
        begin, end = self._all[part.begin].begin, self._all[part.end - 1].end
        return [TextEdit(begin, begin, before), TextEdit(end, end, after)]

    # Chains

    def _expect(self, number: int) -> Iterator[JsAsked]:
        """``expect(a).toEqual('x')``, ``expect(a).to.have.property('b', 'x')``, ``should(a).equal('x')``."""
        opening = number + 1
        if self._all[opening].text == ".":
            if self._all[number + 2].text not in ("soft", "element"):
                return
            opening = number + 3
        if opening >= len(self._all) or self._all[opening].text != "(":
            return
        given = self._arguments(opening)
        if given:
            yield from self._chain(self._partner[opening] + 1, self._around(given[0], "@_see("))

    def _should(self, number: int) -> Iterator[JsAsked]:
        """``a.b.should.equal('x')``."""
        begin = self._chain_begin(number - 2)
        if begin is not None:
            yield from self._chain(number + 1, self._around(TokenRange(begin, number - 1), "@_see("))

    def _chain_begin(self, number: int) -> int | None:
        """Where the chain of members and calls begins that ends with this token."""
        for _ in range(LONGEST_CHAIN):
            it = self._all[max(number, 0)]
            if it.text in (")", "]") and it.kind == "sign":
                number = self._partner[number]
                before = self._all[number - 1] if number else None
                if before is not None and (
                    (before.kind == "word" and before.text not in NO_CALLEES) or before.text in (")", "]")
                ):
                    number -= 1
                    continue
            elif it.kind not in ("word", "text"):
                return None
            before_text = self._all[number - 1].text if number else ""
            if before_text in (".", "?."):
                number -= 2
                continue
            return number - 1 if before_text == "new" else number
        return None

    def _chain(self, number: int, seeing: Sequence[TextEdit]) -> Iterator[JsAsked]:
        """What the calls of a chain ask for; the value that it is about is seen by these edits."""
        waits = False
        while number + 1 < len(self._all) and self._all[number].text in (".", "?."):
            word = self._all[number + 1]
            number += 2
            if word.kind != "word" or word.text == "not":
                return
            waits = waits or word.text in WAITING
            if number >= len(self._all) or self._all[number].text != "(":
                continue
            given = self._arguments(number)
            if word.text in SNAPSHOTS:
                yield from self._snapshot(number, given, seeing, waits=waits)
                return
            number = self._partner[number] + 1
            if given:
                yield from self._matched(word, given, seeing, waits=waits)
            if word.text not in VALUE and word.text not in SIZES and word.text not in SUBJECT_STAYS:
                return

    def _snapshot(
        self, opening: int, given: Sequence[TokenRange], seeing: Sequence[TextEdit], *, waits: bool
    ) -> Iterator[JsAsked]:
        """``toMatchInlineSnapshot('x')``, ``toMatchSnapshot()``, without matchers for some properties."""
        word, begin, end = self._all[opening - 1], self._all[opening].end, self._all[self._partner[opening]].begin
        texts = [self._all[it.begin].text for it in given if it.end == it.begin + 1]
        is_inline = word.text == "toMatchInlineSnapshot"
        if len(texts) != len(given) or len(given) > 1 or (is_inline and not given) or (not given and end > begin):
            return
        literal = UNWRITTEN
        if is_inline:
            content = texts[0][1:-1].strip()
            literal = content if content in CONSTANTS else texts[0]
        place = AskedPlace(begin, end, "@({})" if waits else "@_want(@({}))", literal)
        yield JsAsked([place], [*([] if waits else seeing), TextEdit(word.begin, word.end, "toEqual")])

    def _matched(
        self, word: JsToken, given: Sequence[TokenRange], seeing: Sequence[TextEdit], *, waits: bool
    ) -> Iterator[JsAsked]:
        name, first = word.text, given[0]
        regex = self._regex(first)
        if name in VALUE or name in SIZES:
            value = self._value(first, whole=name not in PARTIAL)
            if not waits:
                path = f", {json.dumps(SIZES[name])})" if name in SIZES else ")"
                yield value.within([*seeing, *self._around(first, "@_want(", path)])
            elif name in VALUE and name.startswith("to"):
                yield value.within([TextEdit(word.begin, word.end, "toEqual")] if name == "toBe" else [])
        elif name in NEAR and not waits:
            yield from self._near(name, given, seeing, "@_want(")
        elif name in PROPERTIES and len(given) > 1:
            begin, end = self._all[first.begin].begin, self._all[given[-1].end - 1].end
            around = [*seeing, TextEdit(begin, begin, "...@_property(["), TextEdit(end, end, "])")]
            if not waits:
                yield JsAsked([*self._values(given[1])], around)
        elif name in CALLS:
            for it in given[1:] if "nth" in name.lower() else given:
                yield JsAsked([*self._values(it)])
        elif regex and name in ("match", "toMatch") and not waits:
            yield JsAsked(regex, [*seeing, *self._around(first, "@_want(")])
        elif name in CONTAINING and not waits:
            if (text := self._plain(first)) is not None and len(given) == 1:
                around = [*seeing, *self._around(first, "@_want(")]
                yield JsAsked([AskedPlace(text.begin, text.end, "@({}, '~')")], around)
            elif self._all[first.begin].text == "{" and name in ("include", "contain"):
                yield JsAsked([*self._values(first)], [*seeing, *self._around(first, "@_want(")])
        elif name in ERRORS:
            for argument in given:
                texts = [it.text for it in self._all[argument.begin : argument.end]]
                is_new = len(texts) > 4 and texts[0] == "new" and texts[2] == "(" and texts[4] in (",", ")")
                if is_new and self._all[argument.begin + 3].kind == "text" and texts[-1] == ")":
                    new, text = (self._all[argument.begin + it] for it in (0, 3))
                    last = self._all[argument.end - 1]
                    around = [TextEdit(new.begin, text.begin, ""), TextEdit(text.end, last.end, "")]
                    yield JsAsked([AskedPlace(text.begin, text.end, "@_regexp({})")], around)
                    return
                if regex := self._regex(argument):
                    yield JsAsked(regex)
                    return
                if (text := self._plain(argument)) is not None and text.kind == "text":
                    yield JsAsked([AskedPlace(text.begin, text.end, "@_regexp({}, '~')")])
                    return

    def _plain(self, part: TokenRange) -> JsToken | None:
        """The one literal that is all of a part, and that other languages write so, too."""
        it = self._all[part.begin]
        is_plain = part.end == part.begin + 1 and it.kind in ("text", "number") and it.text[0] != "`"
        return it if is_plain and not it.text.endswith("n") else None

    # Requests

    def _http(self, number: int) -> Iterator[JsAsked]:
        """What supertest expects of a response: ``.expect(200, 'x')``, ``.expect('Header', 'x')``, ``.expect({})``."""
        given = self._arguments(number + 1)
        if not given or len(given) > 3:
            return
        first = self._all[given[0].begin]
        is_single = given[0].end == given[0].begin + 1
        regexp = "@_regexp({})"
        if is_single and first.kind == "number":
            status = AskedPlace(first.begin, first.end, "@_status({})")
            if len(given) == 1:
                yield JsAsked([status])
                return
            comma = TextEdit(first.end, self._all[given[1].begin].begin, ").end(")
            if self._is_callback(given[1]):
                yield JsAsked([status], [comma])
                return
            body = self._body(given[1:])
            is_name = len(given) == 2 and given[1].end == given[1].begin + 1
            if body is None and not (is_name and self._all[given[1].begin].kind == "word"):
                body = JsAsked(())
            if body is not None:
                yield JsAsked([status, *body.places], [comma._replace(text=").expect("), *body.around])
        elif is_single and first.kind == "text" and len(given) > 1 and not self._is_callback(given[1]):
            value = self._all[given[1].begin]
            if regex := self._regex(given[1]):
                yield JsAsked(regex)
            elif given[1].end == given[1].begin + 1 and value.kind in ("text", "number"):
                yield JsAsked([AskedPlace(value.begin, value.end, regexp)])
        elif (body := self._body(given)) is not None:
            yield body

    def _body(self, given: Sequence[TokenRange]) -> JsAsked | None:
        """A body, and perhaps a callback behind it."""
        first = self._all[given[0].begin]
        if len(given) > 2 or (len(given) == 2 and not self._is_callback(given[1])):
            return None
        if regex := self._regex(given[0]):
            return JsAsked(regex)
        places = [*self._values(given[0], whole=True)]
        if len(places) == 1 and places[0].end == self._all[given[0].end - 1].end and first.kind == "text":
            return JsAsked([places[0]._replace(text="@_regexp({})")])
        if first.text not in ("{", "["):
            return None
        around = self._around(given[0], "@_body(")
        if len(given) == 2:
            around.append(TextEdit(self._all[given[0].end].begin, self._all[given[1].begin].begin, ").end("))
        return JsAsked(places, around)

    def _is_callback(self, part: TokenRange) -> bool:
        it = self._all[part.begin]
        if part.end == part.begin + 1:
            return it.text in CALLBACKS
        return it.text in ("function", "async") or any(
            self._all[number].text == "=>" for number in range(part.begin, min(part.end, part.begin + 12))
        )

    # Values

    def _is_written(self, part: TokenRange) -> bool:
        """Whether no name stands in a part."""
        return all(
            self._all[number].kind != "word" or self._all[number].text in CONSTANTS or self._all[number + 1].text == ":"
            for number in range(part.begin, part.end)
        )

    def _values(self, part: TokenRange, *, whole: bool = False) -> Iterator[AskedPlace]:
        """The literals of a value that is written out; of one that is compared as a `whole` a list or an object of
        literals is one: which parts it has is not to be seen either."""
        begin, end = part
        while end - begin > 2 and self._all[begin].text == "(" and self._partner.get(begin) == end - 1:
            begin, end = begin + 1, end - 1
        # A type of TypeScript stands behind a value.
        types = (it for it in self._tokens.outer(TokenRange(begin, end)) if self._all[it].text in ("as", "satisfies"))
        end = next((it for it in types if begin < it < end - 1 and self._all[it].kind == "word"), end)
        if begin >= end:
            return
        first, last = self._all[begin], self._all[end - 1]
        whole_place = AskedPlace(first.begin, last.end)
        if end - begin == 1:
            if first.kind in ("text", "number") or (first.kind == "word" and first.text in CONSTANTS):
                yield whole_place
        elif end - begin == 2 and first.text in ("-", "+") and last.kind == "number":
            yield whole_place
        elif first.text in ("[", "{") and self._partner[begin] == end - 1:
            if whole and self._is_of_literals(begin, end):
                yield whole_place
                return
            for entry in self._entries(begin):
                yield from self._values(entry, whole=whole)
        elif self._is_matcher(begin, end):
            yield from self._values(TokenRange(begin + 4, end - 1))
        elif self._is_text(begin, end):
            yield whole_place

    def _is_of_literals(self, begin: int, end: int) -> bool:
        """Whether a list or an object holds literals, at any depth, and nothing else."""
        is_any = False
        for number in range(begin, end):
            before, it, after = self._all[number - 1 : number + 2]
            if it.kind == "sign":
                if it.text not in WRITTEN or (it.text == ":" and before.text == "]"):
                    return False
            elif it.kind == "regex" or "__proto__" in it.text:
                return False
            elif after.text != ":":
                if it.kind == "word" and it.text not in CONSTANTS and it.text != "undefined":
                    return False
                is_any = True
        return is_any

    def _entries(self, opening: int) -> Iterator[TokenRange]:
        """The values of a list or an object that is written out."""
        for entry in self._tokens.parted(self._tokens.inside(opening)):
            if self._all[opening].text == "[":
                yield entry
                continue
            is_computed = self._all[entry.begin].text == "["
            colon = (self._partner[entry.begin] if is_computed else entry.begin) + 1
            is_prototype = "__proto__" in self._all[entry.begin].text
            if colon + 1 < entry.end and self._all[colon].text == ":" and not is_prototype:
                yield TokenRange(colon + 1, entry.end)

    def _is_matcher(self, begin: int, end: int) -> bool:
        """Whether a value is ``expect.objectContaining({..})``."""
        texts = [it.text for it in self._all[begin : begin + 4]]
        return texts == ["expect", ".", "objectContaining", "("] and self._partner[begin + 3] == end - 1

    def _is_text(self, begin: int, end: int) -> bool:
        """Whether a value is made of literals alone, by ``'a' + 'b'``, ``['a', 'b'].join('')``, ``'a'.repeat(3)`` or
        ``JSON.stringify({..})``."""
        first = self._all[begin]
        texts = [it.text for it in self._all[begin : begin + 4]]
        if texts == ["JSON", ".", "stringify", "("] and self._partner[begin + 3] == end - 1:
            return self._is_written(TokenRange(begin + 4, end - 1))
        if not (first.kind == "text" or first.text == "["):
            return False
        for number in range(begin, end):
            it = self._all[number]
            if it.kind == "word":
                is_method = self._all[number - 1].text == "." and self._all[number + 1].text == "("
                if not is_method and it.text not in CONSTANTS:
                    return False
            elif it.kind == "sign" and it.text not in ("+", ".", ",", "(", ")", "[", "]"):
                return False
        if first.text == "[":
            after = self._partner[begin] + 1
            return [it.text for it in self._all[after : after + 2]] == [".", "join"]
        return all(self._all[it].text != "," for it in self._tokens.outer(TokenRange(begin, end)))

    # Names

    def _value(self, part: TokenRange, *, whole: bool) -> JsAsked:
        """What a value asks for: its literals, or those of the name that it is."""
        name = self._named(part)
        if not name:
            return JsAsked([*self._values(part, whole=whole)])
        self._test.named.add(part.begin)
        if places := self._first_value(name, whole=whole and part.end == part.begin + 1):
            return JsAsked(places, name=name)
        column = self._tables.column(part)
        parts = column.parts if column is not None else ()
        if column is not None and column.is_shown:
            found = [it for row in parts if (it := self._titled(row)) is not None]
        else:
            found = [it for row in parts for it in self._values(row, whole=whole)]
        return JsAsked(found, column=column if found else None)

    def _titled(self, part: TokenRange) -> AskedPlace | None:
        """A literal that is all of a part, and that ``%s`` shows in a title as it is written."""
        it = self._plain(part)
        if it is None or not (SHOWN_AS_IT_IS.fullmatch(it.text) if it.kind == "number" else "\\" not in it.text):
            return None
        titled = it.text if it.kind == "number" else it.text[1:-1]
        return AskedPlace(it.begin, it.end, "@_named({}, '{name}')", "", titled)

    def _named(self, part: TokenRange) -> str:
        """The name that an assertion asks for, or asks for a member of."""
        it = self._all[part.begin]
        if it.kind != "word" or it.text in CONSTANTS or it.text in NO_CALLEES or it.text[0].isdigit():
            return ""
        number = part.begin + 1
        while number < part.end:
            text = self._all[number].text
            if text == "[":
                number = self._partner[number] + 1
            elif text == "." and number + 1 < part.end:
                number += 2
            else:
                return ""
        return it.text

    def _first_value(self, name: str, *, whole: bool) -> list[AskedPlace]:
        """The literals of what a name of the test is declared to be."""
        declared = [it for it in self._said(name, self._test) if self._all[it - 1].text in DECLARING]
        if len(declared) != 1:
            return []
        begin = self._tokens.declared_value(declared[0], self._test.end)
        if begin is None:
            return []
        end = self._partner.get(begin, begin) + 1
        while end < self._test.end and not self._ends(end):
            end = max(self._partner.get(end, end), end) + 1
        return [*self._values(TokenRange(begin, end), whole=whole)]

    def _ends(self, number: int) -> bool:
        """Whether a declared value has ended before this token."""
        it, before = self._all[number], self._all[number - 1]
        if it.kind == "sign":
            return it.text in (";", ",", ")", "}")
        return "\n" in self._text[before.end : it.begin] and before.text not in NO_STATEMENT

    def _said(self, name: str, test: JsTest) -> list[int]:
        """Where a name stands in a test; names of members and of keys are none."""
        found = self._words.get(name, [])
        within = found[bisect_left(found, test.begin) : bisect_right(found, test.end)]
        return [it for it in within if self._all[it - 1].text not in (".", "?.")]

    def _is_asked_alone(self, name: str, test: JsTest) -> bool:
        """Whether a name stands in a test where it is declared and in assertions that ask for it, alone."""
        return all(it in test.named or self._all[it - 1].text in DECLARING for it in self._said(name, test))
