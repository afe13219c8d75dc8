"""Python that differs in docstrings and annotations only does the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chains.stages.normalized import may_be_annotation_only, same_normalized
from prchain.core.git import FilePatch, Hunk

PLAIN = "import os\n\n\nclass A:\n    def f(self, a, b=1):\n        return os.path.join(a, b)\n"


@pytest.mark.parametrize(
    "annotated",
    [
        '"""Module."""\n' + PLAIN,
        PLAIN.replace("class A:\n", 'class A:\n    """A class."""\n\n'),
        PLAIN.replace("(self, a, b=1)", "(self, a: str, b: int = 1) -> str"),
        "from typing import Any\n" + PLAIN,
        PLAIN.replace(
            "import os\n", "import os\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import x\n"
        ),
        PLAIN.replace("    def f", "    # said\n\n    def f"),
        PLAIN.replace("class A:\n", "class A:\n    size: int\n\n"),
    ],
)
def test_an_annotation_is_nothing_that_a_program_sees(annotated: str) -> None:
    assert same_normalized(PLAIN, annotated)
    assert same_normalized(annotated, PLAIN)


@pytest.mark.parametrize(
    "changed",
    [
        PLAIN.replace("b=1", "b=2"),
        PLAIN.replace("(a, b)", "(b, a)"),
        PLAIN + "\n\nx: int = 1\n",
        "def broken(:\n",
        "\0",
    ],
)
def test_work_is_seen(changed: str) -> None:
    assert not same_normalized(PLAIN, changed)


@given(st.text(max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    same_normalized(text, PLAIN)


def patch(path: str, *lines: str) -> list[FilePatch]:
    return [FilePatch(path, hunks=(Hunk(1, 1, 1, 1, "", lines),))]


def test_only_patches_that_may_be_dress_are_parsed() -> None:
    assert may_be_annotation_only(
        patch("a.py", "-    Returns the thing", "+    Return the thing.", "+    :param a: a path")
    )
    assert may_be_annotation_only(patch("a.py", "-def f(a):", "+def f(a: int) -> None:"))
    assert not may_be_annotation_only(patch("a.py", "+    return self.a"))
    assert not may_be_annotation_only(patch("a.py", "-x = 1", "+x = 2"))
    assert not may_be_annotation_only(patch("a.rs", "+/// says"))


def test_a_docstring_with_an_example_in_it_is_parsed() -> None:
    sentences = ("-    This is the only way of doing it.", "+    There are two ways of doing it now.")
    example = ("-        body = stream.read()", "+        body = response.stream.read()")
    assert may_be_annotation_only(patch("a.py", *sentences, *example))
    assert not may_be_annotation_only(patch("a.py", *sentences[:1], *example))
