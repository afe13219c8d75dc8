"""One task of somebody else's data set, as a value: what all forms of such data sets have in common."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path

_DIGITS = 16
"""As many as the id of a chain has (`chains.identity`)."""


@dataclass(frozen=True)
class TaskStep:
    """One step of a task that is a folder of scripts, and has no patch: the folders stay where they are until the
    step's trees are made."""

    name: str
    """Of a task of one step: empty."""
    query: str
    """Word for word."""
    tests: tuple[Path, ...]
    """Folders whose files its tests are; a later one's are laid over those of earlier ones."""
    solution: Path
    """The folder with the oracle."""
    workdir: Path | None = None
    """The folder of what is laid into the work folder before the step."""


@dataclass(frozen=True)
class Instance:
    """One task, as its publisher wrote it. What a form does not tell is None, or empty."""

    source: str
    """The data set: ``owner/name`` of a hub where that is known, else the name of a file or a folder."""
    form: str
    """The name of the reader (`chains.imports.forms`)."""
    instance_id: str
    repository: str
    """``owner/name``."""
    base_commit: str
    """In the repository; may be the beginning of its name."""
    query: str
    """Word for word; where there are `steps`, that of the first."""
    patch: str
    """The reference patch; where `breaks`, the patch that brings the fault in, which the reference takes back."""
    test_patch: str
    f2p: tuple[str, ...]
    """By the names of the publisher's log parser, as are those of `p2p`."""
    p2p: tuple[str, ...]
    breaks: bool = False
    image: str | None = None
    """As Docker names it."""
    image_by: str | None = None
    """``column``, or ``rule``: the publisher's own way to name images."""
    workdir: str | None = None
    """Where the image has the repository."""
    test_command: tuple[str, ...] = ()
    """Lines of shell, to be run in `workdir`."""
    log_parser: str | None = None
    """The publisher's name of it."""
    licence: str | None = None
    """Of the repository, as the row names it."""
    revision: str | None = None
    """Of the data set."""
    split: str | None = None
    difficulty: str | None = None
    language: str | None = None
    created_at: str | None = None
    """UTC, ISO 8601 with seconds."""
    benchmark: bool = False
    """Whether its data set is there to measure models, so that no training data may hold it. A reader says so where
    the row does; `chains.imports.marks` has the last word."""
    steps: tuple[TaskStep, ...] = ()
    """Of a task that is a folder, whose `base_commit` is the hash of all that lies in it: each becomes a stage."""
    oracle_variables: tuple[tuple[str, str], ...] = ()
    """What the oracle of a folder finds in its environment."""
    own: str | None = None
    """The id of the chain of ours, of no benchmark, that the row says it was exported from. Anybody can write that: who
    takes the instance in has to look whether that chain is there."""

    @cached_property
    def chain_id(self) -> str:
        """The id of the chain that it becomes: of its data set, its name, and what there is to do.

        Lists of tests are not part of it: what a chain's tests are, its proof says.
        """
        decides = (
            "imported",
            self.source.lower(),
            self.instance_id,
            self.repository.lower(),
            self.base_commit.lower(),
            self.query,
            "" if self.steps else self.patch,  # known when its oracle has run
            self.breaks,
            self.test_patch,
        )
        return sha256(json.dumps(decides).encode()).hexdigest()[:_DIGITS]


@dataclass(frozen=True, slots=True)
class DataSet:
    """Where rows come from: what a reader cannot know of the row alone."""

    source: str
    revision: str | None = None
    split: str | None = None
    names: tuple[str, ...] = field(default=(), compare=False)
    """What its files and folders are called, whatever `source` is."""
