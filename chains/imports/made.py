"""An instance with what git says of it: its ends, its licence, and what its reference changes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from chains.imports.ends import StageEnds, make_ends
from chains.imports.instance import Instance
from chains.stages.licence import licence_of
from prchain.core.code.reference import Reference, split
from prchain.core.errors import BadInstance, GitError
from prchain.core.git import FilePatch, parse_patch
from prchain.core.git.named_paths import named_paths
from prchain.core.git.trees import TreeStore

_SPDX = re.compile(r"[A-Za-z0-9.+-]+")


@dataclass(frozen=True, slots=True)
class MadeTask:
    """An instance with what git says of it."""

    instance: Instance
    query: str
    """Without secrets."""
    ends: StageEnds | None
    location: str | None
    licence: str | None
    reference: Reference


def in_store(git: TreeStore, instance: Instance, query: str, base: str | None = None) -> MadeTask:
    """An instance whose ends are made in a store; `base` stands for the commit that it names. Raises as `make_ends`."""
    ends = make_ends(git, instance, base)
    (files,) = git.patches([(ends.base, ends.landed)])
    _require_named(instance, files)
    return MadeTask(instance, query, ends, str(git.path.absolute()), licence_of(git, ends.base), split(files))


def waiting(instance: Instance, query: str) -> MadeTask:
    """An instance that no repository and no image holds the commit of: with what its row alone says."""
    licence = instance.licence if instance.licence and _SPDX.fullmatch(instance.licence) else None
    return MadeTask(instance, query, None, None, licence, _told(instance))


def _require_named(instance: Instance, files: Iterable[FilePatch]) -> None:
    """Refuse patches that change a file which none of their heads names to us: copies of them could not be looked for
    in images. Files of tests that come back where a fault is brought in are in no patch. Raises `BadInstance`."""
    named = {*named_paths(instance.patch), *named_paths(instance.test_patch)}
    if instance.breaks:
        named |= {test.partition("::")[0] for test in instance.f2p}
    changed = {path for file in files for path in (file.path, file.old_path) if path}
    if unnamed := sorted(changed - named):
        raise BadInstance(f"a patch changes {unnamed[0][:100]!r}, and no line of it names that file")


def _told(instance: Instance) -> Reference:
    """The reference patch as the row tells it."""
    try:
        files = [*parse_patch(instance.patch), *parse_patch(instance.test_patch)]
    except GitError:
        return Reference()
    return split(files)
