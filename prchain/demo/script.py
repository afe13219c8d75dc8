"""The replies of the demo's scripted model: `prchain.core.llm.scripted` lines, made from the files in ``answers``.

A line matches by the text of the conversation so far, the newest state first, and can answer many times. So the script
has no memory: a run that was killed resumes where it was, and any number of samples can be drawn.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from prchain.demo.cheat_script import cheat_lines
from prchain.demo.graph_script import graph_lines
from prchain.demo.guidance_script import SYSTEM, guidance_lines
from prchain.demo.turns import AgentTurn, calls_of
from prchain.demo.window_script import window_lines

_STRICT = ConfigDict(extra="forbid", frozen=True)

_OPENING = 60
_LONGEST_CHAIN = 5
"""Characters at the beginning of a query that distinguish it from the others."""


class ScriptedAttempt(BaseModel):
    """The turns of an attempt, and the judge's verdict on the patch that holds the text `sees`."""

    model_config = _STRICT

    turns: tuple[AgentTurn, ...]
    sees: str
    score: float
    comment: str


class ScriptedPlan(BaseModel):
    """The plan of a stage."""

    model_config = _STRICT

    why: str
    where: str
    how: str


class StageAnswers(BaseModel):
    """Plan, query and attempts for the pull request with that title."""

    model_config = _STRICT

    title: str
    plan: ScriptedPlan
    query: str
    attempts: tuple[ScriptedAttempt, ...] = ()


class ChainAnswers(BaseModel):
    """Overview and stages of one chain."""

    model_config = _STRICT

    overview: str
    stages: tuple[StageAnswers, ...] = Field(min_length=1)


def read_answers() -> dict[str, ChainAnswers]:
    """The answers by the name of their file."""
    folder = resources.files("prchain.demo") / "answers"
    files = sorted(
        (path for path in folder.iterdir() if path.name.endswith(".toml")), key=lambda traversable: traversable.name
    )
    return {
        file.name.removesuffix(".toml"): ChainAnswers.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
        for file in files
    }


def write_script(workdir: str | None) -> str:
    """The script as JSON Lines. `workdir` is the repository's path in a sandbox, for the editor, which needs
    absolute paths; None where it is not known in advance: then files are edited with bash."""
    chains = read_answers().values()
    turns = [turn for chain in chains for stage in chain.stages for attempt in stage.attempts for turn in attempt.turns]
    # The agent that is guided has the same tasks as the plain one, but another system prompt.
    read = read_answers()["read"].stages[0]
    lines = list(cheat_lines(SYSTEM, prose(read.query)[:_OPENING]))
    lines += guidance_lines({turn.say: turn for turn in turns})
    # The agent of a window begins as the plain one, which does not know what the curator wrote.
    lines += window_lines(workdir)
    lines += [line for chain in chains for line in _chain(chain, workdir)]
    lines += graph_lines()
    lines += [_screened(count) for count in range(1, _LONGEST_CHAIN + 1)]
    lines.append({"purpose": "review", "reply": {"findings": []}})  # the queries here are written not to retell
    return "".join(f"{json.dumps({**line, 'repeat': True}, ensure_ascii=False)}\n" for line in lines)


def _screened(count: int) -> dict[str, Any]:
    """The screening of any chain of so many stages: those of the demo are made to be worth a task."""
    stage = {
        "aims": ["what its title says"],
        "behaviour": True,
        "tellable": True,
        "tested": True,
        "why": "Its tests are short.",
    }
    links = [{"relation": "continues", "why": "It cites the stage before."}] * (count - 1)
    return {
        "purpose": "screen",
        "contains": f"Stage 1 of {count}",
        "reply": {"stages": [stage] * count, "links": links, "worth": 5, "why": "It was made for this."},
    }


def _chain(chain: ChainAnswers, workdir: str | None) -> Iterator[dict[str, Any]]:
    first = chain.stages[0].title
    yield {"purpose": "overview", "contains": first, "reply": {"overview": prose(chain.overview)}}
    for stage in chain.stages:
        yield {"purpose": "plan", "contains": stage.title, "reply": stage.plan.model_dump()}
        yield {"purpose": "query", "contains": stage.title, "reply": {"query": prose(stage.query)}}
    # The patch of a later attempt, or stage, still shows lines of the earlier ones.
    for attempt in reversed([attempt for stage in chain.stages for attempt in stage.attempts]):
        verdict = {"comment": attempt.comment, "score": attempt.score}
        yield {"purpose": "judge", "contains": attempt.sees, "reply": verdict}
    yield from reversed(list(_agent(chain, workdir)))


def _agent(chain: ChainAnswers, workdir: str | None) -> Iterator[dict[str, Any]]:
    """The agent's turns in order, each answering what stands last in the conversation before it."""
    count = 0
    for stage in chain.stages:
        before = prose(stage.query)[:_OPENING]
        for attempt in stage.attempts:
            for turn in attempt.turns:
                calls = [{"name": name, "arguments": arguments} for name, arguments in calls_of(turn, workdir)]
                for call in calls:
                    count += 1
                    call["id"] = f"call_{count}"
                yield {"purpose": "agent", "contains": before, "reply": turn.say, "tool_calls": calls}
                before = turn.say
            before = attempt.comment


def prose(text: str) -> str:
    """A text without the line breaks of its file; empty lines stay, they part paragraphs."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text.strip()))
