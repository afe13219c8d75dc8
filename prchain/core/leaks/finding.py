"""What the leak check found in a text, and the words that tell a model to mend it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Kind = Literal["query", "overview", "comment", "issue"]
Severity = Literal["leak", "warning"]

_LONGEST_EVIDENCE = 120

_WORDS = {
    "introduced_name": "names {e}, which the work itself introduces: explain its purpose instead",
    "changed_name": "names {e} from the code: better explain what it is for",
    "other_stage_name": "names {e}, which belongs to another stage: leave it out",
    "string_literal": "quotes {e}, words of the solution itself: describe what they say instead",
    "sha": "holds the commit id {e}: leave it out",
    "pull_request_number": "cites {e}: leave the number out",
    "url": "holds the address {e}: leave it out",
    "code_block": "shows code ({e}): describe the behaviour in words",
    "code_line": "shows code ({e}): describe the behaviour in words",
    "solution_retold": "retells how the solution is built ({e}): say what has to be true, not how the code gets there",
    "stage_announced": "announces later work ({e}): leave it out",
    "list": "lists points or steps ({e}): write one narrative",
    "path_missing": "names none of the files to work in ({e}): name their full paths",
    "later_stage": "speaks of {e}, which a later stage is about: leave it out",
    "wrong_language": "is not in English ({e}): write English",
    "too_short": "is too short ({e}): say why, where and how",
    "too_long": "is too long ({e}): keep to the intent",
    "empty": "is empty",
    "meta": "talks about its own making ({e}): speak of the work only",
}
KINDS = tuple(_WORDS)
REVIEWED = frozenset({"solution_retold", "stage_announced"})
"""Kinds that no rule in code finds: a reviewer does, a model that reads text and patch (`chains.tasks.review`)."""

Finder = Literal["check", "review"]
"""Who made a finding: the rules in code, or the reviewer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. `evidence` is quoted from the text, cut; `stage` is the 1-based stage it belongs to, if any."""

    kind: str
    severity: Severity
    evidence: str
    stage: int | None = None
    why: str = ""
    """One line: what a reviewer says of it."""

    @property
    def by(self) -> Finder:
        """Who made it."""
        return "review" if self.kind in REVIEWED else "check"

    def words(self) -> str:
        """A line that tells a model what is wrong and what to do."""
        return f"The text {_WORDS[self.kind].format(e=repr(self.evidence))}.{self.why and f' ({self.why})'}"


def finding(kind: str, severity: Severity, evidence: str, stage: int | None = None, *, why: str = "") -> Finding:
    """A finding whose evidence is one line of bounded length."""
    line = " ".join(evidence.split())
    shown = line if len(line) <= _LONGEST_EVIDENCE else line[: _LONGEST_EVIDENCE - 1] + "…"
    return Finding(kind, severity, shown, stage, why)


def leaking(findings: Iterable[Finding]) -> bool:
    """Whether any of the findings is a leak, so that the text has to be asked for again."""
    return any(found.severity == "leak" for found in findings)


def refusers(versions: Iterable[Iterable[Finding]]) -> list[Finder]:
    """Who refused each of the versions that leak: the check, where any of its rules found a leak."""
    leaks = ({found.by for found in version if found.severity == "leak"} for version in versions)
    return ["check" if "check" in finders else "review" for finders in leaks if finders]
