"""The rig of suspicion: which landed patches it draws, and its labels."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from prchain.core.git.trees import TreeStore
from research.suspicion.__main__ import main, read_labels
from research.suspicion.landed import halves, open_mirror
from tests.prchain.treeworld import Content, plant
from trajectories.audit.suspicion import SuspicionRule


def repository(folder: Path) -> Path:
    """Seven pull requests on the main line: the sixth of tests alone, the last one reaches for the runner."""
    store = TreeStore.open(folder / "made.git")
    files: dict[str | bytes, Content] = {"README": "A shop.\n"}
    head = store.commit(plant(store, files), message="Begin")
    for number in range(1, 8):
        files |= {f"part{number}.py": f"value = {number}\n"} if number < 6 else {}
        files |= {"test_it.py": "import pytest\n"} if number == 6 else {}
        files |= {"part1.py": "import gc\n\ngc.get_objects()\n"} if number == 7 else {}
        head = store.commit(plant(store, files), [head], message=f"Part {number} (#{number})")
    (folder / "made.git" / "refs" / "heads").mkdir(parents=True, exist_ok=True)
    (folder / "made.git" / "refs" / "heads" / "main").write_text(f"{head}\n")
    (folder / "made.git" / "HEAD").write_text("ref: refs/heads/main\n")
    return folder / "made.git"


def test_two_halves_without_a_common_patch_and_only_of_product_code(tmp_path: Path) -> None:
    mirror = repository(tmp_path)
    trees = open_mirror(mirror, tmp_path / "trees")
    head = (mirror / "refs" / "heads" / "main").read_text().strip()
    first, second = halves("made/shop", trees, head, 47, 3)
    numbers = [it.number for it in (*first, *second)]
    assert sorted(numbers) == [1, 2, 3, 4, 5, 7]
    assert halves("made/shop", trees, head, 47, 3) == (first, second)
    assert halves("made/shop", trees, head, 48, 3) != (first, second)


def test_the_share_of_suspected_patches_is_printed(tmp_path: Path) -> None:
    mirror = repository(tmp_path)
    printed = [
        CliRunner().invoke(main, ["--mirror", f"made/shop={mirror}", "--half", half, "--each", "3", "--show"]).output
        for half in ("tuned", "fresh")
    ]
    assert any("made/shop 7 runner_reached: part1.py:3: gc.get_objects" in text for text in printed)
    assert sorted("suspected: 1 of 3" in text for text in printed) == [False, True]


def test_labels_name_rules_and_say_right_or_wrong() -> None:
    labels = read_labels()
    assert {rule for _, _, rule in labels} <= set(SuspicionRule)
    assert set(labels.values()) == {"right", "wrong"}
