"""Places that an engine keeps: which go first, what a sandbox that begins with one holds, and who can change it."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import docker.errors
import pytest

from environments.backends import BACKENDS
from environments.backends.docker import DockerBackend
from environments.checkouts.checkout import start_commit
from environments.images.images import list_images
from environments.images.stage_image import StageImage
from environments.sandboxes import leftovers
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.engine import IMAGE_LABEL, connect
from environments.sandboxes.kept_layers import _places
from environments.sandboxes.kept_places import (
    PLACE,
    PLACE_BASE,
    PLACES,
    bound_places,
    drop_places,
    find_place,
    place_name,
)
from environments.sandboxes.own_layers import area, engine_layers
from environments.sandboxes.sandbox import Begin, Sandbox, SandboxConfig
from environments.sandboxes.upper_layers import reads_attributes
from environments.workplace import Workplace
from prchain.core.git.trees import FILE, TreeEntry, TreeStore
from tests.environments.kept_index import check_edits_are_seen, check_index_is_current
from tests.environments.stageworld import RECIPE, StageWorld, stage_world

IMAGE = os.environ.get("PRCHAIN_TEST_IMAGE", "prchain-base:bookworm")
OLD = int(time.time()) - 5_000


class Engine:
    """The part of an engine's client that places need, over images in memory."""

    def __init__(self) -> None:
        self.api = self
        self.held: dict[str, dict[str, Any]] = {}
        self.in_use: set[str] = set()

    def add(
        self, name: str, size: int, used: float = OLD, *, below: str = "", tag: bool = True, labels: Any = None
    ) -> str:
        """An image; with `below` it is the place of that name."""
        mine = {PLACE: name, PLACE_BASE: below} if below else {}
        when = datetime.fromtimestamp(used, UTC).isoformat()
        identity = f"sha256:{name}-{len(self.held)}"
        self.held[identity] = {
            "Id": identity,
            "Created": int(used),
            "Size": size,
            "Labels": {**mine, **(labels or {})},
            "RepoTags": [f"{PLACES}:{name}" if below else name] if tag else None,
            "Metadata": {"LastTagTime": when},
        }
        return identity

    def images(self, *, all: bool = False, quiet: bool = False) -> list[Any]:
        assert all is not quiet
        return [] if quiet else list(self.held.values())

    def inspect_image(self, name: str) -> dict[str, Any]:
        for image in self.held.values():
            if name in (image["RepoTags"] or ()):
                return {**image, "Config": {"Labels": image["Labels"]}, "Created": "2020-01-01T00:00:00Z"}
        raise docker.errors.ImageNotFound("no such image")

    def tag(self, image: str, repository: str, tag: str, *, force: bool) -> None:
        assert force and f"{repository}:{tag}" in self.held[image]["RepoTags"]
        self.held[image]["Metadata"]["LastTagTime"] = datetime.now(UTC).isoformat()

    def remove_image(self, image: str, *, noprune: bool) -> None:
        assert noprune
        if image in self.in_use:
            raise docker.errors.APIError("conflict: image is being used")
        if image not in self.held:
            raise docker.errors.ImageNotFound("no such image")
        del self.held[image]

    @property
    def left(self) -> set[str]:
        return {image["Labels"][PLACE] for image in self.held.values() if PLACE in image["Labels"]}


@dataclass(frozen=True)
class ThreePlaces:
    engine: Engine
    base: str


@pytest.fixture
def three() -> ThreePlaces:
    """Places a, b and c of 10 bytes each on an image of 100; b was not used for the longest time."""
    engine = Engine()
    base = engine.add("base", 100)
    for name, used in (("a", 2), ("b", 1), ("c", 3)):
        engine.add(name, 110, OLD + used, below=base)
    return ThreePlaces(engine, base)


class TestBound:
    def test_what_was_longest_not_used_goes_first(self, three: ThreePlaces) -> None:
        assert bound_places(three.engine, 30) == []
        assert bound_places(three.engine, 20) == ["b"]
        assert bound_places(three.engine, 10) == ["a"]

    def test_a_use_counts(self, three: ThreePlaces) -> None:
        assert find_place(three.engine, "b") is not None
        assert bound_places(three.engine, 10) == ["a", "c"]

    def test_a_name_that_nobody_kept_is_no_place(self, three: ThreePlaces) -> None:
        assert find_place(three.engine, "d") is None

    def test_places_of_images_that_are_gone_go(self, three: ThreePlaces) -> None:
        del three.engine.held[three.base]
        assert set(bound_places(three.engine, 1000)) == {"a", "b", "c"}

    def test_what_was_cut_off_while_it_was_made_goes_and_what_is_being_made_stays(self, three: ThreePlaces) -> None:
        three.engine.add("lost", 110, below=three.base, tag=False)
        three.engine.add("new", 110, time.time(), below=three.base, tag=False)
        assert bound_places(three.engine, 1000) == ["lost"]

    def test_one_in_use_stays_and_the_next_run_removes_it(self, three: ThreePlaces) -> None:
        (used,) = (key for key, image in three.engine.held.items() if image["Labels"].get(PLACE) == "b")
        three.engine.in_use.add(used)
        assert bound_places(three.engine, 20) == []
        three.engine.in_use.clear()
        assert bound_places(three.engine, 20) == ["b"]

    def test_both_images_of_a_place_that_two_processes_made_go(self, three: ThreePlaces) -> None:
        three.engine.add("a", 111, OLD + 5, below=three.base)
        assert bound_places(three.engine, 31) == []
        assert drop_places(three.engine) == {"a": True, "b": True, "c": True}
        assert three.engine.left == set()

    def test_those_of_one_image_go_with_it(self, three: ThreePlaces) -> None:
        other = three.engine.add("other", 100)
        three.engine.add("d", 110, below=other)
        assert drop_places(three.engine, other) == {"d": True}

    def test_snapshots_and_images_that_inherit_the_label_are_no_places(self, three: ThreePlaces) -> None:
        three.engine.add("x", 110, below=three.base, labels={leftovers.SNAPSHOT: "snapshot-1"})
        three.engine.add("y", 110, below=three.base, labels={IMAGE_LABEL: "{}"})
        assert drop_places(three.engine).keys() == {"a", "b", "c"}


def test_a_name_says_all_that_decides_the_content() -> None:
    names = {place_name(*args) for args in (("i", "u", "k"), ("j", "u", "k"), ("i", "v", "k"), ("i", "u", "l"))}
    assert len(names) == 4


@dataclass(frozen=True)
class KeptWorld:
    """A stage's world with an image of its own in the engine."""

    world: StageWorld
    client: Any
    provided: StageImage

    @property
    def trees(self) -> TreeStore:
        return self.world.trees()

    @property
    def base(self) -> str:
        return self.world.chain.stages[0].base

    def workplace(self, most: int = 1 << 40) -> Workplace:
        docker_backend = BACKENDS["docker"]
        assert isinstance(docker_backend, DockerBackend)
        backend = replace(docker_backend, client=self.client, most_kept=most)
        return Workplace(self.provided, self.trees, backend=backend, test_timeout=60, base=self.base)

    def begun(self, sandbox: Sandbox) -> Begin:
        assert isinstance(sandbox, DockerSandbox)
        return sandbox._began

    def edited(self, **files: str) -> str:
        changes: dict[bytes, TreeEntry | None] = {
            name.replace("__", "/").encode(): TreeEntry(FILE, self.trees.write_blob(text.encode()))
            for name, text in files.items()
        }
        return self.trees.edit(self.trees.tree_of(self.base), changes)

    @property
    def kept(self) -> set[str]:
        """Places: of images, and of layers beside the engine's."""
        below = self.client.images.get(self.provided.image).id
        found = self.client.api.images(all=True, filters={"label": f"{PLACE_BASE}={below}"})
        images = {tag for image in found for tag in image["RepoTags"] or () if tag.startswith(PLACES)}
        layers_at = engine_layers(self.client)
        layers = _places(layers_at) if layers_at else ()
        return images | {str(layer.folder) for layer in layers if layer.below == below}

    def is_kept_as(self, way: str) -> bool:
        return all(place.startswith(PLACES) is (way == "image") for place in self.kept)


WAYS = ["layer", "image"]
"""In which places are kept."""


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """An engine's layers cannot be read, for ``image``."""
    found = str(getattr(request, "param", WAYS[0]))
    if found == "image":
        monkeypatch.setattr("environments.sandboxes.docker.reads_attributes", lambda _: False)
    elif not reads_attributes("trusted."):
        pytest.skip("only root reads and writes an engine's layers")
    return found


@pytest.fixture
def kept_world(tmp_path: Path, way: str) -> Iterator[KeptWorld]:
    recipe = RECIPE + "test = 'python3 {tools}/python_reporter.py'\n"
    with stage_world(tmp_path, recipe=recipe) as world, contextlib.closing(connect()) as client:
        name = f"prchain-test/kept-{os.getpid()}:1"
        labels = [f"LABEL {IMAGE_LABEL}=x", f"LABEL prchain.test={os.getpid()}", "USER agent", "WORKDIR /testbed"]
        container = client.containers.create(IMAGE, command=["true"])
        container.commit(repository=name.rpartition(":")[0], tag="1", changes=labels)
        container.remove()
        try:
            yield KeptWorld(world, client, StageImage(world.workplace().provided.plan, name))
        finally:
            drop_places(client, client.images.get(name).id)
            client.images.remove(name, force=True)


_LOOK = "git status --porcelain --untracked-files=all; git rev-parse HEAD^{tree}; cat made/by-refresh; git fsck 2>&1"


@pytest.mark.docker
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_the_next_sandbox_begins_with_the_base_and_with_nothing_of_what_was_done_there(
    kept_world: KeptWorld, way: str
) -> None:
    workplace, trees = kept_world.workplace(), kept_world.trees
    expected = [trees.tree_of(kept_world.base), "fresh"]
    for turn, begun in enumerate((Begin.EMPTY, Begin.KEPT, Begin.KEPT)):
        with workplace.sandbox() as sandbox:
            assert kept_world.begun(sandbox) is begun
            workplace.place(sandbox, kept_world.base)
            assert sandbox.exec(_LOOK).text.split() == expected
            assert sandbox.exec("ls -a . /tmp /var/tmp; git stash list; git config --list").text.count("hostile") == 0
            # An agent who wants to reach those that come after it.
            hostile = (
                "echo hostile > .git/hooks/x; mkdir -p .git/hooks; echo hostile > README.md; touch -d @0 README.md; "
                "git config user.name hostile; git add -A; git commit -qm hostile; rm -rf tests; ln -s /etc tests; "
                "echo hostile > /tmp/hostile; echo hostile > made/by-refresh; git update-ref refs/heads/hostile HEAD"
            )
            sandbox.exec(hostile)
            if turn == 2:  # the next stage in the same sandbox does not count on what it began with
                workplace.place(sandbox, kept_world.base)
                assert sandbox.exec(_LOOK).text.split() == expected
    with workplace.sandbox() as sandbox:
        workplace.place(sandbox, kept_world.base)
        others = "--exclude-dir=proc --exclude-dir=sys --exclude-dir=usr"
        assert sandbox.exec(f"grep -rlsF -e hostile -e {kept_world.world.folder} {others} /").text == ""
        own = sandbox.exec("git cat-file --batch-all-objects --batch-check='%(objectname)'").text.split()
    with trees.stream("rev-list", "--objects", start_commit(trees, kept_world.base)) as output:
        assert sorted(own) == sorted(line.split()[0].decode() for line in output)
    assert len(kept_world.kept) == 1 and kept_world.is_kept_as(way)
    assert not any(PLACES in image.name for image in list_images(kept_world.client))


@pytest.mark.docker
@pytest.mark.parametrize("check", [check_index_is_current, check_edits_are_seen])
def test_the_second_sandbox_begins_with_a_repository_whose_index_is_current(
    kept_world: KeptWorld, check: Callable[[Sandbox], None]
) -> None:
    workplace = kept_world.workplace()
    for _ in range(2):
        with workplace.sandbox() as sandbox:
            workplace.place(sandbox, kept_world.base)
            check(sandbox)
    assert len(kept_world.kept) == 1


@pytest.mark.docker
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_a_full_disk_keeps_no_base_and_ends_no_stage(kept_world: KeptWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **named: object) -> None:
        raise docker.errors.APIError("write /layer.tar: no space left on device")

    def full_here(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("environments.sandboxes.docker.keep_place", full)
    monkeypatch.setattr("environments.sandboxes.docker.keep_layer", full_here)
    workplace, trees = kept_world.workplace(), kept_world.trees
    for _ in range(2):
        with workplace.sandbox() as sandbox:
            assert kept_world.begun(sandbox) is Begin.EMPTY
            workplace.place(sandbox, kept_world.base)
            assert sandbox.exec(_LOOK).text.split() == [trees.tree_of(kept_world.base), "fresh"]
    assert kept_world.kept == set()


@pytest.mark.docker
def test_another_tree_comes_from_the_base_with_its_own_repository_alone(kept_world: KeptWorld) -> None:
    workplace, trees = kept_world.workplace(), kept_world.trees
    tree = kept_world.edited(**{"README.md": "an agent's\n"})
    old = trees.entries(trees.tree_of(kept_world.base))[b"README.md"].blob
    for _ in range(2):
        with workplace.sandbox() as sandbox:
            workplace.place(sandbox, tree)
            assert sandbox.exec(_LOOK).text.split() == [trees.tree_of(tree), "fresh"]
            assert sandbox.exec(f"git cat-file -e {old}").exit_code != 0
            assert sandbox.exec("cat README.md; git log --format=%s; git reflog").text == (
                "an agent's\nStart of the stage\n"
            )
            left = workplace.extract(sandbox, start_tree=tree, rules_from=kept_world.base)
            assert left.tree == trees.tree_of(tree)
    # What is made of an agent's tree is never kept.
    with workplace.sandbox() as sandbox:
        workplace.place(sandbox, kept_world.base)
        assert sandbox.exec("cat README.md").text == "# till\n"


@pytest.mark.docker
def test_processes_have_no_capability_more_and_layers_end(kept_world: KeptWorld) -> None:
    workplace = kept_world.workplace()
    told = []
    for _ in range(2):
        with workplace.sandbox() as sandbox:
            workplace.place(sandbox, kept_world.base)
            told.append(sandbox.exec("grep -E 'Cap|NoNewPrivs|Seccomp:' /proc/self/status; id").text)
            for _ in range(3):
                sandbox.restore(sandbox.snapshot())
            assert sandbox.exec("git status --porcelain").text == ""
    assert told[0] == told[1]


@pytest.mark.docker
def test_a_bound_of_nothing_keeps_nothing_and_what_is_kept_goes_with_its_image(kept_world: KeptWorld) -> None:
    for most, count in ((0, 0), (1 << 40, 1)):
        workplace = kept_world.workplace(most)
        with workplace.sandbox() as sandbox:
            workplace.place(sandbox, kept_world.base)
            assert kept_world.begun(sandbox) is Begin.NOTHING
        assert len(kept_world.kept) == count
    below = kept_world.client.images.get(kept_world.provided.image).id
    assert all(drop_places(kept_world.client, below).values())
    assert kept_world.kept == set()


_KILLED = """
import os, signal, sys
from environments.sandboxes import docker, kept_places
from environments.sandboxes.docker import DockerSandbox
from environments.sandboxes.sandbox import SandboxConfig

when, way = sys.argv[2:]
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
if way == "image":
    docker.reads_attributes = lambda _: False
if when == "before the bound":
    docker.bound_places = docker.bound_layers = die
if when == "while it is made":
    docker.keep_place = docker.keep_layer = die
sandbox = DockerSandbox(SandboxConfig(sys.argv[1], place="killed"), most_kept=1 << 40)
sandbox.start()
print(sandbox.name, flush=True)
if when == "before":
    die()
sandbox.keep_place()
die()
"""


@pytest.mark.docker
@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize("when", ["before", "while it is made", "before the bound", "after"])
def test_what_a_killed_process_kept_is_whole_or_not_there_and_its_container_is_found(
    kept_world: KeptWorld, when: str, way: str
) -> None:
    image = str(kept_world.provided.image)
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, image, when, way], capture_output=True, text=True, check=False, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    found = [item for item in leftovers.find(kept_world.client) if item.name == killed.stdout.strip()]
    assert [item.kind for item in found] == ["container"] and leftovers.remove(kept_world.client, found) == []
    was_kept = when in {"before the bound", "after"}
    assert len(kept_world.kept) == was_kept and kept_world.is_kept_as(way)
    layers = leftovers.clear_local(area(engine_layers(kept_world.client) or Path("/none")))
    assert list(layers.values()) == [True] * (when == "while it is made" and way == "layer")
    config = SandboxConfig(image, place="killed")
    with DockerSandbox(config, client=kept_world.client, most_kept=1 << 40) as sandbox:
        assert sandbox.take_place() is (Begin.KEPT if was_kept else Begin.EMPTY)
        assert sandbox.take_place() is Begin.NOTHING
