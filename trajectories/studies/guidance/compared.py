"""Stored rollouts with and without a process reward model, beside each other over the same stages (SWE-PRM, 4.3)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import select

from sql.chosen import repository_ids
from sql.store import Transaction
from sql.tables import Chain, Trajectory
from trajectories.agents.guidance.settings import EVERY, PURPOSE, WINDOW
from trajectories.agents.guidance.taxonomy import load_taxonomy
from trajectories.agents.guidance.variants import VARIANTS, PrmStyle, PrmVariant, Reads, variant_name
from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT
from trajectories.identity import stored
from trajectories.outcomes import FINAL, SUPERSEDED
from trajectories.privileged import PRIVILEGED
from trajectories.rollouts.prefix import PURPOSE as PREFIX
from trajectories.studies.guidance.metrics import ComparedRun, UnitKey
from trajectories.studies.guidance.stage_runs import ReachedStage, reached_stages

BASE = "base"
"""The setting without observers."""

PRM = "prm"
"""The observer's name."""

PRIVILEGED_ONES, BRANCHES, OLDER, GIVEN_UP, OBSERVED, REPEATED, UNPAIRED, UNCHOSEN = (
    "privileged",
    "branches",
    "older",
    "superseded",
    "otherwise_observed",
    "repeated",
    "without_prm",
    "not_chosen",
)
"""Why trajectories are left out: curated or told more; share steps with their parents; their identity was not stored;
given up for one under newer texts; watched by others, or by more; there is a newer one of the same setting and sample;
of a policy that no process reward model was used with, and that guided none; of another variant."""

UNSHARED, REWRITTEN, UNTESTED = "unshared", "rewritten", "untested"
"""Why samples of stages are left out: not every setting reached them; their task or its tests are not the same in all
settings; in some setting no tests ran."""

_Order = tuple[int, int, str]

_USUAL = {"every": EVERY, "window": WINDOW}


@dataclass(frozen=True, slots=True)
class PrmSetting:
    """What a policy was guided by."""

    name: str
    """`BASE`, or the variant's name."""
    other: Mapping[str, Any] = field(default_factory=dict)
    """Further settings that are not as usual."""
    model: str | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ComparedSetting:
    """A setting beside others. `reached`: samples of stages, of which `runs` are those that count everywhere."""

    setting: PrmSetting
    trajectories: int
    reached: int
    runs: tuple[ComparedRun, ...]


@dataclass(frozen=True, slots=True)
class ComparedGroup:
    """Settings of one policy, `BASE` first if it is there."""

    model: str
    scaffold: str
    choices: Mapping[str, Any]
    """The other choices that decide its trajectories."""
    settings: tuple[ComparedSetting, ...]
    left_out: Mapping[str, int]
    """Samples of stages, by reason."""


@dataclass(frozen=True, slots=True)
class PrmComparison:
    """All groups, and the trajectories that are in none, by reason."""

    groups: tuple[ComparedGroup, ...]
    left_out: Mapping[str, int]


class _Found(NamedTuple):
    id: str
    chain: str
    sample: int
    group: str
    setting: PrmSetting
    texts: tuple[Any, Any]
    """Hashes of the task and of its proved tests."""
    standing: tuple[bool, str, str]
    """Of several the greatest counts: one that has ended, the newest."""


def compare(
    tx: Transaction, repository: str | None = None, model: str | None = None, variants: Collection[str] = ()
) -> PrmComparison:
    """The rollouts of every policy that was used with a process reward model, and of what guided another one, alone
    (SWE-PRM, table 3); of one repository (``owner/name``) or policy model; with `variants`, of these and the base
    alone. Raises `UsageError` for an unknown repository."""
    left_out: Counter[str] = Counter()
    kept: dict[tuple[str, _Order, str, int], _Found] = {}
    for found in _trajectories(tx, repository, model, variants, left_out):
        key = (found.group, _order(found.setting), found.chain, found.sample)
        if key in kept:
            left_out[REPEATED] += 1
        if key not in kept or found.standing > kept[key].standing:
            kept[key] = found
    groups: dict[str, list[_Found]] = {}
    for found in kept.values():
        groups.setdefault(found.group, []).append(found)
    guides = {
        (found.setting.model, setup)
        for found in kept.values()
        for policy, setup in [_of_group(found.group)]
        if found.setting.model != policy
    }
    for name, members in list(groups.items()):
        if all(found.setting.name == BASE for found in members) and _of_group(name) not in guides:
            left_out[UNPAIRED] += len(groups.pop(name))
    proved = {found.id: found.texts[1] is not None for members in groups.values() for found in members}
    stages = reached_stages(tx, proved)
    return PrmComparison(
        tuple(_group(json.loads(name), members, stages) for name, members in sorted(groups.items())),
        dict(sorted(left_out.items())),
    )


def _trajectories(
    tx: Transaction, repository: str | None, model: str | None, variants: Collection[str], left_out: Counter[str]
) -> Iterable[_Found]:
    columns = ("id", "chain_id", "sample", "parent_id", "scaffold", "outcome", "decided_by", "started_at")
    query = select(*(getattr(Trajectory, name) for name in columns)).order_by(Trajectory.id)
    query = query.where(Trajectory.chain_id.is_not(None))
    if model is not None:
        query = query.where(Trajectory.model == model)
    if repository is not None:
        of_repository = select(Chain.id).where(Chain.repository_id.in_(repository_ids(tx, repository)))
        query = query.where(Trajectory.chain_id.in_(of_repository))
    for row in list(tx.connection.execute(query)):
        why = _unfit(row)
        identity = {} if why else stored(row.decided_by)
        setting = None if why else _setting(identity)
        if setting is None:
            left_out[why or OBSERVED] += 1
        elif variants and setting.name not in {BASE, *variants}:
            left_out[UNCHOSEN] += 1
        else:
            texts = (identity["task"], identity["proof"])
            standing = (row.outcome in FINAL, row.started_at, row.id)
            yield _Found(row.id, row.chain_id, row.sample, _policy(identity), setting, texts, standing)


def _unfit(row: Any) -> str | None:
    if row.scaffold in PRIVILEGED:
        return PRIVILEGED_ONES
    if row.parent_id is not None:
        return BRANCHES
    if row.decided_by is None:
        return OLDER
    return GIVEN_UP if row.outcome == SUPERSEDED else None


def _policy(identity: Mapping[str, Any]) -> str:
    """Everything that was chosen for a trajectory, but what it was guided by."""
    # Whether an overview may have to be written anew depends on the length of the chain.
    models = {purpose: it for purpose, it in identity["models"].items() if purpose not in {PURPOSE, PREFIX}}
    choices = {name: identity[name] for name in ("options", "curation") if identity[name]}
    return json.dumps({"models": models, "scaffold": identity["scaffold"], "choices": choices}, sort_keys=True)


def _of_group(group: str) -> tuple[str | None, str]:
    """The policy's model of `_policy`, and all else of it."""
    policy = json.loads(group)
    agent = policy["models"].pop(AGENT, {})
    return agent.get("model"), json.dumps(policy, sort_keys=True)


def _setting(identity: Mapping[str, Any]) -> PrmSetting | None:
    """None where others watched than one process reward model, or what it did is not known here."""
    observers = identity["observers"]
    if not observers:
        return PrmSetting(BASE)
    if len(observers) > 1 or observers[0]["name"] != PRM:
        return None
    other = dict(observers[0]["settings"])
    try:
        style, reads = PrmStyle(other.pop("style")), Reads(other.pop("reads"))
        variant = PrmVariant(style, bool(other.pop("example")), reads, bool(other.pop("action")))
    except (KeyError, ValueError):
        return None
    usual = {**_USUAL, "taxonomy": load_taxonomy().hash}
    other = {name: value for name, value in other.items() if name not in usual or value != usual[name]}
    sampling = dict(identity["models"].get(PURPOSE, {}))
    return PrmSetting(variant_name(variant), other, sampling.pop("model", None), sampling)


def _order(setting: PrmSetting) -> _Order:
    """By variant, the usual settings first; the same for equal settings alone."""
    known = [BASE, *VARIANTS]
    place = known.index(setting.name) if setting.name in known else len(known)
    rest = [setting.name, dict(setting.other), setting.model, dict(setting.sampling)]
    return place, len(setting.other), json.dumps(rest, sort_keys=True)


def _group(
    policy: Mapping[str, Any], members: Sequence[_Found], stages: Mapping[str, Sequence[ReachedStage]]
) -> ComparedGroup:
    settings: dict[_Order, list[_Found]] = {}
    for found in members:
        settings.setdefault(_order(found.setting), []).append(found)
    reached: list[dict[UnitKey, tuple[_Found, ReachedStage]]] = [
        {
            ((found.chain, stage.position), found.sample): (found, stage)
            for found in settings[order]
            for stage in stages.get(found.id, ())
        }
        for order in sorted(settings)
    ]
    left_out = dict.fromkeys((UNSHARED, REWRITTEN, UNTESTED), 0)
    shared: list[UnitKey] = []
    for key in sorted(set().union(*reached)):
        there = [units[key] for units in reached if key in units]
        if len(there) < len(reached):
            left_out[UNSHARED] += 1
        elif len({found.texts for found, _ in there}) > 1:
            left_out[REWRITTEN] += 1
        elif any(stage.resolved is None for _, stage in there):
            left_out[UNTESTED] += 1
        else:
            shared.append(key)
    compared = [
        ComparedSetting(
            settings[order][0].setting,
            len(settings[order]),
            len(units),
            tuple(stage.run(found.chain, found.sample) for found, stage in map(units.__getitem__, shared)),
        )
        for order, units in zip(sorted(settings), reached, strict=True)
    ]
    models = dict(policy["models"])
    agent = dict(models.pop(AGENT, {}))
    model = str(agent.pop("model", "?"))
    choices = {**policy["choices"].get("options", {}), **agent, **({"models": models} if models else {})}
    if "curation" in policy["choices"]:
        choices["curation"] = policy["choices"]["curation"]
    return ComparedGroup(model, policy["scaffold"], choices, tuple(compared), left_out)
