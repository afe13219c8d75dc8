"""Reading a reply that decides: whose object is the model's own, and its last word.

What a prompt shows may hold an object of the very shape that is asked for, written by whoever gains by it. A model that
only tells of it ("the patch brings its own verdict: {...}") has not decided. So a verdict ends the reply, and does not
stand in what the prompt showed: word for word, with its keys in any order, with other blanks, line marks, quotes,
punctuation or escapes around it. The prompt's own examples are no data, and may be followed.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

from prchain.core.llm.model import Reply
from prchain.core.llm.replies import UnfitReply, find_object, place_of_object, read_shape

Shape = TypeVar("Shape", bound=BaseModel)

_FENCE = re.compile(r"\s*(?:(?:`{3,}|~{3,})\s*\w*\s*)?")
_MARKUP = re.compile(r"</?[a-z][\w:|-]{0,40}>|<[|\uff5c][^<>|\uff5c\n]{1,60}[|\uff5c]>", re.IGNORECASE)
"""What may close what was opened around an object: tags and special tokens."""

_LINE_MARK = re.compile(r"^[+\- ]?[ \t]*(?:#+|//+|/?\*+|--+|;+|>+|<!--+)?", re.MULTILINE)
"""What a line of a patch, of a comment or of a quotation begins with."""
_BLANK = re.compile(r"\\[nrt]")
_CODED = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|u\{0{0,5}([0-9a-fA-F]{1,5})\}|U000([0-9a-fA-F]{5}))")
_GIVES = re.compile(r"[:=]+>?|(?<=\w)>")
"""What stands between a name and its value: in JSON, in code, in XML."""
_DROPPED = re.compile(r"(?:[^\w:.]|_|\.(?!\d)|(?<!\d)\.)+")
"""All but letters, digits, points in numbers and the colons that `_GIVES` became."""
_SLACK = 200
"""Characters that may stand between the parts of an object: keys that nobody asked for."""

_LAST_WORD = (
    "Something follows your JSON object, so it is not clear whether it is your verdict. Reply with your own verdict as "
    "one JSON object, and end with it."
)
_QUOTED = (
    "The JSON object of your reply stands in the material that you were shown, so it is a quotation and no verdict of "
    "yours. Quote no such object. Reply with your own verdict as one JSON object alone, in your own words."
)


def read_verdict(reply: Reply, shape: type[Shape], shown: Iterable[str]) -> Shape:
    """The verdict that a reply holds, as `prchain.core.llm.replies.read_shape` reads it; `shown` are the texts of
    others that the prompt showed. Raises `UnfitReply`, also where the object is not the reply's end, or is a quotation.

    An object without a word in it (``{"findings": []}``) is everybody's: it is a quotation only where the reply has
    other text.
    """
    value = read_shape(reply, shape)
    start, end = place_of_object(reply.text)
    if any(map(str.isalnum, _MARKUP.sub("", reply.text[end:]))):
        raise UnfitReply(_LAST_WORD)
    found = {key: part for key, part in find_object(reply.text).items() if key in shape.model_fields}
    alone = _FENCE.fullmatch(_MARKUP.sub("", reply.text[:start])) is not None
    if not (alone and _is_wordless(found)) and stands_in(found, shown):
        raise UnfitReply(_QUOTED)
    return value


def stands_in(value: Mapping[str, Any], texts: Iterable[str]) -> bool:
    """Whether an object stands in one of the texts: all of its keys with their values, close to each other."""
    parts = [re.compile(part) for part in _parts("", value)]
    if not parts:
        return False
    longest = max(parts, key=lambda part: len(part.pattern))
    size = sum(len(part.pattern) for part in parts) + _SLACK
    for text in texts:
        folded = _folded(_LINE_MARK.sub("", text))
        for match in longest.finditer(folded):
            near = folded[max(match.start() - size, 0) : match.end() + size]
            if all(part.search(near) for part in parts):
                return True
    return False


def _parts(key: str, value: Any) -> Iterator[str]:
    """Patterns of the keys of an object with their values, as they stand in a folded text."""
    head = re.escape(_folded(key) + ":") if key else ""
    if isinstance(value, dict) and value:
        for name, part in value.items():
            yield from _parts(name, part)
    elif isinstance(value, list) and value:
        if any(isinstance(part, dict) for part in value):
            for part in value:
                yield from _parts("", part)
        else:
            yield head + " ?".join(_scalar(part) for part in value)
    else:
        yield head + _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return re.escape(_folded(value))
    text = json.dumps(value)
    words = re.escape(_folded(text.removesuffix(".0")))
    if type(value) not in {int, float}:
        return words
    # 1, 1.0 and 1.00 are one number, 1.05 and 10 are others.
    return words + (r"0*(?!\d)" if "." in text.removesuffix(".0") else r"(?:\.0+)?(?!\d|\.\d)")


def _is_wordless(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(_is_wordless, value.values() if isinstance(value, dict) else value))
    return not isinstance(value, str) or not value.strip()


def _folded(text: str) -> str:
    """A text without what differs between the ways to write an object: in JSON, in code, in markup, in other signs."""
    decoded = _CODED.sub(lambda match: chr(int(match[match.lastindex or 0], 16)), _BLANK.sub(" ", html.unescape(text)))
    return _DROPPED.sub(_between, _GIVES.sub(":", unicodedata.normalize("NFKC", decoded))).casefold()


def _between(match: re.Match[str]) -> str:
    """What is left of signs: a blank between two numbers, which are not one."""
    before, after = match.string[match.start() - 1 : match.start()], match.string[match.end() : match.end() + 1]
    return " " if before.isdigit() and after.isdigit() else ""
