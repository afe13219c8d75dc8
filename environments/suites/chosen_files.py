"""The test files that a stage's runs hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from environments.suites.runners import RUNNERS
from environments.suites.testfiles import LIMIT, choose, is_test_file
from prchain.core.git.output import path_text
from prchain.core.git.trees import EXECUTABLE, FILE, TreeEntry, TreeStore

# An exported grader (`trajectories.export.tasks`) holds this module, and has no database.
if TYPE_CHECKING:
    from environments.stages import Stage, StagePatch


@dataclass(frozen=True, slots=True)
class ChosenFiles:
    """The test files of a stage: those that its runs hold, and of its own test patch those that M_t has."""

    files: tuple[str, ...]
    own: tuple[str, ...]


def chosen_files(
    runner: str, trees: TreeStore, stage: Stage, patches: Sequence[StagePatch], *, limit: int = LIMIT
) -> ChosenFiles:
    """The test files that a stage's runs hold, by `environments.suites.testfiles.choose`; `patches` as in
    `StageSuite.of`. Nothing need be built for that. Raises `IncompleteRepository`."""
    own, earlier = patches[stage.position - 1], patches[: stage.position - 1]
    entries = trees.entries(stage.landed)
    present = {path_text(path) for path in entries}
    patterns = _patterns(runner, trees, entries)
    files = choose(
        runner,
        present,
        test_patch=own.test,
        source_patch=own.source,
        earlier=dict.fromkeys(path for patch in earlier for path in patch.test),
        patterns=patterns,
        limit=limit,
    )
    is_own = (path for path in dict.fromkeys(own.test) if path in present and is_test_file(path, runner, patterns))
    return ChosenFiles(files, tuple(is_own))


def _patterns(runner: str, trees: TreeStore, entries: Mapping[bytes, TreeEntry]) -> tuple[str, ...]:
    """The repository's own patterns for the runner's test files; symbolic links are not followed."""
    own = RUNNERS[runner].own_names
    if own is None:
        return ()
    found = {name: entries[name.encode()] for name in own.files if name.encode() in entries}
    regular = {name: entry for name, entry in found.items() if entry.mode in (FILE, EXECUTABLE)}
    blobs = trees.blobs([entry.blob for entry in regular.values()])
    return own.patterns({name: blob.decode("utf-8", "replace") for name, blob in zip(regular, blobs, strict=True)})
