"""Which pull requests cannot be a stage of a chain, each with one outcome that says why.

Pure. The first of `OUTCOMES` that applies, in its order, is the outcome; `chains.meanings` says what each means.

Lines are added and removed lines that are not blank. Where there is no program text, and the filter for that is
switched off, neither size nor language is checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from chains.stages.cosmetic import is_cosmetic
from chains.stages.moves import is_move_only
from chains.stages.renames import is_rename_only
from chains.stages.worth import StageWorth
from prchain.core.code.housekeeping import housekeeping_of
from prchain.core.code.kinds import FileKind, kind_of, language_of
from prchain.core.code.reference import Reference
from prchain.core.console.terminal import counted
from prchain.core.errors import SettingsError
from prchain.core.git import FilePatch

PERMISSIVE = frozenset(
    {
        "0BSD",
        "AFL-3.0",
        "Apache-2.0",
        "Artistic-2.0",
        "BlueOak-1.0.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "BSD-3-Clause-Clear",
        "BSD-4-Clause",
        "BSL-1.0",
        "CC0-1.0",
        "HPND",
        "ISC",
        "MIT",
        "MIT-0",
        "MPL-2.0",
        "MulanPSL-2.0",
        "NCSA",
        "PostgreSQL",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
        "UPL-1.0",
        "WTFPL",
        "X11",
        "Zlib",
        "ZPL-2.1",
    }
)
"""SPDX identifiers of licences that allow use under other terms, and of MPL-2.0, which binds single files only."""


@dataclass(frozen=True)
class Filters:
    """Which filters apply, and their limits."""

    keep: frozenset[str] = frozenset()
    """Outcomes that are switched off: their pull requests are kept."""
    min_source_lines: int = 5
    max_source_lines: int = 1500
    max_source_files: int = 40
    languages: frozenset[str] = frozenset()
    """Names of `prchain.core.code.kinds.LANGUAGES`, in lower case; empty allows all."""
    licences: frozenset[str] | None = PERMISSIVE
    """SPDX identifiers that are allowed; None allows all, also unknown licences."""
    paths: tuple[str, ...] = ()
    """Globs of `fnmatch`, of which a file of program text has to match one; those that begin with ``!`` it must not."""
    with_tests: bool = False
    min_worth: float = 0.0

    def __post_init__(self) -> None:
        unknown = sorted(self.keep - OUTCOMES.keys())
        if unknown:
            raise SettingsError(f"{unknown[0]} is no filter; known are {', '.join(OUTCOMES)}")


@dataclass(frozen=True)
class PullFacts:
    """What the filters need to know of a landed pull request."""

    number: int
    subject: str
    reference: Reference | None
    """None where git cannot read the patch."""
    by_bot: bool = False
    text_length: int = 0
    """Characters that describe it, besides the subject: body, messages of its own commits, issues it closes."""
    reverts: int | None = None
    """The pull request that it reverts as a whole."""
    reverted_by: int | None = None
    """The pull request that reverted it as a whole, where it did not land again."""
    backport_of: int | None = None
    """The landed pull request that it repeats on another branch."""
    licence: str | None = None
    """SPDX expression of the repository's licence; `chains.stages.licence`."""
    same_normalized: bool = False
    """Whether its program text is the same without docstrings and annotations; `chains.stages.normalized`."""
    benchmark: str | None = None
    """The benchmark that is made from the repository; `chains.stages.benchmarks`."""
    worth: StageWorth | None = None
    """None where there is no program text to judge."""
    benchmark_instance: bool = False
    missing_files: int = 0
    """Files of its base and of its patch whose content the mirror lacked when it was mined."""
    only_inline_tests: bool = False
    """Whether its program text changes nothing but tests inside source files; `prchain.core.code.inline_tests`."""


def drop(facts: PullFacts, filters: Filters) -> tuple[str, str] | None:
    """(outcome, reason with its evidence) of the first filter that refuses the pull request; None to keep it.

    The reason is one line. It has no text of the repository, except the subject of a housekeeping pull request.
    """
    for outcome, check in OUTCOMES.items():
        if outcome not in filters.keep:
            reason = check(facts, filters)
            if reason is not None:
                return outcome, reason
    return None


_Check = Callable[[PullFacts, Filters], str | None]

_SUPPORT_KINDS = {
    FileKind.DOCS: "docs_only",
    FileKind.TEST: "tests_only",
    FileKind.CI: "ci_only",
    FileKind.LOCK: "lock_only",
    FileKind.GENERATED: "generated_only",
    FileKind.VENDORED: "vendored_only",
}
"""Kinds of files that are not part of the work, and the outcome of a patch with nothing else."""


def _benchmark_repository(facts: PullFacts, _: Filters) -> str | None:
    return f"the repository is part of {facts.benchmark}" if facts.benchmark else None


def _benchmark_instance(facts: PullFacts, _: Filters) -> str | None:
    return "it is in the list of benchmark instances" if facts.benchmark_instance else None


def _licence_unknown(facts: PullFacts, filters: Filters) -> str | None:
    if filters.licences is None or facts.licence is not None:
        return None
    return "no licence file at the root of its base has the text of a known licence"


def _licence(facts: PullFacts, filters: Filters) -> str | None:
    if filters.licences is None or facts.licence is None or _is_allowed(facts.licence, filters.licences):
        return None
    return f"the repository's licence is {facts.licence}"


def _is_allowed(expression: str, allowed: frozenset[str]) -> bool:
    """Whether an SPDX expression of ``A``, ``A OR B`` and ``A AND B`` is satisfied by the allowed identifiers."""
    names = {name.lower() for name in allowed}
    choices = [choice.split(" AND ") for choice in expression.split(" OR ")]
    return any(all(name.strip("() ").lower() in names for name in choice) for choice in choices)


def _patch_unreadable(facts: PullFacts, _: Filters) -> str | None:
    if facts.reference is not None:
        return None
    return "the mirror lacks files of its patch; `prchain mine` tells the command that fetches them"


def _tree_incomplete(facts: PullFacts, _: Filters) -> str | None:
    if not facts.missing_files:
        return None
    files = counted(facts.missing_files, "file")
    return f"the mirror lacked {files} of the tree before it; `prchain mine` tells what fetches them, and looks again"


def _nothing_changed(facts: PullFacts, _: Filters) -> str | None:
    return "its patch is empty" if facts.reference is not None and not facts.reference.paths else None


def _revert(facts: PullFacts, _: Filters) -> str | None:
    return f"it takes #{facts.reverts} back" if facts.reverts is not None else None


def _reverted(facts: PullFacts, _: Filters) -> str | None:
    return f"#{facts.reverted_by} took it back" if facts.reverted_by is not None else None


def _backport(facts: PullFacts, _: Filters) -> str | None:
    return f"it repeats #{facts.backport_of}" if facts.backport_of is not None else None


def _housekeeping(outcome: str) -> _Check:
    def check(facts: PullFacts, _: Filters) -> str | None:
        if facts.reference is None or housekeeping_of(facts.subject, facts.reference.paths) != outcome:
            return None
        return f"its subject says so ({_quoted(facts.subject)}), and so do all its {len(facts.reference.paths)} paths"

    return check


def _bot_housekeeping(facts: PullFacts, _: Filters) -> str | None:
    if not facts.by_bot or facts.reference is None:
        return None
    if facts.reference.code and not is_cosmetic(facts.reference.code):
        return None
    return f"a bot made it, and no program text changed but in how it is written ({_quoted(facts.subject)})"


def _only(kind: FileKind) -> _Check:
    def check(facts: PullFacts, _: Filters) -> str | None:
        if facts.reference is None or facts.reference.kinds != {kind}:
            return None
        return f"all {len(facts.reference.paths)} paths are {kind}"

    return check


def _tests_only(facts: PullFacts, filters: Filters) -> str | None:
    if facts.reference is None or not facts.only_inline_tests:
        return _only(FileKind.TEST)(facts, filters)
    if not facts.reference.kinds <= {FileKind.SOURCE, *_SUPPORT_KINDS}:
        return None
    return f"its {facts.reference.source_lines} lines of program text are tests inside source files"


def _no_source(facts: PullFacts, filters: Filters) -> str | None:
    kinds = facts.reference.kinds if facts.reference else frozenset()
    if len(kinds) < 2 or not kinds <= _SUPPORT_KINDS.keys():
        return None
    if all(_SUPPORT_KINDS[kind] in filters.keep for kind in kinds):
        return None
    return f"changes only {_joined(kinds)}"


def _config_only(facts: PullFacts, _: Filters) -> str | None:
    kinds = facts.reference.kinds if facts.reference else frozenset()
    if FileKind.CONFIG not in kinds or not kinds <= {FileKind.CONFIG, *_SUPPORT_KINDS}:
        return None
    return f"changes only {_joined(kinds)}"


def _data_only(facts: PullFacts, _: Filters) -> str | None:
    kinds = facts.reference.kinds if facts.reference else frozenset()
    if FileKind.SOURCE in kinds or not kinds & {FileKind.DATA, FileKind.BINARY}:
        return None
    return f"changes only {_joined(kinds)}"


def _cosmetic(facts: PullFacts, _: Filters) -> str | None:
    if facts.reference is None or not (facts.same_normalized or is_cosmetic(facts.reference.code)):
        return None
    difference = (
        "docstrings or annotations" if facts.same_normalized else "white space, comments or the order of imports"
    )
    return f"its {facts.reference.source_lines} lines change only {difference}"


def _renames_only(facts: PullFacts, _: Filters) -> str | None:
    if facts.reference is None or not is_rename_only(facts.reference.code):
        return None
    return f"its {facts.reference.source_lines} lines only replace a few names"


def _moves_only(facts: PullFacts, _: Filters) -> str | None:
    if facts.reference is None or not is_move_only(facts.reference.code):
        return None
    return f"its {facts.reference.source_lines} lines only move to other files"


def _source_too_small(facts: PullFacts, filters: Filters) -> str | None:
    if facts.reference is None or not facts.reference.code:
        return None
    if facts.reference.source_lines >= filters.min_source_lines:
        return None
    return f"{facts.reference.source_lines} lines of program text, fewer than {filters.min_source_lines}"


def _source_too_large(facts: PullFacts, filters: Filters) -> str | None:
    if facts.reference is None or facts.reference.source_lines <= filters.max_source_lines:
        return None
    return f"{facts.reference.source_lines} lines of program text, more than {filters.max_source_lines}"


def _too_many_files(facts: PullFacts, filters: Filters) -> str | None:
    if facts.reference is None or len(facts.reference.code) <= filters.max_source_files:
        return None
    return f"{len(facts.reference.code)} files of program text, more than {filters.max_source_files}"


def _language(facts: PullFacts, filters: Filters) -> str | None:
    if facts.reference is None or not facts.reference.code or not filters.languages:
        return None
    if facts.reference.language in filters.languages:
        return None
    return f"mostly in {facts.reference.language or 'no known language'}, not {', '.join(sorted(filters.languages))}"


def _outside_paths(facts: PullFacts, filters: Filters) -> str | None:
    if facts.reference is None or not facts.reference.code or not filters.paths:
        return None
    wanted = [glob for glob in filters.paths if not glob.startswith("!")]
    unwanted = [glob[1:] for glob in filters.paths if glob.startswith("!")]
    for file in facts.reference.code:
        inside = not wanted or any(fnmatchcase(file.path, glob) for glob in wanted)
        if inside and not any(fnmatchcase(file.path, glob) for glob in unwanted):
            return None
    return f"none of its {len(facts.reference.code)} files of program text is in {' '.join(filters.paths)}"


_NUMBER_TAIL = re.compile(r"\s*[(\[](?:#|gh-|GH-|PR #?)[0-9]{1,9}[)\]]\s*")
_MERGE_SUBJECT = re.compile(r"Merged? (?:pull request|PR|branch)\b.*", re.I)
_PREFIX = re.compile(r"^[a-z/]+(?:\([^)\n]{0,60}\))?!?:\s*", re.I)
_EMPTY_WORDS = {
    "fix",
    "fixes",
    "fixed",
    "fixup",
    "fixing",
    "bugfix",
    "hotfix",
    "update",
    "updates",
    "updated",
    "change",
    "changes",
    "wip",
    "typo",
    "typos",
    "patch",
    "misc",
    "minor",
    "cleanup",
    "clean",
    "up",
    "more",
    "small",
    "some",
    "stuff",
    "pr",
    "changed",
    "test",
    "tests",
    "commit",
    "initial",
    "tweak",
    "tweaks",
    "code",
    "file",
    "files",
    "bug",
    "bugs",
    "issue",
    "merge",
    "the",
    "a",
    "and",
    "of",
    "for",
    "to",
    "in",
    "improve",
    "improvements",
    "edit",
    "edits",
    "refactor",
    "dev",
    "master",
    "main",
    "develop",
    "feature",
    "branch",
    "add",
    "added",
}


def _no_text(facts: PullFacts, _: Filters) -> str | None:
    if facts.text_length > 0:
        return None
    subject = _PREFIX.sub("", _NUMBER_TAIL.sub(" ", facts.subject), count=1)
    words = [] if _MERGE_SUBJECT.match(facts.subject) else list(_meaningful_words(subject))
    return None if words else f"no body, and its subject says nothing ({_quoted(facts.subject)})"


def _meaningful_words(subject: str) -> Iterator[str]:
    """The words of a subject that say something: no number, no file name, no word that fits any change."""
    for word in subject.split():
        bare = word.strip("`'\"*.,:;!?()[]")
        is_name = "." in bare and (language_of(bare) is not None or kind_of(bare) in _FILE_NAME_KINDS)
        if bare.lower() not in _EMPTY_WORDS and not is_name and re.search(r"[^\W\d_]", bare):
            yield word


_FILE_NAME_KINDS = {FileKind.DOCS, FileKind.CONFIG, FileKind.LOCK, FileKind.CI, FileKind.BINARY}


_NO_TEST_FILES = {"conftest.py", "__init__.py"}


def _no_tests(facts: PullFacts, filters: Filters) -> str | None:
    if not filters.with_tests or facts.reference is None or any(map(_may_prove, facts.reference.test)):
        return None
    return (
        f"none of its {len(facts.reference.test)} test files has tests" if facts.reference.test else "changes no test"
    )


def _may_prove(file: FilePatch) -> bool:
    """Whether a changed file below the test conventions can hold tests: program text that stays, and no mere set-up."""
    return (
        file.status != "D"
        and language_of(file.path) is not None
        and PurePosixPath(file.path).name not in _NO_TEST_FILES
        and bool(file.added)
    )


def _low_worth(facts: PullFacts, filters: Filters) -> str | None:
    if facts.worth is None or facts.worth.worth >= filters.min_worth:
        return None
    worst = min(facts.worth.signs, key=lambda sign: sign.weight)
    return f"its worth as a task is {facts.worth.worth:.2f}, below {filters.min_worth:g} (worst sign: {worst.name})"


def _quoted(subject: str) -> str:
    return repr(subject[:80])


def _joined(kinds: frozenset[FileKind]) -> str:
    return " and ".join(sorted(kinds))


OUTCOMES: dict[str, _Check] = {
    "benchmark_repository": _benchmark_repository,
    "benchmark_instance": _benchmark_instance,
    "licence_unknown": _licence_unknown,
    "licence": _licence,
    "patch_unreadable": _patch_unreadable,
    "nothing_changed": _nothing_changed,
    "revert": _revert,
    "reverted": _reverted,
    "backport": _backport,
    "dependency_bump": _housekeeping("dependency_bump"),
    "release": _housekeeping("release"),
    "bot_housekeeping": _bot_housekeeping,
    **{outcome: _only(kind) for kind, outcome in _SUPPORT_KINDS.items()},
    "tests_only": _tests_only,
    "no_source": _no_source,
    "config_only": _config_only,
    "data_only": _data_only,
    "cosmetic": _cosmetic,
    "renames_only": _renames_only,
    "moves_only": _moves_only,
    "source_too_small": _source_too_small,
    "source_too_large": _source_too_large,
    "too_many_files": _too_many_files,
    "language": _language,
    "outside_paths": _outside_paths,
    "no_text": _no_text,
    "no_tests": _no_tests,
    "low_worth": _low_worth,
    "tree_incomplete": _tree_incomplete,
}
"""The filters, in the order in which they apply."""
