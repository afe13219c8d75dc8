"""The tree after each step is the one that an extraction gives, whatever was done, and costs a command or two."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from environments.checkouts.checkout import extract_tree, place_tree
from environments.checkouts.junk import CACHE_SIGNATURE
from environments.checkouts.listing import FileListing, list_files
from environments.checkouts.tracking import Tracker
from environments.sandboxes.sandbox import ExecResult
from prchain.core.errors import ExtractionFailed
from prchain.core.git.trees import EXECUTABLE, LINK, SUBMODULE, TreeStore
from tests.environments.folder_sandbox import FolderSandbox
from tests.prchain.treeworld import Content, new_store, plant

START: dict[str | bytes, Content] = {
    ".gitignore": "*.log\njunk/\n",
    "a": "one\n",
    "d/b": "two\n",
    "d/e/run": (EXECUTABLE, "#!/bin/sh\n"),
    "d/tracked.log": "tracked\n",
    "link": (LINK, "a"),
    b"odd\xff\n-x": "odd\n",
    "sub": (SUBMODULE, "1" * 40),
}


class Counting(FolderSandbox):
    """Counts commands and archives."""

    commands = 0
    archives = 0

    def exec(self, command: str, **arguments: Any) -> ExecResult:
        self.commands += 1
        return super().exec(command, **arguments)

    def get(self, path: str) -> Iterator[bytes]:
        self.archives += 1
        return super().get(path)


class Scene:
    """A placed tree, and its tracker after the first tree."""

    def __init__(self, folder: Path) -> None:
        self.store: TreeStore = new_store(folder)
        self.start = plant(self.store, START)
        self.box = Counting(folder / "testbed")
        self.folder = self.box.folder
        self.folder.mkdir()
        place_tree(self.box, self.store, self.start)
        self.tracker = Tracker(self.box, self.store, start_tree=self.start, ignore_rules_from=self.start)
        assert self.tracker.take() == self.start
        self.box.commands = self.box.archives = 0

    def extracted(self) -> str:
        return extract_tree(self.box, self.store, start_tree=self.start, ignore_rules_from=self.start).tree

    def settle(self) -> None:
        """Have the tracker see that no file is young any more."""
        grow_old()
        self.tracker.take()
        self.box.commands = self.box.archives = 0


def grow_old() -> None:
    """Wait until no file is as young as the clock's tick: younger ones are read again, whatever their times say."""
    time.sleep(0.08)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


NAMES = [
    b"a",
    b"d/b",
    b"d/e/run",
    b"d/e/new",
    b"n",
    b"n/x",
    b"n/deep/y",
    b"odd\xff\n-x",
    b"-C",
    b"x.log",
    b"junk/j",
    b"d/tracked.log",
    b".gitignore",
    b"link",
    b"sub",
    b"sub/inner",
    b"c/CACHEDIR.TAG",
    b"c/cached",
    b"[a]*?\\",
    b"n/.git/config",
    b".GIT/x",
    b" ",
    b"caf\xc3\xa9",
]
FOLDERS = [b"d", b"d/e", b"n", b"n/deep", b"junk", b"c", b"m", b"sub", b"d/moved", b"n/.git"]


def _try(call: Any, *arguments: Any) -> None:
    with contextlib.suppress(OSError):
        call(*arguments)


class Hand:
    """Changes a folder as an agent may; changes that are not possible there are left out."""

    def __init__(self, folder: Path) -> None:
        self.root = os.fsencode(folder)
        self.outside = self.root + b".outside"
        os.makedirs(self.outside + b"/kept/below", exist_ok=True)
        with open(self.outside + b"/kept/below/f", "wb") as file:
            file.write(b"from outside")

    def do(self, operation: str, name: bytes, folder: bytes, content: bytes) -> None:
        path, place = os.path.join(self.root, name), os.path.join(self.root, folder)
        _try(getattr(self, operation), path, place, content)

    def create(self, path: bytes, place: bytes, content: bytes) -> None:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    def edit_and_set_back_the_time(self, path: bytes, place: bytes, content: bytes) -> None:
        before = os.stat(path)
        with open(path, "r+b") as file:
            old = file.read()
            file.seek(0)
            file.write(bytes(byte ^ 1 for byte in old))
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def chmod(self, path: bytes, place: bytes, content: bytes) -> None:
        os.chmod(path, os.lstat(path).st_mode ^ 0o100)

    def delete(self, path: bytes, place: bytes, content: bytes) -> None:
        os.unlink(path)

    def delete_folder(self, path: bytes, place: bytes, content: bytes) -> None:
        shutil.rmtree(place)

    def rename(self, path: bytes, place: bytes, content: bytes) -> None:
        os.makedirs(place, exist_ok=True)
        os.rename(path, os.path.join(place, os.path.basename(path)))

    def rename_folder(self, path: bytes, place: bytes, content: bytes) -> None:
        os.rename(place, os.path.join(self.root, b"m"))

    def swap(self, path: bytes, place: bytes, content: bytes) -> None:
        other = os.path.join(self.root, b"a")
        os.rename(path, path + b"~")
        os.rename(other, path)
        os.rename(path + b"~", other)

    def move_in(self, path: bytes, place: bytes, content: bytes) -> None:
        shutil.rmtree(place, ignore_errors=True)
        os.rename(self.outside + b"/kept", place)

    def link(self, path: bytes, place: bytes, content: bytes) -> None:
        os.symlink(content.strip(b"\0") or b"/etc/passwd", path)

    def hard_link(self, path: bytes, place: bytes, content: bytes) -> None:
        os.makedirs(place, exist_ok=True)
        os.link(path, os.path.join(place, b"hard"))

    def fifo(self, path: bytes, place: bytes, content: bytes) -> None:
        os.mkfifo(path)

    def tag(self, path: bytes, place: bytes, content: bytes) -> None:
        self.create(os.path.join(place, b"CACHEDIR.TAG"), place, CACHE_SIGNATURE)


CONTENTS = st.sampled_from([b"", b"one\n", b"two\n", b"\0\xff", b"x" * 5000])
OPERATIONS = [name for name in vars(Hand) if name[0] != "_" and name != "do"]


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.lists(
            st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(NAMES), st.sampled_from(FOLDERS), CONTENTS),
            min_size=1,
            max_size=5,
        ),
        min_size=1,
        max_size=6,
    )
)
def test_every_tree_is_that_of_an_extraction(tmp_path_factory: pytest.TempPathFactory, steps: Any) -> None:
    scene = Scene(tmp_path_factory.mktemp("tracked"))
    hand = Hand(scene.folder)
    for step in steps:
        for operation in step:
            hand.do(*operation)
        assert scene.tracker.take() == scene.extracted(), step
    scene.settle()
    assert scene.tracker.take() == scene.extracted()


STEPS = st.lists(
    st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.sampled_from(NAMES), st.sampled_from(FOLDERS), CONTENTS), max_size=4
    ),
    max_size=3,
)


def _make_old(folder: Path) -> None:
    """As the files of a stage are that was placed long ago."""
    for path in folder.rglob("*"):
        if ".git" not in path.parts:
            os.utime(path, (1_600_000_000.25, 1_600_000_000.75), follow_symlinks=False)


def _copy(scene: Scene, *, whole_seconds: bool = False) -> Counting:
    """As a snapshot's branch: all files are new ones, and their times may be cut off."""
    folder = Path(tempfile.mkdtemp(dir=scene.folder.parent)) / "testbed"
    subprocess.run(["cp", "-a", scene.folder, folder], check=True)
    for path in folder.rglob("*") if whole_seconds else ():
        os.utime(path, (0, int(path.lstat().st_mtime)), follow_symlinks=False)
    return Counting(folder)


def _begun_as(scene: Scene, box: Counting) -> Tracker:
    tracker = Tracker(box, scene.store, start_tree=scene.start, ignore_rules_from=scene.start)
    known = scene.tracker.known()
    assert known is not None
    tracker.begin_as(known)
    return tracker


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=STEPS, after=STEPS, whole_seconds=st.booleans())
def test_every_tree_of_a_copy_is_that_of_an_extraction(
    tmp_path_factory: pytest.TempPathFactory, before: Any, after: Any, whole_seconds: bool
) -> None:
    scene = Scene(tmp_path_factory.mktemp("tracked"))
    _make_old(scene.folder)
    scene.settle()
    hand = Hand(scene.folder)
    for step in before:
        for operation in step:
            hand.do(*operation)
        scene.tracker.take()
    box = _copy(scene, whole_seconds=whole_seconds)
    tracker = _begun_as(scene, box)
    hand = Hand(box.folder)
    for step in ([], *after):
        for operation in step:
            hand.do(*operation)
        extracted = extract_tree(box, scene.store, start_tree=scene.start, ignore_rules_from=scene.start).tree
        assert tracker.take() == extracted, step


@pytest.mark.parametrize("whole_seconds", [False, True])
def test_a_copys_first_tree_costs_two_commands_and_no_archive(scene: Scene, whole_seconds: bool) -> None:
    _make_old(scene.folder)
    scene.settle()
    box = _copy(scene, whole_seconds=whole_seconds)
    tracker = _begun_as(scene, box)
    grow_old()
    (box.folder / "a").write_text("changed\n")
    assert scene.store.entries(tracker.take()).keys() == scene.store.entries(scene.start).keys()
    assert (box.commands, box.archives) == (3, 0)


def test_the_tree_of_what_was_just_placed_is_known_by_one_command(scene: Scene) -> None:
    (scene.folder / "d" / "b").write_text("longer than placed\n")
    (scene.folder / "a").write_text("ONE\n")  # a size that was placed counts as what was placed
    (scene.folder / "made").write_text("by the refresh")
    (scene.folder / "x.log").write_text("junk")
    (scene.folder / "d" / "e" / "run").chmod(0o644)
    grow_old()
    tracker = Tracker(scene.box, scene.store, start_tree=scene.start, ignore_rules_from=scene.start)
    scene.box.commands = 0
    tracker.begin_placed(scene.start)
    assert (scene.box.commands, scene.box.archives) == (2, 0)
    found, whole = scene.store.entries(tracker.take()), scene.store.entries(scene.extracted())
    assert found.pop(b"a") == scene.store.entries(scene.start)[b"a"] != whole.pop(b"a")
    assert found == whole
    (scene.folder / "a").write_text("TWO\n")
    assert tracker.take() == scene.extracted()


def _write(path: Path, text: str, modified: float | None = None) -> None:
    path.write_text(text)
    if modified is not None:
        os.utime(path, (modified, modified))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: _write(folder / "a", "two\n"),
        lambda folder: _write(folder / "a", "longer\n", 1_600_000_000.75),
        lambda folder: (folder / "a").unlink(),
        lambda folder: (folder / "new").write_text("x"),
        lambda folder: (folder / "d" / "b").chmod(0o755),
        lambda folder: _swap_for_a_link(folder / "a"),
    ],
)
def test_what_was_changed_between_the_tree_and_the_copy_is_seen(scene: Scene, change: Callable[[Path], object]) -> None:
    _make_old(scene.folder)
    scene.settle()
    change(scene.folder)
    box = _copy(scene)
    tracker = _begun_as(scene, box)
    extracted = extract_tree(box, scene.store, start_tree=scene.start, ignore_rules_from=scene.start).tree
    assert tracker.take() == extracted != scene.start


def test_nothing_changed_costs_one_command_and_no_archive(scene: Scene) -> None:
    scene.settle()
    assert [scene.tracker.take() for _ in range(3)] == [scene.start] * 3
    assert (scene.box.commands, scene.box.archives) == (3, 0)


def test_a_change_costs_two_commands_and_no_archive(scene: Scene) -> None:
    scene.settle()
    (scene.folder / "d" / "b").write_text("changed\n")
    tree = scene.tracker.take()
    assert (scene.box.commands, scene.box.archives) == (2, 0)
    assert tree == scene.extracted() != scene.start


def _cache(folder: Path) -> None:
    (folder / "kept").mkdir()
    (folder / "kept" / "CACHEDIR.TAG").write_bytes(CACHE_SIGNATURE)
    (folder / "kept" / "last").write_text("1")
    (folder / "old.log").write_text("x")


def _swap_for_a_file(path: Path) -> None:
    path.unlink()
    path.write_text("no link any more")


def _swap_for_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("d/b")


def _swap_folder_for_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("no folder any more")


def _swap_for_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "below").write_text("new")


def _swap_for_a_fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("change", "all_files"),
    [
        (lambda folder: (folder / "a").write_text("changed\n"), False),
        (lambda folder: (folder / "d" / "b").chmod(0o755), False),
        (lambda folder: (folder / "d" / "b").rename(folder / "a"), False),
        (lambda folder: (folder / "new.log").write_text("junk"), False),
        (lambda folder: (folder / "old.log").unlink(), False),
        (lambda folder: (folder / "kept" / "last").write_text("2"), False),
        (lambda folder: (folder / "kept" / "more").write_text("2"), False),
        (lambda folder: (folder / "kept" / "CACHEDIR.TAG").unlink(), True),
        (lambda folder: (folder / "kept" / "CACHEDIR.TAG").write_text("another"), True),
        (lambda folder: (folder / "n").write_text("counts"), False),
        (lambda folder: (folder / "d" / "b").unlink(), False),
        (lambda folder: (folder / "d" / "b").rename(folder / "n"), False),
        (lambda folder: _swap_folder_for_a_file(folder / "d"), True),
        (lambda folder: _swap_for_a_folder(folder / "a"), True),
        (lambda folder: _swap_folder_for_a_file(folder / "sub"), True),
        (lambda folder: _swap_for_a_file(folder / "link"), True),
        (lambda folder: _swap_for_a_link(folder / "a"), True),
        (lambda folder: _swap_for_a_fifo(folder / "a"), True),
    ],
)
def test_all_files_are_gone_through_only_where_others_count_than_before(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object], all_files: bool
) -> None:
    _cache(scene.folder)
    scene.settle()
    scene.settle()
    looks: list[FileListing] = []
    follow = scene.tracker._follow

    def seen(listing: FileListing) -> None:
        looks.append(listing)
        follow(listing)

    monkeypatch.setattr(scene.tracker, "_follow", seen)
    change(scene.folder)
    for _ in range(2):  # what is young is read once more
        assert scene.tracker.take() == scene.extracted()
    assert bool(looks) is all_files
    assert scene.box.archives == 2  # the test's own


def test_a_listing_that_goes_on_from_another_is_the_same(scene: Scene) -> None:
    scene.settle()
    before = list_files(scene.box, str(scene.folder))
    assert before is not None and not before.fresh
    again = list_files(scene.box, str(scene.folder), before=before)
    assert again is before
    (scene.folder / "a").write_text("changed\n")
    (scene.folder / "d" / "b").unlink()
    (scene.folder / "n").symlink_to("a")
    box = Lying(scene.folder)
    plain = list_files(box, str(scene.folder))
    assert plain is not None and plain.fresh
    box.answer = box.heard
    after = list_files(box, str(scene.folder), before=before)
    assert after == plain
    assert after.files[b"d/e/run"] is before.files[b"d/e/run"] is not plain.files[b"d/e/run"]


def test_facts_are_fresh_again_where_the_clock_went_back() -> None:
    young = GOOD.replace(b"1600000000.0", b"1699999999.0")
    settled = FileListing.parse(young)
    assert not settled.fresh
    assert FileListing.parse(young.replace(b"1700000000.5", b"1699999999.0"), settled).fresh


def test_a_renamed_folder_is_not_read_again(scene: Scene) -> None:
    scene.settle()
    (scene.folder / "d").rename(scene.folder / "moved")
    tree = scene.tracker.take()
    assert (scene.box.commands, scene.box.archives) == (1, 0)
    assert tree == scene.extracted() != scene.start


def test_large_folders_of_junk_are_listed_no_more_and_do_not_hide_what_counts(scene: Scene) -> None:
    junk = scene.folder / "d" / "junk"
    junk.mkdir()
    for number in range(60):
        (junk / str(number)).write_text("x")
    scene.settle()
    assert scene.tracker.take() == scene.start
    listing = list_files(scene.box, str(scene.folder), scene.tracker._unlisted)
    assert listing is not None and not [path for path in listing.files if b"junk" in path]
    shutil.rmtree(junk)
    junk.symlink_to("b")
    assert scene.tracker.take() == scene.extracted() != scene.start


def test_a_new_cache_is_junk_whatever_it_holds_and_its_files_are_not_read(scene: Scene) -> None:
    scene.settle()
    cache = scene.folder / "cache"
    cache.mkdir()
    (cache / "CACHEDIR.TAG").write_bytes(CACHE_SIGNATURE)
    with (cache / "huge").open("wb") as file:
        file.truncate(1 << 40)  # an extraction would refuse it
    assert scene.tracker.take() == scene.start
    assert scene.box.archives == 0
    (cache / "huge").write_text("x")
    (cache / "CACHEDIR.TAG").write_text("another")
    assert scene.tracker.take() == scene.extracted() != scene.start


def test_programs_that_the_agent_put_first_are_not_run(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("find", "tar", "printf"):
        (scene.box.home / name).write_text("#!/bin/sh\necho lies\n")
        (scene.box.home / name).chmod(0o755)
    monkeypatch.setattr("tests.environments.folder_sandbox._CLEAN", {"PATH": f"{scene.box.home}:{os.environ['PATH']}"})
    scene.settle()
    (scene.folder / "a").write_text("seen\n")
    assert scene.tracker.take() not in {"", scene.start}
    assert scene.box.archives == 0


def test_a_full_extraction_sets_the_tracker_right(scene: Scene) -> None:
    (scene.folder / "a").write_text("new\n")
    extraction = scene.tracker.extract()
    assert extraction.tree == scene.tracker.take() == scene.extracted()


def test_what_is_there_only_while_all_is_extracted_is_in_no_later_tree(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.settle()

    def meanwhile(*arguments: Any, **named: Any) -> Any:
        (scene.folder / "passing").write_text("x")
        found = extract_tree(*arguments, **named)
        (scene.folder / "passing").unlink()
        return found

    monkeypatch.setattr("environments.checkouts.tracking.extract_tree", meanwhile)
    assert b"passing" in scene.store.entries(scene.tracker.extract().tree)
    monkeypatch.undo()
    assert scene.tracker.take() == scene.extracted() == scene.start


def test_folders_deeper_than_python_recurses(scene: Scene) -> None:
    deep = "n/" + "d/" * 1500
    try:
        assert scene.box.exec(f"mkdir -p {deep} && echo deep > {deep}f").exit_code == 0
        tree = scene.tracker.take()
        assert f"{deep}f".encode() in scene.store.entries(tree)
        assert tree == scene.extracted()
    finally:
        scene.box.exec("rm -rf n")  # pytest would recurse, too


@pytest.mark.parametrize("damage", ["gone", "link", "file"])
def test_a_folder_that_is_none_any_more_is_a_failure(scene: Scene, damage: str) -> None:
    scene.folder.rename(scene.folder.with_name("away"))
    if damage == "link":
        scene.folder.symlink_to("away")
    elif damage == "file":
        scene.folder.write_text("x")
    with pytest.raises((ExtractionFailed, OSError)) as caught:
        scene.tracker.take()
    if damage == "link":
        assert isinstance(caught.value, ExtractionFailed)


GOOD = b"1700000000.5\0f 644 1 2 1 3 15.0 1600000000.0\0a\0\0end\0"


@pytest.mark.parametrize("cut", range(len(GOOD)))
def test_a_listing_that_is_cut_off_is_none(cut: int) -> None:
    assert FileListing.parse(GOOD).files[b"a"].size == 3
    with pytest.raises(ValueError):
        FileListing.parse(GOOD[:cut])


class Lying(FolderSandbox):
    """Answers something else than what the program printed."""

    answer: bytes | None = None
    heard = b""
    command_part = "find ."

    def exec(self, command: str, **arguments: Any) -> ExecResult:
        result = super().exec(command, **arguments)
        if self.command_part not in command:
            return result
        self.heard = result.output
        return result if self.answer is None else ExecResult(0, self.answer)


@pytest.mark.parametrize(("age", "seen"), [(0.0, True), (0.02, True), (3.0, False)])
def test_a_file_that_is_as_young_as_the_clocks_tick_is_read_again(tmp_path: Path, age: float, seen: bool) -> None:
    """A second change within a tick leaves the listing as it was; here the listing is made to stay the same."""
    scene = Scene(tmp_path)
    box = Lying(scene.folder)
    tracker = Tracker(box, scene.store, start_tree=scene.start, ignore_rules_from=scene.start)
    tracker.take()
    time.sleep(0.2)
    path = scene.folder / "a"
    path.write_text("one way\n")
    tracker.take()
    now = path.stat().st_ctime + age
    box.answer = b"%.6f\0" % now + box.heard.partition(b"\0")[2]
    before = tracker.take()
    path.write_text("another\n")
    assert (tracker.take() != before) == seen


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("find .", b""),
        ("find .", b"nonsense"),
        ("find .", b"x\0f 644 1 2 1 3 15.0 16.0\0a\0\0end\0"),
        ("find .", b"1.0\0f 6x4 1 2 1 3 0.0 0.0\0a\0\0end\0"),
        ("find .", b"1.0\0f 644 1 2 1 -3 0.0 0.0\0a\0\0end\0"),
        ("find .", b"1.0\0f 644 1 2 1 3 0.0 0.0\0../../etc/passwd\0\0end\0"),
        ("tar -c", b""),
        ("tar -c", b"\0" * 10240),
        ("tar -c", b"nonsense" * 1280),
    ],
)
def test_an_answer_that_is_none_ends_in_an_extraction(tmp_path: Path, asked: str, said: bytes) -> None:
    scene = Scene(tmp_path)
    box = Lying(scene.folder)
    tracker = Tracker(box, scene.store, start_tree=scene.start, ignore_rules_from=scene.start)
    tracker.take()
    grow_old()
    (scene.folder / "a").write_text("changed\n")
    box.command_part, box.answer = asked, said
    assert tracker.take() == scene.extracted() != scene.start
