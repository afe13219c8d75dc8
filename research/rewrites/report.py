"""What the gates made of the rewrites, as a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from research.rewrites.gate import Judged
from research.shares import share

CAUGHT = 0.95
"""The least share of leaking rewrites that is to be caught."""
REFUSED = 0.10
"""The largest share of honest rewrites that may be refused."""


def goals_met(judged: Sequence[Judged]) -> bool:
    """Whether enough leaking rewrites were caught and few enough honest ones refused."""
    leaking, honest = _split(judged)
    caught, refused = (sum(bool(it.faults) for it in some) for some in (leaking, honest))
    return bool(leaking and honest) and caught >= CAUGHT * len(leaking) and refused <= REFUSED * len(honest)


def report(judged: Sequence[Judged], verbose: bool = False) -> str:
    """Counts with their intervals, of each split and of all, and each rewrite that was decided wrongly."""
    return "\n".join(_lines(judged, verbose))


def _lines(judged: Sequence[Judged], verbose: bool) -> Iterator[str]:
    stages = {it.stage.key: it.stage.split for it in judged}
    repositories = {it.stage.repository for it in judged}
    yield f"{len(stages)} stages of {len(repositories)} repositories, {len(judged)} rewrites."
    splits = sorted(set(stages.values()), reverse=True)
    for split in splits:
        yield _counts(f"{split} stages", [it for it in judged if it.stage.split == split])
    if len(splits) > 1:
        yield _counts("all", judged)
    for it in judged:
        if verbose or not it.right:
            kind = "honest" if it.rewrite.honest else f"leaking ({it.rewrite.leak or it.rewrite.source})"
            mark = "" if it.right else "MISS "
            said = "; ".join(f"{fault.rule}: {fault.words}" for fault in it.faults) or "let through"
            yield f"{mark}{it.stage.key}, {it.stage.split}, {kind}: {said}"
            yield f"    {it.rewrite.words} [{it.rewrite.tool} {it.rewrite.arguments}]"


def _counts(name: str, judged: Sequence[Judged]) -> str:
    parts = []
    for kind, some in zip(("leaking caught", "honest refused"), _split(judged), strict=True):
        hits = sum(bool(it.faults) for it in some)
        parts.append(f"{kind} {hits} of {len(some)} ({share(hits, len(some))})" if some else f"{kind} 0 of 0")
    return f"{name}: {', '.join(parts)}."


def _split(judged: Sequence[Judged]) -> tuple[list[Judged], list[Judged]]:
    return [it for it in judged if not it.rewrite.honest], [it for it in judged if it.rewrite.honest]
