"""Measure lineage: owners against `git blame`, the walk against `git log -p`, and what it finds.

    python -m research.lineage blame --db FILE --mirrors FOLDER [--landings N] [--lines N] [--seed N] [OWNER/NAME ...]
    python -m research.lineage speed --db FILE --mirrors FOLDER [--new N] [OWNER/NAME ...]
    python -m research.lineage found --db FILE

`blame` draws landings (a part of them rebases, a part on other branches than the default one) and whole files at them,
renamed ones first, and compares the owner of every line with what ``git blame --first-parent`` says. `speed` copies the
database, hides the newest landings of each repository, and times the whole walk, the walk over what is new and a walk
with nothing new, with ``git log --first-parent -p -U0 -M`` over the same lines in the same run. `found` counts pairs.
"""

from __future__ import annotations

import click

from research.lineage.against_blame import blame
from research.lineage.against_log import speed
from research.lineage.found import found


@click.group()
def main() -> None:
    """Measure lineage."""


main.add_command(blame)
main.add_command(speed)
main.add_command(found)


if __name__ == "__main__":
    main()
