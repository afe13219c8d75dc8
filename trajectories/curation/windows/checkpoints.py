"""The points of a curated stage at which its sandbox can be taken up: snapshots, and the trees of those that an earlier
process took."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from environments.checkouts.checkout import move_tree
from environments.sandboxes.sandbox import Sandbox
from prchain.core.errors import SandboxError, SandboxLost
from prchain.core.git.trees import TreeStore
from trajectories.curation.windows.candidates import WindowCandidate, first_steps, tree_after
from trajectories.curation.windows.rolling import Continuation
from trajectories.outcomes import SANDBOX_KILLED

_MOST_LOSSES = 3
"""After so many lost copies of the sandbox in a row, the candidate's steps are what ends them."""


class Checkpoints:
    """The snapshots of one window after another. `sandbox` is the stage's, and `tree` what it holds; `forget` is told
    of each snapshot that is forgotten."""

    def __init__(self, sandbox: Sandbox, trees: TreeStore, tree: str, forget: Callable[[str], None]) -> None:
        self.tree = tree
        """Of the sandbox, after the last committed step."""
        self._sandbox = sandbox
        self._trees = trees
        self._forget = forget
        self._base: str | None = None
        self._snapshots: dict[int, dict[int, str | None]] = {}
        """Number of a candidate of this window to the snapshots after its steps."""

    def base(self) -> str:
        """The snapshot of the sandbox as it is at the window's start. Raises `SandboxError`."""
        if self._base is None:
            self._base = self._sandbox.snapshot()
        return self._base

    def keep(self, candidate: int, snapshots: Mapping[int, str | None]) -> None:
        """Take the snapshots after the steps of a candidate."""
        self._snapshots[candidate] = dict(snapshots)

    def of(self, candidate: int) -> Mapping[int, str | None]:
        """The snapshots after the steps of a candidate, as far as this process took them."""
        return self._snapshots.get(candidate, {})

    def taken(self) -> set[str]:
        """The snapshots of this window but the one that it began with."""
        names = {name for snapshots in self._snapshots.values() for name in snapshots.values() if name}
        return names - {self._base or ""}

    def after(self, candidate: WindowCandidate, step: int) -> str:
        """A snapshot that is as after a step of a candidate. Where an earlier process made the candidate, it is made
        anew from the step's tree: what lies outside of it is as at the window's start. Raises `SandboxError`,
        `GitError`."""
        if (snapshot := self.of(candidate.number).get(step)) is not None:
            return snapshot
        tree = tree_after([entry for entry in candidate.entries if entry.step <= step], self.tree)
        if tree == self.tree:
            return self.base()
        with self._sandbox.branch(self.base()) as branch:
            move_tree(branch, self._trees, self.tree, tree)
            snapshot = branch.snapshot()
        self._snapshots.setdefault(candidate.number, {})[step] = snapshot
        return snapshot

    def moves(self, candidate: WindowCandidate, count: int) -> bool:
        """Whether the sandbox has to go to another snapshot to be as after so many steps of a candidate."""
        if not count:
            return False
        if candidate.number not in self._snapshots:
            return tree_after(first_steps(candidate, count), self.tree) != self.tree
        return self.of(candidate.number).get(candidate.steps[count - 1].number) != self._base

    def go_to(self, candidate: WindowCandidate, count: int) -> str:
        """Bring the sandbox to where it is after so many steps of a candidate; returns its tree. The next window begins
        there: other snapshots are forgotten. Raises `SandboxError`, `GitError`."""
        kept = self._base
        if self.moves(candidate, count):
            kept = self.after(candidate, candidate.steps[count - 1].number)
            self._sandbox.restore(kept)
        for name in sorted((self.taken() | {self._base or ""}) - {kept or "", ""}):
            self._forget(name)
            with suppress(SandboxError):
                self._sandbox.forget(name)
        self._snapshots = {}
        self._base = kept
        self.tree = tree_after(first_steps(candidate, count), self.tree)
        return self.tree

    def in_copy(self, begin: Callable[[], str], roll: Callable[[Sandbox], Continuation]) -> Continuation:
        """What a continuation comes to in a copy of the sandbox as it is at a snapshot. A copy that is lost is made
        again, for some time. Raises `SandboxError` where none can be made."""
        lost = ""
        for _ in range(_MOST_LOSSES):
            with self._sandbox.branch(begin()) as branch:
                try:
                    return roll(branch)
                except SandboxLost as error:
                    lost = str(error)
        return Continuation((), SANDBOX_KILLED, f"{_MOST_LOSSES} sandboxes ended at the same step: {lost}")
