"""Which names stand in a tree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prchain.core.errors import IncompleteRepository
from prchain.core.git import GitRepository
from tests.miner.gitworld import LINK, SUBMODULE, Content, World, git

TEXTS: dict[str | bytes, Content] = {
    "a.py": "def alpha_beta(x):\n    return alpha_beta2 + gamma.delta\n",
    "deep/b.js": "const $scope = epsilon1; // größe\n",
    "c.bin": b"\0zeta\n",
    "same.py": "def alpha_beta(x):\n    return alpha_beta2 + gamma.delta\n",
    "no_end": "theta",
    "empty": "",
}
NAMES = [
    "alpha_beta",
    "alpha",
    "beta",
    "gamma",
    "delta",
    "$scope",
    "epsilon1",
    "epsilon",
    "größe",
    "zeta",
    "theta",
    "iota",
    "x",
    "target",
    "const",
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    created = World(tmp_path_factory.mktemp("words") / "r.git")
    created.commit("main", {**TEXTS, "link": (LINK, b"target"), "sub": (SUBMODULE, b"1" * 40)}, "start")
    created.save()
    return created


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)
@given(st.lists(st.sampled_from(NAMES), unique=True))
def test_finds_what_stands_as_a_whole_word_in_a_text(world: World, names: list[str]) -> None:
    texts = [text for text in TEXTS.values() if isinstance(text, str)]
    expected = {name for name in names if any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for text in texts)}
    assert GitRepository.open(world.path).words_at(world.sha("main"), names) == expected


def test_a_missing_blob_is_said(tmp_path: Path) -> None:
    world = World(tmp_path / "r.git")
    world.commit("main", {"a.py": "one\n"}, "start")
    world.save()
    blob = git(world.path, "rev-parse", "main:a.py").strip()
    (world.path / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(IncompleteRepository):
        GitRepository.open(world.path).words_at(world.sha("main"), ["two"])
