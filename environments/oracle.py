"""The trees of a task that has no patch: those that its scripts make in a container of its image, step by step.

    workdir, trees = play(engine, repository, said, steps, store)

They run as they do in Harbor for its agent `oracle` (harbor 0.26, `trial/multi_step.py`, `agents/oracle.py`), in one
container: a step's files are laid into the work folder, ``setup.sh`` among them is run there, and then
``/solution/solve.sh``. What is read before and after is the tree as an agent's would be.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from environments.backends.docker import BACKEND
from environments.images.image_plan import ImagePlan
from environments.images.images import find_tagged
from environments.images.published.images import make_published, published_plan
from environments.images.published.said import Published
from environments.images.published.trees import take_base
from environments.images.stage_image import StageImage
from environments.sandboxes.engine import engine_failures
from environments.sandboxes.sandbox import Sandbox
from environments.workplace import Workplace
from prchain.core.errors import (
    BadInstance,
    ExtractionFailed,
    ImageError,
    NoRecipe,
    PlacementFailed,
    RefreshFailed,
    SandboxFileError,
    SandboxLimit,
)
from prchain.core.git.trees import TreeStore

_PATIENCE = 1800.0
"""Seconds for one script of a step."""
_SETUP = "setup.sh"
_SOLUTION = "/solution"


@dataclass(frozen=True, slots=True)
class OracleStep:
    """The scripts of a step: folders on this machine."""

    name: str
    solution: Path
    workdir: Path | None
    variables: Mapping[str, str]

    def failed(self, script: str, why: str) -> BadInstance:
        """The error of a script of the step."""
        return BadInstance(f"{script} of step {self.name} {why}" if self.name else f"{script} {why}")


def play(
    engine: Any, repository: str, said: Published, steps: Sequence[OracleStep], store: TreeStore
) -> list[tuple[str, str]]:
    """The tree that each step begins on, and the one that its oracle leaves.

    Raises `ImageMissing`; `ImageError` for an image in which no tree can be worked on; `BadInstance` where a script
    fails; `SandboxError`, `GitError`.
    """
    image = make_published(engine, repository, said)
    try:
        base = store.tree_of(take_base(engine, repository, said, store))
        plan, _ = published_plan(repository, said, image.name, _no_plan)
        backend = replace(BACKEND, client=engine)
        workplace = Workplace(StageImage(plan, image.name), store, backend=backend)
        try:
            with workplace.sandbox() as sandbox:
                workplace.place(sandbox, base)
                return _played(workplace, sandbox, base, steps)
        except (ExtractionFailed, PlacementFailed, RefreshFailed, SandboxFileError, SandboxLimit) as error:
            raise ImageError(f"the steps of the task cannot be gone through in {said.image}: {error}") from None
    finally:
        _remove(engine, image.name)


def _no_plan() -> ImagePlan:
    raise NoRecipe("the image is the task's own")


def _played(workplace: Workplace, sandbox: Sandbox, base: str, steps: Sequence[OracleStep]) -> list[tuple[str, str]]:
    trees, left = [], base
    for step in steps:
        if step.workdir is not None:
            sandbox.put(sandbox.config.workdir, _packed(step.workdir, sandbox))
            if (step.workdir / _SETUP).is_file():
                _run(sandbox, step, f"bash {_SETUP}", _SETUP, {})
            left = workplace.extract(sandbox, start_tree=left, rules_from=base).tree
        start = left
        sandbox.put(_SOLUTION, _packed(step.solution, sandbox))
        _run(sandbox, step, f"chmod +x {_SOLUTION}/solve.sh && {_SOLUTION}/solve.sh", "solve.sh", step.variables)
        sandbox.exec(f"rm -rf -- {_SOLUTION}/* {_SOLUTION}/.[!.]*", cwd="/")
        left = workplace.extract(sandbox, start_tree=start, rules_from=base).tree
        trees.append((start, left))
    return trees


def _run(sandbox: Sandbox, step: OracleStep, command: str, script: str, variables: Mapping[str, str]) -> None:
    ran = sandbox.exec(command, timeout=_PATIENCE, environment=variables, output_limit=1 << 16)
    if ran.exit_code != 0:
        lines = [line for line in ran.text.splitlines() if line.strip()]
        how = "takes too long" if ran.exit_code is None else f"ends with {ran.exit_code}"
        raise step.failed(script, f"{how}: {lines[-1][-200:]}" if lines else how)


def _packed(folder: Path, sandbox: Sandbox) -> bytes:
    """What lies in a folder as an archive, owned by the sandbox's user; links followed, for each leads to a file."""
    uid, gid = (int(word) for word in sandbox.exec('echo "$(id -u) $(id -g)"', cwd="/").text.split())

    def owned(header: tarfile.TarInfo) -> tarfile.TarInfo:
        header.uid, header.gid, header.uname, header.gname = uid, gid, "", ""
        return header

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT, dereference=True) as archive:
        for name in sorted(os.listdir(folder)):
            archive.add(folder / name, name, filter=owned)
    return out.getvalue()


def _remove(engine: Any, image: str) -> None:
    """The image was made before the reference was known, by which it is gone through once more for later use."""
    if find_tagged(engine, image) is not None:
        with engine_failures():
            engine.images.remove(image, force=True)
