"""Which files of a test patch are tests that the check reads, which are data that tests read, and which are neither."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from chains.needs.python_source import Reader, parsed
from prchain.core.code.inline_tests import changed_lines, inline_test_lines
from prchain.core.code.kinds import language_of
from prchain.core.code.lexing import family_of
from prchain.core.code.needs import Need
from prchain.core.code.reference import Reference
from prchain.core.git import FilePatch
from prchain.core.git.patches import Hunk

_READ = frozenset({"python", "javascript", "go", "rust"})
"""The families of languages whose tests are read."""
_DATA_FOLDERS = re.compile(
    r"(?:__)?(?:fixtures?|snapshots?|snap|golden|testdata|expected|expectations|data|cases|baselines?|approvals?)(?:__)?"
)


def is_record(path: str) -> bool:
    """Whether a file of the test patch is data: what tests read, or compare with."""
    return language_of(path) is None or any(map(_DATA_FOLDERS.fullmatch, path.lower().split("/")[:-1]))


def unread(test_patch: Iterable[FilePatch], landed: Reader, recorded: Iterable[str]) -> Iterator[Need]:
    """The files of the test patch that add what the check cannot see, each with the reason. `recorded` are those of
    data that hold texts which only the source patch has."""
    for path in recorded:
        # Any test may read it.
        yield Need(
            "unseen", path, path=path, withheld="data for tests with texts that only the patch of the source has"
        )
    for patch in test_patch:
        if not patch.added or is_record(patch.path):
            continue
        if family_of(patch.path) not in _READ:
            reason = f"tests in {language_of(patch.path)} are not read"
        elif patch.path.endswith(".py") and parsed(landed(patch.path)) is None:
            reason = "does not parse"
        else:
            continue
        yield Need("unseen", patch.path, path=patch.path, tests=(patch.path,), withheld=reason)


def without_inline_tests(reference: Reference, at_base: Reader, landed: Reader) -> Reference:
    """The reference patch without the tests inside source files of Rust; for looking at lines, not for applying.

    They are no work of their own, and no hidden tests either: no overlay lays them over an agent's tree, so they never
    have to pass (`environments.suites.outcomes.ClassifiedTests.inline`).
    """
    source = (
        _work_of(patch, at_base(patch.old_path or patch.path) or "", landed(patch.path) or "")
        if language_of(patch.path) == "rust"
        else patch
        for patch in reference.source
    )
    return replace(reference, source=tuple(source))


def _work_of(patch: FilePatch, before: str, after: str) -> FilePatch:
    """The changed lines of a patch outside of its inline tests, given the file's text on both sides."""
    old, new = inline_test_lines(before), inline_test_lines(after)
    kept = [line for mark, number, line in changed_lines(patch) if number not in (new if mark == "+" else old)]
    return replace(patch, hunks=(Hunk(0, 0, 0, 0, "", tuple(kept)),))
