"""Archived pages come back in order, word for word, and without secrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from miner import archive
from miner.archive import Page
from prchain.core.secrets.scrub import redact_mined
from prchain.core.storable import clean_text
from sql.store import Store
from sql.tables import Repository
from tests.databases import open_new
from tests.prchain.secrets_table import drawn

AT = "2024-01-01T00:00:00Z"
PASSWORD = drawn("{62:16}", 1)
SECRET = "s3cret-t0ken-of-no-known-shape"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_new(tmp_path / "archive.db")
    with opened.transaction() as tx:
        tx.upsert(Repository, [{"id": 1, "host": "h", "owner": "o", "name": "n", "location": "l"}])
    yield opened
    opened.close()


def kept(store: Store) -> list[Page]:
    with store.reading() as tx:
        return list(archive.stored_pages(tx, 1))


def test_pages_come_back_in_the_order_of_arrival(store: Store) -> None:
    given_pages = [Page("sweep", {"after": str(i)}, {"nodes": ["\u00e9", None, i]}) for i in range(5)]
    with store.transaction() as tx:
        for page in given_pages:
            archive.keep(tx, 1, page, AT)
    assert kept(store) == given_pages


def test_a_later_answer_to_the_same_request_takes_the_place_of_the_earlier(store: Store) -> None:
    with store.transaction() as tx:
        for answer in ("old", "other", "new"):
            archive.keep(tx, 1, Page("sweep", {"after": "x" if answer != "other" else "y"}, answer), AT)
    assert [page.answer for page in kept(store)] == ["other", "new"]


def test_another_pass_of_the_same_request_is_another_page() -> None:
    assert Page("sweep", {}, None, "q", 0).key != Page("sweep", {}, None, "q", 1).key
    assert Page("sweep", {}, None, "q", 0).key != Page("sweep", {}, None, "p", 0).key
    assert Page("sweep", {}, "a", "q", 0).key == Page("sweep", {}, "b", "q", 0).key


def test_nothing_is_kept_of_a_transaction_that_fails(store: Store) -> None:
    with pytest.raises(RuntimeError), store.transaction() as tx:
        archive.keep(tx, 1, Page("sweep", {}, "x"), AT)
        raise RuntimeError
    assert kept(store) == []


HOLDERS = (f"x{SECRET}y", f"https://u:{PASSWORD}@h/x", drawn("AKIA{32:16}", 2), "AKIA", f"{drawn('ghp_{62:36}', 3)}\n")
"""Texts of which most hold a secret, of which some would not if a letter stood beside it."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(HOLDERS),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text() | st.just(SECRET), inner, max_size=4),
    max_leaves=20,
)


@given(json_values)
def test_no_secret_and_nothing_unstorable_survives_scrubbing(value: object) -> None:
    text = str(archive.scrub(value, (SECRET,)))
    assert SECRET not in text
    assert PASSWORD not in text
    for string in strings(archive.scrub(value, (SECRET,))):
        assert "\x00" not in string
        string.encode("utf-8")


@given(json_values)
def test_a_whole_answer_loses_what_each_of_its_strings_would_lose(value: object) -> None:
    counts, apart = Counter[str](), Counter[str]()
    cleaned = list(strings(archive.scrub(value, (SECRET,), counts)))
    assert cleaned == [redact_mined(clean_text(text), (SECRET,), apart) for text in strings(value)]
    assert counts == apart


def strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from strings(name)
            yield from strings(item)
