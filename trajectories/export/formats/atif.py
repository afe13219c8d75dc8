"""ATIF-v1.8, the Agent Trajectory Interchange Format of Harbor's RFC 0001, a file a trajectory.

By Harbor 0.26.0 (`harbor/models/trajectories`): unknown keys are refused everywhere but in ``extra``; steps are
numbered 1, 2, 3 ...; a message is a text, never null; only an agent's step has calls, reasoning and metrics; arguments
are an object; an observation names no other calls than those of its own step; a text is UTF-8. inspect_scout looks
below a folder for ``*.json``.

A trajectory is written whole, with rejected rounds. What ATIF has no key for is in ``extra``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import fsum
from typing import Any

from prchain.core import __version__
from prchain.core.llm.model import ToolCall
from prchain.core.llm.token_ids import ReplyTokens
from trajectories.audit.finding import AuditFinding
from trajectories.export.chat import Json, arguments_of, metadata
from trajectories.export.format import Format
from trajectories.export.samples import Sample, SampleMessage, SampleVerdict
from trajectories.model import EntryKind, TurnFault
from trajectories.provenance import TrajectoryOrigin

VERSION = "ATIF-v1.8"

SUFFIX = ".atif.json"
"""Another name than any ``.json``, so that ``--force`` replaces nothing but trajectories."""

COPIED_NOTE = (
    "final_metrics is of the steps that are not marked is_copied_context: the others are of the trajectory that extra "
    "names as parent."
)


def row(sample: Sample) -> Json:
    """The document of a sample."""
    steps, ids = _steps(sample)
    origin = sample.provenance
    program = "prchain" if origin is None else origin.told.get("program")
    agent = {
        "name": sample.facts.get("scaffold") or "unknown",
        "version": origin.agent_version if origin else __version__,
        **_known(
            model_name=sample.facts.get("model"),
            tool_definitions=[dict(tool) for tool in sample.tools] or None,
            extra={"program": program} if program else None,
        ),
    }
    copied = any("is_copied_context" in step for step in steps)
    document = {
        "schema_version": VERSION,
        "session_id": sample.trajectory_id,
        "trajectory_id": sample.id,
        "agent": agent,
        "steps": steps,
        **_known(notes=COPIED_NOTE if copied else None),
        "final_metrics": _sums(steps),
        "extra": _root_extra(sample, ids),
    }
    found: Json = _clean(document)
    return found


def _steps(sample: Sample) -> tuple[list[Json], list[int]]:
    """The steps, and the number of each message's step."""
    steps: list[Json] = []
    ids: list[int] = []
    agents: Json | None = None
    model = sample.facts.get("model")
    signs = _signs_by_step(sample.signs or ())
    for turn in sample.turns:
        if turn.kind is EntryKind.OBSERVATION and agents is not None:
            agents.setdefault("observation", {"results": []})["results"].append(_result(turn, agents))
            ids.append(agents["step_id"])
            continue
        of_agent = turn.role == "assistant"
        own = _agents_own(turn, model) if of_agent else {}
        step = _step(turn, len(steps) + 1, own, signs.get(turn.step) if of_agent else None)
        agents = step if of_agent else agents
        steps.append(step)
        ids.append(step["step_id"])
    return steps, ids


def _step(turn: SampleMessage, number: int, own: Json, signs: list[Json] | None) -> Json:
    source = {"assistant": "agent", "system": "system"}.get(turn.role, "user")
    return {
        "step_id": number,
        **_known(timestamp=turn.at or None),
        "source": source,
        "message": turn.content,
        **own,
        **_known(is_copied_context=turn.copied or None),
        "extra": {
            "kind": str(turn.kind),
            "stage": turn.position,
            "round": turn.attempt,
            "train": turn.train,
            "reason": str(turn.reason),
            **_known(seconds=turn.seconds or None, fault=turn.fault, elided=turn.elided or None, signs=signs),
        },
    }


def _agents_own(turn: SampleMessage, model: str | None) -> Json:
    """What only a step of the agent has."""
    cached, tokens = turn.tokens_cached, turn.tokens or ReplyTokens()
    metrics = _known(
        prompt_tokens=turn.tokens_in,
        completion_tokens=turn.tokens_out,
        # They are a part of the prompt's, also where an endpoint counts them otherwise.
        cached_tokens=cached if cached is None or turn.tokens_in is None else min(cached, turn.tokens_in),
        cost_usd=turn.usd,
        prompt_token_ids=list(tokens.prompt) or None,
        completion_token_ids=list(tokens.reply) or None,
        logprobs=list(tokens.logprobs) or None,
    )
    return _known(
        model_name=model,
        reasoning_content=turn.reasoning or None,
        tool_calls=[_call(call) for call in turn.tool_calls] or None,
        metrics=metrics or None,
    )


def _call(call: ToolCall) -> Json:
    arguments, unread = arguments_of(call), {"raw": call.arguments}
    if _clean(arguments) != arguments:  # half of a surrogate pair, which as raw text is still behind its escape
        arguments = unread
    fault = {"extra": {"fault": str(TurnFault.BAD_ARGUMENTS)}} if arguments == unread else {}
    return {"tool_call_id": call.id, "function_name": call.name, "arguments": arguments} | fault


def _result(turn: SampleMessage, agents: Mapping[str, Any]) -> Json:
    known = {call["tool_call_id"] for call in agents.get("tool_calls", ())}
    told = turn.tool_call_id in known
    extra = _known(
        at=turn.at or None,
        seconds=turn.seconds or None,
        fault=turn.fault,
        tool_call_id=None if told else turn.tool_call_id,
    )
    return {
        **_known(source_call_id=turn.tool_call_id if told else None),
        "content": turn.content,
        **_known(extra=extra or None),
    }


def _signs_by_step(signs: Sequence[AuditFinding]) -> dict[int, list[Json]]:
    found: dict[int, list[Json]] = {}
    for sign in signs:
        told = {"sign": str(sign.sign), "meaning": sign.meaning, "evidence": sign.evidence}
        found.setdefault(sign.step, []).append(told)
    return found


_SUMS: Mapping[str, Callable[[Iterable[Any]], Any]] = {
    "prompt_tokens": sum,
    "completion_tokens": sum,
    "cached_tokens": sum,
    "cost_usd": fsum,
}


def _sums(steps: Sequence[Mapping[str, Any]]) -> Json:
    """The sums over steps that are not copied; none of what one of the agent's does not tell."""
    own = [step for step in steps if "is_copied_context" not in step]
    told = [step.get("metrics", {}) for step in own if step["source"] == "agent"]
    sums = {
        f"total_{name}": total(metrics[name] for metrics in told)
        for name, total in _SUMS.items()
        if told and all(name in metrics for metrics in told)
    }
    return sums | {"total_steps": len(own)}


def _root_extra(sample: Sample, ids: Sequence[int]) -> Json:
    # Stages are told by the numbers of their first and last step.
    told = metadata(sample, [range(number, number + 1) for number in ids])
    names = {"position": "stage", "first_message": "first_step", "last_message": "last_step", "attempts": "rounds"}
    told["stages"] = [{names.get(key, key): value for key, value in stage.items()} for stage in told["stages"]]
    last = {(turn.position, turn.attempt): number for turn, number in zip(sample.turns, ids, strict=True)}
    parent = sample.parent and {"trajectory_id": sample.parent[0], "turns": sample.parent[1]}
    return {
        **told,
        "verdicts": [_verdict(verdict, last) for verdict in sample.verdicts],
        **_known(
            overview=sample.overview,
            parent=parent,
            imported=_imported(sample.provenance) if sample.provenance else None,
            signs=None if sample.signs is None else dict(sorted(Counter(str(it.sign) for it in sample.signs).items())),
        ),
    }


def _imported(origin: TrajectoryOrigin) -> Json:
    """Where an import is from, and under which names its publisher knows it."""
    return {
        "source": origin.source,
        "schema_version": origin.form,
        "session_id": origin.session,
        "trajectory_id": origin.document,
        "sha256": origin.content,
        "told": dict(origin.told),
        "left_out": dict(origin.left_out),
    }


def _verdict(verdict: SampleVerdict, last: Mapping[tuple[int, int], int]) -> Json:
    return {
        "stage": verdict.position,
        "round": verdict.attempt,
        "last_step": last.get((verdict.position, verdict.attempt)),
        "accepted": verdict.accepted,
        "gate": verdict.gate,
        "score": verdict.score,
        "tests": verdict.tests,
        "tree": verdict.tree,
    }


def _known(**values: Any) -> Json:
    """Those values that are not None: ATIF leaves out what is not known."""
    return {name: value for name, value in values.items() if value is not None}


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _clean(value: Any) -> Any:
    """The value with U+FFFD for what is no UTF-8."""
    if isinstance(value, str):
        return value if value.isascii() else _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value


def file_name(line: Mapping[str, Any]) -> str:
    """The name of a trajectory's file."""
    return f"{line['trajectory_id']}{SUFFIX}"


FORMAT = Format(
    "atif",
    row,
    loss="extra.train",
    trains=False,
    tells_signs=True,
    tells_tokens=True,
    file_name=file_name,
    file_pattern=f"*{SUFFIX}",
)
