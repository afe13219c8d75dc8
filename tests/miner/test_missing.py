"""What a mirror lacks: counted for each landing, told when mining, fetched by the command that is told (issue 20)."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from miner import citation_rows, missing
from miner.cli import mine, show, status
from miner.missing import missing_files
from prchain.core.errors import IncompleteRepository
from prchain.core.git import GitRepository
from sql.tables import Citation, Landing, LandingFile
from tests.miner.gitworld import World, git, lines
from tests.miner.test_mine import Lab, build, lab

__all__ = ["lab"]


def drop(world: World, name: str) -> None:
    """Take the content of a file out of the repository."""
    blob = git(world.path, "rev-parse", name).strip()
    (world.path / "objects" / blob[:2] / blob[2:]).unlink()


def plain_count(path: Path, base: str, landed: str, missing: set[str]) -> int:
    """The missing files of the base's tree and of the patch, from whole listings of trees."""

    def tree(commit: str) -> dict[str, str]:
        entries = git(path, "ls-tree", "-r", "-z", commit).split("\0")[:-1]
        return {entry.split("\t", 1)[1]: entry.split()[2] for entry in entries}

    before, after = tree(base), tree(landed)
    brought = [name for name, blob in after.items() if blob in missing and before.get(name) != blob]
    return sum(blob in missing for blob in before.values()) + len(brought)


def partial_clone(world: World, path: Path) -> Path:
    """A mirror without any file, as people make them."""
    git(world.path, "config", "uploadpack.allowFilter", "true")
    git(world.path, "clone", "-q", "--mirror", "--filter=blob:none", f"file://{world.path}", str(path))
    return path


def told(path: Path, db: Path, *options: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of a run that a user types."""
    listed = path.parent / "list.txt"
    listed.write_text(f"o/r = {path}\n")
    result = CliRunner().invoke(mine, [str(listed), "--source", "git", "--db", str(db), *options])
    return result.exit_code, result.stdout, result.stderr


def test_a_whole_mirror_lacks_nothing(lab: Lab) -> None:
    report = lab.mine(build(lab.folder))
    assert report.missing is None
    assert {count for (count,) in lab.rows(Landing, "missing_files")} == {0}


def test_each_landing_counts_the_missing_files_of_its_base_and_its_patch(lab: Lab) -> None:
    world = build(lab.folder)
    shas = ["main~4:src/0.py", "main:src/3.py", "main~4:pushed", "v1:src/4.py"]
    missing = {git(world.path, "rev-parse", name).strip() for name in shas}
    for name in shas:
        drop(world, name)
    report = lab.mine(world)
    stored = lab.rows(Landing, "base_sha", "landed_sha", "missing_files")
    assert {(b, m): n for b, m, n in stored} == {(b, m): plain_count(world.path, b, m, missing) for b, m, _ in stored}
    assert len({n for *_, n in stored}) > 1
    assert report.error is None and report.missing is not None
    assert report.missing.contents == len(missing)
    assert report.missing.landings == sum(n > 0 for *_, n in stored)


def test_citations_are_read_while_git_looks_for_what_is_missing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = threading.Event()
    look, rebuild = missing.look, citation_rows.rebuild

    def late_look(*arguments: Any) -> missing.LackingMirror | None:
        assert reading.wait(60), "citations wait for it"
        return look(*arguments)

    def told_rebuild(*arguments: Any) -> int:
        reading.set()
        return rebuild(*arguments)

    monkeypatch.setattr(missing, "look", late_look)
    monkeypatch.setattr(citation_rows, "rebuild", told_rebuild)
    world = build(lab.folder)
    drop(world, "main:src/3.py")
    report = lab.mine(world)
    assert report.error is None and report.missing is not None and report.missing.contents == 1


def test_citations_are_kept_where_looking_for_what_is_missing_fails(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> None:
        raise IncompleteRepository("a tree is missing")

    world = build(lab.folder)
    monkeypatch.setattr(missing, "look", fails)
    report = lab.mine(world)
    assert report.error == "a tree is missing"
    found = lab.rows(Citation, "source", "target")
    monkeypatch.undo()
    assert lab.mine(world).error is None
    assert found == lab.rows(Citation, "source", "target") != []


def test_trees_of_forked_branches_are_counted_by_themselves(lab: Lab) -> None:
    world = World(lab.folder / "r.git")
    world.commit("main", {"kept": "1", "lost": "2"})
    world.branch("v1", "main")
    world.commit("main", {"lost": None})
    head = world.propose(1, {"kept": lines("one")})
    on_main = world.squash("main", head, "One (#1)")
    world.commit("v1", {"again": "2"})
    head = world.propose(2, {"kept": lines("two")}, base="v1")
    on_v1 = world.squash("v1", head, "Two (#2)")
    world.save()
    pairs = [(git(world.path, "rev-parse", f"{world.sha(c)}~").strip(), world.sha(c)) for c in (on_main, on_v1)]
    drop(world, "v1:lost")
    found = missing_files(GitRepository.open(world.path), pairs)
    assert (found.contents, found.needed) == (1, {pairs[0]: 0, pairs[1]: 2})


@pytest.mark.parametrize("kind", ["partial", "damaged"])
def test_the_command_that_is_told_fetches_all_of_it(tmp_path: Path, kind: str) -> None:
    world = build(tmp_path, name="source")
    moved = world.made("main").files[b"src/1.py"][1] + b"more\n"
    world.squash("main", world.propose(30, {"src/1.py": None, "moved/1.py": moved}), "Move (#30)")
    world.save()
    if kind == "partial":
        path = partial_clone(world, tmp_path / "mirror of it.git")
    else:
        path = tmp_path / "mirror of it.git"
        git(world.path, "clone", "-q", "--mirror", f"file://{world.path}", str(path))
        [pack] = path.glob("objects/pack/*.pack")
        content = pack.read_bytes()
        for file in path.glob("objects/pack/*"):
            file.unlink()
        git(path, "unpack-objects", "-q", stdin=content)
        blob = git(path, "rev-parse", "main:moved/1.py").strip()
        (path / "objects" / blob[:2] / blob[2:]).unlink()
    db = tmp_path / "mined.db"
    ended, _, stderr = told(path, db)
    [row] = json.loads(told(path, db, "--json")[1])
    assert ended == 0
    assert f"{row['missing']['landings']} of {row['landed']} landings" in stderr
    assert "tasks, images or rollouts" in stderr
    command = row["missing"]["fetch"]
    assert command in stderr
    assert "of which the mirror lacks files" in CliRunner().invoke(status, ["--db", str(db)]).stdout
    page = CliRunner().invoke(show, ["o/r#30", "--db", str(db)]).stdout
    assert re.search(r"missing +[0-9]+ files? of these trees", page)
    subprocess.run(shlex.split(command), check=True, capture_output=True, env={**os.environ, "LC_ALL": "C"})
    ended, _, stderr = told(path, db)
    assert (ended, "lacks" in stderr) == (0, False)
    assert json.loads(told(path, db, "--json")[1])[0]["missing"] is None
    whole = Lab(tmp_path, "whole.db")
    healed = Lab(tmp_path, "mined.db")
    try:
        whole.mine(world)
        for table, columns in ((Landing, ("number", "missing_files")), (LandingFile, ("number", "path", "status"))):
            assert sorted(healed.rows(table, *columns)) == sorted(whole.rows(table, *columns))
    finally:
        whole.store.close()
        healed.store.close()


def test_the_command_for_a_checkout_leaves_its_branches_alone(tmp_path: Path) -> None:
    world = build(tmp_path)
    git(world.path, "config", "uploadpack.allowFilter", "true")
    path = tmp_path / "checkout"
    git(world.path, "clone", "-q", "--filter=blob:none", "--no-checkout", f"file://{world.path}", str(path))
    git(path, "fetch", "-q", "origin", "+refs/pull/*/head:refs/pull/*/head")
    lab = Lab(tmp_path)
    try:
        report = lab.mine(str(path))
        assert report.missing is not None
        subprocess.run(shlex.split(report.missing.fetch), check=True, capture_output=True)
        assert lab.mine(str(path)).missing is None
    finally:
        lab.store.close()
