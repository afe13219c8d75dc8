"""What stands in a text in disguise: base64, base32, hexadecimal, escapes, and letters with blanks between them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from prchain.core.leaks.vocabulary import is_plain

_CHUNK = re.compile(r"\S+")
_AROUND = "\"'`()[]{}<>,;:.!?*"
_FEWEST_LETTERS = 3
_FEWEST_PRINTABLE = 0.75
"""Of the characters: a few odd bytes beside a name do not hide it."""
_SHORTEST = 8
"""Characters of an encoded name; a shorter one is a word."""
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,2}")
_BASE32 = re.compile(r"[A-Z2-7]{8,}={0,6}")
_HEX = re.compile(r"(?:0[xX])?((?:[0-9a-fA-F]{2})+)")
_BYTES = re.compile(r"[0-9a-fA-F]{2}(?:[:,-][0-9a-fA-F]{2}){3,}")
_PART = re.compile(r"[A-Za-z0-9+/_-]{8,}={0,2}")
"""What may be a code within a chunk, behind a mark such as the one in ``base64:...``."""
_ESCAPE = re.compile(r"(?:\\x|\\u00|0x|%|=)([0-9a-fA-F]{2})")
_ESCAPED = re.compile(rf"(?:{_ESCAPE.pattern}[,;:-]?){{4,}}")


class Decoding(NamedTuple):
    """A piece of a text, and what it reads as."""

    shown: str
    text: str


def decodings(text: str) -> list[Decoding]:
    """What reads as text of another kind once it is decoded; each piece by itself, and pieces that go on after a blank.

    A piece whose bytes are mostly no ASCII text is none: words of English are no base64 of anything.
    """
    chunks = [stripped for match in _CHUNK.finditer(text) if (stripped := match[0].strip(_AROUND))]
    pieces = [*chunks, *(part for chunk in chunks for part in _parts(chunk)), *_runs(chunks)]
    return list(dict.fromkeys(Decoding(piece, plain) for piece in pieces for plain in _readings(piece)))


def _parts(chunk: str) -> Iterator[str]:
    if _BYTES.fullmatch(chunk):
        yield " ".join(re.split("[:,-]", chunk))
    for part in _PART.findall(chunk):
        if part != chunk:
            yield part


def _runs(chunks: list[str]) -> Iterator[str]:
    """Neighbours that belong together: single letters, bytes one by one, and one code that was cut in two."""
    kinds: tuple[tuple[Callable[[str], bool], int], ...] = (
        (lambda chunk: len(chunk) == 1, 6),
        (lambda chunk: len(chunk) <= 4 and bool(_HEX.fullmatch(chunk)), 4),
        (lambda chunk: bool(_BASE64.fullmatch(chunk)) and not is_plain(chunk), 2),
    )
    for belongs, fewest in kinds:
        for match, run in groupby(chunks, belongs):
            parts = list(run) if match else []
            if len(parts) >= fewest:
                yield " ".join(parts)


def _readings(piece: str) -> Iterator[str]:
    parts = piece.split(" ")
    if len(parts) > 1 and all(len(part) == 1 for part in parts):
        yield "".join(parts)
    joined = "".join(parts)
    if len(joined) < _SHORTEST:
        return
    for decode in (_from_hex, _from_escapes, _from_base64, _from_base32):
        try:
            text = decode(parts).decode("ascii", "replace").replace("\ufffd", "\0")
        except (binascii.Error, ValueError):
            continue
        if _is_readable(text) and text != joined:
            yield text


def _is_readable(text: str) -> bool:
    printable = sum(" " <= char <= "~" or char in "\n\t" for char in text)
    return sum(map(str.isalpha, text)) >= _FEWEST_LETTERS and printable >= _FEWEST_PRINTABLE * len(text)


def _from_hex(parts: Iterable[str]) -> bytes:
    matches = [_HEX.fullmatch(part) for part in parts]
    return bytes.fromhex("".join(match[1] if match else "" for match in matches)) if all(matches) else b""


def _from_escapes(parts: Iterable[str]) -> bytes:
    text = "".join(parts)
    if text.count("%") >= 4:
        return unquote_to_bytes(text)
    found = _ESCAPED.search(text)
    return bytes.fromhex("".join(_ESCAPE.findall(found[0]))) if found else b""


def _from_base64(parts: Iterable[str]) -> bytes:
    text = "".join(parts)
    if not _BASE64.fullmatch(text):
        return b""
    bare = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)


def _from_base32(parts: Iterable[str]) -> bytes:
    text = "".join(parts)
    if not _BASE32.fullmatch(text):
        return b""
    bare = text.rstrip("=")
    return base64.b32decode(bare + "=" * (-len(bare) % 8))
