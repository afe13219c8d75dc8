"""How much a later pull request changes of an earlier one: as lineage counted it, and in the words of every page.

There is one count. The text that two patches share, by which edges are weighed, and the marks of a diff count nothing
for people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prchain.core.console.terminal import counted
from sql.store import Transaction
from sql.tables import Lineage


@dataclass(frozen=True, slots=True)
class LinkChanges:
    """What lineage counted of a pair; `sql.tables.lined.Lineage` says how."""

    removed_lines: int
    real_lines: int
    inserted_lines: int
    functions: Sequence[str]
    names: Sequence[str]

    @property
    def lines(self) -> str:
        """How many lines it removes or changes, for people; see `lines_changed`."""
        return lines_changed(self.real_lines, self.removed_lines)


def read_link_changes(tx: Transaction, repository_id: int, later: int, earlier: int) -> LinkChanges | None:
    """What a pull request changes of an earlier one; None where lineage found nothing, or did not look."""
    pair = {"repository_id": repository_id, "later": later, "earlier": earlier}
    return next(tx.read(LinkChanges, Lineage, **pair), None)


def lines_changed(real: int, removed: int) -> str:
    """``9 lines of code (11 in all)``: those that count, and all, which are with them those that are moved, comments,
    imports, blanks or not of a program. Empty where there are none at all."""
    if not removed:
        return ""
    code = counted(real, "line") if real else "no line"
    return f"{code} of code" + (f" ({removed:,} in all)" if removed > real else "")
