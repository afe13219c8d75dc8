"""Masks for tests of JavaScript and TypeScript (`environments.suites.canaries.masks`). Pure.

Masked is what an assertion asks for: in ``assert.deepEqual(a, [1, "x"])`` or ``expect(a).to.equal({b: "x"})`` each
literal of the value, also where the value is a name of the test that assertions alone read. A mask is a call of a
function that stands at the end of the file, for functions there can be called from everywhere in it. Calls around what
is compared walk the expected value and the given one side by side: each mask tells the part in its place, and is
replaced by that; then the file's own assertion compares. Where that is not possible a mask is an asymmetric matcher of
jest and vitest.

A title says in words what a test asks for, and a comment says why. A title that is written out, and that nobody looks
at, is another one, of which nothing can be learnt, in a test that has masks; comments are left out. Where a title shows
what stands in a row, by ``%s``, a mask there has a name that it is called by.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import chain

from environments.suites.canaries.jsasked import AskedPlace, JsFile, JsTest, TextEdit
from environments.suites.canaries.jsrecorder import recorder
from environments.suites.canaries.jstokens import JsToken, JsTokens, tokens_of
from environments.suites.canaries.masks import MOST_MASKS, UNWRITTEN, Masked, Masking

_LONGEST = 1 << 20
_OF_FILE = "toMatchSnapshot"
_LOOKS_AT_TITLES = re.compile(r"[sS]napshot|currentTestName|fullName|\.title\b|\b(?:this|ctx|context)\.(?:test|task)\b")
_SETS = re.compile(r"@(?:vitest|jest)")
"""Of a comment that a runner reads."""
_SETTINGS = re.compile(r"\ufeff?(?:#!.*\n|\s*/\*[\s\S]*?\*/[ \t]*\n?)?")


def mask_javascript(text: str, masking: Masking) -> Masked:
    """`environments.suites.canaries.masks.Masker` for the runners of JavaScript; names are titles, and what tests of
    one title ask for is counted through."""
    tokens = tokens_of(text) if len(text) <= _LONGEST else None
    if tokens is None:
        return Masked(text, {})
    try:
        file = JsFile(text, tokens)
        tests = file.tests()
    except RecursionError:
        return Masked(text, {})
    found: dict[str, list[AskedPlace]] = {}
    for test in tests:
        wanted_there = {it.begin: it for one in test.asked for it in one.places}
        if wanted_there:
            found.setdefault(test.title, []).extend(wanted_there[begin] for begin in sorted(wanted_there))
    literals = {title: tuple(it.literal or text[it.begin : it.end] for it in places) for title, places in found.items()}
    number = masking.first
    masked: dict[int, int] = {}
    are_known = bool(_LOOKS_AT_TITLES.search(text))
    for title, places in found.items():
        wanted = masking.places(title)
        for n, it in enumerate(places, number):
            if (wanted is None or n - number in wanted) and not (are_known and it.titled is not None):
                masked[it.begin] = n
        number += len(places)
    if not masked or number - masking.first > MOST_MASKS:
        return Masked(text, literals)
    name = _unused(text)
    edits: set[TextEdit] = set()
    shown: dict[str, str] = {}
    for asked in (it for test in tests for it in test.asked):
        chosen = [it for it in asked.places if it.begin in masked]
        for it in chosen:
            own = _name_of(masking.report, masked[it.begin])
            shown.update({own: it.titled} if it.titled is not None and masking.report else {})
            made_there = it.text.replace("{}", str(masked[it.begin])).replace("{name}", own)
            edits.add(TextEdit(it.begin, it.end, made_there))
        edits.update(asked.around if chosen else ())
    edits.update(chain.from_iterable(file.throwing()))
    edits.update(_without(it) for it in tokens.comments if not _SETS.search(it.text))
    if masking.report and not are_known:
        for edit, title in _other_titles(tests, masked, masking.report):
            edits.add(edit)
            shown[edit.text[1:-1]] = title
    edited = _edited(text, (it._replace(text=it.text.replace("@", name)) for it in edits))
    is_module = _is_module(tokens)
    made = edited + recorder(name, masking.report, is_module=is_module)
    is_without = UNWRITTEN in chain.from_iterable(literals.values()) and _OF_FILE not in edited
    return Masked(_unchecked(made) if is_module else made, literals, shown, is_without)


def _other_titles(tests: Sequence[JsTest], masked: Mapping[int, int], secret: str) -> Iterator[tuple[TextEdit, str]]:
    """What hides the titles of the tests that have masks, each with the title. Of all files of a run no two are alike,
    for the number of a mask is that of one test."""
    often = Counter(it.title for it in tests)
    for test in tests:
        numbers = [masked[it.begin] for one in test.asked for it in one.places if it.begin in masked]
        if numbers and test.heading is not None and often[test.title] == 1:
            quote, name = test.heading.text[0], _name_of(secret, min(numbers))
            yield TextEdit(test.heading.begin, test.heading.end, f"{quote}{name}{quote}"), test.title


def _name_of(secret: str, number: int) -> str:
    """What stands in a title for what a mask, or the first of several, hides."""
    return f"case {sha256(f'{secret} {number}'.encode()).hexdigest()[:16]}"


def _without(comment: JsToken) -> TextEdit:
    """What leaves a comment out, and the lines behind it where they are."""
    return TextEdit(comment.begin, comment.end, "\n" * comment.text.count("\n") or " ")


def snapshot_file(path: str) -> str:
    """The file in which jest and vitest keep the snapshots of a test file."""
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}__snapshots__/{name}.snap"


def _unchecked(text: str) -> str:
    """A text whose types TypeScript does not check. Settings of tests that begin a file stay first."""
    begin = _SETTINGS.match(text)
    place = begin.end() if begin else 0
    return f"{text[:place]}// @ts-nocheck\n{text[place:]}"


def _unused(text: str) -> str:
    name = "_masked"
    while name in text:
        name += "_"
    return name


def _edited(text: str, edits: Iterable[TextEdit]) -> str:
    parts: list[str] = []
    last = 0
    for it in sorted(edits):
        if it.begin >= last:
            parts += [text[last : it.begin], it.text]
            last = it.end
    return "".join([*parts, text[last:]])


def _is_module(tokens: JsTokens) -> bool:
    """Whether a file imports or exports as modules of ECMAScript do."""
    depth = 0
    for number, it in enumerate(tokens.all):
        if it.kind == "sign" and number in tokens.partner:
            depth += 1 if tokens.partner[number] > number else -1
        elif it.kind == "word" and it.text in ("import", "export") and not depth:
            after = tokens.all[number + 1].text if number + 1 < len(tokens.all) else ""
            before = tokens.all[number - 1].text if number else ""
            if before not in (".", "?.") and after not in ("(", ".", ":", "=", ""):
                return True
    return False
