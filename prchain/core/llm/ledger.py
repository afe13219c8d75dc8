"""The ledger of calls: every reply is stored before it is used, and every call is reserved before it is sent.

A run's *spending* is what its stored calls cost, plus what was reserved for those that are in flight, were lost, or
whose endpoint did not say what they used. Only a call that was refused unpaid, or ended before it was sent, gives its
reservation back. A run that was killed leaves its calls in flight `reserved`: they count as spent, for nobody knows
better.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NoReturn, Protocol

from prchain.core.console.terminal import counted, dollars
from prchain.core.errors import BudgetExceeded
from prchain.core.llm.model import Reply


@dataclass(frozen=True, slots=True)
class CallKey:
    """The key of a stored reply: samples, attempts and repeats stay apart, and so do different requests."""

    purpose: str
    subject: str
    sample: int
    attempt: int
    ordinal: int
    """Which reply of this question: one that did not fit is asked for again."""
    request_hash: str


@dataclass(frozen=True, slots=True)
class CallNote:
    """What the ledger keeps of a call besides its key."""

    prompt: str
    prompt_hash: str
    model: str
    priced_by: str | None = None
    """Where the price is from: `prchain.core.llm.price.Pricing.source`; None where it is not known."""


@dataclass(frozen=True, slots=True)
class Spending:
    """What one run spent so far."""

    calls: int = 0
    """Calls that were or may have been paid for."""
    usd: float = 0.0
    """Of the calls whose price is known; reserved and lost calls count with their reservation."""
    unpriced: int = 0
    """Calls whose price is not known."""
    tokens_in: int = 0
    tokens_cached: int = 0
    tokens_out: int = 0
    refused: int = 0
    """Calls that came to nothing and were not paid for: no connection, a bad key, a model that is not there."""
    under_way: int = field(default=0, compare=False)
    """Of the calls, those that have not ended: their reservations mostly are more than they will cost."""
    reserved: float = field(default=0.0, compare=False)
    """Of the USD, those reserved for calls under way."""

    @property
    def cost(self) -> float | None:
        """USD; None where the price of a call is not known."""
        return None if self.unpriced else self.usd

    def words(self) -> str:
        """What every command says of it, e.g. ``7 calls, 2 refused, 0.0310 USD``; `prchain sql spending` counts so."""
        refused = f"{self.refused:,} refused, " if self.refused else ""
        return f"{counted(self.calls, 'call')}, {refused}{dollars(self.cost)}"

    def words_so_far(self) -> str:
        """What is said of it during a run: what the calls that have ended came to, so that no number goes back."""
        ended = replace(self, calls=self.calls - self.under_way, usd=self.usd - self.reserved).words()
        return f"{ended}; {counted(self.under_way, 'call')} under way" if self.under_way else ended


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A stored reply, and what it took when it came."""

    reply: Reply
    usd: float | None
    """What it counts for: what it cost, or what was reserved for it where the endpoint did not say what it used; None
    where its price is not known."""
    seconds: float = field(default=0.0, compare=False)
    """How long it took to come; whole seconds, where a database keeps the times."""


class Ledger(Protocol):
    """The calls of one run, and the stored replies of all runs. Safe for several threads."""

    def find(self, key: CallKey) -> StoredReply | None:
        """The reply that some run stored under this key; the first, should there be several."""

    def reserve(self, key: CallKey, note: CallNote, usd: float | None, budget_usd: float | None) -> int:
        """Book a call that costs `usd` at most, before it is sent, and return its id.

        Raises `BudgetExceeded` where the run's spending with this call would be above `budget_usd`; then nothing is
        booked. `usd` is None where the price is not known, which goes with no budget only.
        """

    def settle(self, call: int, reply: Reply, usd: float | None) -> None:
        """Store the reply of a call and what it cost; None where that is not known."""

    def release(self, call: int, error: str) -> None:
        """The call was refused and not paid for, or never sent: give its reservation back."""

    def lose(self, call: int, error: str) -> None:
        """The call was sent, perhaps paid for, and its reply never came: its reservation stays spent."""

    def spending(self) -> Spending:
        """What this run spent so far."""


def refuse(spent: float, usd: float, budget_usd: float) -> NoReturn:
    """Raise `BudgetExceeded` for a call of at most `usd` in a run that has spent `spent`."""
    raise BudgetExceeded(
        f"the budget of {budget_usd:.4g} USD has {max(budget_usd - spent, 0):.4f} left and the next call may cost "
        f"{usd:.4f}; what is done is stored, run again with a larger budget to go on"
    )
