"""How likely one landed pull request builds on another: signs in, confidence and reasons out.

Signs add up as log-odds. Of a pair that is cited, the weight of each is what it was worth among 264 pairs that were
read by hand. Explicit wording and line dependency were right in nine of ten pairs, a bare mention in half, ancestry
without a citation in half, a cited number larger than the citing one in one of fifteen. Of a pair that only lineage
knows, the weights are fitted (`chains.weights`). No sign is a gate by itself; the floor on the confidence is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import log2

from chains.edges.footprints import PatchOverlap
from chains.edges.graph import Sign
from chains.edges.pairs import ChangedCode, PairEvidence
from chains.history import CountedCitation
from chains.weights import BASE, probability, weights
from prchain.core.console.terminal import counted, listed

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
"""Log-odds of a relation by its wording alone."""

REPEATS = frozenset({"backports", "cherry_pick"})
"""Relations that say that the source repeats the target on another branch."""

REVERSALS = frozenset({"reverts", "relands"})

_WEAK_SIGN_WEIGHTS = {
    "cites_larger_number": -2.5,
    "small_number": -1.2,
    "bot": -0.5,
    "ancestry_only": 0.0,
    "unlanded": -0.5,
}
_LIKENESS_WORDS = re.compile(
    r"(?i)\b(?:similar(?:ly)? to|same as|like (?:in|was done|we did)|pattern of|analogous|related to|see also|compare"
    r"|cf\.?|inspired by|also see|unrelated|instead of waiting|for reference)\b"
)
_BUILDS_ON_WORDS = re.compile(
    r"(?i)\b(?:follow(?:s|ing)?[- ]?up|regress(?:ion|ed)|introduced (?:in|by)|broken by|broke in|after|since|now that"
    r"|continu(?:es|ation|ing)|builds? on|based on|on top of|as discussed in|missed in|forgotten in|clean ?up after"
    r"|part \d|part of|complet(?:es|ing)|extends?|amend|oversight|leftover|left over|caused by|due to|added in"
    r"|implemented in)\b"
)


@dataclass(frozen=True, slots=True)
class EvidenceScore:
    """The strongest relation, the confidence in [0, 1] and its reasons."""

    relation: str
    confidence: float
    signs: tuple[Sign, ...]


def judge(
    evidence: PairEvidence,
    overlap: PatchOverlap | None,
    *,
    days: float,
    common_words: tuple[float, tuple[str, ...]] = (0.0, ()),
) -> EvidenceScore:
    """Judge one pair from what was found of it, from the overlap of its patches (None where a patch cannot be read),
    the days between the landings, and what the titles share (`chains.edges.titles`)."""
    if not evidence.citations:
        if evidence.code is None:
            raise ValueError("a pair of which nothing was found")
        return _judge_code(evidence.code, common_words)
    citations = evidence.citations
    strongest = max(
        citations,
        key=lambda citation: (RELATIONS.get(citation.relation, 0.0), citation.field != "event", citation.snippet),
    )
    signs = [
        Sign(strongest.relation, RELATIONS.get(strongest.relation, 0.0), f"{strongest.field}: {strongest.snippet}")
    ]
    signs += _wording(citations)
    signs += _witnesses(citations)
    signs += _weak(citations)
    signs += _code(overlap)
    if days > _FAR_APART_DAYS:
        signs.append(Sign("far_apart", -0.5, f"{days:,.0f} days between the landings"))
    return EvidenceScore(strongest.relation, probability(sum(sign.weight for sign in signs)), tuple(signs))


def code_signs(code: ChangedCode, common_words: tuple[float, tuple[str, ...]]) -> dict[str, tuple[float, str]]:
    """The signs of a pair that only lineage knows: name to value and, for people, what bears it out."""
    weight, words = common_words
    signs = {
        BASE: (1.0, ""),
        "owners": (log2(1 + code.owners), f"meets lines of {counted(code.owners, 'pull request')}"),
        "added_lines": (log2(1 + code.added_lines), f"adds {counted(code.added_lines, 'line')} of code"),
    }
    if code.source_lines:
        lines = log2(1 + min(code.source_lines, _MANY_LINES))
        signs["source_lines"] = (lines, f"changes {counted(code.source_lines, 'line')} of its source")
    if code.functions:
        signs["functions"] = (1.0, listed(code.functions, 3))
    if code.names:
        signs["names"] = (log2(1 + len(code.names)), listed(code.names, 3))
    if words:
        signs["common_words"] = (min(weight, _MUCH_IN_COMMON) / _NATS, ", ".join(words[:4]))
    return signs


def _judge_code(code: ChangedCode, common_words: tuple[float, tuple[str, ...]]) -> EvidenceScore:
    weight_of = weights("lineage")
    signs = tuple(
        Sign(name, round(value * weight_of[name], 4), detail)
        for name, (value, detail) in code_signs(code, common_words).items()
    )
    return EvidenceScore(CHANGES_CODE, probability(sum(sign.weight for sign in signs)), signs)


CHANGES_CODE = "changes_code"
"""The relation of a pair that only lineage knows."""
_MANY_LINES = 63
_MUCH_IN_COMMON = 10.0
"""Nats: two words that one title in 150 has. More of them tell no more."""
_NATS = 5.0
_FAR_APART_DAYS = 730
_SMALL_SHARE = 0.03
"""The share of its lines below which an overlap is small: a patch of hundreds of lines meets some line of any other."""


def _wording(citations: Sequence[CountedCitation]) -> list[Sign]:
    for citation in citations:
        # The snippet of a base branch holds its name, which is no wording.
        if (
            citation.relation in {"mentions", "closes", "stacked_on"}
            and citation.field != "base"
            and (match := _BUILDS_ON_WORDS.search(citation.snippet))
        ):
            return [Sign("builds_on_wording", 0.7, match[0])]
    likeness = [_LIKENESS_WORDS.search(citation.snippet) for citation in citations]
    if citations and all(likeness):
        return [Sign("likeness_wording", -0.9, likeness[0][0] if likeness[0] else "")]
    return []


def _witnesses(citations: Sequence[CountedCitation]) -> list[Sign]:
    """Independent witnesses: the pull request's texts, its commits, GitHub's timeline, the history."""
    kinds = {_WITNESS_OF_FIELD.get(citation.field, citation.field) for citation in citations}
    return [Sign("several_sources", 0.5, ", ".join(sorted(kinds)))] if len(kinds) > 1 else []


_WITNESS_OF_FIELD = {
    "landing": "commits",
    "commit": "commits",
    "event": "GitHub",
    "base": "GitHub",
    "history": "ancestry",
    "branch": "branch",
}
_WITNESS_OF_FIELD |= dict.fromkeys(("title", "body", "comment", "review", "review_comment"), "texts")


def _weak(citations: Sequence[CountedCitation]) -> list[Sign]:
    common = set.intersection(*(set(citation.weak_signs) for citation in citations)) if citations else set()
    return [Sign(name, _WEAK_SIGN_WEIGHTS[name], "") for name in sorted(common) if _WEAK_SIGN_WEIGHTS.get(name)]


def _code(overlap: PatchOverlap | None) -> list[Sign]:
    if overlap is None:
        return [Sign("patch_unread", 0.0, "a patch cannot be read")]
    signs = []
    if overlap.changed_lines:
        weight = 1.6 if overlap.changed_lines == 1 else 2.2
        signs.append(Sign("line_dependency", weight, f"changes {overlap.changed_lines:,} of the lines it added"))
        if overlap.changed_lines < _SMALL_SHARE * overlap.lines:
            signs.append(Sign("small_overlap", -1.0, f"of {overlap.lines:,} lines that it adds or removes"))
    elif overlap.neighbour_lines:
        signs.append(
            Sign("neighbour_lines", 1.0, f"changes what is next to {overlap.neighbour_lines:,} of the lines it added")
        )
    if overlap.names:
        names = ", ".join(overlap.names[:3])
        signs.append(Sign("uses_names", 1.2 if len(overlap.names) > 1 else 0.9, names))
    if overlap.files:
        signs.append(Sign("common_files", 0.5, ", ".join(overlap.files[:3])))
    elif overlap.tests:
        signs.append(Sign("common_tests", 0.2, ", ".join(overlap.tests[:3])))
    elif not overlap.share_an_area:
        signs.append(Sign("no_common_area", -1.5, "no common source file, folder or name"))
    else:
        signs.append(Sign("no_common_file", -0.5, "no common source file"))
    return signs
