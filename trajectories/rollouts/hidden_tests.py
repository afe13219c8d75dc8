"""Results of a stage's hidden tests, on the state that it starts from and on the agent's tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from environments.graded_runs import graded_run
from environments.suites.outcomes import Grade, StateCheck, asks_nothing, check_state, grade
from environments.suites.testruns import TestRun
from prchain.core.errors import SandboxLost
from prchain.core.waiting import waiting_for
from trajectories.rollouts.chain_context import ChainContext
from trajectories.rollouts.kept_grades import KeptGrades
from trajectories.rollouts.state import RolloutContext
from trajectories.task import ProvedTests, StageTask

_LOST = SandboxLost("").name


class HiddenTests:
    """The hidden tests of a stage. Results are None without proved tests, or where the options turn them off.

    Both ways raise `SandboxLost` where a machine ended the runs: such runs say nothing of the tree.
    """

    def __init__(self, rollout: RolloutContext, stage: StageTask) -> None:
        self._rollout = rollout
        self._stage = stage
        self._tests = stage.tests if rollout.options.runs_tests else None

    def check(self, start_tree: str) -> StateCheck | None:
        """The check of S_t by a test run. Where S_t is B_t no run is needed."""
        if self._tests is None:
            return None
        chain_context = self._rollout.chain_context
        if start_tree == chain_context.trees.tree_of(self._stage.stage.base):
            return StateCheck()
        classes = self._tests.classes
        with waiting_for("hidden tests on the files that it starts with"):
            suite = self._rollout.chain_context.suite(self._stage)
            run = graded_run(suite, start_tree, classes.p2p, is_start=True)
        _require_sandbox(run)
        return check_state(classes, self._tests.before, run.statuses)

    def ask_nothing(self, check: StateCheck) -> bool:
        """`asks_nothing` of the stage's proved tests; False without any."""
        return self._tests is not None and asks_nothing(self._tests.classes, check)

    def grade(self, tree: str, checked: Mapping[str, Any], attempt: int) -> Grade | None:
        """The grade of A_t, an attempt's, by a test run, or by that of an equal tree; `checked` holds the stored fields
        of the `StateCheck` of S_t."""
        if self._tests is None:
            return None
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in checked.items()
        }
        check, context = StateCheck(**fields), self._rollout.chain_context
        grades = KeptGrades(self._rollout.store, context.task.chain.id, self._stage, self._tests, check)
        asker = f"{self._rollout.trajectory}/{self._stage.position}.{attempt}"
        if known := grades.find(tree, asker):
            return known
        found, run = graded(context, self._stage, self._tests, tree, check)
        _require_sandbox(run)
        if run.usable:
            grades.keep(tree, found, asker)
        return found


def _require_sandbox(run: TestRun) -> None:
    if run.infra == _LOST:
        raise SandboxLost(f"a sandbox was lost while the hidden tests ran in it: {run.tail}")


def graded(
    chain: ChainContext, stage: StageTask, tests: ProvedTests, tree: str, check: StateCheck
) -> tuple[Grade, TestRun]:
    """What the proved `tests` of a stage say of a tree, with the `check` of the state that it was begun on; and the run
    that says it, which may not be usable."""
    classes = tests.classes
    expected = {*classes.f2p, *classes.p2p} - {*check.carried_failure}
    run = graded_run(chain.suite(stage), tree, expected)
    earlier = chain.task.earlier_f2p(stage.position)
    found = grade(classes, check, run.statuses, earlier_f2p=earlier, cheats=run.cheats, taken_back=run.taken_back)
    return replace(found, safeguard=str(tests.baseline.safeguard)), run
