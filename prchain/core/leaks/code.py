"""Code in a text: blocks, lines, calls and literals, of the patches and at all."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from prchain.core.code.identifiers import is_code_name
from prchain.core.code.lexing import is_prose
from prchain.core.leaks.facts import (
    PLAIN_ARGUMENTS,
    PROSE_SHINGLE,
    SHINGLE,
    SHORTEST_MARKED_LITERAL,
    StageFacts,
    is_distinctive_line,
    phrase,
)
from prchain.core.leaks.finding import Finding, Severity, finding
from prchain.core.leaks.folding import bare_lines, digest, words_of
from prchain.core.leaks.reading import TextReading
from prchain.core.leaks.vocabulary import lists

_STATEMENT = re.compile(
    r"^(?:[+-] ?)?[ \t]*(?:(?:async )?def \w+\(|class \w+[(:{]|(?:from [\w.]+ )?import [\w.]+(?: as \w+)?;?$"
    r"|(?:export )?(?:const|let|var) [\w{][^=\n]{0,80}=|(?:pub(?:\(\w+\))? )?fn \w+[(<]|func \w*\(|return\b[^\n]*;$"
    r"|(?:if|for|while|switch) ?\([^\n]*\{$|[\w.\[\]]{1,120} [-+|&]?= \S|@@ -\d|#include\b|[}\]);]+$)"
)
_HEADER = re.compile(
    r"(?:(?:async )?(?:for [\w, ()]{1,80} in|while|(?:el)?if|with|except|match|case)\b[^\n]{1,200}"
    r"|try|else|finally|except):"
)
_WEAK_STATEMENT = re.compile(
    r"(?:return|yield|raise|await|assert|del|throw)\b[^\n]{0,200}(?<![.!?,:])|break;?|continue;?|pass"
)
_CODE_SIGN = re.compile(r"\w[(\[.]\w|\(\)|\w_\w| (?:[-+*/%|&^]|[=!<>]=|[<>]|is not|is None|not in) ")
"""What makes a header code that no sentence would begin with."""
_CALL = re.compile(r"(?<=\w)\(([^()\n]{0,200})\)")
_CODE_ARGUMENT = re.compile(r"[\"']|\w{2}=[^=\s]|\w_\w|\w{2}\.[^\W\d]")
_OPERATORS = frozenset({"if", "else", "in", "is", "not", "and", "or", "for", "from", "as", "while", "with"})
"""Words of grammar that code has as well."""
_NAME_BEFORE = re.compile(r"[\w.]+$")
_PLURAL = re.compile(r"(?:e?s|ies|y|ed|ing|r|n|d)")
_MATHS = re.compile(r"(?:[\s,+*/^=-]|\b[A-Za-z]\b|\b\d+\b)*")
_FORMULA = re.compile(r"(?:[\s,+*/^=()-]|\b[A-Za-z]\b|\b\d+\b)*|[\w.]{1,80}\((?:[\s,+*/^-]|\b[A-Za-z]\b|\b\d+\b)*\)")
"""A formula in single letters, or one function of such."""
_SPAN_CODE = re.compile(
    r"(?:^|\s)(?:[-+*/|&]?=|==|!=|=>|:=|&&|\|\||->)\s|;$|^(?:def|return|import|from|fn|const|let|var|lambda)\s+\w"
)
_STRIP = ".,;:!?()[]{}<>\"'`*"
_FEWEST_MEANING = 3
_LONGEST_PHRASE = 3
_BULLET = re.compile(r"^(?:[-+*>•]|\d{1,3}[.)])\s+")


def code_findings(reading: TextReading, chain: Sequence[StageFacts], position: int, kind: str) -> Iterator[Finding]:
    """Code of any kind; of an issue, whose author may show code, only lines that are the patch's."""
    yield from _patch_lines(reading, chain, position, tests=kind != "issue")
    if kind == "issue":
        return
    for fence in reading.fences:
        yield finding("code_block", "leak", fence)
    if not reading.fences:
        yield from _statements(reading)
    for span in dict.fromkeys(reading.spans):
        if _is_code(span):
            yield finding("code_line", "warning" if _FORMULA.fullmatch(span) else "leak", span)
    yield from _calls(
        reading,
        {name for facts in chain for name in facts.introduced},
        {name for facts in chain for name in facts.changed},
    )
    yield from literal_findings(reading, chain, position)


def severity_of(stage: int, position: int) -> Severity:
    """The work of an earlier stage is in the tree already; everything else is hidden."""
    return "warning" if stage < position else "leak"


def _patch_lines(reading: TextReading, chain: Sequence[StageFacts], position: int, *, tests: bool) -> Iterator[Finding]:
    quoted_lines = dict.fromkeys([*reading.lines, *(_BULLET.sub("", line) for line in reading.lines), *reading.spans])
    for line in quoted_lines:
        bare_digests = {digest(bare) for bare in bare_lines(line.strip("`")) if is_distinctive_line(bare)}
        for stage in sorted(range(1, len(chain) + 1), key=lambda stage: (stage != position, -stage)):
            facts = chain[stage - 1]
            if not bare_digests.isdisjoint(facts.line_digests) or (
                tests and not bare_digests.isdisjoint(facts.test_line_digests)
            ):
                yield finding("code_line", severity_of(stage, position), line, stage)
                break


def _statements(reading: TextReading) -> Iterator[Finding]:
    """Lines that are code by themselves, and two or more in a row of those that may be."""
    row: list[Finding] = []
    for line in [*filter(None, reading.lines), ""]:
        sure = bool(_STATEMENT.match(line))
        maybe = not sure and bool(_HEADER.fullmatch(line) or _WEAK_STATEMENT.fullmatch(line)) and not _is_english(line)
        if sure or maybe:
            sure = sure or bool(line[-1] == ":" and _CODE_SIGN.search(line))
            row.append(finding("code_line", "leak" if sure else "warning", line))
            continue
        if len(row) > 1:
            yield finding("code_line", "leak", row[0].evidence)
        yield from (finding for finding in row if len(row) == 1 or finding.severity == "leak")
        row = []


def _is_english(line: str) -> bool:
    """Whether a line has words of grammar that code has not, or three words in a row as only sentences do."""
    words = set(re.findall(r"[^\W\d_]+", line.lower()))
    return is_prose(line) or not lists().function_words.isdisjoint(words - _OPERATORS)


def _is_code(span: str) -> bool:
    """Whether a text in backticks is code; a lone call is judged as a call."""
    if span.startswith("-"):
        return False
    calls = len(_CALL.findall(span))
    return bool(_SPAN_CODE.search(span) or (calls and re.search(r"[\[{]", span)) or (calls > 1 and "**" in span))


def _calls(reading: TextReading, introduced: Collection[str], changed: Collection[str]) -> Iterator[Finding]:
    """Calls: of a name of the patches or in the shape of code, or with arguments that only code has; all others, such
    as `sin(theta)`, may be maths or a remark. A class that is there already may be made with plain values: that is how
    users speak of a case, `Limiter(0.5)`."""
    masked = reading.masked
    for match in _CALL.finditer(masked):
        name = _NAME_BEFORE.search(masked[max(match.start() - 80, 0) : match.start()])
        arguments = match[1].strip()
        if name is None or _PLURAL.fullmatch(arguments):
            continue
        call_text = f"{name[0]}({arguments})"
        if not arguments or _MATHS.fullmatch(arguments):
            yield finding("code_line", "warning", call_text)
        elif not _is_remark(arguments):
            called = name[0].rpartition(".")[2]
            known_class = called[:1].isupper() and called not in introduced
            code = not (known_class and PLAIN_ARGUMENTS.fullmatch(arguments)) and (
                called != name[0]
                or called in introduced
                or called in changed
                or is_code_name(called)
                or _CODE_ARGUMENT.search(arguments)
            )
            yield finding("code_line", "leak" if code else "warning", call_text)


def _is_remark(arguments: str) -> bool:
    """Whether the text in parentheses is words and no arguments: blanks between words, and no sign of code."""
    return bool(re.fullmatch(r"[\w'-]+(?:[,;]? [\w'-]+)*", arguments)) and " " in arguments.replace(", ", "")


def literal_findings(reading: TextReading, chain: Sequence[StageFacts], position: int) -> Iterator[Finding]:
    """Literals that the patches add: whole short ones, and `SHINGLE` or more words in a row of longer ones."""
    words = words_of(reading.text)
    marks = _marks(words, SHINGLE)
    prose = _marks(words, PROSE_SHINGLE)
    phrases = dict.fromkeys(_phrases(reading))
    digests = {candidate: digest(candidate) for candidate in phrases}
    for stage, facts in enumerate(chain, 1):
        exempt = {*facts.interface, *reading.path_words}
        told = facts.told if stage == position else frozenset()
        runs = [*_runs(words, [mark in facts.literals and mark not in told for mark in marks], SHINGLE)]
        runs += _runs(words, [mark in facts.prose and mark not in told for mark in prose], PROSE_SHINGLE)
        for run in runs:
            yield finding("string_literal", severity_of(stage, position), " ".join(run), stage)
        for candidate, mark in digests.items():
            if mark in facts.literals and mark not in told and candidate not in exempt:
                yield finding("string_literal", severity_of(stage, position), candidate, stage)


def text_digests(reading: TextReading) -> set[str]:
    """The digests of a text that facts of stages may hold: of its runs of words, and of its phrases."""
    words = words_of(reading.text)
    return {*_marks(words, SHINGLE), *_marks(words, PROSE_SHINGLE), *map(digest, _phrases(reading))}


def _marks(words: Sequence[str], length: int) -> list[str]:
    return [digest(" ".join(words[at : at + length])) for at in range(len(words) - length + 1)]


def _runs(words: Sequence[str], hits: Sequence[bool], length: int) -> Iterator[list[str]]:
    """The longest runs of words in which every `length` in a row are a hit, if enough of them carry meaning."""
    start = None
    for at, hit in enumerate([*hits, False]):
        if hit and start is None:
            start = at
        elif not hit and start is not None:
            run = list(words[start : at + length - 1])
            if len({word for word in run if word not in lists().function_words and len(word) > 2}) >= _FEWEST_MEANING:
                yield run
            start = None


def _phrases(reading: TextReading) -> Iterator[str]:
    for quoted in (*reading.spans, *reading.quotes):
        yield phrase(quoted.strip("\"'"))
    for text in (reading.masked,):
        chunks = text.split()
        for length in range(1, _LONGEST_PHRASE + 1):
            for at in range(len(chunks) - length + 1):
                joined = " ".join(chunks[at : at + length])
                if SHORTEST_MARKED_LITERAL <= len(joined) <= 200:
                    yield joined
                    yield joined.strip(_STRIP)
