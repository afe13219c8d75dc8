"""The reviewer's findings in the texts of the split `reviewed`, kept in `reviews.json`, and their score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

from chains.tasks.context import read_chain
from chains.tasks.excerpt import ExcerptLimits
from chains.tasks.review import QueryReviewer
from chains.tasks.rows import read_task_chain
from prchain.core.git import open_mined
from prchain.core.leaks.finding import REVIEWED
from prchain.core.llm.purposes import REVIEW
from prchain.core.settings import Settings
from research.leaks.table import FOLDER, Text, read_texts, read_toml
from sql.ledger import open_gateway
from sql.store import Store, Transaction
from sql.tables import ChainStage

SPLIT = "reviewed"
WORKERS = 4
REVIEWS = FOLDER / "reviews.json"


class Review(NamedTuple):
    """What the reviewer found in a text: of each finding kind, severity and the words that it quotes."""

    id: str
    findings: tuple[tuple[str, str, str], ...]

    @property
    def leaking(self) -> bool:
        """Whether a finding sends the text back."""
        return any(severity == "leak" for _, severity, _ in self.findings)


class ReviewScore(NamedTuple):
    """(hits, total) of the reviewer on the leaks that are its part, and of the texts that it need not find."""

    precision: tuple[int, int]
    recall: tuple[int, int]
    cleared: tuple[int, int]
    """Texts without a leak that it lets pass."""
    warned: int
    """Texts without a leak that it has warnings on, which the writer does not see."""


def review_texts(settings: Settings) -> list[Review]:
    """Have the texts reviewed by the model of the settings. The database has their chains. Raises `PrchainError`."""
    texts = read_texts(SPLIT)
    with (
        closing(Store.open(settings.db, create=False)) as store,
        open_gateway(settings, store, (REVIEW,)) as gateway,
    ):
        reviewer = QueryReviewer(gateway, ExcerptLimits())
        known = {}
        for name in {text.chain for text in texts}:
            with store.reading() as tx:
                chain = read_task_chain(tx, _chain_id(tx, name))
            git = open_mined(chain.location, settings.mirrors_dir, chain.host, chain.full_name)
            known[name] = chain, read_chain(store, git, chain)

        def reviewed(text: Text) -> Review:
            chain, contexts = known[text.chain]
            found = reviewer.review(text.text, chain, contexts, text.stage, subject=f"leaks/{text.id}")
            return Review(text.id, tuple((it.kind, it.severity, it.evidence) for it in found))

        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(reviewed, texts))


def write_reviews(reviews: Sequence[Review], made: str) -> None:
    """Keep the findings. `made` says which model gave them, or how."""
    value = {"made": made, "reviews": {it.id: it.findings for it in reviews}}
    REVIEWS.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_reviews() -> tuple[str, list[Review]]:
    """How the findings were made, and they."""
    value = json.loads(REVIEWS.read_text(encoding="utf-8"))
    return value["made"], [
        Review(name, tuple((kind, severity, quote) for kind, severity, quote in findings))
        for name, findings in value["reviews"].items()
    ]


def score_reviews(texts: Sequence[Text], reviews: Sequence[Review]) -> ReviewScore:
    """A text is found where the reviewer sends it back; its part are leaks of the kinds that code cannot see."""
    leaking = {review.id for review in reviews if review.leaking}
    own = {text.id for text in texts if not REVIEWED.isdisjoint(text.leaks)}
    clean = {text.id for text in texts if not text.leaks}
    warned = {review.id for review in reviews if review.findings and not review.leaking}
    labelled = {text.id for text in texts if text.leaks}
    return ReviewScore(
        (len(leaking & labelled), len(leaking)),
        (len(leaking & own), len(own)),
        (len(clean - leaking), len(clean)),
        len(clean & warned),
    )


def _chain_id(tx: Transaction, name: str) -> str:
    """The id of a chain of `chains.toml` in a database that has built it."""
    [entry] = [chain for chain in read_toml("chains")["chains"] if chain["name"] == name]
    numbers = [stage["number"] for stage in entry["stages"]]
    for row in list(tx.rows(ChainStage, "chain_id", number=numbers[0], position=1)):
        chain = read_task_chain(tx, str(row[0]))
        if chain.full_name == entry["repository"] and [stage.number for stage in chain.stages] == numbers:
            return chain.id
    raise LookupError(f"the database has no chain of {entry['repository']} with {numbers}")
