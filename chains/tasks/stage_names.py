"""The names of a stage: those that stand at its base, and those that only its hidden tests tell."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from chains.tasks.base_names import names_at_base
from chains.tasks.interface import SHORTEST, used_names
from chains.tasks.python_uses import Reader, python_names
from prchain.git import GitRepository
from prchain.identifiers import is_code_name
from prchain.leaks import candidate_names
from prchain.reference import Reference


@dataclass(frozen=True, slots=True)
class StageNames:
    """`standing`: the patch's names that stand at B_t, for the leak check; a name of the interface that is shaped as
    one in code is none of them, wherever its word stands. `interface`: sorted."""

    standing: frozenset[str]
    interface: tuple[str, ...]


def stage_names(repository: GitRepository, base: str, landed: str, reference: Reference) -> StageNames:
    """Look up the names of a stage between two commits. Raises `GitError`."""
    used = used_names(reference.source, reference.test)
    candidates = candidate_names(reference.source, reference.test)
    at_base = names_at_base(repository.text_files(base), candidates, used)
    missing = python_names(
        reference.test,
        [file.path for file in reference.source],
        _reader(repository, base),
        _reader(repository, landed),
        [file.old_path for file in reference.source if file.old_path],
    )
    interface = (used - at_base.defined) | {name for name in missing if len(name) >= SHORTEST}
    return StageNames(at_base.standing - {name for name in interface if is_code_name(name)}, tuple(sorted(interface)))


def _reader(repository: GitRepository, commit: str) -> Reader:
    blobs = repository.blobs_at(commit)

    @cache
    def read(path: str) -> str | None:
        return repository.blob(blobs[path]).decode("utf-8", "replace") if path in blobs else None

    return read
