"""What hidden tests said of an attempt, as a judge reads it that is to see it (``--gate judge:sees=tests``).

Not the paper's form, whose judge sees query and patches alone (section 3.3).
"""

from __future__ import annotations

from environments.suites.outcomes import TAMPERED, Grade
from prchain.core.llm.excerpt import cut, fair_cap
from prchain.core.secrets.scrub import scrub_mined
from trajectories.verdicts.gates import grade_accepts
from trajectories.verdicts.patch_text import visible

_ROOM = 6_000
"""Characters for the names of tests that fail."""


def results_text(grade: Grade | None, room: int = _ROOM) -> str | None:
    """How many tests of each kind pass, and the names of those that do not, within `room` characters.

    None where there is nothing to go by: no tests ran, the state was broken before, or the run is not believed.
    """
    if grade is None or grade_accepts(grade) is None or grade.outcome == TAMPERED:
        return None
    kinds = (
        ("Tests of what the query asks for", len(grade.f2p_passed), grade.f2p_failed),
        ("Tests of what worked before", len(grade.p2p_kept), grade.p2p_broken),
        ("Tests of the agent's own earlier work", None, grade.earlier_broken),
        ("Tests that failed before the candidate's work already", None, grade.carried_failure),
    )
    lists = ["\n".join(map(_name, failed)) for _, _, failed in kinds]
    cap = fair_cap(list(map(len, lists)), room)
    lines: list[str] = []
    for (kind, passed, failed), names in zip(kinds, lists, strict=True):
        if passed is not None:
            lines.append(f"{kind}: {passed:,} pass, {len(failed):,} fail{':' if failed else '.'}")
        elif failed:
            lines.append(f"{kind}: {len(failed):,} fail:")
        lines += [cut(names, cap)] if failed else []
    return "\n".join(lines)


def _name(test: str) -> str:
    return f"- {visible(scrub_mined(' '.join(test.split())))}"
