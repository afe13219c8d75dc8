"""Score the detectors of process reward models on windows of real agents.

    python -m research.prm_windows --mirror DIR [--show FOLDER] [--write-db FILE]

DIR is a mirror of SWE-agent/mini-swe-agent with the heads of its pull requests; trajectories of real runs are in #816.
`labels.csv` holds facts only: trajectory (the beginning of its blob's id), last step, detector, label, reader. Neither
reader saw the other's labels, nor what the detectors say; each label answers whether what the detector is for happens
within the window's steps. Where the readers differ, the label is left out.

`--show` writes the sample for readers; `--write-db` a database that `prchain prm replay` reads. Exit code 1 where a
label is of no window of the sample.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from prchain.shares import wilson
from prchain.terminal import counted, say, say_table
from research.prm_windows.database import write_database
from research.prm_windows.public import PublicTrajectory, public_trajectories
from research.prm_windows.sample import SampledWindow, drawn, show
from trajectories.prm.agreement import agreement_of
from trajectories.prm.detecting import find_all
from trajectories.prm.detectors import DETECTORS
from trajectories.prm.settings import WINDOW

LABELS = Path(__file__).with_name("labels.csv")

Place = tuple[str, int, str]
"""Trajectory, last step, detector."""


@click.command()
@click.option("--mirror", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--show", "folder", type=click.Path(file_okay=False, path_type=Path), help="Write the sample here.")
@click.option("--write-db", type=click.Path(dir_okay=False, path_type=Path), help="Write a database to replay.")
@click.option("--windows", type=int, default=30, show_default=True, help="Windows of the sample in the database.")
def main(mirror: Path, folder: Path | None, write_db: Path | None, windows: int) -> None:
    """Count what the detectors find, and score them by labels."""
    trajectories = list(public_trajectories(mirror))
    sample = drawn(trajectories)
    if folder is not None:
        show(sample, folder)
    if write_db is not None:
        write_database(write_db, [it for it in sample if len(it.window.steps) == WINDOW][:windows])
    say(f"{counted(len(trajectories), 'trajectory')}, {counted(len(sample), 'window')} in the sample")
    count_findings(trajectories)
    labels = read_labels(LABELS)
    if labels and not score(sample, labels):
        raise SystemExit(1)


def count_findings(trajectories: Sequence[PublicTrajectory]) -> None:
    """Print the findings over all trajectories, by detector."""
    findings: Counter[str] = Counter()
    having: Counter[str] = Counter()
    for trajectory in trajectories:
        names = [finding.detector for finding in find_all(trajectory.entries, 0)]
        findings.update(names)
        having.update(set(names))
    say_table(("detector", "findings", "trajectories"), [(name, findings[name], having[name]) for name in DETECTORS])


def read_labels(path: Path) -> dict[str, dict[Place, bool]]:
    """Reader to labels."""
    labels: dict[str, dict[Place, bool]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            place = (row["trajectory"], int(row["last_step"]), row["category"])
            labels.setdefault(row["reader"], {})[place] = row["label"] == "yes"
    return labels


def score(sample: Sequence[SampledWindow], labels: Mapping[str, Mapping[Place, bool]]) -> bool:
    """Print precision and recall of each detector, and the readers' agreement. Returns whether all labels are known."""
    found = {
        (window.trajectory.name, window.last, finding.detector)
        for window in sample
        for finding in find_all([it for it in window.trajectory.entries if it.step <= window.last], window.window.first)
    }
    places = {(window.trajectory.name, window.last, name) for window in sample for name in DETECTORS}
    unknown = {place for of in labels.values() for place in of} - places
    if unknown:
        say(f"{counted(len(unknown), 'label')} of no window of the sample, such as {sorted(unknown)[0]}", err=True)
    one, other = [*labels.values(), {}, {}][:2]
    shared = sorted(one.keys() & other.keys() & places)
    agreed = {place: one[place] for place in shared if one[place] == other[place]}
    rows = []
    for name in [*DETECTORS, "all"]:
        mine = [place for place in agreed if name in (place[2], "all")]
        tp = sum(agreed[place] and place in found for place in mine)
        fp = sum(not agreed[place] and place in found for place in mine)
        fn = sum(agreed[place] and place not in found for place in mine)
        kappa = agreement_of((one[place], other[place]) for place in shared if name in (place[2], "all")).kappa
        disputed = sum(name in (place[2], "all") for place in shared) - len(mine)
        rows.append((name, tp, fp, fn, _share(tp, tp + fp), _share(tp, tp + fn), disputed, _plain(kappa)))
    say_table(("detector", "tp", "fp", "fn", "precision", "recall", "disputed", "kappa"), rows)
    return not unknown


def _share(hits: int, total: int) -> str:
    if not total:
        return "-"
    low, high = wilson(hits, total)
    return f"{100 * hits / total:.0f} ({100 * low:.0f}-{100 * high:.0f})"


def _plain(kappa: float | None) -> str:
    return "-" if kappa is None else f"{kappa:.2f}"


if __name__ == "__main__":
    main()
