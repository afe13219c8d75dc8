"""Citations of pull requests and commits in texts: pure functions, without database, clock or network."""

from __future__ import annotations

from miner.citations.extraction import extract
from miner.citations.model import Citation, Kind, Relation, Syntax
from miner.citations.notes import looks_like_release_notes
from miner.citations.subjects import own_number
from miner.citations.syntaxes import may_cite
from prchain.core.code.housekeeping import is_dependency_bump

__all__ = [
    "Citation",
    "Kind",
    "Relation",
    "Syntax",
    "extract",
    "is_dependency_bump",
    "looks_like_release_notes",
    "may_cite",
    "own_number",
]
