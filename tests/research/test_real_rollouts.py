"""The agents of the real rollouts: what they write otherwise or leave out, and what their rollouts are held against."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from environments.checkouts.state import StageState
from prchain.core.git.trees import TreeStore
from research.real_rollouts.otherwise import MARK, functions_of, otherwise
from research.real_rollouts.outcome import RolloutResult, faults
from research.real_rollouts.pieces import (
    DAMAGE,
    FILE_PIECE,
    HUNK,
    LINE,
    MARK_PREFIX,
    STATEMENT,
    Piece,
    marked,
    pieces,
    renamed_pieces,
    statements,
)
from research.real_rollouts.script import command
from research.real_rollouts.search import rank
from research.real_rollouts.work import Spared, StageWork, written_otherwise
from tests.prchain.treeworld import harvest, new_store, plant
from trajectories.outcomes import ACCEPTED, REJECTED, TOO_SHORT
from trajectories.rows import StageRow, VerdictRow

BEFORE = "def kept(a):\n    total = a\n    return total\n"
AFTER = (
    BEFORE + "\n\n"
    "def price(items, rate=1):\n"
    '    """Says what it costs."""\n'
    "    total = sum(item.cost for item in items)\n"
    "    if total > 10:\n"
    "        total = total * rate\n"
    "    return total\n"
)


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return new_store(tmp_path)


def ran(text: str, call: str) -> object:
    space: dict[str, object] = {}
    exec(text, space)
    return eval(call, space)


# ---- in other words


def test_new_functions_get_other_names_and_a_comment_and_do_the_same() -> None:
    text = otherwise(BEFORE, AFTER)
    assert "total_own = sum(" in text and MARK in text and text.startswith(BEFORE)
    item = "type('Item', (), {'cost': 6})"
    assert ran(text, f"price([{item}, {item}], rate=2)") == ran(AFTER, f"price([{item}, {item}], rate=2)") == 24


def test_functions_that_are_to_be_left_are_left() -> None:
    assert functions_of(BEFORE, AFTER) == ["price"]
    assert otherwise(BEFORE, AFTER, {"price"}) == AFTER


@pytest.mark.parametrize(
    "body",
    [
        "x = 1\n    return locals()",
        "x = 1\n    return f'{x=}'",
        "x = 1\n    def inner():\n        return x\n    return inner()",
        "global x\n    x = 1\n    return x",
        "try:\n        raise KeyError\n    except KeyError as x:\n        return str(x)\n    x = 1\n    return x",
        "import os as x\n    x = 1\n    return x",
        "return [x for x in (1, 2)]",
    ],
)
def test_names_that_more_hangs_on_keep_theirs(body: str) -> None:
    text = f"def f():\n    {body}\n"
    changed = otherwise("", text)
    assert ran(changed, "f()") == ran(text, "f()")
    assert "x_own" not in changed


def test_no_name_is_given_that_is_there() -> None:
    text = "def f(x_own):\n    x = 1\n    return x + x_own\n"
    assert "    x = 1\n" in otherwise("", text)


def test_parameters_and_texts_keep_their_words() -> None:
    text = "def f(total):\n    kind = 'kind'\n    return dict(kind=kind, total=total)\n"
    changed = otherwise("", text)
    assert "kind_own = 'kind'" in changed and "dict(kind=kind_own, total=total)" in changed


SHAPES = """\
def f(a):
    # Why.
    if a > 3:
        # Large.
        text = '''
else:
'''
        return (
            a, text,
        )
    else:
        if a == 2: return [
            a]
        elif a: return a
        else:
            a += 1
    # Small.
    return a + 1
"""


def test_branches_are_turned_and_results_named() -> None:
    changed = otherwise("", SHAPES)
    assert "if not (a > 3):" in changed and changed.index("a == 2") < changed.index("# Large")
    assert "answer_own = a + 1\n    return answer_own\n" in changed and "answer_own = (" in changed
    for value in range(6):
        assert ran(changed, f"f({value})") == ran(SHAPES, f"f({value})")


def test_old_statements_keep_their_shape() -> None:
    old = "def f(a):\n    if a:\n        b = 1\n    else:\n        b = 2\n    return b + 1\n"
    new = old.replace("b = 2", "b = 3")
    assert "if a:" in otherwise(old, new) and "return b_own + 1" in otherwise(old, new)


def test_a_tree_is_written_otherwise_in_python_alone(store: TreeStore) -> None:
    start = plant(store, {"a.py": BEFORE, "notes.txt": "x = 1\n"})
    done = plant(store, {"a.py": AFTER, "notes.txt": "x = 2\n", "bad.py": "def f(:\n"})
    own = written_otherwise(store, start, done)
    assert [change.path for change in store.diff(done, own)] == [b"a.py"]
    assert written_otherwise(store, start, done, Spared(files=frozenset({"a.py"}))) == store.tree_of(done)
    assert written_otherwise(store, start, done, Spared(left=frozenset({("a.py", "price")}))) == store.tree_of(done)


def test_a_narrow_function_changes_on_its_new_lines_alone() -> None:
    old = "def f(a):\n    total = a\n    return total\n"
    new = "def f(a):\n    total = a\n    more = a\n    total += more\n    return total\n"
    text = otherwise(old, new, narrow={"f"})
    assert text == (
        f"def f(a):\n    total = a\n    # {MARK}\n    more_own = a\n    total += more_own\n    return total\n"
    )


# ---- left out


def test_pieces_are_files_hunks_statements_and_lines(store: TreeStore) -> None:
    start = plant(store, {"a.py": BEFORE, "table.txt": "one\n"})
    whole = plant(store, {"a.py": AFTER, "new.py": "x = 1\n", "table.txt": "zero\none\ntwo\nthree\n"})
    found = pieces(store, start, whole)
    named = {kind: [str(piece) for piece in found if piece.kind == kind] for kind in (FILE_PIECE, HUNK, LINE)}
    assert named[FILE_PIECE] == ["file a.py", "file new.py", "file table.txt"]
    assert named[HUNK] == ["hunk new.py:1", "hunk table.txt:1", "hunk table.txt:3-4"]
    assert named[LINE] == [*(f"line a.py:{line}" for line in (6, 7, 8, 11)), "line table.txt:3", "line table.txt:4"]
    statements = {piece.lines for piece in found if piece.kind == STATEMENT}
    assert statements == {range(8, 9), range(9, 11), range(10, 11), range(11, 12)}


def test_what_is_left_out_is_gone(store: TreeStore) -> None:
    start, whole = plant(store, {"a.py": BEFORE}), plant(store, {"a.py": AFTER, "new.py": "x = 1\n"})
    without = {
        (piece.kind, piece.lines.start): harvest(store, piece.left_out(store, whole))
        for piece in pieces(store, start, whole)
    }
    assert without[STATEMENT, 10]["a.py"] == AFTER.replace("        total = total * rate\n", "        pass\n")
    assert without[LINE, 7]["a.py"] == AFTER.replace('    """Says what it costs."""\n', "")
    assert without[FILE_PIECE, 1] in ({"a.py": AFTER}, {"a.py": BEFORE, "new.py": "x = 1\n"})


def test_statements_tell_when_they_run(store: TreeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.real_rollouts.pieces.MARK_PREFIX", f"{tmp_path}/seen")
    start, whole = plant(store, {"a.py": BEFORE}), plant(store, {"a.py": AFTER})
    tree = marked(store, whole, {"a.py"})
    text = store.blobs([store.entries(tree)[b"a.py"].blob])[0].decode()
    assert ran(text, "price([])") == 0
    marks_reached = {path.name.removeprefix("seen-") for path in tmp_path.glob("seen-*")}
    by_lines = {piece.lines: piece.marks for piece in pieces(store, start, whole) if piece.kind == STATEMENT}
    assert by_lines[range(10, 11)].isdisjoint(marks_reached) and by_lines[range(11, 12)] <= marks_reached
    assert MARK_PREFIX.startswith("/tmp/")


def test_a_statement_has_its_name_wherever_it_stands() -> None:
    names = list(statements("a.py", AFTER))
    assert list(statements("a.py", "import os\n\n" + AFTER)) == names
    assert len(set(names)) == 6 and not set(names) & set(statements("b.py", AFTER))


def test_what_stood_before_is_damaged_only_where_it_is_named(store: TreeStore) -> None:
    start, whole = plant(store, {"a.py": BEFORE}), plant(store, {"a.py": AFTER})
    name = next(iter(statements("a.py", AFTER)))
    assert not [piece for piece in pieces(store, start, whole) if piece.kind == DAMAGE]
    [piece] = [piece for piece in pieces(store, start, whole, {name}) if piece.kind == DAMAGE]
    text = str(harvest(store, piece.left_out(store, whole))["a.py"])
    assert text == AFTER.replace("    total = a\n", "    pass\n")


def test_a_name_is_changed_in_every_file_of_the_patch(store: TreeStore) -> None:
    start = plant(store, {"b.py": "x = 1\n", "c.py": "price\n"})
    whole = plant(store, {"a.py": AFTER, "b.py": "from a import price\nprices = price\n", "c.py": "price\n"})
    [piece] = renamed_pieces(store, start, whole, ["price", "nowhere"])
    files = harvest(store, piece.left_out(store, whole))
    assert files["a.py"] == AFTER.replace("def price", "def price_own")
    assert files["b.py"] == "from a import price_own\nprices = price_own\n" and files["c.py"] == "price\n"
    assert str(piece) == "name price in a.py"


def test_what_only_stage_2_reaches_is_tried_first() -> None:
    def piece(path: str, *marks: str) -> Piece:
        return Piece(HUNK, path, range(1, 2), path * 4, marks=frozenset(marks))

    both, only_2, neither, unmarked = piece("a", "1"), piece("b", "2"), piece("c", "3"), piece("d")
    reached = frozenset({"1"}), frozenset({"1", "2"})
    assert rank([both, neither, unmarked, only_2], *reached) == [only_2, both, unmarked]
    assert rank([both, unmarked, only_2], *reached, {"dddd"}) == [only_2, unmarked, both]


def test_a_hunk_that_takes_lines_away_has_none_to_look_at() -> None:
    piece = Piece(HUNK, "a", range(3, 3), "")
    assert rank([piece], frozenset(), frozenset()) == [piece]


# ---- the script


@pytest.mark.parametrize("content", ["plain\n", "no end of line", "$HOME `x` 'q' \\\n", "\r\n", b"\xff\n", b"\0"])
def test_a_command_makes_the_tree_of_its_patch(store: TreeStore, tmp_path: Path, content: str | bytes) -> None:
    old, new = plant(store, {"a.txt": "before\n"}), plant(store, {"a.txt": content})
    place = tmp_path / "work"
    place.mkdir()
    (place / "a.txt").write_bytes(b"before\n")
    patch = store.patch_text(old, new, ["a.txt"])
    subprocess.run(["bash", "-c", command(patch)], cwd=place, check=True)
    assert (place / "a.txt").read_bytes() == (content if isinstance(content, bytes) else content.encode())


# ---- what must come of it


def works(*trees: tuple[str, str]) -> list[StageWork]:
    return [StageWork(position, StageState(start), end, end, ()) for position, (start, end) in enumerate(trees, 1)]


def came(
    outcome: str, *stages: tuple[str, str, str], tests: str = "passed", failed: tuple[str, ...] = ()
) -> RolloutResult:
    rows = tuple(
        StageRow(position, of_stage, start_tree=start, end_tree=end)
        for position, (of_stage, start, end) in enumerate(stages, 1)
    )
    verdict = VerdictRow(2, 1, "", False, "tests", tests=tests, grade={"carried_failure": list(failed)})
    return RolloutResult(outcome, None, 0.0, 0, rows, {2: verdict})


GOOD = came(ACCEPTED, (ACCEPTED, "b1", "a1"), (ACCEPTED, "b2", "a2"))
WORKS = works(("b1", "a1"), ("b2", "a2"))


def test_a_reference_that_is_accepted_on_b_t_is_right() -> None:
    assert faults("reference", GOOD, WORKS, ["b1", "b2"]) == []


def test_a_reference_that_does_not_find_b_t_is_told() -> None:
    assert "S_2 is not B_2" in faults("reference", GOOD, WORKS, ["b1", "other"])[0]


def test_a_tree_that_the_agent_did_not_make_is_told() -> None:
    assert faults("reference", GOOD, works(("b1", "x"), ("b2", "a2")), ["b1", "b2"]) == ["A_1 is a1, not x"]


def test_a_different_agent_must_find_its_own_work() -> None:
    assert "nothing of the agent's was carried" in faults("different", GOOD, WORKS, ["b1", "b2"])[0]
    assert faults("different", GOOD, WORKS, ["b1", "other"]) == []


def test_a_stage_that_is_not_accepted_is_told() -> None:
    bad = replace(GOOD, outcome=TOO_SHORT, stages=(GOOD.stages[0], replace(GOOD.stages[1], outcome=REJECTED)))
    assert len(faults("reference", bad, WORKS, ["b1", "b2"])) == 2


def test_a_breaking_agent_fails_at_stage_2_by_the_tests_that_miss_its_piece() -> None:
    stages = ((ACCEPTED, "b1", "a1"), (REJECTED, "b2", "a2"))
    right = came(TOO_SHORT, *stages, tests="carried_failure", failed=("t",))
    assert faults("breaking", right, WORKS, ["b1", "b2"], ["t"]) == []
    assert "does not fail u" in faults("breaking", right, WORKS, ["b1", "b2"], ["u"])[0]
    blamed = came(TOO_SHORT, *stages, tests="p2p_broken", failed=("t",))
    assert "blamed for p2p_broken" in faults("breaking", blamed, WORKS, ["b1", "b2"], ["t"])[0]
    assert faults("breaking", GOOD, WORKS, ["b1", "b2"], ["t"]) != []
