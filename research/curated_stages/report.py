"""The report of curated runs over real chains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from research.curated_stages.runs import CuratedChain

_LEAST_COVERED = 0.5
"""Of the nodes of a stage's graph."""


def faults(result: CuratedChain) -> list[str]:
    """What is not as it has to be."""
    found = [f"stage {position} is {outcome}" for position, outcome in result.stages if outcome != "accepted"]
    if result.outcome != "accepted":
        found.append(f"the trajectory is {result.outcome}: {result.reason}")
    found += [
        f"only {count} of {nodes} nodes were established"
        for count, nodes in result.coverage
        if count < _LEAST_COVERED * nodes
    ]
    return found + [f"leak: {leak}" for leak in result.leaks]


def report(results: Sequence[CuratedChain]) -> str:
    """The report, in Markdown."""
    return "\n".join(_lines(results))


def _lines(results: Sequence[CuratedChain]) -> Iterator[str]:
    yield "| repository | chain | outcome | stages | nodes | windows | candidates | variants | dropped | seconds |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    for it in results:
        nodes = ", ".join(f"{count} of {every}" for count, every in it.coverage)
        candidates = sum(len(candidates) for _, candidates in it.windows)
        rolled, dropped = it.variants
        yield (
            f"| {it.repository} | {it.chain[:8]} | {it.outcome} | {len(it.stages)} | {nodes} | {len(it.windows)} | "
            f"{candidates} | {rolled} | {dropped} | {it.seconds:.0f} |"
        )
    yield ""
    yield "| chain | calls of agent, curator, ground, establish | verifier in the paper's form | seconds by part |"
    yield "|---|---|---|---|"
    for it in results:
        calls = ", ".join(str(it.calls.get(purpose, 0)) for purpose in ("agent", "curator", "ground", "establish"))
        parts = "; ".join(
            f"{name} {count}x {seconds:.1f}"
            for name, (count, seconds) in sorted(it.parts.items(), key=lambda x: -x[1][1])
        )
        yield f"| {it.chain[:8]} | {calls} | {it.each} | {parts} |"
    for it in results:
        for fault in faults(it):
            yield f"- {it.chain[:8]}: {fault}"
    stages = sum(len(it.stages) for it in results)
    whole = sum(not faults(it) for it in results)
    yield ""
    yield f"{whole} of {len(results)} chains as they have to be, with {stages} stages"
