"""What a model said that no row has, from the ledger: replies that could not be used, the screening of a chain."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from chains.tasks.screening import Screening, screening_subject
from prchain.core.llm.model import Reply
from prchain.core.llm.purposes import SCREEN
from prchain.core.llm.replies import UnfitReply
from prchain.core.llm.verdicts import read_verdict
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


def last_screening(tx: Transaction, chain_id: str) -> dict[str, Any] | None:
    """What the screener said last of a chain, the fields of `Screening`; None where it said nothing usable."""
    query = (
        select(LlmCall.reply)
        .where(LlmCall.subject == screening_subject(chain_id), LlmCall.purpose == SCREEN, LlmCall.state == "stored")
        .order_by(LlmCall.id.desc())
        .limit(1)
    )
    reply = tx.connection.execute(query).scalar_one_or_none()
    if reply is None:
        return None
    try:
        return read_verdict(Reply.from_json(reply), Screening, ()).model_dump()
    except UnfitReply:
        return None
