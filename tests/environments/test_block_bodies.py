"""The bodies of tests of other languages than Python, and the work of finding them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING, SupportsIndex, overload

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.suites.canaries.blockbodies import Body
from environments.suites.canaries.blockcopies import JAVASCRIPT_COPIES
from environments.suites.canaries.blocks import GO, JAVASCRIPT, RUST
from environments.suites.canaries.canary import Planting

if TYPE_CHECKING:  # pytest takes it for a class of tests
    from environments.suites.canaries.blocks import TestBlocks

LINES = st.lists(
    st.sampled_from(
        [
            "it('a', () => {",
            "  it('b', function () {",
            "\tit('c', () => {",
            "})",
            "  });",
            "\t})  ;",
            "  return 1",
            "  expect(a).toBe(1)",
            "    .should.equal(2)",
            f"{'  ' * 3}expect(a).toBe('{'x' * 212}')",
            "@each",
            "",
        ]
    )
    | st.text(alphabet="it('a, ()=>{})\n .toBe1expect")
)


class CountedLines(list[str]):
    """Lines that count how many of them are read."""

    read = 0

    @overload
    def __getitem__(self, place: SupportsIndex, /) -> str: ...

    @overload
    def __getitem__(self, place: slice, /) -> list[str]: ...

    def __getitem__(self, place: SupportsIndex | slice, /) -> str | list[str]:
        found = super().__getitem__(place)
        self.read += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self) -> Iterator[str]:
        for line in super().__iter__():
            self.read += 1
            yield line


def starts_of(blocks: TestBlocks, lines: Sequence[str]) -> list[tuple[int, re.Match[str]]]:
    return [(number, found) for number, line in enumerate(lines) if (found := blocks.first_line.match(line))]


def plain_end(blocks: TestBlocks, lines: Sequence[str], head: int, indent: str) -> int | None:
    """The end of a body, looked for from its head on."""
    last = f"{indent}{blocks.form.last}"
    ends = [line for line in range(head + 1, len(lines)) if lines[line].rstrip().removesuffix(";") == last]
    return ends[0] if ends else None


@given(LINES)
def test_a_body_ends_at_the_first_line_that_closes_its_test(parts: list[str]) -> None:
    lines = "\n".join(parts).splitlines(keepends=True)
    starts = starts_of(JAVASCRIPT, lines)
    wanted: list[Body] = []
    for place, found in starts:
        if place and lines[place - 1].strip().startswith(("#[", "@")):
            continue
        head = next((it for it in (place, place + 1) if it < len(lines) and JAVASCRIPT.form.head.match(lines[it])), -1)
        end = plain_end(JAVASCRIPT, lines, head, found["indent"]) if head >= 0 else None
        body = "".join(lines[head + 1 : end]) if end is not None else ""
        if end is not None and body and not JAVASCRIPT.form.leaves.search(body):
            wanted.append(Body(head + 1, end, found))
    bodies = JAVASCRIPT.form.bodies(lines, starts)
    assert bodies == wanted
    fit = [
        it
        for it in bodies
        if JAVASCRIPT_COPIES.places(
            [line.rstrip("\n").removeprefix(it.found["indent"]) for line in lines[it.begin : it.end]]
        )
    ]
    assert JAVASCRIPT_COPIES.among(lines, bodies) == fit


@pytest.mark.parametrize("tail", ["", "})\n"], ids=["none is closed", "one line closes all"])
@pytest.mark.parametrize(
    ("blocks", "test"),
    [
        (JAVASCRIPT, "it('adds', () => {\n  expect(a).toBe(1)\n"),
        (RUST, "#[test]\nfn adds() {\n    assert_eq!(a, 1);\n"),
        (GO, "func TestAdds(t *testing.T) {\n\tadd()\n"),
    ],
    ids=["JavaScript", "Rust", "Go"],
)
def test_each_line_is_read_a_few_times_however_many_tests_a_file_has(blocks: TestBlocks, test: str, tail: str) -> None:
    end = tail.replace("})", blocks.form.last)
    for tests in (10, 1000):
        lines = CountedLines([*(test * tests).splitlines(keepends=True), *end.splitlines(keepends=True)])
        starts = starts_of(blocks, list(lines))
        lines.read = 0
        bodies = blocks.form.bodies(lines, starts)
        if blocks.copies is not None:
            blocks.copies.among(lines, bodies)
        assert lines.read <= 6 * len(lines)
        assert bool(bodies) is bool(tail)


@given(LINES)
def test_any_text_can_be_planted(parts: list[str]) -> None:
    text = "\n".join(parts)
    for blocks in (JAVASCRIPT, RUST, GO):
        planted = blocks.plant("a.test", text, Planting("here", Random(1), None, set()))
        assert [line for line in text.splitlines() if line not in planted.text] == []
