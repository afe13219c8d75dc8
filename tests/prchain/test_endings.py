"""How commands end: one rule for exit codes, and each cause told once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest

from prchain.core.endings import cause_of, end_command, say_causes, say_end, what_to_do
from prchain.core.runs import TAKEN, UnitResult

ROOT = Path(__file__).parents[2]

IDS = [f"{number:016x}" for number in range(5)]


@dataclass(frozen=True)
class Thing:
    """A unit."""

    key: str

    @property
    def group(self) -> str:
        """The unit alone."""
        return self.key


def failed(outcome: str, *reasons: str) -> list[UnitResult[Any]]:
    return [UnitResult(Thing(key), outcome, reason) for key, reason in zip(IDS, reasons, strict=False)]


@pytest.mark.parametrize(
    ("done", "good", "code", "says"),
    [
        (True, 1, 0, ""),
        (True, 0, 1, "no task is ready\n"),
        (False, 1, 1, ""),
        (False, 0, 1, ""),
    ],
)
def test_the_exit_code_is_0_where_all_is_done_and_some_of_it_succeeded(
    done: bool, good: int, code: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def command() -> None:
        end_command(done=done, good=good, nothing="no task is ready")

    with pytest.raises(SystemExit) as ended:
        command([])
    assert ended.value.code == code
    assert capsys.readouterr().err == says


def test_no_command_has_a_rule_of_its_own_for_its_exit_code() -> None:
    packages = ("prchain", "sql", "miner", "chains", "environments", "trajectories")
    ends = re.compile(r"context\(\)\.exit\(|\b(?:ctx|context)\.exit\(|^    exit_code = [12]$", re.M)
    found = {
        path.relative_to(ROOT).as_posix()
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        if ends.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"prchain/core/endings.py", "prchain/core/errors.py"}


def test_one_cause_at_several_places_is_told_once_with_its_count(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = [f"stage {n}: plan of {id_}/{n}: no JSON" for n, id_ in enumerate(IDS, 1)]
    say_causes([*failed("bad_reply", *reasons[:3]), *failed("bad_reply", "overview: other")])
    err = capsys.readouterr().err
    assert err.splitlines() == [f"{IDS[0]} and 2 more: bad_reply: no JSON", f"{IDS[0]}: bad_reply: other"]
    assert cause_of("stage 2: judge of 00000000000000aa/stage/1: x") == "x" and cause_of(None) is None


def test_what_stopped_a_run_is_not_told_again_where_a_unit_told_it(capsys: pytest.CaptureFixture[str]) -> None:
    down = failed("endpoint_refused", *["bad key"] * 3)
    stopped = "3 tasks in a row ended endpoint_refused, as the others would"
    for told in (False, True):
        say_end("task", () if told else down, 4, f"{stopped}: bad key", told=down if told else ())
        assert capsys.readouterr().err.splitlines()[0] == f"stopped early: {stopped}"
    say_end("task", failed("budget_exceeded", "0.5 USD are spent"), 1, "0.5 USD are spent")
    assert capsys.readouterr().err == "2 tasks not done (1 of them not begun); a larger --budget goes on\n"
    say_end("task", (), 1, f"{stopped}: bad key")
    assert capsys.readouterr().err.startswith(f"stopped early: {stopped}: bad key\n")


@pytest.mark.parametrize(
    ("outcomes", "says"),
    [
        ([TAKEN, TAKEN], "another run works on them"),
        ([TAKEN, "endpoint_refused"], "mend what is said above"),
        (["not_begun"], "mend what is said above"),
        (["budget_exceeded", "not_begun"], "a larger --budget goes on"),
        ([], "mend what is said above"),
    ],
)
def test_where_other_runs_work_on_all_that_is_left_nothing_is_to_be_mended(outcomes: list[str], says: str) -> None:
    assert what_to_do(outcomes).startswith(says)
