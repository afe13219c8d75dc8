"""What decides a trajectory, and the id that follows from it.

The id is a hash of everything that the result depends on, and of nothing else: the chain and its task's texts, models
and how they are sampled, the prompts in use, tools, scaffold, observers, options that are not at their default, the
proof where tests gate. Machine, workers, budget, waits and display do not enter.

Rows older than this rule keep their ids. They stored only part of their identity: a field that is not stored counts
as equal (`differences`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import Any

LENGTH = 16
"""Hexadecimal digits, as of chains."""

RULE = 2
"""The number of this rule. Rows of the rule before it have no stored identity."""

Parent = tuple[str, int]
"""A trajectory's id and the last step that is shared with it."""

PLACE = ("chain", "sample", "parent")
"""Which rollout it is."""

CHOICES = ("models", "scaffold", "observers", "options", "curation")
"""What a user chooses: another choice is another trajectory."""

INPUTS = ("task", "proof", "prompts", "tools", "versions")
"""Texts and code that can change while the choices stay the same.

Left out on purpose: the image and where it runs (machines), and what follows from the commits of the chain."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Everything that decides a trajectory."""

    chain: str
    sample: int
    parent: Parent | None = None
    """Where it was branched off."""
    models: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Purpose to model and sampling settings, as resolved; a setting without a value is left out."""
    scaffold: str = "react"
    observers: tuple[Mapping[str, Any], ...] = ()
    """Name and settings of each, in order."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those that are not at their default (`RolloutOptions.chosen`)."""
    curation: Mapping[str, Any] = field(default_factory=dict)
    """Of a curated run: options of its windows, and what decides its process graphs. Of a disclosed one: what its agent
    is told, and how many stages it works on."""
    task: str = ""
    """Hash of overview and queries as an agent reads them."""
    proof: str | None = None
    """Hash of the proved tests; None where no tests run, or nothing is proved yet."""
    prompts: Mapping[str, str] = field(default_factory=dict)
    """Name to hash of every prompt in use: the scaffold's, the judge's, the observers'."""
    tools: str = ""
    """Hash of the tools' schemas, as the model gets them."""
    versions: Mapping[str, str] = field(default_factory=dict)
    """Versions of the code that the result depends on: scaffold, verdicts and observers."""

    @property
    def id(self) -> str:
        """The id of the trajectory."""
        return sha256(json.dumps(self.row(), sort_keys=True).encode()).hexdigest()[:LENGTH]

    def row(self) -> dict[str, Any]:
        """The fields as JSON has them, the same for equal identities; `stored` reads them. Empty fields are left out,
        so that a field that is added later changes no id."""
        fields = {name: value for name, value in asdict(self).items() if value not in (None, (), {}, "")}
        return _plain({"rule": RULE, **fields})


def stored(decided_by: Mapping[str, Any]) -> dict[str, Any]:
    """All fields of an identity from its `row`."""
    return {**_NOTHING, **decided_by}


def differences(known: Mapping[str, Any], current: Mapping[str, Any], *, whole: bool = True) -> set[str]:
    """The fields in which a trajectory's stored identity (`known`) differs from `current`; both as `stored` gives them.

    Where `known` is not `whole`, fields, purposes, settings and prompts that it lacks count as equal. So does a missing
    proof where neither gate nor judge heeds tests: they had no part in the result.
    """
    differing = {name for name in PLACE if known.get(name, current[name]) != current[name]}
    for name in () if differing else (*CHOICES, *INPUTS):
        if not _agree(known.get(name, current[name]), current[name], whole):
            differing.add(name)
    options = current["options"]
    voices = str(options.get("gate", "judge")).partition("+")[0]
    if known.get("proof") is None and (voices, options.get("judge_sees")) == ("judge", None):
        differing.discard("proof")
    return differing


def _agree(known: Any, current: Any, whole: bool) -> bool:
    if whole or not isinstance(known, Mapping):
        return bool(known == current)
    current_fields = current if isinstance(current, Mapping) else {}
    return all(_agree(value, current_fields.get(name), whole) for name, value in known.items())


def digest(values: Iterable[Any]) -> str:
    """A short hash of JSON values in their order."""
    return sha256(json.dumps(list(values), sort_keys=True).encode()).hexdigest()[:LENGTH]


def _plain(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields as JSON has them: a list where the code has a tuple."""
    plain: dict[str, Any] = json.loads(json.dumps(fields))
    return plain


_NOTHING = _plain(asdict(Identity("", 0)))


def subject(trajectory: str, position: int) -> str:
    """The ledger's subject for the calls of one stage of a trajectory."""
    return f"{trajectory}/{position}"
