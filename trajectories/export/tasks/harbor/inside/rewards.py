"""The files that a verifier leaves: rewards, and a report in CTRF (ctrf.io) that viewers show."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from environments.suites.outcomes import PASSED, Grade


def rewards(grade: Grade, earlier: Collection[str]) -> dict[str, float]:
    """``reward``: 1 where the grade is passed, else 0. Beside it shares of tests that pass: F2P, P2P, and of the latter
    those that are F2P of earlier stages; 1 where there are none, and 0 where the run is not believed."""
    known = {*earlier}
    kept = [test for test in grade.p2p_kept if test not in known], [it for it in grade.p2p_kept if it in known]
    lost = (*grade.p2p_broken, *grade.earlier_broken, *grade.carried_failure)
    broken = [test for test in lost if test not in known], [test for test in lost if test in known]
    shares = {
        "f2p": _share(grade.f2p_passed, grade.f2p_failed),
        "p2p": _share(kept[0], broken[0]),
        "earlier": _share(kept[1], broken[1]),
    }
    if grade.cheats:
        shares = dict.fromkeys(shares, 0.0)
    return {"reward": 1.0 if grade.outcome == PASSED else 0.0, **shares}


def _share(good: Sequence[str], bad: Sequence[str]) -> float:
    return len(good) / (len(good) + len(bad)) if good or bad else 1.0


def ctrf(grade: Grade, runner: str, start: float, stop: float) -> str:
    """The report of the tests that count."""
    passed = [*grade.f2p_passed, *grade.p2p_kept]
    failed = [*grade.f2p_failed, *grade.p2p_broken, *grade.earlier_broken, *grade.carried_failure]
    named = [(test, "passed") for test in passed] + [(test, "failed") for test in failed]
    tests: list[dict[str, Any]] = [{"name": test, "status": status, "duration": 0} for test, status in sorted(named)]
    summary = {
        "tests": len(tests),
        "passed": len(passed),
        "failed": len(failed),
        "pending": 0,
        "skipped": 0,
        "other": 0,
        "start": int(start * 1000),
        "stop": int(stop * 1000),
    }
    extra = {"outcome": grade.outcome, "cheats": list(grade.cheats), "taken_back": list(grade.taken_back)}
    results = {"tool": {"name": runner}, "summary": summary, "tests": tests, "extra": extra}
    return json.dumps({"results": results}, ensure_ascii=False) + "\n"
