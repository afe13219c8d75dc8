"""No text makes the extraction raise, run long, or answer with spans that are none."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from miner.citations import extract, extraction, is_dependency_bump, looks_like_release_notes, own_number
from miner.citations.model import Kind
from miner.citations.syntaxes import names_only
from tests.growth import assert_linear
from tests.miner.gitworld import GITHUB

REPOSITORY = "acme/rocket"
KINDS: tuple[Kind, ...] = ("markdown", "commit", "title", "branch")

pieces = st.sampled_from(
    [
        *(
            "#",
            "#1",
            "#12",
            "#123",
            "gh-7",
            "GH-7",
            "PR 12",
            "PRs 1, 2",
            "acme/rocket",
            "a/b#3",
            "@",
            "_",
            "\\",
            "/",
            "-",
            ".",
            "…",
        ),
        *(
            "`",
            "``",
            "```",
            "\n```\n",
            "~~~",
            "<!--",
            "-->",
            "<details>",
            "</details>",
            "\n> ",
            "\n    ",
            "\n- ",
            "\n\n",
            "\r\n",
        ),
        *(
            "[",
            "]",
            "](",
            "][",
            "]: ",
            "(",
            ")",
            '"',
            "'",
            "<a href=",
            ">",
            "</a>",
            "https://github.com/acme/rocket/pull/12",
        ),
        *(
            'Revert "',
            "Reland ",
            "revert",
            "fixes ",
            "follow-up to ",
            "not ",
            "after ",
            " is merged",
            "see ",
            ", ",
            " and ",
            ": ",
        ),
        *(
            "0f1e2d3c4b5a",
            "0f1e2d3c4b5a69788796a5b4c3d2e1f001234567",
            "This reverts commit ",
            "\x00",
            "\ud800",
            "\u0661",
            "é",
        ),
    ]
)
texts = st.one_of(st.text(st.characters(codec=None)), st.lists(pieces, max_size=40).map("".join))


@given(texts, st.sampled_from(KINDS), st.none() | st.integers(0, 20))
@example('Revert "' * 3 + '(#1)"', "commit", None)
@example("<!--`<!--", "markdown", None)
def test_any_text_gives_ordered_disjoint_spans_and_the_same_answer_twice(
    text: str, kind: Kind, own: int | None
) -> None:
    citations = extract(text, REPOSITORY, urls=GITHUB.urls, kind=kind, own=own)
    assert citations == extract(text, REPOSITORY, urls=GITHUB.urls, kind=kind, own=own)
    end = 0
    for citation in citations:
        assert end <= citation.start < citation.end <= len(text)
        end = citation.end
        assert (citation.number is None) != (citation.sha is None)
        assert citation.number is None or 0 < citation.number < 10**9
        assert citation.number is None or str(citation.number) in text[citation.start : citation.end]
        assert len(citation.snippet) <= 160
        assert "\n" not in citation.snippet
        assert own is None or citation.number != own or citation.repository != REPOSITORY


@given(texts | st.lists(pieces | st.just("#3 "), max_size=6).map("".join), st.sampled_from(["commit", "markdown"]))
@example("Merge pull request #3 from me/fix-3\n\nCloses #3, see (#3).", "commit")
@example("Fix it (#3)\n\no/r#3 and acme/rocket#3", "commit")
@example("#3\ncloses #3 #30", "commit")
def test_the_fast_look_for_ones_own_number_changes_nothing(text: str, kind: Kind) -> None:
    fast = extract(text, REPOSITORY, kind=kind, urls=GITHUB.urls, own=3)
    with patch.object(extraction, "names_only", return_value=False):
        assert extract(text, REPOSITORY, kind=kind, urls=GITHUB.urls, own=3) == fast


def test_most_messages_of_landings_name_their_own_number_only() -> None:
    assert names_only("Merge pull request #3 from me/fix-3\n\nMend the parser (#3)", 3, GITHUB.urls)
    assert not names_only("Merge pull request #3 from me/fix-3\n\nFollow-up to #2", 3, GITHUB.urls)


@given(texts)
def test_the_other_readers_take_any_text(text: str) -> None:
    for reader in (own_number, is_dependency_bump, looks_like_release_notes):
        assert reader(text) == reader(text)


@given(st.text(st.characters(codec=None, exclude_characters="#`"), max_size=30), st.integers(1000, 99999))
def test_a_reference_on_a_line_of_its_own_is_found_before_any_text(after: str, number: int) -> None:
    assert extract(f"#{number}\n\n{after}", REPOSITORY, urls=GITHUB.urls)[0].number == number


ADVERSARIAL: dict[str, str] = {
    "hashes": "#",
    "references": "#1 ",
    "joined references": "#12,",
    "hash digits": "#1#1",
    "parentheses": "(",
    "brackets": "[",
    "closing brackets": "]",
    "links": "[a](",
    "nested links": "[![",
    "destinations": "](a",
    "definitions": "\n[a]: b",
    "titles": '](a "',
    "backticks": "` ",
    "fences": "```\n",
    "tilde fences": "~~~ x\n",
    "comments": "<!--",
    "line comments": "\n<!--",
    "details": "<details>",
    "anchors": "<a ",
    "anchors with closing": "<a x>",
    "quotes": "> ",
    "quote lines": "\n> #1",
    "keywords": "fixes ",
    "keywords and references": "fixes #1 ",
    "triggers": "follow-up to revert of ",
    "negations": "not fully ",
    "reverts": 'Revert "',
    "digits": "1",
    "hash and digits": "#1111111111",
    "hex": "commit 0f",
    "long hex": "0f",
    "at hex": "@0f1e2d3",
    "names": "a/",
    "names with hash": "a/a#1",
    "words": "PR ",
    "word lists": "PRs 1, 2, ",
    "urls": "https://github.com/acme/rocket/pull/1 ",
    "joined urls": "https://github.com/",
    "schemes": "://",
    "bullets": "\n- #1",
    "headings": "\ndepends on:\n- #1 x",
    "blanks": " ",
    "lines": "\n",
    "blank lines": "\n \n#1",
    "tabs": "\t#1",
    "dots": ". ",
    "bumps": "bump a to ",
    "listed": "\n* a (#1",
    "versions": "\n# 1.2",
    "credits": "by @a in ",
}
IN_COMMITS = ("fences", "tilde fences", "comments", "reverts", "hex", "long hex", "at hex", "names")
SIZE = 50_000


@pytest.mark.drawn(12)
@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "markdown") for name in ADVERSARIAL), *((name, "commit") for name in IN_COMMITS)]
)
def test_time_grows_linearly(name: str, kind: Kind) -> None:
    piece = ADVERSARIAL[name]

    def work(text: str) -> None:
        extract(text, REPOSITORY, urls=GITHUB.urls, kind=kind)
        looks_like_release_notes(text)
        is_dependency_bump(text)
        own_number(text)

    assert_linear(lambda size: "commit PR #77 /pull/ " + piece * (size // len(piece)) + " #78 ]: `", work, SIZE)
