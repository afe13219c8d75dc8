"""The variants of a process reward model: three axes and a flag (SWE-PRM, section 3.2.3 and table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple


class Style(StrEnum):
    """What the model is told of what can go wrong, and how much it says."""

    SIMPLE = "simple"
    """Seven common patterns, no taxonomy; free prose."""
    CONCISE = "concise"
    """Categories with their definitions; one or two sentences of guidance."""
    DETAILED = "detailed"
    """Categories with definitions and recoveries; as much guidance as is needed."""


class Reads(StrEnum):
    """What of a reply the agent reads."""

    ALL = "all"
    GUIDANCE = "guidance"
    """The guidance alone; with an action, that too."""


class Variant(NamedTuple):
    """A point on the axes. `action`: the model also names one concrete next call."""

    style: Style
    example: bool
    reads: Reads
    action: bool


VARIANTS: Mapping[str, Variant] = {
    "S": Variant(Style.SIMPLE, False, Reads.ALL, False),
    "C": Variant(Style.CONCISE, True, Reads.ALL, False),
    "CG": Variant(Style.CONCISE, True, Reads.GUIDANCE, False),
    "D": Variant(Style.DETAILED, True, Reads.ALL, False),
    "DN": Variant(Style.DETAILED, False, Reads.ALL, False),
    "DG": Variant(Style.DETAILED, True, Reads.GUIDANCE, False),
    "DNG": Variant(Style.DETAILED, False, Reads.GUIDANCE, False),
    "DR": Variant(Style.DETAILED, True, Reads.ALL, True),
}
"""The paper's eight. Its listing 3 has no example, table 1 says that C and CG have one: here they have."""

ReplyForm = Literal["text", "json"]


def variant_name(variant: Variant) -> str:
    """The paper's name of a variant; for one that it does not have, its axes in words (``concise-noexample-all``)."""
    for name, known in VARIANTS.items():
        if known == variant:
            return name
    words = [variant.style, "example" if variant.example else "noexample", variant.reads]
    return "-".join([*words, *(["action"] if variant.action else [])])
