"""Telling release notes and changelogs from what an author says of one change."""

from __future__ import annotations

import re

_CERTAIN = re.compile(
    r"^#{1,3} *What.s Changed\b|\*\*Full Changelog\*\*:|\bFull Changelog: *<?https?://"
    r"|^:robot: I have created a release\b|^This PR contains the following updates:"
    r"|^Bumps? (?:the .{1,80} group|\[[^\]\n]{1,100}\]\(|\S{1,100} from \S{1,40} to )"
    r"|<summary>(?:Release notes|Changelog|Commits|[^<\n]{1,100}/[^<\n]{1,100} \([^)\n]{1,60}\))</summary>"
    r"|^updates:\n- \[github\.com/|^Updates? the requirements on ",
    re.M | re.I,
)
_CREDIT = re.compile(r"\bby @[\w\[\]-]{1,60} in (?:https?://\S{1,200}/pull/|#)[0-9]", re.I)
_VERSION_HEADING = re.compile(
    r"^(?:#{1,4} *|\*\*)?"
    r"(?:\[?v?[0-9]+\.[0-9]+(?:\.[0-9]+)?[^\s\]]{0,20}\]?(?:\([^)\n]{1,300}\))?"
    r" *(?:[-\u2013(] *)?[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|change ?log|release notes|(?:version|release) v?[0-9]+\.[0-9]+)",
    re.M | re.I,
)
_LISTED = re.compile(
    r"^[ \t]*[-*+] .{0,500}(?:\(#[0-9]{1,9}\)|\[?#[0-9]{1,9}\]?(?:\([^)\n]{1,300}\))?"
    r"|/(?:pull|issues|commit)/[0-9a-f]{1,40}\)*)[ .)\r]*$",
    re.M,
)
_FEW, _MANY, _MOST = 3, 10, 0.6


def looks_like_release_notes(text: str) -> bool:
    """Whether text is, or carries, notes of a release or a changelog: its numbers then are no dependencies.

    Certain signs are the formats of GitHub's generator, release-please, Dependabot and Renovate. Less certain ones are
    a heading with a version and a date over a list of numbers, credits (``by @user in URL``), and a text that is for
    the most part a long list of lines that each end in a number.
    """
    if _CERTAIN.search(text):
        return True
    if len(_CREDIT.findall(text)) > 1:
        return True
    listed = len(_LISTED.findall(text))
    if listed >= _FEW and _VERSION_HEADING.search(text):
        return True
    if listed < _MANY:
        return False
    lines = sum(1 for line in text.splitlines() if line.strip())
    return listed >= _MOST * lines
