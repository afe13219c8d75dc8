"""Images of neighbours in a real engine: what a tree asks for is looked for in them, with the tree in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from environments.images.buildtree import GitTree
from environments.images.image_plan import ImagePlan
from environments.images.image_settings import BuildSettings
from environments.images.images import build_image, prune_images
from environments.images.inside import unmet
from environments.images.neighbours import next_best, serving
from environments.images.plans import make_plan
from environments.images.recipes import Recipe
from environments.sandboxes.engine import connect
from sql.store import Store
from sql.tables import BuiltImage
from tests.databases import open_new
from tests.environments.committed import committer

BASE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
REPOSITORY = "prchain-test/neighbours"
DAY = datetime(2024, 5, 1, tzinfo=UTC)

RECIPE = Recipe.model_validate(
    {
        "name": "small",
        "language": "shell",
        "detects": ["deps"],
        "manifests": ["deps"],
        "build": [{"name": "dependencies", "run": "cp deps /opt/env/; echo dated >> $BUILD/notes"}],
        "refresh": ["test ! -e refused"],
        "lacks": "grep -vxFf /opt/env/deps deps || true",
    }
)


@pytest.fixture
def engine() -> Iterator[Any]:
    client = connect()
    yield client
    prune_images(client, repository=REPOSITORY)
    client.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_new(tmp_path / "p.db")
    yield opened
    opened.close()


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., GitTree]:
    return committer(tmp_path / "r")


def planned(tree: GitTree) -> ImagePlan:
    return make_plan(REPOSITORY, tree, base_image=BASE, recipe=RECIPE)


@pytest.mark.docker
def test_the_image_of_a_neighbour_is_asked_for_what_a_tree_wants(
    engine: Any, store: Store, tree: Callable[..., GitTree]
) -> None:
    first = tree(deps="a\nb\n")
    image = build_image(engine, planned(first), first, BuildSettings(BASE, network="none", timeout=120), as_of=DAY)
    row: dict[str, Any] = {
        "name": image.name,
        "repository": REPOSITORY,
        "recipe": "small",
        "outcome": "built",
        "notes": [],
    }
    row |= {"as_of": image.as_of, "seconds": 1.0, "repairs": 0, "built_at": image.created}
    with store.transaction() as tx:
        tx.upsert(BuiltImage, [row])
    day = DAY + timedelta(days=10)

    fewer = tree(deps="b\n")
    found = serving(engine, store, planned(fewer), fewer, day)
    assert found is not None and (found.image.name, found.lacks, found.days) == (image.name, (), -10)
    assert serving(engine, store, planned(first), first, day) is None, "its own is there"
    assert serving(engine, store, replace(planned(fewer), way="another"), fewer, day) is None

    more = tree(deps="a\nc\n")
    assert serving(engine, store, planned(more), more, day) is None
    best = next_best(engine, store, planned(more), more, day)
    assert best is not None and best.lacks == ("c",)

    refused = tree(refused="")
    assert next_best(engine, store, planned(refused), refused, day) is None


@pytest.mark.parametrize(
    ("line", "met"),
    [
        ("a", True),
        ("A_b.c>=2,<3", True),
        ("a-b-c>=2.5", False),
        ("a==1.0 --hash=sha256:00", True),
        ("a==1 \\", True),
        ("a>1  # why", False),
        ("nowhere", False),
        ("nowhere ; python_version < '3'", True),
        ("nowhere ; extra == 'docs'", True),
        ("nowhere @ https://h.example/x.whl", True),
        ("a<2a0", True),
        ("pre>=2.0b1", True),
        ("not a requirement", True),
    ],
)
def test_a_requirement_is_met_by_what_is_installed(line: str, *, met: bool) -> None:
    installed = {"a": "1.0", "a-b-c": "2.1", "pre": "2.0b2"}
    assert unmet.unmet([line], installed) == ([] if met else [line])


def test_the_version_of_a_package_is_read_from_its_metadata(tmp_path: Path) -> None:
    folder = tmp_path / "a-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: a\nVersion: 1.0.post1\n\nVersion: 9\n")
    (tmp_path / "b.egg-info").write_text("Name: b\n")
    places = [folder, tmp_path / "b.egg-info", tmp_path / "gone.egg-link"]
    assert [unmet.version_of(str(place)) for place in places] == ["1.0.post1", "", ""]
