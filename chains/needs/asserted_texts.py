"""Texts that hidden tests use and that only the source patch has: messages, keys, options, markers.

A text counts where a literal of an assertion, or a `match=` pattern, meets a literal of the source patch, or the fixed
part of one with placeholders, that no literal of the source at B_t holds; and where any literal of the tests that is
shaped as a key (an option of a command, a variable of the environment, a field) is such a literal as a whole, a key of
a file of test data, or of a text of several lines in the tests, too; these also where they begin with an underscore
that the source takes off. Tests hand what they expect to helpers of their own and keep it in tables, so every literal
of several words counts that meets one, of a literal of several lines each line. The level and the logger that
`assertLogs` and `logging` set before a message are none of it where no literal of the source patch has them. Python is
parsed. Of other languages, whose assertions go over several lines, every literal counts that is one of the source patch
as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from chains.needs.expected_texts import SIGN, WORD, Expected, counts, data_keys, expected_texts
from chains.needs.literals import templates_of
from chains.needs.python_source import Reader
from prchain.core.code.needs import Need
from prchain.core.git.patches import FilePatch
from prchain.core.secrets.scrub import redact_mined

LONGEST = 200
"""Characters of a text that a solver is told."""
_SHORTEST_PART = 6
"""Characters of a fixed part that a longer literal of a test may hold by no chance, where it has one word."""
_LOGGED = re.compile(
    r"((?:DEBUG|INFO|WARNING|ERROR|CRITICAL)(?::(?!\s)|\s+-\s+))(?:[^\W\d]\w*(?:(?:\.| \.{3} )\w+)*:)?"
)
"""What logging sets before a message: its level, and the name of its logger, whose points match anything in a pattern.
A level with a colon and a blank is what programs print themselves."""
_CODE = re.compile(
    r"(?:[;{]|(?<!\{\d)(?<!\{\d\d)\})\s*$|^\s*(?:def|class|import|from|return|fn|func|const|let|var)\s+\w|\)\s*->|=>|&&|\|\||::"
)
_HTTP_METHODS = frozenset({"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"})
"""RFC 9110, section 9, and RFC 5789: nobody has to be told."""
_TABLE = re.compile(r"[│┃|].*[│┃|]|[─━]{3}|\+-{2,}\+|\t.*\t")


@dataclass(frozen=True, slots=True)
class AssertedTexts:
    """What tests compare with and the source patch adds: `needed` where no literal of the source at B_t holds it,
    `known` where one does. `recorded`: the files of test data that hold such a text."""

    needed: tuple[Need, ...]
    known: tuple[str, ...]
    recorded: tuple[str, ...] = ()


def asserted_texts(
    source_patch: Sequence[FilePatch],
    test_patch: Sequence[FilePatch],
    landed: Reader,
    base_holds: Callable[[Collection[str]], set[str]],
    records: Sequence[FilePatch] = (),
) -> AssertedTexts:
    """The texts that the added lines of tests compare with and that the source patch adds.

    `base_holds` gives those of some texts that stand in a literal of the source at B_t. `records` are files of the
    test patch that tests read.
    """
    templates = list(templates_of(source_patch, landed))
    every = "\0".join(part for parts in templates for part in parts)
    telling = {bare for parts in templates for part in parts if _is_telling(bare := part.strip())}
    met: dict[str, tuple[set[str], set[str]]] = {}
    wholes = {parts[0] for parts in templates if len(parts) == 1}
    for literal in (*expected_texts(test_patch, landed), *data_keys(records)):
        expected = _message_of(literal, templates)
        if expected.spellings is not None:
            grounds = wholes.intersection(expected.spellings)
        elif all(piece in every for piece in expected.parts):
            grounds = _meets(expected, templates)
        else:
            # No template holds it, which is so of most; to ask each one would take many times as long.
            grounds = {part for part in telling if any(part in piece for piece in expected.parts)}
        # Of a line of input the keys in it are needed, not the line.
        keys = expected.use == "argument" and all(counts(ground, "key") for ground in grounds)
        for text in (grounds if keys else {expected.text}) if grounds else ():
            texts, tests = met.setdefault(text, (set(), set()))
            texts |= {text} if keys else grounds
            tests |= set(expected.tests)
    held = {patch.path: grounds for patch in records if (grounds := _recorded(patch, templates))}
    old = base_holds({text for texts, _ in met.values() for text in texts}.union(*held.values()))
    known = {text for text, (grounds, _) in met.items() if grounds <= old}
    needed = (
        Need("text", text, tests=tuple(sorted(tests)), withheld=_withheld(text))
        for text, (_, tests) in sorted(met.items())
        if text not in known and text not in _HTTP_METHODS
    )
    told = old.union(*(texts for texts, _ in met.values()))
    recorded = sorted(path for path, grounds in held.items() if not grounds <= told)
    return AssertedTexts(tuple(needed), tuple(sorted(known)), tuple(recorded))


def _withheld(text: str) -> str:
    if len(text) > LONGEST:
        return f"longer than {LONGEST} characters"
    if _CODE.search(text):
        return "code"
    if _TABLE.search(text):
        return "a table"
    return "holds a secret" if redact_mined(text) != text else ""


def _meets(expected: Expected, templates: Iterable[tuple[str, ...]]) -> set[str]:
    """What an expected text has in common with the templates of the source patch: itself where a fixed part holds it,
    else the fixed parts that it holds."""
    found: set[str] = set()
    for parts in templates:
        if all(any(piece in part for part in parts) for piece in expected.parts):
            found.add(max(expected.parts, key=len))
        else:
            held = [part for part in parts if any(part.strip() in piece for piece in expected.parts)]
            found.update(part.strip() for part in held if _is_telling(part.strip()))
    return found


def _message_of(expected: Expected, templates: Sequence[tuple[str, ...]]) -> Expected:
    """What is expected of a line of a log, without what logging sets before the message; as it is where a literal of
    the source patch has the level itself, or meets nothing behind it."""
    text = expected.text.strip()
    logged = _LOGGED.match(text) if expected.use in ("assertion", "argument") else None
    if logged is None or _hold(templates, logged[1].strip()):
        return expected
    for end in (logged.end(), logged.end(1)):
        rest = text[end:].strip().removeprefix("... ")
        parts = tuple(rest.split(" ... ")) if len(expected.parts) > 1 else (rest,)
        message = replace(expected, text=rest, parts=parts)
        met = [template for template in templates if counts(rest, expected.use) and _meets(message, [template])]
        # What looks like a logger may be the beginning of the message.
        if met and not any(_begins_in(part.strip(), text, end) for template in met for part in template):
            return message
    return expected


def _hold(templates: Iterable[tuple[str, ...]], text: str) -> bool:
    return any(text in part for parts in templates for part in parts)


def _begins_in(part: str, text: str, end: int) -> bool:
    """Whether a text has a fixed part of words that begins before some place in it."""
    words = re.escape(part) + (r"(?!\w)" if part[-1:].isalnum() else "")
    found = re.search(rf"(?<!\w){words}", text) if WORD.search(part) else None
    return found is not None and found.start() < end


def _recorded(patch: FilePatch, templates: Iterable[tuple[str, ...]]) -> set[str]:
    """The fixed parts of the source patch that a file of data has, and did not have before."""
    added, removed = "\n".join(patch.added), "\n".join(patch.removed)
    parts = {part.strip() for parts in templates for part in parts}
    return {part for part in parts if part in added and part not in removed and _is_telling(part)}


def _is_telling(part: str) -> bool:
    words = len(WORD.findall(part))
    return (
        words > 1
        or SIGN.search(part) is not None
        or (words == 1 and len(part) >= _SHORTEST_PART and not part.isalpha())
    )
