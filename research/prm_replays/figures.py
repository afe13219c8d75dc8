"""What the readings came to, by variant, and how far the variants agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from prchain.core.console.terminal import say, say_table
from research.prm_replays.table import Replayed
from trajectories.studies.guidance.agreement import agreement_of


def print_figures(rows: Sequence[Replayed]) -> None:
    """Print the figures."""
    variants = sorted({row.variant for row in rows})
    by_variant = {name: [row for row in rows if row.variant == name] for name in variants}
    head = ("variant", "windows", "unreadable", "suboptimal", "findings", "unquoted", "windows that leak", "USD")
    say_table(head, [(name, *_counts(by_variant[name])) for name in variants])
    say()
    say_table(("variant", "scored", "mean of 5", "4 or 5", "not borne out"), [_scores(it) for it in by_variant.items()])
    say()
    found = {name: Counter(one for row in by_variant[name] for one in _names(row.categories)) for name in variants}
    kinds = sorted(set().union(*found.values()))
    say_table(("category", *variants), [(kind, *(found[name][kind] for name in variants)) for kind in kinds])
    detected = Counter(one for row in by_variant[variants[0]] for one in _names(row.detectors)) if variants else {}
    for name, count in sorted(detected.items()):
        say(f"by code: {name} in {count}")
    for one, other in combinations(variants, 2):
        _say_agreement(one, by_variant[one], other, by_variant[other])


def _counts(rows: Sequence[Replayed]) -> tuple[object, ...]:
    return (
        len(rows),
        sum(bool(row.fault) for row in rows),
        sum(row.suboptimal == "true" for row in rows) if any(row.suboptimal for row in rows) else "-",
        sum(len(_names(row.categories)) for row in rows),
        sum(row.unquoted for row in rows),
        f"{sum(row.leaks not in ('', '0') for row in rows)} of {sum(bool(row.leaks) for row in rows)}",
        f"{sum(row.usd for row in rows):.2f}",
    )


def _scores(variant: tuple[str, Sequence[Replayed]]) -> tuple[object, ...]:
    name, rows = variant
    scores = [int(row.score) for row in rows if row.score]
    if not scores:
        return name, 0, "-", "-", "-"
    findings = sum(len(_names(row.categories)) for row in rows if row.score)
    doubted = sum(int(row.unjustified or 0) for row in rows if row.score)
    good = sum(score >= 4 for score in scores)
    return name, len(scores), f"{sum(scores) / len(scores):.2f}", good, f"{doubted} of {findings}"


def _say_agreement(one: str, first: Sequence[Replayed], other: str, second: Sequence[Replayed]) -> None:
    said = {row.trajectory: row.suboptimal == "true" for row in first if row.suboptimal}
    pairs = [
        (said[row.trajectory], row.suboptimal == "true") for row in second if row.suboptimal and row.trajectory in said
    ]
    if pairs:
        it = agreement_of(pairs)
        kappa = "-" if it.kappa is None else f"{it.kappa:.2f}"
        say(f"{one} and {other} on suboptimal: {it.windows} windows, kappa {kappa}")


def _names(text: str) -> list[str]:
    return text.split(",") if text else []
