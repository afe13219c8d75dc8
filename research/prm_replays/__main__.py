"""Print what readings of real windows by process reward models came to; they were answered by hand.

    python -m research.prm_replays                                        # from the committed rows
    python -m research.prm_replays --mirrors DIR --write-db FILE          # the windows, for `prchain prm replay`
    python -m research.prm_replays --mirrors DIR --read FILE --out CSV    # what a replay stored, as rows

DIR holds mirrors with all their refs, each named owner+name: of SWE-agent/mini-swe-agent, whose history holds real
trajectories, and of the repositories in `selection.REPOSITORIES`. Every window is the only one of a replay with
``--prm D:every=8``. Whoever answers sees the prompt alone.
"""

from __future__ import annotations

from pathlib import Path

import click

from prchain.core.errors import PrchainError, UsageError
from research.prm_replays.figures import print_figures
from research.prm_replays.references import References, mirror_of
from research.prm_replays.selection import cut, selection
from research.prm_replays.table import REPLAYS, read_scores, read_table, stored_readings, write_table
from research.prm_windows.database import write_database
from research.prm_windows.mirror import read_trajectories

_TRAJECTORIES = "SWE-agent/mini-swe-agent"
_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_OLD = click.Path(exists=True, dir_okay=False, path_type=Path)
_NEW = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--mirrors", type=_FOLDER, help="A folder of mirrors.")
@click.option("--write-db", "new", type=_NEW, help="Write the windows into this new SQLite database.")
@click.option("--read", "replayed", type=_OLD, multiple=True, help="A database that a replay has filled.")
@click.option("--scores", type=_OLD, help="A second reader's scores: variant, trajectory, score, unjustified.")
@click.option("--out", type=_NEW, default=REPLAYS, help="Where the rows go.")
@click.option("--rows", type=_NEW, default=REPLAYS, help="Other rows than the committed ones.")
def main(
    mirrors: Path | None, new: Path | None, replayed: tuple[Path, ...], scores: Path | None, out: Path, rows: Path
) -> None:
    """Print what readings of real windows that were answered by hand came to."""
    try:
        if mirrors is None:
            if new or replayed:
                raise UsageError("--write-db and --read need --mirrors")
            print_figures(read_table(rows))
            return
        source = mirror_of(mirrors, _TRAJECTORIES)
        chosen = selection(read_trajectories(source))
        if new is not None:
            write_database([cut(*one) for one in chosen.values()], new, source)
        if replayed:
            references, said = References(mirrors), read_scores(scores)
            write_table((row for file in replayed for row in stored_readings(file, chosen, references, said)), out)
    except (PrchainError, OSError) as error:
        raise click.ClickException(str(error)) from None


if __name__ == "__main__":
    main()
