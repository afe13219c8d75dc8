"""The state of a stage: the tree that an agent starts on, for each way to carry earlier stages' work on.

S_1 = B_1 and S_t = merge3(base = M_{t-1}, ours = A_{t-1}, theirs = B_t): the base of the stage, with the agent's
version of the earlier stages in place of the reference's. Measured on real pull requests this gives exactly B_t for an
agent that reproduced the reference, and lets no reference line in (`make state-pairs`); no other base does.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from environments.checkouts.carry import Carry
from prchain.core.errors import NoneUnavailable
from prchain.core.git.merge import Conflict, merge3
from prchain.core.git.output import path_text
from prchain.core.git.trees import TreeStore


@dataclass(frozen=True, slots=True)
class StageState:
    """S_t. `test_paths_reset` are the paths of earlier test patches where the agent had something else than M_{t-1}."""

    tree: str
    conflicts: tuple[Conflict, ...] = ()
    test_paths_reset: tuple[bytes, ...] = ()


def first_state(store: TreeStore, base: str) -> StageState:
    """S_1: the tree of the base commit B_1. Raises `IncompleteRepository` where it is missing."""
    return StageState(store.tree_of(base))


def next_state(
    store: TreeStore,
    *,
    landed_before: str,
    agent_tree: str,
    base: str,
    test_paths: Collection[bytes] = (),
    carry: Carry | str = Carry.AGENT,
    earlier: Sequence[tuple[str, str]] = (),
) -> StageState:
    """S_t for t > 1, from M_{t-1}, A_{t-1} and B_t (commits or trees).

    `test_paths` are the paths of the test patches of all earlier stages; `earlier` their (base, landed) commits in
    reference order, which only `Carry.NONE` needs. Raises `MergeUnsupported`, `NoneUnavailable`,
    `IncompleteRepository`.
    """
    match Carry(carry):
        case Carry.REFERENCE:
            return StageState(store.tree_of(base))
        case Carry.NONE:
            return _without(store, base, earlier)
        case Carry.AGENT:
            ours, reset = _with_tests_of(store, landed_before, agent_tree, test_paths)
            merged = merge3(store, landed_before, ours, base)
            return StageState(merged.tree, merged.conflicts, reset)


def _with_tests_of(
    store: TreeStore, landed: str, agent_tree: str, paths: Collection[bytes]
) -> tuple[str, tuple[bytes, ...]]:
    """The agent's tree with the earlier test files as they landed, and the paths where that changed anything.

    Those stages are over and upstream goes on editing these files; the agent's own version of them would conflict with
    every edit, though no judgement depends on it.
    """
    if not paths:
        return store.tree_of(agent_tree), ()
    landed_entries, agent_entries = store.entries(landed), store.entries(agent_tree)
    changes = {
        path: landed_entries.get(path)
        for path in sorted(set(paths))
        if landed_entries.get(path) != agent_entries.get(path)
    }
    return store.edit(agent_tree, changes), tuple(changes)


def _without(store: TreeStore, base: str, earlier: Sequence[tuple[str, str]]) -> StageState:
    tree = store.tree_of(base)
    for before, landed in reversed(earlier):
        reverted = merge3(store, landed, tree, before)
        if reverted.conflicts:
            paths = ", ".join(path_text(conflict.path) for conflict in reverted.conflicts[:5])
            raise NoneUnavailable(f"the reference patch that landed as {landed[:12]} cannot be taken back: {paths}")
        tree = reverted.tree
    return StageState(tree)
