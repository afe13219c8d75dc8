"""Which stages of a task SWE-bench's harness can grade, from what the validation of chains found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from chains.tasks.record import TaskRecord
from chains.tasks.swebench import HarnessTests, instance
from prchain.core.errors import UsageError
from sql.outcomes import PROVED
from sql.store import Store
from sql.tables import StageTests

_COLUMNS = ("position", "outcome", "stage_image", "runner", "command", "classes")


@dataclass(frozen=True, slots=True)
class OmittedStage:
    """A stage without an instance, and why."""

    chain_id: str
    position: int
    reason: str


def harness_lines(
    store: Store, tasks: Iterable[TaskRecord], left_out: Callable[[OmittedStage], None]
) -> Iterator[dict[str, Any]]:
    """SWE-bench instances of the tasks' stages, in order; stages without one go to `left_out`. Raises `StoreError`."""
    for task in tasks:
        known = read_tests(store, task.chain_id)
        for stage in task.stages:
            tests = known.get(stage.position, "the chain is not validated; run `prchain environments validate`")
            try:
                if isinstance(tests, str):
                    raise UsageError(tests)
                yield instance(task, stage, tests)
            except UsageError as error:
                left_out(OmittedStage(task.chain_id, stage.position, str(error)))


def read_tests(store: Store, chain_id: str) -> dict[int, HarnessTests | str]:
    """Each stage's tests, by position: the values for an instance, or the reason why there can be none."""
    with store.reading() as tx:
        return {int(row[0]): _tests(*row[1:]) for row in tx.rows(StageTests, *_COLUMNS, chain_id=chain_id)}


def _tests(
    outcome: str, image: str | None, runner: str | None, command: str | None, classes: dict[str, list[str]]
) -> HarnessTests | str:
    if outcome != PROVED:
        return f"its tests are {outcome}"
    if not image or not runner or not command:
        return "there is no image of its checkout; run `prchain environments validate --stage-images`"
    f2p, p2p = classes.pop("f2p", []), classes.pop("p2p", [])
    others = [test for tests in classes.values() for test in tests]
    return HarnessTests(image=image, runner=runner, command=command, f2p=f2p, p2p=p2p, others=others)
