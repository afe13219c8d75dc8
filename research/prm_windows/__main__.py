"""Ask the detectors of process reward models about real agents' trajectories, and score them against labels.

    python -m research.prm_windows --mirror FOLDER  # bare, of github.com/SWE-agent/mini-swe-agent with all its refs

The history of that repository holds trajectories of real runs on real repositories. None of their text is kept here:
they are read from the mirror, and `labels.csv` names windows by the id of the file and the last step. The sample is
drawn by hash, before the detectors are asked. Readers see the texts of ``--show``, not what the detectors say. Trees
are guessed from commands (`research.prm_windows.trees`). Exit code 1 where a label names a window that is not there.
"""

from __future__ import annotations

from pathlib import Path

import click

from prchain.core.errors import PrchainError
from research.prm_windows import labels as label_file
from research.prm_windows.database import write_database
from research.prm_windows.mirror import read_trajectories
from research.prm_windows.report import find, print_counts, print_labels, read_by_code
from research.prm_windows.windows import sample, windows_of, with_findings, write_texts


@click.command()
@click.option(
    "--mirror",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="A mirror of SWE-agent/mini-swe-agent with all its refs.",
)
@click.option(
    "--write-db",
    "database",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write the trajectories into this new SQLite database, for `prchain prm replay`.",
)
@click.option(
    "--show",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write the windows to label into this new folder, for readers.",
)
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=label_file.LABELS,
    help="Other labels.",
)
def main(mirror: Path, database: Path | None, folder: Path | None, labels: Path) -> None:
    """Count what the detectors find in real trajectories, and score it against readers' labels."""
    try:
        trajectories = read_trajectories(mirror)
        windows = [window for trajectory in trajectories for window in windows_of(trajectory)]
        said = label_file.read(labels, {window.place for window in windows})
        drawn = sample(windows)
        found = find(trajectories)
        if folder is not None:
            write_texts([*drawn, *with_findings(windows, read_by_code(windows, found), drawn)], folder)
        if database is not None:
            write_database(trajectories, database, mirror)
    except (PrchainError, OSError) as error:
        raise click.ClickException(str(error)) from None
    print_counts(trajectories, windows, drawn, found)
    print_labels(windows, drawn, found, said)


if __name__ == "__main__":
    main()
