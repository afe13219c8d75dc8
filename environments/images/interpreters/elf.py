"""The folder in which an ELF file looks for libraries: read, and written anew in its place.

A copy of an interpreter looks where it was built. A shorter path fits into the place of the longer one, so that no tool
is needed. Format: System V ABI, "Object Files" and "Dynamic Section"; 64 bits, little-endian.
"""

from __future__ import annotations

import struct

_LOAD, _DYNAMIC = 1, 2
_STRINGS, _RPATH, _RUNPATH = 5, 15, 29


def library_path(content: bytes) -> tuple[int, bytes] | None:
    """Where the path (DT_RUNPATH or DT_RPATH) stands in a file, and what it is; None for a file without one."""
    if content[:6] != b"\x7fELF\x02\x01" or len(content) < 64:
        return None
    try:
        return _library_path(content)
    except (struct.error, IndexError, ValueError, OverflowError, StopIteration):
        return None


def _library_path(content: bytes) -> tuple[int, bytes] | None:
    table, size, count = *struct.unpack_from("<Q", content, 32), *struct.unpack_from("<HH", content, 54)
    segments = [struct.unpack_from("<IIQQQQ", content, table + number * size) for number in range(count)]
    loads = [(address, offset, length) for kind, _, offset, address, _, length in segments if kind == _LOAD]
    strings = named = None
    for kind, _, offset, _, _, length in segments:
        if kind == _DYNAMIC:
            for place in range(offset, offset + length, 16):
                tag, value = struct.unpack_from("<QQ", content, place)
                if tag == _STRINGS:
                    strings = value
                elif tag in {_RPATH, _RUNPATH}:
                    named = value
    if strings is None or named is None:
        return None
    at = next(offset + strings - address for address, offset, length in loads if address <= strings < address + length)
    begin = at + named
    return begin, content[begin : content.index(b"\0", begin)]


def with_library_path(content: bytes, path: bytes) -> bytes:
    """The file with another path; unchanged where it has none. Raises `ValueError` where the new one does not fit."""
    found = library_path(content)
    if found is None:
        return content
    begin, old = found
    if len(path) > len(old):
        raise ValueError("the path is longer than the one in whose place it would stand")
    return content[:begin] + path.ljust(len(old), b"\0") + content[begin + len(old) :]
