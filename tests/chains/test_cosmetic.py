"""Patches that change nothing but how it is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chains.stages.cosmetic import is_cosmetic
from prchain.core.git.patches import FilePatch, parse_patch


def patch(path: str, *hunks: str) -> FilePatch:
    """A patch of hunks, each a text of lines with their marks."""
    parts = [f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n"]
    for at, hunk in enumerate(hunks):
        lines = hunk.split("\n")
        old, new = (sum(line[0] == mark for line in lines) for mark in "-+")
        parts.append(f"@@ -{at * 50 + 1},{old} +{at * 50 + 1},{new} @@\n{hunk}\n")
    (file,) = parse_patch("".join(parts))
    return file


COSMETIC = [
    ("a.py", ["-x=f( 1,2 )\n+x = f(1, 2)"]),
    ("a.py", ["-f(a, b)\n+f(\n+    a,\n+    b\n+)"]),
    ("a.py", ["-# one\n+# two\n+# three"]),
    ("a.py", ["-x = 1  # type: ignore\n+x = 1"]),
    ("a.py", ["-\n-"]),
    ("a.py", ["-import b", "+import b"]),
    ("a.rs", ["+/// A doc comment."]),
    ("a.rs", ["-use a::b;\n-use a::a;\n+use a::a;\n+use a::b;"]),
    ("a.ts", ["-/**\n- * Old.\n- */\n+/**\n+ * New.\n+ */"]),
    ("a.ts", ["-  f(a); /* old */\n+  f(a); // new"]),
    ("a.js", ["-if (a) {\n-f()\n-}\n+if (a) {\n+  f()\n+}"]),
    ("a.sql", ["+-- why"]),
    ("a.py", ["-raise E('one of a, b or c')\n+raise E('one of a, b '\n+        'or c')"]),
]
WORK = [
    ("a.py", ["-    return x\n+return x"]),
    ("a.py", ["-f(', ')\n+f(',')"]),
    ("a.py", ["-x = 1\n+x = 2"]),
    ("a.py", ["-f()", "+f()"]),
    ("a.py", ["-import a\n+import b"]),
    ("a.py", ['-    """Old."""\n+    """New."""']),
    ("a.py", ["-x = '#a'\n+x = '#b'"]),
    ("a.py", ["-return x\n+returnx"]),
    ("a.py", ["-f('a', '')\n+f('a',)"]),
    ("a.js", ["-f('one of a, b or c')\n+f('one of a, b ''or c')"]),
    ("a.js", ["-u = 'http://a'\n+u = 'http://b'"]),
    ("a.js", ["-<a>http://a</a>\n+<a>http://b</a>"]),
    ("a.c", ["-* p = 1;\n+* p = 2;"]),
    ("a.sh", ["-n=${#a}\n+n=${#b}"]),
    ("a.unknown", ["-a\n+ a"]),
]


@pytest.mark.parametrize(("path", "hunks"), COSMETIC)
def test_white_space_comments_and_import_order_are_cosmetic(path: str, hunks: list[str]) -> None:
    assert is_cosmetic([patch(path, *hunks)])


@pytest.mark.parametrize(("path", "hunks"), WORK)
def test_what_may_change_behaviour_is_work(path: str, hunks: list[str]) -> None:
    assert not is_cosmetic([patch(path, *hunks)])


def test_one_file_of_work_makes_the_patch_work() -> None:
    comment, work = patch("a.py", "+# why"), patch("b.py", "+x = 1")
    assert is_cosmetic([comment])
    assert not is_cosmetic([comment, work])


def test_a_patch_without_lines_is_not_called_cosmetic() -> None:
    assert not is_cosmetic([])
    assert not is_cosmetic([FilePatch("b.py", "a.py", "R"), FilePatch("a.so", binary=True)])


def test_a_new_file_of_comments_is_not_cosmetic() -> None:
    (new,) = parse_patch(
        "diff --git a/a.py b/a.py\nnew file mode 100644\n--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+# a\n"
    )
    assert not is_cosmetic([new])


_CODE = st.text(alphabet="ab(){},;= ", min_size=1, max_size=30).filter(lambda line: line.strip() != "")


@given(st.lists(_CODE, min_size=1, max_size=5), st.integers(1, 8))
def test_deeper_indentation_is_cosmetic_where_it_has_no_meaning_only(lines: list[str], depth: int) -> None:
    hunk = "\n".join([*("-" + line for line in lines), *("+" + " " * depth + line for line in lines)])
    assert is_cosmetic([patch("a.js", hunk)])
    assert not is_cosmetic([patch("a.py", hunk)])
