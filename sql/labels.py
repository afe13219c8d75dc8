"""What people say of chains."""

from __future__ import annotations

from dataclasses import dataclass

from prchain.core.errors import UsageError
from prchain.core.storable import clean_text
from prchain.core.timestamps import now
from sql.label_filter import LABELS
from sql.store import Transaction
from sql.tables import ChainLabel

LONGEST_NAME = 64
LONGEST_NOTE = 2_000
"""Characters."""


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """What one person says of a chain."""

    chain_id: str
    labeller: str
    label: str
    note: str | None
    labelled_at: str


def labeller_name(text: str) -> str:
    """The name of a labeller as it is stored. Raises `UsageError` for one that cannot be."""
    name = clean_text(text).strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(f"a labeller has a name of 1 to {LONGEST_NAME} characters in one line")
    return name


def read_labels(tx: Transaction, chain_id: str | None = None) -> list[GivenLabel]:
    """The labels of a chain, or of all, by chain and labeller."""
    equals = {} if chain_id is None else {"chain_id": chain_id}
    return sorted(tx.read(GivenLabel, ChainLabel, **equals), key=lambda it: (it.chain_id, it.labeller))


def write_label(tx: Transaction, chain_id: str, labeller: str, label: str | None, note: str = "") -> None:
    """Store what somebody says of a chain in the place of what they said before; None takes it back.

    Raises `UsageError` for a label that there is not, and a note that is too long.
    """
    if label is None:
        tx.delete(ChainLabel, chain_id=chain_id, labeller=labeller)
        return
    if label not in LABELS:
        raise UsageError(f"a label is {' or '.join(LABELS)}, not {label[:20]!r}")
    words = clean_text(note).strip()
    if len(words) > LONGEST_NOTE:
        raise UsageError(f"a note has at most {LONGEST_NOTE:,} characters")
    row = {"chain_id": chain_id, "labeller": labeller, "label": label, "note": words or None, "labelled_at": now()}
    tx.upsert(ChainLabel, [row])


def labels_by_chain(tx: Transaction) -> dict[str, set[str]]:
    """The labels of each chain that has some."""
    found: dict[str, set[str]] = {}
    for chain, label in tx.rows(ChainLabel, "chain_id", "label"):
        found.setdefault(chain, set()).add(label)
    return found
