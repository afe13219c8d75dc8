"""A patch as the judge reads it: visible, without noise, source cut last, and every cut noted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.code.kinds import FileKind
from prchain.core.errors import GitError
from prchain.core.git import GitRepository
from tests.miner.gitworld import Content, World
from trajectories.verdicts.judged_patch import judged_patch
from trajectories.verdicts.patch_text import (
    _RANKS,
    FileText,
    Piece,
    file_patches,
    file_texts,
    render_patch,
    sections,
)

_EVERY_BYTE = bytes(range(1, 256))

BEFORE: dict[str | bytes, Content] = {
    "src/a.py": "x = 1\n",
    "src/gone.py": "x = 1\n",
    "src/old.bin": b"\0one" * 100,
    "run.sh": "true\n",
    "bytes.txt": b"one\n",
}
AFTER: dict[str | bytes, Content] = {
    "src/a.py": "x = 2",
    "src/gone.py": None,
    "src/old.bin": b"\0two" * 100,
    "src/new.bin": b"\0new" * 100,
    "run.sh": ("100755", b"true\n"),
    "bytes.txt": _EVERY_BYTE + b"\n",
    b"caf\xe9/\x01\n.py": "y = 1\n",
    "sub": ("160000", b"1" * 40),
    "link": ("120000", b"a.py"),
}


@pytest.fixture(scope="module")
def patch(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    world = World(tmp_path_factory.mktemp("patches") / "r.git")
    world.commit("old", BEFORE)
    world.commit("new", AFTER, parents=[world.made("old").number])
    world.save()
    git = GitRepository.open(world.path)
    shas = git.refs("refs/heads")
    return git.patch_text(shas["refs/heads/old"], shas["refs/heads/new"])


def whole(file: FileText) -> str:
    return "".join(piece.text for piece in file.pieces)


def plain(path: str, text: str) -> FileText:
    """A file all of whose lines are changes."""
    return FileText(path, (Piece(text.rstrip("\n")),))


def texts(patch: bytes) -> dict[str, str]:
    return {file_text.path: whole(file_text) for file_text in file_texts(patch)}


def test_every_file_of_a_patch_is_found_and_the_parts_are_the_whole(patch: bytes) -> None:
    assert b"".join(sections(patch)) == patch
    paths = {"src/a.py", "src/gone.py", "src/old.bin", "src/new.bin", "run.sh", "bytes.txt", "sub", "link"}
    assert set(texts(patch)) == paths | {"caf\\xe9/\x01\n.py"} == {file.path for file in file_patches(patch)}
    assert {file.path for file in file_patches(patch) if file.binary} == {"src/old.bin", "src/new.bin"}


def test_a_binary_file_takes_one_line(patch: bytes) -> None:
    assert texts(patch)["src/old.bin"] == "binary file changed, content not shown: src/old.bin"
    assert texts(patch)["src/new.bin"] == "binary file added, content not shown: src/new.bin"


def test_what_git_says_of_a_text_file_stays_but_for_object_ids(patch: bytes) -> None:
    assert texts(patch)["src/a.py"] == (
        "diff --git a/src/a.py b/src/a.py\n--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2\n"
        "\\ No newline at end of file"
    )
    assert "old mode 100644\nnew mode 100755" in texts(patch)["run.sh"]
    assert "deleted file mode" in texts(patch)["src/gone.py"]
    assert "+Subproject commit " in texts(patch)["sub"]
    assert "new file mode 120000" in texts(patch)["link"]
    assert not re.search(r"(?m)^index ", "\n".join(texts(patch).values()))


def test_bytes_and_characters_that_nobody_sees_are_written_as_escapes(patch: bytes) -> None:
    text = texts(patch)["bytes.txt"]
    for byte in (1, 8, 0x0D, 0x1B, 0x7F, 0x80, 0xE9, 0xFF):
        assert f"\\x{byte:02x}" in text
    assert text.isascii()
    assert all(char in "\n\t" or char.isprintable() for char in text)


@pytest.mark.parametrize(
    ("char", "written"),
    [
        ("\u202e", "\\u202e"),
        ("\u200b", "\\u200b"),
        ("\U000e0041", "\\U000e0041"),
        ("\u2028", "\\u2028"),
        ("é", "é"),
        ("漢", "漢"),
        ("\t", "\t"),
        ("\x85", "\\x85"),
    ],
)
def test_only_what_cannot_be_seen_is_escaped(char: str, written: str) -> None:
    patch = f"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -0,0 +1 @@\n+x{char}y\n".encode()
    assert texts(patch)["a.py"].endswith(f"\n+x{written}y")


NUL_FILES: dict[str | bytes, Content] = {
    "src/a.py": b"x = 1\n# \0 end\nevil()\n",
    "src/new.py": b"\0\nimport os\n",
    "src/run": b"#!/bin/sh\ntrue\n\0\nrm -rf build\n",
    "Makefile": b"all:\n\techo \0\n",
    "docs/x.md": "Text in UTF-16.\n".encode("utf-16-le"),
    b"caf\xe9 x.py": b"y = 2\n\0\n",
    "tests/test_a.py": b"def test_a():\n    pass  # \0\n",
    "tests/data/image.png": b"\x89PNG\0\0",
    "src/blob.xyz": b"\0\1\2\xff" * 9,
    "src/clean.py": "y = 2\n",
}


def test_a_nul_byte_hides_no_source_file(tmp_path: Path) -> None:
    """Python and shells run such files: git calls them binary, and the judge has to read them."""
    world = World(tmp_path / "r.git")
    world.commit("old", BEFORE)
    world.commit("new", NUL_FILES, parents=[world.made("old").number])
    world.save()
    git = GitRepository.open(world.path)
    shas = git.refs("refs/heads")
    old, new = shas["refs/heads/old"], shas["refs/heads/new"]
    shown = texts(judged_patch(git, old, new))
    assert "+# \\x00 end\n+evil()" in shown["src/a.py"]
    assert "+import os" in shown["src/new.py"] and "+rm -rf build" in shown["src/run"]
    assert (
        "+\techo \\x00" in shown["Makefile"]
        and "+\\x00" in shown["caf\\xe9 x.py"]
        and "+    pass  # \\x00" in shown["tests/test_a.py"]
    )
    assert "T\\x00e\\x00x\\x00t" in shown["docs/x.md"]
    hidden = [file.path for file in file_texts(judged_patch(git, old, new)) if file.hidden]
    assert hidden == ["src/blob.xyz", "tests/data/image.png"]
    extent = render_patch(file_texts(judged_patch(git, old, new)), 60_000).extent()
    assert extent == "10 files, shown, 2 of them binary, whose content is not"
    assert list(shown) == list(texts(git.patch_text(old, new, functions=True))), "each part in its place"
    assert shown["src/clean.py"] == texts(git.patch_text(old, new, functions=True))["src/clean.py"]


def test_no_patch_is_no_patch() -> None:
    assert file_texts(b"") == []
    with pytest.raises(GitError, match="no patch"):
        file_texts(b"score 1.0\ndiff --git a/a b/a\n")


_PATHS = ["src/a.py", "src/b.py", "lib/c.py", "setup.cfg", "docs/x.md", "tests/test_a.py", "poetry.lock", "data.json"]
_FILES = st.dictionaries(st.sampled_from(_PATHS), st.integers(1, 4_000), max_size=8).map(
    lambda sizes: [plain(path, ("y" * 39 + "\n") * (size // 40) + "z" * (size % 40)) for path, size in sizes.items()]
)


@given(_FILES, st.integers(0, 12_000), st.sets(st.sampled_from(_PATHS)))
def test_what_is_shown_fits_and_what_is_missing_is_said(files: list[FileText], limit: int, first: set[str]) -> None:
    result = render_patch(files, limit, first=first)
    assert result.files == len(files)
    complete = {file.path for file in files} - {*result.cut, *result.left_out}
    assert len(complete) + len(result.cut) + len(result.left_out) == len(files)
    parts = {file.path: whole(file) for file in files}
    assert all(parts[path] in result.text for path in complete)
    assert result.text.count("characters left out ...]") == len(result.cut)
    assert ("[changed too, not shown: " in result.text) == bool(result.left_out)
    notes = 60 * len(result.cut) + 20 * len(result.left_out) + 40
    assert len(result.text) <= limit + notes + len(files)
    assert result.whole == (not result.cut and not result.left_out)
    if sum(map(len, parts.values())) <= limit:
        assert result.whole


@given(_FILES, st.integers(0, 12_000), st.sets(st.sampled_from(_PATHS)))
def test_nothing_is_cut_for_a_file_that_comes_later(files: list[FileText], limit: int, first: set[str]) -> None:
    """Later files do not change which earlier files are whole, cut or left out."""

    def place(file: FileText) -> tuple[int, bool]:
        return file.rank, file.path not in first

    everything = render_patch(files, limit, first=first)
    for last in {place(file) for file in files}:
        first_files = [file for file in files if place(file) <= last]
        prefix = render_patch(first_files, limit, first=first)
        paths = {file.path for file in first_files}
        assert paths.intersection(everything.cut) == set(prefix.cut)
        assert paths.intersection(everything.left_out) == set(prefix.left_out)


def test_the_order_is_source_then_config_docs_tests_and_locks_and_shared_files_first() -> None:
    files = [plain(path, f"text of {path}") for path in reversed(_PATHS)]
    text = render_patch(files, 10_000, first={"lib/c.py"}).text
    assert [line.removeprefix("text of ") for line in text.split("\n")] == [
        "lib/c.py",
        "src/b.py",
        "src/a.py",
        "data.json",
        "setup.cfg",
        "docs/x.md",
        "tests/test_a.py",
        "poetry.lock",
    ]


def test_every_kind_of_file_has_a_place() -> None:
    assert set(_RANKS) == set(FileKind)


def test_a_patch_of_a_thousand_files_names_some_and_counts_the_rest() -> None:
    files = [plain(f"src/part{n:04}.py", "x" * 500) for n in range(1000)]
    result = render_patch(files, 24_000)
    assert len(result.left_out) == 900
    assert "and 700 more]" in result.text
    assert result.extent() == "1,000 files, of which 100 are shown in part and 900 not at all"


def test_names_of_files_that_are_not_shown_are_made_visible_and_scrubbed() -> None:
    files = [plain("a\u202eb ada@example.org", "x" * 500)]
    assert render_patch(files, 0).text == "[changed too, not shown: a\\u202eb [email]]"


MODULE = "".join(
    f"class Book{place}:\n    def read(self):\n"
    + "".join(f"        page_{place}_{line} = read({line})\n" for line in range(40))
    + f"        return {place}\n\n    def close(self):\n        pass\n\n\n"
    for place in range(3)
)
PAGES = "".join(f"page {number}\n" for number in range(200))


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A change in two of three functions of a module, one in a class of JavaScript, and one in a text."""
    world = World(tmp_path_factory.mktemp("functions") / "r.git")
    script = "class Book {\n" + "".join(f"  read{number}() {{ return {number}; }}\n" for number in range(9)) + "}\n"
    before: dict[str | bytes, Content] = {"src/books.py": MODULE, "src/books.js": script, "docs/pages.txt": PAGES}
    after: dict[str | bytes, Content] = {
        "src/books.py": MODULE.replace("read(20)", "read(21)", 1).replace("return 2", "return 3"),
        "src/books.js": script.replace("return 4", "return 5"),
        "docs/pages.txt": PAGES.replace("page 100", "page one hundred"),
    }
    world.commit("old", before)
    world.commit("new", after, parents=[world.made("old").number])
    world.save()
    git = GitRepository.open(world.path)
    shas = git.refs("refs/heads")
    return git.patch_text(shas["refs/heads/old"], shas["refs/heads/new"], functions=True)


def test_while_there_is_room_whole_functions_stand_around_each_change(functions: bytes) -> None:
    shown = render_patch(file_texts(functions), 60_000)
    assert (shown.extent(), shown.pared) == ("3 files, shown in full", False)
    for place, inside in enumerate((True, False, True)):
        lines = [f"         page_{place}_{line} = read({line})\n" for line in range(40) if (place, line) != (0, 20)]
        assert [line in shown.text for line in lines] == [inside] * len(lines)
    assert shown.text.count("     def close(self)") == 1, "of the functions beside them, what is next to a change"
    assert all(f"   read{number}() {{" in shown.text for number in range(9) if number != 4), "the class around it"
    assert " page 97\n" in shown.text and " page 96\n" not in shown.text, "no language: three lines"


def test_unchanged_lines_go_first_and_the_longest_run_of_them_first(functions: bytes) -> None:
    files = file_texts(functions)
    changes, runs = sum(file.size for file in files), [length for file in files for length in file.further]
    assert len(runs) == 3, "before and after the one change, and before the other"
    everything = changes + sum(runs)
    assert not render_patch(files, everything).pared and render_patch(files, everything - 1).pared
    for room in (changes, changes + 200, everything - 200):
        shown = render_patch(files, room)
        assert shown.whole and shown.extent() == "3 files, every change shown"
        assert "+        page_0_20 = read(21)\n" in shown.text and "+        return 3\n" in shown.text
        assert "         page_0_18 = read(18)\n" in shown.text, "what is next to a change stays"
    gone = re.findall(r"(?m)^\[\.\.\. ([\d,]+) characters of unchanged lines left out \.\.\.\]$", shown.text)
    assert len(gone) == 1 and 200 <= int(gone[0]) < 280 < max(runs), "from the middle of the longest, whole lines"
    none = render_patch(files, changes)
    assert none.text.count("characters of unchanged lines left out") == 3
    assert not render_patch(files, changes - 1).whole


_LINES = st.lists(st.sampled_from([" same\n", " other same\n", "+new\n", "-old\n", "@@ -1 +1 @@\n", "\\ No newline\n"]))


@given(_LINES, st.integers(0, 400))
def test_no_change_and_no_line_next_to_one_is_ever_left_out_for_lack_of_room_for_others(
    lines: list[str], room: int
) -> None:
    head = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n"
    [file] = file_texts((head + "@@ -1 +1 @@\n" + "".join(lines)).encode())
    assert whole(file) == (head + "@@ -1 +1 @@\n" + "".join(lines)).rstrip("\n")
    shown = render_patch([file], file.size + room)
    assert shown.whole and len(shown.text) <= file.size + room + 70 * len(file.further)
    kept = shown.text.split("\n")
    assert all(line[:1] in {"d", "-", "+", "@", " ", "\\", "["} for line in kept)
    for mark in "+-@\\":
        assert [line for line in kept[4:] if line[:1] == mark] == [
            line.rstrip("\n") for line in lines if line[:1] == mark
        ]
    for number, line in enumerate(kept):
        if line.startswith("["):
            near = kept[max(number - 3, 4) : number + 4]
            assert not any(other[:1] in {"+", "-", "\\"} for other in near)
