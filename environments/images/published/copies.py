"""What a copy of a patch looks like: the lines that name its files, as grep(1) finds them wherever they stand."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress

from prchain.core.git.output import path_name

# Git's prefixes, those of others, or none; inside a JSON text quotes and backslashes have more backslashes before them.
_HEAD = rb'(--- |[+]{3} |diff --git |(rename|copy) (from|to) )\\*"?(/?[^[:space:]"/]+/)?'
_END = rb"($|[^[:alnum:]_./-])"
_SPECIAL = re.compile(rb"[.(){*+?|^$\[]")
_ESCAPES = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}


def copy_patterns(paths: Iterable[str]) -> bytes:
    """Extended regular expressions, a line for each of these paths (`path_text`), for grep with the locale C.

    A line is never empty, and no path makes two of one: what is no text is looked for as git quotes it.
    """
    names = (path_name(path).encode("utf-8", "surrogateescape") for path in paths)
    return b"".join(_HEAD + _spellings(name) + _END + b"\n" for name in names)


def _spellings(path: bytes) -> bytes:
    found = [_quoted(path)]
    if not any(byte in path for byte in b"\n\0"):
        found.append(path)
    with suppress(UnicodeDecodeError):  # JSON has no such path
        found.append(json.dumps(path.decode())[1:-1].encode())
    return b"(" + b"|".join(map(_escaped, dict.fromkeys(found))) + b")"


def _quoted(path: bytes) -> bytes:
    """A path as git writes it between quotes (git-config(1), ``core.quotePath``)."""
    return b"".join(
        b"\\" + _ESCAPES[byte] if byte in _ESCAPES else b"\\%03o" % byte if byte < 32 or byte > 126 else bytes([byte])
        for byte in path
    )


def _escaped(text: bytes) -> bytes:
    return _SPECIAL.sub(rb"\\\g<0>", re.sub(rb"\\+", b"\0", text)).replace(b"\0", rb"\\+")
