"""Interpreters of the time: what a project names, what its day knew, what is offered, and how one is copied."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from environments.images import registry
from environments.images.dated_indexes import exceptions, uv_configuration
from environments.images.image_settings import BuildSettings
from environments.images.images import read_notes
from environments.images.inside import forget_tree, wanted
from environments.images.interpreters import layers, offered
from environments.images.interpreters.copies import write_tar
from environments.images.interpreters.elf import library_path, with_library_path
from environments.images.interpreters.host_pythons import HostPython, host_pythons
from environments.images.interpreters.offered import BASE, HOST, OTHER_BASE, REGISTRY, Interpreters
from environments.images.wanted_python import can_come, choose_python, era_of, named_pythons, newest_at
from environments.report import interpreter_rows, print_interpreters
from environments.sandboxes.engine import IMAGE_LABEL, LAYER_LABEL
from prchain.core.errors import BuildFailed, EngineUnavailable, ImageMissing
from tests.growth import assert_linear

ALL = frozenset((3, minor) for minor in range(6, 14))
BOOKWORM = (3, 11)


def day(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}T12:00:00+00:00")


@pytest.mark.parametrize(
    ("text", "newest"),
    [
        ("2015-03-01", (3, 6)),
        ("2018-11-30", (3, 6)),
        ("2018-12-01", (3, 7)),
        ("2020-03-31", (3, 7)),
        ("2020-04-01", (3, 8)),
        ("2022-03-31", (3, 9)),
        ("2022-04-01", (3, 10)),
        ("2024-08-09", (3, 12)),
    ],
)
def test_the_newest_python_of_a_day_came_half_a_year_before_it(text: str, newest: tuple[int, int]) -> None:
    assert newest_at(day(text)) == newest
    assert era_of(newest) <= day(text) or newest == (3, 6)


TEXTS = {
    "setup.py": "classifiers=['Programming Language :: Python :: 3.6', 'Programming Language :: Python :: 3.7',\n"
    " 'Programming Language :: Python :: 3', 'Programming Language :: Python :: 2.7']",
    ".travis.yml": "python:\n  - '2.7'\n  - '3.8'\n  - 3.10\nenv: A=3.99.1\n",
    ".github/workflows/ci.yml": 'jobs:\n  test:\n    matrix:\n      python-version: ["3.8", "3.9"]\n',
    ".python-version": "3.9.1\n",
    "tox.ini": "[tox]\nenvlist = py27,py36,py{37,38}-x,pypy3,py310\n",
}


def test_what_files_name_is_read_by_source_the_surest_first() -> None:
    found = {source: sorted(f"{a}.{b}" for a, b in minors) for source, minors in named_pythons(TEXTS)}
    assert found == {
        "classifiers": ["3.6", "3.7"],
        "CI files": ["3.10", "3.8", "3.9"],
        ".python-version": ["3.9"],
        "tox.ini": ["3.10", "3.6", "3.7", "3.8"],
    }
    assert list(found) == ["classifiers", "CI files", ".python-version", "tox.ini"]
    assert named_pythons({"README.md": "3.6"}) == []


@pytest.mark.parametrize(
    ("path", "text", "versions"),
    [
        ("setup.py", f"Programming Language :: Python :: 3.{'9' * 5000}", set()),
        ("tox.ini", f"py3{'9' * 5000}", set()),
        ("tox.ini", f"py{{3{'7' * 50},38}}", {(3, 8)}),
        ("tox.ini", "py{37\n,38}", set()),
        (".travis.yml", f"python: 3.{'8' * 5000}", set()),
        (".python-version", "x" * 300_000 + "\n3.9", set()),
    ],
)
def test_a_version_is_no_more_than_a_version_can_be(path: str, text: str, versions: set[tuple[int, int]]) -> None:
    assert {minor for _, minors in named_pythons({path: text}) for minor in minors} == versions


@pytest.mark.parametrize("path", ["tox.ini", ".travis.yml", "setup.py", ".python-version"])
@pytest.mark.parametrize("piece", ["py{", "- ", "python ", "py3", "3.9", "\t-", "py{3,", "\n- 3.9"])
def test_the_time_to_read_hostile_files_grows_with_their_size(path: str, piece: str) -> None:
    assert_linear(lambda size: {path: piece * size}, named_pythons, 2000)


@pytest.mark.parametrize(
    ("requires", "texts", "when", "offers", "python", "by"),
    [
        ("", {}, "2019-06-01", ALL, "3.7", "the day"),
        ("", {}, "2015-06-01", ALL, "3.6", "the day"),
        ("", {}, "2024-06-01", ALL, "3.11", "the day"),  # the base image's own, though 3.12 was there
        (">=3.8", {}, "2019-06-01", ALL, "3.8", "requires-python"),
        ("", TEXTS, "2024-06-01", ALL, "3.7", "classifiers"),
        (">=3.8", TEXTS, "2024-06-01", ALL, "3.10", "CI files"),  # classifiers say what requires-python forbids
        (">=3.8", TEXTS, "2021-03-01", ALL, "3.8", "CI files"),
        ("", {}, "2019-06-01", {(3, 9)}, "3.9", "the day"),
        ("", {}, "2019-06-01", (), "3.11", "the day"),
        ("<3.10,>=3.6.2", {}, "2023-06-01", ALL, "3.9", "requires-python"),
        ("no version", {}, "2019-06-01", ALL, "3.7", "requires-python"),
    ],
)
def test_the_python_is_of_the_first_source_that_names_one_that_is_here(
    requires: str, texts: dict[str, str], when: str, offers: Any, python: str, by: str
) -> None:
    choice = choose_python(requires, named_pythons(texts), day(when), offers, BOOKWORM)
    assert choice is not None and (choice.text, choice.by) == (python, by)


def test_none_is_chosen_where_none_that_is_here_is_asked_for() -> None:
    assert choose_python(">=3.14", [], day("2026-01-01"), ALL, BOOKWORM) is None
    assert choose_python("<3", [], day("2016-01-01"), ALL, BOOKWORM) is None


def test_exceptions_of_a_dated_index_end_with_their_day() -> None:
    old = exceptions(day("2018-09-01"), installs=False)
    assert old["atomicwrites"] == "2023-01-01T00:00:00Z" and old["setuptools"] == "2019-06-01T00:00:00Z"
    assert exceptions(day("2018-09-01"), installs=True)["setuptools"] == "2023-07-01T00:00:00Z"
    assert set(exceptions(day("2024-03-01"), installs=True)) == {"pip"}
    assert exceptions(day("2024-09-01"), installs=True) == {}
    assert "atomicwrites" not in exceptions(day("2023-01-01").replace(hour=0), installs=False)
    assert uv_configuration(day("2018-09-01"), installs=False).startswith(b"[exclude-newer-package]\natomicwrites = ")


METADATA = """Metadata-Version: 2.1
Name: a
Requires-Dist: six (>=1.0)
Requires-Dist: old ; python_version < "3"
Provides-Extra: test
Requires-Dist: pytest (>=3) ; extra == 'test'
Requires-Dist: mock ; (python_version < "3.3") and extra == 'test'
Requires-Dist: sphinx ; extra == 'docs'

Requires-Dist: of the readme
"""
EGG = "six>=1.0\n\n[:python_version < '3']\nold\n\n[docs]\nsphinx\n\n[test]\npytest>=3\n\n[test:os_name == 'nt']\nwin\n"


def test_what_a_project_needs_is_read_from_the_metadata_that_building_it_made() -> None:
    assert wanted.requirements(METADATA, ["test$"]) == [
        "six (>=1.0)",
        'old ; python_version < "3"',
        "pytest (>=3)",
        'mock ; (python_version < "3.3")',
    ]
    assert wanted.requirements(METADATA, []) == ["six (>=1.0)", 'old ; python_version < "3"']
    eggs = ["six>=1.0", "old ; python_version < '3'", "pytest>=3", "win ; os_name == 'nt'"]
    assert wanted.of_egg(EGG, ["test$"]) == eggs


def test_metadata_is_found_of_the_project_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("tree/a.egg-info", "site/b-1.dist-info"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "tree/a.egg-info/PKG-INFO").write_text("Name: a\n")
    (tmp_path / "tree/a.egg-info/requires.txt").write_text(EGG)
    (tmp_path / "site/b-1.dist-info/METADATA").write_text(METADATA)
    monkeypatch.setattr("sys.path", [str(tmp_path / "tree"), str(tmp_path / "site"), *sys.path])
    monkeypatch.setitem(sys.modules, "forget_tree", forget_tree)
    assert wanted.main(str(tmp_path / "tree"), []) == ["six>=1.0", "old ; python_version < '3'"]


def program_with_a_path(folder: Path, path: str) -> Path | None:
    """An ELF file with a path of libraries, by the compiler; None where there is none."""
    (folder / "a.c").write_text("int main(void) { return 0; }\n")
    command = ["cc", "a.c", "-o", "a", f"-Wl,-rpath,{path}"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return folder / "a"


def test_a_path_of_libraries_is_written_in_the_place_of_a_longer_one(tmp_path: Path) -> None:
    program = program_with_a_path(tmp_path, "/a/rather/long/folder/lib")
    if program is None:
        pytest.skip("no compiler")
    content = program.read_bytes()
    found = library_path(content)
    assert found is not None and found[1] == b"/a/rather/long/folder/lib"
    moved = with_library_path(content, b"$ORIGIN/../lib")
    assert len(moved) == len(content) and library_path(moved) == (found[0], b"$ORIGIN/../lib")
    program.write_bytes(moved)
    subprocess.run([program], check=True)
    with pytest.raises(ValueError, match="longer"):
        with_library_path(content, b"x" * 99)


@pytest.mark.parametrize("content", [b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01", b"\x7fELF\x02\x01" + b"\xff" * 200])
def test_what_is_no_program_or_a_broken_one_stays_as_it_is(content: bytes) -> None:
    assert with_library_path(content, b"$ORIGIN") == content


def an_interpreter(folder: Path) -> HostPython:
    """Files as an interpreter's."""
    lib = folder / "p/lib/python3.7"
    for name in (
        "os.py",
        "test/big.py",
        "site-packages/x.py",
        "lib-dynload/a.so",
        "__pycache__/os.cpython-37.opt-1.pyc",
    ):
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        (lib / name).write_text("x")
    (folder / "p/bin").mkdir()
    (folder / "p/bin/python3.7").write_text("program")
    (folder / "p/lib/libpython3.7m.so").symlink_to("libpython3.7m.so.1.0")
    (folder / "p/lib/libpython3.7m.so.1.0").write_text("library")
    return HostPython((3, 7, 9), str(folder / "p/bin/python3.7"), str(folder / "p"))


def copied(python: HostPython, seconds: float = 60) -> dict[str, str]:
    archive = io.BytesIO()
    write_tar(python, archive, time.monotonic() + seconds)
    found = {}
    with tarfile.open(fileobj=io.BytesIO(archive.getvalue())) as tar:
        for entry in tar:
            file = tar.extractfile(entry) if entry.isfile() else None
            found[entry.name.removeprefix("opt/python/3.7/")] = file.read().decode() if file else entry.linkname
    return found


WHOLE = {
    "bin/python3.7": "program",
    "bin/python3": "python3.7",
    "lib/libpython3.7m.so": "libpython3.7m.so.1.0",
    "lib/libpython3.7m.so.1.0": "library",
    "lib/python3.7/os.py": "x",
    "lib/python3.7/lib-dynload/a.so": "x",
}


def test_a_copy_of_an_interpreter_has_its_library_and_no_tests(tmp_path: Path) -> None:
    assert copied(an_interpreter(tmp_path)) == WHOLE


def test_a_copy_of_an_interpreter_has_nothing_from_outside_of_it_and_nothing_that_runs_by_itself(
    tmp_path: Path,
) -> None:
    python = an_interpreter(tmp_path)
    lib = tmp_path / "p/lib/python3.7"
    (tmp_path / "secret").write_text("TOKEN")
    (tmp_path / "folder").mkdir()
    (lib / "leak.py").symlink_to(tmp_path / "secret")
    (lib / "leaks").symlink_to(tmp_path / "folder")
    (lib / "gone.py").symlink_to("/nowhere")
    (lib / "round.py").symlink_to("round.py")
    os.mkfifo(lib / "fifo.py")
    for name in ("sitecustomize.py", "usercustomize.pyc", "all.pth"):
        (lib / name).write_text("x")
    (lib / "here.py").symlink_to("os.py")
    assert copied(python) == {**WHOLE, "lib/python3.7/here.py": "x"}


def test_an_interpreter_is_not_taken_where_others_may_write_it_or_past_the_deadline(tmp_path: Path) -> None:
    python = an_interpreter(tmp_path)
    with pytest.raises(TimeoutError):
        copied(python, seconds=-1)
    for path in ("p", "p/lib/python3.7", "p/lib/python3.7/os.py"):
        mode = (tmp_path / path).stat().st_mode
        (tmp_path / path).chmod(mode | 0o002)
        with pytest.raises(ValueError, match="others than root"):
            copied(python)
        (tmp_path / path).chmod(mode)
    (tmp_path / "p").rename(tmp_path / "q")
    with pytest.raises(FileNotFoundError):
        copied(python)


class Engine:
    """Has some images, and a registry that answers or not."""

    def __init__(self, *tags: str, registry: bool = False, labels: dict[str, str] | None = None) -> None:
        self.tags, self.registry, self.labels = tags, registry, labels or {}
        self.images = self

    def get(self, name: str) -> Any:
        if name not in self.tags:
            raise ImageMissing(name)
        return SimpleNamespace(id=f"id of {name}", attrs={"Config": {"Labels": {}, "Env": []}})

    def get_registry_data(self, name: str) -> None:
        if not self.registry:
            raise ImageMissing(name)

    def list(self, filters: Any) -> list[Any]:
        return [
            SimpleNamespace(tags=[tag], attrs={"Config": {"Labels": {filters["label"]: suite}}})
            for tag, suite in self.labels.items()
        ]


HERE = HostPython((3, 8, 18), "/p/bin/python3.8", "/p")


@pytest.fixture
def one_python_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered, "host_pythons", lambda: (HERE,))


def offers(engine: Engine, base: str = "prchain-base:bookworm") -> dict[str, tuple[str, str]]:
    found = Interpreters(BuildSettings(base_image=base)).offers(engine)
    return {offer.text: (offer.origin, offer.source) for offer in found.values()}


@pytest.mark.usefixtures("one_python_of_the_host")
def test_without_a_registry_this_machine_and_other_bases_offer_what_they_have() -> None:
    engine = Engine("prchain-base:bookworm", labels={"mine:bullseye": "bullseye", "prchain-base:bookworm": "bookworm"})
    assert offers(engine) == {
        "3.8": (HOST, "/p/bin/python3.8"),
        "3.9": (OTHER_BASE, "mine:bullseye"),
        "3.11": (BASE, "prchain-base:bookworm"),
    }


@pytest.mark.usefixtures("one_python_of_the_host")
def test_where_a_registry_answers_official_images_are_taken() -> None:
    found = offers(Engine("debian:bookworm-slim", registry=True), "debian:bookworm-slim")
    assert found["3.8"] == (REGISTRY, "python:3.8-slim") and found["3.11"][0] == BASE
    assert list(found) == [f"3.{minor}" for minor in range(6, 15)]


def test_a_registry_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offered, "host_pythons", tuple)
    monkeypatch.setattr(registry, "PATIENCE", 0.01)
    engine = Engine("prchain-base:bookworm")
    monkeypatch.setattr(engine, "get_registry_data", lambda name: time.sleep(0.5))
    assert list(offers(engine)) == ["3.11"]


@pytest.fixture
def no_layer_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> str:
        raise BuildFailed("GLIBC_2.41 not found")

    monkeypatch.setattr(offered, "lay", fails)
    monkeypatch.setattr(offered, "lay_tools", lambda engine, settings: settings.base_image)


def bookworm() -> Interpreters:
    return Interpreters(BuildSettings(base_image="prchain-base:bookworm"))


@pytest.mark.usefixtures("one_python_of_the_host", "no_layer_works")
def test_an_interpreter_that_does_not_run_in_the_base_image_is_offered_no_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine, interpreters = Engine("prchain-base:bookworm"), bookworm()
    assert interpreters.settings_for(engine, (3, 8)) is None
    assert "Python 3.8.18 of this machine does not run in prchain-base:bookworm: GLIBC" in caplog.text
    assert list(interpreters.offers(engine)) == [BOOKWORM]
    assert interpreters.settings_for(engine, (3, 8)) is None


@pytest.mark.usefixtures("one_python_of_the_host", "no_layer_works")
def test_the_next_source_is_taken_for_an_interpreter_that_does_not_run() -> None:
    interpreters = bookworm()
    engine = Engine("prchain-base:bookworm", "mine:eight", labels={"mine:eight": "eight"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(offered.RELEASES, "eight", (3, 8))
        assert interpreters.settings_for(engine, (3, 8)) is None
        settings = interpreters.settings_for(engine, (3, 8))
    assert settings is not None and settings.base_image == "mine:eight"


@pytest.mark.usefixtures("one_python_of_the_host")
def test_what_another_process_found_not_to_run_is_not_offered() -> None:
    tried = f"{layers.layer_name(HERE, 'id of prchain-base:bookworm')}-unfit"
    assert list(offers(Engine("prchain-base:bookworm", tried))) == ["3.11"]


@pytest.mark.usefixtures("one_python_of_the_host")
def test_an_engine_that_fails_says_nothing_of_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: Any) -> str:
        raise EngineUnavailable("gone")

    monkeypatch.setattr(offered, "lay", gone)
    monkeypatch.setattr(offered, "lay_tools", lambda engine, settings: settings.base_image)
    engine, interpreters = Engine("prchain-base:bookworm"), bookworm()
    with pytest.raises(EngineUnavailable):
        interpreters.settings_for(engine, (3, 8))
    assert (3, 8) in interpreters.offers(engine)


@pytest.mark.usefixtures("one_python_of_the_host")
def test_without_the_base_image_what_else_is_offered_is_told_with_a_cure(capsys: pytest.CaptureFixture[str]) -> None:
    found = list(bookworm().without_base(Engine()).values())
    assert [offer.text for offer in found] == ["3.8"]
    print_interpreters(found, "the base image is not there; make one")
    assert "? " in (printed := capsys.readouterr().out) and "make one\n" in printed
    assert interpreter_rows(found, "make one")[-1]["python"] is None


class FakeContainer:
    """A build's container in which an interpreter does not start."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.committed: list[str] = []

    def __enter__(self) -> FakeContainer:
        return self

    def __exit__(self, *_: object) -> None: ...

    def put(self, archive: bytes) -> None: ...

    def run(self, step: str, script: str, *, root: bool) -> None:
        if "setpriv" in script:
            raise BuildFailed("no ssl")

    def commit(self, name: str, changes: list[str]) -> None:
        self.committed.append(f"{name} {changes[-1]}")


def test_that_an_interpreter_does_not_run_is_kept_for_other_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    container = FakeContainer()
    monkeypatch.setattr(layers, "BuildContainer", lambda *_, **__: container)
    python = an_interpreter(tmp_path)
    with pytest.raises(BuildFailed, match="no ssl"):
        layers.lay(Engine(), "base", "id", python)
    name = layers.layer_name(python, "id")
    assert container.committed == [f'{name}-unfit LABEL prchain.layer="no python 3.7.9"']


class Stacked:
    """An engine with images as lists of layers, each with the label that it has of its own."""

    def __init__(self, **images: tuple[str, list[str]]) -> None:
        self.stacks = {name: stack for name, (_, stack) in images.items()}
        self.labels = {name: label for name, (label, _) in images.items()}
        self.images = self
        self.api = SimpleNamespace(df=self.df, images=lambda **_: [])

    def df(self) -> dict[str, Any]:
        common = {"Created": 1_700_000_000, "Size": 10, "SharedSize": 4}
        return {
            "Images": [
                {**common, "Id": name, "RepoTags": [name], "Labels": {label: "{}" if "image" in label else name}}
                for name, label in self.labels.items()
            ]
        }

    def get(self, name: str) -> Any:
        return SimpleNamespace(attrs={"RootFS": {"Layers": self.stacks[name]}})

    def remove(self, name: str) -> None:
        del self.labels[name]


def test_layers_that_no_image_stands_on_are_removed() -> None:
    engine = Stacked(
        image=(IMAGE_LABEL, ["base", "tools", "38", "packages"]),
        tools=(LAYER_LABEL, ["base", "tools"]),
        python38=(LAYER_LABEL, ["base", "tools", "38"]),
        python39=(LAYER_LABEL, ["base", "tools", "39"]),
        other=("of somebody else", ["base"]),
    )
    listed = {layer.name: layer.notes for layer in layers.list_layers(engine)}
    assert listed == {"python38": (), "python39": (layers.UNUSED,), "tools": ()}
    assert [layer.name for layer in layers.prune_layers(engine, datetime(2023, 1, 1, tzinfo=UTC))] == []
    assert [layer.name for layer in layers.prune_layers(engine)] == ["python39"]
    assert set(engine.labels) == {"image", "tools", "python38", "other"}


def test_every_interpreter_that_is_found_says_its_version() -> None:
    assert all(python.version >= (3, 6) for python in host_pythons())


@pytest.mark.parametrize(
    ("written", "dated", "notes"),
    [
        ("dated\nwithout:x\n", "2016-01-01T00:00:00Z", ["without:x"]),
        ("dates_unknown\n", None, ["dates_unknown"]),
        (
            "dated\nas_of:2017-06-01T00:00:00Z\n",
            "2017-06-01T00:00:00Z",
            ["packages as of 2017-06-01, the first day on which they know the interpreter"],
        ),
        ("dated\nas_of:1999\n", "2016-01-01T00:00:00Z", ["as_of:1999"]),
    ],
)
def test_the_day_of_an_image_is_that_of_the_try_that_worked(written: str, dated: str | None, notes: list[str]) -> None:
    assert read_notes(written, "2016-01-01T00:00:00Z", "2017-06-01T00:00:00Z") == (dated, notes)


@pytest.mark.parametrize(("requires", "comes"), [("", True), (">=2.7,<3", False), ("==2.7.*", False), ("~=3.9", True)])
def test_a_python_that_cannot_come_is_known_from_what_the_project_asks_for(requires: str, comes: bool) -> None:
    assert can_come(requires) is comes
