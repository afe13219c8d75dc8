from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.scrub import EMAIL, REDACTED, clean_text, redact, scrub_mined
from tests.growth import assert_linear

ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
TOKENS = st.one_of(
    st.builds(
        "{}{}".format,
        st.sampled_from(["ghp_", "gho_", "ghu_", "ghs_", "ghr_"]),
        st.text(ALPHABET, min_size=36, max_size=60),
    ),
    st.builds("github_pat_{}".format, st.text(ALPHABET + "_", min_size=22, max_size=82)),
)


@given(st.text(), TOKENS, st.text())
def test_a_token_of_github_is_redacted_wherever_it_stands_as_a_word(before: str, token: str, after: str) -> None:
    assert token not in redact(f"{before} {token} {after}")


@pytest.mark.parametrize(
    "url",
    ["https://user:secret-word@host/x", "https://secret-word@host/x", "postgresql+psycopg://u:secret-word@host/x"],
)
def test_credentials_in_urls_are_taken_out_and_the_rest_stays(url: str) -> None:
    scheme = url.partition(":")[0]
    assert redact(f"cannot reach <{url}>") == f"cannot reach <{scheme}://host/x>"


def test_known_secrets_are_redacted_whatever_their_shape() -> None:
    assert redact("token=0123456789abcdef.", ("0123456789abcdef",)) == f"token={REDACTED}."


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
        ("key AIza" + "x" * 35 + ".", f"key {REDACTED}."),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nrest", f"{REDACTED}\nrest"),
        ("-----BEGIN PRIVATE KEY-----\nMIIE", REDACTED),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl", REDACTED),
        ("\x1b[31;1mred\x1b[0m\x07 and\r\nplain\ttabs", "red and\nplain\ttabs"),
        ("ab\u202ecd\u2066ef\u200bgh\ufeff\U000e0041\U000e007f", "abcdefgh"),
        ("family \U0001f468\u200d\U0001f469 stays", "family \U0001f468\u200d\U0001f469 stays"),
    ],
)
def test_a_mined_text_is_scrubbed_of_addresses_credentials_and_what_nobody_sees(mined: str, scrubbed: str) -> None:
    assert scrub_mined(mined) == scrubbed


BODY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"


@pytest.mark.parametrize(
    ("mined", "scrubbed"),
    [
        (f"a\n-----BEGIN PRIVATE KEY-----\n{BODY}\n{BODY}\ndef f(x): pass\n", f"a\n{REDACTED}\ndef f(x): pass\n"),
        (f"+-----BEGIN RSA PRIVATE KEY-----\n+{BODY}\n+Ab==\n+x = 1\n", f"+{REDACTED}\n+x = 1\n"),
        (f"-----BEGIN EC PRIVATE KEY-----\nDEK-Info: A,B\n\n{BODY}\n{BODY[:30]}… more\n", f"{REDACTED}… more\n"),
        (f'"-----BEGIN PRIVATE KEY-----\\n{BODY}\\n{BODY}\\n", x: 3', f'"{REDACTED}", x: 3'),
        ("if '-----BEGIN PRIVATE KEY-----' in text:\n    stop(text)\n", f"if '{REDACTED}' in text:\n    stop(text)\n"),
    ],
)
def test_a_key_without_an_end_takes_no_line_with_it_that_is_none_of_a_key(mined: str, scrubbed: str) -> None:
    assert scrub_mined(mined) == scrubbed


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
    assert scrub_mined(text) == f"{REDACTED}\n{words}-----END PRIVATE KEY-----"


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
    ],
)
def test_the_time_to_scrub_hostile_texts_grows_as_they_do(text: Callable[[int], str]) -> None:
    assert_linear(text, scrub_mined, 12_500)
