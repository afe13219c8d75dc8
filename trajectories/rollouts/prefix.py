"""The accepted prefix of a chain as a chain of its own, with an overview that does not mention the missing stages.

The paper keeps the accepted part of a longer chain (its Short set). The overview that the agent read mentions stages
that the sample does not hold, so a new one is written from the remaining queries, and goes through the leak check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pydantic import BaseModel, Field

from prchain.core.errors import BadReply, ContextTooLong
from prchain.core.leaks import Finding, leak_words, until_clean
from prchain.core.llm.excerpt import cut
from prchain.core.llm.gateway import Gateway, Question
from prchain.core.llm.prompts import Fence, load_prompt
from prchain.core.secrets.scrub import scrub_mined
from trajectories.model import Entry
from trajectories.task import RolloutTask

PURPOSE = "prefix"
"""The purpose of the calls, in settings and ledger, and the prompt's name."""

REPEATS = 3
"""How often an overview that leaks is written again."""

_LONGEST = 20_000
"""Characters of an overview or a query in the prompt."""


class PrefixReply(BaseModel):
    """The model's reply."""

    overview: str = Field(description="the introduction, plain English prose")


def neutral_overview(repository: str, count: int) -> str:
    """The overview that is used where every written one leaked, or none could be written."""
    return (
        f"This is work on {repository} in {count} stages, each of which builds on the one before. Every stage comes "
        "with a task of its own, once the stage before it is done."
    )


def prefix_overview(
    gateway: Gateway,
    task: RolloutTask,
    count: int,
    findings: Callable[[str], Sequence[Finding]],
    *,
    subject: str,
    sample: int = 0,
) -> tuple[str, str | None]:
    """The overview for the first `count` stages of a task, and the reason where it is the neutral one, else None.

    `findings` is the leak check for it. Raises `LlmError` where the endpoint, the budget or the script fails.
    """
    neutral = neutral_overview(task.chain.repository, count)

    def ask(attempt: int, words: str) -> str:
        question = replace(_question(task, count, words, subject), sample=sample, attempt=attempt)
        return scrub_mined(gateway.ask_for(question, PrefixReply).value.overview).strip()

    def rewrite(number: int, text: str, leaks: Sequence[Finding]) -> str:
        return ask(number, leak_words(leaks))

    try:
        versions = until_clean(ask(0, ""), findings, rewrite, REPEATS)
    except (BadReply, ContextTooLong) as error:
        return neutral, f"overview of the prefix: {error.name}"
    return (versions.text, None) if versions.clean else (neutral, "overview of the prefix: every version leaked")


def _question(task: RolloutTask, count: int, words: str, subject: str) -> Question:
    prompt = load_prompt("trajectories.rollouts", PURPOSE)
    texts = [cut(scrub_mined(stage.query), _LONGEST) for stage in task.stages[:count]]
    old = cut(scrub_mined(task.overview), _LONGEST)
    fence = Fence(old, *texts, words)
    stages = "\n\n".join(fence(f"stage_{place}", text) for place, text in enumerate(texts, 1))
    messages = prompt.render(
        nonce=fence.nonce,
        repository=task.chain.repository,
        planned=len(task.stages),
        count=count,
        overview=fence("old_introduction", old),
        stages=stages,
        findings=fence("findings", words) if words else "",
    )
    return Question(PURPOSE, subject, prompt, messages)


def retold(entries: Sequence[Entry]) -> list[Entry]:
    """The conversation of an accepted prefix with the new overview and number of stages in its queries. Other
    conversations stay unchanged."""
    return [
        replace(entry, content=entry.details["retold"]) if "retold" in entry.details else entry for entry in entries
    ]
