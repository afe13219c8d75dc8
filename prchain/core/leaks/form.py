"""The form of a text: whether it is a narrative in English of a fitting length that speaks of the work alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence

from prchain.core.leaks.facts import StageFacts
from prchain.core.leaks.finding import Finding, finding
from prchain.core.leaks.folding import digest
from prchain.core.leaks.reading import TextReading
from prchain.core.leaks.vocabulary import is_plain, lists

LENGTHS = {"query": (25, 400), "overview": (25, 700), "comment": (3, 700)}
"""Fewest and most words. The paper's example of a query has 113."""

_ITEM = re.compile(r"^(?:[-+*•‣◦–]|\(?\d{1,2}[.)]|\(?[a-hA-H][.)])\s+\S")  # noqa: RUF001
_HEADING = re.compile(r"^#{1,6} \S|^\*\*[^*\n]{1,80}\*\*:?$")
_STEP = re.compile(r"\b[Ss]tep[ -]?(?:\d{1,2}|one|two|three|four)\b")
_INLINE = re.compile(r"(?<!\w)\(?([1-9]|i{1,3}|iv|[a-d])\)(?=\s)")
_ORDINAL = re.compile(r"(?i)\b(?:first|second|third|fourth|finally|next|then)(?:ly)?,")
_URL = re.compile(
    r"(?i)\b(?:https?|ftp|git|ssh)://[\w\[]\S{0,299}|\bwww\.\w\S{1,300}|\b(?:github|gitlab)\.com/\S{1,300}"
)
_EXAMPLE_HOST = re.compile(
    r"(?i)(?:https?|ftp)://(?:[\w-]+@)?(?:localhost|127(?:\.\d{1,3}){3}|0\.0\.0\.0|\[::1?\]"
    r"|(?:[\w-]+\.)*example\.(?:com|net|org)|(?:[\w-]+\.)+(?:example|test|invalid|localhost)|[a-z][\w-]{0,62})(?=[:/?#]|$)"
)
"""Addresses of one's own machine, those of a host without a dot, which no page of the web has, as `testserver`, and
those that RFC 2606 and RFC 6761 keep for examples."""
_AFTER_URL = ".,;:!?'\"`*>)]}"
"""What ends a sentence or a quotation, not an address."""
_HEX = re.compile(r"(?<![\w-])[0-9a-fA-F]{7,40}(?![\w-])")
_NUMBER = re.compile(
    r"(?i)(?:(?<!\w)#|\bGH-|\bpulls?/|\bissues/|\b(?:PR|MR|pull[ -]request|merge[ -]request|issue|ticket|bug)"
    r"s?[ \t]{0,3}(?:no\.?|number)?[ \t]{0,3}[-#]?)(\d{1,7})\b"
)
_PATCH = "patch|diff|commit|changeset"
_WORK = _PATCH + "|fix|solution|implementation|change"
_THIS = "this|the|that|original"
_MAKING = (
    rf"(?:{_THIS}) (?:PR|MR|pull[ -]request|merge[ -]request)\b",
    r"ground[ -]truth",
    rf"(?:gold|golden|oracle) (?:{_WORK}|answer)\b",
    rf"reference (?:{_PATCH}|fix|solution|answer)\b",
    r"(?:hidden|held[ -]out|F2P|P2P|fail[ -]to[ -]pass|pass[ -]to[ -]pass) tests?",
    r"(?:original|actual|real) patch\b",
    rf"merged (?:{_WORK})\b",
    r"upstream (?:patch|diff|solution|implementation)\b",
    r"upstream(?:'s)? (?:developers?|maintainers?|authors?)",
)
_SETUP = (
    rf"(?:this|the provided) (?:{_PATCH})\b",
    r"the (?:patch|changeset) (?:adds|changes|introduces|modifies|removes|replaces|moves|renames|fixes)\b",
    r"the diff (?:adds|introduces|modifies|replaces|renames|fixes)\b",
    r"as the (?:patch|diff|changeset) (?:shows|does)\b",
    r"as (?:seen|shown|done) (?:in|by) the (?:patch|diff|changeset)\b",
    r"here is the (?:query|text|task|overview)",
    r"the (?:query|prompt) you (?:requested|asked)",
    r"\bas an AI\b",
)
"""Words of an author who knows the reference, or how this text was made."""
_MAYBE_MAKING = (
    r"pull[ -]request",
    r"merge request",
    r"reference implementation\b",
    rf"(?:original|upstream|actual|provided|given|supplied|real) (?:{_WORK})\b",
)
_MAYBE_SETUP = (
    rf"the (?:following|given) (?:{_PATCH})\b",
    r"(?:in|from|of|by|to|per|according to|as) the (?:patch|diff|changeset)\b",
    r"the (?:patch|diff|changeset) (?:adds?|also|changes?|modify|shows?|does|touches|removes?|moves|makes)\b",
    r"(?:this|the) (?:benchmark|sub-?query)\b",
)
"""What a project's own subject may be as well: the solution of an equation, a diff that a formatter prints."""


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile(r"(?i)\b(?:" + "|".join(patterns) + ")")


_META = {True: _any_of(*_MAKING), False: _any_of(*_MAKING, *_SETUP)}
_MAYBE_META = {True: _any_of(*_MAYBE_MAKING), False: _any_of(*_MAYBE_MAKING, *_MAYBE_SETUP)}
_SUBJECT = re.compile(r"(?i)patch|diff|commit|changeset|fix|solution|implementation|change|request|benchmark|query")
_LETTERS = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n[ \t]*\n")
_SHORTEST_JUDGED = 12
_FEWEST_FUNCTION_WORDS = 0.10
_FEWEST_KNOWN = 0.55
_LEAST_LATIN = 0.8
_FEWEST_LETTERS = 20
"""Fewer letters of another script are a symbol, a name or an example."""


def form_findings(reading: TextReading, kind: str, told: Collection[str] = ()) -> Iterator[Finding]:
    """Everything about the form of a query, an overview or a comment. `told` has the marks of addresses that a solver
    is given anyway."""
    yield from _lists(reading)
    for address in addresses(reading.text):
        if address_mark(address) not in told:
            yield finding("url", "leak", address)
    yield from _length(reading.text, kind)
    yield from _meta(reading, kind)
    yield from _language(reading)


def addresses(text: str) -> Iterator[str]:
    """The addresses of pages and repositories in a text, without the sentence's own signs behind them; not those that
    are made for examples."""
    found = (match[0].rstrip(_AFTER_URL) for match in _URL.finditer(text))
    return (address for address in found if not _EXAMPLE_HOST.match(address))


def address_mark(address: str) -> str:
    """What stands for an address among the marks of what is told. No literal has it: people may have said an address
    that the patch adds without the solver having read it."""
    return digest(f"<{address}>")


def reference_findings(reading: TextReading, chain: Sequence[StageFacts], kind: str) -> Iterator[Finding]:
    """Shas and numbers: those of the stages are leaks, others warnings."""
    for match in _HEX.finditer(reading.text):
        sha = match[0].lower()
        stage = next((at for at, facts in enumerate(chain, 1) if any(s.startswith(sha) for s in facts.shas)), None)
        if stage is not None:
            yield finding("sha", "leak", match[0], stage)
        elif kind != "issue" and not sha.isalpha() and not sha.isdigit():
            yield finding("sha", "warning", match[0])
    if kind == "issue":
        return
    numbers = {facts.number: at for at, facts in reversed(list(enumerate(chain, 1)))}
    for match in _NUMBER.finditer(" ".join(reading.text.split())):
        stage = numbers.get(int(match[1]))
        yield finding("pull_request_number", "leak" if stage else "warning", match[0], stage)


def _lists(reading: TextReading) -> Iterator[Finding]:
    items = [line for line in reading.lines if _ITEM.match(line)]
    if items:
        yield finding("list", "leak" if len(items) > 1 else "warning", items[0])
    steps = list(dict.fromkeys(match[0].lower() for match in _STEP.finditer(reading.text)))
    if steps:
        yield finding("list", "leak" if len(steps) > 1 else "warning", steps[0])
    inline = list(dict.fromkeys(match[1] for match in _INLINE.finditer(reading.text)))
    if len(inline) > 1:
        yield finding("list", "leak" if len(inline) > 2 else "warning", f"{inline[0]}) ... {inline[1]})")
    ordinals = _ORDINAL.findall(reading.text)
    if len(ordinals) > 2:
        yield finding("list", "warning", "first, ... then, ... finally, ...")
    heading = next((line for line in reading.lines if _HEADING.match(line)), None)
    if heading:
        yield finding("list", "warning", heading)


def _length(text: str, kind: str) -> Iterator[Finding]:
    fewest, most = LENGTHS[kind]
    words = len(text.split())
    if words < fewest:
        yield finding("too_short", "leak", f"{words} words, at least {fewest} are needed")
    elif words > most:
        yield finding("too_long", "leak", f"{words} words, at most {most} are allowed")


def _meta(reading: TextReading, kind: str) -> Iterator[Finding]:
    """Talk about the making of the text. Words that may mean the project's own subject leak when they have two
    subjects; a comment may speak of the patch that its judge judges."""
    text = " ".join(reading.masked.split())
    judge = kind == "comment"
    for match in _META[judge].finditer(text):
        yield finding("meta", "leak", match[0])
    doubtful = [match[0] for match in _MAYBE_META[judge].finditer(_META[judge].sub(" ", text))]
    subjects = {subject[0].lower() for phrase in doubtful if (subject := _SUBJECT.search(phrase))}
    for phrase in doubtful:
        yield finding("meta", "leak" if len(subjects) > 1 else "warning", phrase)


def _language(reading: TextReading) -> Iterator[Finding]:
    """A text is English when its letters are Latin, and English words, above all those of grammar, make it up.

    Judged by sentence and by paragraph, so that a foreign passage in an English text shows; short ones by the whole.
    """
    for passage in (reading.masked, *_PARAGRAPH.split(reading.masked), *_SENTENCE.split(reading.masked)):
        if _is_foreign_script(passage):
            yield finding("wrong_language", "leak", passage)
            return
        words = [word.lower() for word in _LETTERS.findall(passage)]
        if len(words) < _SHORTEST_JUDGED:
            continue
        grammar = sum(word in lists().function_words for word in words) / len(words)
        if grammar < _FEWEST_FUNCTION_WORDS or (
            grammar < 2 * _FEWEST_FUNCTION_WORDS and sum(map(is_plain, words)) / len(words) < _FEWEST_KNOWN
        ):
            yield finding("wrong_language", "leak", passage)
            return


def _is_foreign_script(passage: str) -> bool:
    if passage.isascii():
        return False
    letters = [char for char in passage if char.isalpha()]
    latin = sum(char.isascii() or "LATIN" in unicodedata.name(char, "") for char in letters)
    return len(letters) >= _FEWEST_LETTERS and latin < _LEAST_LATIN * len(letters)
