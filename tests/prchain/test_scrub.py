from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prchain.scrub import REDACTED, clean_text, redact

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
