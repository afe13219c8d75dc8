"""Images in a real engine: built once, shared, free of the tree and of the build's secrets, and gone after a failure.

The recipe is a small one of our own that needs no network, so that the tests are the same everywhere.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from environments.images.building import BuildContainer
from environments.images.buildtree import GitTree
from environments.images.image_plan import BUILD, ImagePlan
from environments.images.image_settings import BuildSettings
from environments.images.images import PREPARE, build_image, find_image, list_images, prune_images, remove_image
from environments.images.plans import make_plan
from environments.images.recipes import Recipe, with_values
from environments.sandboxes.engine import connect
from environments.sandboxes.leftovers import OWNER
from prchain.core.errors import BuildFailed, EngineUnavailable, ImageMissing
from prchain.core.processes.alive import this_process
from tests.environments.committed import committer

BASE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
REPOSITORY = "prchain-test/images"
SECRET = "s3cret-of-the-index"

RECIPE = Recipe.model_validate(
    {
        "name": "small",
        "language": "shell",
        "detects": ["deps"],
        "manifests": ["deps"],
        "keep": {"modules": "/opt/env/modules"},
        "environment": {"PATH": "/opt/env:$PATH", "QUOTED": 'a "b" $c \\'},
        "offline": {"ONLY_LATER": "1"},
        "build": [
            {
                "name": "dependencies",
                "run": "mkdir modules; cp deps modules/; cp deps /opt/env/; echo ${ONLY_LATER:-none} > /opt/env/seen",
            },
        ],
        "refresh": ["test -e /opt/env/deps; cat source > installed"],
        "check": ["test -e installed"],
    }
)

FAILING = "echo 'fatal error: x.h: No such file'; exit 3"

SETTINGS = BuildSettings(
    BASE,
    network="none",
    timeout=120,
    ca_bundle=b"-----BEGIN CERTIFICATE-----\nplanted\n",
    variables={"INDEX": f"http://user:{SECRET}@index.example/"},
    secrets=(SECRET,),
)


@pytest.fixture(scope="module")
def engine() -> Iterator[Any]:
    client = connect()
    yield client
    prune_images(client, repository=REPOSITORY)
    assert client.api.containers(all=True, filters={"label": f"{OWNER}={this_process()}"}) == []
    client.close()


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., GitTree]:
    """Makes commits of a repository, and gives their trees."""
    below = tmp_path / "r" / "folder" / "below"
    below.mkdir(parents=True)
    (below / "run").write_text("#!/bin/sh\necho ran\n")
    (below / "run").chmod(0o755)
    return committer(tmp_path / "r")


def planned(tree: GitTree, **changes: Any) -> ImagePlan:
    return make_plan(REPOSITORY, tree, base_image=BASE, recipe=with_values(RECIPE, changes, "the test"))


def inside(engine: Any, image: str, script: str) -> str:
    ran = engine.containers.run(image, ["bash", "-c", script], remove=True, network_mode="none")
    return str(ran.decode())


@pytest.mark.docker
def test_an_image_is_built_once_for_all_trees_whose_manifests_agree(engine: Any, tree: Callable[..., GitTree]) -> None:
    first = tree(deps="a 1\n", source="one\n")
    built = build_image(engine, planned(first), first, SETTINGS)
    second = tree(deps="a 1\n", source="two\n")
    again = build_image(engine, planned(second), second, SETTINGS)
    other = tree(deps="a 2\n", source="two\n")
    assert (built.cached, again.cached) == (False, True)
    assert (again.id, again.name) == (built.id, built.name)
    assert planned(other).image != built.name


@pytest.mark.docker
def test_nothing_of_the_tree_and_nothing_of_the_build_stays_in_the_image(
    engine: Any, tree: Callable[..., GitTree]
) -> None:
    planted = tree(deps="b\n", source="marker-of-the-source\n")
    built = build_image(engine, planned(planted), planted, SETTINGS)
    assert inside(engine, built.name, "ls -A /testbed /var/tmp /tmp; pwd; id -un; stat -c %U /testbed") == (
        "/testbed:\n\n/tmp:\n\n/var/tmp:\n/testbed\nagent\nagent\n"
    )
    found = inside(
        engine,
        built.name,
        f"grep -rlE 'marker-of-the-source|{SECRET}|^planted$' /opt /home /etc /root /var/tmp /tmp 2> /dev/null || true",
    )
    assert found == ""
    description = json.dumps(engine.api.inspect_image(built.name)) + json.dumps(engine.api.history(built.name))
    assert SECRET not in description and "ca.pem" not in description


@pytest.mark.docker
def test_what_the_recipe_keeps_and_sets_is_in_the_image(engine: Any, tree: Callable[..., GitTree]) -> None:
    some = tree(deps="c\n", source="x\n")
    built = build_image(engine, planned(some), some, SETTINGS)
    output = inside(
        engine, built.name, 'cat /opt/env/modules/deps /opt/env/seen; echo "$QUOTED"; echo $ONLY_LATER $PATH'
    )
    assert output.startswith('c\nnone\na "b" $c \\\n1 /opt/env:/')


@pytest.mark.docker
def test_a_try_that_failed_is_noted_with_its_reason(engine: Any, tree: Callable[..., GitTree]) -> None:
    some = tree(deps="d\n", source="x\n")
    scripts = ("echo 'ERROR: No matching distribution found for a'; exit 1", "cp deps /opt/env/")
    plan = planned(some, build=({"name": "dependencies", "run": scripts},))
    built = build_image(engine, plan, some, SETTINGS)
    assert built.notes == ("dependencies: try 2 of 2; ERROR: No matching distribution found for a",)
    assert [image.notes for image in list_images(engine) if image.name == built.name] == [built.notes]


@pytest.mark.docker
@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"build": ({"name": "dependencies", "run": FAILING},)}, "dependencies"),
        ({"refresh": (FAILING,)}, "refresh"),
        ({"check": (FAILING,)}, "check"),
    ],
)
def test_a_build_that_fails_says_where_and_why_and_leaves_nothing(
    engine: Any, tree: Callable[..., GitTree], changes: dict[str, Any], step: str
) -> None:
    some = tree(deps=f"{step}\n", source="x\n")
    plan = planned(some, **changes)
    with pytest.raises(BuildFailed, match=r"fatal error: x\.h") as caught:
        build_image(engine, plan, some, SETTINGS)
    assert (caught.value.step, caught.value.name) == (step, "build_failed")
    assert find_image(engine, plan.image) is None


@pytest.mark.docker
def test_a_build_that_takes_too_long_is_ended(engine: Any, tree: Callable[..., GitTree]) -> None:
    some = tree(deps="slow\n", source="x\n")
    plan = planned(some, build=({"name": "dependencies", "run": ("echo begun; (setsid sleep 600 &) ; sleep 600",)},))
    start = time.monotonic()
    with pytest.raises(BuildFailed, match="too long; it was at the step dependencies") as caught:
        build_image(engine, plan, some, replace(SETTINGS, timeout=12))
    assert time.monotonic() - start < 60
    assert caught.value.lines[-1] == "begun"
    assert find_image(engine, plan.image) is None


APT = """#!/bin/bash
case "$*" in
    update*) ;;
    *--print-uris*) for package in "${@:6}"; do
        case "$package" in big*) echo "'u' f 90000000 h" ;; huge) echo "'u' f 9000000000 h" ;; esac
    done ;;
    *bad*) exit 100 ;;
    *) echo "asked: ${*: -1}" ;;
esac
"""
KNOWN = """#!/bin/bash
case "$2" in lib.+) echo "Package: libx" ;; gone) exit 100 ;; *) echo "Package: $2"; yes other | head -100000 ;; esac
"""


@pytest.mark.docker
@pytest.mark.parametrize(
    ("wished", "installed", "noted"),
    [
        (("fine", "gone", "lib.+"), ["fine"], []),
        (("bad", "fine"), ["fine"], ["bad"]),
        (("huge", "fine"), ["fine"], ["huge"]),
        (("big1", "big2", "big3", "big4", "big5"), ["big1", "big2", "big3", "big4", "big5"], []),
    ],
)
def test_packages_that_a_tree_wishes_for_are_names_that_can_be_had_and_no_load(
    engine: Any, tree: Callable[..., GitTree], wished: tuple[str, ...], installed: list[str], noted: list[str]
) -> None:
    """apt is one of the test's own, since there is no network; a pattern would bring thousands of packages."""
    files = {"apt-get": APT.encode(), "apt-cache": KNOWN.encode()}
    places = " ".join(f"{BUILD}/{name}" for name in files)
    with BuildContainer(
        engine,
        BASE,
        network="none",
        deadline=time.monotonic() + 60,
        files=files,
        variables={"WISHED_PACKAGES": " ".join(wished), "PACKAGES": ""},
    ) as box:
        box.run("apt", f"cp {places} /usr/local/sbin/; chmod 755 /usr/local/sbin/apt-*", root=True)
        printed = box.run("prepare", PREPARE, root=True)
        assert [line.partition(": ")[2] for line in printed.splitlines() if line.startswith("asked: ")] == installed
        assert box.read(f"{BUILD}/notes").split() == [f"without:debian:{name}" for name in noted]


@pytest.mark.docker
def test_a_failures_log_holds_no_secret(engine: Any, tree: Callable[..., GitTree]) -> None:
    some = tree(deps="secret\n", source="x\n")
    plan = planned(some, build=({"name": "dependencies", "run": ('echo "ERROR: cannot reach $INDEX"; exit 1',)},))
    with pytest.raises(BuildFailed) as caught:
        build_image(engine, plan, some, SETTINGS)
    assert SECRET not in f"{caught.value} {caught.value.lines} {caught.value.log}"
    assert "cannot reach" in caught.value.log


@pytest.mark.docker
def test_the_steps_find_the_tree_as_git_has_it_and_own_it(engine: Any, tree: Callable[..., GitTree]) -> None:
    some = tree(deps="owned\n", source="x\n")
    script = (
        "./folder/below/run | grep -q ran; touch folder/below/new folder/new; rm folder/below/new folder/new; "
        '[ -z "$(git status --porcelain)" ]; [ $(git log --oneline | wc -l) = 1 ]; [ "$(id -un)" = agent ]; '
        "cp deps /opt/env/"
    )
    build_image(engine, planned(some, build=({"name": "dependencies", "run": (script,)},)), some, SETTINGS)


@pytest.mark.docker
def test_prune_removes_images_of_ours_and_spares_those_to_be_kept(engine: Any, tree: Callable[..., GitTree]) -> None:
    names = []
    for number in range(2):
        some = tree(deps=f"prune {number}\n", source="x\n")
        names.append(build_image(engine, planned(some), some, SETTINGS).name)
    old = datetime(2001, 1, 1, tzinfo=UTC)
    assert prune_images(engine, repository=REPOSITORY, before=old) == []
    gone = [image.name for image in prune_images(engine, repository=REPOSITORY, keep={names[0]})]
    assert names[1] in gone and names[0] not in gone
    remaining = {image.name: image for image in list_images(engine)}
    assert names[0] in remaining and names[1] not in remaining
    assert 0 < (remaining[names[0]].own_bytes or 0) < remaining[names[0]].size_bytes / 10
    assert find_image(engine, BASE) is None, "the base image is not one of those"
    assert engine.images.get(BASE)


@pytest.mark.docker
def test_removing_what_is_not_there_is_no_failure(engine: Any) -> None:
    remove_image(engine, "prchain/prchain-test--none:0")


@pytest.mark.docker
def test_a_base_image_that_cannot_be_had_is_told_with_the_way_out(engine: Any, tree: Callable[..., GitTree]) -> None:
    some = tree(deps="base\n", source="x\n")
    settings = replace(SETTINGS, base_image="localhost:1/prchain-test-no-such-base:1")
    with pytest.raises(ImageMissing, match="prchain environments base"):
        build_image(engine, planned(some), some, settings)


def test_an_engine_that_is_not_there_is_told_in_one_line() -> None:
    with pytest.raises(EngineUnavailable, match="does not answer") as caught:
        connect("tcp://127.0.0.1:1")
    assert "\n" not in str(caught.value)
