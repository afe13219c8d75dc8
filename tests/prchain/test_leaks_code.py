"""The leak check: names, literals and code of the patches, and code at all."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.code.needs import Need
from prchain.core.leaks import StageFacts, check, stage_facts, telling
from prchain.core.leaks.encodings import decodings
from prchain.core.leaks.folding import fold
from prchain.core.leaks.vocabulary import is_plain
from tests.prchain.leak_chain import CHAIN, FILLER, FIRST, PATHS, leaks, patch, warnings


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
    assert [(finding.kind, finding.severity) for finding in later] == [("other_stage_name", "warning")]


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


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\n```\nx\n```\n", "code_block"),
        ("\n~~~ python\nx\n~~~\n", "code_block"),
        ("\ndelay_factor = compute_backoff(self.attempts_made, 'x')\n", "code_line"),
        ('Do `compute_backoff(self.attempts_made, "exponential/jitter")` there.', "code_line"),
        ("Do `limit = 3` there.", "code_line"),
        ("Do `return limit` there.", "code_line"),
        ("Do open(path, mode='w') there.", "code_line"),
        ("Do lazyconn(path, mode) there.", "code_line"),
        ("Do connect(path, mode) there.", "code_line"),
        ("Do open_it(path, mode) there.", "code_line"),
        ("Do pool.open(path, mode) there.", "code_line"),
        ("Do `[path, open(mode)]` there.", "code_line"),
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
        "The value `sin(theta)` and exp(alpha + beta) are right.",
        "It takes O(nm) for the file(names).",
        "Do open(path, mode) there.",
        "A key(e.g. one) is enough.",
        "let an old connection go\nfrom there on\n",
    ],
)
def test_what_only_looks_like_code_does_not_leak(text: str) -> None:
    assert leaks(text) == set()


CENTS = stage_facts(
    1, [], [patch("a/money.py", "def round_half_even_cents(x): ...\ndef end_to_end(x): ...\nlazyconn = 1")], [], set()
)


def cents_leak(text: str) -> bool:
    findings = check(FILLER + text, [CENTS], 1, kind="comment", paths_at_base=PATHS)
    return any(finding.kind == "introduced_name" and finding.severity == "leak" for finding in findings)


@pytest.mark.parametrize(
    "name",
    [
        "round-half-even-cents",
        "Round-Half-Even-Cents",
        "--round-half-even-cents",
        "round/half/even/cents",
        "round_half_**even**_cents",
        "round_~~half~~_even_cents",
        "round_`half`_even_cents",
        "round_<b>half</b>_even_cents",
        "round_&lt;b&gt;half&lt;/b&gt;_even_cents",
        "round-<i>half</i>-even-cents",
        "round_<!-- -->half_even_cents",
        "<!-- round_half_even_cents -->",
        "a<!-- round_half_even_cents -->b",
        "round\u203fhalf\u203feven\u203fcents",
        "round_ha\u0301lf_even_cents",
        "round_h\u0332alf_even_cents",
        "round_half\u034f_even_cents",
        "r\u20ddound_half_even_cents",
    ],
)
def test_a_name_in_parts_or_with_markup_in_it_leaks(name: str) -> None:
    assert cents_leak(f"Use {name} for it.")


@pytest.mark.parametrize(
    "text", ["It is tested end-to-end.", "Round half of it, even-handed, to cents.", "round-half-even", "lazy*conn"]
)
def test_compounds_of_english_and_parts_of_a_name_do_not_leak(text: str) -> None:
    assert not cents_leak(text)


def test_a_name_in_parts_that_stands_in_another_spelling_or_is_told_does_not_leak() -> None:
    assert leaks("Use fast-drain-all for it.") == set()
    facts = stage_facts(
        1, [], [patch("a.py", "def round_half_up(x): ...")], [], {"roundHalfUp"}, [Need("name", "round_half_up")]
    )
    assert check(FILLER + "Use round-half-up.", [facts], 1, kind="comment", paths_at_base=PATHS) == []


@pytest.mark.parametrize(
    "text",
    [
        "for item in basket:\n    yield item",
        "for item in basket:\n\n    yield item",
        "return total / rate\nbreak",
        "while i < n:",
        "for name in self.names:",
        "if not found:\n    raise error",
        "total = 0\nreturn total",
        "try:\n    yield item",
    ],
)
def test_unfenced_lines_of_code_leak(text: str) -> None:
    assert "code_line" in leaks(f"It is\n{text}\nor so.")


@pytest.mark.parametrize(
    "text",
    [
        "for use in tests:",
        "if the pool is full:\nwait for it",
        "return values\nthat matter to the caller",
        "with src/net/pool.py as the place:\nyield what is needed there",
        "pass",
        "while these wait,\nraise errors.",
    ],
)
def test_lines_of_prose_that_begin_as_code_does_do_not_leak(text: str) -> None:
    assert leaks(f"It is\n{text}\nor so.") == set()


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


@settings(max_examples=40, deadline=None)
@given(
    st.text(st.characters(categories=["L", "Zs", "Po"]), max_size=80), st.sampled_from(["max_retries", "delay_factor"])
)
def test_a_name_leaks_wherever_it_stands(around: str, name: str) -> None:
    assert "introduced_name" in leaks(f"{around} {name} {around}")


def _b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


CODE = 'delay_factor = compute_backoff(self.attempts_made, "exponential/jitter")'


@pytest.mark.parametrize(
    "piece",
    [
        _b64("max_retries"),
        _b64("max_retries").rstrip("="),
        base64.urlsafe_b64encode(b"max_retries>>?").decode(),
        base64.b32encode(b"max_retries").decode(),
        b"max_retries".hex(),
        b"max_retries".hex().upper(),
        "0x" + b"max_retries".hex(),
        b"max_retries".hex(" "),
        b"max_retries".hex(":"),
        "".join(f"\\x{byte:02x}" for byte in b"max_retries"),
        "".join(f"%{byte:02x}" for byte in b"max_retries"),
        " ".join(f"0x{byte:02x}" for byte in b"max_retries"),
        "m a x _ r e t r i e s",
        _b64("max_retries")[:8] + "\n" + _b64("max_retries")[8:],
        f"`{_b64('max_retries')}`",
        f"base64:{_b64('max_retries')}",
        _b64("Set linger to 0, then `linger` goes on."),
    ],
)
def test_a_name_that_is_encoded_leaks(piece: str) -> None:
    assert "introduced_name" in leaks(f"The hint is {piece} for those who can read.")


@pytest.mark.parametrize("encoded", [_b64(CODE), CODE.encode().hex(), base64.b32encode(CODE.encode()).decode()])
def test_code_that_is_encoded_leaks(encoded: str) -> None:
    assert {"code_line", "introduced_name"} <= leaks(f"The heart of it is {encoded} and nothing more.")


def test_an_encoded_name_of_a_later_stage_leaks_and_of_an_earlier_one_does_not() -> None:
    assert leaks(f"Later {_b64('CircuitBreaker')} comes.") == {"other_stage_name"}
    assert check(f"It has {_b64('max_retries')} in it.", CHAIN, 2, kind="comment", paths_at_base=PATHS) == []


@pytest.mark.parametrize(
    "text",
    [
        "Send Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ== in the header.",
        f"Such a header is {_b64('user:connect')} or {_b64('a negative amount')}.",
        "The colour is #deadbeef, the digest da39a3ee5e6b4b0d3255bfef95601890afd80709.",
        "The bytes 0x68 0x65 0x6c 0x6c 0x6f are a greeting, and %68%65%6c%6c%6f is, too.",
        "Cases a b c d e f g h are all the same, and so are A, B and C.",
        "The content-encoding of a part is passed on.",
        "A token such as eyJhbGciOiJIUzI1NiJ9 is passed on.",
    ],
)
def test_what_is_encoded_and_no_part_of_the_patch_is_an_example(text: str) -> None:
    assert leaks(text) == set()


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_any_text_can_be_decoded(text: str) -> None:
    for decoding in decodings(text):
        assert decoding.text.strip()
    assert all(decoding.shown for decoding in decodings(text))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["max_retries", "delay_factor", "LazyConnection"]),
    st.text(st.characters(codec="ascii"), max_size=9),
)
def test_an_encoded_name_is_read_whatever_stands_beside_it(name: str, beside: str) -> None:
    assert "introduced_name" in leaks(f"It is {_b64(f'{name} {beside}')} then.")


SPOKEN = stage_facts(
    1,
    [],
    [patch("src/net/pool.py", "limit = 1")],
    [
        patch("tests/test_pool.py", "def test_empty_limit_is_rejected(): ...\ndef test_bad_limit(): ..."),
        patch("src/net/pool_test.go", "func TestLongLivedPoolClosesOnce(t *testing.T) {\n}"),
    ],
    set(),
)


def spoken(text: str) -> bool:
    found = check(FILLER + text, [SPOKEN], 1, kind="query", paths_at_base=PATHS)
    return any(finding.kind == "introduced_name" and finding.severity == "leak" for finding in found)


@pytest.mark.parametrize(
    "text",
    [
        "There is a test that the empty limit is rejected.",
        "There is a test empty limit is rejected.",
        'The tests have "empty limit rejected" among them.',
        "It is tested that an empty limit is to be rejected.",
        "That an empty limit is rejected will be tested.",
        "One test (Empty Limits Rejected) is new.",
        'One test is new; once the usual prefix has been taken off, its title is to read "empty limit rejected".',
        "That runs under the heading long-lived-pool-closes-once, and a test is to be recognised from that.",
        "A test long lived pool closes once is new.",
    ],
)
def test_the_name_of_a_test_told_in_words_leaks(text: str) -> None:
    assert spoken(text)


@pytest.mark.parametrize(
    "text",
    [
        "An empty limit is rejected with a message.",
        "The tests are to be kept. An empty limit is rejected.",
        "A test that rejects the empty limit is there.",
        "Write tests for a bad limit.",
        "Tests for limits that are empty, or rejected, are there.",
        "The tests that are there have to pass as they are on every machine, and an empty limit is rejected.",
        'The message "limit rejected" is tested in many places of the project, as are other ones that begin like it.',
    ],
)
def test_behaviour_that_a_test_is_named_for_may_be_told(text: str) -> None:
    assert not spoken(text)


PYTHON = stage_facts(
    1,
    [],
    [
        patch(
            "src/net/pool.py",
            "from contextlib import suppress\n"
            "try:\n    import fastpool\nexcept ModuleNotFoundError:\n    fastpool = None\n"
            "def drain(self):\n    with suppress(KeyError):\n        asyncio.gather(1)\n    return NotImplemented\n"
            "def removeprefix(self): ...\ndef class_method(self): ...",
        )
    ],
    [patch("tests/test_pool.py", "def test_it():\n    CapacityLimiter(0)\n    lazy = CapacityLimiter(max_total=0)")],
    {"CapacityLimiter", "connect"},
)


@pytest.mark.parametrize(
    "text",
    [
        "A `ModuleNotFoundError` counts as none.",
        "Use `suppress` or `asyncio.gather` as you like.",
        "A comparison yields `NotImplemented` then.",
        "After `CapacityLimiter(0)` nobody gets through, after `CapacityLimiter(0.5)` nobody either.",
        'It is `CapacityLimiter("slow")` then.',
        "A `classmethod` has to work.",
    ],
)
def test_pythons_own_names_and_a_class_made_with_plain_values_are_no_leak(text: str) -> None:
    findings = check(FILLER + text, [PYTHON], 1, kind="query", paths_at_base=PATHS)
    assert [found for found in findings if found.severity == "leak"] == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("It is `fastpool` then.", "introduced_name"),
        ("A `removeprefix` of its own.", "introduced_name"),
        ("After `CapacityLimiter(max_total=0)` nobody gets through.", "code_line"),
        ("After `lazy = CapacityLimiter(max_total=0)` nobody gets through.", "code_line"),
    ],
)
def test_what_only_borrows_from_python_leaks(text: str, kind: str) -> None:
    findings = check(FILLER + text, [PYTHON], 1, kind="query", paths_at_base=PATHS)
    assert kind in {found.kind for found in findings if found.severity == "leak"}


TOLD = telling(
    FIRST,
    [
        "Retry with `linger` and max_retries\n\nOne cannot retry a negative number of times.",
        "Also tests test_gives_up_after_limit, with the LazyConnections of old, and delays by a factor.",
    ],
)


def told_leaks(text: str, position: int = 1) -> set[str]:
    findings = check(FILLER + text, [TOLD, CHAIN[1]], position, kind="query", paths_at_base=PATHS)
    return {finding.kind for finding in findings if finding.severity == "leak"}


@pytest.mark.parametrize(
    "text",
    ["Let `max_retries` and `linger` be options.", "Say that one cannot retry a negative number of times."],
)
def test_what_the_title_commits_and_issues_say_may_be_said(text: str) -> None:
    assert leaks(text) and told_leaks(text) == set()


def test_a_told_name_is_still_warned_of() -> None:
    findings = check(FILLER + "Let `max_retries` be it.", [TOLD], 1, kind="query", paths_at_base=PATHS)
    assert [(finding.kind, finding.severity) for finding in findings] == [("introduced_name", "warning")]


@pytest.mark.parametrize("text", ["It is test_gives_up_after_limit.", "Keep delay_factor.", "Keep `lazyconn` then."])
def test_names_of_tests_and_names_that_nobody_spelt_stay_hidden(text: str) -> None:
    assert told_leaks(text) == {"introduced_name"}


def test_a_plain_word_of_a_message_tells_no_name() -> None:
    facts = telling(FIRST, ["Let connections linger for a while."])
    assert "linger" in facts.introduced and "linger" not in facts.told


def test_what_a_later_stage_says_of_itself_may_not_be_said_before() -> None:
    later = telling(CHAIN[1], ["Add CircuitBreaker and trip_now"])
    findings = check(FILLER + "CircuitBreaker comes.", [FIRST, later], 1, kind="query", paths_at_base=PATHS)
    assert "other_stage_name" in {finding.kind for finding in findings if finding.severity == "leak"}


def test_private_names_stay_hidden_whoever_tells_them() -> None:
    facts = stage_facts(1, [], [patch("src/net/pool.py", "def _wake_all(self): ...")], [], set())
    assert telling(facts, ["Add `_wake_all`."]).told == frozenset()
