"""Which files of a test patch are tests that the check reads, which are data that tests read, and which are neither."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from chains.needs.python_source import Reader, parsed
from chains.stages.inline_tests import changed_lines, inline_test_lines
from prchain.git import FilePatch
from prchain.git.patches import Hunk
from prchain.kinds import language_of
from prchain.lexing import family_of
from prchain.needs import Need
from prchain.reference import Reference

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


def with_inline_tests(reference: Reference, at_base: Reader, landed: Reader) -> Reference:
    """The reference patch with the tests inside source files of Rust moved to the test patch, as patches of their own;
    for looking at lines, not for applying."""
    source: list[FilePatch] = []
    tests: list[FilePatch] = []
    for patch in reference.source:
        if language_of(patch.path) != "rust":
            source.append(patch)
            continue
        new = inline_test_lines(landed(patch.path) or "")
        old = inline_test_lines(at_base(patch.old_path or patch.path) or "")
        work, inline = _parted(patch, old, new)
        source.append(work)
        if inline.added:
            tests.append(inline)
    return replace(reference, source=tuple(source), test=(*reference.test, *tests))


def _parted(patch: FilePatch, old: Collection[int], new: Collection[int]) -> tuple[FilePatch, FilePatch]:
    """The changed lines of a patch outside of some lines of its two sides, and those in them."""
    work: list[str] = []
    inline: list[str] = []
    for mark, number, line in changed_lines(patch):
        (inline if number in (new if mark == "+" else old) else work).append(line)
    first, second = (replace(patch, hunks=(Hunk(0, 0, 0, 0, "", tuple(part)),)) for part in (work, inline))
    return first, second
