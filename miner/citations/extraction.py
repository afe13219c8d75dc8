"""From a text to its citations: candidates, then their context, then their relation."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from miner.citations import wording
from miner.citations.branches import branch_citations
from miner.citations.markdown import Layout, inside, read_layout
from miner.citations.model import Citation, Kind, Relation, Syntax
from miner.citations.relations import joined, read_relation
from miner.citations.subjects import branch_names, own_number, own_tail, quoted_relation, tail_relation
from miner.citations.syntaxes import CitationMatch, find_candidates, names_only
from miner.citations.urls import UrlForm

_SNIPPET = 160
_LINE_SIDE = 240
_FULL_SHA = 40
_TRAILER_KEY = re.compile(r"[ \t]*([A-Za-z][A-Za-z-]{1,30}):[ \t]")
_URL_REST = re.compile(r"[^\s<>()\[\]\"'`]*+")
_OTHER_PARENT = re.compile(r"changes\s+made\s+to\s+\Z|^(?:parent|tree)\s+\Z", re.M)
"""git's words for the other parent of a reverted merge (what the revert goes back to), and a pasted commit header."""
_TEMPLATE = re.compile(
    r"(?:\be\.g\.,?|\b(?:for example|such as|eg\.?|example:),?)\s*[`\"'(]*(?:\w+:?\s+)?[`\"'(]*$", re.I
)
_COMMIT_BEFORE = re.compile(r"\b(?:commits?|revision|sha|in|since|by|from)[ :(`'\"]*\n?[ (`'\"]*$", re.I)


@dataclass(slots=True)
class _Reading:
    """A text and all that is the same for every citation in it."""

    text: str
    kind: Kind
    repository: str
    names: frozenset[str]
    own: int | None
    subject_end: int
    """Where a commit's subject or a title ends; 0 in markdown."""
    tail: tuple[int, int] | None
    """Where the digits of a commit subject's last number stand."""
    branches: tuple[int, int] | None
    """Where a merge commit's subject names branches."""
    layout: Layout
    foreign: bool
    """Whether other repositories' citations are wanted."""
    wording: bool
    """Whether relations are wanted."""


@dataclass(slots=True)
class _Previous:
    """The citation before the one that is read."""

    end: int = 0
    relation: Relation | None = None
    syntax: Syntax | None = None


def extract(
    text: str,
    repository: str,
    aliases: Collection[str] = (),
    *,
    kind: Kind = "markdown",
    urls: UrlForm,
    own: int | None = None,
    foreign: bool = True,
    wording: bool = True,
) -> list[Citation]:
    """Return the citations of a text, in the order in which they stand.

    Takes the text, the ``owner/name`` it belongs to, that repository's other names, the kind of text, the form
    of its forge's addresses, and the number of the pull request that the text belongs to: citations of oneself are
    dropped. For a commit message without `own` that is the number its subject lands (`own_number`); where the subject
    ends in another number than `own`, that one comes with the context ``own_tail``.

    Code, HTML comments, link texts and numbers that name something else are left out. Other repositories' citations
    are returned under their names, unless `foreign` is false. Without `wording` every relation is ``mentions``: most of
    the work is reading the words around, which a text that counts for nothing need not have. No text makes it raise,
    and its time grows linearly with the text.
    """
    repository = repository.lower()
    if kind == "branch":
        return _read_branch(text, repository, own)
    if own is not None and names_only(text, own, urls):
        return []
    candidates = find_candidates(text, urls)
    if not candidates:
        return []
    subject_end = 0 if kind == "markdown" else (text + "\n").index("\n")
    tail = own_tail(text[:subject_end]) if kind == "commit" else None
    if kind == "commit" and own is None:
        own = own_number(text[:subject_end])
    if all(c.number == own and c.repository is None and own is not None for c in candidates):
        return []
    branches = branch_names(text[:subject_end]) if kind == "commit" else None
    names = frozenset({repository, *(alias.lower() for alias in aliases)})
    layout = read_layout(text, kind)
    reading = _Reading(text, kind, repository, names, own, subject_end, tail, branches, layout, foreign, wording)
    previous = _Previous()
    citations = (_read(reading, candidate, previous) for candidate in candidates)
    return [citation for citation in citations if citation is not None]


def _read_branch(name: str, repository: str, own: int | None) -> list[Citation]:
    return [
        Citation(repository, number, None, relation, "branch", start, end, _snippet(name, start, end))
        for relation, number, start, end in branch_citations(name)
        if number != own
    ]


def _read(reading: _Reading, candidate: CitationMatch, previous: _Previous) -> Citation | None:
    """Judge one candidate; None where it is no citation. Moves previous on."""
    text, layout, start, end = reading.text, reading.layout, candidate.start, candidate.end
    if inside(layout.hidden, start) or inside(layout.labels, start):
        return None
    if candidate.syntax != "url" and inside(layout.urls, start):
        return None
    if reading.branches and reading.branches[0] <= start < reading.branches[1]:
        return None
    repository = _resolve(reading, candidate.repository)
    if not reading.foreign and repository != reading.repository:
        previous.end, previous.relation, previous.syntax = end, None, candidate.syntax
        return None
    relation, syntax = _relation(reading, candidate, previous) if reading.wording else (None, candidate.syntax)
    previous.end, previous.relation, previous.syntax = end, relation, syntax
    if candidate.number is not None and candidate.number == reading.own and repository == reading.repository:
        return None
    if (
        candidate.syntax == "sha"
        and candidate.repository is None
        and relation is None
        and not _is_commit(text, candidate)
    ):
        return None
    if candidate.syntax == "sha" and _OTHER_PARENT.search(text[max(0, start - 24) : start]):
        return None
    context = layout.context(start)
    if context is None and candidate.redirected:
        context = "redirector"
    elif context is None and reading.tail is not None and reading.tail[1] == end:
        context = "own_tail"
    elif context is None and relation in ("fixes", "closes") and _TEMPLATE.search(text[max(0, start - 40) : start]):
        context = "template"
    return Citation(
        repository,
        candidate.number,
        candidate.sha,
        relation or "mentions",
        syntax,
        start,
        end,
        _snippet(text, start, end),
        context,
    )


def _resolve(reading: _Reading, name: str | None) -> str:
    """The canonical name for a repository as written: nothing, ``owner/name`` or, before a sha, ``user``."""
    if name is None or name in reading.names:
        return reading.repository
    if "/" in name:
        return name
    fork = f"{name}/{reading.repository.rpartition('/')[2]}"
    return reading.repository if fork in reading.names else fork


def _relation(reading: _Reading, candidate: CitationMatch, previous: _Previous) -> tuple[Relation | None, Syntax]:
    """The relation that the text states for a candidate, and the syntax it counts as."""
    prose, start, end = reading.layout.prose, candidate.start, candidate.end
    low = max(0, start - _LINE_SIDE)
    line_start = max(low, prose.rfind("\n", low, start) + 1)
    in_subject = end <= reading.subject_end
    if candidate.syntax in ("hash", "gh", "slug", "word"):
        line_end = prose.find("\n", end, end + _LINE_SIDE)
        line = prose[line_start : line_end if line_end >= 0 else end + _LINE_SIDE]
        quoted = quoted_relation(line, start - line_start, end - line_start)
        if quoted:
            return quoted, "subject_tail"
        if in_subject and (relation := tail_relation(line, start - line_start, end - line_start)):
            return relation, candidate.syntax
    if previous.syntax and joined(prose, previous.end, start):
        return previous.relation, "trailer" if previous.syntax == "trailer" else candidate.syntax
    key = _TRAILER_KEY.match(prose, line_start, start)
    if (
        key
        and not in_subject
        and (reading.kind == "commit" or "-" in key[1])
        and not prose[key.end() : start].strip("[(<*_ \t")
    ):
        stated = wording.TRAILERS.get(key[1].lower())
        if stated:
            return stated, "trailer"
    rest = _URL_REST.match(prose, end) if candidate.syntax == "url" else None
    return read_relation(prose, start, rest.end() if rest else end, previous.end), candidate.syntax


def _is_commit(text: str, candidate: CitationMatch) -> bool:
    """Whether a bare hex word without a relation names a commit: it has full length, or the words before say so."""
    return candidate.end - candidate.start == _FULL_SHA or bool(
        _COMMIT_BEFORE.search(text[max(0, candidate.start - 16) : candidate.start])
    )


def _snippet(text: str, start: int, end: int) -> str:
    """The line around text[start:end] on one line of at most 160 characters, the citation in it."""
    low = max(0, start - _LINE_SIDE)
    line_start = max(low, text.rfind("\n", low, start) + 1)
    line_end = text.find("\n", end, end + _LINE_SIDE)
    if line_end < 0:
        line_end = min(len(text), end + _LINE_SIDE)
    cited = " ".join(text[start:end].split())[:_SNIPPET]
    before = " ".join((text[line_start:start] + "|").split())[:-1]
    after = " ".join(("|" + text[end:line_end]).split())[1:]
    room = _SNIPPET - len(cited)
    left = min(len(before), max(room // 2, room - len(after)))
    return (before[len(before) - left :] + cited + after[: room - left]).strip()
