"""What a model said where its reply could not be used: the ledger has kept it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from prchain.llm.model import Reply
from sql.store import Transaction
from sql.tables import LlmCall

UNUSABLE = frozenset({"bad_reply", "model_refused"})
"""Outcomes of a task or a stage whose last reply could not be used."""


def last_reply(tx: Transaction, subject: str) -> dict[str, Any] | None:
    """The last stored reply about a subject, with its purpose and how it ended; None where there is none."""
    query = (
        select(LlmCall.purpose, LlmCall.model, LlmCall.reply)
        .where(LlmCall.subject == subject, LlmCall.state == "stored")
        .order_by(LlmCall.id.desc())
        .limit(1)
    )
    row = tx.connection.execute(query).one_or_none()
    if row is None:
        return None
    reply = Reply.from_json(row.reply)
    return {
        "purpose": row.purpose,
        "model": row.model,
        "finish": reply.finish,
        "text": reply.text or reply.refusal or "",
        "reasoning": reply.reasoning,
        "tool_calls": [call.name for call in reply.tool_calls],
    }
