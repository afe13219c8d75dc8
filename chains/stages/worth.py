"""How likely a stage makes a sensible task: development that can be asked for in words, and checked.

Signs add up as log-odds; their weights are fitted to what two readers said of stages (`chains.weights`). What tells
most is how many lines of tests it adds; mechanical words in the title and a patch that mostly removes speak against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import log2

from chains.edges.graph import Sign
from chains.weights import BASE, MECHANICAL, probability, weights
from prchain.core.code.reference import Reference
from prchain.core.console.terminal import counted

_MANY_LINES = 127


@dataclass(frozen=True, slots=True)
class StageWorth:
    """The probability that a stage makes a sensible task, and its reasons."""

    worth: float
    signs: tuple[Sign, ...]
    values: Mapping[str, float] = field(default_factory=dict)
    """Of the signs, before they are weighted."""


def worth_signs(reference: Reference, subject: str) -> dict[str, tuple[float, str]]:
    """The signs of a stage: name to value and, for people, what bears it out."""
    tests = sum(1 for file in reference.test for line in file.added if line.strip())
    removed = sum(1 for file in reference.code for line in file.removed if line.strip())
    signs = {BASE: (1.0, counted(reference.source_lines, "line") + " of program text")}
    if tests:
        signs["tests_added"] = (log2(1 + min(tests, _MANY_LINES)), f"adds {counted(tests, 'line')} of tests")
    if reference.test:
        signs["test_files"] = (log2(1 + len(reference.test)), f"changes {counted(len(reference.test), 'test file')}")
    if word := MECHANICAL.search(subject):
        signs["mechanical_title"] = (1.0, word[0])
    if removed:
        share = removed / reference.source_lines
        signs["removed_share"] = (share, f"{share:.0%} of its lines go")
    return signs


def judge_worth(reference: Reference, subject: str) -> StageWorth:
    """Judge one stage by its reference patch and its title."""
    weight_of = weights("worth")
    found = worth_signs(reference, subject)
    signs = tuple(Sign(name, round(value * weight_of[name], 4), detail) for name, (value, detail) in found.items())
    values = {name: round(value, 4) for name, (value, _) in found.items()}
    return StageWorth(probability(sum(sign.weight for sign in signs)), signs, values)
