"""Which chains a command works with, by what people say of them (`sql.labels`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

KEEP, DROP = "keep", "drop"
LABELS = (KEEP, DROP)


class LabelFilter(StrEnum):
    """What ``--labels`` asks of a chain."""

    ANY = "any"
    UNDROPPED = "undropped"
    """Nobody marked it `DROP`."""
    KEPT = "kept"
    """Somebody marked it `KEEP`, and nobody `DROP`."""


def fits(labels: Mapping[str, Iterable[str]], chain_id: str, wanted: LabelFilter) -> bool:
    """Whether a chain with these labels is one that the filter asks for. Pure."""
    own = set(labels.get(chain_id, ()))
    if wanted is LabelFilter.ANY:
        return True
    return DROP not in own and (wanted is LabelFilter.UNDROPPED or KEEP in own)
