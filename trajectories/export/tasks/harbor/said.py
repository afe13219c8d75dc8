"""What an export of Harbor's folders says when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from prchain.core.console.terminal import counted, say
from trajectories.export.tasks.harbor.export import CHAIN, SINGLE, TABLE, HarborReport


def report_row(report: HarborReport, out: Path) -> dict[str, Any]:
    """The report for machines."""
    omitted = [
        {"chain": it.chain_id, "stage": it.position or None, "outcome": it.outcome, "reason": it.reason}
        for it in report.omitted
    ]
    return {**report.counts, "folder": str(out), "left_out": omitted, "images": sorted(report.images)}


def print_report(report: HarborReport, out: Path) -> None:
    """The report for people: what was left out and why, what was written, and who reads which."""
    for it in report.omitted:
        stage = f", stage {it.position}" if it.position else ""
        say(f"{it.chain_id}{stage}: left out, {it.outcome}: {it.reason}", err=True)
    counts = report.counts
    if not any(counts.values()):
        return
    written = " and ".join(
        f"{counted(count, noun)} in {out if out.suffix == TABLE else out / name}"
        for name, noun, count in ((SINGLE, "stage", counts[SINGLE]), (CHAIN, "chain", counts[CHAIN]))
        if count
    )
    say(f"{written}; {counted(len(report.images), 'image')}")
    say("verifiers, TRL, SkyRL and NeMo Gym do not run tasks of several steps: give them the stages")
