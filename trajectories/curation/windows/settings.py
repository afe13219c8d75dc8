"""What tells curated trajectories from each other: the settings of their windows, as an ablation changes them (P2T,
section 5.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prchain.core.keyed import written
from sql.store import Transaction
from sql.tables import Trajectory
from trajectories.curation.windows.options import DEFAULTS
from trajectories.privileged import CURATED

AT_DEFAULT = "default"
"""The words of settings that are all at their default."""

WindowSettings = Mapping[str, Any]
"""Those that are not at their default, by the key of `--windows`."""


def settings_of(decided_by: Mapping[str, Any] | None) -> WindowSettings:
    """From what decided a trajectory (`trajectories.identity`)."""
    found: WindowSettings = (decided_by or {}).get("curation", {}).get("options", {})
    return found


def read_settings(tx: Transaction) -> dict[str, WindowSettings]:
    """Of every curated trajectory, by id."""
    rows = tx.rows(Trajectory, "id", "decided_by", scaffold=CURATED)
    return {name: settings_of(decided_by) for name, decided_by in rows}


def settings_words(settings: WindowSettings) -> str:
    """The settings as they are typed, in the order of their keys; `AT_DEFAULT` where there is none."""
    return ",".join(f"{key}={written(settings[key])}" for key in sorted(settings)) or AT_DEFAULT


def has_settings(settings: WindowSettings, wanted: WindowSettings) -> bool:
    """Whether the windows of a trajectory have these values, which may be defaults."""
    return all(settings.get(key, DEFAULTS[key]) == value for key, value in wanted.items())
