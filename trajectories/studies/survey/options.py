"""What a survey is asked for."""

from __future__ import annotations

from dataclasses import dataclass

from prchain.core.cli_options import WHICH
from prchain.core.told import told


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """The sample, and what is done with it."""

    sample: int = told(
        24,
        "Landings that are drawn; a larger sample holds the smaller one.",
        WHICH,
        why="a landing takes minutes, and four times as many halve the interval",
        least=1,
        most=10_000,
        metavar="N",
    )
    seed: int = told(
        1,
        "What the draw follows from: the same seed draws the same.",
        WHICH,
        why="a sample that nobody has tuned on, and one that others can draw again",
        metavar="N",
    )
    retry: bool = told(
        False,
        "Begin anew with landings that ended and were not proved.",
        WHICH,
        why="whoever changed a recipe, a registry or the machine since",
    )
    dry_run: bool = told(
        False,
        "Draw, and tell what is known of the sample; prove nothing.",
        WHICH,
        why="to see the sample before hours of builds, and how far a survey has got",
    )
