"""The leak check: each kind of finding where it applies and where it must not."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.errors import PrchainError
from prchain.git.patches import FilePatch, Hunk
from prchain.leaks import Finding, Kind, StageFacts, check, leaking, stage_facts
from prchain.leaks.check import LONGEST_TEXT
from prchain.leaks.finding import KINDS
from prchain.leaks.folding import fold
from prchain.leaks.vocabulary import is_plain

SHAS = ("a1b2c3d4e5f60718293a4b5c6d7e8f9001122334", "0f1e2d3c4b5a69788796a5b4c3d2e1f000112233")
BASE = {"Pool", "connect", "PoolError", "timeout", "drain_all", "MaxIdle"}
PATHS = ["src/net/pool.py", "src/net/retry.py", "src/net/core_loop.py", "tests/test_pool.py", "README.md"]

FILLER = (
    "Connections that fail for a moment should be tried again before the caller hears of it, because most of these "
    "failures pass. The place to work in is src/net/pool.py, where a connection is opened and where errors are raised. "
)


def patch(path: str, added: str, removed: str = "") -> FilePatch:
    lines = tuple(["-" + line for line in removed.splitlines()] + ["+" + line for line in added.splitlines()])
    return FilePatch(path, hunks=(Hunk(1, 1, 1, 1, "", lines),))


FIRST = stage_facts(
    41,
    SHAS[:1],
    [
        patch(
            "src/net/pool.py",
            """
class Pool:
    # Wait a little longer after every failure in a row so that the server recovers.
    def connect(self, max_retries=3, linger=0, max_idle=1):
        delay_factor = compute_backoff(self.attempts_made, "exponential/jitter")
        if max_retries < 0:
            raise PoolError("cannot retry a negative number of times")
        lazyconn = LazyConnection(delay_factor)
""",
            "    def connect(self):",
        )
    ],
    [
        patch(
            "tests/test_pool.py",
            'def test_gives_up_after_limit():\n    assert Pool(handshake_limit=2).connect() == "ok"',
        )
    ],
    BASE,
    ["handshake_limit"],
)
SECOND = stage_facts(
    57, SHAS[1:], [patch("src/net/circuit.py", "class CircuitBreaker:\n    def trip_now(self): ...")], [], BASE
)
CHAIN = [FIRST, SECOND]


def found(text: str, position: int = 1, kind: Kind = "query", filler: str = FILLER) -> list[Finding]:
    return check(filler + text, CHAIN, position, kind=kind, paths_at_base=PATHS)


def leaks(text: str, position: int = 1, kind: Kind = "query") -> set[str]:
    return {one.kind for one in found(text, position, kind) if one.severity == "leak"}


def warnings(text: str, position: int = 1, kind: Kind = "query") -> set[str]:
    return {one.kind for one in found(text, position, kind) if one.severity == "warning"}


def test_a_text_that_speaks_of_intent_and_names_the_path_is_clean() -> None:
    assert found("The number of attempts and the time between them can be chosen by the caller.") == []


@pytest.mark.parametrize(
    "text",
    [
        "Add max_retries to it.",
        "Add `max_retries` to it.",
        "Add maxRetries to it.",
        "Add MaxRetries() to it.",
        "Add MAX_RETRIES to it.",
        "Add `max-retries` to it.",
        "Add max\\_retries to it.",
        "Add max&#95;retries to it.",
        "Add max\u200b_retries to it.",
        "Add m\u0430x_retri\u0435s to it.",
        "Add \uff4d\uff41\uff58_retries to it.",
        "Several LazyConnections are made.",
        "A lazyconnection is made.",
        "Set `linger` for it.",
        "Set 'linger' for it.",
        "Call linger() for it.",
        "Set pool.linger for it.",
        "Keep lazyconn for it.",
        "It is tested by test_gives_up_after_limit then.",
    ],
)
def test_an_introduced_name_leaks_in_every_spelling(text: str) -> None:
    assert "introduced_name" in leaks(text)


@pytest.mark.parametrize(
    "text",
    [
        "Let connections linger for a while.",
        "A maximum number of retries is needed.",
        "Make the connection lazy.",
        "The handshake_limit counts.",
        "The `MaxIdle` setting stays.",
        "It linger(s) for a while.",
    ],
)
def test_plain_words_the_interface_and_spellings_that_stand_are_no_introduced_names(text: str) -> None:
    assert leaks(text) == set()


def test_words_of_a_named_path_do_not_count() -> None:
    facts = stage_facts(1, [], [patch("src/net/core_loop.py", "def core_loop(): ...")], [], set())
    text = FILLER + "Change src/net/core_loop.py so that the `core_loop` and net.core_loop end."
    assert check(text, [facts], 1, kind="query", paths_at_base=PATHS) == []


def test_a_name_that_stands_at_the_base_is_a_warning_when_its_definition_changes() -> None:
    assert warnings("Change what `connect` does.") == {"changed_name"}
    assert leaks("Change what `connect` does.") == set()


def test_names_of_other_stages_leak_when_they_are_later_and_warn_when_they_are_earlier() -> None:
    assert leaks("Prepare it for CircuitBreaker.") == {"other_stage_name"}
    later = check("The count of max_retries is right.", CHAIN, 2, kind="comment", paths_at_base=PATHS)
    assert [(one.kind, one.severity) for one in later] == [("other_stage_name", "warning")]


def test_an_overview_may_name_nothing_of_any_stage_and_needs_no_path() -> None:
    text = FILLER.replace("src/net/pool.py", "the pool") + "Then {} follows."
    for name in ("max_retries", "trip_now"):
        kinds = [one.kind for one in check(text.format(name), CHAIN, 0, kind="overview", paths_at_base=PATHS)]
        assert kinds == ["other_stage_name"]
    assert check(text.format("more"), CHAIN, 0, kind="overview", paths_at_base=PATHS) == []


@pytest.mark.parametrize(
    "text",
    [
        "Say that one cannot retry a negative number.",
        'Raise "Cannot retry a negative number of times".',
        "The strategy is exponential/jitter by default.",
        "Wait a little longer after every failure in a row then.",
    ],
)
def test_words_of_literals_and_comments_leak(text: str) -> None:
    assert "string_literal" in leaks(text)


@pytest.mark.parametrize(
    "text",
    ["A negative number of attempts is an error.", "Grow the time exponentially, with some jitter.", "Wait longer."],
)
def test_the_same_thing_in_other_words_is_clean(text: str) -> None:
    assert leaks(text) == set()


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


@pytest.mark.parametrize("text", ["https://example.org/a", "www.example.org", "github.com/o/n"])
def test_addresses_leak(text: str) -> None:
    assert leaks(f"See {text} for it.") == {"url"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\n```\nx\n```\n", "code_block"),
        ("\n~~~ python\nx\n~~~\n", "code_block"),
        ("\ndelay_factor = compute_backoff(self.attempts_made, 'x')\n", "code_line"),
        ('Do `compute_backoff(self.attempts_made, "exponential/jitter")` there.', "code_line"),
        ("Do `limit = 3` there.", "code_line"),
        ("Do `return limit` there.", "code_line"),
        ("Do open(path, mode) there.", "code_line"),
        ("\ndef run(x):\n", "code_line"),
        ("\n@@ -1,3 +1,4 @@\n", "code_line"),
        ("\nconst limit = 3;\n", "code_line"),
    ],
)
def test_code_leaks(text: str, kind: str) -> None:
    assert kind in leaks(text)


@pytest.mark.parametrize(
    "text",
    [
        "The option(s) and the director(y) count.",
        "The value f(x) at x = 0 is right.",
        "Use `--max=3` or `{`.",
        "The core(see there) is small.",
        "let an old connection go\nfrom there on\n",
    ],
)
def test_what_only_looks_like_code_does_not_leak(text: str) -> None:
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
        kinds = {one.kind for one in found(text, filler=FILLER.replace("src/net/pool.py", "the pool"))}
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
        "The pull\nrequest does it.", "This PR does it.", "The ground truth does it.", "As the diff shows, it works.",
        "Hidden tests check it.", "The reference solution does it.", "Here is the query you requested.",
    ],
)  # fmt: skip
def test_talk_about_the_making_leaks(text: str) -> None:
    assert leaks(text) == {"meta"}


def test_a_comment_may_speak_of_the_patch_it_judges_but_not_of_the_reference() -> None:
    assert leaks("The patch changes too much, in the diff of the pool.", kind="comment") == set()
    assert leaks("The reference patch does it.", kind="comment") == {"meta"}
    assert found("Users can patch the diff viewer.") == []


@pytest.mark.parametrize(("text", "kind"), [("", "empty"), (" \n", "empty"), ("src/net/pool.py please", "too_short")])
def test_too_little_text_leaks(text: str, kind: str) -> None:
    assert [one.kind for one in check(text, CHAIN, 1, kind="query", paths_at_base=PATHS)] == [kind]


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
    severities = [one.severity for one in all_found]
    assert severities == sorted(severities)
    assert leaking(all_found)
    assert not leaking([one for one in all_found if one.severity == "warning"])


def test_every_kind_has_words_for_the_model() -> None:
    for kind in KINDS:
        words = Finding(kind, "leak", "some evidence").words()
        assert words.startswith("The text ")
        assert "\n" not in words


def test_a_position_outside_the_chain_is_an_error() -> None:
    with pytest.raises(ValueError, match="no stage 3"):
        check("text", CHAIN, 3, kind="query", paths_at_base=PATHS)


def test_facts_survive_json_and_hold_no_code() -> None:
    text = FIRST.to_json()
    assert StageFacts.from_json(text) == FIRST
    assert json.loads(text)["number"] == 41
    for word in ("negative number", "exponential/jitter", "recovers", "delay_factor ="):
        assert word not in text
    assert stage_facts(1, [], [], [], set()).to_json() == stage_facts(1, [], [], [], set()).to_json()


def test_moved_lines_and_literals_are_not_new() -> None:
    line = '    raise PoolError("cannot retry a negative number of times")'
    facts = stage_facts(1, [], [patch("a.py", line, line)], [], {"PoolError"})
    assert (facts.line_digests, facts.literals) == (frozenset(), frozenset())


def test_words_of_the_trade_and_inflected_ones_are_plain() -> None:
    for word in ("configs", "Retrying", "parser's", "GitHub", "memoized", "linger"):
        assert is_plain(word)
    for word in ("lazyconn", "kqueue", "addrinfo"):
        assert not is_plain(word)


def test_folding_keeps_lines_and_plain_text() -> None:
    assert fold("a\u200bb\ncaf\u00e9 \u0440\u0430th") == "ab\ncaf\u00e9 path"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300), st.sampled_from(["query", "overview", "comment", "issue"]))
def test_any_text_is_judged_twice_alike(text: str, kind: Kind) -> None:
    position = 0 if kind == "overview" else 1
    first = check(text, CHAIN, position, kind=kind, paths_at_base=PATHS)
    assert first == check(text, CHAIN, position, kind=kind, paths_at_base=PATHS)
    assert all(one.kind in KINDS and "\n" not in one.evidence for one in first)


@settings(max_examples=40, deadline=None)
@given(
    st.text(st.characters(categories=["L", "Zs", "Po"]), max_size=80), st.sampled_from(["max_retries", "delay_factor"])
)
def test_a_name_leaks_wherever_it_stands(around: str, name: str) -> None:
    assert "introduced_name" in leaks(f"{around} {name} {around}")


HOSTILE = [
    "a", "(", "a(", "/a", "a.", "`", "`a ", "'a ", "\n", " ", "#1 ", "deadbeef1 ", "_", "a-", "* a\n", "step 1 ", "http://",
    "a = b\n", "PR  ", "**a", "[a](b)", "&#", "the original ", "let a ", "x[", "return ", "\u0430", "a\u200b", "\uff41",
    "src/a/b.py ", "max_retries ", "Aa", "\"a\n", "a'", "``a`", "~~~\n", "- ", "!", "1.", "@a",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize("kind", ["query", "issue"])
def test_hostile_text_takes_no_long_time(piece: str, kind: Kind) -> None:
    is_plain("warm")
    text = piece * (100_000 // len(piece))
    start = time.process_time()
    check(text, CHAIN, 1, kind=kind, paths_at_base=PATHS)
    assert time.process_time() - start < 0.5


def test_a_text_of_many_paths_is_linear_in_the_tree() -> None:
    tree = frozenset(f"src/p{i % 97}/q{i % 13}/mod{i}.py" for i in range(20_000))
    text = " ".join(f"src/p{i}/mod{i}.py" for i in range(4_000))
    start = time.process_time()
    check(text, CHAIN, 1, kind="query", paths_at_base=tree)
    assert time.process_time() - start < 1.0


def test_the_check_raises_no_error_of_the_tree() -> None:
    try:
        found("\x00\ud800" * 10)
    except PrchainError as error:  # pragma: no cover
        pytest.fail(str(error))
