"""What is read from a text and what is not."""

from __future__ import annotations

import pytest

from miner.citations import Citation, Kind, extract, is_dependency_bump, looks_like_release_notes, own_number
from miner.sources.github import forge_at
from tests.miner.citations_table import CITATIONS, ELSEWHERE, NOTHING, Row
from tests.miner.gitworld import GITHUB

REPOSITORY = "acme/rocket"


def read(text: str, kind: Kind = "markdown", own: int | None = None) -> list[Citation]:
    return extract(text, "Acme/Rocket", ["Old/Rocket"], urls=GITHUB.urls, kind=kind, own=own)


def summary(citation: Citation) -> tuple[int | str, str, str]:
    what: int | str = citation.number if citation.number is not None else str(citation.sha)
    if citation.repository != REPOSITORY:
        what = f"{citation.repository}#{what}"
    return what, citation.relation, citation.syntax


@pytest.mark.parametrize("row", CITATIONS, ids=lambda row: f"{row.kind}: {row.text!a}"[:70])
def test_reads_what_is_cited_and_how(row: Row) -> None:
    citations = read(row.text, row.kind)
    assert tuple(map(summary, citations)) == row.expected
    assert {citation.context for citation in citations} == {None}


@pytest.mark.parametrize(("text", "kind"), NOTHING, ids=[f"{kind}: {text!a}"[:70] for text, kind in NOTHING])
def test_reads_nothing_where_nothing_is_cited(text: str, kind: Kind) -> None:
    assert read(text, kind) == []


@pytest.mark.parametrize(("text", "kind", "number", "context"), ELSEWHERE)
def test_marks_what_is_not_the_authors_statement(text: str, kind: Kind, number: int, context: str) -> None:
    assert [(c.number, c.context) for c in read(text, kind)] == [(number, context)]


def test_the_table_is_large_enough_and_holds_nothing_twice() -> None:
    assert len({(row.text, row.kind) for row in CITATIONS}) == len(CITATIONS) >= 60
    assert len(set(NOTHING)) == len(NOTHING) >= 60


def test_spans_and_snippets_point_at_the_citation() -> None:
    text = "Larger tank\n\nIt  holds\tmore, see acme/rocket#26 for why\nand more"
    (citation,) = read(text, "commit")
    assert text[citation.start : citation.end] == "acme/rocket#26"
    assert citation.snippet == "It holds more, see acme/rocket#26 for why"


def test_a_long_line_is_cut_around_the_citation() -> None:
    (citation,) = read("word " * 200 + "#26" + " word" * 200)
    assert len(citation.snippet) <= 160
    assert "word #26 word" in citation.snippet


@pytest.mark.parametrize(
    ("subject", "number"),
    [
        ("Larger tank (#26)", 26),
        ("Larger tank (gh-26)", 26),
        ("Larger tank (GH-26).", 26),
        ("Larger tank (#20) (#26)", 26),
        ('Revert "Larger tank (#20)" (#26)', 26),
        ('Revert "Larger tank (#20)"', None),
        ("Merge pull request #26 from someone/tank", 26),
        ("Auto merge of #26 - someone:tank, r=other", 26),
        ("Larger tank, see #26", None),
        ("Larger tank (#026)", None),
        ("Larger tank (26)", None),
        ("", None),
    ],
)
def test_the_number_of_a_subject_is_the_last_one_at_its_end(subject: str, number: int | None) -> None:
    assert own_number(subject) == number


def test_of_two_numbers_at_the_end_the_inner_one_is_cited() -> None:
    assert list(map(summary, read("Larger tank (#20) (#26)", "commit"))) == [(20, "mentions", "hash")]


def test_citations_of_oneself_are_dropped_in_every_spelling() -> None:
    text = "#26, GH-26, acme/rocket#26, old/rocket#26, PR 26, https://github.com/acme/rocket/pull/26 and moon/lander#26"
    assert [summary(c)[0] for c in read(text, own=26)] == ["moon/lander#26"]


def test_another_number_at_the_end_of_ones_subject_is_told_apart() -> None:
    citations = read("Larger tank (#20)\n\nSee #21", "commit", own=26)
    assert [(c.number, c.context) for c in citations] == [(20, "own_tail"), (21, None)]


def test_a_hosts_own_urls_are_read_and_no_others() -> None:
    ours, public = "https://git.acme.example/acme/rocket/pull/26", "https://github.com/acme/rocket/pull/27"
    assert [c.number for c in extract(f"{ours} {public}", REPOSITORY, urls=forge_at("git.acme.example").urls)] == [26]
    assert [c.number for c in extract(f"{ours} {public}", REPOSITORY, urls=GITHUB.urls)] == [27]


def test_an_indented_line_is_code_in_markdown_only() -> None:
    text = "Tank\n\n    Fixes #26"
    assert read(text) == []
    assert [c.number for c in read(text, "commit")] == [26]


def test_an_indented_line_inside_a_list_is_text() -> None:
    assert [c.number for c in read("- tank\n\n    Fixes #26")] == [26]


@pytest.mark.parametrize(
    "text",
    [
        "## What's Changed\n* Tank by @a in https://github.com/acme/rocket/pull/26",
        "**Full Changelog**: https://github.com/acme/rocket/compare/v1...v2",
        "* Tank by @a in #26\n* Pump by @b in #27",
        "Bumps [tank](https://github.com/moon/tank) from 1.0 to 1.1.",
        "Bumps tank from 1.0 to 1.1.",
        "This PR contains the following updates:\n\n| Package | Change |",
        ":robot: I have created a release *beep* *boop*\n---",
        "### 1.2.0 (2024-05-06)\n- tank (#1)\n- pump (#2)\n- seal (#3)",
        "# Changelog\n* tank [#1](https://github.com/a/b/pull/1)\n* pump (#2)\n* seal #3",
        "\n".join(f"- feat: part {n} (#{n})" for n in range(1, 15)),
    ],
)
def test_release_notes_are_told(text: str) -> None:
    assert looks_like_release_notes(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Follow-up to #26",
        "## Changelog\n\nThe tank is larger now, see #26",
        "## Summary\n- tank (#1)\n- pump (#2)\n- seal (#3)",
        "Adds a test for `What's Changed` parsing (#26)",
        "Reported by @a in #26",
        "Larger tank\n\n* first try\n* second try\n* third try (#26)",
    ],
)
def test_other_texts_are_no_release_notes(text: str) -> None:
    assert not looks_like_release_notes(text)


@pytest.mark.parametrize(
    "subject",
    [
        "Bump tank from 1.0 to 1.1",
        "Bump tank from 1.0 to 1.1 in /docs (#26)",
        "build(deps): bump tank from 1.0 to 1.1",
        "build(deps-dev): bump the npm group with 3 updates",
        "chore(deps): update dependency tank to v2",
        "Update dependency @moon/tank to v2",
        "fix(deps): update rust crate tank to 1.2",
        "chore(deps): lock file maintenance",
        "[pre-commit.ci] pre-commit autoupdate",
        "Update tank requirement from <2 to <3",
        "chore(deps): pin dependencies",
    ],
)
def test_dependency_bumps_are_told(subject: str) -> None:
    assert is_dependency_bump(subject)


@pytest.mark.parametrize(
    "subject",
    [
        "Larger tank (#26)",
        "Update the docs of the tank",
        "Update the tank to hold more",
        "Bump the pressure limit",
        "fix: update pump state after refill",
        "Follow-up to the dependency bump",
        "",
    ],
)
def test_other_subjects_are_no_dependency_bumps(subject: str) -> None:
    assert not is_dependency_bump(subject)
