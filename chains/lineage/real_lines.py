"""Which lines are code that does something: no comment, import, bracket or blank, and none that opens or ends a block.

By pattern, line by line: hunks do not parse.
"""

from __future__ import annotations

import re
from functools import lru_cache

from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.code.lexing import family_of, is_prose

_NO_LETTER = rb"[^A-Za-z\x80-\xff]*$"
_BLOCK = rb"[^A-Za-z]*(?:else|try|finally|end|do|begin|then|fi|done|pass|esac|endif)\b[^A-Za-z]*$"
_ITEM = rb"[\w$]+,$"
"""One name of a list, as of the names that are imported."""
_SLASHES = rb"//|/\*|\*(?:\s|/|$)"
_OTHER_COMMENTS = rb"#|//|/\*|\*(?:\s|/|$)|--|<!--|;|%|\{#"
_NOT_REAL = {
    "python": rb"""#|import\s|from\s+\S+\s+import\b|(?:[rRbBuU]{0,2})(?:\"\"\"|''')""",
    "javascript": _SLASHES + rb"|import\b|export\s[^=]*\bfrom\b|(?:const|let|var)\s[^=]*=\s*require\(|['\"]use ",
    "rust": _SLASHES + rb"|(?:pub(?:\([\w:]+\))?\s+)?(?:use|mod)\s[\w:*{},\s]*(?:;|$)|extern\s+crate\b",
    "go": _SLASHES + rb"|import\b|package\s|(?:[\w.]+\s+)?\"[\w./-]+\"$",
    "java": _SLASHES + rb"|import\b|package\s|using\s+[\w.]+;|use\s+[\w\\]+;|namespace\s|#",
    "c": _SLASHES + rb"|#\s*(?:include|pragma|endif|else|if|ifdef|ifndef|import)\b|using\s",
    "hash": rb"#|require(?:_relative)?\s|use\s|import\s",
}
_NOT_REAL_RES: dict[str | None, re.Pattern[bytes]] = {
    family: re.compile(rb"|".join((_NO_LETTER, _BLOCK, _ITEM, pattern)))
    for family, pattern in [*_NOT_REAL.items(), (None, _OTHER_COMMENTS)]
}
_CODE_MARK = re.compile(rb"[=(){}\[\]\"'`<>]")


@lru_cache(maxsize=1 << 16)
def kind_and_family(path: bytes) -> tuple[FileKind, str | None]:
    """The role of a path's file, and its family of languages."""
    text = path.decode("utf-8", "replace")
    return kind_of(text), family_of(text)


def is_code(path: bytes) -> bool:
    """Whether the file at a path is source or test."""
    return kind_and_family(path)[0] in _CODE


_CODE = frozenset({FileKind.SOURCE, FileKind.TEST})


def is_real(line: bytes, family: str | None) -> bool:
    """Whether a line of a file of code, of a family of languages, is code that does something."""
    text = line.strip()
    if not text or _NOT_REAL_RES[family].match(text):
        return False
    return bool(_CODE_MARK.search(text)) or not is_prose(text.decode("utf-8", "replace"))
