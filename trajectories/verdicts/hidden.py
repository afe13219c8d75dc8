"""What the reference patches of a chain hide from the agent, and whether a text leaks any of it.

The leak check (`prchain.core.leaks`) finds names, lines, literals and commit ids. In a comment, numbers and paths that
only a reference has are leaks too, and everything that names a hidden test. What the agent wrote or read is no secret,
even if the reference has it too.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from environments.stages import Stage
from prchain.core.code.identifiers import identifiers
from prchain.core.code.needs import Need
from prchain.core.code.reference import Reference, split
from prchain.core.git import FilePatch, GitRepository
from prchain.core.leaks import Finding, StageFacts, candidate_names, check, stage_facts
from prchain.core.leaks.code import text_digests
from prchain.core.leaks.finding import finding
from prchain.core.leaks.reading import TextReading
from trajectories.verdicts.numbers import Value, numbers
from trajectories.verdicts.patch_text import file_patches

_CONTEXT_LINES = 1_000_000
"""Lines of context: so many that a patch holds the whole of each file that it touches."""

_LEXED_CHARACTERS = 1_000_000
"""The most characters of the agent's added text, smallest files first, whose lines and literals count as the agent's
own: lexing a million takes about five seconds. Larger files are generated, or padding."""

_SHORTEST_BASENAME = 6


@dataclass(frozen=True)
class HiddenStage:
    """What the reference of a stage hides. Paths are those of `FilePatch`."""

    facts: StageFacts
    """With literals and prose of the test patch; with interface names if the agent is told them."""
    numbers: frozenset[Value]
    """Values of the numbers that its patch adds and that the touched files did not hold before."""
    new_paths: frozenset[str]
    """Paths that it touches and that B_t does not have."""
    test_paths: frozenset[str]
    """Paths of its test patch; hidden even if the file exists in B_t."""
    base_paths: frozenset[str]
    """Every path of B_t."""


@dataclass(frozen=True)
class HiddenContent:
    """What the references of a chain hide, stage by stage."""

    stages: tuple[HiddenStage, ...]


def read_hidden(
    git: GitRepository, stages: Sequence[Stage], interfaces: Mapping[int, Collection[Need]] | None = None
) -> HiddenContent:
    """What the stages of a chain hide, read from git; takes some seconds for a large repository.

    `interfaces` maps a position to what the agent is told beside the query. Raises `GitError`.
    """
    told = interfaces or {}
    patches = git.patches([(stage.base, stage.landed) for stage in stages], context=_CONTEXT_LINES)
    return HiddenContent(
        tuple(
            _stage(git, stage, patch, told.get(stage.position, ()))
            for stage, patch in zip(stages, patches, strict=True)
        )
    )


def _stage(git: GitRepository, stage: Stage, patch: Sequence[FilePatch], told: Collection[Need]) -> HiddenStage:
    reference = split(patch)
    names = git.words_at(stage.base, candidate_names(reference.source, reference.test))
    shas = (stage.landed, stage.base)
    facts = stage_facts(stage.number, shas, reference.source, reference.test, names, told)
    # Titles of tests (in some languages) and expected values are literals of the test patch.
    tests = stage_facts(stage.number, (), reference.test, (), names, told)
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
    """Finds what a text for the agent leaks of the references of its stage and of every later stage.

    `agent_patch` is the diff S_t..A_t; `told` are the texts that the agent has read: the overview, queries, earlier
    comments. Raises `GitError` for an invalid patch.
    """

    def __init__(
        self, hidden: HiddenContent, position: int, *, agent_patch: bytes = b"", told: Iterable[str] = ()
    ) -> None:
        if not 1 <= position <= len(hidden.stages):
            raise ValueError(f"there is no stage {position} in a chain of {len(hidden.stages)}")
        self._position = position
        self._own_stage = hidden.stages[position - 1]
        files = file_patches(agent_patch)
        lines = [line[1:] for file in files for hunk in file.hunks for line in hunk.lines]
        known_texts = [*told, *(file.path for file in files)]
        known_names = frozenset(identifiers("\n".join([*known_texts, *lines])))
        agent_facts = stage_facts(0, (), list(_smallest_files(files)), (), ())
        self._facts = [_without(stage.facts, agent_facts) for stage in hidden.stages]
        own = self._facts[position - 1]
        # A query may name every option that its stage adds; a comment only those that the agent read or wrote.
        known_marks = agent_facts.told.union(*(text_digests(TextReading(known, (), ())) for known in known_texts))
        self._facts[position - 1] = replace(own, interface=own.interface | known_names, told=own.told & known_marks)
        remaining_stages = hidden.stages[position - 1 :]
        self._numbers = frozenset().union(*(hidden_stage.numbers for hidden_stage in remaining_stages)) - _values(
            [*known_texts, *lines]
        )
        self._known_text = "\n".join(known_texts)
        self._paths = _secret_paths(remaining_stages, self._known_text)

    def __call__(self, text: str) -> list[Finding]:
        """The findings, leaks first; empty for a text that may be shown."""
        found = check(text, self._facts, self._position, kind="comment", paths_at_base=self._own_stage.base_paths)
        found = [
            finding
            for finding in found
            if finding.kind != "later_stage" or not _contains_path(self._known_text, finding.evidence)
        ]
        plain_text = TextReading(text, (), ()).text
        spellings = dict.fromkeys(spelled for value, spelled in numbers([plain_text]) if value in self._numbers)
        new_findings = [finding("string_literal", "leak", spelled) for spelled in spellings]
        new_findings += [
            finding("introduced_name", "leak", path) for path in sorted(self._paths) if _contains_path(plain_text, path)
        ]
        return list(dict.fromkeys([*new_findings, *found]))


def of_the_reference(found: Finding) -> bool:
    """Whether a leak that `CommentCheck` finds is of content that only a reference has, rather than of the form that a
    comment must have: guidance may hold code, lists and commands."""
    return found.severity == "leak" and (found.stage is not None or found.kind in _OF_REFERENCE)


_OF_REFERENCE = frozenset({"introduced_name", "string_literal"})
"""Kinds that name no stage and are of a reference all the same: paths and numbers."""


def _smallest_files(files: Sequence[FilePatch]) -> Iterator[FilePatch]:
    """The smallest files, with `_LEXED_CHARACTERS` added characters in all."""
    room = _LEXED_CHARACTERS
    for size, file in sorted(((sum(map(len, file.added)), file) for file in files), key=lambda pair: pair[0]):
        room -= size
        if room < 0:
            return
        yield file


def _without(facts: StageFacts, agent_facts: StageFacts) -> StageFacts:
    """The facts without the lines, literals and sentences that the agent wrote as well."""
    return replace(
        facts,
        literals=facts.literals - agent_facts.literals,
        prose=facts.prose - agent_facts.prose,
        line_digests=facts.line_digests - agent_facts.line_digests,
        test_line_digests=facts.test_line_digests - agent_facts.line_digests,
    )


def _secret_paths(stages: Sequence[HiddenStage], known_text: str) -> frozenset[str]:
    """The hidden paths that are neither in `known_text` nor (except for tests) in the tree, and the file names that
    only these paths have."""
    own_stage = stages[0]
    paths = {path for stage in stages for path in stage.new_paths | stage.test_paths} - (
        own_stage.base_paths - own_stage.test_paths
    )
    secret = {path for path in paths if not _contains_path(known_text, path)}
    tree_names = {path.rpartition("/")[2] for path in own_stage.base_paths - secret}
    names = {path.rpartition("/")[2] for path in secret}
    return frozenset(
        secret
        | {
            name
            for name in names - tree_names
            if len(name) >= _SHORTEST_BASENAME and "." in name and not _contains_path(known_text, name)
        }
    )


def _contains_path(text: str, path: str) -> bool:
    return path in text and re.search(rf"(?<![\w/-]){re.escape(path)}(?![\w/-])", text) is not None
