"""Grade made works by our own grader, by the one that folders of Harbor carry, and by folders that were imported again.

    prchain tasks export --format harbor --steps single --out OUT
    prchain tasks import OUT/stages --images && prchain environments validate --strategy imported
    python -m research.harbor.parity --db FILE

For each proved stage of a mined chain: the reference, nothing, the reference without half of its files or hunks, the
reference with a source file that is broken, and a cheat (another one each stage). The folder's grader runs as Harbor
runs it, without Harbor: what `collect.py` packs in one container of the task's image, ``test.sh`` reads in another one.
Where the database has the folder's task as an import, its tests grade the same files, too. Exit code 1 where verdicts
differ.
"""

from __future__ import annotations

import io
import json
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from environments.backend import Backend
from environments.backends import BACKENDS
from environments.duelling import GradingSuite
from environments.graded_runs import graded_run
from environments.images.provide import Provider
from environments.proofs.proof_rows import validations
from environments.sandboxes.engine import engine_failures
from environments.suites.outcomes import PASSED, StateCheck, grade
from environments.workplace import StageSuite
from prchain.core.console.terminal import say, say_table
from prchain.core.errors import PrchainError
from prchain.core.git.trees import TreeEntry, TreeStore
from prchain.core.settings import Settings
from prchain.core.swebench.instances import instance_id
from research.grades.trees import GradedTree, trees_of
from sql.store import Store
from sql.tables import ImportedTask
from trajectories.export.tasks.harbor.bundle import bundle
from trajectories.export.tasks.harbor.export import GRADER
from trajectories.export.tasks.harbor.folder import HarborTask, files_of
from trajectories.export.tasks.harbor.image import ARCHIVE, PLACE
from trajectories.export.tasks.harbor.material import ChainMaterial
from trajectories.export.tasks.harbor.reference import reference_files, solve_script
from trajectories.task import StageTask, read_task

_STRIDE = 4
"""From a stage's cheat to the next one's, so that a few stages have some of each kind."""
_PYTHON = "env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 /usr/bin/python3 -I -S"


@dataclass(frozen=True, slots=True)
class Graded:
    """A verdict, and how long it took."""

    outcome: str
    passed: bool
    seconds: float


@dataclass
class Rig:
    """Where stages are graded; `backend` is Docker's, connected."""

    store: Store
    settings: Settings
    provider: Provider
    backend: Backend

    def material(self, chain_id: str) -> ChainMaterial:
        """All of a chain. Raises `PrchainError`."""
        with self.store.reading() as tx:
            task = read_task(tx, chain_id)
        return ChainMaterial(task, self.settings.mirrors_dir, self.settings.data_dir, self.provider, self.backend)

    def imported(self, material: ChainMaterial, stage: StageTask) -> ChainMaterial | None:
        """The stage's folder as it was imported; None where it was not."""
        name = instance_id(material.task.chain.repository, material.task.chain.id, stage.position)
        with self.store.reading() as tx:
            found = next(tx.rows(ImportedTask, "chain_id", instance_id=name.lstrip(".-_"), form="harbor"), None)
        return self.material(str(found[0])) if found else None


def works(suite: StageSuite, sources: list[str], turn: int) -> Iterator[GradedTree]:
    """The works that are graded; `turn` says which cheat is among them."""
    trees = suite.workplace.trees
    base, landed = trees.tree_of(suite.base), trees.tree_of(suite.landed)
    made = list(trees_of(suite, sources))
    yield from made[:2]
    half = [it for it in made if it.name.startswith("without ")]
    chosen = next((it for it in half if it.name.startswith("without hunk ")), next(iter(half), None))
    if chosen is not None and chosen.tree not in (base, landed):
        yield chosen
    yield from [it for it in made if it.name.startswith("syntax error in ")][:1]
    cheats = sorted((it for it in made if it.kind == "cheat"), key=lambda it: it.name)
    yield cheats[turn * _STRIDE % len(cheats)]


def ours(material: ChainMaterial, stage: StageTask, suite: StageSuite, tree: str) -> Graded:
    """Our own grade."""
    tests, start = material.proved(stage), time.monotonic()
    run = graded_run(GradingSuite(suite), tree, {*tests.classes.f2p, *tests.classes.p2p})
    earlier = material.task.earlier_f2p(stage.position)
    found = grade(
        tests.classes, StateCheck(), run.statuses, earlier_f2p=earlier, cheats=run.cheats, taken_back=run.taken_back
    )
    outcome = found.outcome if run.usable else f"unusable: {run.infra or 'out of time'}"
    return Graded(outcome, found.outcome == PASSED, time.monotonic() - start)


def suite_of(material: ChainMaterial, stage: StageTask) -> StageSuite:
    """The suite of a stage as it was proved. Raises as `ChainMaterial.proved`."""
    tests = material.proved(stage)
    workplace = material.workplace(stage)
    return StageSuite.of(workplace, stage.stage, material.patches, files=tests.files, baseline=tests.baseline)


def exported(material: ChainMaterial, stage: StageTask, tree: str, client: Any) -> Graded:
    """The grade of the folder's own grader, between two containers of its image."""
    start = time.monotonic()
    image, workdir = material.image(stage).name, material.workplace(stage).provided.plan.workdir
    step = material.step(stage, stage, name="", instruction="", canary="none")
    task = HarborTask(
        name="prchain/parity",
        description="",
        keywords=(),
        metadata={},
        image=image,
        workdir=workdir,
        network="compose",
        steps=[step],
        grader=bundle(GRADER),
        seconds=material.workplace(stage).test_timeout,
    )
    files = files_of(task)
    solution: dict[str, bytes] = dict(reference_files(material.trees, material.trees.tree_of(stage.stage.base), tree))
    solution["solve.sh"] = solve_script(workdir, "none").encode()
    with container_of(client, image) as container:
        put(container, "/solution", solution)
        must(container, "bash /solution/solve.sh", user="")
        must(container, f"{_PYTHON} {PLACE}/collect.py {workdir} {PLACE}/listing {ARCHIVE}")
        with engine_failures():
            stream, _ = container.get_archive(ARCHIVE)
            work = b"".join(stream)
    with container_of(client, image) as container:
        must(container, "mkdir -p /logs/verifier /logs/artifacts")
        with engine_failures():
            container.put_archive(str(Path(ARCHIVE).parent), work)
        put(container, "/tests", {it.removeprefix("tests/"): text for it, text in files.items() if it[:6] == "tests/"})
        code, printed = ran(container, "bash /tests/test.sh")
        said = ran(container, "cat /logs/verifier/reward.json")[1]
    if code != 0:
        return Graded(f"no reward: {printed.strip()[-120:]}", passed=False, seconds=time.monotonic() - start)
    outcome = printed.strip().splitlines()[-1].partition(":")[0]
    return Graded(outcome, json.loads(said)["reward"] == 1, time.monotonic() - start)


def again(material: ChainMaterial, tree: str, trees: TreeStore, base: str) -> Graded:
    """The grade of an import's tests, for what a tree of another store has otherwise than the base of both."""
    (stage,) = material.task.stages
    changes = trees.diff(trees.tree_of(base), tree)
    blobs = iter(trees.blobs(change.new.blob for change in changes if change.new is not None))
    edited: dict[bytes, TreeEntry | None] = {
        change.path: None if change.new is None else change.new._replace(blob=material.trees.write_blob(next(blobs)))
        for change in changes
    }
    suite = suite_of(material, stage)
    return ours(material, stage, suite, material.trees.edit(material.trees.tree_of(suite.base), edited))


@contextmanager
def container_of(client: Any, image: str) -> Iterator[Any]:
    with engine_failures():
        container = client.containers.create(image, ["sleep", "infinity"], network_disabled=True)
    try:
        with engine_failures():
            container.start()
        yield container
    finally:
        with engine_failures():
            container.remove(force=True)


def put(container: Any, folder: str, files: Mapping[str, bytes]) -> None:
    must(container, f"mkdir -p {folder}")
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in files.items():
            header = tarfile.TarInfo(name)
            header.size, header.mode = len(content), 0o755
            archive.addfile(header, io.BytesIO(content))
    with engine_failures():
        container.put_archive(folder, out.getvalue())


def ran(container: Any, command: str, user: str = "0") -> tuple[int, str]:
    with engine_failures():
        code, output = container.exec_run(["/bin/bash", "-c", command], user=user)
    return int(code), (output or b"").decode("utf-8", "replace")


def must(container: Any, command: str, user: str = "0") -> None:
    code, output = ran(container, command, user)
    if code != 0:
        raise click.ClickException(f"{command} ended with {code}: {output[-300:]}")


Row = tuple[str, str, str, str, str]


def rows(rig: Rig, only: tuple[str, ...]) -> Iterator[tuple[Row, bool, tuple[float, float]]]:
    """A row for each work, whether its verdicts agree, and the seconds of our own and the folder's grader."""
    with rig.store.reading() as tx:
        chains = [name for name in sorted(validations(tx)) if name.startswith(only)]
    seen: set[str] = set()
    for chain_id in chains:
        material = rig.material(chain_id)
        if material.task.chain.imported:
            continue
        for stage in material.task.stages:
            if stage.tests is None or stage.stage.landed in seen:
                continue
            seen.add(stage.stage.landed)
            place = f"{material.task.chain.repository} {chain_id[:8]}.{stage.position}"
            try:
                suite, came_back = suite_of(material, stage), rig.imported(material, stage)
                material.image(stage)
            except PrchainError as error:
                say(f"{place}: passed over, {error.name}: {error}")
                continue
            sources = [path for path in material.patches[stage.position - 1].source if path.endswith(".py")]
            for work in works(suite, sources, len(seen)):
                own = ours(material, stage, suite, work.tree)
                theirs = exported(material, stage, work.tree, rig.backend.client)
                third = again(came_back, work.tree, material.trees, stage.stage.base) if came_back else None
                agree = own.outcome == theirs.outcome and (third is None or third.passed == own.passed)
                found = third.outcome if third else ""
                say(f"{place} {work.name}: {own.outcome}, {theirs.outcome}, {found or 'not imported'}")
                yield (place, work.name, own.outcome, theirs.outcome, found), agree, (own.seconds, theirs.seconds)


@click.command(help=__doc__)
@click.option("--db", required=True, help="The database, with proved chains.")
@click.option("--chain", "only", multiple=True, default=("",), help="Of these chains, by the beginnings of their ids.")
def main(db: str, only: tuple[str, ...]) -> None:
    """See the module."""
    settings = Settings.load(db=db)
    with ExitStack() as stack:
        store = stack.enter_context(closing(Store.open(settings.db, create=False)))
        backend = stack.enter_context(BACKENDS["docker"].of(settings).connected())
        provider = stack.enter_context(closing(Provider(settings, store=store)))
        found = list(rows(Rig(store, settings, provider, backend), only))
    say_table(("stage", "work", "our grader", "the folder's", "imported again"), [row for row, _, _ in found])
    same = sum(agree for _, agree, _ in found)
    own, theirs = (sum(seconds[place] for _, _, seconds in found) for place in (0, 1))
    say(f"{same} of {len(found)} grades agree; {own:.0f} s by our grader, {theirs:.0f} s by the folders'")
    sys.exit(0 if found and same == len(found) else 1)


if __name__ == "__main__":
    main()
