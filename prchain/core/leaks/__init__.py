"""The leak check: whether a text that a solver will read gives away the reference of its stage or of another one.

Pure and linear in the text; the facts of each stage are made once, from its patch, and hold no code.
"""

from __future__ import annotations

from prchain.core.leaks.check import check
from prchain.core.leaks.facts import StageFacts, candidate_names, stage_facts
from prchain.core.leaks.finding import Finding, Kind, leaking, refusers
from prchain.core.leaks.rewriting import TextVersions, leak_words, until_clean
from prchain.core.leaks.told import telling

__all__ = [
    "Finding",
    "Kind",
    "StageFacts",
    "TextVersions",
    "candidate_names",
    "check",
    "leak_words",
    "leaking",
    "refusers",
    "stage_facts",
    "telling",
    "until_clean",
]
