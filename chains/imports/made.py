"""An instance with what git says of it: the ends of its stages, its licence, and what its references change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from chains.imports.ends import StageEnds, StepTrees, make_ends, step_ends
from chains.imports.instance import Instance
from chains.stages.licence import licence_of
from prchain.core.code.reference import Reference, split
from prchain.core.errors import BadInstance, GitError
from prchain.core.git import FilePatch, parse_patch
from prchain.core.git.named_paths import named_paths
from prchain.core.git.trees import TreeStore

_SPDX = re.compile(r"[A-Za-z0-9.+-]+")


@dataclass(frozen=True, slots=True)
class MadeStage:
    """A stage of an instance; one without steps has one stage."""

    query: str
    """Without secrets."""
    ends: StageEnds | None
    reference: Reference


@dataclass(frozen=True, slots=True)
class MadeTask:
    """An instance with what git says of it."""

    instance: Instance
    stages: tuple[MadeStage, ...]
    location: str | None
    licence: str | None

    @property
    def waits(self) -> bool:
        """Whether nothing holds what it begins on yet."""
        return self.location is None


def in_store(git: TreeStore, instance: Instance, query: str, base: str | None = None) -> MadeTask:
    """An instance whose ends are made in a store; `base` stands for the commit that it names. Raises as `make_ends`."""
    ends = make_ends(git, instance, base)
    (files,) = git.patches([(ends.base, ends.landed)])
    _require_named(instance, files)
    stage = MadeStage(query, ends, split(files))
    return MadeTask(instance, (stage,), str(git.path.absolute()), licence_of(git, ends.base))


def of_steps(
    git: TreeStore, instance: Instance, trees: Sequence[StepTrees], redacted: Callable[[str], str]
) -> MadeTask:
    """An instance with steps whose trees are in a store; `redacted` takes secrets from queries. Its patch is known by
    now: the heads of what its references change, by which copies of it are looked for in its image. Raises as
    `step_ends`."""
    ends = step_ends(git, instance, trees)
    pairs = [(it.base, it.landed) for it in ends]
    stages = tuple(
        MadeStage(redacted(step.query), it, split(files))
        for step, it, files in zip(instance.steps, ends, git.patches(pairs), strict=True)
    )
    heads = "".join(_heads(git, found.base, found.landed) for found in trees)
    return MadeTask(
        replace(instance, patch=heads),
        stages,
        str(git.path.absolute()),
        _named(instance) or licence_of(git, ends[0].base),
    )


def _heads(git: TreeStore, base: str, landed: str) -> str:
    """The lines of a patch that name its files."""
    lines = git.patch_text(base, landed).split(b"\n")
    return "".join(f"{line.decode()}\n" for line in lines if line.startswith(b"diff --git "))


def waiting(instance: Instance, redacted: Callable[[str], str]) -> MadeTask:
    """An instance that no repository and no image holds the commit of: with what its row alone says."""
    queries = [step.query for step in instance.steps] or [instance.query]
    stages = tuple(MadeStage(redacted(query), None, _told(instance)) for query in queries)
    return MadeTask(instance, stages, None, _named(instance))


def _named(instance: Instance) -> str | None:
    return instance.licence if instance.licence and _SPDX.fullmatch(instance.licence) else None


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
