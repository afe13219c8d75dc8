"""Edits as values, and whether they are the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.stages import Stage
from prchain.core.errors import AlreadyDone, Inexpressible, PrchainError, ReferenceConflicts
from prchain.core.git.trees import EXECUTABLE, LINK, SUBMODULE, TreeEntry, TreeStore
from tests.prchain.treeworld import Content, new_store, plant
from trajectories.curation.graphs.edits import EditedTree, EditFault, edited
from trajectories.curation.graphs.nodes import Action, ActionTool, Node, NodeKind
from trajectories.curation.graphs.reference import TargetPatch, target_patch, unlike

FILES = {"a.py": b"one\ntwo\ntwo\nthree\n", "crlf.txt": b"one\r\ntwo\r\n", "bin": b"\0\1", "latin": b"caf\xe9\nend\n"}


def replace(old: str, new: str, path: str = "a.py") -> Action:
    return Action(ActionTool.STR_REPLACE, path=path, old=old, new=new)


def create(path: str, content: str) -> Action:
    return Action(ActionTool.CREATE, path=path, content=content)


def bash(command: str) -> Action:
    return Action(ActionTool.BASH, command=command)


@pytest.mark.parametrize(
    ("action", "files"),
    [
        (replace("one", "1"), {"a.py": b"1\ntwo\ntwo\nthree\n"}),
        (replace("two\nthree\n", ""), {"a.py": b"one\ntwo\n"}),
        (replace("three\n", "three"), {"a.py": b"one\ntwo\ntwo\nthree"}),
        (replace("one\ntwo", "1\n2", "crlf.txt"), {"crlf.txt": b"1\r\n2\r\n"}),
        (replace("end", "fin", "latin"), {"latin": b"caf\xe9\nfin\n"}),
        (create("b.py", ""), {"b.py": b""}),
        (create("d/b.py", "é\n"), {"d/b.py": "é\n".encode()}),
        (bash("rm a.py"), {"a.py": None}),
        (bash("git rm -q a.py crlf.txt"), {"a.py": None, "crlf.txt": None}),
        (bash("mv a.py 'b c.py'"), {"a.py": None, "b c.py": FILES["a.py"]}),
        (bash("git mv -- a.py d/a.py"), {"a.py": None, "d/a.py": FILES["a.py"]}),
        (bash("rm ./a.py"), {"a.py": None}),
        (bash("mv a.py 'app/[id]/(x)/a.py'"), {"a.py": None, "app/[id]/(x)/a.py": FILES["a.py"]}),
        (bash('mv a.py "it\'s"\\ b.py'), {"a.py": None, "it's b.py": FILES["a.py"]}),
    ],
)
def test_an_edit_gives_the_files_after_it(action: Action, files: dict[str, bytes | None]) -> None:
    assert edited(action, FILES.get) == files


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (replace("four", "4"), "does not stand in a.py byte for byte"),
        (replace(" three", "3"), "line 4 begins a text that differs in white space alone"),
        (replace("two", "2"), "stands 2 times in a.py (lines 2, 3)"),
        (replace("", "2"), "is empty"),
        (replace("one", "one"), "changes nothing"),
        (replace("one", "1", "c.py"), "there is no file c.py"),
        (replace("x", "y", "bin"), "binary"),
        (create("a.py", "x"), "exists already"),
        (bash("rm b.py"), "there is no file b.py"),
        (bash("mv a.py crlf.txt"), "exists already"),
        (bash("rm *.py"), "alone, and names files"),
        (bash("rm -rf d"), "alone, and names files"),
        (bash("sed -i s/one/1/ a.py"), "alone, and names files"),
        (bash("rm a.py; touch b"), "alone, and names files"),
        (bash("rm a.py && touch b"), "alone, and names files"),
        (bash("rm 'a.py"), "alone, and names files"),
        (bash("rm a.py\rcrlf.txt"), "alone, and names files"),
        (bash("mv a.py d/(x)/a.py"), "alone, and names files"),
        (bash("mv a.py ~/a.py"), "alone, and names files"),
        (bash("rm " + "a" * 200_000 + ";"), "alone, and names files"),
        (bash("mv a.py ./crlf.txt"), "exists already"),
        (bash(""), "alone, and names files"),
        (Action(ActionTool.THINK, thought="x"), "an edit creates a file"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(action: Action, words: str) -> None:
    with pytest.raises(EditFault) as fault:
        edited(action, FILES.get)
    assert words in str(fault.value)


@given(st.binary(max_size=40), st.text(max_size=6), st.text(max_size=6))
def test_a_replaced_text_changes_nothing_else(content: bytes, old: str, new: str) -> None:
    try:
        after = edited(replace(old, new, "f"), {"f": content}.get)["f"]
    except EditFault:
        return
    assert after is not None
    back = (
        edited(replace(new, old, "f"), {"f": after}.get)["f"]
        if after.decode("utf-8", "replace").count(new) == 1
        else None
    )
    assert back in {None, content}


# ---- the reference


def stage(base: str, landed: str) -> Stage:
    return Stage(1, 7, base, landed, "2026-01-01T00:00:00Z")


def target(
    store: TreeStore, before: dict[str | bytes, Content], after: dict[str | bytes, Content], start: str = ""
) -> TargetPatch:
    base, landed = store.commit(plant(store, before)), store.commit(plant(store, after))
    return target_patch(store, store, stage(base, landed), start or store.tree_of(base))


def faults(store: TreeStore, patch: TargetPatch, *actions: Action) -> dict[str, str]:
    edits = EditedTree(store, store.entries(patch.start))
    nodes = [Node(f"e{place}", NodeKind.CODE_EDIT, "Edit", action) for place, action in enumerate(actions)]
    assert edits.apply_all(nodes) == {}
    return unlike(edits, patch)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (create(".git/config", "x"), ".git/config is no file of the repository"),
        (create("vendor/.GIT/hooks/x", "x"), "no file of the repository"),
        (create("/etc/passwd", "x"), "/etc/passwd is no file of the repository"),
        (bash("mv src/a.py ../a.py"), "../a.py is no file of the repository"),
        (bash("mv src/a.py ."), "no file of the repository"),
        (bash("mv src/a.py lib"), "lib is a folder"),
        (bash("mv src/a.py link/b.py"), "link is no folder"),
        (create("link/b.py", "x"), "link is no folder"),
        (create("src/a.py/b.py", "x"), "src/a.py is no folder"),
        (replace("lib", "src", "link"), "link is a link"),
        (bash("mv link other"), "link is a link"),
        (create("module", "x"), "module is a submodule"),
        (create("module/x.py", "x"), "module is no folder"),
    ],
)
def test_an_edit_that_works_elsewhere_or_otherwise_than_its_words_cannot_be_made(
    store: TreeStore, action: Action, words: str
) -> None:
    files: dict[str | bytes, Content] = {"src/a.py": "x\n", "lib/b.py": "y\n", "link": (LINK, b"lib")}
    entries = store.entries(store.tree_of(store.commit(plant(store, files))))
    edits = EditedTree(store, {**entries, b"module": TreeEntry(SUBMODULE, "1" * 40)})
    assert words in edits.apply_all([Node("e", NodeKind.CODE_EDIT, "Edit", action)])["e"]
    assert edits.changed == {}


def test_a_folder_that_edits_have_made_is_no_place_to_move_a_file_to(store: TreeStore) -> None:
    edits = EditedTree(store, store.entries(store.tree_of(store.commit(plant(store, {"a.py": "x\n"})))))
    edits.apply(create("d/b.py", "y\n"))
    with pytest.raises(EditFault, match="d is a folder"):
        edits.apply(bash("mv a.py d"))


BEFORE: dict[str | bytes, Content] = {"src/a.py": "x = 1\ny = 2\n", "src/old.py": "z = 3\n", "README.md": "hello\n"}
AFTER: dict[str | bytes, Content] = {
    "src/a.py": "x = 2\ny = 2\n",
    "src/new.py": "w = 4\n",
    "README.md": "hello there\n",
    "tests/test_a.py": "assert 1\n",
}
WHOLE = (replace("x = 1", "x = 2", "src/a.py"), create("src/new.py", "w = 4\n"), bash("rm src/old.py"))


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


def test_edits_are_the_reference_where_its_source_paths_are_equal_byte_for_byte(store: TreeStore) -> None:
    patch = target(store, BEFORE, AFTER)
    assert patch.paths == ("src/a.py", "src/new.py", "src/old.py")
    assert faults(store, patch, *WHOLE) == {}
    assert faults(store, patch, *WHOLE, replace("hello", "hello there", "README.md")) == {}, "docs may be edited, too"


def test_what_edits_lack_is_named_by_path(store: TreeStore) -> None:
    patch = target(store, BEFORE, AFTER)
    assert faults(store, patch) == {
        "src/a.py": "no edit changes it",
        "src/new.py": "the reference has this file",
        "src/old.py": "the reference removes it",
    }
    wrong = faults(store, patch, replace("y = 2", "y = 3", "src/a.py"), *WHOLE[1:])
    assert wrong == {"src/a.py": "after the edits it differs from the reference, first in line 1"}
    assert faults(store, patch, *WHOLE, create("src/more.py", "")) == {
        "src/more.py": "the reference does not change it"
    }


def test_an_executable_file_that_is_made_anew_is_not_the_reference(store: TreeStore) -> None:
    files: dict[str | bytes, Content] = {"run.py": (EXECUTABLE, "x = 1\n")}
    patch = target(store, files, {"run.py": (EXECUTABLE, "x = 2\n")})
    assert faults(store, patch, replace("x = 1", "x = 2", "run.py")) == {}
    anew = faults(store, patch, bash("rm run.py"), create("run.py", "x = 2\n"))
    assert "not executable any more" in anew["run.py"]


def test_the_patch_of_tests_is_apart_and_their_paths_are_hidden(store: TreeStore) -> None:
    patch = target(store, BEFORE, AFTER)
    assert b"test_a.py" in patch.test_text and b"test_a.py" not in patch.source_text
    assert patch.hidden_paths == {"tests/test_a.py", "src/new.py"}
    assert patch.other_paths == {b"README.md"}


def test_on_an_agents_tree_the_target_is_the_merge_of_both(store: TreeStore) -> None:
    start = plant(store, {**BEFORE, "src/a.py": "x = 1\ny = 2\n\n\n\nmine = 5\n"})
    before: dict[str | bytes, Content] = {**BEFORE, "src/a.py": "x = 1\ny = 2\n\n\n\n"}
    after: dict[str | bytes, Content] = {**AFTER, "src/a.py": "x = 2\ny = 2\n\n\n\n"}
    patch = target(store, before, after, start)
    assert faults(store, patch, *WHOLE) == {}
    assert store.blob(store.entries(patch.target)[b"src/a.py"].blob) == b"x = 2\ny = 2\n\n\n\nmine = 5\n"


def test_a_reference_that_conflicts_with_the_tree_has_no_graph(store: TreeStore) -> None:
    with pytest.raises(ReferenceConflicts, match=r"src/a\.py"):
        target(store, BEFORE, AFTER, plant(store, {**BEFORE, "src/a.py": "x = 9\ny = 2\n"}))


def test_a_tree_that_holds_the_reference_already_has_no_graph(store: TreeStore) -> None:
    with pytest.raises(AlreadyDone):
        target(store, BEFORE, AFTER, plant(store, AFTER))


@pytest.mark.parametrize(
    ("path", "before", "after", "words"),
    [
        ("src/a.py", "x = 1\n", (EXECUTABLE, "x = 1\n"), "mode"),
        ("src/run.py", None, (EXECUTABLE, "x = 1\n"), "mode"),
        ("src/link.py", None, (LINK, "a.py"), "link"),
        ("src/data.json", b"{}", b"\0\1\2", "no text"),
        ("src/data.json", None, b"caf\xe9", "no text"),
    ],
)
def test_a_reference_that_no_edit_can_make_has_no_graph(
    store: TreeStore, path: str, before: Content | None, after: Content, words: str
) -> None:
    files: dict[str | bytes, Content] = {"src/b.py": "b = 1\n", **({} if before is None else {path: before})}
    with pytest.raises(Inexpressible, match=words) as error:
        target(store, files, {**files, path: after})
    assert isinstance(error.value, PrchainError) and path in str(error.value)


@pytest.mark.parametrize("after", [{}, {b"src/caf\xe9.py": "x = 2\n"}])
def test_a_reference_with_a_file_that_no_answer_can_name_has_no_graph(
    store: TreeStore, after: dict[str | bytes, Content]
) -> None:
    files: dict[str | bytes, Content] = {"src/b.py": "b = 1\n"}
    with pytest.raises(Inexpressible, match="whose name is no text"):
        target(store, {**files, b"src/caf\xe9.py": "x = 1\n"}, {**files, **after})
