"""Patches of known quality to calibrate a judge: the reference, and wrong patches made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from environments.stages import Stage
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git import GitRepository
from trajectories.verdicts.judged_patch import judged_patch
from trajectories.verdicts.patch_text import file_patches, header_of, sections


class Variant(StrEnum):
    """How an agent's patch is made of a stage's reference."""

    REFERENCE = "reference"
    """The reference itself, to be accepted. Every other variant is to be rejected."""
    EMPTY = "empty"
    REVERTED = "reverted"
    """The reverse patch, from M_t to B_t."""
    OTHER_STAGE = "other_stage"
    """The reference of the next stage of the chain; after the last stage, of the first."""
    HALF = "half"
    """The reference without half of its program text (the largest hunks); with its tests and docs."""

    @property
    def to_accept(self) -> bool:
        """Whether a correct judge accepts it."""
        return self is Variant.REFERENCE


def variants(git: GitRepository, stages: Sequence[Stage], position: int) -> Iterator[tuple[Variant, bytes]]:
    """The variants of the stage at a 1-based position, the reference first; impossible ones are left out. All are with
    whole functions, as a rollout's patches are when they are judged.

    Raises `GitError`.
    """
    stage = stages[position - 1]
    reference = judged_patch(git, stage.base, stage.landed)
    yield Variant.REFERENCE, reference
    yield Variant.EMPTY, b""
    yield Variant.REVERTED, judged_patch(git, stage.landed, stage.base)
    if len(stages) > 1:
        other = stages[position % len(stages)]
        yield Variant.OTHER_STAGE, judged_patch(git, other.base, other.landed)
    half = halved(reference)
    if half is not None:
        yield Variant.HALF, half


_HUNK = re.compile(rb"(?m)^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@[^\n]*\n")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class _Hunk(NamedTuple):
    file: int
    head: bytes
    lines: tuple[bytes, ...]
    """With their marks (``+``, ``-``, blank) and line ends."""

    @property
    def size(self) -> int:
        """Changed lines."""
        return sum(line[:1] in b"+-" for line in self.lines)


def halved(patch: bytes) -> bytes | None:
    """A patch without half of its changed lines of program text (of other text, if it has no program text).

    The largest hunks are dropped until half of the changed lines are gone; a single hunk loses the later half of its
    changed lines. None if there are fewer than two changed lines. Raises `GitError` for an invalid patch.
    """
    parts = sections(patch)
    files = file_patches(patch)
    code = {file_index for file_index, file in enumerate(files) if file.hunks and kind_of(file.path) is FileKind.SOURCE}
    chosen = code or {file_index for file_index, file in enumerate(files) if file.hunks}
    hunks = [hunk for file_index in sorted(chosen) for hunk in _hunks(file_index, parts[file_index]) if hunk.size]
    total = sum(hunk.size for hunk in hunks)
    if total < 2:
        return None
    if len(hunks) == 1:
        return _with_half(parts, hunks[0])
    order = sorted(range(len(hunks)), key=lambda hunk_index: -hunks[hunk_index].size)
    dropped: set[int] = set()
    for hunk_index in order[:-1]:
        dropped.add(hunk_index)
        if 2 * sum(hunks[number].size for number in dropped) >= total:
            break
    kept = [hunk for hunk_index, hunk in enumerate(hunks) if hunk_index not in dropped]
    return b"".join(
        _rebuilt(part, [hunk for hunk in kept if hunk.file == file_index]) if file_index in chosen else part
        for file_index, part in enumerate(parts)
    )


def _hunks(file: int, section: bytes) -> Iterator[_Hunk]:
    matches = list(_HUNK.finditer(section))
    ends = [*(match.start() for match in matches[1:]), len(section)]
    for match, end in zip(matches, ends, strict=True):
        yield _Hunk(file, match[0], tuple(_LINE.findall(section[match.end() : end])))


def _rebuilt(section: bytes, hunks: Sequence[_Hunk]) -> bytes:
    """A file's part with these hunks; empty if there are none."""
    if not hunks:
        return b""
    return header_of(section) + b"".join(hunk.head + b"".join(hunk.lines) for hunk in hunks)


def _with_half(parts: Sequence[bytes], hunk: _Hunk) -> bytes:
    kept_count = hunk.size // 2
    lines: list[bytes] = []
    changed_count = 0
    for line in hunk.lines:
        changed = line[:1] in b"+-"
        changed_count += changed
        if not changed or changed_count <= kept_count:
            lines.append(line)
        elif line.startswith(b"-"):
            lines.append(b" " + line[1:])
    old = sum(line[:1] in b" -" for line in lines)
    new = sum(line[:1] in b" +" for line in lines)
    match = _HUNK.match(hunk.head)
    assert match is not None
    head = b"@@ -%b,%d +%b,%d @@\n" % (match[1], old, match[2], new)
    return b"".join(
        _rebuilt(part, [hunk._replace(head=head, lines=tuple(lines))]) if file_index == hunk.file else part
        for file_index, part in enumerate(parts)
    )
