"""Environments of a chain's image: what differs between two systems, packed, makes the one of the other."""

from __future__ import annotations

import gzip
import io
import os
import stat
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.errors import ImageError, TestsUnproved, UsageError
from tests.trajectories.harborworld import stage_world
from trajectories.export.tasks.harbor import material as materials
from trajectories.export.tasks.harbor.chain_image import (
    ChainImage,
    archive_of,
    chain_image,
    difference,
    same_system,
)
from trajectories.export.tasks.harbor.image import ImageFacts, TaskImage
from trajectories.export.tasks.harbor.inside.environment import (
    FILE,
    FOLDER,
    LINK,
    Plan,
    SystemEntry,
    listed,
    pack,
    switch,
)
from trajectories.export.tasks.harbor.inside.environment import main as environment
from trajectories.export.tasks.harbor.inside.grade import switch_environment
from trajectories.export.tasks.harbor.material import ChainMaterial

WORKDIR = "/testbed"
System = dict[str, str | tuple[int, str] | None]
"""Files by their contents, or modes and contents; links, whose texts begin with ``->``; folders, which are None."""

FIRST: System = {
    "/opt/env/bin/tool": (0o755, "tool 1"),
    "/opt/env/lib/same.py": "same",
    "/opt/env/lib/older/module.py": "older",
    "/opt/env/lib/older/deep/er.py": "older",
    "/opt/env/python": "-> /opt/python/3.8",
    "/opt/python/3.8/bin/python": (0o755, "python 3.8"),
    "/opt/file-or-folder": "a file",
    "/testbed/code.py": "stage 1",
}
SECOND: System = {
    "/opt/env/bin/tool": (0o4755, "tool 2"),
    "/opt/env/bin/new": (0o600, "new\n{}\n"),
    "/opt/env/lib/same.py": "same",
    "/opt/env/lib/newer/module.py": "newer",
    "/opt/env/lib/empty": None,
    "/opt/env/python": "-> /opt/python/3.12",
    "/opt/python/3.12/bin/python": (0o755, "python 3.12"),
    "/opt/file-or-folder/inner": "a folder",
    "/testbed/code.py": "THE SECOND REFERENCE",
}


def laid(place: Path, system: System) -> Path:
    for path, content in system.items():
        full = Path(f"{place}{path}")
        full.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            full.mkdir()
        elif isinstance(content, str) and content.startswith("->"):
            full.symlink_to(content[3:])
        else:
            mode, text = content if isinstance(content, tuple) else (0o644, content)
            full.write_text(text)
            full.chmod(mode)
    return place


def known(place: Path) -> dict[str, SystemEntry]:
    return {it.path: it for it in listed(WORKDIR, str(place))}


def archives(places: Sequence[Path]) -> tuple[Plan, list[bytes]]:
    plan = difference([known(place) for place in places]).plan
    packed = []
    for place in places:
        out = io.BytesIO()
        pack(plan, out, str(place))
        packed.append(out.getvalue())
    return plan, packed


def without_folders_time(entries: dict[str, SystemEntry]) -> dict[str, SystemEntry]:
    return {path: it if it.kind == FILE else replace(it, time=0) for path, it in entries.items()}


def test_one_system_becomes_the_other_and_back(tmp_path: Path) -> None:
    first, second = laid(tmp_path / "1", FIRST), laid(tmp_path / "2", SECOND)
    os.utime(second / "opt/env/lib/same.py", ns=(7, 7_000_000_007))
    wanted = [without_folders_time(known(place)) for place in (first, second)]
    _, packed = archives([first, second])
    for number in (1, 1, 0, 1):
        assert switch(io.BytesIO(packed[number]), str(first)) == []
        assert without_folders_time(known(first)) == wanted[number]
    assert (first / "testbed/code.py").read_text() == "stage 1"
    assert stat.S_IMODE((first / "opt/env/bin/tool").stat().st_mode) == 0o4755


def test_nothing_of_the_repositorys_folder_is_compared_or_packed(tmp_path: Path) -> None:
    plan, packed = archives([laid(tmp_path / "1", FIRST), laid(tmp_path / "2", SECOND)])
    assert not [path for path in (*plan.paths, *plan.times) if path.startswith(WORKDIR)]
    assert all(b"testbed" not in gzip.decompress(it) and b"REFERENCE" not in gzip.decompress(it) for it in packed)


def test_homes_and_what_is_no_part_of_an_image_are_left_alone(tmp_path: Path) -> None:
    own: System = {"/home/agent/.local/bin/agent": "own", "/root/x": "own", "/tmp/x": "own", "/etc/hosts": "own"}
    first, second = laid(tmp_path / "1", {**FIRST, **own}), laid(tmp_path / "2", {**SECOND, "/etc/x": None})
    assert not [path for path in known(first) if path.startswith(("/home", "/root", "/tmp", "/etc/h"))]
    assert switch(io.BytesIO(archives([first, second])[1][1]), str(first)) == []
    assert all(Path(f"{first}{path}").read_text() == "own" for path in own)


def test_an_archive_has_the_same_bytes_for_the_same_files(tmp_path: Path) -> None:
    first, second = laid(tmp_path / "1", FIRST), laid(tmp_path / "2", SECOND)
    assert archives([first, second]) == archives([first, second])


def test_what_an_agent_left_in_the_way_goes_and_no_link_of_its_is_followed(tmp_path: Path) -> None:
    first, second = laid(tmp_path / "1", FIRST), laid(tmp_path / "2", SECOND)
    wanted = without_folders_time(known(second))
    _, packed = archives([first, second])
    outside = laid(tmp_path / "outside", {"/bin/tool": "outside", "/module.py": "outside"})
    (first / "opt/env/lib/older/mine.py").write_text("mine")
    (first / "opt/env/lib/newer").symlink_to(outside)
    (first / "opt/env/bin/tool").unlink()
    (first / "opt/env/bin/tool").mkdir()
    (first / "opt/env/bin/tool/inner").write_text("mine")
    (first / "opt/env/bin").rename(first / "opt/env/moved")
    (first / "opt/env/bin").symlink_to(outside / "bin")
    (first / "opt/python/3.12").symlink_to(outside)
    (first / "opt/python/3.8").chmod(0o700)
    (first / "opt/env/lib/kept.py").write_text("mine")
    assert switch(io.BytesIO(packed[1]), str(first)) == []
    found = without_folders_time(known(first))
    assert {path for path in found if path not in wanted} == {
        "/opt/env/lib/kept.py",
        "/opt/env/moved",
        "/opt/env/moved/tool",
        "/opt/env/moved/tool/inner",
    }
    assert {path: found[path] for path in wanted} == wanted
    assert (outside / "bin/tool").read_text() == (outside / "module.py").read_text() == "outside"
    assert sorted(it.name for it in outside.rglob("*")) == ["bin", "module.py", "tool"]


def test_what_cannot_be_made_is_told_and_the_rest_is_made(tmp_path: Path) -> None:
    first, second = laid(tmp_path / "1", FIRST), laid(tmp_path / "2", SECOND)
    plan, _ = archives([first, second])
    partly = replace(plan, paths=tuple(it for it in plan.paths if it != "/opt/env/lib/newer"))
    out = io.BytesIO()
    pack(partly, out, str(second))
    (first / "opt/env/lib/newer").write_text("in the way")
    (failed,) = switch(io.BytesIO(out.getvalue()), str(first))
    assert failed.startswith("/opt/env/lib/newer/module.py: ")
    assert (first / "opt/env/bin/new").read_text() == "new\n{}\n"
    with pytest.raises(EOFError):
        switch(io.BytesIO(out.getvalue()[:-40]), str(first))


names = st.sampled_from(["a", "b", "a-b", "ä", "c\udcff"])
contents = st.one_of(
    st.none(),
    st.sampled_from(["-> a", "-> /b"]),
    st.tuples(st.sampled_from([0o644, 0o755, 0o600]), st.text(alphabet="x\n{}[]", max_size=9)),
)
systems = st.dictionaries(st.lists(names, min_size=1, max_size=3).map(lambda it: "/" + "/".join(it)), contents)


def leaves(system: Any) -> System:
    """Without what would have to be a file and a folder at once."""
    return {
        path: it
        for path, it in sorted(system.items())
        if it is None or not any(other.startswith(f"{path}/") for other in system)
        if not any(path.startswith(f"{other}/") and system[other] is not None for other in system)
    }


@settings(max_examples=60, deadline=None)
@given(st.lists(systems.map(leaves), min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_any_systems_become_each_other_in_any_order(drawn: list[System], dice: Random) -> None:
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, str(number)) for number in range(len(drawn))]
        for place, system in zip(places, drawn, strict=True):
            place.mkdir()
            for path in sorted(system, key=len):
                if not Path(f"{place}{path}").exists():
                    laid(place, {path: system[path]})
        wanted = [without_folders_time(known(place)) for place in places]
        _, packed = archives(places)
        for _ in range(3):
            number = dice.randrange(len(places))
            assert switch(io.BytesIO(packed[number]), str(places[0])) == []
            assert without_folders_time(known(places[0])) == wanted[number]


def test_the_script_lists_packs_and_switches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = laid(tmp_path / "own", {"/a": "before"})
    Path("plan").write_text(Plan((f"{own}/a",)).text())
    assert environment("pack", "plan", "1.gz") == 0
    assert stat.S_IMODE(Path("1.gz").stat().st_mode) == 0o600
    (own / "a").write_text("after")
    assert environment("switch", "1.gz") == 0 and (own / "a").read_text() == "before"


def entry(path: str, kind: str = FILE, what: str = "", **more: Any) -> SystemEntry:
    return SystemEntry(path, kind, what=what, **more)


def of(*entries: SystemEntry) -> dict[str, SystemEntry]:
    return {it.path: it for it in entries}


def test_owners_rights_and_capabilities_differ_and_times_alone_are_told_alone() -> None:
    plain = entry("/a", what="1", size=5, time=1)
    for other in (replace(plain, uid=7), replace(plain, mode=1), replace(plain, capability="00"), entry("/a", LINK)):
        found = difference([of(plain), of(other)])
        assert found.plan.paths == ("/a",) and found.plan.times == ()
    found = difference([of(plain), of(replace(plain, time=2))])
    assert found.plan == Plan((), (), ("/a",)) and found.sizes == (0, 0)
    found = difference([of(entry("/f", FOLDER), replace(plain, path="/f/a")), of(entry("/f", FOLDER))])
    assert found.plan == Plan(("/f", "/f/a")) and found.sizes == (5, 0)


@pytest.mark.parametrize(
    ("path", "fits"),
    [
        ("/usr/bin/python3.11", False),
        ("/usr/bin/git", False),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", False),
        ("/etc/debian_version", False),
        ("/usr/bin/python3.9", True),
        ("/opt/env/bin/git", True),
    ],
)
def test_other_systems_are_not_switched(path: str, fits: bool) -> None:
    listing = of(entry("/usr/bin/python3", LINK, "python3.11"))
    assert same_system(Plan((path,)), listing, WORKDIR) == fits


def test_no_folder_of_the_repository_or_of_the_archives_begins_anew() -> None:
    assert same_system(Plan(("/opt", "/home/x"), ("/home/x",)), {}, "/home/y/repository")
    assert not same_system(Plan(("/opt",), ("/opt",)), {}, WORKDIR)
    assert not same_system(Plan(("/home/y",), ("/home/y",)), {}, "/home/y/repository")


FACTS = ImageFacts(
    inputs="0" * 64, user="agent", environment={}, outputs=(), watched=(), fingerprint={"files": "1"}, git=(2, 39)
)


def test_a_container_is_switched_where_the_next_stage_has_another_environment() -> None:
    two, three = archive_of(2), archive_of(3)
    image = ChainImage("name", (FACTS,) * 5, ("", two, two, three, ""))
    assert image.switches() == (two, "", three, archive_of(1), "")
    assert ChainImage.of_one(TaskImage("name", FACTS), 3).switches() == ("", "", "")


class Engine:
    """An engine with images of these descriptions, and no containers."""

    def __init__(self, **configs: dict[str, Any]) -> None:
        self.images = self
        self.configs = configs

    def get(self, name: str) -> Any:
        return SimpleNamespace(id=name, attrs={"Config": self.configs[name]}, labels={})


def workplace(image: str, workdir: str = WORKDIR) -> Any:
    return SimpleNamespace(provided=SimpleNamespace(image=image, plan=SimpleNamespace(workdir=workdir)))


@pytest.mark.parametrize(
    ("config", "workdir", "user", "words"),
    [
        ({"Env": ["A=1"]}, "/elsewhere", "agent", "in different folders"),
        ({"Env": ["A=2"]}, WORKDIR, "agent", "different variables or users"),
        ({"Env": ["A=1"], "User": "other"}, WORKDIR, "agent", "different variables or users"),
        ({"Env": ["A=1"]}, WORKDIR, "root", "an agent that is root"),
        ({"Env": ["A=1"]}, WORKDIR, "0:0", "an agent that is root"),
    ],
)
def test_what_no_file_can_switch_is_refused_by_name(config: Any, workdir: str, user: str, words: str) -> None:
    engine = Engine(one={"Env": ["A=1"]}, two=config)
    images = [TaskImage("task", replace(FACTS, user=user))] * 2
    with pytest.raises(UsageError, match=words):
        chain_image(engine, "a/b", "c", [workplace("one"), workplace("two", workdir)], images)


def test_a_verifiers_environment_is_switched_or_the_image_is_at_fault(tmp_path: Path) -> None:
    said = stage_world(tmp_path).said
    switch_environment(said)
    own = laid(tmp_path / "own", {"/a": "of the stage"})
    with (tmp_path / "2.gz").open("xb") as archive:
        pack(Plan((f"{own}/a",)), archive)
    (own / "a").write_text("of the first stage")
    switch_environment(replace(said, switched_to=str(tmp_path / "2.gz")))
    assert (own / "a").read_text() == "of the stage"
    with pytest.raises(ImageError, match="does not hold the stage's environment"):
        switch_environment(replace(said, switched_to=str(tmp_path / "3.gz")))
    (own / "a").unlink()
    own.rmdir()
    with pytest.raises(ImageError, match="cannot be made"):
        switch_environment(replace(said, switched_to=str(tmp_path / "2.gz")))


class MadeMaterial(ChainMaterial):
    """A chain whose stages have images of these names, without an engine."""

    def workplace(self, stage: Any) -> Any:
        return workplace(stage.image)

    def image(self, stage: Any) -> TaskImage:
        return TaskImage(f"task-{stage.position}", replace(FACTS, git=stage.git))

    def proved(self, stage: Any) -> Any:
        if stage.image == "unproved":
            raise TestsUnproved("its tests are not proved")


def material(*images: str, git: tuple[int, int] = (2, 39)) -> ChainMaterial:
    stages = [SimpleNamespace(position=at, image=image, git=git) for at, image in enumerate(images, 1)]
    task: Any = SimpleNamespace(stages=stages, chain=SimpleNamespace(repository="a/b", id="c"))
    backend: Any = SimpleNamespace(client=None)
    nothing: Any = None
    return MadeMaterial(task, Path(), Path(), nothing, backend)


def test_stages_of_one_environment_share_the_first_ones_image() -> None:
    image = material("x", "x").shared_image
    assert image.name == "task-1" and image.archives == ("", "") and len(image.stages) == 2


def test_an_image_of_several_environments_is_made_of_all_stages(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    made = ChainImage("made", (), ())

    def make(*values: Any) -> ChainImage:
        asked.append(values)
        return made

    monkeypatch.setattr(materials, "chain_image", make)
    assert material("x", "y", "x").shared_image is made
    ((_, repository, chain, workplaces, images),) = asked
    assert (repository, chain) == ("a/b", "c")
    assert [it.provided.image for it in workplaces] == ["x", "y", "x"]
    assert [it.name for it in images] == ["task-1", "task-2", "task-3"]


@pytest.mark.parametrize(
    ("images", "git", "words"),
    [
        (("x",), (2, 39), "the chain has one stage"),
        (("x", "y"), (2, 30), "a merge between steps needs 2.38"),
        (("x", "unproved"), (2, 39), "not proved"),
    ],
)
def test_no_image_is_made_for_a_chain_that_cannot_have_steps(
    images: tuple[str, ...], git: tuple[int, int], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(materials, "chain_image", None)
    with pytest.raises((UsageError, TestsUnproved), match=words):
        _ = material(*images, git=git).shared_image
