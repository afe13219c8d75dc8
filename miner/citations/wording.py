"""The words by which people say what a pull request does to another one, as data for `miner.citations.relations`.

Each entry is a relation, a reach and wordings in lower case (regular expressions, a blank for any white space). The
reach is how many words, fillers not counted, may stand between the wording and the citation. Where two wordings start
at one place, the earlier entry wins.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from miner.citations.model import Relation


class Trigger(NamedTuple):
    """A group of wordings that state one relation."""

    relation: Relation
    reach: int
    wordings: tuple[str, ...]
    enters_parentheses: bool = False
    """Whether it also reaches a citation in parentheses that open after it: ``follow-up to the rewrite (#12)``."""


_PASSIVE = (
    "(?:reverted|superseded|replaced|obsoleted|closed|resolved|fixed|addressed|covered|handled|solved|re-?landed|"
    "re-?applied|back-?ported|cherry-picked|followed up)"
)
_TOLD = (
    "(?:described|reported|discussed|discussions?|mentioned|noted|suggested|proposed|requested|explained|shown|seen|"
    "tracked|documented|raised|reproduced|observed|spotted|noticed|found|identified|pointed out|outlined|as)"
)

TRIGGERS = (
    # Neutral and passive wordings end the reach of those before them.
    Trigger("mentions", 4, (rf"{_PASSIVE} (?:separately )?(?:in|by|with|via|as)",)),
    Trigger(
        "mentions",
        6,
        (
            "(?:will|to|can|could|should|would|i'll|we'll|let's|might|may) (?:be )?follow(?:ed)?[ -]?up (?:in|with|by)",
            "follow[ -]?ups? (?:in|is|are|pr is|pr:|prs?:)",
            "followups? (?:in|is|are)",
        ),
    ),
    Trigger(
        "mentions",
        4,
        (
            "(?:clos(?:e|ed|es|ing)|superseded|dropped|abandoned) (?:this |it )?in fav(?:ou)?r of",
            "unlike|instead of|rather than|as opposed to|in contrast to|alternative to|compared? (?:to|with)",
            "similar(?:ly)? to|same (?:as|way as|problem as|thing as|approach as)|identical to|duplicates?(?: of)?",
            "conflicts? with|in favor of|in favour of|on behalf of|blocks|unblocks?|(?:required|needed) (?:by|for)",
            "in preparation (?:for|of)|preparation for|prepares? for|groundwork for|part of|towards?",
            "split (?:from|out)",
        ),
    ),
    Trigger(
        "mentions",
        4,
        (
            rf"{_TOLD} (?:in|at|by|with|from|per|on)",
            "see(?: also)?|cf|refs?|references?|referenced|relate[ds](?: to)?|related|xref|cc|e\\.g|example|like|per",
            "btw|thanks to|inspired by|mirrors?|matches|matching",
        ),
    ),
    # A revert of a revert is a reland.
    Trigger(
        "relands",
        6,
        (
            "revert(?:s|ed|ing)?(?: the| a| of|:)* [\"'“]?rever(?:t|ts|ted|ting|sion)|un-?revert(?:s|ed|ing)?",
            "re-?land(?:s|ed|ing)?|re-?appl(?:y|ies|ied|ying)|re-?introduc(?:e|es|ing|ed)|re-?instat(?:e|es|ing|ed)",
            "rolls? forward",
        ),
        enters_parentheses=True,
    ),
    Trigger(
        "reverts",
        6,
        (
            "(?:partial(?:ly)? )?revert(?:s|ed|ing)?|reversion|back(?:s|ed|ing)? out|roll(?:s|ed|ing)?[ -]?back",
            "undo(?:es|ing)?|undid",
        ),
        enters_parentheses=True,
    ),
    Trigger("backports", 6, ("back-?port(?:s|ed|ing)?|forward-?port(?:s|ed|ing)?",), enters_parentheses=True),
    Trigger("cherry_pick", 6, ("cherry[ -]?pick(?:s|ed|ing)?",), enters_parentheses=True),
    Trigger("fixes", 3, ("fix-?ups?(?: (?:of|to|on|for|from|after))?",)),
    Trigger(
        "follow_up",
        8,
        (
            "follow(?:s|ed|ing)?[ -]?ups?|followups?|follow(?:s|ing)? on (?:from|to)|follow[ -]on|sequel to",
            "next step after|picks? up where|addendum to|extension (?:of|to) (?:pr|the pr|pull request)?",
        ),
        enters_parentheses=True,
    ),
    Trigger(
        "follow_up",
        5,
        (
            "(?:code |post-merge )?(?:review|feedback)(?: comments?| suggestions?)? (?:of|on|in|from|for|to)",
            "(?:address(?:es|ed|ing)?|appl(?:y|ies|ied|ying)|implement(?:s|ed|ing)?|incorporat(?:es?|ed|ing)|from|after|"
            "following)(?: \\w+){0,2} (?:comments?|suggestions?) (?:of|on|in|from|for|to)",
            "left-?overs? (?:from|of)|clean(?:s|ing)?[ -]?ups? (?:after|from|of)",
            "(?:missed|forgot(?:ten)?|overlooked|omitted|left out|left over|remaining) (?:in|by|from|after)",
        ),
    ),
    Trigger("follow_up", 3, ("continu(?:es|ation|ing|ed)(?: of| on| from)?",)),
    Trigger("follow_up", 1, ("extend(?:s|ing)|complement(?:s|ary)?(?: to)?|amend(?:s|ing)?|expands? (?:on|upon)",)),
    Trigger("follow_up", 1, ("(?<!the )(?<!as )follow(?:s|ing)",)),
    Trigger("follow_up", 0, ("now that",)),
    Trigger(
        "stacked_on",
        1,
        ("stack(?:s|ed|ing) (?:on(?: top(?: of)?)?|atop)|based (?:on|off)(?: of)?|rebased (?:on|onto)",),
    ),
    Trigger(
        "stacked_on",
        3,
        (
            "on top of|atop|buil(?:ds?|ding|t)(?: up)? ?(?:on|upon|off|atop)",
            "branched (?:from|off)|stack(?:ed prs?)?(?=:)",
        ),
    ),
    Trigger(
        "depends_on",
        3,
        (
            "depend(?:s|ing|ent|ency)? (?:up)?on|dependenc(?:y|ies)(?= ?:)|depends(?= ?:)|blocked(?: by| on)",
            "wait(?:s|ing)? (?:for|on)|prereq(?:uisite)?s?|pre-requisites?|contingent on|pending",
            "(?:merged?|land(?:ed)?|go in)(?: only)? after",
            "(?:includes?|contains?) (?:the )?(?:changes|commits?) (?:from|of|in)",
        ),
    ),
    Trigger("depends_on", 1, ("needs?|requir(?:es?|ing)",)),
    Trigger(
        "supersedes",
        3,
        (
            "super[sc]ed(?:es?|ing)|obsoletes?|tak(?:es?|ing) over(?: from)?|re-?submi(?:t|ts|ssion|tting)(?: of)?",
            "re-?do(?:es|ing)?|rebased? version of|revives?|resurrects?|picks? up|v2 of|re-?work(?:s|ed|ing)? of",
            "(?:second|another|new|third|2nd) (?:attempt at|try at|take on|version of|stab at|go at)",
            "take (?:two|2)(?: of)?",
        ),
    ),
    Trigger("supersedes", 1, ("replac(?:es?|ing)|replacement (?:for|of)",)),
    Trigger(
        "fixes",
        4,
        (
            "regress(?:ion|ions|ed|ing)? (?:from|in|by|since|after|due to|caused by|introduced (?:in|by|with))",
            "(?:broken|broke|breakage|breaking|caused|introduced|bugs?|errors?|typos?|mistakes?|oversights?|failures?|"
            "failing|issues?|problems?)(?: that was| were| was)? "
            "(?:since|due to|because of|caused by|introduced (?:in|by|with|from))",
            "(?:broken|broke|breakage|bugs?|errors?|typos?|mistakes?|oversights?|regressed|fall-?out|damage|crash)"
            " (?:in|by|from|after|with|of|done by)",
            "caused by|hot-?fix(?:es)?(?: (?:of|to|for))?|introduced (?:when|while|by) merging",
        ),
    ),
    Trigger("fixes", 1, ("fix(?:e[sd])?(?: for)?|fixing|repairs?",)),
    Trigger("closes", 0, ("close[sd]?|closing|resolve[sd]?|resolving|completes",)),
)

TRIGGER = re.compile(
    r"(?<![\w'-])(?:" + "|".join(f"(?P<t{i}>{'|'.join(t.wordings)})" for i, t in enumerate(TRIGGERS)) + r")(?![\w-])",
    re.I,
)

YIELDING: frozenset[Relation] = frozenset({"fixes", "closes", "depends_on"})
"""Relations that give way to another one right before them: ``follow-up fix for #12``."""

NOT_OF_ISSUES: frozenset[Relation] = frozenset({"reverts", "relands", "stacked_on", "supersedes"})
"""Relations that a pull request can have to another one only, not to an ``issue #12``."""

FILLERS = frozenset(
    """
    pr prs pull request requests issue issues commit commits change changes work branch gh github https http com www
    the a an this that these those my our your also and or both in of to for from on by with at no number
    original previous earlier first part parts upstream merge merged
    """.split()  # noqa: SIM905
)
"""Words that do not count as distance between a wording and a citation."""

NEGATION = re.compile(
    r"(?:\b(?:not|never|without|no longer|neither|nor|cannot|hardly|no)|n['\u2019]t|\bnon-?)"
    r"(?: (?:yet|fully|directly|be|been|need|have|to|a|an|any|the|actually|really|necessarily|quite|strictly|even|only|"
    r"completely|entirely))* ?$",
    re.I,
)

REPAIR = re.compile(
    r"\b(?:fix(?:es|ed|ing)?|repair(?:s|ed|ing)?|correct(?:s|ed|ing)?|"
    r"(?:resolve|address|solve)[sd]? an? (?:bug|regression))\b[^.;,(]{0,80}\b"
    r"(?:(?:introduced|added|caused|made|broken|changed) (?:in|by|with)|from|of|since|in|after|due to)"
    r"(?: the)?(?: prs?| pull request| commit)?\W{0,4}$",
    re.I,
)
"""A repair of what the cited change did, with its object in between: ``fix the cache key introduced in``."""

BEFORE_LANDING = re.compile(r"\b(?:after|once|until|till)(?: (?:the|prs?|pull request|that|both))*\W*$", re.I)
SINCE_LANDING = re.compile(r"\b(?:since|now that|as)(?: (?:the|prs?|pull request|both))*\W*$", re.I)
LANDS = re.compile(
    r"\W{0,3}(?:(?:is|gets|has been|was|have been|are|has|both|been) )*"
    r"(?:merged|merges|lands?|landed|goes in|is in|released|shipped)\b",
    re.I,
)
MUST_LAND = re.compile(
    r"\W{0,3}(?:(?:should|must|needs to|need to|has to|have to|to) (?:be )?(?:merged?|land(?:ed)?|go in|in)\b|first\b)",
    re.I,
)
REVIEWED = re.compile(r"(?:'s)? (?:code |post-merge )?(?:review|feedback)\b", re.I)
REVIEW_TAKEN_UP = re.compile(
    r"\b(?:based on|after|following|from|per|address\w*|appl\w+|incorporat\w+)\b.{0,40}$", re.I
)

_AFTER = r"\W{0,2} ?\(?"
AFTERMATH: tuple[tuple[Relation, re.Pattern[str]], ...] = (
    (
        "fixes",
        re.compile(
            r"\W{0,3}(?:which |that )?(?:accidentally|inadvertently|mistakenly|erroneously|broke|breaks|"
            r"regressed|caused|introduced (?:an? |the |this |some )?(?:\w+ )?"
            r"(?:bug|regression|issue|error|problem|crash|failure))",
            re.I,
        ),
    ),
    ("follow_up", re.compile(r"\W{0,3}(?:which |that )?(?:forgot|missed|overlooked|left out|failed to)\b", re.I)),
    ("follow_up", re.compile(_AFTER + r"follow[ -]?ups?\b(?! (?:is|in)\b)", re.I)),
    ("backports", re.compile(r"(?:/[0-9a-f]{7,40})?" + _AFTER + r"back-?port\b", re.I)),
    ("relands", re.compile(_AFTER + r"re-?(?:land|apply)\b", re.I)),
    ("fixes", re.compile(_AFTER + r"fix-?up\b", re.I)),
)
"""Wordings right after the citation."""

STACK = re.compile(r"\bstack(?:ed (?:prs?|on|pull requests?)| from|:|$)", re.I)

TRAILERS: dict[str, Relation] = {
    "depends-on": "depends_on",
    "blocked-by": "depends_on",
    "requires": "depends_on",
    "prerequisite": "depends_on",
    "stacked-on": "stacked_on",
    "based-on": "stacked_on",
    "fixes": "fixes",
    "fix": "fixes",
    "closes": "closes",
    "close": "closes",
    "resolves": "closes",
    "reverts": "reverts",
    "revert": "reverts",
    "relands": "relands",
    "reland": "relands",
    "backport-of": "backports",
    "backports": "backports",
    "backport": "backports",
    "cherry-picked-from": "cherry_pick",
    "cherry-pick": "cherry_pick",
    "follow-up": "follow_up",
    "follow-up-to": "follow_up",
    "followup-to": "follow_up",
    "supersedes": "supersedes",
    "replaces": "supersedes",
    "ref": "mentions",
    "refs": "mentions",
    "references": "mentions",
    "see": "mentions",
    "see-also": "mentions",
    "related": "mentions",
    "related-to": "mentions",
    "relates-to": "mentions",
    "issue": "mentions",
    "pr": "mentions",
    "pr-url": "mentions",
    "pull-request": "mentions",
    "link": "mentions",
    "bug": "mentions",
    "part-of": "mentions",
}
"""Keys of ``Key: #12`` lines, lower case."""
