"""What the references of a made chain hide, at the size of a real chain's: for benches of the leak check."""

from __future__ import annotations

from dataclasses import replace

from prchain.core.git import FilePatch, Hunk
from prchain.core.leaks import candidate_names, stage_facts
from research.bench.watched import source
from trajectories.verdicts.hidden import HiddenContent, HiddenStage

STAGES = 5
FILES = 9_000
"""Of the repository."""
SOURCE_FILES, TEST_FILES = 6, 3
"""That a stage touches; of each list the first one is new."""
ADDED = 4_000
"""Characters that a stage adds to a file: about a hundred lines."""
_NEW = 10
"""Of so many names of a patch one stands nowhere at its base."""


def hidden_content(files: int = FILES) -> HiddenContent:
    """What a chain in a repository of so many files hides. The same at every call."""
    paths = frozenset(f"src/area_{number % 60}/part_{number % 7}/file_{number}.py" for number in range(files))
    return HiddenContent(tuple(_stage(position, paths) for position in range(1, STAGES + 1)))


def _stage(position: int, paths: frozenset[str]) -> HiddenStage:
    patch = [
        _patch(f"src/area_{position}/stage_{position}_{number}.py", position, number) for number in range(SOURCE_FILES)
    ]
    tests = [
        _patch(f"tests/area_{position}/test_stage_{position}_{number}.py", position, SOURCE_FILES + number)
        for number in range(TEST_FILES)
    ]
    names = sorted(candidate_names(patch, tests))
    standing = set(names) - set(names[::_NEW])
    facts = stage_facts(1_000 + position, (f"{position:040x}",), patch, tests, standing)
    own = stage_facts(1_000 + position, (), tests, (), standing)
    new = frozenset(file.path for file in (patch[0], tests[0]))
    return HiddenStage(
        facts=replace(facts, literals=facts.literals | own.literals, prose=facts.prose | own.prose),
        numbers=frozenset(),
        new_paths=new,
        test_paths=frozenset(file.path for file in tests),
        base_paths=paths | {file.path for file in (*patch, *tests)} - new,
    )


def _patch(path: str, position: int, number: int) -> FilePatch:
    lines = tuple(
        f"+{line}" for line in source(position * 104_729 + number * 15_485, ADDED, "environments").split("\n")
    )
    return FilePatch(path, hunks=(Hunk(1, 0, 1, len(lines), "", lines),))
