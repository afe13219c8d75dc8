"""Canaries for runners of other languages than Python: whole tests in front of the file's own, by their first lines.

Without a parser they call nothing of the code under test; what makes tests pass makes them pass as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from environments.suites.canaries.canary import Canary, CanaryKind, PlantedFile, Planting
from environments.suites.canaries.names import REASONS, new_name, new_word

_KINDS = (CanaryKind.FAIL, CanaryKind.FAIL, CanaryKind.SKIP)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True, slots=True)
class TestBlocks:
    """The tests of a language in a text. `first_line` matches the line with which one begins; its groups are `indent`,
    and what `render` needs. `names` finds the names of tests. `attached` begins lines that belong to what follows."""

    first_line: re.Pattern[str]
    names: re.Pattern[str]
    attached: tuple[str, ...]
    render: Callable[[re.Match[str], CanaryKind, str, Random], Sequence[str] | None]
    """From the first line of the test that follows (``string`` of the match is the file's text), kind, name and what
    draws values to the canary's lines, without indentation and always as many; None where the language has no such
    kind."""
    is_title: bool = False
    """Whether names are titles, of several words."""

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
        planting.taken.update(names)
        if not starts or not names:
            return PlantedFile(text, ())
        order = Random(f"{planting.places} {path} {len(text)}")
        canaries: list[Canary] = []
        inserted: list[tuple[int, int, list[str]]] = []
        for number, kind in enumerate(_KINDS, 1):
            slot, (place, found) = f"{path}:{number}", order.choice(starts)
            if planting.slots is not None and slot not in planting.slots:
                continue
            name = self._name(planting, names)
            made = self.render(found, kind, name, planting.draw)
            if made is None:
                continue
            planting.taken.add(name)
            canaries.append(Canary(slot, kind, path, name))
            inserted.append(
                (self._above(lines, place), number, [f"{found['indent']}{line}\n" for line in made] + ["\n"])
            )
        for place, _, more in sorted(inserted, key=lambda it: (-it[0], it[1])):
            lines[place:place] = more
        return PlantedFile("".join(lines), tuple(canaries))

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


def _values(draw: Random) -> tuple[str, int]:
    """A word, and a number that is not its length."""
    word = new_word(draw, draw.randint(3, 9))
    return word, len(word) + draw.randint(1, 40)


def _javascript(found: re.Match[str], kind: CanaryKind, name: str, draw: Random) -> list[str]:
    word, number = _values(draw)
    function = found["function"]
    if kind is CanaryKind.SKIP:
        return [f'{function}.skip("{name}", () => {{', f'  String("{word}");', "});"]
    # By the file's own means: what makes its assertions hold makes this one hold.
    if re.search(r"\)\.to(?:Be|Equal|StrictEqual)\(", found.string):
        asserted = f"expect(found).toBe({number});"
    elif re.search(r"\)\.to\.", found.string):
        asserted = f"expect(found).to.equal({number});"
    elif re.search(r"\bassert\.(?:strictE|e|deepE|deepStrictE)qual\(", found.string):
        asserted = f"assert.{'strictEqual' if 'assert.strictEqual(' in found.string else 'equal'}(found, {number});"
    else:
        asserted = f"if (found !== {number}) throw new Error(`expected ${{found}} to be {number}`);"
    return [f'{function}("{name}", () => {{', f'  const found = String("{word}").length;', f"  {asserted}", "});"]


def _go(found: re.Match[str], kind: CanaryKind, name: str, draw: Random) -> list[str]:
    word, number = _values(draw)
    skip = f't.Skip("{draw.choice(REASONS)}")' if kind is CanaryKind.SKIP else "t.Helper()"
    return [
        f"func {name}(t *testing.T) {{",
        f"\t{skip}",
        f'\tif found := len("{word}"); found != {number} {{',
        f'\t\tt.Fatalf("found %d, want {number}", found)',
        "\t}",
        "}",
    ]


def _rust(found: re.Match[str], kind: CanaryKind, name: str, draw: Random) -> list[str]:
    word, number = _values(draw)
    ignore = ["#[ignore]"] if kind is CanaryKind.SKIP else []
    return ["#[test]", *ignore, f"fn {name}() {{", f'    assert_eq!("{word}".len(), {number});', "}"]


def _java(found: re.Match[str], kind: CanaryKind, name: str, draw: Random) -> list[str] | None:
    if kind is CanaryKind.SKIP:
        return None
    word, number = _values(draw)
    return [
        "@Test",
        f"public void {name}() {{",
        f'    int found = "{word}".length();',
        f'    if (found != {number}) throw new AssertionError("expected {number} but was " + found);',
        "}",
    ]


JAVASCRIPT = TestBlocks(
    re.compile(r"(?P<indent>[ \t]*)(?P<function>it|test)\(\s*['\"`]"),
    re.compile(r"^[ \t]*(?:it|test)\(\s*['\"`]([^'\"`\n]+)", re.M),
    ("//", "/*", "*"),
    _javascript,
    is_title=True,
)
GO = TestBlocks(
    re.compile(r"(?P<indent>)func Test[A-Z]\w*\(t \*testing\.T\) \{"),
    re.compile(r"^func (Test[A-Z]\w*)\(", re.M),
    ("//",),
    _go,
)
RUST = TestBlocks(
    re.compile(r"(?P<indent>[ \t]*)#\[test\]\s*$"),
    re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*)*fn (\w+)"),
    ("//", "#["),
    _rust,
)
JAVA = TestBlocks(
    re.compile(r"(?P<indent>[ \t]*)@Test\s*$"),
    re.compile(r"@Test\s+(?:public\s+)?void (\w+)\("),
    ("//", "/*", "*", "@"),
    _java,
)
