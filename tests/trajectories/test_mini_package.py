"""mini-swe-agent is missing, or has another version."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from prchain.core.errors import UsageError
from trajectories.agents.scaffolds.kinds import SCAFFOLDS
from trajectories.agents.scaffolds.mini_package import load_package
from trajectories.options import RolloutOptions

MODULES = (
    "minisweagent",
    "minisweagent.agents.default",
    "minisweagent.models.utils.actions_toolcall",
    "minisweagent.exceptions",
    "yaml",
)


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    load_package.cache_clear()
    yield
    load_package.cache_clear()


def test_what_is_missing_is_told_with_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minisweagent", None)
    with pytest.raises(UsageError, match=r"make mini.*prchain\[mini\]"):
        SCAFFOLDS["mini"].make(RolloutOptions())


def test_a_version_with_other_interfaces_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in MODULES:
        module: Any = ModuleType(name)
        module.__version__ = "1.17.5"
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(UsageError, match=r"1\.17\.5"):
        load_package()
