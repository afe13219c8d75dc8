"""Run Harbor's own oracle over one chain of two steps, which is made on the spot: what `.ci/run` does of Harbor.

    python -m research.harbor.small --harbor VENV/bin/harbor

It needs what `python -m research.harbor` does, and the base image: of a repository of a few files nothing is built. The
first step's tests are graded, the container is switched to the second stage's environment, upstream's drift comes into
the tree, and the second's tests are graded, which want that environment, as its oracle does. Exit code 1 where the
oracle does not get 1 in both steps.
"""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from environments.images.base_image import NAME, USER
from environments.sandboxes.engine import connect, engine_failures
from environments.stages import Stage, StagePatch
from environments.suites.baseline import RunnerBaseline
from environments.suites.outcomes import ClassifiedTests
from environments.suites.runners import RUNNERS
from prchain.core.git.trees import TreeStore
from research.harbor.__main__ import run
from tests.trajectories.harborworld import BASE, LANDED, NEW_TEST, OLD_TEST, tree_of
from trajectories.export.tasks.harbor.bundle import bundle
from trajectories.export.tasks.harbor.chain_image import ARCHIVES, archive_of
from trajectories.export.tasks.harbor.chain_image import SCRIPT as SWITCH
from trajectories.export.tasks.harbor.drift import SCRIPT, setup_script
from trajectories.export.tasks.harbor.export import GRADER
from trajectories.export.tasks.harbor.folder import FolderStep, HarborTask, files_of
from trajectories.export.tasks.harbor.image import PLACE, script_of
from trajectories.export.tasks.harbor.inside.environment import Plan, pack
from trajectories.export.tasks.harbor.inside.fingerprint import fingerprint
from trajectories.export.tasks.harbor.inside.said import OBJECTS, STAGE, StageSaid
from trajectories.export.tasks.harbor.objects import graders_pack
from trajectories.export.tasks.harbor.reference import reference_files, solve_script

WORKDIR = "/testbed"
IMAGE = "prchain/small:harbor"
WHICH = "/opt/small/which"
"""Holds the name of a stage's environment."""
_VOLUME = "tests.test_volume.VolumeTest.test_volume"
DRIFTED = {**LANDED, "README": "areas, and soon volumes\n", "area.py": f"# areas\n{LANDED['area.py']}"}
LAST = {
    **DRIFTED,
    "volume.py": "from area import area\n\n\ndef volume(a, b, c):\n    return area(a, b) * c\n",
    "tests/test_volume.py": (
        "import unittest\nfrom volume import volume\n\n\nclass VolumeTest(unittest.TestCase):\n"
        "    def test_volume(self):\n        self.assertEqual(volume(2, 3, 4), 24)\n"
        f"        with open({WHICH!r}) as file:\n            self.assertEqual(file.read(), 'second\\n')\n"
    ),
}


def chain(trees: TreeStore) -> HarborTask:
    """The chain, with the image's facts as `image` makes it."""
    bases = [trees.commit(tree_of(trees, files)) for files in (BASE, DRIFTED)]
    ends = [trees.commit(tree_of(trees, files)) for files in (LANDED, LAST)]
    first, second = (Stage(t, t, bases[t - 1], ends[t - 1], f"2026-01-0{t}") for t in (1, 2))
    said = StageSaid(
        base=first.base,
        landed=first.landed,
        image_tree=trees.tree_of(first.base),
        test_paths=("tests/test_area.py",),
        earlier_test_paths=(),
        files=("tests/test_area.py",),
        classes=ClassifiedTests(f2p=(NEW_TEST,), p2p=(OLD_TEST,)),
        earlier_f2p=(),
        baseline=RunnerBaseline(plugins=(), hooks=()),
        runner="unittest",
        command=replace(RUNNERS["unittest"].command, template="/usr/bin/python3 {tools}/python_reporter.py"),
        refresh=(),
        tag="",
        workdir=WORKDIR,
        user=USER,
        environment={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        outputs=(),
        watched=(),
        fingerprint=fingerprint(()),
        seconds=60.0,
    )
    later = replace(
        said,
        base=second.base,
        landed=second.landed,
        test_paths=("tests/test_volume.py",),
        earlier_test_paths=said.test_paths,
        files=("tests/test_area.py", "tests/test_volume.py"),
        classes=ClassifiedTests(f2p=(_VOLUME,), p2p=(OLD_TEST, NEW_TEST)),
        earlier_f2p=(NEW_TEST,),
        switched_to=archive_of(2),
    )
    steps = [_step(trees, stage, told) for stage, told in ((first, said), (second, later))]
    patches = [StagePatch(test_paths=(b"tests/test_area.py",))]
    script = setup_script(trees, first, second, patches, later, "none")
    return HarborTask(
        name="prchain/small",
        description="Two made pull requests",
        keywords=(),
        metadata={},
        image=IMAGE,
        workdir=WORKDIR,
        network="compose",
        steps=[
            replace(steps[0], switches_to=archive_of(2)),
            replace(steps[1], workdir={SCRIPT: script}, solution=_where_second(steps[1].solution)),
        ],
        grader=bundle(GRADER),
        seconds=said.seconds,
        min_reward=1.0,
    )


def _step(trees: TreeStore, stage: Stage, said: StageSaid) -> FolderStep:
    solution = dict(reference_files(trees, stage.base, stage.landed))
    return FolderStep(
        name=str(stage.position),
        instruction="Do it.\n",
        tests={
            STAGE: said.text().encode(),
            OBJECTS: graders_pack(trees, [stage.base, stage.landed], [said.image_tree], ()),
        },
        solution={**solution, "solve.sh": solve_script(WORKDIR, "none").encode()},
    )


def _where_second(solution: Mapping[str, bytes]) -> dict[str, bytes]:
    """A solution that does nothing in another environment."""
    asks = f"set -eu\n[ $(cat {WHICH}) = second ]\n".encode()
    return {**solution, "solve.sh": solution["solve.sh"].replace(b"set -eu\n", asks)}


def environments() -> dict[str, bytes]:
    """What the image has of two environments: the first, and the second as it is packed."""
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder:
        place = Path(f"{folder}{WHICH}")
        place.parent.mkdir(parents=True)
        place.write_text("second\n", encoding="ascii")
        out = io.BytesIO()
        pack(Plan((str(Path(WHICH).parent), WHICH)), out, folder)
    return {WHICH: b"first\n", SWITCH: script_of("environment.py"), archive_of(2): out.getvalue()}


@contextmanager
def image(client: Any, trees: TreeStore, base: str) -> Iterator[None]:
    """The chain's image, for as long as it is used; `base` is the image that it is made of."""
    entries = trees.entries(tree_of(trees, BASE))
    listing = b"".join(b"%s %s %s\0" % (it.mode.encode(), it.blob.encode(), path) for path, it in entries.items())
    ours = {f"{PLACE}/collect.py": script_of("collect.py"), f"{PLACE}/listing": listing}
    theirs = {f"{WORKDIR}/{path}": text.encode() for path, text in BASE.items()}
    repository, _, tag = IMAGE.rpartition(":")
    with engine_failures():
        container = client.containers.create(base, ["sleep", "infinity"], user="0", network_disabled=True)
        try:
            container.start()
            container.put_archive("/", _packed({**ours, **theirs, **environments()}))
            code, words = container.exec_run(f"chown -R {USER}: {WORKDIR}")
            if code != 0:
                raise click.ClickException(words.decode("utf-8", "replace").strip())
            container.commit(repository=repository, tag=tag, conf={"User": USER})
        finally:
            container.remove(force=True)
    try:
        yield
    finally:
        with engine_failures():
            client.images.remove(IMAGE, force=True)


def _packed(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, content in files.items():
            header = tarfile.TarInfo(path.removeprefix("/"))
            header.size, header.mode = len(content), 0o600 if path.startswith(ARCHIVES) else 0o644
            archive.addfile(header, io.BytesIO(content))
    return out.getvalue()


@click.command(help=__doc__)
@click.option("--harbor", default="harbor", show_default=True, help="Harbor's program.")
@click.option("--base", default=NAME, show_default=True, help="The base image.")
def main(harbor: str, base: str) -> None:
    """See the module."""
    with tempfile.TemporaryDirectory(prefix="prchain-") as folder, closing(connect()) as client:
        trees = TreeStore.open(Path(folder) / "own.git")
        task = Path(folder) / "small"
        for path, content in files_of(chain(trees)).items():
            (task / path).parent.mkdir(parents=True, exist_ok=True)
            (task / path).write_bytes(content)
        with image(client, trees, base):
            trial = run(harbor, task, "oracle")
    shown = " ".join("none" if it is None else f"{it:g}" for it in trial.rewards)
    click.echo(f"{'ok    ' if trial.fits('oracle') else 'FAILED'} oracle {trial.task}: {shown or 'nothing'}")
    sys.exit(0 if trial.fits("oracle") else 1)


if __name__ == "__main__":
    main()
