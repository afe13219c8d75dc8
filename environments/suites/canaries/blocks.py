"""Canaries for runners of other languages than Python: whole tests in front of the file's own, by their first lines.

One that must fail does what one of the file's own tests does, so that it calls the code under test, and then asserts
what is false. Tests are found by their first and last lines, as formatters lay them out. Of one that may end before its
last line, or whose parts are reported by themselves, none is made; a file without another one has canaries that call
nothing. In JavaScript and Rust up to six more are copies that ask for another value in an assertion of their own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from random import Random
from typing import NamedTuple, Self

from environments.suites.canaries import awaiting
from environments.suites.canaries.blockbodies import BlockForm, Body
from environments.suites.canaries.blockcopies import (
    JAVASCRIPT_COPIES,
    JAVASCRIPT_VALUES,
    RUST_COPIES,
    RUST_VALUES,
    FalseCopies,
)
from environments.suites.canaries.blocknames import JAVASCRIPT_NAMES, RUST_NAMES, NamedBlocks
from environments.suites.canaries.blockstyle import BlockStyle
from environments.suites.canaries.blockwaits import JAVASCRIPT_WAITING, WaitingTests
from environments.suites.canaries.canary import Canary, CanaryKind, PlantedFile, Planting
from environments.suites.canaries.jstokens import tokens_of
from environments.suites.canaries.names import REASONS, NewNames, new_word, unused_word

_KINDS = (CanaryKind.FAIL, CanaryKind.FAIL, CanaryKind.SKIP)
_COPIES = 2
_WAITING = 2
_MORE_COPIES = 4
"""Copies of other tests: as far as a file's tests can be copied, most have one."""
_MOST_OF_ROWS = 1_000
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_ASKS = re.compile(r"(?i)expect|assert|should|throw|\bt\.")
"""A line of JavaScript that asks for something."""


class _Inserted(NamedTuple):
    """A canary's lines, with the line of the test before which they stand, that test's first line, and the number."""

    place: int
    before: re.Match[str]
    number: int
    lines: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Plants:
    """The canaries of a file as they are made."""

    path: str
    planting: Planting
    names: NewNames
    canaries: list[Canary] = field(default_factory=list)
    inserted: list[_Inserted] = field(default_factory=list)

    def add(
        self,
        number: int,
        kind: CanaryKind,
        place: tuple[int, re.Match[str]],
        render: Callable[[str], Sequence[str] | None],
        donor: str = "",
        like: str = "",
    ) -> None:
        """Add one whose lines `render` makes from its name, if its slot may be used; the name begins as that of the
        test whose work it does, `like`."""
        slot = f"{self.path}:{number}"
        if self.planting.slots is not None and slot not in self.planting.slots:
            return
        name = self.names.draw(self.planting.draw, self.planting.taken, donor or like)
        made = render(name)
        if made is not None:
            self.planting.taken.add(name)
            self.canaries.append(Canary(slot, kind, self.path, name, donor))
            self.inserted.append(_Inserted(*place, number, made))


@dataclass(frozen=True, slots=True)
class _Places:
    """The tests of a file before which canaries can stand: lines and their first lines. Of those in `blocks` (by where
    a first line begins) each is near to those of its own block."""

    starts: Sequence[tuple[int, re.Match[str]]]
    blocks: Mapping[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Sequence[str], starts: Sequence[tuple[int, re.Match[str]]]) -> Self:
        """With the blocks of tests, by how far in lines stand: what stands less far in ends one."""
        wanted = {number: found.start() for number, found in starts}
        blocks: dict[int, int] = {}
        around = [(-1, -1)]
        for number, line in enumerate(lines):
            width = len(line) - len(line.lstrip())
            if not line.strip():
                continue
            while around[-1][0] > width:
                around.pop()
            if around[-1][0] < width:
                around.append((width, number))
            if number in wanted:
                blocks[wanted[number]] = around[-1][1]
        return cls(starts, blocks)

    def near(self, test: re.Match[str], order: Random) -> tuple[int, re.Match[str]]:
        """One of those that are near to the test with this first line, or any."""
        own = self.blocks.get(test.start())
        return order.choice([it for it in self.starts if self.blocks.get(it[1].start()) == own])


@dataclass(frozen=True, slots=True)
class TestBlocks:
    """The tests of a language in a text. `first_line` matches the line with which one begins; its groups are `indent`,
    and what `render` needs. `names` finds the names of tests. `attached` begins lines that belong to what follows."""

    first_line: re.Pattern[str]
    names: re.Pattern[str]
    attached: tuple[str, ...]
    render: Callable[[re.Match[str], CanaryKind, str, Random, Sequence[str]], Sequence[str] | None]
    """From the first line of a test (``string`` of the match is the file's text), kind, name, what draws values and the
    lines of that test's body to the canary's lines, without indentation and always as many; None where the language
    has no such kind."""
    form: BlockForm
    is_title: bool = False
    """Whether names are titles, of several words."""
    copies: FalseCopies | None = None
    """How a test is copied with another wanted value; None where a language has no such canaries."""
    copies_of_before: FalseCopies | None = None
    """The same for the slots of proofs of before."""
    waiting: WaitingTests | None = None
    """Tests that end by a call: up to two more canaries, behind the numbers of the others, do what these do."""
    named: NamedBlocks | None = None
    """How tests proper have other names, too; None where they keep theirs."""
    awaits: Callable[[re.Match[str], Sequence[str], str], Sequence[str] | None] | None = None
    """How what a test does stands where an error is awaited: from the first line of the test, the test's body and a
    name to a canary's lines; None where the file's tests await none."""
    raising: Callable[[str], Sequence[awaiting.PlainBody]] | None = None
    """What has to raise errors in a file."""
    first_slot: int = 1
    """The number of a file's first canary: another one since the rules were changed, so that no slot of a proof of
    before means another canary."""
    first_in_block: int | None = None
    """The same where canaries stand in the block of the test whose work they do, since names of that block mean nothing
    elsewhere; None where a language has one block. Slots below are those of proofs of before."""
    of_rows: re.Pattern[str] | None = None
    """`first_line` of tests that are made of rows, which have canaries where a file has no others."""
    heads: re.Pattern[str] | None = None
    """Finds what such tests are called by, in the place of `names`."""

    def plant(self, path: str, text: str, planting: Planting) -> PlantedFile:
        """`canary.Planter`."""
        lines = text.splitlines(keepends=True)
        starts = []
        begins = [0, *accumulate(map(len, lines))]
        for number, begin in enumerate(begins[:-1]):
            if found := self.first_line.match(text, begin, begins[number + 1]):
                starts.append((number, found))
        names = [found[1] for found in self.names.finditer(text)]
        is_of_before = self._is_of_before(path, planting)
        if not starts and self.of_rows is not None and self.heads is not None and not is_of_before:
            starts = [(bisect_right(begins, it.start()) - 1, it) for it in self.of_rows.finditer(text)][:_MOST_OF_ROWS]
            names = [found[1] for found in self.heads.finditer(text)] or [path.rpartition("/")[2].partition(".")[0]]
        identifiers = {*_IDENTIFIER.findall(text)}
        planting.taken.update(identifiers)
        planting.taken.update(names, planting.named)
        if not starts or not names:
            return PlantedFile(text, ())
        bodies = self.form.bodies(lines, starts)
        new_names = (
            NewNames.of_titles(names, identifiers) if self.is_title else NewNames.of_functions(names, (), identifiers)
        )
        plants = _Plants(path, planting, new_names)
        is_in_block = self.first_in_block is not None and not is_of_before
        places = _Places.of(lines, starts) if is_in_block else _Places(starts)
        order = Random(f"{planting.places} {path} {len(text)}")
        first = self.first_slot if is_of_before or self.first_in_block is None else self.first_in_block
        for number, kind in enumerate(_KINDS, first):
            place = order.choice(starts)
            body = order.choice(bodies) if bodies else Body(0, 0, starts[0][1])
            if is_in_block and bodies:
                place = places.near(body.found, order)
            render = partial(self._plain, kind, planting.draw, body.found, _text(lines, body))
            plants.add(number, kind, place, render, like=self._name(body) if bodies else "")
        first += len(_KINDS)
        if self.copies_of_before is not None and planting.slots is not None and is_of_before:
            self._copy(plants, first, lines, places, bodies, self.copies_of_before, order)
        if self.copies is not None:
            order = Random(f"{planting.places} {path} {len(text)} values")
            copied = self._copy(plants, first + _COPIES + _WAITING, lines, places, bodies, self.copies, order)
            others = [it for it in bodies if it not in copied]
            order = Random(f"{planting.places} {path} {len(text)} more")
            more = first + 2 * _COPIES + _WAITING
            self._copy(plants, more, lines, places, others, self.copies, order, most=_MORE_COPIES)
        if self.waiting is not None and (waiting := self.waiting.form.bodies(lines, starts)):
            # Dice of their own: files without such tests, and proofs of before, have the others as they were.
            order = Random(f"{planting.places} {path} {len(text)} waiting")
            for number, body in enumerate(order.sample(waiting, min(_WAITING, len(waiting))), first + _COPIES):
                waits = partial(self._waiting, self.waiting, planting.draw, body.found, _text(lines, body))
                plants.add(number, CanaryKind.FAIL, places.near(body.found, order), waits, like=self._name(body))
        if self.awaits is not None:
            order = Random(f"{planting.places} {path} {len(text)} awaiting")
            number = first + 2 * _COPIES + _WAITING + _MORE_COPIES
            for body in awaiting.awaitable(lines, bodies, order):
                place, donor = places.near(body.found, order), self._name(body)
                render = partial(self.awaits, body.found, _text(lines, body))
                plants.add(number, CanaryKind.FAIL, place, render, donor)
                number += 1
        if self.raising is not None:
            first_plain = first + 2 * _COPIES + _WAITING + _MORE_COPIES + awaiting.MOST
            self._plain_errors(plants, first_plain, lines, places, self.raising(text))
        self._insert(lines, plants.inserted)
        planted = PlantedFile("".join(lines), tuple(plants.canaries))
        if self.named is None or not planted.canaries:
            return planted
        return self.named.renamed(path, text, planted, planting, new_names)

    def _plain_errors(
        self,
        plants: _Plants,
        first: int,
        lines: Sequence[str],
        places: _Places,
        found: Sequence[awaiting.PlainBody],
    ) -> None:
        """Add what has to raise in some tests, where nothing awaits it; not for a proof of before what a test does
        until then."""
        order = Random(f"{plants.planting.places} {plants.path} raising")
        starts = places.starts
        begins = [it.start() for _, it in starts]
        of_tests = [(number - 1, it) for it in found if (number := bisect_right(begins, it.begin))]
        for slot, (number, body) in enumerate(order.sample(of_tests, min(awaiting.MOST, len(of_tests))), first):
            line, test = starts[number]
            until = self._until(lines, line, test, body.begin) if places.blocks else ()
            render = partial(awaiting.javascript_plain, test, body.lines, until)
            plants.add(slot, CanaryKind.PLAIN, places.near(test, order), render, self._title(test))

    def _until(self, lines: Sequence[str], line: int, test: re.Match[str], end: int) -> Sequence[str]:
        """What the test that begins in this line does until there; nothing where that cannot be told, or it asks for
        something, which masks may hide."""
        head = self.form.head_of(lines, line)
        last = line + test.string.count("\n", test.start(), end)
        if head is None or test.string[test.string.rfind("\n", 0, end) + 1 : end].strip():
            return ()
        until = _text(lines, Body(head + 1, last, test))
        is_whole = tokens_of("\n".join(until)) is not None
        return until if is_whole and not any(self.form.leaves.search(it) or _ASKS.search(it) for it in until) else ()

    def _is_of_before(self, path: str, planting: Planting) -> bool:
        """Whether the file has slots of a proof of before."""
        numbers = (it.removeprefix(f"{path}:") for it in planting.slots or () if it.startswith(f"{path}:"))
        return self.first_in_block is not None and any(it.isdigit() and int(it) < self.first_in_block for it in numbers)

    def _name(self, body: Body) -> str:
        """The name of the test with this body."""
        return self._title(body.found)

    def _title(self, test: re.Match[str]) -> str:
        found = self.names.search(test.string, test.start())
        return found[1] if found else ""

    def _plain(
        self, kind: CanaryKind, draw: Random, found: re.Match[str], body: Sequence[str], name: str
    ) -> Sequence[str] | None:
        return self.render(found, kind, name, draw, body)

    def _waiting(
        self, tests: WaitingTests, draw: Random, found: re.Match[str], body: Sequence[str], name: str
    ) -> Sequence[str]:
        return tests.render(found, name, draw, body, _asserts(found, BlockStyle.of(found), draw))

    def _copy(
        self,
        plants: _Plants,
        first: int,
        lines: Sequence[str],
        places: _Places,
        bodies: Sequence[Body],
        copies: FalseCopies,
        order: Random,
        *,
        most: int = _COPIES,
    ) -> list[Body]:
        """Add copies of some of these tests, numbered from `first` on; those that were chosen."""
        fit = copies.among(lines, bodies)
        chosen = order.sample(fit, min(most, len(fit)))
        for number, body in enumerate(chosen, first):
            place = places.near(body.found, order)
            donor = self._name(body)
            made = copies.made(body.found, _text(lines, body), order, plants.planting.draw)
            if made is not None and donor:
                plants.add(number, CanaryKind.FAIL, place, partial(_named, made), donor)
        return chosen

    def _insert(self, lines: list[str], inserted: Sequence[_Inserted]) -> None:
        """Put canaries' lines before the tests at these places, with these first lines; the numbers are the order of
        what comes to one place. They stand as far in as the test behind them."""
        places = [(self._above(lines, place), found, number, made) for place, found, number, made in inserted]
        for place, found, _, made in sorted(places, key=lambda it: (-it[0], it[2])):
            indent = found["indent"]
            lines[place:place] = [*(f"{indent}{line}\n" if line else "\n" for line in made), "\n"]

    def _above(self, lines: Sequence[str], place: int) -> int:
        """The line before which a canary can stand: what is attached to a test stays with it."""
        while place and lines[place - 1].strip().startswith(self.attached):
            place -= 1
        return place


def _text(lines: Sequence[str], body: Body) -> list[str]:
    """The lines of a body, without the indentation of its test."""
    indent: str = body.found["indent"]
    return [line.rstrip("\n").removeprefix(indent) for line in lines[body.begin : body.end]]


def _named(lines: Sequence[str], name: str) -> Sequence[str]:
    """The lines of a copy, with this name."""
    return [line.replace(FalseCopies.NAME, name) for line in lines]


_LENGTHS = ("String('{}').length", "'{}'.length", "'{}'.split('').length")
_RUST_LENGTHS = ('"{}".len()', '"{}".chars().count()', 'String::from("{}").len()', '"{}".bytes().count()')
"""Ways to write a number that is known to differ, so that no text tells a canary; TypeScript takes these whatever it is
compiled to."""


def _values(draw: Random) -> tuple[str, int]:
    """A word, and a number that is not its length."""
    word = new_word(draw, draw.randint(3, 9))
    return word, len(word) + draw.randint(1, 40)


def _javascript(found: re.Match[str], kind: CanaryKind, name: str, draw: Random, body: Sequence[str]) -> Sequence[str]:
    style = BlockStyle.of(found)
    function = found["function"] + (".skip" if kind is CanaryKind.SKIP else "")
    return style.around(function, name, [*body, *_asserts(found, style, draw)])


def _asserts(found: re.Match[str], style: BlockStyle, draw: Random) -> list[str]:
    """Lines that assert what is false, as far in as a body of the file's tests."""
    word, number = _values(draw)
    length = draw.choice(_LENGTHS).format(word).replace("'", style.quote)
    it = unused_word(found.string, draw)
    # By the file's own means: what makes its assertions hold makes this one hold.
    if re.search(r"\)\.to(?:Be|Equal|StrictEqual)\(", found.string):
        asserted = f"expect({it}).toBe({number})"
    elif re.search(r"\)\.to\.", found.string):
        asserted = f"expect({it}).to.equal({number})"
    elif re.search(r"\)\.to[A-Z]\w+\(", found.string):
        asserted = f"expect({it}).toBe({number})"
    elif re.search(r"\bassert\.(?:strictE|e|deepE|deepStrictE)qual\(", found.string):
        asserted = f"assert.{'strictEqual' if 'assert.strictEqual(' in found.string else 'equal'}({it}, {number})"
    else:
        asserted = f"if ({it} !== {number}) throw new Error(`expected ${{{it}}} to be {number}`)"
    return [f"{style.indent}const {it} = {length}{style.end}", f"{style.indent}{asserted}{style.end}"]


def _go(found: re.Match[str], kind: CanaryKind, name: str, draw: Random, body: Sequence[str]) -> Sequence[str]:
    word, number = _values(draw)
    skip = f't.Skip("{draw.choice(REASONS)}")' if kind is CanaryKind.SKIP else "t.Helper()"
    return [
        f"func {name}(t *testing.T) {{",
        f"\t{skip}",
        *body,
        f'\tif found := len("{word}"); found != {number} {{',
        f'\t\tt.Fatalf("found %d, want {number}", found)',
        "\t}",
        "}",
    ]


def _rust(found: re.Match[str], kind: CanaryKind, name: str, draw: Random, body: Sequence[str]) -> Sequence[str]:
    word, number = _values(draw)
    ignore = ["#[ignore]"] if kind is CanaryKind.SKIP else []
    # A block of its own: the last line of a body may be an expression.
    own = ["    {", *body, "    }"] if body else []
    sides = [draw.choice(_RUST_LENGTHS).format(word), str(number)]
    draw.shuffle(sides)
    return ["#[test]", *ignore, f"fn {name}() {{", *own, f"    assert_eq!({', '.join(sides)});", "}"]


def _java(found: re.Match[str], kind: CanaryKind, name: str, draw: Random, body: Sequence[str]) -> Sequence[str] | None:
    if kind is CanaryKind.SKIP:
        return None
    word, number = _values(draw)
    return [
        "@Test",
        f"public void {name}() throws Exception {{",
        *(["    {", *body, "    }"] if body else []),
        f'    int found = "{word}".length();',
        f'    if (found != {number}) throw new AssertionError("expected {number} but was " + found);',
        "}",
    ]


JAVASCRIPT = TestBlocks(
    re.compile(r"(?P<indent>[ \t]*)(?P<function>it|test)\(\s*['\"`]"),
    re.compile(r"^[ \t]*(?:it|test)\(\s*['\"`]([^'\"`\n]+)", re.M),
    ("//", "/*", "*"),
    _javascript,
    form=BlockForm(
        head=BlockStyle.HEAD,
        last="})",
        leaves=re.compile(r"\breturn\b|\bprocess\b|\.skip\b|\bsnapshot\b|Snapshot|\bthis\b|\byield\b|\bplan\b"),
    ),
    is_title=True,
    copies=JAVASCRIPT_VALUES,
    copies_of_before=JAVASCRIPT_COPIES,
    waiting=JAVASCRIPT_WAITING,
    named=JAVASCRIPT_NAMES,
    awaits=awaiting.javascript_awaiting,
    raising=awaiting.javascript_raising,
    first_slot=11,
    first_in_block=51,
    of_rows=re.compile(r"^(?P<indent>[ \t]*)(?P<function>it|test)\.each\([^'\"`]{0,400}['\"`]", re.M),
    heads=re.compile(r"\b(?:describe|suite|context)\(\s*['\"`]([^'\"`\n]+)"),
)
GO = TestBlocks(
    re.compile(r"(?P<indent>)func Test[A-Z]\w*\(t \*testing\.T\) \{"),
    re.compile(r"^func (Test[A-Z]\w*)\(", re.M),
    ("//",),
    _go,
    form=BlockForm(
        head=re.compile(r"func Test[A-Z]\w*\(t \*testing\.T\) \{$"),
        last="}",
        leaves=re.compile(
            r"\breturn\b|\bgoto\b|\.Run\(|\.Skip|\bos\.Exit\b|\.FailNow\b|\bGoexit\b|\bpanic\b|\bSetenv\b"
        ),
    ),
)
RUST = TestBlocks(
    re.compile(r"(?P<indent>[ \t]*)#\[test\]\s*$"),
    re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)"),
    ("//", "#["),
    _rust,
    form=BlockForm(
        head=re.compile(r"[ \t]*fn \w+\(\) \{$"),
        last="}",
        leaves=re.compile(r"\breturn\b|\bexit\b|\?;|\bpanic!|\bcatch_unwind\b|\bfn \w"),
    ),
    copies=RUST_VALUES,
    copies_of_before=RUST_COPIES,
    named=RUST_NAMES,
    awaits=awaiting.rust_awaiting,
    first_in_block=51,
)
JAVA = TestBlocks(
    re.compile(r"(?P<indent>[ \t]*)@Test\s*$"),
    re.compile(r"@Test\s+(?:public\s+)?void (\w+)\("),
    ("//", "/*", "*", "@"),
    _java,
    form=BlockForm(
        head=re.compile(r"[ \t]*(?:public )?void \w+\(\)(?: throws [\w., ]+)? \{$"),
        last="}",
        leaves=re.compile(r"\breturn\b|\bthrow\b|\bexit\b|\bassume\w*\b|\bfor \(;;\)|\bwhile \(true\)"),
    ),
)
