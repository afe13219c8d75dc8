"""A stage's base, placed and made ready once: later sandboxes begin with it, and other trees are placed from there."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from environments.checkouts.checkout import place_by_git, place_tree, start_commit
from environments.checkouts.placed import PartedPacks, move_placed
from environments.readiness import Readiness, readiness
from environments.sandboxes.sandbox import Begin, KeepsPlace, Sandbox
from prchain.core.errors import PlacementFailed, RefreshFailed
from prchain.core.git.trees import RAW_ATTRIBUTES

if TYPE_CHECKING:
    from environments.backend import Backend
    from environments.images.stage_image import StageImage
    from prchain.core.git.trees import TreeStore

log = logging.getLogger(__name__)

_GIT = 300.0
_MOST_LISTED = 8 << 20
STAMP = "touch -d @$(($(stat -c %Y .git/index) + 1)) .git/index && git update-index --refresh"
"""All files are as the index says. It becomes younger than they are: git reads files that are as young as its index."""
_RECALL = """\
while [ $(($(date +%s) + 1)) -eq "$(stat -c %Y .git/index)" ]; do sleep 0.1; done
cat .git/info/exclude 2> /dev/null || true"""
"""Ends when what is written from then on is no older than the index, so that git sees it."""
_ESCAPED = re.compile(rb"\\(.)", re.DOTALL)
_told: set[str] = set()
"""Backends of which it was said that they keep nothing."""


class BaseMaker(Protocol):
    """What is needed of a workplace (`environments.workplace`)."""

    provided: StageImage
    trees: TreeStore
    backend: Backend

    def make_ready(self, sandbox: Sandbox) -> bool: ...

    def remember_outputs(self, paths: Collection[bytes]) -> None: ...


class KeptBase:
    """The base of a workplace's stage, the commit B_t. Trees of agents are never kept."""

    def __init__(self, workplace: BaseMaker, base: str) -> None:
        self._workplace = workplace
        self._base = workplace.trees.tree_of(base)

    def key(self) -> str:
        """What decides the content of its place, beside the image; see `SandboxConfig.place`."""
        plan = self._workplace.provided.plan
        scripts = self._workplace.backend.refreshes(plan)
        told = [self._base, plan.workdir, plan.tag, sorted(plan.environment.items()), scripts, RAW_ATTRIBUTES]
        return json.dumps(told)

    def place(self, sandbox: Sandbox, tree: str, history: Sequence[str]) -> bool:
        """Do what `Workplace.place` does, by way of the base; False where nothing is kept for this sandbox: nothing was
        done. Raises as `Workplace.place`."""
        if not isinstance(sandbox, KeepsPlace):
            name = self._workplace.backend.name
            if name not in _told:
                _told.add(name)
                log.info("the backend %s keeps no base of a stage: each sandbox is set up anew", name)
            return False
        began = sandbox.take_place()
        if began is Begin.NOTHING:
            return False
        if not self._from_base(sandbox, began, tree, history):
            place_by_git(sandbox, self._workplace.trees, tree, history=history)
            self._workplace.make_ready(sandbox)
        return True

    def _from_base(self, sandbox: KeepsPlace, began: Begin, tree: str, history: Sequence[str]) -> bool:
        """False where the tree cannot be placed and made ready from there; then the sandbox holds its image alone."""
        workplace, trees = self._workplace, self._workplace.trees
        plan = workplace.provided.plan
        scripts = workplace.backend.refreshes(plan)
        left = readiness(trees, self._base, tree, scripts=scripts, manifests=plan.recipe.manifests)
        if left is Readiness.ANEW:
            if began is not Begin.EMPTY:
                sandbox.leave_place()
            return False
        try:
            if began is Begin.EMPTY and not self._keep(sandbox, tree, history):
                return True
            self._recall(sandbox)
            move_placed(sandbox, trees, self._base, tree, history=history)
        except PlacementFailed as error:
            log.warning("a tree is placed anew, and not from the kept base: %s", error)
            sandbox.leave_place()
            return False
        if left is Readiness.REFRESH:
            self._forget_outputs(sandbox)
            workplace.make_ready(sandbox)
        return True

    def _keep(self, sandbox: KeepsPlace, tree: str, history: Sequence[str]) -> bool:
        """Set the base up and keep it. Where it cannot be made ready the tree is set up in its place: False."""
        workplace, trees = self._workplace, self._workplace.trees
        try:
            with PartedPacks(trees, start_commit(trees, self._base)) as packs:
                place_by_git(sandbox, trees, self._base)
                is_named = workplace.make_ready(sandbox)
                packs.put(sandbox)
            settled = sandbox.exec(STAMP, timeout=_GIT)
            if settled.exit_code != 0:
                raise PlacementFailed(f"the base is not what was placed: {settled.text.strip()[:300]}")
            if is_named:
                sandbox.keep_place()
        except RefreshFailed:
            if trees.tree_of(tree) == self._base:
                raise
            place_tree(sandbox, trees, tree, history=history)
            workplace.make_ready(sandbox)
            return False
        return True

    def _recall(self, sandbox: KeepsPlace) -> None:
        """Know what the refresh of the kept base made: the repository there says what it hides."""
        told = sandbox.exec(_RECALL, output_limit=_MOST_LISTED).output
        lines = (line for line in told.split(b"\n") if line.startswith(b"/"))
        self._workplace.remember_outputs({_ESCAPED.sub(rb"\1", line.removeprefix(b"/")) for line in lines})

    @staticmethod
    def _forget_outputs(sandbox: Sandbox) -> None:
        """Remove what the refresh made in the work folder."""
        removed = sandbox.exec("git clean -ffdxq && rm -f .git/info/exclude", timeout=_GIT)
        if removed.exit_code != 0:
            raise PlacementFailed(f"what the refresh made cannot be removed: {removed.text.strip()[:300]}")
