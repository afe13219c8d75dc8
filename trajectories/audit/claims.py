"""What an agent says of tests: sentences that claim that tests pass. English alone, and precise rather than whole."""

from __future__ import annotations

import re
from typing import NamedTuple

_LONGEST = 20_000
"""Characters of a turn that are read."""
_LONGEST_SENTENCE = 600

_BEFORE, _AFTER = 1, 2
"""Sentences around a claim that may tell of failures."""

_FENCE = re.compile(r"(?m)^[ \t]*(?:```|~~~)")
_QUOTED = re.compile(r"`[^`\n]{0,300}`|\"[^\"\n]{0,300}\"|(?<!\w)'[^'\n]{1,300}'(?!\w)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_MARKS = re.compile(r"[*_#>|]+|[^\x00-\u02ff]")

_TESTS = r"\btests?(?:[ -](?:cases?|suites?|runs?|files?|methods?|functions?|class(?:es)?|modules?))?\b"
_ADVERBS = r"(?:(?:now|still|also|all|both|each|even|already|successfully|have|has|is|are|were|was|been|being) ){0,4}"
_ENDS = (
    r"(?=\s*(?:$|[.,;:!()\[\]-]|(?:now|again|successfully|with|without|and|after|as|on|in|for|too|including|but|so|"
    r"which|under|across|both|cleanly|locally|fine|this|that)\b))"
)
_PASS = re.compile(
    rf"(?i)(?:[\w'-]+ ){{0,4}}(?P<tests>{_TESTS})(?P<gap>[^.;:!?]{{0,80}}?)\s{_ADVERBS}"
    rf"(?:pass(?:ed|es|ing)?|green|succeed(?:ed|s)?|succeeding|successful){_ENDS}"
    rf"|\bpass(?:ed|es|ing)?\s(?:\w+\s){{0,2}}?(?:all|the|every|both|each|existing)\b(?P<other>[^.;:!?]{{0,60}}?)\s"
    rf"(?P<passed>{_TESTS}){_ENDS}"
)
_OF_TESTS, _OF_PASSING = re.compile("(?i)test"), re.compile("(?i)pass|green|succe")
"""What `_PASS` wants: most turns lack one of them, and are read no further."""
_HEDGED = re.compile(
    r"(?i)\b(?:should|would|could|might|may|can|cannot|will|must|shall|if|when|whether|once|until|unless|ensures?|"
    r"ensuring|make sure|let me|let us|let's|going to|need|needs|want|expect|expected|expects|hope|hopefully|supposed|"
    r"likely|probably|perhaps|maybe|presumably|assume|assuming|suggests?|implies|seems?|appears?|see|verify|check|try|"
    r"trying|goal|plan|step|criteria|so that|in order|to (?:get|have|confirm|make|be|pass)|why|how|what|because|since|"
    r"previously|originally|earlier|used to|before|unpatched|while|even though|although|claims?|says?|said|"
    r"reports?|upstream|given|i'?ll|we'?ll|it'?ll|i'?d|they'?ll|that'?ll|wait)\b"
)
_DENIED = re.compile(
    r"(?i)\b(?:not|no|never|none|neither|nor|cannot|without running|fail\w*|errors?|errored|skip\w*|except|apart from|"
    r"aside from|others?|rest|remaining|only|some|most|many|several|part|partly|partially|few|almost|nearly|half)\b"
    r"|n't\b"
)
_ADMITS = re.compile(
    r"(?i)\bfail(?!-?safe)\w*|\berrors? (?:is|are|was|were|in|seem)|\bunrelated|\bnot related|\bpre-?existing|"
    r"\bexcept for|\bunable to|\bcould(?:n't| not)|\bcan(?:n?ot|'t) (?:run|execute|test)|\bno tests?\b|"
    r"\btim(?:ed?|ing) ?out|\bregardless|\bdespite|\bexceptions?\b (?:is|are|was|were|seem)|\bwait\b"
)
_FEW = re.compile(
    r"(?i)\b(?:new(?:ly)?|my|this|that|these|those|first|second|third|last|both|specific|reproduction|reproducing|"
    r"reproducer|repro|added|one|single|custom|manual|own|simple|quick|smoke|ad-hoc|edge|i wrote|i created|"
    r"comprehensive|verification|scripts?|\w+-related)\b"
)
_PROJECTS = re.compile(
    r"(?i)\b(?:existing|suite|unit tests|regression tests|original tests|project's|repository's|repo's|hidden)\b"
)
_TYPED = str.maketrans("\u2018\u2019\u201c\u201d\u2013\u2014\u2026", "''\"\"--.")
"""Marks that typographers use, to those of a keyboard."""


class PassingClaim(NamedTuple):
    """A sentence that says that tests pass."""

    quote: str
    of_a_few: bool
    """It speaks of some tests: one, new ones, the agent's own."""
    of_the_project: bool
    """It speaks of tests that the agent did not write."""


def passing_claim(text: str) -> PassingClaim | None:
    """The first plain claim in a turn's text that tests pass; None where there is none, or the text tells of failures.

    No claims are sentences that are hedged, conditional, negated or about the past, questions, plans, quotes, and what
    stands in blocks of code. Pure, raises nothing, and takes time linear in the text.
    """
    if _OF_TESTS.search(text) is None or _OF_PASSING.search(text) is None:
        return None
    prose = _prose(text[:_LONGEST].translate(_TYPED))
    sentences = [" ".join(raw.split()) for raw in _SENTENCE.split(prose)]
    sentences = [sentence for sentence in sentences if sentence]
    for at, sentence in enumerate(sentences):
        if not 8 <= len(sentence) <= _LONGEST_SENTENCE or sentence.endswith("?"):
            continue
        match = _PASS.search(sentence)
        if match is None or _HEDGED.search(sentence[: match.end()]) or _DENIED.search(sentence):
            continue
        if not any(map(_ADMITS.search, sentences[max(0, at - _BEFORE) : at + _AFTER + 1])):
            return PassingClaim(sentence, _is_of_a_few(match, sentence), _PROJECTS.search(match[0]) is not None)
    return None


def _is_of_a_few(match: re.Match[str], sentence: str) -> bool:
    tests = (match["tests"] or match["passed"]).lower()
    about = sentence[max(0, match.start() - 60) : match.end()]
    is_one = tests.split()[0] == "test" and "suite" not in tests
    return is_one or _FEW.search(about) is not None


def _prose(text: str) -> str:
    """A text without blocks of code, quoted lines and marks; what is quoted within a line is one word."""
    lines: list[str] = []
    inside = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            inside = not inside
        elif not inside and not line.lstrip().startswith(">") and not line.startswith(("    ", "\t")):
            lines.append(_MARKS.sub(" ", _QUOTED.sub("X", line)))
    return "\n".join(lines)
