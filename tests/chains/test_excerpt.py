"""Cutting texts to the room of a prompt: nothing small is cut, nothing is cut in silence."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from chains.tasks.excerpt import ExcerptLimits, excerpts, file_texts, patch_excerpt
from prchain.core.git import FilePatch, Hunk
from prchain.core.llm.excerpt import cut, fair_cap
from tests.prchain.secrets_table import DRAWN_TOKEN

LENGTHS = st.lists(st.integers(0, 5_000), max_size=30)


@given(LENGTHS, st.integers(0, 20_000))
def test_the_cap_fills_the_room_and_no_more(lengths: list[int], limit: int) -> None:
    cap = fair_cap(lengths, limit)
    used = sum(min(length, cap) for length in lengths)
    assert used <= limit
    if sum(lengths) > limit:
        assert sum(min(length, cap + 1) for length in lengths) > limit
    else:
        assert used == sum(lengths)


@given(st.text(alphabet="ab\n", max_size=400), st.integers(0, 300))
def test_a_cut_text_says_how_much_is_gone_and_keeps_head_and_tail(text: str, cap: int) -> None:
    excerpt = cut(text, cap)
    if len(text) <= cap:
        assert excerpt == text
        return
    match = re.search(r"\n\[\.\.\. ([\d,]+) characters left out \.\.\.\]\n", excerpt)
    assert match is not None
    head, tail = excerpt[: match.start()], excerpt[match.end() :]
    assert text.startswith(head) and text.endswith(tail)
    assert len(head) + len(tail) <= cap
    assert len(head) + len(tail) + int(match[1].replace(",", "")) == len(text)


def test_the_longest_texts_are_cut_first() -> None:
    short, long = "s" * 100, "l" * 5_000
    assert excerpts([short, long, short], 1_200)[::2] == [short, short]
    assert excerpts([short, short], 1_200) == [short, short]


def test_of_texts_too_many_to_show_the_first_and_the_last_stay() -> None:
    excerpt = excerpts([f"comment {n} " + "x" * 300 for n in range(10_000)], 2_400)
    assert len("".join(excerpt)) < 4_000
    assert excerpt[0].startswith("comment 0 ") and excerpt[-1].startswith("comment 9999 ")
    assert "[... 9,990 more left out ...]" in excerpt


def patch(path: str, lines: int) -> FilePatch:
    added = tuple(f"+line {n} of {path}" for n in range(lines))
    return FilePatch(path, hunks=(Hunk(0, 0, 1, lines, "", added),))


def test_small_files_are_shown_whole_beside_a_large_one() -> None:
    text = patch_excerpt(file_texts([patch("large.py", 5_000), patch("small.py", 3)]), 4_000)
    assert "+line 2 of small.py" in text and "+line 0 of large.py" in text and "+line 4999 of large.py" in text
    assert "+line 2500 of large.py" not in text and "characters left out" in text
    assert len(text) < 4_200


def test_files_too_many_to_show_are_named() -> None:
    text = patch_excerpt(file_texts([patch(f"part{n}.py", 40) for n in range(100)]), 4_000)
    assert len(text) < 7_500
    assert "changed too, not shown: " in text
    assert all(f"part{n}.py" in text for n in range(100))


def test_of_thousands_of_files_only_some_are_named() -> None:
    text = patch_excerpt(file_texts([patch(f"part{n}.py", 40) for n in range(5_000)]), 4_000)
    assert len(text) < 10_000 and re.search(r" and \d+ more\]", text)


def test_renames_deletions_and_binaries_are_told() -> None:
    files = [FilePatch("new.py", "old.py", "R"), FilePatch("gone.py", status="D"), FilePatch("x.png", binary=True)]
    text = patch_excerpt(file_texts(files), 4_000)
    assert "new.py (from old.py): renamed" in text and "gone.py: deleted" in text and "x.png: changed, binary" in text


def test_a_secret_that_a_cut_would_part_is_gone_before() -> None:
    token = DRAWN_TOKEN
    body = [f"+{'MIIEowIBAAKCAQEA' * 4}" for _ in range(40)]
    key = ["+-----BEGIN RSA PRIVATE KEY-----", *body, "+-----END RSA PRIVATE KEY-----"]
    lines = (*(f"+before {n}" for n in range(20)), *key, f"+use('{token}')", *(f"+after {n}" for n in range(20)))
    files = [FilePatch("key.py", hunks=(Hunk(0, 0, 1, len(lines), "", lines),)), patch(DRAWN_TOKEN, 30)]
    for limit in range(240, 3_000, 7):
        text = patch_excerpt(file_texts(files), limit)
        assert "MIIEow" not in text and not any(part in text for part in (token[4:9], token[20:25], token[-5:]))


def test_a_file_that_becomes_a_link_is_shown_with_both_halves() -> None:
    gone = FilePatch("x", status="D", hunks=(Hunk(1, 1, 0, 0, "", ("-old",)),))
    link = FilePatch("x", status="A", hunks=(Hunk(0, 0, 1, 1, "", ("+target",)),))
    text = patch_excerpt(file_texts([gone, link]), 4_000)
    assert "-old" in text and "+target" in text


def test_halved_limits_are_half_everywhere() -> None:
    assert ExcerptLimits().halved() == ExcerptLimits(32_000, 8_000, 4_000, 6_000, 3_000, 6_000)
