"""What the reference patches of a chain hide from the agent, and whether a text gives any of it away.

The leak check (`prchain.leaks`) knows names, lines, literals and commit ids. A comment is held to more: numbers and
paths that only a reference has, and everything that names a hidden test. What the agent wrote itself or was told is no
secret, wherever the reference has it too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from environments.stages import Stage
from prchain.git import FilePatch, GitRepository
from prchain.identifiers import identifiers
from prchain.leaks import Finding, StageFacts, candidate_names, check, stage_facts
from prchain.leaks.finding import finding
from prchain.leaks.reading import TextReading
from prchain.reference import Reference, split
from trajectories.verdicts.numbers import Value, numbers
from trajectories.verdicts.patch_text import file_patches

_WHOLE = 1_000_000
"""Lines of context, so that a patch holds all of the files it touches."""

_MOST_LEXED = 1_000_000
"""Characters that an agent adds, in its smallest files, of which lines and literals are known again: to lex a million
takes some five seconds. What is larger is generated, or padding."""

_SHORTEST_BASENAME = 6


@dataclass(frozen=True)
class HiddenStage:
    """What one stage's reference hides. Paths are those of `FilePatch`."""

    facts: StageFacts
    """Literals and prose of the test patch among them; interface names where the agent is told them."""
    numbers: frozenset[Value]
    """What numbers are worth that its patch adds and the files it touches did not hold."""
    new_paths: frozenset[str]
    """Paths that it touches and that are not there before."""
    test_paths: frozenset[str]
    """Paths of its test patch: that they are tested is hidden, even of files that stand there."""
    base_paths: frozenset[str]
    """Every path of B_t."""


@dataclass(frozen=True)
class HiddenContent:
    """What the references of a chain hide, stage by stage."""

    stages: tuple[HiddenStage, ...]


def read_hidden(
    git: GitRepository, stages: Sequence[Stage], interfaces: Mapping[int, Iterable[str]] | None = None
) -> HiddenContent:
    """What the stages of a chain hide, read from git; some seconds for a large repository.

    `interfaces` are the names by position that the agent is told beside the queries. Raises `GitError`.
    """
    told = interfaces or {}
    patches = git.patches([(stage.base, stage.landed) for stage in stages], context=_WHOLE)
    return HiddenContent(
        tuple(
            _stage(git, stage, patch, told.get(stage.position, ()))
            for stage, patch in zip(stages, patches, strict=True)
        )
    )


def _stage(git: GitRepository, stage: Stage, patch: Sequence[FilePatch], told: Iterable[str]) -> HiddenStage:
    reference = split(patch)
    names = git.words_at(stage.base, candidate_names(reference.source, reference.test))
    shas = (stage.landed, stage.base)
    facts = stage_facts(stage.number, shas, reference.source, reference.test, names, told)
    # The titles that tests have in some languages, and what they expect, are literals of the test patch.
    tests = stage_facts(stage.number, (), reference.test, (), names)
    base_paths = frozenset(git.paths_at(stage.base))
    return HiddenStage(
        facts=replace(facts, literals=facts.literals | tests.literals, prose=facts.prose | tests.prose),
        numbers=frozenset(_new_numbers(reference)),
        new_paths=frozenset(reference.paths) - base_paths,
        test_paths=frozenset(path for file in reference.test for path in (file.path, file.old_path) if path),
        base_paths=base_paths,
    )


def _new_numbers(reference: Reference) -> set[Value]:
    files = (*reference.source, *reference.test)
    added, old = (_values(line for file in files for line in lines(file)) for lines in (_added, _old_lines))
    return added - old


def _added(file: FilePatch) -> Iterable[str]:
    return file.added


def _old_lines(file: FilePatch) -> Iterator[str]:
    return (line[1:] for hunk in file.hunks for line in hunk.lines if line[0] != "+")


def _values(lines: Iterable[str]) -> set[Value]:
    return {value for value, _ in numbers(lines)}


class CommentCheck:
    """Finds what a text for the agent of one attempt gives away of its stage's reference, and of every later one's.

    `agent_patch` is the diff S_t..A_t and `told` are texts that the agent was given: the overview, queries, earlier
    comments. Raises `GitError` for a patch that is none.
    """

    def __init__(
        self, hidden: HiddenContent, position: int, *, agent_patch: bytes = b"", told: Iterable[str] = ()
    ) -> None:
        if not 1 <= position <= len(hidden.stages):
            raise ValueError(f"there is no stage {position} in a chain of {len(hidden.stages)}")
        self._position = position
        self._own = hidden.stages[position - 1]
        files = file_patches(agent_patch)
        lines = [line[1:] for file in files for hunk in file.hunks for line in hunk.lines]
        given = [*told, *(file.path for file in files)]
        known = frozenset(identifiers("\n".join([*given, *lines])))
        wrote = stage_facts(0, (), list(_short(files)), (), ())
        self._facts = [_without(stage.facts, wrote) for stage in hidden.stages]
        self._facts[position - 1] = replace(
            self._facts[position - 1], interface=self._facts[position - 1].interface | known
        )
        ahead = hidden.stages[position - 1 :]
        self._numbers = frozenset().union(*(hidden_stage.numbers for hidden_stage in ahead)) - _values([*given, *lines])
        self._given = "\n".join(given)
        self._paths = _secret_paths(ahead, self._given)

    def __call__(self, text: str) -> list[Finding]:
        """The findings, leaks first; empty for a text that may be shown."""
        found = check(text, self._facts, self._position, kind="comment", paths_at_base=self._own.base_paths)
        found = [
            finding for finding in found if finding.kind != "later_stage" or not _names(self._given, finding.evidence)
        ]
        read = TextReading(text, (), ()).text
        said = dict.fromkeys(spelled for value, spelled in numbers([read]) if value in self._numbers)
        more = [finding("string_literal", "leak", spelled) for spelled in said]
        more += [finding("introduced_name", "leak", path) for path in sorted(self._paths) if _names(read, path)]
        return list(dict.fromkeys([*more, *found]))


def _short(files: Sequence[FilePatch]) -> Iterator[FilePatch]:
    """The smallest files, `_MOST_LEXED` in all."""
    left = _MOST_LEXED
    for size, file in sorted(((sum(map(len, file.added)), file) for file in files), key=lambda pair: pair[0]):
        left -= size
        if left < 0:
            return
        yield file


def _without(facts: StageFacts, wrote: StageFacts) -> StageFacts:
    """The facts without the lines, literals and sentences that the agent wrote, too."""
    return replace(
        facts,
        literals=facts.literals - wrote.literals,
        prose=facts.prose - wrote.prose,
        line_digests=facts.line_digests - wrote.line_digests,
        test_line_digests=facts.test_line_digests - wrote.line_digests,
    )


def _secret_paths(stages: Sequence[HiddenStage], given: str) -> frozenset[str]:
    """Paths, and names of files that only such paths have, which neither stand in what was given nor, but for tests, in
    the tree."""
    own = stages[0]
    paths = {path for stage in stages for path in stage.new_paths | stage.test_paths} - (
        own.base_paths - own.test_paths
    )
    secret = {path for path in paths if not _names(given, path)}
    standing = {path.rpartition("/")[2] for path in own.base_paths - secret}
    names = {path.rpartition("/")[2] for path in secret}
    return frozenset(
        secret | {n for n in names - standing if len(n) >= _SHORTEST_BASENAME and "." in n and not _names(given, n)}
    )


def _names(text: str, path: str) -> bool:
    return path in text and re.search(rf"(?<![\w/-]){re.escape(path)}(?![\w/-])", text) is not None
