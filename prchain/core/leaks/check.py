"""The check of one text against every stage of a chain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from prchain.core.leaks.code import code_findings
from prchain.core.leaks.encodings import decodings
from prchain.core.leaks.facts import StageFacts
from prchain.core.leaks.finding import Finding, Kind, finding
from prchain.core.leaks.form import form_findings, reference_findings
from prchain.core.leaks.names import name_findings
from prchain.core.leaks.reading import TextReading
from prchain.core.leaks.spoken import spoken_findings

LONGEST_TEXT = 65_536
"""Characters that are read, the most that GitHub keeps of an issue; a longer text fails, whatever is in the rest."""
_LONGEST_SPAN = 400
"""Characters that `TextReading` reads between backticks."""


def check(
    text: str,
    chain: Sequence[StageFacts],
    position: int,
    *,
    kind: Kind,
    paths_at_base: Collection[str],
) -> list[Finding]:
    """What a text for stage `position` (1-based) of a chain gives away, and what is wrong with its form.

    For an overview, `position` is 0 and every stage is equally hidden. What stands at the base of the stage, an earlier
    stage's work too, is at most a warning. The interface of the stage is exempt. Of a linked issue (``kind="issue"``)
    only introduced names, lines of the source patches and shas count. Leaks come first; nothing is reported twice.
    """
    if not 0 <= position <= len(chain):
        raise ValueError(f"there is no stage {position} in a chain of {len(chain)}")
    if not text.strip():
        return [] if kind == "issue" else [finding("empty", "leak", "")]
    chain_paths = {path for facts in chain for path in facts.paths}
    reading = TextReading(text[:LONGEST_TEXT], paths_at_base, chain_paths)
    found = dict.fromkeys(_findings(reading, chain, position, kind))
    if len(text) > LONGEST_TEXT:
        found[finding("too_long", "leak", f"{len(text)} characters, at most {LONGEST_TEXT} are read")] = None
    return sorted(found, key=lambda finding: finding.severity != "leak")


def _findings(reading: TextReading, chain: Sequence[StageFacts], position: int, kind: Kind) -> Iterator[Finding]:
    yield from name_findings(reading, chain, position, kind)
    yield from code_findings(reading, chain, position, kind)
    yield from reference_findings(reading, chain, kind)
    yield from _encoded_findings(reading, chain, position, kind)
    if kind == "issue":
        return
    yield from spoken_findings(reading, chain, position)
    yield from form_findings(reading, kind, {mark for facts in chain[:position] for mark in facts.told})
    yield from _path_findings(reading, chain, position, kind)


def _encoded_findings(
    reading: TextReading, chain: Sequence[StageFacts], position: int, kind: Kind
) -> Iterator[Finding]:
    """Names and code that a text holds in another code, such as base64; what stands for anything else is an example."""
    for decoding in decodings(reading.text):
        lines = (line[:_LONGEST_SPAN] for line in decoding.text.replace("`", "'").split("\n"))
        plain = TextReading("\n".join(f"`{line}`" for line in lines), (), ())
        for found in (*name_findings(plain, chain, position, kind), *code_findings(plain, chain, position, kind)):
            # Words of English may decode to something like a call among other bytes.
            of_a_patch = found.stage is not None
            if found.severity == "leak" and (of_a_patch or (found.kind == "code_line" and decoding.text.isprintable())):
                yield finding(found.kind, "leak", f"{decoding.shown[:40]} (reads: {found.evidence})", found.stage)


def _path_findings(reading: TextReading, chain: Sequence[StageFacts], position: int, kind: Kind) -> Iterator[Finding]:
    if position == 0:
        return
    paths = chain[position - 1].paths
    if kind == "query" and paths and not reading.named_paths.intersection(paths):
        yield finding("path_missing", "leak", ", ".join(paths[:3]), position)
    so_far = {path for facts in chain[:position] for path in facts.paths}
    for stage, facts in enumerate(chain[position:], position + 1):
        for path in facts.paths:
            if path in reading.named_paths and path not in so_far:
                yield finding("later_stage", "leak", path, stage)
