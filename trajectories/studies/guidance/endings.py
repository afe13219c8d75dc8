"""How the commands of process reward models say what a run would cost, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prchain.core.console.terminal import present, say, say_table
from prchain.core.endings import end_command, say_causes, say_end
from prchain.core.llm.gateway import CostEstimate
from prchain.core.runs import RunResult, UnitResult


def print_estimates(estimates: Mapping[str, CostEstimate], as_json: bool, standing: int = 0) -> None:
    """Print what settings would cost; `standing` samples are over."""
    row = {"settings": {name: asdict(estimate) for name, estimate in estimates.items()}, "stood_before": standing}

    def print_text() -> None:
        rows = [
            (name, f"{it.calls:,}", f"{it.tokens_in:,}", f"{it.tokens_out:,}", it.price)
            for name, it in estimates.items()
        ]
        say_table(("setting", "calls", "tokens in", "out", "price"), rows)
        say("Nothing has been asked or spent.")

    present(as_json, row, print_text)


def end_run(report: RunResult[Any], failed: Sequence[UnitResult[Any]], unit: str, *, good: int, nothing: str) -> None:
    """Say why units failed and a run ended early, and end the command; `good` and `nothing` as for `end_command`."""
    say_causes(failed)
    say_end(unit, failed, report.left, report.stopped)
    end_command(done=not failed and not report.left, good=good, nothing=nothing)
