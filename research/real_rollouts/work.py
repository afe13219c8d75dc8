"""What agents do at a chain, worked out before the rollout: the trees that each stage starts from and ends with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from environments.checkouts.state import Carry, StageState
from environments.stages import Stage
from prchain.git import path_text
from prchain.git.merge import Conflict, merge3
from prchain.git.trees import EXECUTABLE, FILE, TreeEntry, TreeStore
from research.real_rollouts.otherwise import functions_of, otherwise
from trajectories.rollouts.chain_context import ChainContext

Does = Callable[[int, str, str], str]
"""What an agent makes of a stage: from its position, S_t and S_t with the reference's work done, A_t."""


@dataclass(frozen=True, slots=True)
class Spared:
    """What is not written otherwise: functions, as path and dotted name, and whole files.

    Those that are `narrow` are, but on no line that was there before.
    """

    narrow: frozenset[tuple[str, str]] = frozenset()
    left: frozenset[tuple[str, str]] = frozenset()
    files: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class StageWork:
    """One stage: `state` is S_t, `solved` S_t with the reference's source patch merged in, `tree` A_t."""

    position: int
    state: StageState
    solved: str
    tree: str
    conflicts: tuple[Conflict, ...]
    """Where the reference's source patch did not fit S_t, and S_t's own text stands in `solved`."""


def follow(chain_context: ChainContext, does: Does) -> list[StageWork]:
    """The work of an agent at every stage, each on what it left at the one before. Raises `MergeUnsupported`."""
    done: list[StageWork] = []
    for stage in chain_context.task.chain.stages:
        state = chain_context.state(stage.position, done[-1].tree if done else None, Carry.AGENT)
        merged = merge3(chain_context.trees, stage.base, state.tree, solution(chain_context, stage))
        tree = does(stage.position, state.tree, merged.tree)
        done.append(StageWork(stage.position, state, merged.tree, tree, merged.conflicts))
    return done


def solution(chain_context: ChainContext, stage: Stage) -> str:
    """M_t without the stage's test patch."""
    base = chain_context.trees.entries(stage.base)
    tests = chain_context.patches[stage.position - 1].test_paths
    return chain_context.trees.edit(stage.landed, {path: base.get(path) for path in tests})


def reference(chain_context: ChainContext) -> list[StageWork]:
    """The agent that does what the developers did, and writes no tests."""
    return follow(chain_context, lambda position, start, solved: solved)


def breaking(chain_context: ChainContext, first: str) -> list[StageWork]:
    """The agent that leaves stage 1 as the tree `first` and does what the developers did from then on."""
    return follow(chain_context, lambda position, start, solved: first if position == 1 else solved)


def different(chain_context: ChainContext) -> list[StageWork]:
    """The agent that does the same as the developers in other words.

    A function for which that alone would conflict with what upstream made of it later is changed on its own new lines
    only; where it still does, it is left in the developers' words, and where that is not enough, the whole file: a
    conflict would lose upstream's lines, and prove nothing.
    """
    spared = Spared()
    while True:
        works = _in_other_words(chain_context, spared)
        paths = _conflicts(works)
        if paths <= spared.files:
            return works
        for path in paths:
            names = {(path, name) for name in _names(chain_context, path)}
            in_the_way = {
                name for name in names - spared.left if path in _conflicts(_alone(chain_context, spared, name))
            }
            if in_the_way - spared.narrow:
                spared = replace(spared, narrow=spared.narrow | in_the_way)
            elif in_the_way:
                spared = replace(spared, left=spared.left | in_the_way)
            else:
                spared = replace(spared, files=spared.files | {path})


def _in_other_words(chain_context: ChainContext, spared: Spared) -> list[StageWork]:
    return follow(
        chain_context, lambda position, start, solved: written_otherwise(chain_context.trees, start, solved, spared)
    )


def _alone(chain_context: ChainContext, spared: Spared, wanted: tuple[str, str]) -> list[StageWork]:
    """The work where but one function is in other words."""
    path = wanted[0]
    others = {(path, name) for name in _names(chain_context, path)} - {wanted}
    files = {name for patch in chain_context.patches for name in patch.source} - {path}
    return _in_other_words(chain_context, Spared(spared.narrow, frozenset(others), frozenset(files)))


def _conflicts(works: list[StageWork]) -> set[str]:
    return {path_text(conflict.path) for work in works for conflict in (*work.state.conflicts, *work.conflicts)}


def _names(chain_context: ChainContext, path: str) -> set[str]:
    """The functions of a file that the stages write."""
    return {
        name
        for stage in chain_context.task.chain.stages
        for name in functions_of(_at(chain_context, stage.base, path), _at(chain_context, stage.landed, path))
    }


def _at(chain_context: ChainContext, commit: str, path: str) -> str:
    entry = chain_context.trees.entries(commit).get(path.encode("utf-8", "surrogateescape"))
    return chain_context.trees.blobs([entry.blob])[0].decode("utf-8", "replace") if entry else ""


def written_otherwise(store: TreeStore, start: str, tree: str, spared: Spared | None = None) -> str:
    """The tree with every Python function that `start` lacks lines of written otherwise."""
    spared = spared or Spared()
    changes: dict[bytes, TreeEntry | None] = {}
    for change in store.diff(start, tree):
        path, new = path_text(change.path), change.new
        if path in spared.files or not path.endswith(".py") or new is None or new.mode not in (FILE, EXECUTABLE):
            continue
        old = store.blobs([change.old.blob])[0] if change.old else b""
        left, narrow = ([name for of, name in names if of == path] for names in (spared.left, spared.narrow))
        try:
            text = otherwise(old.decode(), store.blobs([new.blob])[0].decode(), left, narrow)
        except UnicodeDecodeError:
            continue
        changes[change.path] = TreeEntry(new.mode, store.write_blob(text.encode()))
    return store.edit(tree, changes)
