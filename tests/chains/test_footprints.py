"""Where a later patch meets an earlier one."""

from __future__ import annotations

from chains.edges.footprints import PatchOverlap, footprint_of, overlap_of
from prchain.core.git import FilePatch, Hunk


def patch(path: str, *lines: str, old_path: str | None = None) -> list[FilePatch]:
    """One file with one hunk of marked lines."""
    return [FilePatch(path, old_path, "R" if old_path else "M", False, (Hunk(1, 1, 1, 1, "", lines),))]


EARLIER = patch(
    "src/money.py",
    "+def round_half_even(amount):",
    "+    quantised_amount = amount.quantize(CENT)",
    "+    return",
    "-    legacy_amount = amount",
)


def overlap(later: list[FilePatch], earlier: list[FilePatch] = EARLIER) -> PatchOverlap:
    return overlap_of(footprint_of(later), footprint_of(earlier))


def test_a_line_that_the_later_patch_removes_is_a_line_dependency() -> None:
    later = patch("src/money.py", "-    quantised_amount = amount.quantize(CENT)", "+    exact_amount = amount")
    assert overlap(later).changed_lines == 1


def test_indentation_does_not_hide_a_line_and_a_common_line_proves_nothing() -> None:
    later = patch("src/money.py", "-        quantised_amount  =  amount.quantize(CENT)", "-    return")
    assert overlap(later).changed_lines == 1


def test_a_line_of_another_file_is_another_line() -> None:
    assert overlap(patch("src/other.py", "-    quantised_amount = amount.quantize(CENT)")).changed_lines == 0


def test_a_renamed_file_is_known_by_its_former_path() -> None:
    later = patch("src/cash.py", "-    quantised_amount = amount.quantize(CENT)", old_path="src/money.py")
    found = overlap(later)
    assert (found.changed_lines, found.files) == (1, ("src/money.py",))


def test_a_line_beside_the_change_is_a_neighbour() -> None:
    found = overlap(patch("src/money.py", "     quantised_amount = amount.quantize(CENT)", "+    audit_amount(amount)"))
    assert (found.changed_lines, found.neighbour_lines) == (0, 1)


def test_a_name_that_the_earlier_patch_introduced_is_recognised_where_it_is_used() -> None:
    found = overlap(patch("lib/shop.py", "+    total_amount = round_half_even(total)"))
    assert found.names == ("round_half_even",)
    assert found.share_an_area


def test_a_name_that_stood_there_before_is_not_introduced() -> None:
    earlier = patch("src/money.py", "-def round_half_even(a):", "+def round_half_even(a, b):")
    assert overlap(patch("lib/shop.py", "+    x_total = round_half_even(total)"), earlier).names == ()


def test_docs_lock_files_and_changelogs_are_no_area() -> None:
    for path in ("CHANGELOG.md", "docs/money.md", "poetry.lock"):
        line = "+something telling that is long enough"
        assert not overlap(patch(path, line), patch(path, line)).share_an_area


def test_the_root_is_no_folder_that_two_share() -> None:
    found = overlap(
        patch("setup_helper.py", "+first_telling_line = 1"), patch("other_helper.py", "+second_line_here = 2")
    )
    assert not found.folders


def test_a_patch_that_puts_the_same_lines_in_again_is_recognised() -> None:
    assert overlap(EARLIER).repeated == 1.0
    assert overlap(patch("src/money.py", "+    quite_another_statement = 1")).repeated == 0.0
