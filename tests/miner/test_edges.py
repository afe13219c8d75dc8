"""The miner's rules: each reason where it applies and where it must not, the weak signs, stacks, shas and events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from miner.copies import CommitText, Provenance
from miner.edge_facts import PullRequestFacts, SourceText
from miner.edges import (
    MOST_BARE,
    MOST_IN_PULL_REQUEST,
    MOST_IN_TEXT,
    CitationEdge,
    PullRequestIndex,
)
from miner.stacks import MOST_STACKED
from tests.growth import assert_linear
from tests.miner.gitworld import GITHUB

CITING, CITED = 50, 40
KINDS: Mapping[str, Any] = {"title": "title", "branch": "branch", "commit": "commit", "landing": "commit"}


def text(field: str, body: str, key: str = "", **values: Any) -> SourceText:
    return SourceText(field, key, body, KINDS.get(field, "markdown"), **values)


def pull(
    number: int, *texts: SourceText, branch: str | None = "main", at: int | None = None, **values: Any
) -> PullRequestFacts:
    """A pull request, landed in the order of the numbers unless told otherwise; a branch of None never landed."""
    position = number if at is None else at
    order = None if branch is None else (branch, position)
    return PullRequestFacts(
        number,
        order=order,
        landed_at="" if branch is None else f"2024-01-01T{position // 60:02}:{position % 60:02}:00Z",
        landed_sha="" if branch is None else sha(number),
        texts=list(texts),
        **values,
    )


def sha(number: int) -> str:
    return f"{number:07d}" + "ab" * 16 + "0"


def landscape(
    *pulls: PullRequestFacts,
    size: int = 60,
    subjects: Mapping[int, str] | None = None,
    shas: Mapping[str, int] | None = None,
    aliases: Collection[str] = (),
) -> PullRequestIndex:
    everyone = {number: pull(number) for number in range(1, size + 1)} | {each.number: each for each in pulls}
    provenance = Provenance()
    for number, subject in (subjects or {}).items():
        provenance.add_subject(number, subject)
    return PullRequestIndex("o/n", aliases, GITHUB, everyone, provenance, shas or {})


def judged(
    *texts: SourceText, number: int = CITING, others: Sequence[PullRequestFacts] = (), **values: Any
) -> list[CitationEdge]:
    """The edges of one pull request with these texts, among sixty landed ones."""
    about = {name: values.pop(name) for name in ("subject", "paths", "by_bot", "branch", "at") if name in values}
    citing = pull(number, *texts, **about)
    return landscape(citing, *others, **values).edges_of(citing)


def the_edge(*texts: SourceText, target: int = CITED, **values: Any) -> CitationEdge:
    [edge] = [edge for edge in judged(*texts, **values) if edge.target == target]
    return edge


def reason(*texts: SourceText, **values: Any) -> str | None:
    edge = the_edge(*texts, **values)
    assert edge.counted is (edge.reason is None)
    return edge.reason


# Every reason, and its near miss.

SUBJECT = {CITED: "Write a parser"}


@pytest.mark.parametrize(
    ("texts", "values", "expected"),
    [
        # Copied texts come marked by miner.copies, and lose to nothing else.
        ([text("commit", "Follow-up to #40", copied="merge_message")], {}, "merge_message"),
        ([text("commit", "Follow-up to #40", copied="landed_copy")], {}, "landed_copy"),
        ([text("commit", "Follow-up to #40", copied="shared_commit")], {}, "shared_commit"),
        ([text("commit", "Follow-up to #40")], {}, None),
        # A line that is the cited subject was copied; a line that says more was written.
        ([text("landing", "Lex\n\n* Write a parser (#40)\n")], {"subjects": SUBJECT}, "copied_subject"),
        (
            [text("landing", "Lex\n\n* Write a parser #40\n")],
            {"subjects": {CITED: "Write a parser #40"}},
            "copied_subject",
        ),
        ([text("body", "Write a parser (#40)")], {"subjects": SUBJECT}, "copied_subject"),
        ([text("landing", "Lex\n\n* Use what #40 wrote as a parser\n")], {"subjects": SUBJECT}, None),
        ([text("landing", "Lex\n\n* Write a parser for #40\n")], {"subjects": SUBJECT}, None),
        # A listed commit that ends in its number, whatever its subject: squash bodies list what a branch merged.
        ([text("landing", "Lex\n\n* Something else (#40)\n")], {}, "copied_subject"),
        # A merge picked over is a backport where it lands, and a copy of the trunk where it does not.
        ([text("commit", "Merge pull request #40 from x/y\n\nTitle")], {"branch": None}, "landed_copy"),
        ([text("commit", "Merge pull request #40 from x/y\n\nTitle")], {}, None),
        ([text("landing", "Lex\n\nSomething else (#40)\n")], {}, None),
        ([text("body", "* Something else (#40)\n")], {}, None),
        ([text("landing", 'Lex\n\n* Revert "Write a parser (#40)"\n')], {"subjects": SUBJECT}, None),
        ([text("landing", "Lex\n\n* Backport the parser (#40)\n")], {"subjects": SUBJECT}, None),
        # The number at the end of a commit's own subject is the commit's own.
        ([text("commit", "Write a parser (#40)")], {}, "own_tail"),
        ([text("commit", "Write a parser, see #40 for why")], {}, None),
        # Somebody else's words.
        ([text("comment", "> depends on #40\n\nno")], {}, "quote"),
        ([text("comment", "depends on #40\n\n> yes")], {}, None),
        ([text("body", "<details>\ndepends on #40\n</details>")], {}, "details"),
        ([text("body", "<details>\nnothing\n</details>\ndepends on #40")], {}, None),
        ([text("body", "Link an issue, e.g. fixes #40")], {}, "template"),
        ([text("body", "Fixes #40, e.g. on Windows")], {}, None),
        ([text("body", "see https://redirect.github.com/o/n/pull/40")], {}, "redirector"),
        ([text("body", "see https://github.com/o/n/pull/40")], {}, None),
        # A release is what it does: its subject, and files that releases change.
        ([text("body", "with #40")], {"subject": "Release 1.2.3", "paths": ["CHANGELOG.md"]}, "release"),
        ([text("body", "with #40")], {"subject": "chore(main): release 1.2.3", "paths": ["package.json"]}, "release"),
        ([text("body", "with #40")], {"subject": "Release 1.2.3", "paths": ["CHANGELOG.md", "src/a.py"]}, None),
        ([text("body", "with #40")], {"subject": "Release the lock early", "paths": ["src/lock.py"]}, None),
        # A dependency bump is one by its subject and its files, not by who opened it.
        (
            [text("body", "with #40")],
            {"subject": "Bump foo from 1 to 2", "paths": ["requirements.txt"], "by_bot": True},
            "dependency_bump",
        ),
        ([text("body", "with #40")], {"subject": "Bump foo from 1 to 2", "paths": ["poetry.lock"]}, "dependency_bump"),
        ([text("body", "with #40")], {"subject": "Bump foo from 1 to 2"}, "dependency_bump"),
        ([text("body", "with #40")], {"subject": "Bump foo from 1 to 2", "paths": ["go.mod", "src/a.go"]}, None),
        ([text("body", "with #40")], {"subject": "Bump the limit", "paths": ["setup.py"]}, None),
        ([text("body", "follow-up to #40")], {"subject": "Correct a.py", "paths": ["a.py"], "by_bot": True}, None),
        # Release notes, in whatever pull request.
        ([text("body", "## What's Changed\n* a by @x in #40\n")], {}, "release_notes"),
        ([text("body", "Changes what #40 changed")], {}, None),
        # A number nobody has, or an issue's.
        ([text("body", "fixes #4000")], {"target": 4000}, "not_a_pull_request"),
        ([text("body", "fixes #40")], {}, None),
        # What landed later was not there to be depended on.
        ([text("body", "depends on #40")], {"at": 30}, "landed_later"),
        ([text("body", "depends on #40")], {"at": 41}, None),
        ([text("body", "depends on #40")], {"branch": None}, None),
    ],
)
def test_a_reason_applies_where_it_should_and_not_beside_it(
    texts: list[SourceText], values: dict[str, Any], expected: str | None
) -> None:
    assert reason(*texts, **values) == expected


def numbers(count: int, words: str = "see") -> str:
    return ", ".join(f"{words} #{number}" for number in range(1, count + 1))


def test_a_text_that_cites_many_is_a_list_and_one_less_is_none() -> None:
    crowd = judged(text("body", numbers(MOST_IN_TEXT)))
    assert {edge.reason for edge in crowd} == {"number_list"}
    assert all(edge.counted for edge in judged(text("body", numbers(MOST_IN_TEXT - 1))))


def test_a_number_that_is_cited_often_makes_no_list() -> None:
    [edge] = judged(text("body", "see #40, " * 100))
    assert edge.counted


@pytest.mark.parametrize(("count", "counted"), [(MOST_IN_PULL_REQUEST, True), (MOST_IN_PULL_REQUEST + 1, False)])
def test_a_pull_request_that_cites_many_in_many_texts_is_a_list(count: int, counted: bool) -> None:
    edges = judged(*(text("comment", f"follow-up to #{number}", str(number)) for number in range(1, count + 1)))
    assert {(edge.counted, edge.reason) for edge in edges} == {(counted, None if counted else "number_list")}


def test_of_commits_that_bring_many_numbers_only_plain_words_are_believed() -> None:
    brought = [
        text("commit", f"Something (#{number})\n", f"{number:040d}", copied="landed_copy")
        for number in range(1, MOST_BARE + 2)
    ]
    own = [text("body", "Depends on #40. See also #41.")]
    by_target = {edge.target: edge.reason for edge in judged(*brought, *own)}
    assert (by_target[40], by_target[41]) == (None, "number_list")
    by_target = {edge.target: edge.reason for edge in judged(*brought[1:], *own)}
    assert (by_target[40], by_target[41]) == (None, None)


# Order.


def test_order_is_that_of_landing_and_not_of_numbers() -> None:
    assert reason(text("body", "depends on #55"), target=55, others=[pull(55, at=45)]) is None
    assert reason(text("body", "depends on #55"), target=55, others=[pull(55, at=51)]) == "landed_later"


def test_between_branches_the_time_of_landing_decides() -> None:
    other = pull(CITED, branch="1.x", at=5)
    assert reason(text("body", "backport of #40"), branch="1.x", at=1, others=[pull(CITED, at=0)]) is None
    assert reason(text("body", "backport of #40"), branch="main", at=4, others=[other]) == "landed_later"
    assert reason(text("body", "backport of #40"), branch="main", at=6, others=[other]) is None


def test_what_did_not_land_has_no_order() -> None:
    edge = the_edge(text("body", "supersedes #40"), others=[pull(CITED, branch=None)])
    assert edge.counted
    assert edge.weak_signs == ("unlanded",)


# Weak signs lower the confidence and are no gates.


@pytest.mark.parametrize(
    ("target", "values", "signs"),
    [
        (CITED, {}, ()),
        (55, {"others": [pull(55, at=3)]}, ("cites_larger_number",)),
        (30, {"size": 1001}, ("small_number",)),
        (31, {"size": 1001}, ()),
        (30, {"size": 1000}, ()),
        (1, {"size": 60}, ()),
        (CITED, {"by_bot": True}, ("bot",)),
        (CITED, {"others": [pull(CITED, branch=None)]}, ("unlanded",)),
        (30, {"size": 1001, "by_bot": True, "others": [pull(30, branch=None)]}, ("small_number", "bot", "unlanded")),
    ],
)
def test_weak_signs_lower_the_confidence_and_drop_nothing(
    target: int, values: dict[str, Any], signs: tuple[str, ...]
) -> None:
    edge = the_edge(text("body", f"depends on #{target}"), target=target, **values)
    assert edge.counted
    assert edge.weak_signs == signs
    assert (edge.confidence == 0.9) is (not signs)
    assert 0 < edge.confidence <= 0.9


def test_a_comment_of_a_bot_is_surer_than_nothing_and_less_sure_than_an_authors() -> None:
    bot = the_edge(text("comment", "depends on #40", by_bot=True))
    author = the_edge(text("comment", "depends on #40"))
    assert bot.counted
    assert 0 < bot.confidence < author.confidence
    assert bot.weak_signs == ("bot",)


def test_explicit_relations_are_surer_than_mentions() -> None:
    sure = [the_edge(text("body", f"{words} #40")).confidence for words in ("depends on", "fixes", "see")]
    assert sure == sorted(sure, reverse=True)
    assert len(set(sure)) == 3


# Fields, shas, aliases.


@pytest.mark.parametrize(
    ("field", "body", "relation"),
    [
        ("title", "Follow-up to #40", "follow_up"),
        ("body", "Follow-up to #40", "follow_up"),
        ("comment", "reverts #40", "reverts"),
        ("review", "see #40", "mentions"),
        ("review_comment", "depends on #40", "depends_on"),
        ("commit", "Correct it\n\nFollow-up to #40", "follow_up"),
        ("landing", "Correct it (#50)\n\nFollow-up to #40", "follow_up"),
        ("branch", "backport-pr-40-to-1.x", "backports"),
    ],
)
def test_an_edge_says_in_which_text_it_stands(field: str, body: str, relation: str) -> None:
    edge = the_edge(text(field, body, "key"))
    assert (edge.source, edge.field, edge.key, edge.relation, edge.counted) == (CITING, field, "key", relation, True)
    assert "40" in edge.snippet


def test_one_place_makes_one_edge_and_the_one_that_counts_stays() -> None:
    edges = judged(text("comment", "> see #40\n\nsee #40, and see #40 again", "1"), text("comment", "see #40", "2"))
    assert [(edge.key, edge.counted) for edge in edges] == [("1", True), ("2", True)]


REVERT = 'Revert "Write"\n\nThis reverts commit {}.'


@pytest.mark.parametrize(
    ("written", "target"),
    [
        (sha(CITED), CITED),
        (sha(CITED)[:12], CITED),
        (sha(CITED)[:8], CITED),
        ("f" * 40, None),
        ("1234567a", None),
    ],
)
def test_a_sha_resolves_to_the_pull_request_that_landed_it(written: str, target: int | None) -> None:
    edges = judged(text("commit", REVERT.format(written)), shas={sha(CITED): CITED, "1234567b" + "0" * 32: 7})
    assert [(edge.target, edge.relation, edge.syntax) for edge in edges] == (
        [(target, "reverts", "sha")] if target else []
    )


def test_a_prefix_of_two_commits_resolves_to_neither_unless_they_landed_together() -> None:
    ambiguous = {"abc1234" + "0" * 33: 7, "abc1234" + "1" * 33: 8}
    assert judged(text("commit", REVERT.format("abc1234")), shas=ambiguous) == []
    assert the_edge(text("commit", REVERT.format("abc12341")), shas=ambiguous, target=8).counted
    together = dict.fromkeys(ambiguous, 7)
    assert the_edge(text("commit", REVERT.format("abc1234")), shas=together, target=7).counted


def test_its_own_sha_is_no_citation() -> None:
    assert judged(text("commit", REVERT.format(sha(CITING))), shas={sha(CITING): CITING}) == []


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("depends on o/n#40", True),
        ("depends on O/N#40", True),
        ("depends on old/name#40", True),
        ("depends on https://github.com/Old/Name/pull/40", True),
        ("depends on other/n#40", False),
        ("depends on https://github.com/other/n/pull/40", False),
        ("depends on https://github.com.evil.host/o/n/pull/40", False),
        (f"This reverts commit other/n@{sha(CITED)}", False),
    ],
)
def test_citations_under_a_former_name_are_own_and_others_are_foreign(body: str, found: bool) -> None:
    edges = judged(text("body", body), aliases=["old/name"], shas={sha(CITED): CITED})
    assert [edge.target for edge in edges if edge.counted] == ([CITED] if found else [])


# GitHub's own events.


def with_events(*texts: SourceText, events: list[tuple[int, str, str]], **values: Any) -> list[CitationEdge]:
    citing = pull(CITING, *texts, **values)
    citing.events = events
    return landscape(citing).edges_of(citing)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], None),
        ([text("body", "depends on #40")], None),
        ([text("comment", "> depends on #40")], "quote"),
        ([text("comment", "> depends on #40", "1"), text("comment", "depends on #40", "2")], None),
        ([text("commit", "see #40", copied="landed_copy")], "landed_copy"),
        ([text("body", numbers(60))], "number_list"),
    ],
)
def test_an_event_agrees_with_what_the_texts_say(texts: list[SourceText], expected: str | None) -> None:
    [event] = [edge for edge in with_events(*texts, events=[(40, "E1", "mentions")]) if edge.field == "event"]
    assert (event.source, event.target, event.key, event.syntax) == (CITING, 40, "E1", "event")
    assert (event.reason, event.counted) == (expected, expected is None)


def test_an_event_agrees_with_plain_words_in_a_pull_request_that_brings_many_numbers() -> None:
    brought = [
        text("commit", f"Something (#{number})\n", f"{number:040d}", copied="landed_copy")
        for number in range(1, MOST_BARE + 5)
    ]
    events = [(40, "E1", "mentions"), (41, "E2", "mentions")]
    edges = with_events(*brought, text("body", "Depends on #40. See #41."), events=events)
    assert {edge.key: edge.reason for edge in edges if edge.field == "event"} == {"E1": None, "E2": "number_list"}


def test_an_event_alone_passes_the_rules_that_need_no_text() -> None:
    assert [edge.reason for edge in with_events(events=[(55, "E", "mentions")])] == ["landed_later"]
    bump = with_events(events=[(40, "E", "mentions")], subject="Bump foo from 1 to 2")
    assert [edge.reason for edge in bump] == ["dependency_bump"]


def test_events_of_strangers_and_of_oneself_are_none() -> None:
    assert with_events(events=[(4000, "E1", "mentions"), (CITING, "E2", "mentions")]) == []


# Stacks.


def stacked(
    own: list[str],
    parent: PullRequestFacts,
    *others: PullRequestFacts,
    paths: Sequence[str] = ("src/a.py",),
    at: int | None = None,
) -> list[CitationEdge]:
    child = pull(CITING, own=own, head_sha="h" * 40, at=at, paths=paths)
    return landscape(child, parent, *others).edges_of(child)


PARENT = pull(CITED, head_sha="p" * 40, own=["p" * 40], paths=["src/a.py", "CHANGELOG.md"])


def test_a_branch_with_the_head_of_a_squashed_one_below_it_is_stacked_on_that() -> None:
    [edge] = stacked(["p" * 40, "h" * 40], PARENT)
    assert (edge.target, edge.relation, edge.field, edge.syntax, edge.counted) == (
        CITED,
        "stacked_on",
        "history",
        "ancestry",
        True,
    )
    assert edge.key == "p" * 40
    assert edge.weak_signs == ("ancestry_only",)


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        (["src/a.py"], None),
        (["src/b.py"], "no_common_file"),
        (["CHANGELOG.md"], "no_common_file"),
        ([], "no_common_file"),
    ],
)
def test_a_stack_changes_a_file_that_is_more_than_housekeeping_in_common(
    paths: list[str], expected: str | None
) -> None:
    [edge] = stacked(["p" * 40, "h" * 40], PARENT, paths=paths)
    assert edge.reason == expected


@pytest.mark.parametrize(
    ("own", "parent", "at"),
    [
        (["h" * 40], PARENT, None),
        (["p" * 40, sha(CITED), "h" * 40], PARENT, None),
        (["p" * 40, "h" * 40], pull(CITED, branch=None, head_sha="p" * 40), None),
        (["p" * 40, "h" * 40], PARENT, 39),
        (["p" * 40, "h" * 40], replace(PARENT, head_sha="h" * 40), None),
    ],
    ids=["not below", "carried", "unlanded", "landed later", "same head"],
)
def test_what_is_no_stack(own: list[str], parent: PullRequestFacts, at: int | None) -> None:
    assert stacked(own, parent, at=at) == []


def test_an_unlanded_branch_is_stacked_on_nothing() -> None:
    child = pull(CITING, branch=None, own=["p" * 40, "h" * 40], head_sha="h" * 40)
    assert landscape(child, PARENT).edges_of(child) == []


@pytest.mark.parametrize(("count", "found"), [(MOST_STACKED, MOST_STACKED), (MOST_STACKED + 1, 0)])
def test_a_branch_that_collects_others_is_built_on_none(count: int, found: int) -> None:
    parents = [
        replace(PARENT, number=number, head_sha=f"{number:040d}", order=("main", number))
        for number in range(1, count + 1)
    ]
    own = [*(f"{number:040d}" for number in range(1, count + 1)), "h" * 40]
    assert len(stacked(own, *parents)) == found


# Whatever stands in the texts.

PIECES = [
    "#1",
    "#2",
    "#3",
    "(#2)",
    "#99",
    "o/n#1",
    "GH-2",
    "fixes ",
    "reverts ",
    'Revert "',
    '"',
    "\n",
    "\n\n",
    "> ",
    "* ",
    "1. ",
    "`",
    "```\n",
    "<details>",
    "</details>",
    "<!--",
    "-->",
    "[",
    "](",
    ")",
    sha(1),
    sha(2)[:7],
    "https://github.com/o/n/pull/1",
    "@",
    "#",
    "\x00",
    "\ud800",
    "\u202e",
    "\r",
    "e.g. ",
    "depends on ",
    "This reverts commit ",
    "## What's Changed\n",
    "word ",
    "Merge pull request #3 from o/x",
    " " * 50,
]
texts = st.builds(
    lambda field, key, body, copied, by_bot: text(field, body, key, copied=copied, by_bot=by_bot),
    st.sampled_from(["title", "body", "comment", "review", "review_comment", "commit", "landing", "branch"]),
    st.sampled_from(["", "1", "2"]),
    st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=20).map("".join),
    st.sampled_from([None, None, None, "landed_copy"]),
    st.booleans(),
)
events = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.sampled_from(["mentions", "closes"])), max_size=4
)


@settings(max_examples=300, deadline=None)
@given(st.lists(texts, max_size=6), events, st.text(max_size=30), st.lists(st.text(max_size=10), max_size=3))
def test_no_text_makes_the_rules_crash_and_they_judge_alike_twice(
    several: list[SourceText], cited: list[tuple[int, str, str]], subject: str, paths: list[str]
) -> None:
    def judge() -> list[CitationEdge]:
        citing = pull(3, *several, subject=subject, paths=paths, own=[sha(1), sha(3)], head_sha=sha(3))
        citing.events = cited
        parent = pull(1, head_sha=sha(1), at=0)
        parent.landed_sha = "e" * 40
        world = landscape(
            citing, parent, size=4, subjects={2: "word word word"}, shas={sha(1): 1, sha(2): 2, sha(3): 3}
        )
        return world.edges_of(citing)

    edges = judge()
    assert edges == judge()
    places = [(edge.target, edge.relation, edge.field, edge.key) for edge in edges]
    assert len(places) == len(set(places))
    for edge in edges:
        assert edge.source == 3
        assert edge.target != 3
        assert edge.counted is (edge.reason is None)
        assert 0 < edge.confidence <= 1
        assert "\n" not in edge.snippet


# Time.


def synthetic(count: int) -> PullRequestIndex:
    pulls, provenance = [], Provenance()
    shas = {}
    for number in range(1, count + 1):
        own = [
            CommitText(f"{number:08x}" + "0" * 32, "A", f"{number}", 1, f"Change {number} for #{max(1, number - 3)}")
        ]
        landing = CommitText(sha(number), "A", f"{number}", 1, f"Change the part {number} (#{number})")
        provenance.add(number, True, landing, own)
        shas[landing.sha] = number
        body = f"Follow-up to #{max(1, number - 1)}, see #{max(1, number - 7)}.\n\nReverts {sha(max(1, number - 2))}."
        each = pull(number, text("body", body), own=[own[0].sha], head_sha=own[0].sha, at=number)
        each.events = [(max(1, number - 1), "E", "mentions")]
        pulls.append(each)
    return PullRequestIndex("o/n", (), GITHUB, {each.number: each for each in pulls}, provenance, shas)


def test_time_grows_with_the_number_of_pull_requests_and_not_with_its_square() -> None:
    def work(world: PullRequestIndex) -> None:
        for each in world.pulls.values():
            world.edges_of(each)

    assert_linear(synthetic, work, 1000)


HUGE = {
    "a list": lambda size: " ".join(f"#{number}" for number in range(1, size // 6)),
    "one number again and again": lambda size: "see #40 " * (size // 8),
    "a few numbers on one line": lambda size: "#1 #2 #3 #4 #5 " * (size // 16),
    "bullets": lambda size: "* Something (#40)\n" * (size // 16),
    "tails": lambda size: "Something " + "(#40) " * (size // 6) + "x",
    "blanks": lambda size: "#40" + " " * (3 * size // 2) + "#41" + " " * (3 * size // 2) + "x",
}
"""GitHub lets a body be 65 kB long."""


@pytest.mark.drawn(6)
@pytest.mark.parametrize("body", HUGE.values(), ids=HUGE.keys())
@pytest.mark.parametrize("field", ["body", "commit"])
def test_the_time_for_a_huge_text_grows_as_it_does(field: str, body: Callable[[int], str]) -> None:
    subjects = dict.fromkeys(range(1, 60), "Something that is long enough to be cut short")
    assert_linear(body, lambda written: judged(text(field, written), subjects=subjects), 16_000)


def huge(size: int) -> PullRequestIndex:
    """Its last pull request has so many commits that cite nine others each, a long body, and as many events."""
    several = [
        text("commit", " and ".join(f"see #{9 * i + j}" for j in range(1, 10)), f"{i:040d}") for i in range(size)
    ]
    citing = pull(12 * size, *several, text("body", "see #40 " * (50 * size)), at=18 * size)
    citing.events = [(number, f"E{number}", "mentions") for number in range(1, 9 * size + 1)]
    return landscape(citing, size=9 * size + 1)


def test_the_time_for_a_huge_pull_request_grows_as_it_does() -> None:
    assert_linear(huge, lambda world: world.edges_of(world.pulls[max(world.pulls)]), 125)


def test_what_a_huge_pull_request_cites_is_a_list_of_numbers() -> None:
    world = huge(500)
    edges = world.edges_of(world.pulls[6000])
    assert len(edges) == 9002 - 1
    assert {edge.reason for edge in edges} == {"number_list"}
