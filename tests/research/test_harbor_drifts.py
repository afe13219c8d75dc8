"""The rigs that let Harbor run what comes between two steps, and what an agent that is root plants."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
import tomllib
from pathlib import Path

from click.testing import CliRunner

from environments.checkouts.state import next_state
from prchain.core.git.trees import TreeStore
from research.harbor import drifts, roots
from research.harbor.small import chain
from tests.research.test_harbor_runs import PROGRAM, verified
from tests.trajectories.harborworld import BASE, LANDED, tree_of
from trajectories.export.tasks.harbor.folder import files_of
from trajectories.export.tasks.harbor.image import ARCHIVE
from trajectories.export.tasks.harbor.inside import collect
from trajectories.export.tasks.harbor.inside.said import STAGE, StageSaid


def chain_folder(folder: Path) -> TreeStore:
    trees = TreeStore.open(folder / "own.git")
    for path, content in files_of(chain(trees)).items():
        (folder / "task" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "task" / path).write_bytes(content)
    return trees


def said_of(folder: Path, step: int) -> StageSaid:
    return StageSaid.read(folder / "task" / "steps" / str(step) / "tests" / STAGE)


def test_what_is_in_the_way_of_upstreams_changes_conflicts_with_them(tmp_path: Path) -> None:
    trees = chain_folder(tmp_path)
    before, after = said_of(tmp_path, 1), said_of(tmp_path, 2)
    mine = drifts.in_the_way(trees, before.landed, after.base)
    assert set(mine) == {b"area.py"} and all(drifts.MINE in text for text in mine.values())
    entries = trees.entries(before.landed)
    agent = trees.edit(
        trees.tree_of(before.landed),
        {path: entries[path]._replace(blob=trees.write_blob(text)) for path, text in mine.items()},
    )
    assert next_state(trees, landed_before=before.landed, agent_tree=agent, base=after.base).conflicts
    assert not drifts.in_the_way(trees, after.base, after.base)


def test_the_copy_ends_with_a_step_in_which_nothing_is_done(tmp_path: Path) -> None:
    chain_folder(tmp_path)
    copy = drifts.cut_off(tmp_path / "task", tmp_path / "copy", 2, {b"a 'name'": b"text\n"})
    configuration = tomllib.loads((copy / "task.toml").read_text())
    assert [step["name"] for step in configuration["steps"]] == ["1", "2"]
    assert all(step.keys() == {"name", "verifier"} for step in configuration["steps"]), "no reward ends the trial"
    assert (copy / "steps" / "2" / "solution" / "solve.sh").read_text() == "#!/bin/bash\n"
    place = tmp_path / "work"
    place.mkdir()
    script = copy / "steps" / "1" / "solution" / "solve.sh"
    script.write_text(script.read_text().replace("/testbed", str(place)))
    subprocess.run(["bash", str(script)], check=True)
    assert (place / "a 'name'").read_text() == "text\n" and (place / "area.py").read_text() == LANDED["area.py"]


def test_what_was_collected_is_a_tree_again(tmp_path: Path) -> None:
    trees = chain_folder(tmp_path)
    said, work = said_of(tmp_path, 1), tmp_path / "work"
    drifts.lay(trees, trees.tree_of(said.landed), work)
    archive = tmp_path / "trial" / "steps" / "1" / "artifacts" / Path(ARCHIVE).name
    archive.parent.mkdir(parents=True)
    entries = trees.entries(tree_of(trees, BASE))
    listing = {path: (str(it.mode), it.blob) for path, it in entries.items()}
    collect.pack(os.fsencode(work), listing, str(archive))
    assert tarfile.is_tarfile(archive)
    assert drifts.collected(trees, said, tmp_path / "trial", 1) == trees.tree_of(said.landed)


def test_an_attack_is_that_of_root_in_a_copy_and_a_reward_of_it_fails(tmp_path: Path) -> None:
    task, kept = tmp_path / "one", tmp_path / "kept"
    (task / "solution").mkdir(parents=True)
    (task / "task.toml").write_text('[environment]\nworkdir = "/testbed"\n')
    (task / "answer.json").write_text(json.dumps(verified(1.0)))
    program = tmp_path / "harbor"
    program.write_text(f'{PROGRAM}cat "$task/task.toml" >> {tmp_path}/ran\n')
    program.chmod(0o755)
    arguments = ["--task", str(task), "--harbor", str(program), "--kept", str(kept)]
    done = CliRunner().invoke(roots.main, arguments)
    assert done.exit_code == 1 and "FAILED conftest: 1.0" in done.output
    ran = (tmp_path / "ran").read_text()
    assert ran.count('user = "root"') == len(roots.ATTACKS) == len(kept.read_text().splitlines())
    again = CliRunner().invoke(roots.main, arguments)
    assert again.output == done.output and (tmp_path / "ran").read_text() == ran
    kept.write_text(kept.read_text().replace("1.0", "0.0"))
    assert CliRunner().invoke(roots.main, arguments).exit_code == 0


def test_in_containers_a_task_is_attacked_as_its_folder_has_it(tmp_path: Path) -> None:
    chain_folder(tmp_path)
    task = roots.tried(tmp_path / "task", "agent")
    assert task.image and task.workdir == "/testbed" and task.user == "agent"
    assert task.files_of("steps/1/solution").keys() >= {"solve.sh"} and "grader.pyz" in task.files_of("tests")
