"""How sure it is that one landed pull request builds on another one it cites: signs in, confidence and reasons out.

Signs add up as log-odds, so each moves the confidence by as much as it was worth among 264 pairs that were read by hand
(the table of signs in the research notes, and the chains that were read since): wording that says so and line
dependency held in nine of ten, a bare mention in half, ancestry without a citation in half, a cited number larger than
the citing one in one of fifteen. No sign is a gate by itself; the floor on the confidence is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from chains.edges.footprints import PatchOverlap
from chains.edges.graph import Sign
from chains.history import CountedCitation

RELATIONS = {
    "follow_up": 1.6,
    "depends_on": 1.6,
    "relands": 1.4,
    "reverts": 0.8,
    "fixes": 1.0,
    "supersedes": 0.6,
    "stacked_on": 0.2,
    "mentions": 0.0,
    "closes": 0.0,
}
"""Log-odds that a relation gives by its wording alone; the order is that of how much it tells."""

REPEATS = frozenset({"backports", "cherry_pick"})
"""Relations that say that the source is the target again, on another branch."""

REVERSALS = frozenset({"reverts", "relands"})

_WEAK = {"cites_larger_number": -2.5, "small_number": -1.2, "bot": -0.5, "ancestry_only": 0.0, "unlanded": -0.5}
_LIKENESS = re.compile(
    r"(?i)\b(?:similar(?:ly)? to|same as|like (?:in|was done|we did)|pattern of|analogous|related to|see also|compare"
    r"|cf\.?|inspired by|also see|unrelated|instead of waiting|for reference)\b"
)
_BUILDS = re.compile(
    r"(?i)\b(?:follow(?:s|ing)?[- ]?up|regress(?:ion|ed)|introduced (?:in|by)|broken by|broke in|after|since|now that"
    r"|continu(?:es|ation|ing)|builds? on|based on|on top of|as discussed in|missed in|forgotten in|clean ?up after"
    r"|part \d|part of|complet(?:es|ing)|extends?|amend|oversight|leftover|left over|caused by|due to|added in"
    r"|implemented in)\b"
)


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """The relation that tells most, the confidence in [0, 1] and its reasons."""

    relation: str
    confidence: float
    signs: tuple[Sign, ...]


def judge(said: Sequence[CountedCitation], touch: PatchOverlap | None, *, days: float) -> EvidenceScore:
    """Judge one pair from its citations, from where its patches meet (None where one cannot be read), and from the
    days between the landings."""
    first = max(
        said, key=lambda citation: (RELATIONS.get(citation.relation, 0.0), citation.field != "event", citation.snippet)
    )
    signs = [Sign(first.relation, RELATIONS.get(first.relation, 0.0), f"{first.field}: {first.snippet}")]
    signs += _wording(said)
    signs += _witnesses(said)
    signs += _weak(said)
    signs += _code(touch)
    if days > _LONG:
        signs.append(Sign("far_apart", -0.5, f"{days:,.0f} days between the landings"))
    total = sum(sign.weight for sign in signs)
    return EvidenceScore(first.relation, round(1 / (1 + exp(-total)), 4), tuple(signs))


_LONG = 730
_SMALL = 0.03
"""A patch of hundreds of lines meets some line of any earlier one."""


def _wording(said: Sequence[CountedCitation]) -> list[Sign]:
    for citation in said:
        if citation.relation in {"mentions", "closes", "stacked_on"} and (match := _BUILDS.search(citation.snippet)):
            return [Sign("builds_on_wording", 0.7, match[0])]
    likeness = [_LIKENESS.search(citation.snippet) for citation in said]
    if said and all(likeness):
        return [Sign("likeness_wording", -0.9, likeness[0][0] if likeness[0] else "")]
    return []


def _witnesses(said: Sequence[CountedCitation]) -> list[Sign]:
    """Independent witnesses: the pull request's texts, its commits, GitHub's timeline, the history."""
    kinds = {_WITNESS.get(citation.field, citation.field) for citation in said}
    return [Sign("several_sources", 0.5, ", ".join(sorted(kinds)))] if len(kinds) > 1 else []


_WITNESS = {"landing": "commits", "commit": "commits", "event": "GitHub", "history": "ancestry", "branch": "branch"}
_WITNESS |= dict.fromkeys(("title", "body", "comment", "review", "review_comment"), "texts")


def _weak(said: Sequence[CountedCitation]) -> list[Sign]:
    common = set.intersection(*(set(citation.weak_signs) for citation in said)) if said else set()
    return [Sign(name, _WEAK[name], "") for name in sorted(common) if _WEAK.get(name)]


def _code(touch: PatchOverlap | None) -> list[Sign]:
    if touch is None:
        return [Sign("patch_unread", 0.0, "a patch cannot be read")]
    signs = []
    if touch.changed_lines:
        weight = 1.6 if touch.changed_lines == 1 else 2.2
        signs.append(Sign("line_dependency", weight, f"changes {touch.changed_lines:,} of the lines it added"))
        if touch.changed_lines < _SMALL * touch.lines:
            signs.append(Sign("small_overlap", -1.0, f"of {touch.lines:,} lines that it adds or removes"))
    elif touch.neighbour_lines:
        signs.append(Sign("neighbour_lines", 1.0, f"works beside {touch.neighbour_lines:,} of the lines it added"))
    if touch.names:
        names = ", ".join(touch.names[:3])
        signs.append(Sign("uses_names", 1.2 if len(touch.names) > 1 else 0.9, names))
    if touch.files:
        signs.append(Sign("common_files", 0.5, ", ".join(touch.files[:3])))
    elif touch.tests:
        signs.append(Sign("common_tests", 0.2, ", ".join(touch.tests[:3])))
    elif not touch.share_an_area:
        signs.append(Sign("no_common_area", -1.5, "no common source file, folder or name"))
    else:
        signs.append(Sign("no_common_file", -0.5, "no common source file"))
    return signs
