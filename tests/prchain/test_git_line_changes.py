"""Reading the lines that commits change as git prints them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from prchain.core.errors import GitError
from prchain.core.git import GitRepository
from prchain.core.git.line_changes import FileLines, read_line_changes
from prchain.core.git.standins import StandInRepository
from tests.miner.gitworld import LINK, SUBMODULE, World, git

SHA = b"a" * 40 + b"\n"


def changes(path: Path, *marks: str) -> list[tuple[str, list[FileLines]]]:
    line = git(path, "rev-list", "--first-parent", "--reverse", "main").split()
    before: list[str | None] = [None, *line[:-1]]
    return list(GitRepository.open(path).line_changes(zip(line, before, strict=True)))


def test_every_kind_of_change_is_read(tmp_path: Path) -> None:
    world = World(tmp_path / "w.git")
    text = "".join(f"line {number}\n" for number in range(9))
    world.commit("main", {"a b.py": text, "ü\t.py": text + "end", "bin": b"\0", "lib": (SUBMODULE, b"c" * 40)}, "start")
    world.commit(
        "main", {"a b.py": None, "new/a.py": text + "more\r\n", "bin": b"\0\1", "link": (LINK, b"bin")}, "rename"
    )
    world.commit("main", {"ü\t.py": text, "link": "text\n", "lib": None, "new/a.py": ("100755", text.encode())}, "ends")
    world.commit("main", {}, "nothing")
    world.save()
    found = changes(world.path)
    assert [len(files) for _, files in found] == [4, 3, 5, 0]
    first = {file.new_path: file for file in found[0][1]}
    assert first["ü\t.py".encode()].hunks[0].added[-1] == b"end"
    assert first[b"lib"].submodule and first[b"bin"].binary
    (renamed,) = [file for file in found[1][1] if file.new_path == b"new/a.py"]
    assert (renamed.old_path, renamed.hunks[0].added, renamed.hunks[0].before) == (b"a b.py", (b"more\r\n",), 9)
    sides = [(file.old_path, file.new_path) for file in found[2][1]]
    assert (b"link", None) in sides and (None, b"link") in sides
    (ended,) = [file for file in found[2][1] if file.new_path == "ü\t.py".encode()]
    assert (ended.hunks[0].removed, ended.hunks[0].added) == ((b"end",), ())


def test_hunks_name_the_function_around_them_with_its_indentation(tmp_path: Path) -> None:
    world = World(tmp_path / "w.git")
    before = "class A:\n    def run(self):\n" + "        work()\n" * 5
    world.commit(
        "main", {"a.py": before, "a.rs": "impl A {\n    fn run() {\n        x();\n        y();\n    }\n}\n"}, "start"
    )
    world.commit(
        "main",
        {"a.py": before + "        end()\n", "a.rs": "impl A {\n    fn run() {\n        x();\n    }\n}\n"},
        "more",
    )
    world.save()
    sections = {file.new_path: file.hunks[0].section for file in changes(world.path)[1][1]}
    assert sections == {b"a.py": b"    def run(self):", b"a.rs": b"    fn run() {"}


def test_attributes_of_the_repository_hide_nothing(tmp_path: Path) -> None:
    world = World(tmp_path / "w.git")
    world.commit("main", {".gitattributes": "*.py -diff\n", "a.py": "x = 1\n"}, "start")
    world.save()
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(world.path), str(clone))
    assert not [file.new_path for file in changes(clone)[0][1] if file.binary]


@pytest.mark.parametrize(
    "output",
    [
        b"nonsense\n",
        SHA + b"diff --git a/x b/x\n@@ nothing @@\n",
        SHA + b"diff --git a/x b/x\n@@ -1,2 +0,0 @@\n-only one\n",
        SHA + b"diff --git a/x b/x\n@@ -1 +1 @@\n-one\n unchanged\n",
    ],
)
def test_output_that_is_none_of_gits_is_refused(output: bytes) -> None:
    with pytest.raises(GitError):
        list(read_line_changes(io.BytesIO(output)))


def test_missing_blobs_are_empty_in_the_stand_in_and_nothing_is_written_to_the_repository(tmp_path: Path) -> None:
    world = World(tmp_path / "w.git")
    world.commit("main", {"a.py": "x = 1\n"}, "start")
    world.commit("main", {"a.py": "x = 2\n", "b.py": "y = 1\n"}, "more")
    world.save()
    blob = git(world.path, "hash-object", "--stdin", stdin=b"x = 1\n").strip()
    (world.path / "objects" / blob[:2] / blob[2:]).unlink()
    repository = GitRepository.open(world.path)
    before = sorted(world.path.rglob("*"))
    assert repository.missing_blobs([world.sha("main")]) == {blob}
    odd = tmp_path / 'od"d\\ folder'
    standing = StandInRepository.over(repository, odd, [blob])
    assert standing.replaced() == {blob}
    line = git(world.path, "rev-list", "--reverse", "main").split()
    found = list(standing.line_changes([(line[0], None), (line[1], line[0])]))
    assert [[len(hunk.added) for file in files for hunk in file.hunks] for _, files in found] == [[], [1, 1]]
    assert sorted(world.path.rglob("*")) == before


def test_blame_takes_ranges(tmp_path: Path) -> None:
    world = World(tmp_path / "w.git")
    world.commit("main", {"-a.py": "one\ntwo\nthree\n"}, "start")
    world.commit("main", {"-a.py": "one\n2\nthree\n"}, "more")
    world.save()
    repository = GitRepository.open(world.path)
    first, second = world.shas([1, 2])
    assert repository.blame(second, b"-a.py") == [first, second, first]
    assert repository.blame(second, b"-a.py", [(1, 1), (2, 1)]) == [first, second]


def test_places_of_lines_before_follow_a_file_that_moved(tmp_path: Path) -> None:
    world = World(tmp_path / "w.git")
    text = "".join(f"line {number}\n" for number in range(30))
    odd = 'odd "n\u00e4me".py'
    world.commit("main", {odd: text}, "start")
    world.commit("main", {odd: None, "b.py": f"new\n{text}"}, "move")
    world.commit("main", {"b.py": "new\n" + text.replace("line 3\n", "other\n")}, "more")
    world.save()
    first, *_, last = git(world.path, "rev-list", "--reverse", "main").split()
    repository = GitRepository.open(world.path)
    found = repository.places_before(last, b"b.py", [(1, 2), (5, 2)], first)
    assert found == [None, (odd.encode(), 1), None, (odd.encode(), 5)]
