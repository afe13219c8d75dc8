"""What git knows of the times of files, told anew in a copy of a sandbox, without reading the files.

A copy has other inodes, other times of the last change, and of the last modification whole seconds alone, as an
engine's layers keep them. Git would read each file once to see that it is the same.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from environments.sandboxes.sandbox import Sandbox

_PATIENCE = 600.0
_MOST = 256 << 20
"""Bytes of an index, and of a listing."""

_ENTRY = struct.Struct(">10I")
"""Of an index (gitformat-index(5)): change and modification in seconds and nanoseconds, device, inode, mode, owner,
group, size."""
_WORD = 0xFFFF_FFFF
_HEAD = struct.Struct(">4sII")
_EXTENDED = 0x4000

_DATED = re.compile(rb"([0-9]{1,12}\.[0-9]{9})[0-9]*\0")
_CLEAN = "export LC_ALL=C PATH=/usr/bin:/bin\n"
_LIST = (
    "find .git/index -printf '%T@\\0' && "
    "find . -name .git -prune -o ! -type d -printf '%y %m %s %T@ %C@ %D %i %U %G\\0%P\\0' && printf 'end\\0'"
)
_WRITE = "cat > .git/index.lock && mv .git/index.lock .git/index"
_CHANGED = (
    "find .git/index -printf '%T@\\0' && "
    "find . -name .git -prune -o ! -type d -cnewer .git/index -printf '%P\\0' && printf 'end\\0'"
)
_DATE = "touch -d @$(($(date +%s) + 1)) .git/index"
_DATE_BACK = "touch -d @{} .git/index"


class _Seen(NamedTuple):
    mode: int
    """As git has it."""
    size: int
    modified: int
    """Whole seconds."""
    changed: tuple[int, int]
    """Seconds and nanoseconds."""
    modified_rest: int
    numbers: tuple[int, int, int, int]
    """Device, inode, owner, group."""


def tell_times(sandbox: Sandbox, workdir: str) -> bool:
    """Write the times of the sandbox's files into the index of its repository; nobody but us may have used it, and git
    has looked at each file before it was copied.

    That is done of files that have the mode, the size and the second of modification that git knows, if that second was
    over when it wrote the index, and where the index is one of a plain kind. Others are left to git; whether there are
    none. Raises `SandboxError`.
    """
    index = sandbox.exec(f"{_CLEAN}cat .git/index", cwd=workdir, timeout=_PATIENCE, output_limit=_MOST)
    listed = sandbox.exec(_CLEAN + _LIST, cwd=workdir, timeout=_PATIENCE, output_limit=_MOST)
    if index.exit_code or index.omitted or listed.exit_code or listed.omitted:
        return False
    try:
        until, seen = _parsed(listed.output)
        told, are_all = _with_times(index.output, until, seen)
    except (ValueError, struct.error):
        return False
    return sandbox.exec(f"{_CLEAN}{_WRITE}", cwd=workdir, timeout=_PATIENCE, stdin=told).exit_code == 0 and are_all


@contextmanager
def vouched(sandbox: Sandbox, workdir: str, tracked: Set[bytes]) -> Iterator[None]:
    """While the sandbox is copied, date the index later than all files, where none of those that are `tracked` has
    changed since git wrote it: so that the second in which a file was written is over for `tell_times`, too.

    Raises `SandboxError`.
    """
    asked = sandbox.exec(_CLEAN + _CHANGED, cwd=workdir, timeout=_PATIENCE, output_limit=_MOST)
    written = _DATED.match(asked.output)
    *changed, end, rest = [b"", b"", *asked.output.split(b"\0")]
    is_told = not asked.exit_code and not asked.omitted and (end, rest) == (b"end", b"")
    if written is None or not is_told or tracked & {*changed}:
        yield
        return
    sandbox.exec(_CLEAN + _DATE, cwd=workdir)
    try:
        yield
    finally:
        sandbox.exec(_CLEAN + _DATE_BACK.format(written[1].decode()), cwd=workdir)


def _parsed(listed: bytes) -> tuple[int, Mapping[bytes, _Seen]]:
    """The second in which the index was written, and the files. Raises `ValueError`."""
    written, *parts, end, rest = listed.split(b"\0")
    if (end, rest) != (b"end", b"") or len(parts) % 2:
        raise ValueError("the listing is cut off")
    return _time(written)[0], {path: _seen(line) for line, path in zip(parts[::2], parts[1::2], strict=True)}


def _seen(line: bytes) -> _Seen:
    kind, mode, size, modified, changed, *numbers = line.split(b" ")
    device, inode, owner, group = map(int, numbers)
    second, rest = _time(modified)
    executable = int(mode, 8) & 0o100
    mode_of_git = {b"f": 0o100755 if executable else 0o100644, b"l": 0o120000}.get(kind, 0)
    return _Seen(mode_of_git, int(size), second, _time(changed), rest, (device, inode, owner, group))


def _time(words: bytes) -> tuple[int, int]:
    seconds, _, rest = words.partition(b".")
    return int(seconds), int(rest[:9] or 0)


def _with_times(index: bytes, until: int, seen: Mapping[bytes, _Seen]) -> tuple[bytes, bool]:
    """The index, and whether it has the times of all its files. Raises `ValueError` for one that may be of another
    kind, `struct.error` for one that is cut off."""
    sign, version, count = _HEAD.unpack_from(index)
    if sign != b"DIRC" or version not in (2, 3):
        raise ValueError("it is no such index")
    hashes = [name for name in ("sha1", "sha256") if _is_whole(index, name)]
    if len(hashes) != 1:
        raise ValueError("its end is not the hash of the rest")
    told = bytearray(index[: -hashlib.new(hashes[0]).digest_size])
    left = count
    for at, path in _entries(told, count, len(index) - len(told)):
        fields = _ENTRY.unpack_from(told, at)
        file = seen.get(path)
        if file is None or (fields[2], fields[6], fields[9]) != (file.modified & _WORD, file.mode, file.size & _WORD):
            continue
        if file.modified < until:
            left -= 1
            device, inode, owner, group = (number & _WORD for number in file.numbers)
            changed, rest = file.changed
            times = (changed & _WORD, rest, fields[2], file.modified_rest)
            _ENTRY.pack_into(told, at, *times, device, inode, fields[6], owner, group, fields[9])
    return bytes(told) + hashlib.new(hashes[0], told, usedforsecurity=False).digest(), not left


def _is_whole(index: bytes, name: str) -> bool:
    size = hashlib.new(name).digest_size
    return hashlib.new(name, memoryview(index)[:-size], usedforsecurity=False).digest() == index[-size:]


def _entries(index: bytearray, count: int, hash_size: int) -> Iterator[tuple[int, bytes]]:
    """Where each entry begins, and its path."""
    at = _HEAD.size
    for _ in range(count):
        name_at = at + _ENTRY.size + hash_size
        [flags] = struct.unpack_from(">H", index, name_at)
        name_at += 4 if flags & _EXTENDED else 2
        end = index.index(b"\0", name_at)
        yield at, bytes(index[name_at:end])
        at += (end - at + 8) // 8 * 8
