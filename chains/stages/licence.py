"""The licence of a repository, read from its licence files at a commit."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from prchain.core.git import GitRepository

_FILE = re.compile(r"(?i)(?P<plain>licen[cs]e|copying|unlicen[cs]e)(?P<more>[-_.][\w.-]*)?")
_ENDINGS = re.compile(r"(?i)\.(?:md|txt|rst|markdown|html|adoc)$")
_OTHER_PART = re.compile(
    r"(?i)[-_.](?:(?:third|3rd|bundled|vendor|depend)\w*|(?:doc|font|asset|image|logo|notice|header|template)s?|data|art)"
    r"(?![A-Za-z])"
)
"""Words in the name of a licence file that say it is for another part."""
_REUSE_FOLDER = "LICENSES"
"""REUSE keeps a repository's licences here, one file each, named by SPDX identifier:
https://reuse.software/spec-3.3/"""
_RIDER = re.compile(r"additional (?:terms|conditions|restrictions|use)|non ?commercial|not permitted")
"""Text beside a licence that restricts what it grants."""
_MAX_CHARACTERS = 200_000
_MAX_STARTS = 20
_POINTED = re.compile(r"(?<![\w./:-])(?:\./)?(?:[\w.-]{1,80}/){1,4}[\w-]{1,40}(?:\.[A-Za-z]{2,8})?(?![\w/])")
"""A path of a file in a folder, in a text."""
_MOST_POINTED = 3
_POINTING = re.compile(
    "a|and|are|at|be|by|can|code|conditions|copy|copyright|details|distributed|file|for|found|full|here|in|information|"
    "is|it|its|licen[cs](?:e|es|ing|ed)|located|more|notice|of|package|please|project|refer|released|repository|see|"
    "software|stands|terms|text|the|this|to|under|which"
)
"""A word of a text that only says where the licence stands, besides the names of its project."""
_MOST_OTHER_WORDS = 3
_TAKES_BACK = re.compile(
    "alone|business|but|commercial|confidential|covers|except|no|non|not|only|otherwise|parts?|portions?|proprietary|"
    "reserved|restricted|restrictions|rights"
)
_OTHERS_FOLDER = re.compile(
    r"(?i)(?:third|3rd)\W?part(?:y|ies)|vendor\w*|external\w*|extern|deps|dependenc\w*|node_modules|bundled|libs?|contrib"
)
"""Folders that hold the work of others."""
_FILES = ("100644", "100755")
_MAX_POINTER = 1500
"""A licence file with fewer characters and no known text only says which of the other files apply."""


def is_licence_name(name: str) -> bool:
    """Whether a name at the root of a tree may be a licence file, or the folder of licences."""
    return name == _REUSE_FOLDER or bool(_FILE.fullmatch(_ENDINGS.sub("", name)))


def licence_of(repository: GitRepository, commit: str) -> str | None:
    """The SPDX expression of the licence at the root of a commit's tree; None without a licence or a known text.

    Several files, such as ``LICENSE-MIT`` and ``LICENSE-APACHE``, are a choice: ``Apache-2.0 OR MIT``. Licences only
    in a folder ``LICENSES`` apply to different parts: ``AND``. Versions of the GPL are distinguished, ``-only``
    and ``-or-later`` are not: the text is the same. A link, or a short text that only says in which file of a folder
    the licence stands, counts as that file. Raises `GitError`.
    """
    plain: list[str] = []
    named: list[str] = []
    links: list[str] = []
    for entry in repository.run("ls-tree", "-z", commit).split("\0"):
        metadata, _, name = entry.partition("\t")
        match = _FILE.fullmatch(_ENDINGS.sub("", name))
        mode, kind, blob = metadata.split(" ") if match else ("", "", "")
        if match is None or kind != "blob" or _OTHER_PART.search(match["more"] or ""):
            continue
        (links if mode == "120000" else named if match["more"] else plain).append(blob)
    if not plain and not named and not links:
        return _reuse(repository, commit)
    texts = [_text(repository, blob) for blob in plain]
    if any(licence_of_text(text) is None and len(text) >= _MAX_POINTER for text in texts):
        return None
    texts.extend(_text(repository, blob) for blob in named)
    known = {licence for licence in map(licence_of_text, texts) if licence}
    if not known:
        known = {it for it in [_pointed_to(repository, commit, [_text(repository, one) for one in links], texts)] if it}
    if {"GPL-3.0", "LGPL-3.0"} <= known:
        known.remove("GPL-3.0")  # COPYING.LESSER adds permissions to the text in COPYING
    return " OR ".join(sorted(known)) or None


@lru_cache(maxsize=256)
def licence_of_text(text: str) -> str | None:
    """The SPDX identifier of the first licence in a text; None where no licence is known, or it has a rider.

    The texts of licences come from `identify`. It compares whole files, and so misses edited ones (measured: every
    fourth of 99 licence files): Apache's without its appendix, with a title, with other licences added for code from
    elsewhere. So here a text has a licence where a stretch of it, as long as the licence, has the same runs of words.
    """
    words = _words(text)
    found: list[tuple[int, float, str, frozenset[tuple[str, ...]], int]] = []
    for name, runs, length in _known():
        for start in _starts(words, runs):
            end = start + int(_SLACK * length)
            stretch = _runs(words[start:end])
            similarity = 2 * len(runs & stretch) / (len(runs) + len(stretch))
            if similarity >= _MIN_SIMILARITY:
                found.append((start, similarity, name, runs, end))
                break
    if not found:
        return None
    first = min(start for start, *_ in found)
    _, _, name, runs, end = max((row for row in found if row[0] <= first + _NEAR), key=lambda row: row[1])
    if "commons clause" in " ".join(words) or _RIDER.search(_outside_runs(words[: end + _RIDER_WITHIN], runs)):
        return None
    return name


def _outside_runs(words: tuple[str, ...], runs: frozenset[tuple[str, ...]]) -> str:
    """The words that belong to none of a licence's runs."""
    covered = {
        index + shift for index in range(len(words)) if words[index : index + _RUN] in runs for shift in range(_RUN)
    }
    return " ".join(word for index, word in enumerate(words) if index not in covered)


_RUN = 4
"""Words in a run: few, so that the name of an organisation in BSD's text breaks few runs."""
_MIN_SIMILARITY = 0.8
_SLACK = 1.05
_NEAR = 60
"""Licences that begin at most so many words apart match the same text; the most similar one is right."""
_RIDER_WITHIN = 200
_NOTICE_HEADING = re.compile(r"(?i)\n\s*(?:APPENDIX: )?How to apply (?:the Apache License|these terms) .*?\n", re.S)


def recognised() -> frozenset[str]:
    """The SPDX identifiers of the licences whose texts are known."""
    return frozenset(name for name, *_ in _known())


@lru_cache(maxsize=1)
def _known() -> tuple[tuple[str, frozenset[tuple[str, ...]], int], ...]:
    """(identifier, runs of words, length in words) of every known text; a licence's notice for files is one of them."""
    from identify.vendor.licenses import LICENSES  # noqa: PLC0415  half a megabyte that few commands need

    texts = []
    for name, text in LICENSES:
        body, *notices = _NOTICE_HEADING.split(text, maxsplit=1)
        texts.append((name, body))
        if name == "Apache-2.0":
            texts.extend((name, notice[notice.find("Licensed under") :]) for notice in notices)
    return tuple((name, _runs(words), len(words)) for name, words in ((name, _words(text)) for name, text in texts))


_COPYRIGHT = re.compile(
    r"(?im)^[^\w\n]{0,20}(?:copyright\b|\(c\)|\u00a9).*$|^[^\w\n]{0,20}all rights reserved\.?[ \t\r]{0,20}$"
)


def _words(text: str) -> tuple[str, ...]:
    """The text's words in lower case, without copyright lines."""
    return tuple(re.findall(r"[a-z0-9]+", _COPYRIGHT.sub("", text).lower()))


def _runs(words: tuple[str, ...]) -> frozenset[tuple[str, ...]]:
    return frozenset(zip(*(words[shift:] for shift in range(_RUN)), strict=False))


def _starts(words: tuple[str, ...], runs: frozenset[tuple[str, ...]]) -> list[int]:
    """Where a stretch may begin: at the first runs that are in the licence."""
    hits = (index for index in range(len(words) - _RUN + 1) if words[index : index + _RUN] in runs)
    starts: list[int] = []
    for index in hits:
        if not starts or index > starts[-1] + _NEAR:
            starts.append(index)
        if len(starts) == _MAX_STARTS:
            break
    return starts


def _text(repository: GitRepository, blob: str) -> str:
    content = repository.blob(blob)[:_MAX_CHARACTERS]
    return content.decode("utf-8", "replace").replace("\0", "")


def _pointed_to(repository: GitRepository, commit: str, links: Iterable[str], texts: Iterable[str]) -> str | None:
    """The licence of the files in folders that links lead to and texts point to; None where a text says anything else,
    and where a file is missing, unknown or another's."""
    paths = {link.strip().removeprefix("./") for link in links}
    for text in texts:
        pointed = [match[0].removeprefix("./") for match in _POINTED.finditer(text)]
        others = [word for word in _words(_POINTED.sub(" ", text)) if not _POINTING.fullmatch(word)]
        if not pointed or len(others) > _MOST_OTHER_WORDS or any(map(_TAKES_BACK.fullmatch, others)):
            return None
        paths |= {*pointed}
    found = set()
    for path in sorted(paths):
        *folders, name = path.split("/")
        match = _FILE.fullmatch(_ENDINGS.sub("", name))
        of_others = any(_OTHERS_FOLDER.fullmatch(folder) for folder in folders)
        if len(paths) > _MOST_POINTED or match is None or of_others or {".", "..", ""} & {*folders}:
            return None
        entry = repository.run("ls-tree", "-z", commit, "--", path).partition("\t")[0].split(" ")
        if entry[0] not in _FILES:
            return None
        found.add(licence_of_text(_text(repository, entry[2])))
    return found.pop() if len(found) == 1 else None


def _reuse(repository: GitRepository, commit: str) -> str | None:
    names = repository.run("ls-tree", "-z", "--name-only", commit, f"{_REUSE_FOLDER}/").split("\0")
    found = {_ENDINGS.sub("", name.rpartition("/")[2]) for name in names if name}
    return " AND ".join(sorted(found)) or None
