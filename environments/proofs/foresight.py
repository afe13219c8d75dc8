"""What git tells of a chain before anything is built for it: that its mirror lacks files, that it has no test file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from environments.stages import ChainStages, Stage, StagePatch, stage_patches
from environments.suites.chosen_files import chosen_files
from prchain.core.console.terminal import counted
from prchain.core.errors import IncompleteRepository, NoRecipe
from prchain.core.git.repository import GitRepository
from prchain.core.git.trees import SUBMODULE, TreeStore

NO_TEST_FILE = "no test file to run"

UNREADABLE = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What reading a hostile tree raises where it meets a defect of ours. A look ahead leaves such a chain to its unit,
whose boundary tells the defect (`prchain.core.runs`)."""


def whole_patches(git: GitRepository, trees: TreeStore, stages: Sequence[Stage]) -> tuple[StagePatch, ...]:
    """The patches of a chain's stages. Raises `IncompleteRepository` where a file of any stage's trees is missing:
    none of them could be placed in a sandbox."""
    patches = tuple(stage_patches(git, trees, stages))
    entries = (
        entry for stage in stages for tree in (stage.base, stage.landed) for entry in trees.entries(tree).values()
    )
    missing = git.missing(dict.fromkeys(entry.blob for entry in entries if entry.mode != SUBMODULE))
    if missing:
        raise IncompleteRepository(f"the contents of {counted(len(missing), 'file')} are missing; fetch them anew")
    return patches


def foreseen_end(
    chain: ChainStages, git: GitRepository, trees: TreeStore, runner: Callable[[Stage], str]
) -> str | None:
    """Why no image of a chain is worth building, in words; None where one is. `runner` gives a stage's."""
    try:
        patches = whole_patches(git, trees, chain.stages)
        if any(chosen_files(runner(stage), trees, stage, patches).files for stage in chain.stages):
            return None
    except (IncompleteRepository, NoRecipe) as error:
        return error.name
    return NO_TEST_FILE
