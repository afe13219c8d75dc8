"""Candidates of a known kind: how their patches become trees, and how the judge is scored on them."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from prchain.core.git.trees import EXECUTABLE
from research.candidates.__main__ import JudgedRow, _say, patched
from tests.prchain.treeworld import harvest, new_store, plant

PATCH = b"""\
diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1 @@
-one
+two
diff --git a/old.py b/new.py
similarity index 100%
rename from old.py
rename to new.py
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-gone
diff --git a/run b/run
new file mode 100755
--- /dev/null
+++ b/run
@@ -0,0 +1 @@
+now
"""


def test_a_patch_becomes_the_tree_that_git_would_make(tmp_path: Path) -> None:
    trees = new_store(tmp_path)
    base = plant(trees, {"src/a.py": "one\n", "old.py": "same\n", "gone.py": "gone\n", "kept.py": "kept\n"})
    assert harvest(trees, patched(trees, base, PATCH)) == {
        "src/a.py": "two\n",
        "new.py": "same\n",
        "kept.py": "kept\n",
        "run": (EXECUTABLE, "now\n"),
    }


def test_a_patch_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    trees = new_store(tmp_path)
    with pytest.raises(click.ClickException, match="does not apply"):
        patched(trees, plant(trees, {"src/a.py": "three\n"}), PATCH)


def test_a_patch_cannot_leave_its_tree(tmp_path: Path) -> None:
    trees = new_store(tmp_path)
    patch = b"diff --git a/../x b/../x\nnew file mode 100644\n--- /dev/null\n+++ b/../x\n@@ -0,0 +1 @@\n+now\n"
    with pytest.raises(click.ClickException, match="does not apply"):
        patched(trees, plant(trees, {"a.py": "1\n"}), patch)


def test_rates_are_told_by_kind_and_beside_the_tests(capsys: pytest.CaptureFixture[str]) -> None:
    def row(kind: str, tests: str, score: float | None) -> JudgedRow:
        return JudgedRow("x", "c", 1, kind, tests, score, None, None)

    _say(
        [
            row("right another way", "passed", 0.9),
            row("right another way", "passed", 0.7),
            row("wrong", "f2p_failed", 0.8),
            row("wrong", "f2p_failed", None),
        ]
    )
    text = capsys.readouterr().out
    assert "right ones accepted: 1/2 = 50%" in text
    assert "wrong ones rejected: 0/1 = 0%" in text
    assert "agreement with the hidden tests: 1/3 = 33%" in text
