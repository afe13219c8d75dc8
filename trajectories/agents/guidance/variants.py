"""The variants of a process reward model: three axes and a flag (SWE-PRM, section 3.2.3 and table 1)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple


class PrmStyle(StrEnum):
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


class PrmVariant(NamedTuple):
    """A point on the axes. `action`: the model also names one concrete next call."""

    style: PrmStyle
    example: bool
    reads: Reads
    action: bool


VARIANTS: Mapping[str, PrmVariant] = {
    "S": PrmVariant(PrmStyle.SIMPLE, False, Reads.ALL, False),
    "C": PrmVariant(PrmStyle.CONCISE, True, Reads.ALL, False),
    "CG": PrmVariant(PrmStyle.CONCISE, True, Reads.GUIDANCE, False),
    "D": PrmVariant(PrmStyle.DETAILED, True, Reads.ALL, False),
    "DN": PrmVariant(PrmStyle.DETAILED, False, Reads.ALL, False),
    "DG": PrmVariant(PrmStyle.DETAILED, True, Reads.GUIDANCE, False),
    "DNG": PrmVariant(PrmStyle.DETAILED, False, Reads.GUIDANCE, False),
    "DR": PrmVariant(PrmStyle.DETAILED, True, Reads.ALL, True),
}
"""The paper's eight. Its listing 3 has no example, table 1 says that C and CG have one: here they have."""

ReplyForm = Literal["text", "json"]


def variant_name(variant: PrmVariant) -> str:
    """The paper's name of a variant; for one that it does not have, its axes in words (``concise-noexample-all``)."""
    for name, known in VARIANTS.items():
        if known == variant:
            return name
    words = [variant.style, "example" if variant.example else "noexample", variant.reads]
    return "-".join([*words, *(["action"] if variant.action else [])])
