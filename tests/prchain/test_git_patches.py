"""Patches as values: what git prints is read back line by line, whatever the content looks like."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prchain.core.errors import GitError, IncompleteRepository
from prchain.core.git import FilePatch, GitRepository, parse_patch
from tests.miner.gitworld import Content, World, git

Files = dict[str | bytes, Content]


def pair(folder: Path, before: Files, after: Files) -> tuple[GitRepository, str, str]:
    folder.mkdir(exist_ok=True)
    world = World(folder / "w.git")
    world.commit("main", {"keep": "x\n", **before}, "before")
    world.commit("main", after, "after")
    world.save()
    old, new = world.shas([1, 2])
    return GitRepository.open(world.path), old, new


def patch(folder: Path, before: Files, after: Files) -> list[FilePatch]:
    repository, old, new = pair(folder, before, after)
    (found,) = repository.patches([(old, new)], context=1)
    assert {file.path for file in parse_patch(repository.patch_text(old, new).decode("utf-8", "surrogateescape"))} >= {
        file.path for file in found if file.status != "R"
    }
    return found


def test_added_and_removed_lines_are_told_without_their_marks(tmp_path: Path) -> None:
    (file,) = patch(tmp_path, {"a.py": "one\ntwo\nthree\n"}, {"a.py": "one\n2\nthree\n"})
    assert (file.path, file.status, file.added, file.removed) == ("a.py", "M", ("2",), ("two",))
    assert file.hunks[0].lines == (" one", "-two", "+2", " three")


def test_content_that_looks_like_a_header_is_content(tmp_path: Path) -> None:
    hostile = "-- a/x\n++ b/x\n@@ -1 +1 @@\ndiff --git a/y b/y\n\\ No newline at end of file\n" + "0" * 40 + "\n"
    (file,) = patch(tmp_path, {"x": hostile}, {"x": "fine\n"})
    assert file.removed == tuple(hostile.rstrip("\n").split("\n"))
    assert file.added == ("fine",)


def test_a_line_without_an_end_and_an_emptied_file(tmp_path: Path) -> None:
    files = patch(tmp_path, {"a": "last", "b": "gone\n"}, {"a": "new last", "b": ""})
    assert [(file.path, file.added, file.removed) for file in files] == [
        ("a", ("new last",), ("last",)),
        ("b", (), ("gone",)),
    ]


@pytest.mark.parametrize("name", ["with blank.py", 'quo"te.py', "tab\there.py", "new\nline.py", "\u00fcml.py", "b/b/b"])
def test_any_path_is_read_back(tmp_path: Path, name: str) -> None:
    assert [f.path for f in patch(tmp_path, {name: "a\n"}, {name: "b\n"})] == [name]
    assert [f.path for f in patch(tmp_path / "2", {}, {name: ""})] == [name]


def test_a_path_that_is_not_utf8_is_written_as_everywhere(tmp_path: Path) -> None:
    assert [file.path for file in patch(tmp_path, {}, {b"caf\xe9.py": "a\n"})] == ["caf\\xe9.py"]


def test_renames_deletions_binaries_and_modes(tmp_path: Path) -> None:
    text = "".join(f"line {n}\n" for n in range(30))
    before: Files = {"old.py": text, "gone": "a\n", "pic": b"\0\1"}
    after: Files = {"old.py": None, "new.py": text + "more\n", "gone": None, "pic": b"\0\2"}
    files = patch(tmp_path, before, after)
    assert {(f.path, f.old_path, f.status, f.binary) for f in files} == {
        ("new.py", "old.py", "R", False),
        ("gone", None, "D", False),
        ("pic", None, "M", True),
    }


def test_one_stream_answers_many_pairs_in_order_and_an_empty_one_too(tmp_path: Path) -> None:
    repository, old, new = pair(tmp_path, {"a": "1\n"}, {"a": "2\n"})
    found = list(repository.patches([(old, new), (new, new), (new, old)]))
    assert [[file.added for file in files] for files in found] == [[("2",)], [], [("1",)]]


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.text("ab+-@ \\\r\x0c\u2028d", max_size=6), max_size=8),
    st.lists(st.text("ab+-@ \\\r", max_size=6), max_size=8),
)
def test_a_patch_takes_the_one_text_to_the_other(
    tmp_path_factory: pytest.TempPathFactory, before: list[str], after: list[str]
) -> None:
    folder = tmp_path_factory.mktemp("patch")
    texts = ["".join(f"{line}\n" for line in lines) for lines in (before, after)]
    repository, old, new = pair(folder, {"f": texts[0]}, {"f": texts[1]})
    (files,) = repository.patches([(old, new)], context=0)
    lines = list(before)
    for file in files:
        shift = 0
        for hunk in file.hunks:
            start = (hunk.old_start - 1 if hunk.old_count else hunk.old_start) + shift
            assert lines[start : start + hunk.old_count] == [line[1:] for line in hunk.lines if line[0] == "-"]
            lines[start : start + hunk.old_count] = [line[1:] for line in hunk.lines if line[0] == "+"]
            shift += hunk.new_count - hunk.old_count
    assert lines == after


def test_the_patch_as_text_applies_and_makes_the_same_tree(tmp_path: Path) -> None:
    repository, old, new = pair(
        tmp_path, {"a.py": "1\n", "b": b"\0\1", "c": "x\n"}, {"a.py": "2\n", "b": b"\0\2", "c": None, "d e.py": "new"}
    )
    text = repository.patch_text(old, new)
    index = {"GIT_INDEX_FILE": str(tmp_path / "index")}
    git(repository.path, "read-tree", f"--index-output={index['GIT_INDEX_FILE']}", old)
    import os
    import subprocess

    environment = {**os.environ, **index, "GIT_DIR": str(repository.path)}
    subprocess.run(["git", "apply", "--cached", "-"], input=text, env=environment, check=True)
    tree = subprocess.run(["git", "write-tree"], env=environment, check=True, capture_output=True, text=True).stdout
    assert tree.strip() == git(repository.path, "rev-parse", f"{new}^{{tree}}").strip()


@pytest.mark.parametrize(
    ("path", "opening", "shown"),
    [
        ("a.py", "    def near(self):\n", True),
        ("a.go", "func near() {\n", True),
        ("a.ts", "function near() {\n", True),
        ("a.json", "function near() {\n", False),
        ("a.unknown", "def near():\n", False),
    ],
)
def test_whole_functions_are_shown_in_languages_alone_and_whatever_a_user_has_set(
    path: str, opening: str, shown: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "attributes").write_text("* diff=other\n")
    (tmp_path / "config").write_text(f'[core]\nattributesFile = {tmp_path}/attributes\n[diff "other"]\nxfuncname = x\n')
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    lines = [f"        line{number}\n" for number in range(30)]
    before = opening.replace("near", "far") + "".join(lines[:10]) + "\n" + opening + "".join(lines[10:])
    files: Files = {path: before}
    repository, old, new = pair(tmp_path, files, {path: before.replace("line20", "changed"), ".gitattributes": "x"})
    text = repository.patch_text(old, new, [path], functions=True).decode()
    assert ("line11\n" in text, "line29\n" in text, "line5\n" in text) == (shown, shown, False)
    assert repository.patch_text(old, new, [path]).decode().count("\n ") == 6


def test_a_patch_that_is_cut_off_is_an_error() -> None:
    with pytest.raises(GitError):
        parse_patch("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,3 @@\n one\n")


@pytest.mark.parametrize("place", [0, 1, 2])
def test_an_unknown_commit_is_named(tmp_path: Path, place: int) -> None:
    repository, old, new = pair(tmp_path, {"a": "1\n"}, {"a": "2\n"})
    pairs = [(old, new), (new, old)]
    pairs.insert(place, (old, "12" * 20))
    with pytest.raises(GitError, match=f"holds no commit {'12' * 20}"):
        list(repository.patches(pairs))


def lose(repository: GitRepository, name: str) -> None:
    """Take the content of a file out of the repository."""
    blob = repository.run("rev-parse", name).strip()
    for pack in (repository.path / "objects" / "pack").glob("*.pack"):
        content = pack.read_bytes()
        for file in pack.parent.glob(f"{pack.stem}.*"):
            file.chmod(0o600)
            file.unlink()
        git(repository.path, "unpack-objects", "-q", stdin=content)
    (repository.path / "objects" / blob[:2] / blob[2:]).unlink()


def test_a_missing_blob_is_an_incomplete_repository(tmp_path: Path) -> None:
    repository, old, new = pair(tmp_path, {"a": "1\n"}, {"a": "2\n"})
    lose(repository, f"{new}:a")
    with pytest.raises(IncompleteRepository):
        list(repository.patches([(old, new)]))


def test_a_patch_that_git_died_over_is_never_given_as_a_whole_one(tmp_path: Path) -> None:
    """Git prints the files before the one whose content is missing, and dies after them."""
    repository, old, new = pair(tmp_path, {"a": "1\n", "b": "1\n"}, {"a": "2\n", "b": "2\n"})
    lose(repository, f"{new}:b")
    for pairs, whole in (([(old, new)], 0), ([(old, old), (old, new), (old, old)], 1)):
        found = []
        with pytest.raises(IncompleteRepository):
            for patch in repository.patches(pairs):
                found.append(patch)
        assert found == [[]] * whole
    with pytest.raises(IncompleteRepository):
        next(repository.patches([(old, new)]))
    with pytest.raises(IncompleteRepository):
        next(repository.line_changes([(new, old)]))


def test_where_git_died_its_own_words_tell_why_and_not_those_of_its_reader(tmp_path: Path) -> None:
    repository, _, new = pair(tmp_path, {"a": "1\n"}, {"a": "2\n"})

    def read(*arguments: str) -> None:
        with repository.stream(*arguments) as output:
            output.read()
            raise GitError("the reader's words")

    with pytest.raises(GitError, match="git cat-file: fatal: "):
        read("cat-file", "blob", "12" * 20)
    with pytest.raises(GitError, match="the reader's words"):
        read("cat-file", "-t", new)


def test_words_and_paths_of_a_commit(tmp_path: Path) -> None:
    repository, old, new = pair(tmp_path, {"a.py": "alpha_beta = gamma\n"}, {"b/c.py": "delta.epsilon()\n"})
    words = ["alpha_beta", "alpha", "gamma", "epsilon", "-x", "", "."]
    assert repository.words_at(old, words) == {"alpha_beta", "gamma"}
    assert repository.words_at(new, words) == {"alpha_beta", "gamma", "epsilon"}
    assert repository.words_at(new, []) == set()
    assert repository.paths_at(new) == {"keep", "a.py", "b/c.py"}
    assert repository.blob(f"{new}:b/c.py") == b"delta.epsilon()\n"
