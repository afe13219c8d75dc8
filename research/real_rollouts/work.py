"""The work of agents on a chain, computed before the rollout: the trees that each stage starts from and ends with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from environments.checkouts.carry import Carry
from environments.checkouts.state import StageState
from environments.stages import Stage
from prchain.core.git import path_text
from prchain.core.git.merge import Conflict, merge3
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry, TreeStore
from research.real_rollouts.otherwise import functions_of, otherwise
from trajectories.rollouts.chain_context import ChainContext

AgentWork = Callable[[int, str, str], str]
"""An agent's work on a stage: from its position, S_t, and S_t with the reference's work done, to A_t."""


@dataclass(frozen=True, slots=True)
class Spared:
    """What is not rewritten: functions, as path and dotted name, and whole files.

    Functions that are `narrow` are rewritten, but only on new lines.
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
    """Where the reference's source patch did not fit S_t, so that `solved` has S_t's own text."""


def follow(chain_context: ChainContext, agent: AgentWork) -> list[StageWork]:
    """The work of an agent at every stage, each based on its tree of the stage before. Raises `MergeUnsupported`."""
    done: list[StageWork] = []
    for stage in chain_context.task.chain.stages:
        state = chain_context.state(stage.position, done[-1].tree if done else None, Carry.AGENT)
        merged = merge3(chain_context.trees, stage.base, state.tree, solution(chain_context, stage))
        tree = agent(stage.position, state.tree, merged.tree)
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

    A function whose rewriting conflicts with upstream's later changes is rewritten on its own new lines only. If it
    still conflicts, it keeps the developers' words, and if that is not enough, the whole file does: a conflict would
    lose upstream's lines, and prove nothing.
    """
    spared = Spared()
    while True:
        works = _rewritten_works(chain_context, spared)
        paths = _conflicts(works)
        if paths <= spared.files:
            return works
        for path in paths:
            names = {(path, name) for name in _names(chain_context, path)}
            in_the_way = {
                name
                for name in names - spared.left
                if path in _conflicts(_rewritten_alone(chain_context, spared, name))
            }
            if in_the_way - spared.narrow:
                spared = replace(spared, narrow=spared.narrow | in_the_way)
            elif in_the_way:
                spared = replace(spared, left=spared.left | in_the_way)
            else:
                spared = replace(spared, files=spared.files | {path})


def _rewritten_works(chain_context: ChainContext, spared: Spared) -> list[StageWork]:
    return follow(
        chain_context, lambda position, start, solved: written_otherwise(chain_context.trees, start, solved, spared)
    )


def _rewritten_alone(chain_context: ChainContext, spared: Spared, function: tuple[str, str]) -> list[StageWork]:
    """The work with only one function in other words."""
    path = function[0]
    others = {(path, name) for name in _names(chain_context, path)} - {function}
    files = {name for patch in chain_context.patches for name in patch.source} - {path}
    return _rewritten_works(chain_context, Spared(spared.narrow, frozenset(others), frozenset(files)))


def _conflicts(works: list[StageWork]) -> set[str]:
    return {path_text(conflict.path) for work in works for conflict in (*work.state.conflicts, *work.conflicts)}


def _names(chain_context: ChainContext, path: str) -> set[str]:
    """The functions of a file that the stages write."""
    return {
        name
        for stage in chain_context.task.chain.stages
        for name in functions_of(_text_at(chain_context, stage.base, path), _text_at(chain_context, stage.landed, path))
    }


def _text_at(chain_context: ChainContext, commit: str, path: str) -> str:
    entry = chain_context.trees.entries(commit).get(path.encode("utf-8", "surrogateescape"))
    return chain_context.trees.blobs([entry.blob])[0].decode("utf-8", "replace") if entry else ""


def written_otherwise(store: TreeStore, start: str, tree: str, spared: Spared | None = None) -> str:
    """The tree with every Python function rewritten that has lines `start` lacks."""
    spared = spared or Spared()
    changes: dict[bytes, TreeEntry | None] = {}
    for change in store.diff(start, tree):
        path, new = path_text(change.path), change.new
        if path in spared.files or not path.endswith(".py") or new is None or new.mode not in (FILE, EXECUTABLE):
            continue
        old = store.blobs([change.old.blob])[0] if change.old else b""
        excluded, narrow = ([name for file, name in names if file == path] for names in (spared.left, spared.narrow))
        try:
            text = otherwise(old.decode(), store.blobs([new.blob])[0].decode(), excluded, narrow)
        except UnicodeDecodeError:
            continue
        changes[change.path] = TreeEntry(new.mode, store.write_blob(text.encode()))
    return store.edit(tree, changes)
