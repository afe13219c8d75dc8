"""Running the tool calls of one turn, in order, and their observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter

from prchain.core.errors import PrchainError, SandboxLimit
from trajectories.agents.scaffolds.attempt_loop import AttemptLoop
from trajectories.agents.scaffolds.taking_up import ended_by, ended_words
from trajectories.agents.scaffolds.turns import NOT_RUN, ParsedCall, valid_tool_name
from trajectories.agents.tools.tool import ToolResult
from trajectories.model import Entry, EntryKind

_AFTER_SUBMISSION = "This was not run: the work had been handed in before it."
_AFTER_END = "This was not run: the sandbox had been ended before it."
_ONE_A_TURN = "This was not run: of a turn only the first call is."
_OUT_OF_TIME = "This was not run: there is no time left."


def run_calls(
    loop: AttemptLoop,
    calls: Sequence[ParsedCall],
    seconds: float,
    run: Callable[[ParsedCall], ToolResult],
    *,
    alone: bool = False,
) -> tuple[list[Entry], bool, PrchainError | None]:
    """Run a turn's calls in order by `run`. Returns the observations, whether files may have changed, and the error
    that ended the sandbox or None. `seconds` is the duration of the model's reply; with `alone` the first alone is
    run."""
    observations: list[Entry] = []
    worked = False
    ended: PrchainError | None = None
    skip_reason: str | None = None
    for call in calls:
        start_time = perf_counter()
        try:
            result = run(call) if skip_reason is None else ToolResult(skip_reason, NOT_RUN)
        except SandboxLimit as error:
            ended, result = error, ToolResult(ended_words(error), error.name, ended_by(error), worked=True)
        worked = worked or result.worked
        entry = loop.entry(
            EntryKind.OBSERVATION,
            "tool",
            result.content,
            tool_call_id=call.call.id,
            tool_name=valid_tool_name(call.call.name),
            error=result.error,
            details={**result.details, **({"submitted": True} if result.submits else {})},
            seconds=perf_counter() - start_time,
            cwd=result.cwd,
        )
        observations.append(entry)
        seconds += entry.seconds
        if result.submits:
            skip_reason = _AFTER_SUBMISSION
        elif ended is not None:
            skip_reason = _AFTER_END
        elif skip_reason is None and loop.out_of_time(seconds):
            skip_reason = _OUT_OF_TIME
        elif skip_reason is None and alone:
            skip_reason = _ONE_A_TURN
    return observations, worked, ended
