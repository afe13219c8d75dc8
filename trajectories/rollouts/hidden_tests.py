"""What a stage's hidden tests say of the state that it starts from, and of what the agent left."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from environments.suites.outcomes import Grade, StateCheck, check_state, grade
from environments.suites.testlogs import Status
from prchain.errors import RefreshFailed
from trajectories.rollouts.state import RolloutContext
from trajectories.task import StageTask


class HiddenTests:
    """The tests of one stage of a rollout. Without proved tests, or where nobody wants them, they say nothing: None."""

    def __init__(self, rollout: RolloutContext, stage: StageTask) -> None:
        self._rollout = rollout
        self._stage = stage
        wanted = rollout.options.tests == "always" or rollout.options.needs_tests
        self._tests = stage.tests if wanted else None

    def check(self, start_tree: str) -> StateCheck | None:
        """What a run on S_t says. On B_t itself it is known without one."""
        if self._tests is None:
            return None
        chain_context = self._rollout.chain_context
        if start_tree == chain_context.trees.tree_of(self._stage.stage.base):
            return StateCheck()
        classes = self._tests.classes
        return check_state(classes, self._tests.before, self._statuses(start_tree, classes.p2p))

    def grade(self, tree: str, checked: Mapping[str, Any]) -> Grade | None:
        """What a run on A_t says; `checked` are the fields of the `StateCheck` of S_t, as they are stored."""
        if self._tests is None:
            return None
        fields: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in checked.items()
        }
        check = StateCheck(**fields)
        classes = self._tests.classes
        wanted = {*classes.f2p, *classes.p2p} - {*check.carried_failure}
        earlier = self._rollout.chain_context.task.earlier_f2p(self._stage.position)
        return grade(classes, check, self._statuses(tree, wanted), earlier_f2p=earlier)

    def _statuses(self, tree: str, wanted: Collection[str]) -> Mapping[str, Status]:
        """What the tests say of a tree; nothing, where the tree cannot be made ready to run.

        A run that says nothing (out of time or memory, lost), or in which one of the `wanted` tests does not pass, is
        made once more, and what passes then counts: of what always passed in validation some is flaky all the same
        (measured: a test of click's pager failed once in ten runs of the reference).
        """
        suite = self._rollout.chain_context.suite(self._stage)
        try:
            first = suite.run(tree)
            if first.usable and all(first.statuses.get(test) is Status.passed for test in wanted):
                return first.statuses
            second = suite.run(tree)
        except RefreshFailed:
            return {}
        passed = {test: status for test, status in second.statuses.items() if status is Status.passed}
        return {**second.statuses, **first.statuses, **passed} if first.usable else second.statuses
