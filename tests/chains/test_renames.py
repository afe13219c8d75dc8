"""A renaming is told from work."""

from __future__ import annotations

import pytest

from chains.stages.renames import MAX_NAMES, is_rename_only
from prchain.core.git import FilePatch, Hunk


def file(*hunks: tuple[str, ...]) -> FilePatch:
    return FilePatch("src/a.py", hunks=tuple(Hunk(1, 1, 1, 1, "", lines) for lines in hunks))


@pytest.mark.parametrize(
    "patch",
    [
        file(("-old_name(1)", "+new_name(1)")),
        file(("-old_name(1)", "+new_name(1)"), ("-x = old_name", "+x = new_name")),
        file(("-call(old_name, other)", "+call(", "+    new_name, other)")),
    ],
)
def test_names_replaced_throughout_are_a_renaming_however_the_lines_break(patch: FilePatch) -> None:
    assert is_rename_only([patch])


@pytest.mark.parametrize(
    "patch",
    [
        file(("-old_name(1)", "+new_name(2)")),
        file(("-old_name(1)", "+new_name(1)"), ("-x = old_name", "+x = third_name")),
        file(("+new_name(1)",)),
        file(("-a + b", "+a - b")),
        file(("-same", "+same")),
        file(
            tuple(f"-name_{n} = 1" for n in range(MAX_NAMES + 1))
            + tuple(f"+other_{n} = 1" for n in range(MAX_NAMES + 1))
        ),
        file(),
    ],
)
def test_anything_else_is_work(patch: FilePatch) -> None:
    assert not is_rename_only([patch])


def test_one_file_of_work_among_renamings_is_work() -> None:
    assert not is_rename_only([file(("-old(1)", "+new(1)")), file(("+old = 3",))])
