"""What an exported grader is told of its stage: a JSON file beside it, and a pack of git's objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.duels import HeldTest
from environments.suites.outcomes import ClassifiedTests
from environments.suites.runner import TestCommand
from prchain.core.git.output import path_name, path_text

STAGE, OBJECTS = "stage.json", "objects.pack"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSaid:
    """All of a stage that decides a grade, and the image's facts. Trees and commits are in the pack."""

    base: str
    """B_t."""
    landed: str
    """M_t."""
    image_tree: str
    """The tree that the image has in `workdir`; of what is not the agent's change."""
    test_paths: tuple[str, ...]
    earlier_test_paths: tuple[str, ...]
    files: tuple[str, ...]
    classes: ClassifiedTests
    earlier_f2p: tuple[str, ...]
    baseline: RunnerBaseline
    runner: str
    command: TestCommand
    refresh: tuple[str, ...]
    tag: str
    workdir: str
    user: str
    environment: Mapping[str, str]
    outputs: tuple[str, ...]
    """What the refresh made in the image: paths, of folders with a slash behind."""
    watched: tuple[str, ...]
    """Folders of the image's programs."""
    fingerprint: Mapping[str, str]
    """Of these, in the image."""
    seconds: float
    """For one run of the tests."""
    switched_to: str = ""
    """The environment in the image that this one is switched to before anything else; empty: it stays as it is."""

    def text(self) -> str:
        """As a file."""
        return json.dumps(asdict(self), indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Self:
        """The other way round."""
        values = with_tuples(json.loads(path.read_text(encoding="utf-8")))
        baseline = with_tuples(values.pop("baseline"))
        baseline["held"] = tuple(map(HeldTest.of, baseline["held"]))
        return cls(
            baseline=RunnerBaseline(**baseline),
            command=TestCommand(**with_tuples(values.pop("command"))),
            classes=ClassifiedTests(**with_tuples(values.pop("classes"))),
            **values,
        )


def with_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a frozen value as JSON gives them back."""
    return {name: tuple(it) if isinstance(it, list) else it for name, it in values.items()}


def paths_of(texts: Iterable[str]) -> frozenset[bytes]:
    """Paths by their texts."""
    return frozenset(path_name(text).encode("utf-8", "surrogateescape") for text in texts)


def texts_of(paths: Iterable[bytes]) -> tuple[str, ...]:
    """The other way round, sorted."""
    return tuple(sorted(map(path_text, paths)))
