"""The id of a trajectory: a hash of what decides it, so that the next run finds it and goes on."""

from __future__ import annotations

from hashlib import sha256

from trajectories.options import RolloutOptions

LENGTH = 16
"""Hexadecimal digits, as of chains."""

Parent = tuple[str, int]
"""A trajectory's id and the last step that is shared with it."""


def trajectory_id(
    chain_id: str,
    options: RolloutOptions,
    sample: int,
    *,
    model: str,
    judge: str | None = None,
    parent: Parent | None = None,
) -> str:
    """The id of sample `sample` of a chain; `model` and `judge` are the models' names (None: no judge is asked)."""
    said = [chain_id, options.hash(), str(sample), model, judge or ""]
    if parent is not None:
        said += [parent[0], str(parent[1])]
    return sha256("\n".join(said).encode()).hexdigest()[:LENGTH]


def subject(trajectory: str, position: int) -> str:
    """What the calls of a stage of a trajectory are for, as the ledger keeps it."""
    return f"{trajectory}/{position}"
