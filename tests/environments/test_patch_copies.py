"""Copies of a task's patches in a publisher's image are found whatever their heads look like, and nothing else is."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from time import process_time

import pytest

from environments.images.published.copies import copy_patterns
from environments.images.published.images import make_published
from environments.images.published.said import Published, changed_paths
from prchain.core.errors import ImageError
from prchain.core.git.named_paths import named_paths
from tests.chains.import_rows import PATCH, TEST_PATCH

_HUNK = "@@ -1 +1 @@\n-LIMIT = 1\n+LIMIT = 0\n"
_PAIR = "--- {}\n+++ {}\n" + _HUNK


def found(folder: Path, patch: str, *texts: str | bytes) -> list[bool]:
    """For each text whether the search for copies of the patch finds it, as scrub.sh searches."""
    (folder / "texts").write_bytes(copy_patterns(changed_paths(patch)))
    files = [folder / f"file{number}" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    command = ["grep", "-alEZ", "-f", str(folder / "texts"), "--", *map(str, files)]
    ran = subprocess.run(command, capture_output=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False)
    assert ran.returncode in (0, 1) and not ran.stderr, ran.stderr
    names = ran.stdout.decode().split("\0")
    return [str(file) in names for file in files]


@pytest.mark.parametrize(
    ("patch", "paths"),
    [
        (PATCH, {"till/cart.py"}),
        ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", {"x", "y"}),
        ("diff --git a/x y b/x y\nold mode 100644\nnew mode 100755\n", {"x y"}),
        ("diff --git i/till/x w/till/x\n", {"till/x"}),
        ("diff --git till/x till/x\n", {"x", "till/x"}),
        ('diff --git "a/\\303\\244" "b/\\303\\244"\n' + _PAIR.format('"a/\\303\\244"', '"b/\\303\\244"'), {"ä"}),
        ('diff --git a/x "b/\\303\\244"\nrename from x\nrename to "\\303\\244"\n', {"x", "ä"}),
        (_PAIR.format("a/till/x", "b/till/x"), {"till/x"}),
        (_PAIR.format("x.orig\t2024-05-01 12:30:00.0 +0000", "x\t2024-05-01 12:30:00.0 +0000"), {"x.orig", "x"}),
        (_PAIR.format("a/x 2024-05-01 12:30:00", "b/x 2024-05-01 12:30:00"), {"x", "x 2024-05-01 12:30:00"}),
        (_PAIR.format("/dev/null", "b/x\r"), {"x"}),
        ('--- "a/\\377"\n+++ "b/\\377"\n', {"\\xff"}),
        ("--- a/\n+++ b/\n", set()),
        ("diff --git \n--- -----\nrename from \n", set()),
        ("--- a/" + "x" * 5000 + "\n+++ /dev/null\n", set()),
        ('--- "a/\\000"\n+++ "b/\\000"\n', set()),
    ],
)
def test_the_paths_of_a_patch_are_read_from_whatever_head_it_has(patch: str, paths: set[str]) -> None:
    assert set(named_paths(patch)) == paths


def test_copies_with_odd_heads_are_found(tmp_path: Path) -> None:
    copies = (
        PATCH,
        _PAIR.format("a/till/cart.py", "b/till/cart.py"),
        _PAIR.format("till/cart.py.orig\t2024", "till/cart.py\t2024"),
        _PAIR.format("/testbed/till/cart.py", "/dev/null"),
        "diff --git i/till/cart.py w/till/cart.py\r\n",
        "diff --git a/till/cart.py b/till/till.py\nrename from till/cart.py\nrename to till/till.py\n",
        "cat <<EOF\n" + PATCH + "EOF\n",
        json.dumps({"patch": PATCH}),
        b"\0\xff" + PATCH.encode(),
    )
    assert found(tmp_path, PATCH, *copies) == [True] * len(copies)


def test_a_copy_in_quotes_is_found_and_so_is_one_without(tmp_path: Path) -> None:
    plain, quoted = (_PAIR.format(f"a/{name}", f"b/{name}") for name in ("tä t", "t\\303\\244 t"))
    quoted = quoted.replace("a/", '"a/').replace("b/", '"b/').replace(" t\n", ' t"\n')
    copies = plain, quoted, json.dumps(plain), json.dumps(quoted), json.dumps(plain, ensure_ascii=False)
    for patch in (plain, quoted):
        assert found(tmp_path, patch, *copies) == [True] * len(copies)


@pytest.mark.parametrize("path", ["a\\nb", "\\n", "x\\n\\n", "[", "a|", ".*", "(x", "\\\\n"])
def test_a_path_that_is_no_word_finds_itself_and_not_every_file(tmp_path: Path, path: str) -> None:
    copy = _PAIR.format(f'"a/{path}"', f'"b/{path}"')
    assert found(tmp_path, copy, copy, "a\n\nb", "", "--- a/other\n+++ b/other\n", "x") == [True, *[False] * 4]


def test_a_comment_that_a_patch_removes_is_no_path_that_files_of_the_system_hold(tmp_path: Path) -> None:
    patch = PATCH.replace("-LIMIT = 1\n", "--- -----\n-LIMIT = 1\n")
    table = "name  size\n--- -----\n"
    assert found(tmp_path, patch, table, PATCH) == [False, True]
    assert found(tmp_path, PATCH, PATCH.replace("cart.py", "cart.pyi"), TEST_PATCH) == [False, False]


def test_an_image_is_refused_where_no_path_can_be_read_from_a_patch() -> None:
    odd = "--- \n+++ \n" + _HUNK
    assert changed_paths(PATCH, "") == ("till/cart.py",) and changed_paths(PATCH, odd) == changed_paths(odd) == ()
    with pytest.raises(ImageError, match=r"^no path can be read from a patch of the task, so .* in made/image:1$"):
        make_published(None, "shop/till", Published("made/image:1", "a" * 40, changed=changed_paths(PATCH, odd)))


@pytest.mark.parametrize(("name", "count"), [("{}", 20_000), ("ä" * 1900 + "{}", 200)])
def test_a_patch_of_many_or_long_paths_is_looked_for_by_the_first_of_them(
    tmp_path: Path, name: str, count: int
) -> None:
    patch = "".join(f"diff --git a/{path} b/{path}\n" for path in map(name.format, range(count)))
    assert len(copy_patterns(changed_paths(patch))) < 1_000_000
    assert found(tmp_path, patch, patch, patch.replace("a/", "a/x"), "x") == [True, False, False]


def test_ten_megabytes_without_a_path_are_read_at_once() -> None:
    size = 10 << 20
    lines = "-- " * (size // 3), '"' + "\\" * size, "a/" + "x" * size, '"a/' + "\\001" * (size // 4) + '"', " " * size
    started = process_time()
    for rest in lines:
        assert not list(named_paths(f"diff --git {rest}\n--- {rest}\n+++ {rest}\nrename to {rest}\n"))
    assert not list(named_paths("--- a\n" * (size // 6)))
    assert process_time() - started < 10
