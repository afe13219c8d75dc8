"""The leak check: names, literals and code of the patches, and code at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.leaks import StageFacts, check, stage_facts
from prchain.leaks.folding import fold
from prchain.leaks.vocabulary import is_plain
from prchain.needs import Need
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
