"""What the papers' tables compare: their rows, by the name of the file that a model is trained on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

SINGLE, TEMPORAL, AGENCY = "davinci-single", "davinci-temporal", "davinci-agency"
TEST_PASS, ERROR_MASKED, SIZE_MATCHED, FULL = "p2t-test-pass", "p2t-error-masked", "p2t-size-matched", "p2t-full"


class Origin(StrEnum):
    """Where the samples of a row are from."""

    NONE = "none"
    """The model is not trained."""
    OTHERS = "others"
    """Others publish the set."""
    OURS = "ours"


class SetRow(NamedTuple):
    """A row of a table whose models differ in what they were trained on."""

    title: str
    """As the paper has it."""
    name: str
    """Of the file without its ending; the model that is trained on it is looked for under this name, too."""
    origin: Origin = Origin.OURS

    def file(self, folder: Path) -> Path:
        """The file of the row's samples."""
        return folder / f"{self.name}.jsonl"


SETS: Mapping[str, tuple[SetRow, ...]] = {
    "davinci": (
        SetRow("untrained", "davinci-base", Origin.NONE),
        SetRow("SWE-Smith", "swe-smith", Origin.OTHERS),
        SetRow("CC-Bench", "cc-bench", Origin.OTHERS),
        SetRow("CodeAgent", "codeagent", Origin.OTHERS),
        SetRow("SinglePR", SINGLE),
        SetRow("Temporal", TEMPORAL),
        SetRow("daVinci", AGENCY),
    ),
    "p2t": (
        SetRow("Test-Pass RS", TEST_PASS),
        SetRow("SWE-Lego", ERROR_MASKED),
        SetRow("Size-Matched", SIZE_MATCHED),
        SetRow("Full", FULL),
    ),
}
"""Table 1 of daVinci-Agency, and of P2T. SWE-PRM trains nothing."""

ABLATIONS = (
    SetRow("Full", FULL),
    SetRow("RS, 4 passes", "p2t-compute-matched"),
    SetRow("Ungrounded", "p2t-ungrounded"),
    SetRow("Any commit", "p2t-any-commit"),
)
"""What P2T compares the full set with besides: rejection sampling by as much compute (table 5), and curation without
groundedness, or without the shortest segment (section 5.4)."""

ELSEWHERE = ("Toolathlon", "DS-1000", "retail", "airline", "SciCode")
"""Benchmarks of daVinci-Agency's table 1 that are not software engineering in repositories; two of them are parts of
tau2-bench."""

OPEN_PRM = ("S", "C", "CG", "D", "DN", "DG", "DNG", "DR")
"""The variants of SWE-PRM's table 2, where the model that guides is the one that works."""

EXPERT_PRM = ("S", "D", "DR")
"""The variants of its table 3, where another one guides."""
