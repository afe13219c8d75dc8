"""A placed tree becomes another, with its repository; and when an install that is there already may stand.

The sandbox is a folder of this machine.
"""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from environments.checkouts.checkout import place_by_git, place_tree, start_commit
from environments.checkouts.placed import PartedPacks, move_placed
from environments.kept_bases import STAMP
from environments.readiness import Readiness, readiness
from prchain.core.errors import PlacementFailed, PrchainError
from prchain.core.git.trees import LINK, TreeStore
from tests.environments.folder_sandbox import FolderSandbox
from tests.environments.test_moving import TREES
from tests.miner.gitworld import World
from tests.prchain.treeworld import Content, new_store, plant

EDITABLE = ("uv pip install --editable .",)
PROJECT: Mapping[str | bytes, Content] = {
    "pyproject.toml": '[project]\nname = "shop"\n[tool.setuptools.dynamic]\nversion = {attr = "shop.about.V"}\n',
    "src/shop/__init__.py": "",
    "src/shop/about.py": "V = '1'\n",
    "src/shop/till.py": "",
    "src/shop/tools/__init__.py": "",
    "tests/test_till.py": "",
    "setup_tools.sh": "",
}


def state(folder: Path) -> dict[str, str]:
    """What a repository is: its names, its objects, and how its files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout

    found = {
        "head": git("rev-parse", "--symbolic-full-name", "HEAD"),
        "refs": git("for-each-ref"),
        "objects": "\n".join(
            sorted(git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").splitlines())
        ),
        "status": git("status", "--porcelain", "--ignored"),
        "index": git("ls-files", "--stage"),
        "log": git("log", "--format=%H %T %s"),
        "reflogs": git("reflog", "--all"),
        "names": "\n".join(sorted(path.name for path in (folder / ".git").iterdir())),
        "left out": git("count-objects", "-v").partition("in-pack")[0],
    }
    for name in ("config", "info/attributes"):
        found[name] = (folder / ".git" / name).read_text(encoding="utf-8")
    return found


def placed(folder: Path, store: TreeStore, tree: str) -> FolderSandbox:
    (folder / "testbed").mkdir(parents=True)
    sandbox = FolderSandbox(folder / "testbed")
    place_tree(sandbox, store, tree)
    return sandbox


def part(folder: Path) -> None:
    """Give each object of a repository a pack of its own."""
    packs = folder / ".git/objects/pack"
    whole = list(packs.iterdir())
    listed = ["git", "cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]
    for name in subprocess.run(listed, cwd=folder, check=True, capture_output=True, text=True).stdout.split():
        command = ["git", "pack-objects", "-q", str(packs / "pack")]
        subprocess.run(command, cwd=folder, check=True, input=name, capture_output=True, text=True)
    for path in whole:
        path.unlink()


def check_moved(folder: Path, before: Mapping[bytes, Content], after: Mapping[bytes, Content]) -> None:
    store = new_store(folder)
    old, new = (plant(store, {"kept.txt": "kept\n", **tree}) for tree in (before, after))  # type: ignore[dict-item]
    history = [store.commit(plant(store, {"old.txt": text}), (), text) for text in ("second", "first")][
        : len(before) % 3
    ]
    sandbox, anew = placed(folder / "moved", store, old), placed(folder / "anew", store, old)
    part(sandbox.folder)
    commit = move_placed(sandbox, store, old, new, history=history)
    assert place_tree(anew, store, new, history=history) == commit
    assert state(sandbox.folder) == state(anew.folder)
    assert contents(sandbox.folder) == contents(anew.folder)


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """All that lies in a folder beside its repository: whether it can be run, and what it holds."""
    found = {}
    for path in folder.rglob("*"):
        name = os.fsdecode(path.relative_to(folder))
        if name.split("/")[0] != ".git":
            content = os.readlink(path) if path.is_symlink() else "" if path.is_dir() else repr(path.read_bytes())
            found[name] = (path.lstat().st_mode & 0o170777, content)
    return found


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES)
def test_git_writes_what_is_placed_as_an_archive(files: Mapping[bytes, Content]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = new_store(Path(folder))
        attributes = "* text eol=crlf ident\n*.txt filter=lfs working-tree-encoding=UTF-16\n"
        tree = plant(store, {".gitattributes": attributes, "a.txt": "$Id$\n", **files})  # type: ignore[dict-item]
        anew = placed(Path(folder) / "anew", store, tree)
        (Path(folder) / "by" / "testbed").mkdir(parents=True)
        by_git = FolderSandbox(Path(folder) / "by" / "testbed")
        with pytest.MonkeyPatch.context() as patch:
            patch.delattr("environments.checkouts.checkout.place_tree")  # it is not needed
            place_by_git(by_git, store, tree)
        assert state(by_git.folder) == state(anew.folder)
        assert contents(by_git.folder) == contents(anew.folder)


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TREES, TREES)
def test_a_moved_repository_is_the_one_that_is_placed_anew(
    before: Mapping[bytes, Content], after: Mapping[bytes, Content]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check_moved(Path(folder), before, after)


@pytest.mark.parametrize("small", [4 << 20, 0])
@pytest.mark.parametrize("index_version", ["1", "2"])
def test_nothing_of_the_tree_before_is_left_in_the_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: int, index_version: str
) -> None:
    monkeypatch.setattr("environments.checkouts.placed._SMALL", small)
    store = new_store(tmp_path)
    before, after = (plant(store, {"a.py": text, "b.py": "same\n"}) for text in ("reference\n", "own\n"))
    sandbox = placed(tmp_path / "x", store, before)
    sandbox.exec(f"git config pack.indexVersion {index_version} && git repack -a -d -q -f")
    move_placed(sandbox, store, before, after)
    reference = store.name_of("blob", b"reference\n")
    assert sandbox.exec(f"git cat-file -e {reference}").exit_code != 0
    assert sandbox.exec("cat a.py b.py; git status --porcelain").text == "own\nsame\n"


@pytest.mark.parametrize("object_format", ["sha1", "sha256"])
def test_packs_that_hold_nothing_of_what_goes_stay_and_no_other_does(tmp_path: Path, object_format: str) -> None:
    store = TreeStore.open(tmp_path / "store", [World(tmp_path / "r.git", objects=object_format).path])
    texts = [random.Random(number).randbytes(700_000).hex() for number in range(6)]
    files: dict[str | bytes, Content] = {f"{number}.txt": text for number, text in enumerate(texts)}
    before, after = plant(store, files), plant(store, {**files, "2.txt": "own\n"})
    (tmp_path / "testbed").mkdir()
    sandbox = FolderSandbox(tmp_path / "testbed")
    packs = sandbox.folder / ".git/objects/pack"
    commit = place_by_git(sandbox, store, before)
    with PartedPacks(store, commit) as parted:
        (whole,) = packs.glob("*.pack")
        parted.put(sandbox)
    assert not whole.exists() and not whole.with_suffix(".idx").exists()
    assert {path.stem for path in packs.iterdir()} == {path.stem for path in packs.glob("*.pack")}
    old = {path.name: path.stat().st_ino for path in packs.glob("*.pack")}
    move_placed(sandbox, store, before, after)
    new = {path.name: path.stat().st_ino for path in packs.glob("*.pack")}
    kept = new.keys() & old.keys()
    assert len(kept) >= len(old) - 3 == 3, "the commit, the tree and the blob lie in three packs at most"
    assert len(new) == len(kept) + 1
    assert all(new[name] == old[name] for name in kept)
    assert sandbox.exec(f"git cat-file -e {store.name_of('blob', texts[2].encode())}").exit_code != 0
    assert sandbox.exec("git fsck 2>&1; git status --porcelain").text == ""


def test_a_pack_that_is_its_only_part_stays(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    tree = plant(store, {"a.py": "text\n"})
    sandbox = placed(tmp_path / "x", store, tree)
    with PartedPacks(store, start_commit(store, tree)) as parted:
        parted.put(sandbox)
    assert sandbox.exec("ls .git/objects/pack | wc -l; git fsck 2>&1; git status --porcelain").text == "2\n"


def test_a_repository_that_cannot_be_parted_is_told(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    sandbox = placed(tmp_path / "x", store, plant(store, {"a.py": "text\n"}))
    with PartedPacks(store, "0" * 40) as parted, pytest.raises(PrchainError):
        parted.put(sandbox)
    assert sandbox.exec("git fsck 2>&1; git status --porcelain").text == ""


def test_what_git_writes_is_as_it_lies_in_the_tree_and_what_is_in_the_way_goes(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    attributes = "* text eol=crlf ident\n*.txt filter=lfs working-tree-encoding=UTF-16\n"
    kept: dict[str | bytes, Content] = {".gitignore": "*.log\n", ".gitattributes": attributes}
    before = plant(store, {**kept, "d/x": "x\n"})
    after = plant(store, {**kept, "d": "a file\n", "a.txt": "$Id$\n", "one.log": "1\n", "link.log/in": "2\n"})
    sandbox = placed(tmp_path / "x", store, before)
    (tmp_path / "outside").mkdir()
    (sandbox.folder / "link.log").symlink_to(tmp_path / "outside")
    for name in ("d/x.log", "one.log/in", "kept.log"):
        place = sandbox.folder / name
        place.parent.mkdir(exist_ok=True)
        place.write_text("made\n")
    move_placed(sandbox, store, before, after)
    assert sandbox.exec("cat d a.txt one.log link.log/in kept.log").text == "a file\n$Id$\n1\n2\nmade\n"
    assert list((tmp_path / "outside").iterdir()) == [] and sandbox.exec("git status --porcelain").text == ""


def test_a_base_whose_files_are_not_those_of_its_tree_is_told(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    sandbox = placed(tmp_path / "x", store, plant(store, {"a.py": "one\n", "b.py": "same\n"}))
    assert sandbox.exec(STAMP).exit_code == 0
    (sandbox.folder / "b.py").write_text("other\n")
    told = sandbox.exec(STAMP)
    assert told.exit_code != 0 and "b.py" in told.text


def test_a_sandbox_without_a_repository_is_told(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    before, after = (plant(store, {"a.py": text}) for text in ("one\n", "two\n"))
    sandbox = placed(tmp_path / "x", store, before)
    sandbox.exec("rm -rf .git/objects/pack")
    with pytest.raises(PlacementFailed):
        move_placed(sandbox, store, before, after)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, Readiness.READY),
        ({"src/shop/till.py": "changed"}, Readiness.READY),
        ({"tests/test_till.py": "changed", "tests/test_new.py": "new"}, Readiness.READY),
        ({"tests/data.json": "{}"}, Readiness.READY),
        ({"src/shop/new.py": "new"}, Readiness.REFRESH),
        ({"src/shop/till.py": None}, Readiness.REFRESH),
        ({"src/shop/about.py": "V = '2'"}, Readiness.REFRESH),
        ({"src/shop/_version.py": "2"}, Readiness.REFRESH),
        ({"src/shop/__init__.py": "changed"}, Readiness.REFRESH),
        ({"src/shop/tools/__init__.py": "changed"}, Readiness.READY),
        ({"src/shop/fast.pyx": "changed"}, Readiness.REFRESH),
        ({"new.py": "new"}, Readiness.REFRESH),
        ({"src/shop/till.py": (LINK, "about.py")}, Readiness.REFRESH),
        ({"pyproject.toml": "changed"}, Readiness.ANEW),
        ({"docs/setup.py": "new"}, Readiness.ANEW),
        ({"requirements.txt": "new"}, Readiness.ANEW),
    ],
)
def test_an_install_stands_only_where_the_change_shows_as_it_lies(
    tmp_path: Path, changed: Mapping[str | bytes, Content | None], expected: Readiness
) -> None:
    store = new_store(tmp_path)
    base = plant(store, PROJECT)
    files = {path: content for path, content in {**PROJECT, **changed}.items() if content is not None}
    tree = plant(store, files)
    assert readiness(store, base, tree, scripts=EDITABLE, manifests=["requirements*.txt"]) is expected


def test_source_that_may_be_compiled_is_built_again(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    project = {**PROJECT, "setup.py": "from mypyc.build import mypycify\n"}
    base, tree = plant(store, project), plant(store, {**project, "src/shop/till.py": "changed"})
    assert readiness(store, base, tree, scripts=EDITABLE, manifests=[]) is Readiness.REFRESH


def test_other_scripts_than_an_editable_install_run_again_and_where_there_are_none_nothing_does(
    tmp_path: Path,
) -> None:
    store = new_store(tmp_path)
    base, tree = plant(store, PROJECT), plant(store, {**PROJECT, "src/shop/till.py": "changed"})
    assert readiness(store, base, tree, scripts=["make"], manifests=[]) is Readiness.REFRESH
    assert readiness(store, base, tree, scripts=[], manifests=[]) is Readiness.READY
