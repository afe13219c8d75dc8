"""What readers say of windows: `labels.csv`, in the form of `trajectories.studies.guidance.label_file`, by detector.

A label answers whether what the detector looks for is there, in the steps of the window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import combinations
from pathlib import Path

from prchain.core.errors import UsageError
from trajectories.agents.guidance.detectors import DETECTORS
from trajectories.agents.guidance.taxonomy import Category, Family, Taxonomy
from trajectories.studies.guidance.agreement import ReadingAgreement, ReadWindow, agreement_of
from trajectories.studies.guidance.label_file import WindowLabel, read_labels

LABELS = Path(__file__).with_name("labels.csv")


def read(path: Path, known: Collection[ReadWindow]) -> list[WindowLabel]:
    """The labels of a file. Raises `UsageError` for a file that cannot be read, and for a window that is not known."""
    labels = read_labels(path, _detectors())
    for label in labels:
        if label.window not in known:
            where = f"{label.window.trajectory}, step {label.window.last_step}"
            raise UsageError(f"the labels {path}, line {label.line}: there is no window {where}")
    return labels


def reader_agreements(labels: Iterable[WindowLabel]) -> dict[tuple[str, str], dict[str, ReadingAgreement]]:
    """The agreement of each two readers, by detector, over the windows that both have labelled."""
    said: dict[str, dict[tuple[str, ReadWindow], bool]] = {}
    for label in labels:
        said.setdefault(label.reader, {})[label.category, label.window] = label.label
    return {
        (one, other): {name: agreement_of(_pairs(said[one], said[other], name)) for name in DETECTORS}
        for one, other in combinations(sorted(said), 2)
    }


def _pairs(
    one: dict[tuple[str, ReadWindow], bool], other: dict[tuple[str, ReadWindow], bool], name: str
) -> Sequence[tuple[bool, bool]]:
    return [(label, other[key]) for key, label in one.items() if key[0] == name and key in other]


def _detectors() -> Taxonomy:
    """The detectors in the place of categories; their names have hyphens, which those of categories have not."""
    categories = tuple(
        Category.model_construct(name=it.name, title=it.name, definition=it.help, recovery=it.help)
        for it in DETECTORS.values()
    )
    family = Family.model_construct(name="detectors", title="Detectors", about="", categories=categories)
    return Taxonomy.model_construct(families=(family,), hash="")
