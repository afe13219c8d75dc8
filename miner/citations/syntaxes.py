"""The ways in which a text names a pull request or a commit, and the finder of all of them.

GitHub itself recognises ``#12``, ``GH-12``, ``owner/repo#12``, issue and pull request URLs, and for commits a sha,
``user@sha``, ``owner/repo@sha`` and commit URLs. People also write ``PR 12`` and ``pull request 12``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from miner.citations.impostors import is_impostor
from miner.citations.model import Syntax
from miner.citations.urls import UrlForm

_NUMBER = r"([1-9][0-9]{0,8})(?![0-9])"
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9_.-]{1,100}")
_NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./"
_LONGEST_NAME = 142

_HASH = re.compile(r"#" + _NUMBER)
_NAMED_HASH = re.compile(r"[A-Za-z0-9_./-]#[1-9]")
_GH = re.compile(r"(?<![\w/.@-])(?:[Gg][Hh]-|GH(?:#| #?))" + _NUMBER)
_WORD = re.compile(
    r"(?<![\w/.@#-])(?:[Pp][Rr](?:s?(?:[ -]|#|: )|(?=[0-9]{3}))"
    r"|[Pp]ull[ -]?[Rr]equests?(?:\s|-|: | no\.? )|[Pp]ull (?=[0-9]{3}))" + _NUMBER
)
_WORD_LIST = re.compile(r"(?:, ?|,? and | ?& ?|/)" + _NUMBER)
_WORD_COUNTED = re.compile(
    r"[ -](?:times|days?|hours?|weeks?|months?|years?|minutes?|min|commits?|files?|lines?|reviewers?|reviews|"
    r"approvals?|new|more|of [0-9]|out of|percent|points?)\b|/[0-9]|%|:[0-9]|\.\w"
)
_SHA_WORD = re.compile(r"(?<![\w/.@#=-])([0-9a-f]{40}|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,39})(?![\w@]|[.:/-]\w)")
_AT_SHA = re.compile(r"@([0-9a-f]{40}|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,39})(?![\w@]|[.:/-]\w)")
_WORD_HINTS = ("PR", "pr ", "pr-", "pr#", "prs ", "Pr ", "ull ", "equest")
_SCHEME = re.compile(r"(?:https?://)?(?:www\.)?\Z", re.I)
_SHA_HINTS = ("ommit", "evert", "herry", "ixes", "eland", "apply", "ackport", "egression", "ntroduced")


@dataclass(slots=True)
class CitationMatch:
    """A spot with the shape of a citation, before its surroundings are judged."""

    start: int
    end: int
    syntax: Syntax
    repository: str | None
    """As written, lower case; None for the text's own repository."""
    number: int | None = None
    sha: str | None = None
    redirected: bool = False


def find_candidates(text: str, urls: UrlForm) -> list[CitationMatch]:
    """Return all candidates in the order in which they stand; of two that overlap, the longer one."""
    found = sorted(_spots(text, urls), key=lambda c: (c.start, -c.end))
    out: list[CitationMatch] = []
    for candidate in found:
        if not out or candidate.start >= out[-1].end:
            out.append(candidate)
    return out


def _spots(text: str, urls: UrlForm) -> Iterator[CitationMatch]:
    """Yield the candidates of each syntax, one syntax after the other; only those that the text hints at are
    searched."""
    if "#" in text:
        yield from _hashes(text)
    yield from _others(text, urls)


def _others(text: str, urls: UrlForm) -> Iterator[CitationMatch]:
    if _has_any(text, urls.hints):
        yield from _urls(text, urls)
    if "GH" in text or "gh-" in text or "Gh-" in text:
        yield from _plain(_GH, "gh", text)
    if _has_any(text, _WORD_HINTS):
        yield from _words(text)
    if "@" in text:
        yield from _at_shas(text)
    if _has_any(text, _SHA_HINTS):
        yield from (CitationMatch(m.start(), m.end(), "sha", None, sha=m[1]) for m in _SHA_WORD.finditer(text))


def _has_any(text: str, hints: tuple[str, ...]) -> bool:
    """Whether text holds one of the hints; a plain loop, because it runs on every commit message there is."""
    for hint in hints:  # noqa: SIM110
        if hint in text:
            return True
    return False


def _urls(text: str, urls: UrlForm) -> Iterator[CitationMatch]:
    for m in urls.pattern.finditer(text):
        scheme = _SCHEME.search(text, max(0, m.start() - 12), m.start())
        start = scheme.start() if scheme else m.start()
        previous = text[max(0, start - 1) : start]
        if previous and (previous.isalnum() or previous in "/.@:=&%_-?"):
            continue
        yield CitationMatch(
            start,
            m.end(),
            "url",
            m["name"].lower().removesuffix(".git"),
            number=int(m["number"]) if m["number"] else None,
            sha=m["sha"].lower() if m["sha"] else None,
            redirected=m["redirector"] is not None,
        )


def _hashes(text: str) -> Iterator[CitationMatch]:
    for m in _HASH.finditer(text):
        start, end, number = m.start(), m.end(), int(m[1])
        if not _ends_well(text, end):
            continue
        if name := _name_before(text, start):
            yield CitationMatch(start - len(name), end, "slug", name.lower(), number)
        elif _starts_well(text, start) and not is_impostor(text, start, end, number):
            yield CitationMatch(start, end, "hash", None, number)


def _starts_well(text: str, start: int) -> bool:
    """Whether a ``#`` starts where a reference can: not inside a word, an entity, an address or an assignment."""
    previous, earlier = text[start - 1 : start], text[max(0, start - 2) : max(0, start - 1)]
    if previous == "_":
        return not earlier.isalnum()
    if previous == "/":
        return earlier.isdigit()
    return not previous or not (previous.isalnum() or previous in "&#@=\\$%")


def _name_before(text: str, end: int) -> str | None:
    """The ``owner/name`` that ends at end, if exactly that is there."""
    run = _run_before(text, end)
    if not _NAME.fullmatch(run):
        return None
    previous = text[max(0, end - len(run) - 1) : end - len(run)]
    return None if previous and (previous.isalnum() or previous in "@\\~=%&?:") else run


def _run_before(text: str, end: int) -> str:
    """The run of characters of names and paths that ends at end, cut where it is longer than any name."""
    window = text[max(0, end - _LONGEST_NAME) : end]
    return window[len(window.rstrip(_NAME_CHARS)) :]


def _plain(pattern: re.Pattern[str], syntax: Syntax, text: str) -> Iterator[CitationMatch]:
    for m in pattern.finditer(text):
        if _ends_well(text, m.end()):
            yield CitationMatch(m.start(), m.end(), syntax, None, int(m[1]))


def _words(text: str) -> Iterator[CitationMatch]:
    for m in _WORD.finditer(text):
        end = m.end()
        if not _ends_well(text, end) or _WORD_COUNTED.match(text, end):
            continue
        yield CitationMatch(m.start(), end, "word", None, int(m[1]))
        while following := _WORD_LIST.match(text, end):
            end = following.end()
            if not _ends_well(text, end) or _WORD_COUNTED.match(text, end):
                break
            yield CitationMatch(following.start(1), end, "word", None, int(following[1]))


def _at_shas(text: str) -> Iterator[CitationMatch]:
    for m in _AT_SHA.finditer(text):
        owner = _run_before(text, m.start())
        if owner and ("/" not in owner or _NAME.fullmatch(owner)):
            yield CitationMatch(m.start() - len(owner), m.end(), "sha", owner.lower(), sha=m[1])


def _ends_well(text: str, end: int) -> bool:
    """Whether a number ends where a reference can: not inside a word, a decimal or a version."""
    following, later = text[end : end + 1], text[end + 1 : end + 2]
    if following == "_":
        return not later.isalnum()
    return not following.isalnum() and following != "…" and not (following in (".", "-") and later.isdigit())


def names_only(text: str, number: int, urls: UrlForm) -> bool:
    """Whether ``#number`` is all that a text may cite, told without a look at what stands around it.

    So it is in the messages of most landings.
    """
    return (
        "#" in text
        and all(found == str(number) for found in _HASH.findall(text))
        and not _NAMED_HASH.search(text)
        and next(_others(text, urls), None) is None
    )


def may_cite(text: str, urls: UrlForm) -> bool:
    """Whether a text holds anything of a citation's shape; `extract` finds nothing in the others."""
    return next(_spots(text, urls), None) is not None
