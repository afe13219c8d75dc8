"""The accepted prefix of a chain as a chain of its own: an overview that promises nothing of the stages that are gone.

The paper keeps what was accepted of a longer chain (its Short set). The overview that the agent read tells of stages
that the sample does not hold, so it is written anew from the queries that are left, and held to the leak check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pydantic import BaseModel, Field

from prchain.errors import BadReply, ContextTooLong
from prchain.excerpt import cut
from prchain.leaks import Finding, leak_words, until_clean
from prchain.llm.gateway import Gateway, Question
from prchain.llm.prompts import Fence, load_prompt
from prchain.scrub import scrub_mined
from trajectories.model import Entry
from trajectories.task import RolloutTask

PURPOSE = "prefix"
"""Of the calls, as settings and ledger know it, and the prompt's name."""

REPEATS = 3
"""How often an overview that leaks is asked for again."""

_LONGEST = 20_000
"""Characters of an overview or a query that the model is shown."""


class PrefixReply(BaseModel):
    """The overview as the model gives it."""

    overview: str = Field(description="the introduction, plain English prose")


def neutral_overview(repository: str, count: int) -> str:
    """The overview where none could be written that gives nothing away."""
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
    """The overview for the first `count` stages of a task, and why it is the neutral one, if it is.

    `findings` is the leak check for it. Raises `LlmError` where the endpoint, the budget or the script fails.
    """
    neutral = neutral_overview(task.chain.repository, count)

    def ask(attempt: int, words: str) -> str:
        question = replace(_question(task, count, words, subject), sample=sample, attempt=attempt)
        return scrub_mined(gateway.ask_for(question, PrefixReply).value.overview).strip()

    def again(number: int, text: str, found: Sequence[Finding]) -> str:
        return ask(number, leak_words(found))

    try:
        versions = until_clean(ask(0, ""), findings, again, REPEATS)
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
    """The conversation of an accepted prefix as that of a chain of its own: its queries with the new overview and
    number of stages. Other conversations stay as they are."""
    return [
        replace(entry, content=entry.details["retold"]) if "retold" in entry.details else entry for entry in entries
    ]
