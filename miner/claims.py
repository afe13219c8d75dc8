"""Which pull request a landed commit says it is: a pure reading of commit messages.

A claim is only a claim. `miner.landing` asks the pull head to bear it out. The conventions were read from real
histories: GitHub's merge and squash messages, the merge queue, bors, homu, Mergify, maintainers' scripts (apache,
node, pytorch), and hand-made merges.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SUBJECT_CLAIMS = (
    ("merge_subject", re.compile(r"^Merge(?:d)? pull request (?:#|GH-|gh-)(\d+)\b")),
    ("merge_queue", re.compile(r"^(?:Auto merge of|Rollup merge of|Merge of|Automatic merge of) #(\d+)\b")),
    ("merge_subject", re.compile(r"^(?i:merged? (?:PR|MR|pull request|pull)) ?#?(\d+)\b")),
    ("pull_prefix", re.compile(r"^(?i:PR|pull request|pull) ?#(\d+)\b")),
    ("closes_from", re.compile(r"^(?i:close[sd]?) #(\d+) from \S")),
    ("number_from", re.compile(r"^#(\d+) from \S+")),
)
_BORS = re.compile(r"^Merge((?: #\d+)+)(?:$| r=|:)")
_TAIL = re.compile(r"[(\[]\s*(?i:PR|pull|pull request|gh)?[ -]?(?:#|(?<=(?i:gh)-))(\d+)\s*[)\]]\s*$")
_TRAILER = re.compile(
    r"(?im)^(?:PR-URL|Pull[- ]Request(?:-URL| resolved)?|GitHub-Pull-Request|PR|Closes-PR|Merges"
    r"|COPYBARA_INTEGRATE_REVIEW)\s*[:=]\s*(?:https?://[^/\s]+/[^/\s]+/[^/\s]+/pull/|#|gh-)(\d+)"
)
_BODY_CLOSES = re.compile(r"(?im)^(?:close[sd]?) #(\d+) from \S+")
_SUBJECT_NUMBER = re.compile(r"(?<![\w&/])(?:#|(?i:gh)-)(\d{1,9})\b")
_OWNER_BRANCH = re.compile(r"^Merge(?:d)? pull request #\d+ from (\S+)", re.MULTILINE)

MERGE_SUBJECTS = frozenset({"merge_subject", "merge_queue"})


@dataclass(frozen=True, slots=True)
class Claim:
    """A number that a commit's message claims. A weak claim needs a sign of the graph; a patch cannot bear it out."""

    number: int
    syntax: str
    weak: bool = False
    inner: bool = False
    """A number before the last one of a subject: ``(#A) (#B)`` carries A, and lands it only where B is none of ours."""


def claims(message: str) -> list[Claim]:
    """The claims of a message, the most credible first, each number once.

    The last ``(#N)`` of a subject is the pull request itself; ``(#A) (#B)`` carries an inner one, so A comes after B.
    """
    if not _may_claim(message):
        return []
    found: dict[int, Claim] = {}

    def claim(number: str, syntax: str, weak: bool = False, inner: bool = False) -> None:
        if len(number) <= 9:
            found.setdefault(int(number), Claim(int(number), syntax, weak, inner))

    paragraph = message.lstrip("\n").split("\n\n", 1)[0]
    first_line = paragraph.split("\n", 1)[0].strip()
    for syntax, pattern in _SUBJECT_CLAIMS:
        if match := pattern.match(first_line):
            claim(match[1], syntax)
    if match := _BORS.match(first_line):
        for number in re.findall(r"#(\d+)", match[1]):
            claim(number, "merge_queue")
    for subject in dict.fromkeys((first_line, " ".join(paragraph.split()))):
        for place, number in enumerate(_tail_numbers(subject)):
            claim(number, "subject_tail", inner=place > 0)
    if ":" in message or "=" in message:
        for number in _TRAILER.findall(message):
            claim(number, "trailer")
    for number in _BODY_CLOSES.findall(message):
        claim(number, "closes_from")
    for number in _SUBJECT_NUMBER.findall(first_line):
        claim(number, "subject_number", weak=True)
    return list(found.values())


_HINTS = ("#", "gh-", "GH-", "gh ", "GH ", "/pull/", "PR ", "pr ", "PR:", "PR=", "equest", "MR ", "ull ")


def _may_claim(message: str) -> bool:
    """A cheap check: most commits claim nothing, and every commit is checked."""
    for hint in _HINTS:  # noqa: SIM110  a plain loop is the faster one
        if hint in message:
            return True
    return False


def _tail_numbers(subject: str) -> list[str]:
    """The numbers in brackets at the very end of a subject, last first."""
    numbers: list[str] = []
    rest = subject
    while len(numbers) < 4 and (match := _TAIL.search(rest[-40:])):
        numbers.append(match[1])
        rest = rest[: len(rest) - len(rest[-40:]) + match.start()].rstrip()
    return numbers


_MERGED_BRANCH = re.compile(r"^Merge (?:remote-tracking )?branch(?:es)? '([^']+)'(?! of )")
_MERGED_FROM_REMOTE = re.compile(r"^Merge branch '([^']+)' of ")


def merged_branch(message: str) -> str | None:
    """The branch that a merge message says was merged, without its remote; None where it does not say.

    Read off git's own and GitHub's wording: ``Merge branch 'X'``, ``Merge remote-tracking branch 'origin/X'``,
    ``Merge branch 'X' of URL``, ``Merge pull request #N from owner/X``.
    """
    if match := _MERGED_FROM_REMOTE.match(message):
        return match[1]
    if match := _MERGED_BRANCH.match(message):
        name = match[1].removeprefix("refs/").removeprefix("heads/").removeprefix("remotes/")
        remote, _, rest = name.partition("/")
        return rest if rest and "remote-tracking" in message[:24] else name if remote else None
    return source_branch(message)


def source_branch(message: str) -> str | None:
    """The branch that ``Merge pull request #N from owner/branch`` names, without its owner; None elsewhere."""
    match = _OWNER_BRANCH.match(message)
    return match[1].partition("/")[2] or None if match else None


def source_owner(message: str) -> str | None:
    """The owner that ``Merge pull request #N from owner/branch`` names; None elsewhere."""
    match = _OWNER_BRANCH.match(message)
    return match[1].partition("/")[0] or None if match else None
