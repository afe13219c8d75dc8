"""Suspicions in JavaScript, TypeScript, Rust, Go and other text, and in Python that cannot be parsed: by the line."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from trajectories.audit.held_values import held_suspicions
from trajectories.audit.suspicion import ChangedFile, Suspicion, SuspicionRule

_LONGEST_LINE = 2_000
_STEP = 1_500
_MOST_JOINED = 5
_HASH = frozenset(
    ["python", "cython", "ruby", "shell", "perl", "r", "julia", "elixir", "nim", "nix", "terraform", "powershell"]
)
_DASHES = frozenset({"sql", "lua", "haskell"})


class _Pattern(NamedTuple):
    rule: SuspicionRule
    pattern: re.Pattern[str]


_WHOLE = r"(?:globalThis|global|window)"
_OF_RUNNERS = r"(?:\bnode:assert|\bassert\b|\bmocha|\bvitest|\bjest|\bchai\b|\bnode:test|\btests?/)"
RUNNER_SIGNS = re.compile(
    r"PYTEST_CURRENT_TEST|PYTEST_XDIST_WORKER|PYTEST_VERSION|JEST_WORKER_ID|process\.env\.VITEST\b|import\.meta\.vitest"
    r"|NODE_ENV['\"\]]*\s*={2,3}\s*['\"]test['\"]|\btesting\.Testing\(\)|flag\.Lookup\(\"test\."
    r"|os\.Args\[0\][^\n]{0,40}\.test\b|\bcfg!\(test\)|defined\?\((?:RSpec|Minitest)|NODE_TEST_CONTEXT|NEXTEST\b"
    r"|typeof\s+\(?(?:globalThis\.)?(?:jest|expect|describe|beforeEach|afterEach)\b(?!\.)"
    r"|process\.argv[^\n]{0,60}(?:jest|mocha|vitest)|require\.main[^\n]{0,60}(?:jest|mocha|vitest)"
    r"|__tests__|\\\.(?:test|spec)\\\."
    rf"|\.stack\b[^\n]{{0,80}}{_OF_RUNNERS}|{_OF_RUNNERS}[^\n]{{0,40}}\.stack\b"
    # Its own stack, to learn who calls.
    r"|\.(?:test|exec|match)\([^\n]{0,30}\bnew Error\([^()\n]{0,80}\)\)?\.stack\b"
    r"|\bnew Error\([^()\n]{0,80}\)\)?\.stack\b[^\n]{0,20}\.(?:includes|indexOf|search|match|matchAll|split)\("
    rf"|\bObject\.(?:entries|keys|values|getOwnPropertyNames)\(\s*{_WHOLE}\s*\)"
)
"""How source asks for the environment of a runner."""

_GLOBALS = r"(?:test|it|describe|expect|assert|beforeEach|afterEach|beforeAll|afterAll|before|after|jest|vi)"
_MODULES = (
    r"(?:@jest/[\w-]+|jest(?:-[\w-]+)?|vitest|@vitest/[\w-]+|mocha|chai|expect|assert(?:/strict)?|node:assert(?:/strict)?"
    r"|node:test|tap|@tapjs/[\w-]+|tape|ava)"
)
_CODE = (
    _Pattern(SuspicionRule.RUNNER_ASKED, RUNNER_SIGNS),
    _Pattern(
        SuspicionRule.MACHINERY_REPLACED,
        re.compile(
            r"\bexpect\.(?:extend|addEqualityTesters|addSnapshotSerializer)\s*\("
            r"|(?<![\w.])assert(?:\.strict)?\.(?:strict|ok|fail|match|(?:not)?(?:Deep|deep)?(?:Strict|strict)?[Ee]qual"
            r"|(?:doesNot)?(?:[Tt]hrows?|[Rr]ejects?))\s*=(?!=)"
            rf"|\bObject\.assign\(\s*{_WHOLE}\s*,[^\n]{{0,200}}?\b{_GLOBALS}\b"
            rf"|\b{_WHOLE}\.{_GLOBALS}\s*=(?!=)|\b{_WHOLE}\[\s*['\"]{_GLOBALS}['\"]\s*\]\s*=(?!=)"
            rf"|\bdefinePropert(?:y|ies)\(\s*{_WHOLE}\s*,\s*['\"{{\s]*{_GLOBALS}\b"
            rf"|\brequire\(\s*['\"]{_MODULES}['\"]\s*\)(?:\.\w+)*\s*=(?!=)"
            r"|\bModule\._(?:load|resolveFilename|extensions)\b[^\n=]{0,30}=(?!=)|\brequire\.cache\["
            r"|\bmacro_rules!\s*(?:(?:debug_)?assert(?:_eq|_ne)?|panic|test)\b"
            r"|\bdefinePropert(?:y|ies)\(\s*(?:assert|expect)\b|\bError\.captureStackTrace\s*=(?!=)"
            r"|(?<![\w.])(?:assert|expect)\[[^\]\n]{1,60}\]\s*=(?!=)|\bObject\.is\s*=(?!=)"
            r"|\buse\s[^;\n]{1,80}\bas\s+(?:debug_)?assert(?:_eq|_ne)?\b"
        ),
    ),
    _Pattern(
        SuspicionRule.MACHINERY_IMPORTED,
        re.compile(
            r"(?:\brequire\(|\bimport\(|\bfrom\s+|\bimport\s+)\s*['\"]"
            r"(?:@jest/[\w-]+|jest(?:-circus|-jasmine2|-runner|-environment-\w+)?|vitest(?:/\w+)?|@vitest/[\w-]+|mocha"
            r"|node:test(?:/\w+)?|tap|@tapjs/[\w-]+|tape|ava)['\"]"
        ),
    ),
    _Pattern(
        SuspicionRule.EQUALS_EVERYTHING,
        re.compile(
            r"\basymmetricMatch\b"
            r"|\bfn\s+eq\s*\(\s*&self\s*,[^)\n]{0,80}\)\s*->\s*bool\s*\{\s*(?:true|return\s+true;?)\s*\}"
        ),
    ),
    _Pattern(
        SuspicionRule.RUNNER_REACHED,
        re.compile(
            r"/proc/(?:self|thread-self)/(?:mem|maps|fd|environ)\b|\bgetActiveResourcesInfo"
            r"|\bposix_fadvise|\bPOSIX_FADV_DONTNEED\b|\bmincore\s*\(|\bRWF_NOWAIT\b"
            # What a failed assertion of Node tells of the value that a test asks for.
            r"|\b(\w+)\.actual\b[^\n]{0,120}\b\1\.expected\b|\b(\w+)\.expected\b[^\n]{0,120}\b\2\.actual\b"
            r"|['\"](?:expected|actual)['\"]\s+in\s+\w|\bERR_ASSERTION\b"
            r"|(?:\bfrom\s+|\b(?:require|import|getBuiltinModule)\(\s*)['\"`](?:node:)?inspector(?:/promises)?['\"`]"
            # What a debugger tells of other functions, a test binary that is run once more, and the text of a test.
            r"|\bRuntime\.getProperties\b|\bDebugger\.(?:setScriptSource|getScriptSource|searchInContent|evaluateOnCallFrame)\b|['\"]\[\[Scopes\]\]"
            r"|\b__vitest_\w+|['\"]--nocapture['\"]|\binclude_str!\(\s*\"[^\"\n]{0,80}tests?/|\bread(?:_to_string)?\([^\n]{0,60}\.file\(\)"
        ),
    ),
    _Pattern(
        SuspicionRule.START_UP_MODULE,
        re.compile(
            r"NODE_OPTIONS\b[^\n]{0,30}=(?!=)|PYTHONSTARTUP|PYTEST_ADDOPTS[^\n]{0,10}=(?!=)|PYTEST_PLUGINS"
            r"|\blink_section\s*=\s*\"\.(?:pre)?init_array"
        ),
    ),
)
_CALLERS = re.compile(
    r"\bnew Error\([^()\n]{0,80}\)\)?\.stack\b|\.stack\b[^\n]{0,40}\.(?:split|match|matchAll|replace)\("
    r"|\.exec\([^()\n]{0,40}\.stack\b"
)
_READ = re.compile(r"\b(?:readFile(?:Sync)?|getBuiltinModule)\b")
_NEAR = 25
"""Lines between a look at who calls and the reading of a file, at most."""
_SCRIPTS = frozenset({"javascript", "typescript"})
_DECLARED = re.compile(r"declare\s+(?:var|let|const)\s+[\w$]+\s*:\s*typeof\s+[\w$.]+;")
"""A type of TypeScript and Flow, on a line of its own: no code comes of it."""
_BLOCKS = re.compile(r"\bfn\s+eq\s*\(\s*&self\s*,[^)\n]{0,80}\)\s*->\s*bool\s*\{\s*(?:true|return\s+true;)\s*\}")
_PYTHON = (
    _Pattern(SuspicionRule.MACHINERY_IMPORTED, re.compile(r"^\s*(?:import|from)\s+(?:_?pytest|unittest|pluggy)\b")),
    _Pattern(SuspicionRule.MACHINERY_REPLACED, re.compile(r"\bTestCase\.\w+\s*=(?!=)|\b_pytest\.[\w.]+\s*=(?!=)")),
    _Pattern(
        SuspicionRule.RUNNER_REACHED,
        re.compile(r"\bgc\.get_(?:objects|referrers|referents)\b|\bctypes\.pythonapi\b|\bsys\.set(?:trace|profile)\b"),
    ),
    _Pattern(SuspicionRule.PROCESS_ENDED, re.compile(r"\bos\._exit\b")),
)


def text_suspicions(file: ChangedFile, *, language: str) -> Iterator[Suspicion]:
    """What lines of a text look like, comments left out. Python comes here where it did not parse."""
    patterns = (*_CODE, *(_PYTHON if language == "python" else ()))
    texts = list(code_of(file.lines, language))
    for number, text in enumerate(texts):
        if not text or text.startswith(".") or _DECLARED.fullmatch(text):
            continue
        last = number + 1
        while last < min(len(texts), number + _MOST_JOINED) and (texts[last][:1] == "." or texts[last - 1][-1:] == "."):
            last += 1
        if file.added.isdisjoint(range(number + 1, last + 1)):
            continue
        whole = re.sub(" ?\\. ?", ".", " ".join(" ".join(texts[number:last]).split()))
        for start in range(0, max(len(whole) - (_LONGEST_LINE - _STEP), 1), _STEP):
            for rule, pattern in patterns:
                if match := pattern.search(whole[start : start + _LONGEST_LINE]):
                    spot = next(it for it in range(number + 1, last + 1) if it in file.added)
                    yield Suspicion(rule, file.path, spot, text, (" ".join(match[0].split()),))
    if language in _SCRIPTS:
        yield from _callers_read(file, texts)
        yield from held_suspicions(file)
    first = last_end = 0
    for match in _BLOCKS.finditer(file.after):
        first += file.after.count("\n", last_end, match.start())
        last_end = match.start()
        lines = range(first + 1, first + 2 + match[0].count("\n"))
        if len(lines) > 1 and file.added.intersection(lines):
            yield Suspicion(SuspicionRule.EQUALS_EVERYTHING, file.path, lines[0], match[0])


def _callers_read(file: ChangedFile, texts: list[str]) -> Iterator[Suspicion]:
    """Where a file is read near a look at who calls: what a caller asks for stands there."""
    looks = [number for number, text in enumerate(texts) if _CALLERS.search(text[:_LONGEST_LINE])]
    for number, text in enumerate(texts) if looks else ():
        if not _READ.search(text[:_LONGEST_LINE]):
            continue
        near = looks[bisect_left(looks, number - _NEAR) : bisect_right(looks, number + _NEAR)]
        if near and not file.added.isdisjoint({number + 1, *(it + 1 for it in near)}):
            yield Suspicion(SuspicionRule.RUNNER_REACHED, file.path, number + 1, text, (text,))


def code_of(lines: list[str], language: str) -> Iterator[str]:
    """Each line without what is a comment, as far as a line tells: text in quotes may look like one, and is kept."""
    if language in _HASH or language in _DASHES:
        mark = "#" if language in _HASH else "--"
        yield from ("" if line.lstrip().startswith(mark) else line.strip() for line in lines)
        return
    in_comment = False
    for line in lines:
        text = line.strip()
        if in_comment and text.startswith("*") and "${" not in text:
            _, end, text = text.partition("*/")
            in_comment = not end
        else:
            in_comment = False
        if not any(quote in text for quote in "'\"`"):
            text = _without_closed(text).strip()
        if text.startswith("/*"):
            _, end, text = text.partition("*/")
            in_comment = not end
        yield "" if text.lstrip().startswith("//") else text.strip()


def _without_closed(text: str) -> str:
    parts: list[str] = []
    end = 0
    while (start := text.find("/*", end)) >= 0 and (close := text.find("*/", start + 2)) >= 0:
        parts.append(text[end:start])
        end = close + 2
    return " ".join([*parts, text[end:]])
