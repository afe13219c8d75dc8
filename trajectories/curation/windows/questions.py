"""The questions to the readers of a conversation: curator, judge and verifier."""

from __future__ import annotations

from prchain.core.llm.gateway import Gateway, Question
from prchain.core.llm.model import Message
from prchain.core.llm.prompts import Prompt
from trajectories.curation.windows.options import READER_SAMPLING


def reader_question(
    gateway: Gateway, purpose: str, subject: str, prompt: Prompt, messages: tuple[Message, ...], sample: int
) -> Question:
    """A question with the sampling of readers where the settings of its purpose do not say. Raises `UsageError` where
    the purpose has no model."""
    sampling = gateway.resolved(purpose, usual=READER_SAMPLING)
    return Question(
        purpose,
        subject,
        prompt,
        messages,
        sampling["max_tokens"],
        sampling.get("temperature"),
        sample,
        top_p=sampling.get("top_p"),
    )
