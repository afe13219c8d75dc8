"""The rules of lineage that are pure: real lines, definitions, patch ids, lines of branches, landings."""

from __future__ import annotations

import random

import pytest

from chains.lineage.definitions import DefinitionOwners
from chains.lineage.landings import LandedRange, map_landings
from chains.lineage.order import Lines, Segment, segments
from chains.lineage.owners import LineOwners
from chains.lineage.patch_ids import patch_id
from chains.lineage.real_lines import is_real, kind_and_family
from prchain.core.git.line_changes import FileLines, LineHunk


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "x = 1"),
        ("a.py", "@property"),
        ("a.py", 'raise ValueError("there is no such thing here")'),
        ("a.rs", "let x = y;"),
        ("a.rs", "#[derive(Debug)]"),
        ("a.go", "return err"),
        ("a.ts", "export const limit = 3;"),
        ("a.c", "*p = 4;"),
        ("a.c", "#define LIMIT 4"),
        ("a.sql", "select 1"),
    ],
)
def test_lines_that_do_something_are_real(path: str, line: str) -> None:
    assert is_real(line.encode() + b"\r\n", kind_and_family(path.encode())[1])


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a.py", "   "),
        ("a.py", "# x = 1"),
        ("a.py", "import os"),
        ("a.py", "from os import path"),
        ("a.py", "    path,"),
        ("a.py", "    )"),
        ("a.py", "else:"),
        ("a.py", '"""Say what is true."""'),
        ("a.py", "This returns what the caller wants."),
        ("a.rs", "use std::io::{self, Read};"),
        ("a.rs", "pub(crate) mod walk;"),
        ("a.rs", "/// Says what is true."),
        ("a.rs", "} else {"),
        ("a.go", 'log "example.org/log"'),
        ("a.go", '"fmt"'),
        ("a.ts", "import { a } from 'b';"),
        ("a.js", "const a = require('b');"),
        ("a.js", "export * from './c';"),
        ("a.java", "import a.b.C;"),
        ("a.c", "#include <stdio.h>"),
        ("a.c", " * Says what is true."),
        ("a.sql", "-- select 1"),
    ],
)
def test_comments_imports_brackets_and_blanks_are_not_real(path: str, line: str) -> None:
    assert not is_real(line.encode() + b"\n", kind_and_family(path.encode())[1])


def change(removed: str = "", added: str = "", path: str = "a.py", old: str | None = "") -> FileLines:
    sides = [tuple(f"{line}\n".encode() for line in side.split("\n") if line) for side in (removed, added)]
    hunk = LineHunk(min(1, len(sides[0])), len(sides[0]), 1, len(sides[1]), b"", *sides)
    old_path = path.encode() if old == "" else old.encode() if old else None
    return FileLines(old_path, path.encode(), b"1", b"2", hunks=[hunk])


def test_a_definition_is_the_first_ones_that_brought_it_also_when_it_changes_or_moves() -> None:
    known = DefinitionOwners()
    known.apply(1, [change(added="def first(a):\nclass Whole:")])
    known.apply(2, [change(removed="def first(a):", added="def first(a, b):")])
    assert known.anywhere("first") == known.in_file(b"a.py", "first") == 1
    known.apply(3, [change(removed="def first(a, b):"), change(added="def first(a, b):", path="b.py")])
    assert known.in_file(b"b.py", "first") == 1
    known.apply(4, [FileLines(b"b.py", b"c.py")])
    assert known.in_file(b"c.py", "first") == known.anywhere("first") == 1
    assert known.in_file(b"b.py", "first") is None


def test_a_name_that_is_defined_twice_is_nobodys() -> None:
    known = DefinitionOwners()
    known.apply(1, [change(added="def run():")])
    known.apply(2, [change(added="def run():", path="b.py")])
    assert known.anywhere("run") is None
    assert known.in_file(b"b.py", "run") == 2
    known.apply(3, [change(added="    def run():", path="b.py")])
    assert known.in_file(b"b.py", "run") is None
    known.apply(4, [change(removed="def run():\n    def run():", path="b.py")])
    assert known.anywhere("run") == 1


def test_definitions_of_a_fork_do_not_change_those_of_the_other_branch() -> None:
    known = DefinitionOwners()
    known.apply(1, [change(added="def run():")])
    other = known.fork()
    other.apply(2, [change(removed="def run():")])
    assert (known.anywhere("run"), other.anywhere("run")) == (1, None)


def test_definitions_rebuilt_from_files_are_the_same() -> None:
    chance = random.Random(3)
    known = DefinitionOwners()
    for owner in range(1, 200):
        name, path = f"def f{chance.randint(0, 9)}():", f"{chance.randint(0, 4)}.py"
        known.apply(owner, [change(*((name, "") if chance.random() < 0.5 else ("", name)), path=path)])
        again = DefinitionOwners.of(known.files)
        assert [again.anywhere(f"f{n}") for n in range(10)] == [known.anywhere(f"f{n}") for n in range(10)]


def test_owners_of_a_fork_do_not_change_those_of_the_other_branch() -> None:
    state = LineOwners.empty()
    state.apply(1, [change(added="a\nb\nc", old=None)])
    other = state.fork()
    other.apply(2, [change(removed="a", added="x\ny")])
    assert list(state.files[b"a.py"] or ()) == [1, 1, 1]
    assert list(other.files[b"a.py"] or ()) == [2, 2, 1, 1]


def test_a_hunk_that_does_not_fit_leaves_the_file_without_owners() -> None:
    state = LineOwners.empty()
    state.apply(1, [change(added="a", old=None)])
    state.apply(2, [change(removed="a\nb\nc", added="x")])
    assert state.files[b"a.py"] is None
    assert state.unread == {b"a.py"}


def test_a_patch_id_ignores_places_and_white_space_and_nothing_else() -> None:
    first = change("a = 1\nb = 2", "a = 3\nb = 4")
    moved = change("a  = 1\n  b = 2", "a = 3\nb =  4")
    moved.hunks[0] = moved.hunks[0]._replace(old_start=90, new_start=91)
    assert patch_id([first]) == patch_id([moved]) is not None
    assert patch_id([first]) != patch_id([change("a = 1\nb = 2", "a = 3\nb = 5")])
    assert patch_id([first]) != patch_id([change("a = 1\nb = 2", "a = 3\nb = 4", path="b.py")])
    assert patch_id([change("version = 1", "version = 2")]) is None


PARENTS = {
    "root": (),
    "a": ("root",),
    "b": ("a",),
    "side": ("a",),
    "merge": ("b", "side"),
    "old": ("a",),
    "picked": ("old",),
    "home": ("merge", "picked"),
}


def test_lines_that_share_a_beginning_are_walked_once() -> None:
    found = segments(PARENTS, ["home", "picked", "a"])
    assert found == [Segment(None, ("root", "a", "b", "merge", "home")), Segment("a", ("old", "picked"))]
    assert segments(PARENTS, ["home", "picked"], walked=["root", "a", "b"]) == [
        Segment("b", ("merge", "home")),
        Segment("a", ("old", "picked")),
    ]


def test_a_merge_brings_what_its_first_parent_does_not_have() -> None:
    lines = Lines(PARENTS, segments(PARENTS, ["home", "picked"]))
    assert sorted(lines.brought("home")) == ["old", "picked"]
    assert list(lines.brought("merge")) == ["side"]
    assert lines.is_on_line("a", "picked") and lines.is_on_line("a", "home")
    assert not lines.is_on_line("old", "home")
    assert not lines.is_on_line("b", "picked")


def test_a_landing_whose_base_is_not_below_it_owns_its_last_commit_alone() -> None:
    lines = Lines(PARENTS, segments(PARENTS, ["home"]))
    walked = dict.fromkeys(["root", "a", "b", "merge", "home"])
    ranges = [
        LandedRange(1, "main", "root", "b", True),
        LandedRange(2, "main", "elsewhere", "home", True),
        LandedRange(3, "other", "a", "picked", True),
    ]
    found = map_landings(ranges, lines, walked)
    assert found.owners == {"a": 1, "b": 1, "home": 2}
    assert found.off_line == [3]
