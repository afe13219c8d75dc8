"""Raw answers of the API, kept so that parsing can be redone without the network.

A page is stored with its request and its answer, scrubbed of secrets before anything else reads it: the rows of the run
were parsed from the same scrubbed answer, so a replay gives the same rows.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import delete, select

from prchain.core.secrets.private_keys import SIGN as KEY_SIGN
from prchain.core.secrets.scrub import Counts, redact_mined
from prchain.core.storable import clean_text
from sql.store import Transaction
from sql.tables import ArchivedPage

Json = Any
"""What `json.loads` gives."""


@dataclass(frozen=True)
class Page:
    """One answer with what it answers: everything that the rows made from it depend on."""

    stream: str
    """``sweep``, ``pull_requests``, ``more:comments``, ``thread_starts``, ``review_comments``, ``gone`` ..."""
    request: dict[str, Json]
    answer: Json
    query: str = field(default="", repr=False)
    """The text of the query, or the REST path; part of the page's key, not of its body."""
    turn: int = 0
    """The pass that it belongs to: a rescan asks the same again and keeps both answers apart."""

    @property
    def key(self) -> str:
        """SHA-256 in hex of query, variables and pass."""
        text = json.dumps([self.stream, self.turn, self.query, self.request], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def scrub(value: Json, secrets: tuple[str, ...], counts: Counts | None = None) -> Json:
    """Return the JSON value with every string, keys included, storable and free of secrets.

    What was replaced is added to `counts`.
    """
    if isinstance(value, str):
        return _scrubbed(value, secrets, counts)
    if not isinstance(value, list | dict):
        return value
    # Few parts of an answer hold a secret, and one text is searched in a fraction of the time of its thousand strings.
    # What is a secret in a string is one in the whole, since a line break ends every form of a secret but a key's.
    whole = "\n".join(_strings(value))
    if KEY_SIGN not in whole and _scrubbed(whole, secrets) == whole:
        return value
    if isinstance(value, list):
        return [scrub(item, secrets, counts) for item in value]
    return {_scrubbed(name, secrets, counts): scrub(item, secrets, counts) for name, item in value.items()}


def _scrubbed(text: str, secrets: tuple[str, ...], counts: Counts | None = None) -> str:
    return redact_mined(clean_text(text), secrets, counts)


def _strings(value: Json) -> list[str]:
    """Every string of a list or dict, keys included; a key that many dicts have is there once."""
    names: set[str] = set()
    found: list[str] = []
    parts = [value]
    for part in parts:  # which grows
        if isinstance(part, dict):
            names.update(part)
        for inside in part.values() if isinstance(part, dict) else part:
            if isinstance(inside, str):
                found.append(inside)
            elif isinstance(inside, list | dict):
                parts.append(inside)
    return [*names, *found]


def keep(tx: Transaction, repository_id: int, page: Page, fetched_at: str) -> None:
    """Store the page in the transaction of its rows; it replaces an earlier answer to the same request."""
    table = ArchivedPage.__table__
    same_stream = (table.c.repository_id == repository_id) & (table.c.stream == page.stream)
    tx.connection.execute(delete(ArchivedPage).where(same_stream & (table.c.request_key == page.key)))
    body = json.dumps({"request": page.request, "answer": page.answer}, separators=(",", ":"))
    tx.bulk(
        ArchivedPage,
        ("repository_id", "stream", "request_key", "fetched_at", "body"),
        [(repository_id, page.stream, page.key, fetched_at, zlib.compress(body.encode(), 6))],
    )


def stored_pages(tx: Transaction, repository_id: int) -> Iterator[Page]:
    """Yield the repository's pages in the order in which they came."""
    query = select(ArchivedPage.id).where(ArchivedPage.repository_id == repository_id).order_by(ArchivedPage.id)
    for number in tx.connection.execute(query).scalars().all():
        columns = select(ArchivedPage.stream, ArchivedPage.body).where(ArchivedPage.id == number)
        stream, body = tx.connection.execute(columns).one()
        envelope = json.loads(zlib.decompress(body))
        yield Page(stream=stream, request=envelope["request"], answer=envelope["answer"])
