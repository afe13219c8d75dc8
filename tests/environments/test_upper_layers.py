"""What is read of an overlay's upper layer, and the listings that are made of it without a look at other files."""

from __future__ import annotations

import os
import random
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from environments.checkouts import listing
from environments.checkouts.checkout import place_tree
from environments.checkouts.listing import FolderLister
from environments.checkouts.tracking import Tracker
from environments.sandboxes import upper_layers
from environments.sandboxes.local import LocalSandbox
from environments.sandboxes.local_layers import layers_work
from environments.sandboxes.sandbox import ExecResult, LaidFolder, SandboxConfig
from environments.sandboxes.upper_layers import TooMuchWritten, UpperLayer, are_nested, read_upper, reads_attributes
from prchain.core.errors import ExtractionFailed
from prchain.core.git.trees import TreeStore
from tests.environments.folder_sandbox import FolderSandbox
from tests.environments.layered_trees import START, check_tree, listings_of_agents
from tests.prchain.treeworld import new_store, plant

USER = "user.overlay."

_WITHIN_A_TICK, _TICK = 0.02, 0.08
"""Seconds: the clock of files ticks between them, and facts that are younger than a tick count as fresh."""


@pytest.fixture
def layer(tmp_path: Path) -> UpperLayer:
    (tmp_path / "upper/testbed").mkdir(parents=True)
    return UpperLayer(tmp_path / "upper", ("testbed",), USER, 0.0)


def _folder(layer: UpperLayer) -> Path:
    return layer.root.joinpath(*layer.below)


def _whiteout(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR, 0)


def test_files_folders_whiteouts_and_emptied_folders_are_told_apart(layer: UpperLayer) -> None:
    folder = _folder(layer)
    for name in ("d/e", "emptied/new"):
        (folder / name).mkdir(parents=True)
    (folder / "d/file").write_text("text")
    os.symlink("../a", os.fsencode(folder) + b"/d/odd\xff\n")
    _whiteout(folder / "d/e/gone")
    os.setxattr(folder / "emptied", f"{USER}opaque", b"y")
    written = read_upper(layer)
    assert written is not None
    assert {path: target for path, (_, target) in written.files.items()} == {b"d/file": b"", b"d/odd\xff\n": b"../a"}
    assert written.files[b"d/file"][0].st_size == 4
    assert written.folders == {b"d", b"d/e", b"emptied", b"emptied/new"}
    assert (written.gone, written.emptied) == ({b"d/e/gone"}, {b"emptied"})


def test_repositories_and_folders_to_be_left_out_are_not_entered(layer: UpperLayer) -> None:
    for name in ("d/.git", "junk"):
        (_folder(layer) / name).mkdir(parents=True)
        (_folder(layer) / name / "f").touch()
    (_folder(layer) / ".git").touch()
    written = read_upper(layer, [b"junk"])
    assert written is not None and (written.files, written.folders) == ({}, {b"d", b"junk"})


def test_nothing_is_written_where_there_is_no_folder_yet(layer: UpperLayer) -> None:
    assert read_upper(replace(layer, below=("testbed", "none", "deeper"))) == upper_layers.Written()
    assert read_upper(replace(layer, root=layer.root / "none")) is None


@pytest.mark.parametrize("what", ["a link", "a whiteout", "a file", "an emptied folder", "another's folder"])
def test_what_lies_in_the_folders_place_is_no_answer(layer: UpperLayer, tmp_path: Path, what: str) -> None:
    folder = _folder(layer)
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    match what:
        case "a link":
            folder.symlink_to(tmp_path / "elsewhere")
        case "a whiteout":
            _whiteout(folder)
        case "a file":
            folder.touch()
        case "an emptied folder" | _:
            folder.mkdir()
            os.setxattr(folder, f"{USER}{'opaque' if what[1] == 'n' and 'emptied' in what else 'redirect'}", b"y")
    assert read_upper(layer) is None


def test_a_folder_that_stands_for_another_one_is_no_answer(layer: UpperLayer) -> None:
    (_folder(layer) / "d").mkdir()
    os.setxattr(_folder(layer) / "d", f"{USER}redirect", b"/e")
    assert read_upper(layer) is None


def test_too_many_names_and_too_many_folders_are_said_to_be(layer: UpperLayer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upper_layers, "_MOST_WRITTEN", 3)
    for number in range(3):
        (_folder(layer) / str(number)).touch()
    assert read_upper(layer) is not None
    (_folder(layer) / "3").touch()
    with pytest.raises(TooMuchWritten):
        read_upper(layer)
    monkeypatch.undo()
    (_folder(layer) / "/".join("d" * 70)).mkdir(parents=True)
    with pytest.raises(TooMuchWritten):
        read_upper(layer)


def test_attributes_that_nobody_can_have_are_not_read() -> None:
    assert reads_attributes(USER) and not reads_attributes("nobodys.overlay.")


def test_paths_are_nested_by_whole_names() -> None:
    assert are_nested("/a/b", "/a") and are_nested("/a", "/a/b") and are_nested("/", "/a")
    assert not are_nested("/a/b", "/a/bc") and not are_nested("/b", "/a")


# ---- listings


class Layered(FolderSandbox):
    """A folder of which another one, filled by hand, is said to be the upper layer."""

    layer: UpperLayer | None
    commands = 0

    def upper_layer(self, folder: str) -> UpperLayer | None:
        return self.layer

    def exec(self, command: str, **arguments: Any) -> ExecResult:
        self.commands += 1
        return super().exec(command, **arguments)


@pytest.fixture
def box(tmp_path: Path, layer: UpperLayer) -> Layered:
    box = Layered(tmp_path / "testbed")
    for name in ("a", "d/b", "d/e/c"):
        (box.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (box.folder / name).write_text(name)
    time.sleep(_WITHIN_A_TICK)
    box.layer = replace(layer, since=time.time())
    time.sleep(_TICK)
    return box


@pytest.fixture
def lister(box: Layered) -> FolderLister:
    lister = FolderLister(box, str(box.folder))
    found = lister.list()
    assert found is not None and sorted(found.files) == [b"a", b"d/b", b"d/e/c"]
    assert found.records == b"" and box.commands == 1
    return lister


def _write(layer: UpperLayer, *names: str) -> None:
    for name in names:
        (_folder(layer) / name).parent.mkdir(parents=True, exist_ok=True)
        (_folder(layer) / name).write_text("new")


@pytest.mark.parametrize(
    ("change", "left"),
    [
        (lambda layer: _write(layer, "d/b", "n/x"), [b"a", b"d/b", b"d/e/c", b"n/x"]),
        (lambda layer: _whiteout(_folder(layer) / "a"), [b"d/b", b"d/e/c"]),
        (lambda layer: _whiteout(_folder(layer) / "d"), [b"a"]),
        (lambda layer: _write(layer, "d"), [b"a", b"d"]),
        (lambda layer: (_folder(layer) / "d").symlink_to("/etc"), [b"a", b"d"]),
        (lambda layer: _write(layer, "a/x"), [b"a/x", b"d/b", b"d/e/c"]),
        (lambda layer: _write(layer, ".git/x", "d/.git"), [b"a", b"d/b", b"d/e/c"]),
    ],
)
def test_what_is_written_is_listed_by_no_command(
    box: Layered, lister: FolderLister, layer: UpperLayer, change: Callable[[UpperLayer], object], left: list[bytes]
) -> None:
    before = lister.list()
    change(layer)
    after = lister.list((), before)
    assert before is not None and after is not None and sorted(after.files) == left and box.commands == 1
    same = [path for path in after.files if after.files[path] is before.files.get(path)]
    assert sorted(same) == [path for path in left if path in before.files and not (_at(layer, path)).exists()]


def _at(layer: UpperLayer, path: bytes) -> Path:
    return _folder(layer) / os.fsdecode(path)


def test_an_emptied_folder_hides_what_lies_under_it(box: Layered, lister: FolderLister, layer: UpperLayer) -> None:
    _write(layer, "d/new")
    os.setxattr(_folder(layer) / "d", f"{USER}opaque", b"y")
    found = lister.list()
    assert found is not None and sorted(found.files) == [b"a", b"d/new"]


def test_a_listing_is_the_same_while_nothing_is_written(lister: FolderLister, layer: UpperLayer) -> None:
    _write(layer, "a")
    first = lister.list()
    assert first is not None and first.fresh == {first.files[b"a"].facts}
    time.sleep(_TICK)
    second = lister.list((), first)
    assert second is not first and second is not None and not second.fresh
    assert second.files[b"a"] is first.files[b"a"]
    os.stat(_folder(layer) / "a")
    assert (_folder(layer) / "a").read_text() == "new" and lister.list((), second) is second
    (_folder(layer) / "a").chmod(0o600)
    third = lister.list((), second)
    assert third is not second and third is not None and third.files[b"a"].facts.startswith(b"f 600 ")


def test_facts_are_those_that_find_prints(box: Layered, lister: FolderLister, layer: UpperLayer) -> None:
    names = ("plain", "run", "link", "pipe")
    _write(layer, "plain", "run")
    (_folder(layer) / "run").chmod(0o4755)
    (_folder(layer) / "link").symlink_to("a")
    os.mkfifo(_folder(layer) / "pipe")
    os.utime(_folder(layer) / "plain", ns=(1, 1_500_000_000_000_000_001))
    joined, found = lister.list(), listing.list_files(box, str(_folder(layer)))
    assert joined is not None and found is not None and sorted(found.files) == sorted(map(os.fsencode, names))
    assert all(joined.files[path] == listed for path, listed in found.files.items())


@pytest.mark.parametrize(
    "cause", ["another layer", "other folders left out", "no layer", "too much", "unreadable", "a clock set back"]
)
def test_all_files_are_listed_where_the_layer_does_not_tell(
    box: Layered, lister: FolderLister, layer: UpperLayer, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out: tuple[bytes, ...] = ()
    (box.folder / "new").touch()
    match cause:
        case "another layer":
            assert box.layer is not None
            box.layer = replace(box.layer, root=box.layer.root.parent / "none")
        case "other folders left out":
            left_out = (b"d",)
            time.sleep(_TICK)
        case "no layer":
            box.layer = None
        case "too much":
            monkeypatch.setattr(upper_layers, "_MOST_WRITTEN", 0)
            _write(layer, "x")
        case "unreadable":
            (_folder(layer) / "d").mkdir()
            os.setxattr(_folder(layer) / "d", f"{USER}redirect", b"/e")
        case _:
            monkeypatch.setattr(time, "time", lambda: 1.0)
    found = lister.list(left_out)
    assert found is not None and b"new" in found.files and found.records and box.commands == 2


def test_too_much_is_not_read_once_more(
    lister: FolderLister, layer: UpperLayer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upper_layers, "_MOST_WRITTEN", 0)
    _write(layer, "x")
    lister.list()
    monkeypatch.undo()
    monkeypatch.setattr(listing, "read_upper", lambda *_: pytest.fail("it was read"))
    assert lister.list() is not None


def test_files_of_several_names_are_not_followed_in_the_layer_alone(box: Layered) -> None:
    os.link(box.folder / "a", box.folder.parent / "elsewhere")
    assert box.layer is not None
    time.sleep(_WITHIN_A_TICK)
    box.layer = replace(box.layer, since=time.time())
    time.sleep(_TICK)
    lister = FolderLister(box, str(box.folder))
    found = [lister.list() for _ in range(2)]
    assert all(listed is not None and listed.records for listed in found) and box.commands == 2


def test_what_was_made_while_all_files_were_listed_is_not_taken_for_older(box: Layered) -> None:
    """Such a file may have been written and removed between two looks at the layer."""
    lister = FolderLister(box, str(box.folder))
    (box.folder / "passing").touch()
    found = lister.list()
    assert found is not None and b"passing" in found.files
    (box.folder / "passing").unlink()
    again = lister.list((), found)
    assert again is not None and sorted(again.files) == [b"a", b"d/b", b"d/e/c"] and box.commands == 2


def test_what_is_written_is_read_where_it_lies_and_what_is_not_by_a_command(
    box: Layered, lister: FolderLister, layer: UpperLayer
) -> None:
    _write(layer, "d/new")
    found = lister.list()
    assert found is not None
    read = {path: content.read() for path, content, _ in lister.read([found.files[b"d/new"]])}
    assert read == {b"d/new": b"new"} and box.commands == 1
    read = {path: content.read(size) for path, content, size in lister.read([found.files[it] for it in (b"a", b"d/b")])}
    assert read == {b"a": b"a", b"d/b": b"d/b"} and box.commands == 2


@pytest.mark.parametrize("change", ["longer", "as long", "a link", "a link above", "a pipe", "gone"])
def test_what_changes_after_the_listing_is_left_to_a_command(
    box: Layered, lister: FolderLister, layer: UpperLayer, change: str
) -> None:
    _write(layer, "d/new")
    time.sleep(_TICK)
    found = lister.list()
    assert found is not None
    file = _folder(layer) / "d/new"
    match change:
        case "longer" | "as long":
            file.write_text("NEW" if change == "as long" else "longer")
        case "a link above":
            (_folder(layer) / "d").rename(_folder(layer) / "e")
            (_folder(layer) / "d").symlink_to("e")
        case _:
            file.unlink()
    if change == "a link":
        file.symlink_to("/etc/passwd")
    if change == "a pipe":
        os.mkfifo(file)
    with pytest.raises(ExtractionFailed):  # of this box, which has no such file
        list(lister.read([found.files[b"d/new"]]))
    assert box.commands == 2


@pytest.fixture
def known(box: Layered, layer: UpperLayer) -> listing.SeenUnder:
    """What a lister has seen of two layers, and what another one may begin with."""
    assert box.layer is not None
    box.layer = replace(box.layer, under=("two", "one"))
    lister = FolderLister(box, str(box.folder))
    lister.list()
    assert lister.seen is not None and sorted(lister.seen.files) == [b"a", b"d/b", b"d/e/c"]
    box.commands = 0
    return lister.seen


def test_what_was_seen_of_the_same_layers_is_not_listed_again(
    box: Layered, layer: UpperLayer, known: listing.SeenUnder
) -> None:
    _write(layer, "d/b", "new")
    found = FolderLister(box, str(box.folder), known).list()
    assert found is not None and sorted(found.files) == [b"a", b"d/b", b"d/e/c", b"new"] and not box.commands
    assert found.files[b"a"] is known.files[b"a"] and found.files[b"d/b"] is not known.files[b"d/b"]


def test_of_a_layer_more_that_layer_alone_is_read(
    box: Layered, layer: UpperLayer, known: listing.SeenUnder, tmp_path: Path
) -> None:
    more = replace(layer, root=tmp_path / "more")
    _folder(more).mkdir(parents=True)
    _write(more, "d/b", "n/x")
    _whiteout(_folder(more) / "a")
    _write(layer, "n/y")
    assert box.layer is not None
    box.layer = replace(box.layer, under=(str(more.root), "two", "one"))
    lister = FolderLister(box, str(box.folder), known)
    found = lister.list()
    assert found is not None and sorted(found.files) == [b"d/b", b"d/e/c", b"n/x", b"n/y"] and not box.commands
    assert lister.seen is not None and sorted(lister.seen.files) == [b"d/b", b"d/e/c", b"n/x"]


def test_a_layer_more_under_the_same_sandbox_costs_no_command(
    box: Layered, layer: UpperLayer, tmp_path: Path, known: listing.SeenUnder
) -> None:
    lister = FolderLister(box, str(box.folder), known)
    _write(layer, "d/b")
    before = lister.list()
    (tmp_path / "own").mkdir()
    assert box.layer is not None
    box.layer = replace(box.layer, root=tmp_path / "own", under=(str(layer.root), "two", "one"))
    after = lister.list()
    assert before is not None and after is not None and not box.commands
    assert after.files == before.files


@pytest.mark.parametrize("cause", ["others", "unknown", "left out", "elsewhere", "two more", "too much", "names"])
def test_all_files_are_listed_where_what_was_seen_is_of_other_layers(
    box: Layered,
    layer: UpperLayer,
    known: listing.SeenUnder,
    cause: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert box.layer is not None
    more = replace(layer, root=tmp_path / "more")
    left_out: tuple[bytes, ...] = ()
    match cause:
        case "others":
            box.layer = replace(box.layer, under=("three", "one"))
        case "unknown":
            box.layer = replace(box.layer, under=())
        case "left out":
            left_out = (b"n",)
        case "elsewhere":
            known = replace(known, below=("other",))
        case "two more":
            box.layer = replace(box.layer, under=("four", "three", "two", "one"))
        case _:
            box.layer = replace(box.layer, under=(str(more.root), "two", "one"))
            _folder(more).mkdir(parents=True)
            _write(more, "x")
            os.link(_folder(more) / "x", _folder(more) / "y")
            if cause == "too much":
                monkeypatch.setattr(upper_layers, "_MOST_WRITTEN", 1)
    found = FolderLister(box, str(box.folder), known).list(left_out)
    assert found is not None and sorted(found.files) == [b"a", b"d/b", b"d/e/c"] and box.commands == 1


# ---- trees of a sandbox on an overlay


@pytest.fixture
def overlaid(bubblewrap: None) -> None:
    if not layers_work():
        pytest.skip("this kernel mounts no overlay for users, or not below the temporary folder")


@contextmanager
def _on_a_layer(store: TreeStore, start: str) -> Iterator[LocalSandbox]:
    with LocalSandbox(SandboxConfig(None)) as sandbox:
        place_tree(sandbox, store, start)
        sandbox.restore(sandbox.snapshot())
        yield sandbox


@pytest.mark.usefixtures("overlaid")
def test_every_tree_of_a_sandbox_on_an_overlay_is_that_of_an_extraction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store(tmp_path)
    with _on_a_layer(store, plant(store, START)) as sandbox:
        assert listings_of_agents(sandbox, store, monkeypatch) < 3


@pytest.mark.usefixtures("overlaid")
def test_trees_are_followed_where_too_much_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = new_store(tmp_path)
    start = plant(store, START)
    with _on_a_layer(store, start) as sandbox:
        tracker = Tracker(sandbox, store, start_tree=start, ignore_rules_from=start)
        trees = [tracker.take()]
        for step in range(3):
            sandbox.exec(f"echo {step} > a")
            with monkeypatch.context() as patch:
                patch.setattr(upper_layers, "_MOST_WRITTEN", 0 if step else 2_000)
                patch.setattr("environments.checkouts.tracking.extract_tree", lambda *_, **__: pytest.fail("extracted"))
                trees.append(tracker.take())
            check_tree(sandbox, store, tracker, start, str(step))
        assert len(set(trees)) == 4


_SYSTEM_CALLS = """
import mmap, os
for name in ("opaque", "redirect", "whiteout", "metacopy"):
    try:
        os.setxattr("d", f"user.overlay.{name}", b"y")
    except OSError:
        pass
try:
    os.mknod("many/x.new", 0o020000, 0)
    os.rename("many/x.new", "many/x")
except OSError:
    pass
before = os.stat("a")
with open("a", "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
    memory[0:1] = b"O"
os.utime("a", ns=(before.st_atime_ns, before.st_mtime_ns))
"""


@pytest.mark.usefixtures("overlaid")
def test_nothing_is_hidden_by_attributes_that_an_agent_sets(tmp_path: Path) -> None:
    store = new_store(tmp_path)
    start = plant(store, START)
    with _on_a_layer(store, start) as sandbox:
        tracker = Tracker(sandbox, store, start_tree=start, ignore_rules_from=start)
        tracker.take()
        done = sandbox.exec("/usr/bin/python3 -", stdin=_SYSTEM_CALLS.encode())
        if done.exit_code == 127:
            pytest.skip("there is no python3 in the sandbox")
        check_tree(sandbox, store, tracker, start, done.text)
        assert set(store.entries(tracker.take())) == set(store.entries(start))


@pytest.mark.usefixtures("overlaid")
@pytest.mark.parametrize("seed", range(2))
def test_trees_of_chance_are_those_of_extractions(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store = new_store(tmp_path)
    start = plant(store, START)
    names = ["a", "d", "d/b", "d/e", "d/e/run", "many", "many/x", "n", "n/x", "n/y/z", "link", "l/k"]
    acts = (
        "echo {2} > {0}",
        "echo {2} >> {0}",
        "mkdir -p {0}; echo {2} > {0}/{2}",
        "rm -rf {0}",
        "rm -rf {0}; mkdir -p {0}; echo {2} > {0}/f",
        "mv -T {0} {1}",
        "rm -rf {1}; mv -T {0} {1}",
        "cp -a {0} {1}",
        "ln -sfT {1} {0}",
        "ln {0} {1}",
        "chmod {3} {0}",
        "touch -d @1000 {0}",
    )
    with _on_a_layer(store, start) as sandbox:
        tracker = Tracker(sandbox, store, start_tree=start, ignore_rules_from=start)
        tracker.take()
        for _ in range(25):
            lines = [
                rng.choice(acts).format(*rng.sample(names, 2), rng.randrange(5), rng.choice(("644", "755")))
                for _ in range(rng.randrange(1, 4))
            ]
            command = "; ".join(lines)
            sandbox.exec(f"{{ {command}; }} 2>/dev/null")
            check_tree(sandbox, store, tracker, start, command)


@pytest.mark.usefixtures("overlaid")
def test_a_layer_is_told_of_the_workdir_alone_and_of_what_lies_in_it() -> None:
    laid = LaidFolder("/opt/tools", "/usr")
    with LocalSandbox(SandboxConfig(None, "/testbed", laid=(laid,))) as sandbox:
        sandbox.exec("mkdir -p src; echo 1 > src/f")
        assert sandbox.upper_layer("/testbed") is None
        sandbox.restore(sandbox.snapshot())
        whole, part = sandbox.upper_layer("/testbed"), sandbox.upper_layer("/testbed/src/")
        assert whole is not None and part is not None and (whole.below, part.below) == (("work",), ("work", "src"))
        assert sandbox.upper_layer("/tmp") is None and sandbox.upper_layer("/testbed2") is None
        sandbox.restore(sandbox.snapshot())
        assert sandbox.upper_layer("/testbed") not in (None, whole)
        sandbox.config = replace(sandbox.config, laid=(replace(laid, path="/testbed/tools"),))
        assert sandbox.upper_layer("/testbed") is None
