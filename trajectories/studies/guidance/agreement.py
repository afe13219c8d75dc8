"""How far two readings of the same windows agree, and how a reading fares against labels: pure figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from prchain.core.console.terminal import counted, say, say_table, shortened
from prchain.core.shares import wilson

_CATEGORY_WIDTH = 30
"""Columns: the table is then 80 wide."""


class ReadWindow(NamedTuple):
    """Which window it is, whoever reads it."""

    trajectory: str
    position: int
    attempt: int
    last_step: int


@dataclass(frozen=True, slots=True)
class WindowReading:
    """What one reading says of a window; its reply could be read."""

    suboptimal: bool | None
    """None where it does not say."""
    categories: frozenset[str] | None
    """Those that were detected and kept; None where it knows no taxonomy."""


Readings = Mapping[ReadWindow, WindowReading]

Labels = Mapping[tuple[ReadWindow, str], bool]
"""Window and category to whether the category is there."""


@dataclass(frozen=True, slots=True)
class ReadingAgreement:
    """Two readings' answers to a question of yes and no. The rest of the windows are those where both say no."""

    windows: int
    both: int
    only_one: int
    only_other: int
    kappa: float | None
    """Cohen's; None without windows, and where both always give the same one answer, so that chance explains all."""


def agreement_of(answers: Iterable[tuple[bool, bool]]) -> ReadingAgreement:
    """The agreement over pairs of answers (J. Cohen, 1960)."""
    windows = both = only_one = only_other = 0
    for one, other in answers:
        windows += 1
        both += one and other
        only_one += one and not other
        only_other += other and not one
    same = windows - only_one - only_other
    yes_one, yes_other = both + only_one, both + only_other
    # Both shares times the square of the number: whole numbers, so that 1 - chance is 0 exactly where it is.
    chance = yes_one * yes_other + (windows - yes_one) * (windows - yes_other)
    rest = windows * windows - chance
    return ReadingAgreement(windows, both, only_one, only_other, (same * windows - chance) / rest if rest else None)


def category_kappas(one: Readings, other: Readings, categories: Iterable[str] = ()) -> dict[str, ReadingAgreement]:
    """Agreement on whether a category was detected and kept, by category: the given ones, then others that were found.

    Only windows count that both have read with a taxonomy.
    """
    pairs = [(mine.categories, theirs.categories) for mine, theirs in _shared(one, other)]
    known = [(mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None]
    found = {name for mine, theirs in known for name in mine | theirs}
    return {
        name: agreement_of((name in mine, name in theirs) for mine, theirs in known)
        for name in dict.fromkeys([*categories, *sorted(found)])
    }


def suboptimal_kappa(one: Readings, other: Readings) -> ReadingAgreement:
    """Agreement on whether a window is suboptimal, over the windows of which both say it."""
    pairs = ((mine.suboptimal, theirs.suboptimal) for mine, theirs in _shared(one, other))
    return agreement_of((mine, theirs) for mine, theirs in pairs if mine is not None and theirs is not None)


def _shared(one: Readings, other: Readings) -> list[tuple[WindowReading, WindowReading]]:
    return [(reading, other[key]) for key, reading in one.items() if key in other]


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % Wilson interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, hits: int, total: int) -> Share | None:
        """None: it would be a share of nothing."""
        return cls(hits / total, *wilson(hits, total)) if total else None


@dataclass(frozen=True, slots=True)
class Score:
    """A reading against labels, of one category."""

    tp: int
    fp: int
    fn: int
    tn: int
    unread: int
    """Labels of windows that the reading does not have, or has without a taxonomy; they count nowhere else."""
    precision: Share | None
    recall: Share | None


def scores(found: Readings, labels: Labels, categories: Iterable[str] = ()) -> dict[str, Score]:
    """How a reading fares against labels, by category: the given ones, then others that were labelled.

    What has no label is neither right nor wrong.
    """
    counts = {name: dict.fromkeys(("tp", "fp", "fn", "tn", "unread"), 0) for name in categories}
    for (key, category), label in sorted(labels.items()):
        row = counts.setdefault(category, dict.fromkeys(("tp", "fp", "fn", "tn", "unread"), 0))
        reading = found.get(key)
        if reading is None or reading.categories is None:
            row["unread"] += 1
        elif category in reading.categories:
            row["tp" if label else "fp"] += 1
        else:
            row["fn" if label else "tn"] += 1
    return {name: _score(**row) for name, row in counts.items()}


def _score(tp: int, fp: int, fn: int, tn: int, unread: int) -> Score:
    return Score(tp, fp, fn, tn, unread, Share.of(tp, tp + fp), Share.of(tp, tp + fn))


def print_agreement(
    suboptimal: ReadingAgreement, categories: Mapping[str, ReadingAgreement], one: str, other: str
) -> None:
    """Print the agreement of two readings, named `one` and `other`, in 80 columns."""
    say(f"only 1: {one}")
    say(f"only 2: {other}")
    rows = [_agreement_cells("(suboptimal)", suboptimal)]
    rows += [_agreement_cells(name, row) for name, row in categories.items()]
    say_table(("category", "windows", "both", "only 1", "only 2", "kappa"), rows)


def _agreement_cells(name: str, row: ReadingAgreement) -> tuple[Any, ...]:
    kappa = "-" if row.kappa is None else f"{row.kappa:.2f}"
    return shortened(name, _CATEGORY_WIDTH), row.windows, row.both, row.only_one, row.only_other, kappa


def print_scores(scored: Mapping[str, Score]) -> None:
    """Print how a reading fares against labels, in 80 columns; intervals are of 95 %."""
    rows = [
        (shortened(name, _CATEGORY_WIDTH), it.tp, it.fp, it.fn, _share(it.precision), _share(it.recall))
        for name, it in scored.items()
    ]
    say_table(("category", "tp", "fp", "fn", "precision", "recall"), rows)
    if unread := sum(score.unread for score in scored.values()):
        say(f"{counted(unread, 'label')} of windows that this reading does not have")


def _share(share: Share | None) -> str:
    return "-" if share is None else f"{share.value:.0%} ({share.low:.0%}-{share.high:.0%})"
