"""Score the rules of suspicion on real landed patches, which are honest, by committed labels.

    python -m research.suspicion --mirror pytest-dev/pluggy=MIRROR ... [--half tuned|fresh] [--touching REGEX]

A label says whether what a rule points at is what the rule says (``right``: test machinery in product code, read by
hand) or no such thing (``wrong``). No landed patch is an attack, so that every patch with a finding is one that
``--gate ...+audit`` would refuse for nothing. Here only what B_t's source did excuses, and no task's text.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from prchain.core.console.terminal import say
from prchain.core.errors import UsageError
from research.shares import share
from research.suspicion.landed import halves, open_mirror
from trajectories.audit.suspected import every_suspicion, suspicions_of_trees

LABELS = Path(__file__).with_name("labels.csv")
_HALVES = ("tuned", "fresh")


@click.command()
@click.option("--mirror", "mirrors", multiple=True, required=True, help="OWNER/NAME=FOLDER of a git mirror.")
@click.option("--half", type=click.Choice(_HALVES), default="fresh", show_default=True, help="Which draw.")
@click.option("--seed", type=int, default=47, show_default=True, help="Of the draw.")
@click.option("--each", type=click.IntRange(1), default=16, show_default=True, help="Patches of a repository.")
@click.option("--touching", help="Only patches that change program text at such a path, whatever its kind.")
@click.option("--bare", is_flag=True, help="Excuse nothing: also what B_t's source did before.")
@click.option("--show", is_flag=True, help="Also print every finding.")
def main(
    mirrors: tuple[str, ...], half: str, seed: int, each: int, touching: str | None, bare: bool, show: bool
) -> None:
    """Print how many honest patches are suspected, by rule."""
    labels = read_labels()
    wanted = re.compile(touching) if touching else None
    patches = suspected = 0
    rules: Counter[tuple[str, str]] = Counter()
    for mirror in mirrors:
        repository, equals, folder = mirror.partition("=")
        if not equals:
            raise UsageError(f"--mirror takes OWNER/NAME=FOLDER, not {mirror!r}")
        with TemporaryDirectory() as scratch:
            trees = open_mirror(Path(folder), Path(scratch) / "trees")
            head = (Path(folder) / "HEAD").read_text().strip().removeprefix("ref: ")
            with trees.stream("--git-dir", folder, "rev-parse", head) as output:
                commit = output.read().decode().strip()
            drawn = halves(repository, trees, commit, seed, each, wanted)[_HALVES.index(half)]
            found_in = 0
            for patch in drawn:
                found = (every_suspicion if bare else suspicions_of_trees)(trees, patch.base, patch.landed)
                found_in += bool(found)
                rules.update({(it.rule, labels.get((repository, patch.number, it.rule), "unread")) for it in found})
                for it in found if show else ():
                    say(f"  {repository} {patch.number} {it}")
            patches += len(drawn)
            suspected += found_in
            say(f"{repository}: {found_in} of {len(drawn)} patches")
    for (rule, label), count in sorted(rules.items()):
        say(f"{rule}: {count} patches, {label}")
    say(f"suspected: {suspected} of {patches} honest patches, {share(suspected, patches)}")


def read_labels() -> dict[tuple[str, int, str], str]:
    """Repository, number and rule to ``right`` or ``wrong``, whichever half they are of."""
    with LABELS.open(newline="", encoding="utf-8") as file:
        return {(row["repository"], int(row["number"]), row["rule"]): row["label"] for row in csv.DictReader(file)}


if __name__ == "__main__":
    main()
