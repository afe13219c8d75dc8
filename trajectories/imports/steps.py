"""The steps of a document of ATIF as entries of ours."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from math import fsum
from typing import Any

from prchain.core.llm.model import Role, ToolCall
from prchain.core.storable import clean_text
from trajectories.imports.nodes import JsonNode
from trajectories.imports.told import KINDS, StepPlace, amount_of
from trajectories.model import Entry, EntryKind, Reason, TurnFault

Clean = Callable[[str], str]
"""Takes secrets out of a text."""

_OF_AGENTS = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_MEDIA = ("image", "audio")
_FAULT = re.compile(r"[a-z_]{1,32}")
_FAULTS = {str(fault): fault for fault in TurnFault}
_LONGEST_ID = 128


class StepReader:
    """Takes the steps of a document in order. All methods raise `BadDocument`."""

    def __init__(self, clean: Clean, twice: bool, *, ours: bool) -> None:
        self.entries: list[Entry] = []
        self.left_out: Counter[str] = Counter()
        self.model: str | None = None
        """Of the first step that names one."""
        self._clean, self._twice, self._ours = clean, twice, ours
        self._step = 0

    def tokens(self, name: str) -> int:
        """The sum of what turns tell, without those that are copied; no larger than a column holds."""
        told = (getattr(entry, name) or 0 for entry in self.entries if not entry.details.get("copied"))
        return min(sum(told), 2**31 - 1)

    @property
    def usd(self) -> float | None:
        """The sum of what turns cost; None where one does not tell."""
        told = [entry.usd for entry in self.entries if entry.kind is EntryKind.TURN and not entry.details.get("copied")]
        return None if not told or None in told else fsum(usd or 0.0 for usd in told)

    def take(self, number: int, step: JsonNode, place: StepPlace) -> None:
        """Take a step."""
        if step.count("step_id") != number:
            raise step.bad("step_id", f"is not {number}: steps are numbered 1, 2, 3")
        source = step.text("source")
        if source not in KINDS:
            raise step.bad("source", "is none of system, user and agent")
        if source != "agent" and (told := [name for name in _OF_AGENTS if step.values.get(name) is not None]):
            raise step.bad(told[0], f"is of agents, and the step is of the {source}")
        content = self._content(step, "message")
        if content is None:
            raise step.bad("message", "is missing")
        extra, at = step.extra() if self._ours else {}, time_of(step, "timestamp")
        details: dict[str, Any] = {"copied": True} if step.truth("is_copied_context") else {}
        calls: dict[str, list[ToolCall]] = {}
        if source == "agent":
            calls = self._turn(step, place, content, at, details, extra)
        else:
            kind = place.kind or (EntryKind.SYSTEM if source == "system" and number == 1 else EntryKind.QUERY)
            role: Role = "system" if kind is EntryKind.SYSTEM else "user"
            if content or not step.values.get("observation"):
                self._add(place, kind, role, content, details=details, at=at)
        self._observations(step, place, calls, details)

    def _add(self, place: StepPlace, kind: EntryKind, role: Role, content: str, **fields: Any) -> None:
        where = len(self.entries), place.position, place.attempt, self._step
        self.entries.append(Entry(*where, kind, role, content, **fields))

    def _turn(
        self,
        step: JsonNode,
        place: StepPlace,
        content: str,
        at: str,
        details: Mapping[str, Any],
        extra: Mapping[str, Any],
    ) -> dict[str, list[ToolCall]]:
        self._step += 1
        self.model = self.model or step.known_text("model_name")
        reasoning = step.known_text("reasoning_content")
        if reasoning and self._twice and reasoning == step.values.get("message"):
            reasoning = None
        calls = self._calls(step)
        metrics = step.node("metrics") or JsonNode({}, step.inner("metrics"))
        for name in ("prompt_token_ids", "completion_token_ids", "logprobs"):
            self.left_out["token_ids"] += bool(metrics.items(name))
        unasked = step.count("llm_call_count") == 0
        loss = place.loss
        if loss is None and (unasked or details):
            loss = {"train": False, "reason": str(Reason.UNTRAINED)}
        fault = _FAULTS.get(str(extra.get("fault")))
        if not self._ours and not calls and not content.strip():
            fault = TurnFault.EMPTY
        self._add(
            place,
            EntryKind.TURN,
            "assistant",
            content,
            reasoning=self._clean(reasoning) if reasoning else None,
            tool_calls=tuple(call for called in calls.values() for call in called),
            error=fault,
            details={
                **details,
                **({} if loss is None else {"loss": loss}),
                # As `trajectories.agents.scaffolds.context` records it; how much was left out, nobody tells.
                **({"dropped": {"below": 0}} if extra.get("elided") is True else {}),
            },
            tokens_in=metrics.count("prompt_tokens"),
            tokens_cached=metrics.count("cached_tokens"),
            tokens_out=metrics.count("completion_tokens"),
            usd=metrics.number("cost_usd"),
            seconds=amount_of(extra, "seconds") or 0.0,
            at=at,
        )
        return calls

    def _calls(self, step: JsonNode) -> dict[str, list[ToolCall]]:
        """The calls by the ids that the document has; calls with one id are beside each other. An id of ours takes the
        place of one that is there twice, or that no store can hold."""
        calls: dict[str, list[ToolCall]] = {}
        used: set[str] = set()
        for number, call in enumerate(step.nodes("tool_calls", "call"), 1):
            told, name = call.text("tool_call_id"), call.text("function_name")
            arguments = call.values.get("arguments")
            if not isinstance(arguments, dict):
                raise call.bad("arguments", "must be an object")
            id_ = clean_text(self._clean(told))
            if not id_ or id_ in used or len(id_) > _LONGEST_ID:
                id_ = f"call_{self._step}_{number}"
            used.add(id_)
            faulty = self._ours and call.extra().get("fault") == TurnFault.BAD_ARGUMENTS and set(arguments) == {"raw"}
            text = arguments["raw"] if faulty else json.dumps(cleaned(arguments, self._clean), ensure_ascii=False)
            if not isinstance(text, str):
                raise call.bad("arguments", "hold no text under raw")
            made = ToolCall(id_, self._clean(name), self._clean(text) if faulty else text)
            calls.setdefault(told, []).append(made)
        return calls

    def _observations(
        self, step: JsonNode, place: StepPlace, calls: Mapping[str, list[ToolCall]], details: Mapping[str, Any]
    ) -> None:
        observation = step.node("observation")
        results = list(observation.nodes("results", "result")) if observation is not None else []
        sources = [result.known_text("source_call_id") for result in results]
        for result, source in zip(results, sources, strict=True):
            if source is not None and source not in calls:
                raise result.bad("source_call_id", "names no call of the step")
        waiting = [told for told in calls if told not in sources]
        if not self._ours and sources.count(None) == len(waiting):
            # Agents that answer each call in its turn, and do not say which: mini-swe-agent, by Harbor.
            sources = [waiting.pop(0) if source is None else source for source in sources]
        answers = []
        for result, source in zip(results, sources, strict=True):
            called = [] if source is None else calls[source]
            answers.append(self._answer(result, called.pop(0) if called else None))
        # Answers to calls come first: in a chat, nothing may stand between a call and its answer.
        for content, call, fields in sorted(answers, key=lambda answer: answer[1] is None):
            role: Role = "user" if call is None else "tool"
            told = {"tool_call_id": call.id, "tool_name": call.name} if call else {}
            self._add(place, EntryKind.OBSERVATION, role, content, details=details, **told, **fields)

    def _answer(self, result: JsonNode, call: ToolCall | None) -> tuple[str, ToolCall | None, dict[str, Any]]:
        content = self._content(result, "content") or ""
        if references := result.items("subagent_trajectory_ref"):
            self.left_out["subagents"] += len(references)
            content = content or "[sub-agent left out]"
        extra = result.extra() if self._ours else {}
        named = extra.get("tool_call_id")
        if call is None and isinstance(named, str) and named:
            call = ToolCall(clean_text(self._clean(named))[:_LONGEST_ID], "", "")
        fault = extra.get("fault")
        fields = {
            "error": fault if isinstance(fault, str) and _FAULT.fullmatch(fault) else None,
            "seconds": amount_of(extra, "seconds") or 0.0,
            "at": time_of(JsonNode(extra, result.place), "at"),
        }
        return content, call, fields

    def _content(self, node: JsonNode, name: str) -> str | None:
        """A text, or the texts of a list of parts; of an image or a sound, that it was left out."""
        value = node.values.get(name)
        if not isinstance(value, list):
            text = node.known_text(name)
            return None if text is None else self._clean(text)
        return "\n".join(self._part(part) for part in node.nodes(name, "part"))

    def _part(self, part: JsonNode) -> str:
        kind = part.text("type")
        if kind in _MEDIA:
            self.left_out[f"{kind}s"] += 1
            return f"[{kind} left out]"
        if kind != "text":
            raise part.bad("type", "is none of text, image and audio")
        return self._clean(part.text("text"))


def time_of(node: JsonNode, name: str) -> str:
    """A time as the document writes it, where a column holds that; empty where there is none."""
    told = node.known_text(name)
    if told is None:
        return ""
    try:
        time = datetime.fromisoformat(told)
    except ValueError:
        raise node.bad(name, "is no time of ISO 8601") from None
    return told if len(told) <= 32 and told.isascii() else time.isoformat()[:32]


def cleaned(value: Any, clean: Clean) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(name): cleaned(item, clean) for name, item in value.items()}
    return [cleaned(item, clean) for item in value] if isinstance(value, list) else value
