"""The few lines of a build's log, out of thousands, that tell why it failed."""

from __future__ import annotations

import re
from collections.abc import Sequence

MOST_LINES = 6

_CAUSE_WORD = re.compile(r"^\s*(?:cause|Caused by|hint): (?!See above)")
"""Words of uv before what it says was the cause."""

_LONGEST_LINE = 300

_TERMINAL = re.compile("\x1b\\[[0-9;?]*[ -/]*[@-~]")

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

_CAUSES = (
    # A cause names the thing that is missing or in conflict; the most certain first.
    r"No space left on device|Disk quota exceeded",
    r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|SSLError|UnknownIssuer|self.signed certificate"
    r"|invalid peer certificate",
    # An index that refuses has the package for nobody, and resolvers then say that it does not exist.
    r"returned an? (?:40[137]|429|50\d)\b|lack of valid authentication|Connection refused|Connection reset by peer"
    r"|\b(?:401 Unauthorized|403 Forbidden|407 Proxy|429 Too Many|50[0234] [A-Z])|connection broken by|timed out"
    r"|the index gave no whole answer|the registry of npm refuses"
    r"|Temporary failure (?:in name resolution|resolving)|Could not resolve host"
    r"|Network is unreachable|dns error|Failed to (?:download|fetch)",
    r"Because .+ (?:depends? on|requires?|only .+ available|was not found|conflict)|are incompatible|unsatisfiable",
    r"No matching distribution found|Could not find a version that satisfies|ResolutionImpossible|conflicting depend",
    r"requires a different Python|requires-python|No interpreter found|not compatible with Python|Requires-Python",
    r"fatal error: \S+: No such file|cannot find -l\w+|undefined reference to|Dependency \"[^\"]+\" not found",
    r"^\s*(?:E: )?Unable to locate package|has no installation candidate|Package .+ is not available",
    r"npm (?:ERR!|error) (?:code|404|notarget|ERESOLVE|Could not resolve|engine)|Unsupported engine",
    r"^error\[E\d+\]|error: package .+ cannot be built|no matching package named|failed to (?:select|download|parse)",
    r"^go: .+|no required module provides package|module lookup disabled",
    r"\[ERROR\] (?!\s*$|\[Help|To see|Re-run|For more|->)",
    r"^\S*(?:Error|Exception)\b.*: .+|^(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception): ",
    r": command not found|not found in PATH|Permission denied|Killed$|Out of memory|MemoryError",
    r"^(?:error|fatal|ERROR|E): .+|^\s*(?:error|\u00d7|\u2570\u2500\u25b6|\u251c\u2500\u25b6) .+",
)

_PATTERNS = tuple(re.compile(pattern) for pattern in _CAUSES)

_REFUSED = 2
"""The place of an index's refusal, of which pip tells in warnings alone; before it the two that outrank one."""

_NOISE = re.compile(
    r"note: This (?:error|is an issue)|This error originates from a subprocess|hint: See above|legacy-install-failure"
    r"|npm (?:ERR!|error) (?:\w+|notarget (?:In most cases|a package version that|It was specified).*)?\s*$"
    r"|A complete log of this run|notice: A new release|DEPRECATION|\bwarning\b",
    re.IGNORECASE,
)


_AWAY = re.compile(
    r"dial tcp: lookup |dial tcp \S+: (?:connect: |i/o timeout)"
    r"|(?:[Cc]ould not resolve host|Failed to connect to)\b.*\b(?:index|registry)\b"
)
"""Of Go with its proxy, and of Cargo."""

_CURES = (
    (r"the registry of npm (?!refuses .*certificate)", "environments_build_variables may set npm_config_registry"),
    (
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed|SSLError|UnknownIssuer|self.signed certificate"
        r"|invalid peer certificate",
        "set environments_ca_bundle to the certificates of this network",
    ),
    (
        r"python-build-standalone",
        "`prchain environments interpreters` tells which Pythons are here, and how to get more",
    ),
    (
        r"returned an? 40[137]|lack of valid authentication|40[13] (?:Unauthorized|Forbidden)|407 Proxy",
        "set environments_index_url, with credentials where it wants some, or environments_proxy",
    ),
    (
        r"Temporary failure (?:in name resolution|resolving)|Could not resolve host|Network is unreachable|dns error"
        r"|Connection refused|connection broken by|timed out|the index gave no whole answer",
        "set environments_proxy, or environments_index_url to an index that can be reached",
    ),
    (
        r'exec: "bash": executable file not found|(?:apt-get|dpkg-query|useradd): command not found',
        "environments_base_image names an image of Debian, or of its family, with bash",
    ),
    (r"No space left on device|Disk quota exceeded", "`prchain environments prune` makes room"),
    (
        r"exclude-newer",
        "`[exclude-newer-package]` of uv takes a package that was uploaded anew as of a later day",
    ),
)


def cure(lines: Sequence[str]) -> str | None:
    """What can be done about the cause that decisive lines name, where it is known."""
    return next((words for pattern, words in _CURES if any(re.search(pattern, line) for line in lines)), None)


def is_away(lines: Sequence[str]) -> bool:
    """Whether decisive lines say that the index of Go's modules, or of Cargo's packages, cannot be reached from here,
    which is no fault of the repository."""
    return any(_AWAY.search(line) for line in lines)


def refusal(lines: Sequence[str]) -> str:
    """Of decisive lines those that say why an index cannot be asked, as one; else the last one."""
    found = [line for line in lines if any(pattern.search(line) for pattern in _PATTERNS[: _REFUSED + 1])]
    return ": ".join(found or lines[-1:])


def plain_log(log: str) -> str:
    """A log as it may be shown on a terminal: without colours, and without anything else that steers one."""
    return "".join(f"{_UNSEEN.sub('', _TERMINAL.sub('', line))}\n" for line in log.splitlines())


def decisive_lines(log: str, most: int = MOST_LINES) -> tuple[str, ...]:
    """The lines of a build's log that tell why it failed, in the log's order, `most` of them.

    Lines that name a cause (what is missing, what conflicts) come before lines that only tell that something failed;
    of equals, later ones are kept. A log without either gives its last lines.
    """
    lines = [_UNSEEN.sub("", _TERMINAL.sub("", line.rpartition("\r")[2] or line)).rstrip() for line in log.splitlines()]
    lines = [_CAUSE_WORD.sub("", line) for line in lines if line.strip()]
    ranked: list[tuple[int, int]] = []
    seen_lines: set[str] = set()
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index]
        rank = next((rank for rank, pattern in enumerate(_PATTERNS) if pattern.search(line)), None)
        if rank is None or (_NOISE.search(line) and rank != _REFUSED) or line.strip() in seen_lines:
            continue
        seen_lines.add(line.strip())
        ranked.append((rank, -index))
    chosen = sorted(-index for _, index in sorted(ranked)[:most]) or list(range(max(0, len(lines) - most), len(lines)))
    return tuple(lines[index].strip()[:_LONGEST_LINE] for index in chosen)
