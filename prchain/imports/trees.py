"""What imported tasks begin on, out of the images that their publishers name."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from chains.imports.ends import TESTS, StepTrees
from chains.imports.instance import Instance
from environments.images.published.images import work_folder
from environments.images.published.said import WORKDIR, Published, changed_paths
from environments.images.published.trees import take_base
from environments.oracle import OracleStep, play
from environments.sandboxes.engine import LONG, connect
from prchain.core.git.trees import TreeStore


class EngineTrees:
    """Takes trees out of images (`chains.imports.importing.ImageTrees`) of the engine at `url`, which is looked for
    when the first one is wanted; a context manager."""

    def __init__(self, url: str | None) -> None:
        self._url = url
        self._engine: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._engine is not None:
            self._engine.close()

    def take(self, instance: Instance, store: TreeStore) -> str:
        """See `chains.imports.importing.ImageTrees`; raises `EngineUnavailable`, too."""
        changed = changed_paths(instance.patch, instance.test_patch)
        workdir = instance.workdir or WORKDIR
        said = Published(str(instance.image), instance.base_commit, workdir, changed=changed)
        return take_base(self._connected(), instance.repository, said, store)

    def play(self, instance: Instance, store: TreeStore) -> tuple[str, Sequence[StepTrees]]:
        """See `chains.imports.importing.ImageTrees`; raises `EngineUnavailable`, too."""
        engine, image = self._connected(), str(instance.image)
        workdir = instance.workdir or work_folder(engine, image)
        # What the references change is not known before they have run: of the tests alone copies can be looked for.
        changed = (f"{TESTS}/test.sh",)
        said = Published(
            image, instance.base_commit, workdir, instance.test_command, instance.log_parser, changed=changed
        )
        variables = dict(instance.oracle_variables)
        steps = [OracleStep(step.name, step.solution, step.workdir, variables) for step in instance.steps]
        return workdir, [StepTrees(*pair) for pair in play(engine, instance.repository, said, steps, store)]

    def _connected(self) -> Any:
        if self._engine is None:
            self._engine = connect(self._url, timeout=LONG)
        return self._engine
