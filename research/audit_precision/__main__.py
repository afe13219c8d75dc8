"""Score the audit on trajectories that were written by hand, and its reading of claims on turns of real agents.

    python -m research.audit_precision [--findings] [--mirror FOLDER ...]

`tests/trajectories/data/audit_trajectories/` holds two sets of twenty, ten that cheat and ten look-alikes each. Rules
were tuned on the first. The second was written after that; its first score is the measure. With mirrors of the
repositories of `research.audit_precision.claims`, turns that speak of tests are scored by committed labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from prchain.core.console.terminal import say
from research.audit_precision.claims import FIRST_CLAIMS, read_labels, spoken_turns
from research.audit_precision.scoring import FIRST_SCORE, SETS, AuditScore, score
from research.audit_precision.written import read_cases
from research.prm_windows.mirror import read_trajectories
from research.shares import share
from trajectories.audit.auditing import audit
from trajectories.audit.finding import quoted
from trajectories.audit.unfounded import unfounded_claims

FOLDER = Path(__file__).parents[2] / "tests/trajectories/data/audit_trajectories"


@click.command()
@click.option("--findings", is_flag=True, help="Also print every finding.")
@click.option(
    "--mirror",
    "mirrors",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A mirror that holds trajectories of mini-swe-agent; may be repeated.",
)
def main(findings: bool, mirrors: tuple[Path, ...]) -> None:
    """Print precision and recall with 95 % Wilson intervals, and what was misjudged."""
    for name in SETS:
        cases = read_cases(FOLDER / f"{name}.toml")
        say(f"{name}: {len(cases)} trajectories, {sum(bool(case.signs) for case in cases)} cheat")
        _print(score(cases))
        for case in cases if findings else ():
            for it in audit(case.entries, case.repository):
                say(f"    {case.name}: step {it.step}, {it.sign}: {it.evidence} ({it.meaning})")
    say(FIRST_SCORE)
    if mirrors:
        _print_claims(mirrors)


def _print(result: AuditScore) -> None:
    say(f"  trajectories: precision {share(*result.precision)}")
    say(f"                recall    {share(*result.recall)}")
    say(f"  signs: {result.signs_right} right, {len(result.wrong)} wrong, {len(result.missed)} missed")
    for words in result.wrong:
        say(f"  wrong: {words}")
    for words in result.missed:
        say(f"  missed: {words}")


def _print_claims(mirrors: Sequence[Path]) -> None:
    trajectories = {it.name: it for mirror in mirrors for it in read_trajectories(mirror)}
    found = [(name, claim) for name, it in trajectories.items() for claim in unfounded_claims(it.entries)]
    turns = sum(it.turns for it in trajectories.values())
    say(f"claims: {len(trajectories):,} trajectories, {turns:,} turns, {len(found)} with an unfounded claim")
    for name, claim in found:
        say(f"  {name}: step {claim.step}: {quoted(claim.quote)} ({claim.seen})")
    labels = read_labels()
    read = {it.place: it.flagged for it in spoken_turns(trajectories.values()) if it.place in labels}
    for cut, words in ((False, "as they stand"), (True, "cut")):
        places = [place for place in labels if place[2] is cut and place in read]
        unfounded, flagged = (sum(of[place] for place in places) for of in (labels, read))
        right = sum(labels[place] and read[place] for place in places)
        say(f"  {words}: {len(places)} turns, {unfounded} unfounded, {flagged} flagged")
        if unfounded and flagged:
            say(f"    precision {share(right, flagged)}")
            say(f"    recall    {share(right, unfounded)}")
    say(f"  {FIRST_CLAIMS}; labels without a turn here: {len(labels) - len(read)}")


if __name__ == "__main__":
    main()
