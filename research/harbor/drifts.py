"""Compare what comes between two steps in Harbor's own containers with our own rule of state.

    prchain tasks export --format harbor --network compose --steps chain --out OUT
    python -m research.harbor.drifts --db FILE --folder OUT --harbor VENV/bin/harbor

For each step before which upstream changed something: Harbor runs the chain up to it with an agent that lays the
references, and with one that also changes, in each file that upstream then changes, the lines that upstream changes.
In the step itself the agent does nothing, so that what Harbor collects there is S_t; it has to be the tree that
`next_state` makes of what it collected one step before. Exit code 1 where one is not, or none was compared.
"""

from __future__ import annotations

import difflib
import os
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import click
import tomli_w

from environments.backends import BACKENDS
from environments.checkouts.state import next_state
from environments.images.provide import Provider
from prchain.core.console.terminal import say
from prchain.core.git.trees import EXECUTABLE, FILE, TreeStore
from prchain.core.settings import Settings
from research.harbor.__main__ import harbors_jobs
from research.harbor.parity import Rig
from sql.store import Store
from trajectories.export.tasks.harbor.export import CHAIN
from trajectories.export.tasks.harbor.image import ARCHIVE
from trajectories.export.tasks.harbor.inside.said import STAGE, StageSaid, paths_of
from trajectories.export.tasks.harbor.inside.work_tree import FolderRules, read_changes, tree_of_folder

MINE = b"# what an agent wrote here\n"
_FILES = {FILE, EXECUTABLE}


def in_the_way(trees: TreeStore, landed: str, base: str) -> dict[bytes, bytes]:
    """The files that change from `landed` to `base`, as they landed, with other lines where `base` has other ones."""
    changes = [it for it in trees.diff(landed, base) if it.old and it.new and {it.old.mode, it.new.mode} <= _FILES]
    found = {}
    for change in changes:
        old, new = (trees.blobs([it.blob])[0].splitlines(keepends=True) for it in (change.old, change.new) if it)
        codes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        kept = [[MINE] if kind != "equal" else old[first:last] for kind, first, last, _, _ in codes]
        found[change.path] = b"".join(line for lines in kept for line in lines)
    return found


def cut_off(task: Path, copy: Path, step: int, mine: dict[bytes, bytes]) -> Path:
    """A copy of a chain that ends with a step in which nothing is done; one step before, `mine` is laid last."""
    shutil.copytree(task, copy)
    configuration = tomllib.loads((copy / "task.toml").read_text(encoding="utf-8"))
    configuration["steps"] = [{"name": it["name"], "verifier": it["verifier"]} for it in configuration["steps"][:step]]
    (copy / "task.toml").write_text(tomli_w.dumps(configuration), encoding="utf-8")
    for place in (copy / "steps").iterdir():
        if int(place.name) > step:
            shutil.rmtree(place)
    (copy / "steps" / str(step) / "solution" / "solve.sh").write_text("#!/bin/bash\n", encoding="utf-8")
    before = copy / "steps" / str(step - 1) / "solution"
    for number, (path, content) in enumerate(sorted(mine.items())):
        (before / f"mine-{number}").write_bytes(content)
        with (before / "solve.sh").open("a", encoding="utf-8") as script:
            script.write(f'cp -- "$here/mine-{number}" {shlex.quote(os.fsdecode(path))}\n')
    return copy


def collected(trees: TreeStore, said: StageSaid, trial: Path, step: int) -> str:
    """The tree that the collect command packed at the end of a step. Raises `ClickException` where it packed none."""
    archive = next((trial / "steps" / str(step)).rglob(Path(ARCHIVE).name), None)
    if archive is None:
        raise click.ClickException(f"Harbor collected nothing at step {step}")
    rules = FolderRules(trees.entries(said.image_tree), said.base, paths_of(said.outputs))
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder, archive.open("rb") as packed:
        lay(trees, said.image_tree, Path(folder))
        return tree_of_folder(trees, os.fsencode(folder), rules, read_changes(packed))


def lay(trees: TreeStore, tree: str, folder: Path) -> None:
    """Write the files and links of a tree."""
    entries = [(path, it) for path, it in trees.entries(tree).items() if it.mode != "160000"]
    for (path, entry), content in zip(entries, trees.blobs(it.blob for _, it in entries), strict=True):
        place = folder / os.fsdecode(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        if entry.mode in _FILES:
            place.write_bytes(content)
            place.chmod(0o755 if entry.mode == EXECUTABLE else 0o644)
        else:
            place.symlink_to(os.fsdecode(content))


def compared(rig: Rig, task: Path, harbor: str) -> Iterator[bool]:
    """Whether the trees are the same, for each step before which upstream changed something, and each agent."""
    chain = tomllib.loads((task / "task.toml").read_text(encoding="utf-8"))["metadata"]["chain"]
    trees = rig.material(chain).trees
    said = {int(it.name): StageSaid.read(it / "tests" / STAGE) for it in (task / "steps").iterdir()}
    for step in sorted(said)[1:]:
        before, after = said[step - 1], said[step]
        drift = len(list(trees.diff(before.landed, after.base)))
        mine = in_the_way(trees, before.landed, after.base)
        for name, files in (("reference", {}), ("in the way", mine))[: 1 + bool(mine)] if drift else ():
            with tempfile.TemporaryDirectory(prefix="prchain-") as folder:
                copy = cut_off(task, Path(folder) / "task", step, files)
                (trial,) = {it.parent for it in harbors_jobs(harbor, copy, "oracle", folder).glob("*/*/result.json")}
                agent, state = (
                    collected(trees, told, trial, place) for place, told in ((step - 1, before), (step, after))
                )
            wanted = next_state(
                trees,
                landed_before=before.landed,
                agent_tree=agent,
                base=after.base,
                test_paths=paths_of(after.earlier_test_paths),
            )
            same = state == wanted.tree
            say(
                f"{'ok    ' if same else 'FAILED'} {task.name}, step {step}, {name}: {drift} paths of upstream's, "
                f"{len(wanted.conflicts)} conflicts, {state}"
            )
            yield same


@click.command(help=__doc__)
@click.option("--db", required=True, help="The database, with proved chains.")
@click.option("--folder", type=click.Path(exists=True, path_type=Path), required=True, help="An export of them.")
@click.option("--harbor", default="harbor", show_default=True, help="Harbor's program.")
def main(db: str, folder: Path, harbor: str) -> None:
    """See the module."""
    settings = Settings.load(db=db)
    with ExitStack() as stack:
        store = stack.enter_context(closing(Store.open(settings.db, create=False)))
        backend = stack.enter_context(BACKENDS["docker"].of(settings).connected())
        provider = stack.enter_context(closing(Provider(settings, store=store)))
        rig = Rig(store, settings, provider, backend)
        tasks = sorted(path.parent for path in (folder / CHAIN).glob("*/task.toml"))
        found = [same for task in tasks for same in compared(rig, task, harbor)]
    say(f"{sum(found)} of {len(found)} trees are the same")
    sys.exit(0 if found and all(found) else 1)


if __name__ == "__main__":
    main()
