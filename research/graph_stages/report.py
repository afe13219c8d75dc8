"""The report of the rig: a row a stage, then the wrong nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from research.graph_stages.wrong import Refusal
from trajectories.curation.graphs.outcomes import CONVERGED


@dataclass(frozen=True, slots=True)
class StageResult:
    """What became of a stage's right nodes and of its wrong ones."""

    repository: str
    number: int
    position: int
    outcome: str
    reason: str | None
    facts: tuple[int, int]
    """Facts that were reproduced, of all."""
    unlike: tuple[str, ...]
    """Source paths that the edits do not make as the landed commit has them."""
    paths: int
    nodes: int
    edges: int
    levels: int
    seconds: float
    lost: tuple[str, ...]
    """Right nodes that were not kept, and why."""
    refusals: tuple[Refusal, ...]

    @property
    def right(self) -> bool:
        """Whether all is as it has to be."""
        return (
            self.outcome == CONVERGED
            and self.facts[0] == self.facts[1] > 0
            and not self.unlike
            and not self.lost
            and all(refusal.right for refusal in self.refusals)
        )


def report(results: Sequence[StageResult], *, verbose: bool = False) -> str:
    """The report, in Markdown."""
    lines = [
        "| stage | facts reproduced | edits equal the reference | outcome | nodes | edges | levels | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        name = f"{result.repository} #{result.number}, stage {result.position}"
        same = f"no: {', '.join(result.unlike)}" if result.unlike else f"yes, {result.paths} of {result.paths} paths"
        lines.append(
            f"| {name} | {result.facts[0]} of {result.facts[1]} | "
            f"{same} | {result.outcome} | {result.nodes} | {result.edges} | {result.levels} | {result.seconds:.0f} |"
        )
    for result in results:
        name = f"{result.repository} #{result.number}"
        lines += [f"\n{name}: {result.reason}"] if result.reason else []
        lines += [f"\nLost of {name}: {words}" for words in result.lost]
    refusals = [(result, refusal) for result in results for refusal in result.refusals]
    refused = sum(refusal.right for _, refusal in refusals)
    lines += ["", f"Wrong nodes refused by the rule that has to: {refused} of {len(refusals)}.", ""]
    for result, refusal in refusals:
        got = ", ".join(dict.fromkeys(refusal.rules)) or "CAME THROUGH"
        mark = "" if refusal.right else "  FAILED:"
        words = f": {refusal.words}" if verbose or not refusal.right else ""
        lines.append(
            f"-{mark} {result.repository} #{result.number}, {refusal.wrong.rule}, {refusal.wrong.name} -> {got}{words}"
        )
    return "\n".join(lines)
