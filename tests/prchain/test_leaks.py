"""The leak check: the form of a text, what it refers to, and how the check treats any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.errors import PrchainError
from prchain.core.leaks import Finding, Kind, check, leaking
from prchain.core.leaks.check import LONGEST_TEXT
from prchain.core.leaks.finding import KINDS
from prchain.core.leaks.vocabulary import is_plain
from tests.growth import assert_linear
from tests.prchain.leak_chain import CHAIN, FILLER, PATHS, SHAS, found, leaks, warnings


def test_a_text_that_speaks_of_intent_and_names_the_path_is_clean() -> None:
    assert found("The number of attempts and the time between them can be chosen by the caller.") == []


def test_an_overview_may_name_nothing_of_any_stage_and_needs_no_path() -> None:
    text = FILLER.replace("src/net/pool.py", "the pool") + "Then {} follows."
    for name in ("max_retries", "trip_now"):
        kinds = [finding.kind for finding in check(text.format(name), CHAIN, 0, kind="overview", paths_at_base=PATHS)]
        assert kinds == ["other_stage_name"]
    assert check(text.format("more"), CHAIN, 0, kind="overview", paths_at_base=PATHS) == []


def test_shas_of_stages_leak_and_others_warn() -> None:
    assert leaks(f"See {SHAS[0][:8]}.") == {"sha"}
    assert leaks(f"See {SHAS[1]}.") == {"sha"}
    assert warnings("See deadbeef1.") == {"sha"}
    assert found("The facade is defaced.") == []


@pytest.mark.parametrize("text", ["#41", "PR 41", "PR\n#57", "pull/57", "GH-41", "pull request 57", "issue #41"])
def test_numbers_of_stages_leak(text: str) -> None:
    assert "pull_request_number" in leaks(f"See {text} for it.")


def test_other_numbers_warn_or_are_none() -> None:
    assert warnings("See #42.") == {"pull_request_number"}
    assert found("There are 41 attempts in 57 seconds.") == []


@pytest.mark.parametrize("text", ["https://till-docs.dev/a", "www.example.org", "github.com/o/n"])
def test_addresses_leak(text: str) -> None:
    assert leaks(f"See {text} for it.") == {"url"}


@pytest.mark.parametrize("text", ["Keys such as http://, https:// and ssh:// count.", "It begins with https://."])
def test_a_scheme_alone_is_no_address(text: str) -> None:
    assert leaks(text) == set()


@pytest.mark.parametrize(
    "text", ["\n- one\n- two\n", "\n1. one\n2. two\n", "Step 1 is this. Step 2 is that.", "(1) one, (2) two, (3) three"]
)
def test_lists_leak(text: str) -> None:
    assert leaks(text) == {"list"}


def test_one_point_or_ordinals_in_prose_only_warn() -> None:
    assert warnings("\n- one\n") == {"list"}
    assert warnings("First, one. Second, two. Third, three.") == {"list"}
    assert leaks("First, one. Second, two. Third, three.") == set()


def test_a_query_names_a_path_of_its_source_patch_in_full() -> None:
    for text in ("Work in pool.py.", "Work in old/xsrc/net/pool.pyx.", "Work in src/net."):
        kinds = {finding.kind for finding in found(text, filler=FILLER.replace("src/net/pool.py", "the pool"))}
        assert kinds == {"path_missing"}
    assert check("It still fails.", CHAIN, 1, kind="comment", paths_at_base=PATHS) == []


def test_paths_of_later_stages_leak() -> None:
    assert leaks("Later src/net/circuit.py comes.") == {"later_stage"}
    assert leaks("Use src/net/retry.py as it is.") == set()


@pytest.mark.parametrize(
    "text",
    [
        "Die Verbindung soll mehrfach versucht werden, bevor der Fehler gemeldet wird, weil viele bald vergehen.",
        "La connexion doit être essayée plusieurs fois avant que l'erreur ne soit signalée à celui qui appelle.",
        "Соединение должно быть установлено повторно, прежде чем ошибка будет передана вызывающему.",
        "连接失败时应当先重试若干次然后再向调用者报告错误因为大多数失败都是暂时的。" * 5,
    ],
)
def test_other_languages_leak_also_within_an_english_text(text: str) -> None:
    assert "wrong_language" in leaks("\n\n" + text)


def test_technical_english_is_english() -> None:
    text = "The asyncio eventloop's epoll and kqueue backends wrap getaddrinfo, so IPv6 addrinfo tuples are memoized."
    assert leaks(text) == set()


@pytest.mark.parametrize(
    "text",
    [
        "The pull\nrequest does it.",
        "This PR does it.",
        "The ground truth does it.",
        "As the diff shows, it works.",
        "Hidden tests check it.",
        "The reference solution does it.",
        "Here is the query you requested.",
    ],
)
def test_talk_about_the_making_leaks(text: str) -> None:
    assert leaks(text) == {"meta"}


@pytest.mark.parametrize(
    "text",
    [
        "The actual solution is in the given solution set.",
        "The original change of the sign stays.",
        "Show it in the diff.",
        "It stands in the patch that the agent submits.",
        "The agent opens a pull request.",
        "The subquery is slow.",
        "It is the reference implementation.",
    ],
)
def test_words_that_may_mean_the_subject_of_a_project_only_warn(text: str) -> None:
    assert leaks(text) == set()
    assert warnings(text) == {"meta"}


@pytest.mark.parametrize("text", ["The original change is shown in the diff.", "The given fix is in the patch."])
def test_words_that_may_mean_the_subject_leak_when_they_have_two_subjects(text: str) -> None:
    assert leaks(text) == {"meta"}


@pytest.mark.parametrize(
    "text",
    [
        "This pull request does it.",
        "The PR does it.",
        "The reference patch does it.",
        "This diff does it.",
        "The hidden tests fail.",
        "The merged solution has it.",
        "The patch introduces it.",
        "As seen in the diff, so.",
    ],
)
def test_words_that_only_mean_the_reference_leak_at_once(text: str) -> None:
    assert leaks(text) == {"meta"}


def test_a_comment_may_speak_of_the_patch_it_judges_but_not_of_the_reference() -> None:
    assert leaks("The patch changes too much, in the diff of the pool.", kind="comment") == set()
    assert leaks("The reference patch does it.", kind="comment") == {"meta"}
    assert found("Users can patch the diff viewer.") == []


@pytest.mark.parametrize(("text", "kind"), [("", "empty"), (" \n", "empty"), ("src/net/pool.py please", "too_short")])
def test_too_little_text_leaks(text: str, kind: str) -> None:
    assert [finding.kind for finding in check(text, CHAIN, 1, kind="query", paths_at_base=PATHS)] == [kind]


def test_too_much_text_leaks() -> None:
    assert leaks(FILLER * 12) == {"too_long"}
    assert "too_long" in leaks("x" * LONGEST_TEXT, kind="issue")


def test_of_an_issue_only_names_source_lines_and_shas_count() -> None:
    harmless = (
        "\n1. See #41 and https://example.org\n2. run\n```\nassert Pool(handshake_limit=2).connect() == 'ok'\n```\n"
    )
    assert check(harmless, CHAIN, 1, kind="issue", paths_at_base=PATHS) == []
    assert check("", CHAIN, 1, kind="issue", paths_at_base=PATHS) == []
    assert leaks("I set max_retries myself.", kind="issue") == {"introduced_name"}
    assert leaks(f"Since {SHAS[0]} it works.", kind="issue") == {"sha"}
    assert "code_line" in leaks("\n    if max_retries < 0:\n", kind="issue")


def test_leaks_come_first_and_nothing_comes_twice() -> None:
    all_found = found("See #42, `connect` and max_retries, `max_retries`, #42.")
    assert len(set(all_found)) == len(all_found)
    severities = [finding.severity for finding in all_found]
    assert severities == sorted(severities)
    assert leaking(all_found)
    assert not leaking([finding for finding in all_found if finding.severity == "warning"])


def test_every_kind_has_words_for_the_model() -> None:
    for kind in KINDS:
        words = Finding(kind, "leak", "some evidence").words()
        assert words.startswith("The text ")
        assert "\n" not in words


def test_a_position_outside_the_chain_is_an_error() -> None:
    with pytest.raises(ValueError, match="no stage 3"):
        check("text", CHAIN, 3, kind="query", paths_at_base=PATHS)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.sampled_from(["query", "overview", "comment", "issue"]))
def test_any_text_is_judged_twice_alike(text: str, kind: Kind) -> None:
    position = 0 if kind == "overview" else 1
    first = check(text, CHAIN, position, kind=kind, paths_at_base=PATHS)
    assert first == check(text, CHAIN, position, kind=kind, paths_at_base=PATHS)
    assert all(finding.kind in KINDS and "\n" not in finding.evidence for finding in first)


HOSTILE = [
    "a",
    "(",
    "a(",
    "/a",
    "a.",
    "`",
    "`a ",
    "'a ",
    "\n",
    " ",
    "#1 ",
    "deadbeef1 ",
    "_",
    "a-",
    "* a\n",
    "step 1 ",
    "http://",
    "a = b\n",
    "PR  ",
    "**a",
    "[a](b)",
    "&#",
    "the original ",
    "let a ",
    "x[",
    "return ",
    "\u0430",
    "a\u200b",
    "\uff41",
    "src/a/b.py ",
    "max_retries ",
    "Aa",
    '"a\n',
    "a'",
    "``a`",
    "~~~\n",
    "- ",
    "!",
    "1.",
    "@a",
    "<!--",
    "<!-- -->",
    "a<b",
    "a**",
    "a*~`",
    "a-",
    "a-b-",
    "a/b/",
    "for a in b:\n",
    "return a\n",
    "if a:\n",
    "in the diff ",
    "e\u0301",
    "a\u0332",
    "f(alpha, ",
    "f(alpha) ",
    "`f(a)[` ",
    "while ",
    "bWF4X3JldHJpZXM= ",
    "bWF4X3JldHJpZXM",
    "bWF4 X3Jl ",
    "6d ",
    "6d:",
    "%6d",
    "\\x6d",
    "a b ",
    "test up limit ",
    "MFRGGZDF ",
]


@pytest.mark.drawn(6)
@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("kind", ["query", "issue"])
def test_the_time_for_hostile_text_grows_as_it_does(piece: str, kind: Kind) -> None:
    is_plain("warm")
    assert_linear(
        lambda size: piece * (size // len(piece)),
        lambda text: check(text, CHAIN, 1, kind=kind, paths_at_base=PATHS),
        25_000,
    )


def test_a_text_of_many_paths_is_linear_in_the_tree() -> None:
    def text_and_paths(size: int) -> tuple[str, frozenset[str]]:
        tree = frozenset(f"src/p{i % 97}/q{i % 13}/mod{i}.py" for i in range(5 * size))
        return " ".join(f"src/p{i}/mod{i}.py" for i in range(size)), tree

    assert_linear(text_and_paths, lambda pair: check(pair[0], CHAIN, 1, kind="query", paths_at_base=pair[1]), 1000)


def test_the_check_raises_no_error_of_the_tree() -> None:
    try:
        found("\x00\ud800" * 10)
    except PrchainError as error:  # pragma: no cover
        pytest.fail(str(error))


@pytest.mark.parametrize(
    "text",
    [
        "A keyword argument named max retries with an underscore says so.",
        "Its name is the words max and retries joined by an underscore.",
        "The words delay and factor, written in snake case, name it.",
    ],
)
def test_a_name_that_is_spelt_out_leaks(text: str) -> None:
    assert "introduced_name" in leaks(text)


@pytest.mark.parametrize(
    "text",
    [
        "Names of columns are written with an underscore.",
        "A name such as hand over with an underscore is kept.",
        "The words handshake and limit joined by an underscore are told below.",
    ],
)
def test_words_that_are_no_hidden_name_may_be_spelt_out(text: str) -> None:
    assert "introduced_name" not in leaks(text)
