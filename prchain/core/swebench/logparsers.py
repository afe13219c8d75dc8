"""SWE-bench's log parsers: which of them reads the log of a test runner, and what it calls our tests.

Keyed by the runners' names in stored rows, so that every package can use it. Restated from
`swebench.harness.log_parsers` of 5.0.2. Mocha has no parser of a general kind there, and Maven's knows one test a run.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class LogParser(NamedTuple):
    """One log parser of the harness."""

    name: str
    test: re.Pattern[str]
    """Matches our whole id of a test; an id that it does not match has no name in the harness."""
    template: str = r"\1"
    """The harness's name of the test, with the groups of `test`."""

    def name_of(self, test: str) -> str:
        """What the parser will call a test of ours; empty where it cannot name it."""
        found = self.test.fullmatch(test)
        return found.expand(self.template) if found else ""


LOG_PARSERS = {
    # Splits the line at blanks. A file with "[" or "::" in its path cannot be given to pytest, and is in no log.
    "pytest": LogParser("parse_log_pytest", re.compile(r"\s*(?![^:]*\[)(?![^\[\s]*?::[^\[\s]*\.py::)(\S+).*", re.S)),
    # "method (place)", where the place is the whole id from Python 3.11 on.
    "unittest": LogParser("parse_log_django", re.compile(r"((?:.*\.)?([^.]*))", re.S), r"\2 (\1)"),
    # The line names the test without its package, host/path/package.TestName/sub.
    "go": LogParser("parse_log_gotest", re.compile(r"(?s:.*?)\.((?:Test|Example|Fuzz|Benchmark)[^.]*(?:/.*)?)\n?")),
    # Ours is "crate target name".
    "cargo": LogParser("parse_log_cargo", re.compile(r"[^ ]* [^ ]* ([^ ]*)")),
    # A title alone.
    "jest": LogParser("parse_log_jest", re.compile(r"(?:.* > )?\s*(.*?)\s*", re.S)),
    # Its verbose reporter prints file, describe blocks and title as we join them.
    "vitest": LogParser("parse_log_vitest", re.compile(r"(.*)", re.S)),
}
"""By the runner's name."""
