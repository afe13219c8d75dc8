"""A ledger in memory, which lasts as long as its process."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from time import monotonic

from prchain.core.llm.ledger import CallKey, CallNote, Spending, StoredReply, refuse
from prchain.core.llm.model import Reply


@dataclass
class _Call:
    key: CallKey
    state: str
    reserved: float | None
    usd: float | None = None
    reply: Reply | None = None
    began: float = field(default_factory=monotonic)
    seconds: float = 0.0
    error: str | None = None

    @property
    def counted(self) -> float | None:
        return self.reserved if self.usd is None else self.usd


@dataclass
class MemoryLedger:
    """See `prchain.core.llm.ledger.Ledger`."""

    calls: list[_Call] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def find(self, key: CallKey) -> StoredReply | None:
        """See `Ledger`."""
        with self._lock:
            for call in self.calls:
                if call.state == "stored" and call.key == key and call.reply is not None:
                    return StoredReply(call.reply, call.counted, call.seconds)
        return None

    def reserve(self, key: CallKey, note: CallNote, usd: float | None, budget_usd: float | None) -> int:
        """See `Ledger`."""
        with self._lock:
            if budget_usd is not None:
                spent = self._spending().usd
                if spent + (usd or 0.0) > budget_usd:
                    refuse(spent, usd or 0.0, budget_usd)
            self.calls.append(_Call(key, "reserved", usd))
            return len(self.calls) - 1

    def settle(self, call: int, reply: Reply, usd: float | None) -> None:
        """See `Ledger`."""
        with self._lock:
            booked = self.calls[call]
            booked.state, booked.reply, booked.usd = "stored", reply, usd
            booked.seconds = monotonic() - booked.began

    def release(self, call: int, error: str) -> None:
        """See `Ledger`."""
        with self._lock:
            self.calls[call].state, self.calls[call].error = "released", error

    def lose(self, call: int, error: str) -> None:
        """See `Ledger`."""
        with self._lock:
            self.calls[call].state, self.calls[call].error = "lost", error

    def spending(self) -> Spending:
        """See `Ledger`."""
        with self._lock:
            return self._spending()

    def _spending(self) -> Spending:
        paid = [call for call in self.calls if call.state != "released"]
        used = [call.reply.usage for call in paid if call.reply]
        return Spending(
            calls=len(paid),
            usd=sum(call.counted or 0.0 for call in paid),
            unpriced=sum(call.counted is None for call in paid),
            tokens_in=sum(usage.tokens_in or 0 for usage in used),
            tokens_cached=sum(usage.tokens_cached or 0 for usage in used),
            tokens_out=sum(usage.tokens_out or 0 for usage in used),
            refused=len(self.calls) - len(paid),
        )
