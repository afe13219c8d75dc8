"""Names of release 0.1 that docs told writers of observers and of programs: they load, and are the modules of today."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

MOVED = {
    "prchain.errors": "prchain.core.errors",
    "prchain.llm.gateway": "prchain.core.llm.gateway",
    "prchain.llm.prompts": "prchain.core.llm.prompts",
    "trajectories.model": "trajectories.model",
    "trajectories.scaffolds.scaffold": "trajectories.agents.scaffolds.scaffold",
}

OBSERVER = """
from prchain.errors import UsageError
from prchain.llm.gateway import Question
from prchain.llm.prompts import Fence, load_prompt
from trajectories.model import Entry, EntryKind
from trajectories.scaffolds.scaffold import Advice, ObservedAttempt, Observer
"""


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_is_the_module_of_today(old: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if old != MOVED[old]:
        monkeypatch.delitem(sys.modules, old, raising=False)
    assert import_module(old) is import_module(MOVED[old])


def test_an_observer_of_0_1_has_the_classes_of_today() -> None:
    from prchain.core.errors import UsageError
    from prchain.core.llm.prompts import Fence
    from trajectories.agents.scaffolds.scaffold import Advice

    names: dict[str, object] = {}
    exec(OBSERVER, names)
    assert (names["UsageError"], names["Fence"], names["Advice"]) == (UsageError, Fence, Advice)
