"""Patches whose worth is known without reading them, for measuring a judge: the reference and what is made of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from environments.stages import Stage
from prchain.git import GitRepository
from prchain.kinds import FileKind, kind_of
from trajectories.verdicts.patch_text import file_patches, header_of, sections


class Variant(StrEnum):
    """How an agent's patch is made of a stage's reference."""

    REFERENCE = "reference"
    """The reference itself: to be accepted. Every other one is to be rejected."""
    EMPTY = "empty"
    REVERTED = "reverted"
    """The way back, from M_t to B_t."""
    OTHER_STAGE = "other_stage"
    """The reference of the next stage of the chain; of the first, where there is no next."""
    HALF = "half"
    """The reference without half of its program text: the largest hunks, tests and docs left in."""

    @property
    def to_accept(self) -> bool:
        """Whether a judge that is right accepts it."""
        return self is Variant.REFERENCE


def variants(git: GitRepository, stages: Sequence[Stage], position: int) -> Iterator[tuple[Variant, bytes]]:
    """The variants of the stage at a 1-based position, the reference first; those that it has none of are left out.

    Raises `GitError`.
    """
    stage = stages[position - 1]
    reference = git.patch_text(stage.base, stage.landed)
    yield Variant.REFERENCE, reference
    yield Variant.EMPTY, b""
    yield Variant.REVERTED, git.patch_text(stage.landed, stage.base)
    if len(stages) > 1:
        other = stages[position % len(stages)]
        yield Variant.OTHER_STAGE, git.patch_text(other.base, other.landed)
    half = halved(reference)
    if half is not None:
        yield Variant.HALF, half


_HUNK = re.compile(rb"(?m)^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@[^\n]*\n")
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class _Hunk(NamedTuple):
    file: int
    head: bytes
    lines: tuple[bytes, ...]
    """With marks and line ends."""

    @property
    def size(self) -> int:
        """Changed lines."""
        return sum(line[:1] in b"+-" for line in self.lines)


def halved(patch: bytes) -> bytes | None:
    """A patch without half of what it changes in program text (in other text, where there is none).

    The largest hunks go, until half of the changed lines are gone; a lone one loses the later half of its changed
    lines. None where there is a single changed line, or none. Raises `GitError` for what is no patch.
    """
    parts = sections(patch)
    files = file_patches(patch)
    code = {at for at, file in enumerate(files) if file.hunks and kind_of(file.path) is FileKind.SOURCE}
    chosen = code or {at for at, file in enumerate(files) if file.hunks}
    hunks = [hunk for at in sorted(chosen) for hunk in _hunks(at, parts[at]) if hunk.size]
    total = sum(hunk.size for hunk in hunks)
    if total < 2:
        return None
    if len(hunks) == 1:
        return _with_half(parts, hunks[0])
    order = sorted(range(len(hunks)), key=lambda place: -hunks[place].size)
    gone: set[int] = set()
    for place in order[:-1]:
        gone.add(place)
        if 2 * sum(hunks[number].size for number in gone) >= total:
            break
    kept = [hunk for place, hunk in enumerate(hunks) if place not in gone]
    return b"".join(
        _rebuilt(part, [hunk for hunk in kept if hunk.file == at]) if at in chosen else part
        for at, part in enumerate(parts)
    )


def _hunks(file: int, section: bytes) -> Iterator[_Hunk]:
    found = list(_HUNK.finditer(section))
    ends = [*(match.start() for match in found[1:]), len(section)]
    for match, end in zip(found, ends, strict=True):
        yield _Hunk(file, match[0], tuple(_LINE.findall(section[match.end() : end])))


def _rebuilt(section: bytes, hunks: Sequence[_Hunk]) -> bytes:
    """A file's part with these hunks; nothing, where it has none left."""
    if not hunks:
        return b""
    return header_of(section) + b"".join(hunk.head + b"".join(hunk.lines) for hunk in hunks)


def _with_half(parts: Sequence[bytes], hunk: _Hunk) -> bytes:
    keep = hunk.size // 2
    lines: list[bytes] = []
    seen = 0
    for line in hunk.lines:
        changed = line[:1] in b"+-"
        seen += changed
        if not changed or seen <= keep:
            lines.append(line)
        elif line.startswith(b"-"):
            lines.append(b" " + line[1:])
    old = sum(line[:1] in b" -" for line in lines)
    new = sum(line[:1] in b" +" for line in lines)
    match = _HUNK.match(hunk.head)
    assert match is not None
    head = b"@@ -%b,%d +%b,%d @@\n" % (match[1], old, match[2], new)
    return b"".join(
        _rebuilt(part, [hunk._replace(head=head, lines=tuple(lines))]) if at == hunk.file else part
        for at, part in enumerate(parts)
    )
