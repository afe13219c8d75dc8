"""How much git would unpack of a patch with binary files, before it is given to git: a patch of somebody else's can
ask for more memory than there is."""

from __future__ import annotations

import re
import zlib
from base64 import b85decode

MOST_UNPACKED = 64 << 20
"""Bytes that the binary files of somebody else's patch may hold."""

_PART = re.compile(rb"^(literal|delta) ([0-9]{1,19})\r?\n", re.M)
_LINE = re.compile(rb"^(?:literal|delta) [^\n]*(?:\n|\Z)", re.M)
"""Any line that git may take for a part's first: in a text hunk, lines begin with ``+``, ``-`` or a blank."""
_BINARY = b"GIT binary patch"
_ENOUGH = 32
"""Bytes at a delta's beginning that hold both of its sizes."""


def unpacked_size(patch: bytes) -> int:
    """The bytes that the binary files of a patch hold when git has unpacked them, as the patch itself says."""
    total = 0
    for part in _PART.finditer(patch):
        total += int(part[2])
        if part[1] == b"delta":
            total += _result_size(_beginning(patch, part.end()))
    return total


def require_room(patch: bytes) -> None:
    """Refuse a patch whose binary files hold more than `MOST_UNPACKED`, or have sizes that git does not write: it
    reads them by strtoul(3), which takes blanks, signs and any number of zeros. Raises `ValueError`."""
    if _BINARY in patch and any(not _PART.fullmatch(line[0]) for line in _LINE.finditer(patch, patch.index(_BINARY))):
        raise ValueError("a binary file has a size that git does not write")
    if (size := unpacked_size(patch)) > MOST_UNPACKED:
        raise ValueError(f"its binary files unpack to {size >> 20:,} MB")


def _beginning(patch: bytes, start: int) -> bytes:
    """The first bytes of the delta whose lines begin at `start`."""
    unpacked, stream = b"", zlib.decompressobj()
    while len(unpacked) < _ENOUGH:
        end = patch.find(b"\n", start)
        line = patch[start : len(patch) if end < 0 else end].rstrip(b"\r")
        if not line:
            break
        try:
            unpacked += stream.decompress(b85decode(line[1:]), _ENOUGH)
        except (ValueError, zlib.error):
            break  # git will not take it either
        start = end + 1 if end >= 0 else len(patch)
    return unpacked


def _result_size(delta: bytes) -> int:
    """The second of the two sizes that a delta begins with (gitformat-pack(5)): what it makes."""
    sizes, size, shift = [], 0, 0
    for byte in delta:
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            sizes.append(size)
            size = shift = 0
    return sizes[1] if len(sizes) > 1 else 0
