"""A policy that reads one file again and again until it is told to stop, and a process reward model that tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.trajectories.rolloutworld import SUBMIT, PolicyReply, bash, works
from trajectories.agents.guidance.taxonomy import load_taxonomy

LOOK = "cat README.md"

TOLD = "Stop reading README.md and write the part"
"""What the policy heeds."""

SUPERVISOR = "You supervise a coding agent"
"""How the prompts of a process reward model begin."""

PrmReply = Callable[[str], str]
"""From the text of a request."""


def is_prm(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a request is one to the process reward model."""
    first = str(messages[0]["content"])
    return first.startswith((SUPERVISOR, "You look over the shoulder"))


def prm_reply(
    guidance: str = TOLD + " now.",
    *,
    status: str = "Needs correction",
    evidence: str = LOOK,
    category: str = "step_repetition",
    action: str | None = None,
) -> str:
    """A reply in text, which detects one category."""
    lines = []
    for number, one in enumerate(load_taxonomy().categories, 1):
        found = one.name == category
        lines += [f"{number}. {one.title}", f"DETECTED: {'Yes' if found else 'No'}"]
        lines += [f"EVIDENCE: {evidence}", "RECOVERY_ACTION: Write the part."] if found else []
    lines += [f"TASK_STATUS: {status}", f"OVERALL_GUIDANCE: {guidance}"]
    return "\n".join([*lines, *([f"RECOMMENDED_ACTION: {action}"] if action else [])])


def looping(
    prm: Callable[[Sequence[Mapping[str, Any]]], str] = lambda messages: prm_reply(),
    *,
    until: int = 1_000,
) -> Callable[[Sequence[Mapping[str, Any]]], PolicyReply]:
    """The policy of both: the agent reads until the words `TOLD` stand in what it is sent, or for
    `until` turns, and then works."""

    def policy(messages: Sequence[Mapping[str, Any]]) -> PolicyReply:
        if is_prm(messages):
            return PolicyReply(prm(messages))
        if "<task>" not in "\n".join(str(message["content"]) for message in messages):
            return works(messages)
        last_task = max(place for place, it in enumerate(messages) if "<task>" in str(it["content"]))
        told = [place for place, it in enumerate(messages) if place > last_task and TOLD in str(it["content"])]
        turns = sum(it["role"] == "assistant" for it in messages[last_task:])
        if not told and turns < until:
            return bash(LOOK)
        since = sum(it["role"] == "assistant" for it in messages[told[0] :]) if told else turns - until
        number = str(messages[last_task]["content"]).split("part number ")[1].split(" ")[0]
        path = f"src/part_{number}.py"
        moves = [bash(f"echo 'value = {number}' > {path}"), bash(f"python3 {path}"), SUBMIT]
        return moves[min(int(since), 2)]

    return policy
