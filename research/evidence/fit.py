"""Fits the weights of the signs to labels: logistic regression, held near the weights of before."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path

from scipy.optimize import minimize  # type: ignore[import-untyped]

import chains.weights
from research.evidence.labels import Read

PRIOR = Path(__file__).with_name("prior.csv")
"""The weights towards which the fit is held: round numbers, chosen with the signs after a look at rounds 1 and 2."""

MODELS = ("lineage", "worth")

PULL = 1.0
"""Strength of the pull towards the prior: each label counts 1, a squared distance from the prior `PULL`."""


@dataclass(frozen=True, slots=True)
class Case:
    """One step or stage: the values of its signs, whether it is good (both readers say so), and where it is from."""

    repository: str
    values: Mapping[str, float]
    good: bool


def cases(rows: Sequence[Read], model: str) -> list[Case]:
    """The cases of one model in the labels: steps that lineage alone knows, or stages, each once."""
    found: dict[tuple[object, ...], Case] = {}
    for row in rows:
        if model == "lineage":
            for place, (signs, label) in enumerate(zip(row.step_signs, row.settled_steps, strict=True)):
                if signs:
                    found[row.repository, *row.numbers[place : place + 2]] = Case(
                        row.repository, signs, label == "real"
                    )
        else:
            for number, signs, label in zip(row.numbers, row.stage_signs, row.settled_stages, strict=True):
                found[row.repository, number] = Case(row.repository, signs, label == "yes")
    return list(found.values())


def read_prior(model: str) -> dict[str, float]:
    """The weights of before."""
    with PRIOR.open(encoding="utf-8", newline="") as file:
        return {row["sign"]: float(row["weight"]) for row in csv.DictReader(file) if row["model"] == model}


def fit(found: Sequence[Case], prior: Mapping[str, float], pull: float = PULL) -> dict[str, float]:
    """The weights of greatest likelihood, less `pull` times the squared distances from the prior."""
    names = list(prior)

    def loss(weights: Sequence[float]) -> float:
        named = dict(zip(names, weights, strict=True))
        fault = pull * sum((named[name] - prior[name]) ** 2 for name in names)
        return fault + log_loss(found, named) * len(found)

    result = minimize(loss, [prior[name] for name in names], method="BFGS")
    return {name: round(float(weight), 2) for name, weight in zip(names, result.x, strict=True)}


def chance(weights: Mapping[str, float], values: Mapping[str, float]) -> float:
    """The probability that weights give a case."""
    return 1 / (1 + exp(-sum(weights[name] * value for name, value in values.items())))


def log_loss(found: Sequence[Case], weights: Mapping[str, float]) -> float:
    """The mean loss in nats."""
    total = 0.0
    for case in found:
        probability = min(max(chance(weights, case.values), 1e-9), 1 - 1e-9)
        total -= log(probability if case.good else 1 - probability)
    return total / len(found)


def held_out(found: Sequence[Case], prior: Mapping[str, float]) -> list[tuple[float, bool]]:
    """Each case with the probability that weights give it which were fitted to the other repositories."""
    scored = []
    for repository in sorted({case.repository for case in found}):
        weights = fit([case for case in found if case.repository != repository], prior)
        scored += [(chance(weights, case.values), case.good) for case in found if case.repository == repository]
    return scored


def ranking(scored: Sequence[tuple[float, bool]]) -> float:
    """The share of good and bad cases that are ranked right (area under the ROC curve); ties count half."""
    good = [value for value, is_good in scored if is_good]
    bad = [value for value, is_good in scored if not is_good]
    wins = sum((a > b) + (a == b) / 2 for a in good for b in bad)
    return wins / (len(good) * len(bad))


def write_weights(fitted: Mapping[str, Mapping[str, float]]) -> None:
    """Write the table that prchain reads."""
    with Path(chains.weights.__file__).with_name("weights.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("model", "sign", "weight"))
        writer.writerows((model, sign, weight) for model, weights in fitted.items() for sign, weight in weights.items())
