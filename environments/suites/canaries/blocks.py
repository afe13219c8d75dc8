"""Canaries for runners of other languages than Python: whole tests in front of the file's own, by their first lines.

One that must fail does what one of the file's own tests does, so that it calls the code under test, and then asserts
what is false. Tests are found by their first and last lines, as formatters lay them out. Of one that may end before its
last line, or whose parts are reported by themselves, none is made; a file without another one has canaries that call
nothing. In JavaScript and Rust two more are copies that ask for another value in one of the test's own assertions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from environments.suites.canaries.blockbodies import BlockForm, Body
from environments.suites.canaries.blockcopies import JAVASCRIPT_COPIES, RUST_COPIES, FalseCopies
from environments.suites.canaries.blockstyle import BlockStyle
from environments.suites.canaries.canary import Canary, CanaryKind, PlantedFile, Planting
from environments.suites.canaries.names import REASONS, new_name, new_word

_KINDS = (CanaryKind.FAIL, CanaryKind.FAIL, CanaryKind.SKIP)
_COPIES = 2
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


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
    first_slot: int = 1
    """The number of a file's first canary: another one since the rules were changed, so that no slot of a proof of
    before means another canary."""

    def plant(self, path: str, text: str, planting: Planting) -> PlantedFile:
        """`canary.Planter`."""
        lines = text.splitlines(keepends=True)
        starts = []
        begin = 0
        for number, line in enumerate(lines):
            if found := self.first_line.match(text, begin, begin + len(line)):
                starts.append((number, found))
            begin += len(line)
        names = [found[1] for found in self.names.finditer(text)]
        planting.taken.update(_IDENTIFIER.findall(text))
        planting.taken.update(names, planting.named)
        if not starts or not names:
            return PlantedFile(text, ())
        bodies = self.form.bodies(lines, starts)
        order = Random(f"{planting.places} {path} {len(text)}")
        canaries: list[Canary] = []
        inserted: list[tuple[int, int, list[str]]] = []
        for number, kind in enumerate(_KINDS, self.first_slot):
            slot, (place, _) = f"{path}:{number}", order.choice(starts)
            body = order.choice(bodies) if bodies else Body(0, 0, starts[0][1])
            if planting.slots is not None and slot not in planting.slots:
                continue
            name = self._name(planting, names)
            found = body.found
            made = self.render(found, kind, name, planting.draw, _text(lines, body))
            if made is None:
                continue
            planting.taken.add(name)
            canaries.append(Canary(slot, kind, path, name))
            inserted.append(
                (self._above(lines, place), number, [f"{found['indent']}{line}\n" for line in made] + ["\n"])
            )
        for number, body in self._copied(lines, bodies, order):
            slot, (place, _) = f"{path}:{number}", order.choice(starts)
            found = body.found
            donor = self.names.search(text, found.start())
            made = self.copies.made(found, _text(lines, body), order, planting.draw) if self.copies else None
            if made is None or donor is None or (planting.slots is not None and slot not in planting.slots):
                continue
            name = self._name(planting, names)
            planting.taken.add(name)
            canaries.append(Canary(slot, CanaryKind.FAIL, path, name, donor[1]))
            more = [line.replace(FalseCopies.NAME, name) for line in made]
            inserted.append(
                (self._above(lines, place), number, [f"{found['indent']}{line}\n" for line in more] + ["\n"])
            )
        for place, _, more in sorted(inserted, key=lambda it: (-it[0], it[1])):
            lines[place:place] = more
        return PlantedFile("".join(lines), tuple(canaries))

    def _copied(self, lines: Sequence[str], bodies: Sequence[Body], order: Random) -> list[tuple[int, Body]]:
        """The tests that are copied, each with its canary's number, behind those of the others."""
        fit = self.copies.among(lines, bodies) if self.copies is not None else []
        first = self.first_slot + len(_KINDS)
        return [(number, it) for number, it in enumerate(order.sample(fit, min(_COPIES, len(fit))), first)]

    def _name(self, planting: Planting, names: Sequence[str]) -> str:
        if not self.is_title:
            return new_name(planting.draw, names, planting.taken)
        words = [word for name in names for word in re.findall(r"[A-Za-z]+", name)] or ["works"]
        while True:
            title = " ".join(planting.draw.choice(words) for _ in range(planting.draw.randint(3, 6)))
            if title not in planting.taken:
                return title
            words.append(new_word(planting.draw))

    def _above(self, lines: Sequence[str], place: int) -> int:
        """The line before which a canary can stand: what is attached to a test stays with it."""
        while place and lines[place - 1].strip().startswith(self.attached):
            place -= 1
        return place


def _text(lines: Sequence[str], body: Body) -> list[str]:
    """The lines of a body, without the indentation of its test."""
    indent: str = body.found["indent"]
    return [line.rstrip("\n").removeprefix(indent) for line in lines[body.begin : body.end]]


_LENGTHS = (
    "String('{}').length",
    "'{}'.length",
    "Array.from('{}').length",
    "[...'{}'].length",
    "'{}'.split('').length",
)
_RUST_LENGTHS = ('"{}".len()', '"{}".chars().count()', 'String::from("{}").len()', '"{}".bytes().count()')
"""Ways to write a number that is known to differ, so that no text tells a canary."""


def _values(draw: Random) -> tuple[str, int]:
    """A word, and a number that is not its length."""
    word = new_word(draw, draw.randint(3, 9))
    return word, len(word) + draw.randint(1, 40)


def _javascript(found: re.Match[str], kind: CanaryKind, name: str, draw: Random, body: Sequence[str]) -> Sequence[str]:
    style = BlockStyle.of(found)
    word, number = _values(draw)
    length = draw.choice(_LENGTHS).format(word).replace("'", style.quote)
    it = new_word(draw, draw.randint(4, 9))
    while it in found.string:
        it += new_word(draw)
    function = found["function"] + (".skip" if kind is CanaryKind.SKIP else "")
    # By the file's own means: what makes its assertions hold makes this one hold.
    if re.search(r"\)\.to(?:Be|Equal|StrictEqual)\(", found.string):
        asserted = f"expect({it}).toBe({number})"
    elif re.search(r"\)\.to\.", found.string):
        asserted = f"expect({it}).to.equal({number})"
    elif re.search(r"\bassert\.(?:strictE|e|deepE|deepStrictE)qual\(", found.string):
        asserted = f"assert.{'strictEqual' if 'assert.strictEqual(' in found.string else 'equal'}({it}, {number})"
    else:
        asserted = f"if ({it} !== {number}) throw new Error(`expected ${{{it}}} to be {number}`)"
    asserts = [f"{style.indent}const {it} = {length}{style.end}", f"{style.indent}{asserted}{style.end}"]
    return style.around(function, name, [*body, *asserts])


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
    copies=JAVASCRIPT_COPIES,
    first_slot=11,
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
    copies=RUST_COPIES,
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
