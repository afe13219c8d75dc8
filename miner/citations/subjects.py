"""What the first line of a commit message, or a title, says by its own grammar."""

from __future__ import annotations

import re

from miner.citations.model import Relation

_TAIL = re.compile(r"[(\[](?:(?:#|gh-|GH-|GH#)|(?:pr|PR) ?#?)([1-9][0-9]{0,8})[)\]][.\s]*\Z")
_MERGE = re.compile(
    r"Merged? (?:pull request|PR|pr) #([1-9][0-9]{0,8})(?![0-9])|Auto merge of #([1-9][0-9]{0,8})(?![0-9])"
)
_MERGED_BRANCH = re.compile(
    r"Merged? (?:(?:pull request|PR|pr) #[0-9]{1,9} (?=from)|(?=(?:remote[- ]tracking )?branch))(.*)", re.S
)
_TAIL_WINDOW = 40
_ONLY_TAIL = re.compile(r"[)\]]\s*(?:[(\[](?:#|gh-|GH-)[0-9]{1,9}[)\]])?[.\s]*", re.I)
_ACTION = re.compile(
    r"\s*[-*+]?\s*(?:\[[^\]\n]{1,40}\]\s*)?(revert|unrevert|re-?apply|re-?land)\b(?: of)?:? {0,2}([\"“'])?", re.I
)
_QUOTED_ACTION = re.compile(r"(revert|re-?apply|re-?land) ([\"“'])", re.I)
_CLOSING_QUOTES = "\"”'"
_PICKED = re.compile(r"\s*\[?\W?(?:(?P<backport>back-?port)|(?P<pick>cherry[ -]?pick))", re.I)
_VERSION_PREFIX = re.compile(
    r"\s*(?:\[|\()(?:[a-z]+[/-])?v?[0-9]+(?:\.[0-9x]+)+(?:[.-]x)?(?:\]|\))|\s*\[(?:release|stable|lts)[^\]\n]{0,20}\]",
    re.I,
)


def own_number(subject: str) -> int | None:
    """Return the number by which a subject names the pull request that it lands, or None.

    That is the last ``(#N)``, ``(gh-N)`` or ``(PR #N)`` at its end; of ``(#A) (#B)`` it is B. A merge subject's own
    is ``Merge pull request #N``. A number inside the quotes of ``Revert "... (#N)"`` is the reverted one's.
    """
    tail = own_tail(subject)
    if tail is not None:
        return int(subject[tail[0] : tail[1]])
    m = _MERGE.match(subject)
    return int(m[1] or m[2]) if m else None


def own_tail(subject: str) -> tuple[int, int] | None:
    """Where the digits of the number at the end of a subject stand."""
    if subject.rstrip(". \t\r")[-1:] not in (")", "]"):
        return None
    m = _TAIL.search(subject, max(0, len(subject) - _TAIL_WINDOW))
    return m.span(1) if m else None


def branch_names(subject: str) -> tuple[int, int] | None:
    """Where a merge commit's subject names branches: numbers in them are no citations in the text."""
    if not subject.startswith("Merge"):
        return None
    m = _MERGED_BRANCH.match(subject)
    return m.span(1) if m else None


def quoted_relation(line: str, start: int, end: int) -> Relation | None:
    """What ``Revert "subject (#12)"`` and the like say about the number at line[start:end], or None.

    Reverts within reverts alternate: of ``Revert "Revert "x (#1)" (#2)"`` the first is brought back.
    """
    m = _ACTION.match(line)
    if m is None or start < m.end():
        return None
    actions = [m[1]]
    at = m.end()
    while m[2] and (inner := _QUOTED_ACTION.match(line, at)):
        actions.append(inner[1])
        at = inner.end()
    if m[2]:
        closings = sum(line.count(quote, end) for quote in _CLOSING_QUOTES)
        follows = line[end : end + 4].lstrip(")]")[:1]
        if closings == 0 or not follows or follows not in _CLOSING_QUOTES:
            return None
        actions = actions[:closings]
    elif line[start - 1 : start] != "(" or line[end : end + 1] != ")":
        return None
    odd = sum(action.lower() == "revert" for action in actions) % 2
    return "reverts" if odd else "relands"


def tail_relation(subject: str, start: int, end: int) -> Relation | None:
    """What a subject says of an inner number ``(#A)`` at its end: a backport's original, by the prefix, or nothing."""
    if not (subject[start - 1 : start] in ("(", "[") and _ONLY_TAIL.fullmatch(subject, end)):
        return None
    m = _PICKED.match(subject)
    if m:
        return "backports" if m["backport"] else "cherry_pick"
    return "backports" if _VERSION_PREFIX.match(subject) else None
