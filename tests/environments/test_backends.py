"""The backends as a whole: no other code asks which one it is, and a new one is one module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from environments import backends as folder
from environments.backends import BACKENDS, DEFAULT, chosen_backend
from environments.images.image_plan import ImagePlan
from environments.images.plans import make_plan
from environments.sandboxes.sandbox import ResourceLimits
from prchain.core.errors import UsageError
from prchain.demo.backend import choose
from sql.tables import Validation
from tests.environments.test_runners import Tree
from trajectories.options import RolloutOptions

ROOT = Path(__file__).parents[2]

MODULE = '''
"""A made-up backend: folders of this machine, whose commands cannot be told from any other's."""

from dataclasses import dataclass

from environments.backend import Backend, Usable
from environments.backends.unsafe_local import PlainSandbox
from environments.sandboxes.sandbox import SandboxConfig


@dataclass(frozen=True, kw_only=True)
class ToyBackend(Backend):
    def sandbox(self, plan, image, *, limits, labels):
        return PlainSandbox(SandboxConfig(image, limits=limits, labels=labels))

    def clear_away(self, *, everybody=False):
        return {"a toy": True}

    def usable(self):
        return Usable(True, "toys always work")


BACKEND = ToyBackend(name="toy-box", help="toys", rank=-1)
'''


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImagePlan]:
    """Any plan, while the module of a new backend is among the backends."""
    (tmp_path / "toy_box.py").write_text(MODULE)
    (tmp_path / "own.toml").write_text('name = "own"\nlanguage = "ruby"\ndetects = ["Gemfile"]\nmanifests = []\n')
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    yield make_plan("o/n", Tree(), base_image="base", folder=tmp_path)
    sys.modules.pop(f"{folder.__name__}.toy_box", None)


def test_a_new_backend_is_one_module(plan: ImagePlan) -> None:
    assert "toy-box" in BACKENDS and RolloutOptions(backend="toy-box").chosen == {"backend": "toy-box"}
    toy = chosen_backend("toy-box", unsafe=False)
    with toy.sandbox(plan, None, limits=ResourceLimits(), labels={}) as sandbox:
        assert sandbox.exec("echo hello").text == "hello\n"
    assert toy.command(plan).runner == plan.runner and toy.refreshes(plan) == plan.refresh


def test_the_demo_takes_a_new_backend_by_its_rank(plan: ImagePlan) -> None:
    from prchain.core.settings import Settings

    found = choose(Settings())
    assert (found.backend.name, found.why, found.flags) == ("toy-box", "toys always work", ["--backend", "toy-box"])


def test_names_of_backends_are_those_that_rows_hold() -> None:
    longest = Validation.__table__.c.backend.type.length  # type: ignore[attr-defined]
    assert {"docker", "local", "unsafe-local"} <= set(BACKENDS) and all(len(name) <= longest for name in BACKENDS)


def test_no_other_module_names_a_backend() -> None:
    found = {
        path.relative_to(ROOT).as_posix(): node.value
        for package in ("environments", "trajectories")
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in BACKENDS
        if path.parent.name != "backends"
    }
    # Identities leave it out, whatever the default is.
    # The program of that name is something that an agent may run, and Harbor's tasks name images of its engine.
    assert found == {
        "trajectories/options.py": DEFAULT,
        "trajectories/audit/rules/network.py": "docker",
        "trajectories/export/tasks/harbor/export.py": "docker",
    }


@pytest.mark.parametrize(("name", "unsafe"), [("unsafe-local", False), ("local", True), ("docker", True)])
def test_plain_processes_are_asked_for_twice_or_not_at_all(name: str, unsafe: bool) -> None:
    with pytest.raises(UsageError, match="give both --backend unsafe-local and --unsafe-local"):
        chosen_backend(name, unsafe=unsafe)
    assert chosen_backend(name, unsafe=not unsafe).name == name


def test_where_nobody_names_a_backend_it_is_the_default() -> None:
    assert chosen_backend(None, unsafe=False).name == DEFAULT


def test_options_take_no_backend_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="there is no backend 'nowhere'; known are docker, local, "):
        RolloutOptions(backend="nowhere")
