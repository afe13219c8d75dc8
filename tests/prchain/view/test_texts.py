"""Texts of strangers: what cannot be seen is shown, and what must not be shown is not."""

from __future__ import annotations

import pytest

from prchain.core.git.patches import FilePatch, Hunk
from prchain.view.diffs import diff_files
from prchain.view.places import forge_link, slug
from prchain.view.texts import Cleaner, beginning, cut, known_from, marked, sureness, title_of, visible

KEY = "ghp_" + "x7Kq2ZpW9vTnB4mR8sLdF3hJcY6uGaE5oN1i"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("a\x00b\x7f", "a\ufffdb␡"),
        ("\u202egnp.exe", "[U+202E]gnp.exe"),
        ("zero\u200bwidth\u2066", "zero[U+200B]width[U+2066]"),
        ("line\r\n", "line␍\n"),
        ("\udc80", "\ufffd"),
        ("é 漢 👩‍💻", "é 漢 👩‍💻"),
    ],
)
def test_what_is_not_seen_is_shown_as_a_sign(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_secrets_and_addresses_are_replaced_as_in_an_export() -> None:
    clean = Cleaner(("hunter2-hunter2",)).value({"a": f"token {KEY}", "b": ["hunter2-hunter2", "to dev@example.org"]})
    assert clean == {"a": "token [redacted]", "b": ["[redacted]", "to [email]"]}


def test_a_secret_in_the_midst_of_which_stands_what_is_not_seen_is_replaced() -> None:
    hidden = f"{KEY[:10]}\u200b{KEY[10:]}"
    assert KEY[10:] not in Cleaner().text(f"x {hidden} y")


def test_a_long_text_is_cut_in_its_middle_and_says_so() -> None:
    text, rest = cut("a " * 45 + "b " * 45, 100)
    assert rest == 81
    assert text.startswith("a " * 37) and text.endswith(" b" * 12 + " ") and "81 characters are left out" in text


def test_no_cut_leaves_a_part_of_a_secret() -> None:
    for place in range(40, 120):
        text, _ = cut(f"{' ' * place}{KEY} {'x ' * 200}{KEY}{' ' * (140 - place)}", 120)
        assert not any(KEY[at : at + 4] in Cleaner().text(text) for at in range(4, len(KEY) - 4)), place
    assert beginning(f"key {KEY}", 30) == "key "
    assert cut("x" * 200, 100)[1] == 200


PEM = [
    "-----BEGIN PRIVATE KEY-----",
    *(f"{KEY[4:]}{number:02}A{KEY[4:30]}" for number in range(9)),
    "-----END PRIVATE KEY-----",
]


@pytest.mark.parametrize("shown", [PEM, PEM[:-1], PEM[1:], ["a = 1", *PEM, "b = 2"]])
@pytest.mark.parametrize("mark", "+- ")
def test_a_private_key_is_in_no_line_of_a_diff(shown: list[str], mark: str) -> None:
    hunk = Hunk(1, len(shown), 1, len(shown), "", tuple(mark + line for line in shown))
    (file,) = diff_files([FilePatch("a.pem", hunks=(hunk,))])
    lines = file.hunks[0].lines
    assert [line.mark for line in lines] == [mark] * len(shown)
    assert not any(KEY[4:] in line.text for line in lines)
    assert [line.text for line in lines if "=" in line.text] == [line for line in shown if "=" in line]


def test_words_are_marked_wherever_they_stand_the_longest_first() -> None:
    assert marked("say parse_all, parse", ["parse", "parse_all"]) == [
        ("say ", False),
        ("parse_all", True),
        (", ", False),
        ("parse", True),
    ]
    assert marked("a (b) .*", ["(b)", "", " "]) == [("a ", False), ("(b)", True), (" .*", False)]


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "", "x" * 80, ".", "a b", "ü", "\ud800"])
def test_no_name_climbs_out_of_its_folder(name: str) -> None:
    assert slug(name).startswith("x-") and "/" not in slug(name)


@pytest.mark.parametrize(
    ("url", "host", "name", "leads"),
    [
        ("https://github.com/a/b/pull/1", "github.com", "a/b", True),
        ("https://elsewhere.org/a/b/pull/1", "github.com", "a/b", False),
        ("javascript:alert(1)//github.com/a/b/", "github.com", "a/b", False),
        ("https://github.com/a/b/pull/1", "github.com@elsewhere.org", "a/b", False),
        ("https://localhost/a/b/pull/1", "localhost", "a/b", False),
        ('https://github.com/a/b/"><script>', "github.com", "a/b", False),
    ],
)
def test_links_lead_to_the_forge_that_was_mined_and_nowhere_else(url: str, host: str, name: str, leads: bool) -> None:
    assert forge_link(url, host, name) == (url if leads else None)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Write as text (#3)", "Write as text"),
        ("Merge pull request #3 from ann/as-text", "ann/as-text"),
        ("Write as text (#4)", "Write as text (#4)"),
        ("(#3)", "(#3)"),
    ],
)
def test_a_title_is_shown_without_the_number_that_stands_before_it(text: str, shown: str) -> None:
    assert title_of(text, 3) == shown


@pytest.mark.parametrize(
    ("confidence", "words"),
    [(1.0, "almost certain (1.00)"), (0.9, "very likely (0.90)"), (0.7, "likely (0.70)"), (0.1, "unlikely (0.10)")],
)
def test_a_confidence_is_told_in_words(confidence: float, words: str) -> None:
    assert sureness(confidence) == words
    assert known_from("citation, lineage") == "what people wrote, changed lines"


def test_lit_lines_below_the_cut_of_a_long_file_are_counted() -> None:
    lines = tuple(f"+line {number}" for number in range(1, 701))
    patch = FilePatch("a.py", status="A", hunks=(Hunk(0, 0, 1, 700, "", lines),))
    [found] = diff_files([patch], lit={"a.py": {3, 650, 651}}, mark="+")
    assert (found.lit, found.left_out, found.lit_left_out) == (3, 100, 2)
    assert [line.text for line in found.hunks[0].lines if line.lit] == ["line 3"]
