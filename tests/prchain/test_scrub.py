from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.core.secrets.credentials import JWT, TOKEN_KINDS, may_hold_tokens
from prchain.core.secrets.randomness import is_random
from prchain.core.secrets.scrub import (
    EMAIL,
    REDACTED,
    Counts,
    redact,
    redact_mined,
    redact_reply,
    scrub_mined,
)
from prchain.core.storable import clean_text
from tests.growth import assert_linear
from tests.prchain.secrets_table import LOOK_ALIKES, SECRETS, WORDS, drawn

BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
SEEDS = st.integers(0, 300)
TOKENS = st.builds(
    drawn,
    st.sampled_from(
        [f"{prefix}_{{62:{length}}}" for prefix in ("ghp", "gho", "ghu", "ghs", "ghr") for length in (36, 60)]
    ),
    SEEDS,
) | st.builds(drawn, st.just("github_pat_{62:22}_{62:59}"), SEEDS)
DRAWS = 200
"""Of each form; three of them may look like a name or a placeholder by chance."""


@given(st.text(), TOKENS, st.text())
def test_a_token_of_github_is_redacted_wherever_it_stands_as_a_word(before: str, token: str, after: str) -> None:
    assert token not in redact(f"{before} {token} {after}")


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_issue_20_what_only_looks_like_a_secret_survives(text: str) -> None:
    for around in (text, f"see {text}, and", f'"{text}"', f"+{text}\n", f"({text})"):
        counts: Counts = Counter()
        assert redact_mined(around, counts=counts) == around
        assert counts == {}


@pytest.mark.parametrize(("kind", "form"), SECRETS, ids=[form[:40] for _, form in SECRETS])
def test_issue_20_a_secret_does_not_survive_and_is_counted_by_its_kind(kind: str, form: str) -> None:
    survived = 0
    for seed in range(DRAWS):
        counts: Counts = Counter()
        text = redact_mined(f"x = {drawn(form, seed)} y", counts=counts)
        survived += REDACTED not in text
        assert counts in ({kind: 1}, {})
    assert survived <= 3


def test_the_tables_of_secrets_and_look_alikes_are_large() -> None:
    assert len(set(LOOK_ALIKES)) >= 60
    assert len(set(SECRETS)) >= 40


@given(st.sampled_from(SECRETS), SEEDS, st.text(), st.text())
def test_a_secret_is_found_whatever_stands_around_it(
    secret: tuple[str, str], seed: int, before: str, after: str
) -> None:
    _, form = secret
    text = drawn(form, seed)
    if REDACTED in redact_mined(text):
        assert text not in redact_mined(f"{before}\n{text}\n{after}")


def searched(text: str) -> list[tuple[str, str]]:
    """What a search for every kind, one after the other, finds of a text that nobody has looked at before."""
    return [
        (kind.name, found[0])
        for kind in (*TOKEN_KINDS, JWT)
        for found in kind.pattern.finditer(text)
        if is_random(found["body"], bits=kind.bits, mixed=kind.mixed)
    ]


PIECES = st.one_of(
    st.text(ALPHABET + " -_.:/@=\"'\n", max_size=30),
    st.builds(drawn, st.sampled_from([form for _, form in SECRETS]), SEEDS),
    st.sampled_from([kind.pattern for kind in (*TOKEN_KINDS, JWT)]).flatmap(st.from_regex),
    st.sampled_from(LOOK_ALIKES),
)


@given(st.lists(PIECES, min_size=1, max_size=4), st.sampled_from(["", " ", "\n", "/"]))
def test_the_fast_look_lets_no_text_pass_that_holds_a_token(pieces: list[str], between: str) -> None:
    text = between.join(pieces)
    assert may_hold_tokens(text) or not searched(text)


@pytest.mark.parametrize(
    "form", ["xoxb-1-{62:10}", "AKIA{32:16}", "aws_secret_key = {64:40}", "SK: awsSecretKey:\t{64:40}"]
)
def test_the_fast_look_stops_at_the_shortest_tokens(form: str) -> None:
    texts = [drawn(form, seed) for seed in range(20)]
    assert [text for text in texts if searched(text)] == [text for text in texts if may_hold_tokens(text)] != []


def test_the_fast_look_passes_over_prose() -> None:
    prose = ("", "fix the parser", "Merge pull request #12 from someone/documentation-of-tokens\n\nSee docs/index.")
    assert not any(map(may_hold_tokens, prose))


@given(
    st.sampled_from(sorted({sign for kind in (*TOKEN_KINDS, JWT) for sign in kind.signs})),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=12, unique=True),
    st.sampled_from(["-", "_", ".", "__", ""]),
)
def test_a_name_of_words_survives_whatever_it_begins_with(sign: str, words: list[str], joint: str) -> None:
    name = sign + joint.join(words)
    assert redact_mined(name) == name
    assert redact_mined(f"https://{name}@host") == f"https://{name}@host"


@given(st.text(ALPHABET + " -_.:/@\n"))
def test_secrets_are_replaced_in_one_pass(text: str) -> None:
    once = redact_mined(text)
    assert redact_mined(once) == once


def test_a_models_reply_keeps_what_the_edit_of_a_file_must_say() -> None:
    kept = [form for kind, form in SECRETS if kind in {"jwt", "private_key"}]
    for text in (*(drawn(form, 1) for form in kept), "amqp://guest:guest@localhost", *LOOK_ALIKES):
        assert redact_reply(text, ()) == text
    assert redact_reply(f"{drawn('ghp_{62:36}', 1)} known-secret", ("known-secret",)) == f"{REDACTED} {REDACTED}"


@pytest.mark.parametrize(
    "url",
    ["https://user:secret-word@host/x", "https://secret-word@host/x", "postgresql+psycopg://u:secret-word@host/x"],
)
def test_credentials_in_urls_are_taken_out_and_the_rest_stays(url: str) -> None:
    scheme = url.partition(":")[0]
    assert redact(f"cannot reach <{url}>") == f"cannot reach <{scheme}://host/x>"


def test_the_account_of_all_stays_in_urls() -> None:
    assert (
        redact("git+ssh://git@github.com/o/r and https://git:word@host")
        == "git+ssh://git@github.com/o/r and https://host"
    )


@pytest.mark.parametrize("strength", [redact, redact_mined, redact_reply, scrub_mined])
@pytest.mark.parametrize("secret", ["0123456789abcdef", "correct horse", "ghp_xxxx", "sk-toggleable__label-arrow"])
def test_known_secrets_are_redacted_whatever_their_shape(strength: Callable[..., str], secret: str) -> None:
    assert strength(f"token={secret}.", (secret,)) == f"token={REDACTED}."


def test_known_secrets_are_counted() -> None:
    counts: Counts = Counter()
    redact_mined("0123456789abcdef, 0123456789abcdef", ("0123456789abcdef", "not there"), counts)
    assert counts == {"settings": 2}


def test_text_without_secrets_is_unchanged() -> None:
    text = "see https://github.com/numpy/numpy/pull/5 and mail a@b.c about ghp_short"
    assert redact(text, ("",)) == text


@given(st.text(st.characters(categories=None), max_size=50))
def test_clean_text_can_be_encoded_and_holds_no_nul(text: str) -> None:
    cleaned = clean_text(text)
    assert "\0" not in cleaned
    assert len(cleaned.encode()) >= len(cleaned) == len(text)


def test_a_secret_as_short_as_a_word_is_left_alone() -> None:
    assert redact("deadbeef is dead", ("dead",)) == "deadbeef is dead"


@pytest.mark.parametrize(
    ("mined", "scrubbed"),
    [
        ("ask Jane <jane.doe+x@mail.example.org>.", "ask Jane <[email]>."),
        ("By: J <j@b.io>\nand K <12+k@users.noreply.github.com>", "By: J <[email]>\nand K <[email]>"),
        ("git clone git@github.com:numpy/numpy.git", "git clone git@github.com:numpy/numpy.git"),
        ("@decorator.with_name and pkg@1.2.3 and a @ b.shape", "@decorator.with_name and pkg@1.2.3 and a @ b.shape"),
        (
            "https://user:pass@example.com/x and ssh://hg@host.org",
            "https://user:pass@example.com/x and ssh://hg@host.org",
        ),
        (f"key {drawn('AIza{url:35}', 1)}.", f"key {REDACTED}."),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", None),
        (f"-----BEGIN PRIVATE KEY-----\n{BODY[:30]}", REDACTED),
        (drawn("eyJ{url:33}.eyJ{url:120}.{url:43}", 1), REDACTED),
        ("\x1b[31;1mred\x1b[0m\x07 and\r\nplain\ttabs", "red and\nplain\ttabs"),
        ("ab\u202ecd\u2066ef\u200bgh\ufeff\U000e0041\U000e007f", "abcdefgh"),
        ("family \U0001f468\u200d\U0001f469 stays", "family \U0001f468\u200d\U0001f469 stays"),
    ],
)
def test_a_mined_text_is_scrubbed_of_addresses_credentials_and_what_nobody_sees(
    mined: str, scrubbed: str | None
) -> None:
    assert scrub_mined(mined) == (mined if scrubbed is None else scrubbed)


@pytest.mark.parametrize(
    ("mined", "scrubbed"),
    [
        (f"a\n-----BEGIN PRIVATE KEY-----\n{BODY}\n{BODY}\ndef f(x): pass\n", f"a\n{REDACTED}\ndef f(x): pass\n"),
        (f"+-----BEGIN RSA PRIVATE KEY-----\n+{BODY}\n+Ab==\n+x = 1\n", f"+{REDACTED}\n+x = 1\n"),
        (f"-----BEGIN EC PRIVATE KEY-----\nDEK-Info: A,B\n\n{BODY}\n{BODY[:30]}… more\n", f"{REDACTED}… more\n"),
        (f'"-----BEGIN PRIVATE KEY-----\\n{BODY}\\n{BODY}\\n", x: 3', f'"{REDACTED}", x: 3'),
        ("if '-----BEGIN PRIVATE KEY-----' in text:\n    stop(text)\n", None),
    ],
)
def test_a_key_without_an_end_takes_no_line_with_it_that_is_none_of_a_key(mined: str, scrubbed: str | None) -> None:
    assert scrub_mined(mined) == (mined if scrubbed is None else scrubbed)


@pytest.mark.parametrize(
    ("mined", "scrubbed"),
    [
        (f"x y\n{BODY}\n{BODY}\nAbC+=\n-----END PRIVATE KEY-----\nz", f"x y\n{REDACTED}\nz"),
        (f"-{BODY}\n-{BODY}\n------END PRIVATE KEY-----\n z", f"{REDACTED}\n z"),
        ("the -----END PRIVATE KEY----- mark\nwords\n-----END PRIVATE KEY-----", None),
    ],
)
def test_a_key_without_a_beginning_is_redacted_and_its_mark_alone_is_not(mined: str, scrubbed: str | None) -> None:
    assert scrub_mined(mined) == (mined if scrubbed is None else scrubbed)


def test_two_marks_of_a_key_that_are_far_apart_are_no_key() -> None:
    words = "words of a guide\n" * 2000
    text = f"-----BEGIN PRIVATE KEY-----\n{words}-----END PRIVATE KEY-----"
    assert scrub_mined(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "http://joe@host.org/path?query and amqp://joe@mail.host.org:5672",
        "chacha20-poly1305@openssh.com,aes256-gcm@openssh.com,curve25519-sha256@libssh.org",
        'session.SendRequest("auth-agent-req@openssh.com", true, nil)',
    ],
)
def test_an_account_of_a_url_and_the_name_of_an_algorithm_of_ssh_are_no_addresses(text: str) -> None:
    assert scrub_mined(text) == text


def test_a_matrix_product_is_no_address() -> None:
    assert scrub_mined("A@B.shape and A@B.inv() but a@b.org") == f"A@B.shape and A@B.inv() but {EMAIL}"


@given(st.text(ALPHABET, min_size=1, max_size=20), st.text(ALPHABET, min_size=1, max_size=20), st.text(), st.text())
def test_no_address_survives_wherever_it_stands(local: str, host: str, before: str, after: str) -> None:
    assert f"{local}@{host}.org" not in scrub_mined(f"{before} {local}@{host}.org {after}")


@given(TOKENS)
def test_a_token_that_was_cut_by_an_invisible_character_is_found(token: str) -> None:
    assert REDACTED in scrub_mined(f"{token[:8]}\u200b{token[8:]}")


@given(st.text(st.characters(categories=None)))
def test_scrubbing_is_done_after_one_pass(text: str) -> None:
    once = scrub_mined(text)
    assert scrub_mined(once) == once


@pytest.mark.drawn(6)
@pytest.mark.parametrize(
    "text",
    [
        lambda n: "a@" * n,
        lambda n: "a." * n + "@",
        lambda n: "x" * 2 * n + "@" + "y." * n,
        lambda n: "-----BEGIN PRIVATE KEY-----" * (n // 12),
        lambda n: "-----END PRIVATE KEY-----" * (n // 12),
        lambda n: "A\n" * n + "-----END PRIVATE KEY-----" * (n // 25),
        lambda n: "-----BEGIN PRIVATE KEY-----" + "+a" * n + "!",
        lambda n: "-----BEGIN PRIVATE KEY-----" + "\\n" * n + "!",
        lambda n: f"{BODY}\n" * (n // 33) + "-----END PRIVATE KEY-----\n" * (n // 33),
        lambda n: "-----BEGIN " * (n // 5),
        lambda n: "MTk4" * n,
        lambda n: "MTk4NjIyNDgzNDcxOTI1MjQ4." * (n // 10),
        lambda n: "ghs_1_eyJ" + "a.eyJ" * n,
        lambda n: "ghs_1_eyJaaaaaaaaaaaa.eyJ" * (n // 10),
        lambda n: "AccountKey=" * (n // 5),
        lambda n: "1234567890:AA" * (n // 5),
        lambda n: "0a1b2c3d" * n + "-us1",
        lambda n: "glc_eyJ" * (n // 3) + "glsa_" * n,
        lambda n: "glc_eyJ" + "A" * n,
        lambda n: "xoxp-1-" * n + "A" * n,
        lambda n: "xoxe.xoxp-" + "A1-" * n,
        lambda n: "sq0csp-" * n,
        lambda n: "GR1348941" * n,
        lambda n: "eyJaaaaaaaaaaaa.eyJ" * (n // 10),
        lambda n: "sk-" * n,
        lambda n: "://a" * n + "@",
        lambda n: "://" + ":a" * n,
        lambda n: "a@openssh.com" * (n // 5),
    ],
)
def test_the_time_to_scrub_hostile_texts_grows_as_they_do(text: Callable[[int], str]) -> None:
    assert_linear(text, scrub_mined, 12_500)
