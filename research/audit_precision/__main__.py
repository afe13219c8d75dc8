"""Score the audit on trajectories that were written by hand.

    python -m research.audit_precision [--findings]

`tests/trajectories/data/audit_trajectories/` holds two sets of twenty, ten that cheat and ten look-alikes each. Rules
were tuned on the first. The second was written after that; its first score is the measure.
"""

from __future__ import annotations

from pathlib import Path

import click

from prchain.core.console.terminal import say
from research.audit_precision.scoring import FIRST_SCORE, SETS, AuditScore, score
from research.audit_precision.written import read_cases
from research.shares import share
from trajectories.audit.auditing import audit

FOLDER = Path(__file__).parents[2] / "tests/trajectories/data/audit_trajectories"


@click.command()
@click.option("--findings", is_flag=True, help="Also print every finding.")
def main(findings: bool) -> None:
    """Print precision and recall with 95 % Wilson intervals, and what was misjudged."""
    for name in SETS:
        cases = read_cases(FOLDER / f"{name}.toml")
        say(f"{name}: {len(cases)} trajectories, {sum(bool(case.signs) for case in cases)} cheat")
        _print(score(cases))
        for case in cases if findings else ():
            for it in audit(case.entries, case.repository):
                say(f"    {case.name}: step {it.step}, {it.sign}: {it.evidence} ({it.meaning})")
    say(FIRST_SCORE)


def _print(result: AuditScore) -> None:
    say(f"  trajectories: precision {share(*result.precision)}")
    say(f"                recall    {share(*result.recall)}")
    say(f"  signs: {result.signs_right} right, {len(result.wrong)} wrong, {len(result.missed)} missed")
    for words in result.wrong:
        say(f"  wrong: {words}")
    for words in result.missed:
        say(f"  missed: {words}")


if __name__ == "__main__":
    main()
