"""The stored signs of an edge as people are told them: without counts of lines.

How many lines a pull request changes of another is one number, which lineage counts (`sql.link_changes`). Signs were
weighed by other ones, the first three by texts that two patches share. What is stored keeps these: it is part of what
the writers of tasks are asked, and other words would ask, and pay, again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_WITHOUT_COUNTS = {
    "line_dependency": "changes what it added",
    "neighbour_lines": "changes what stands beside what it added",
    "small_overlap": "that is little of what it adds and removes",
    "source_lines": "changes its source files",
}
"""By the names of `chains.edges.evidence`."""


def told_signs(signs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The signs, with details for people."""
    return [{**sign, "detail": _WITHOUT_COUNTS.get(sign["sign"], sign["detail"])} for sign in signs]
