"""Grades of trees that hidden tests graded before: an equal tree is graded once by a proof."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from environments.graded_runs import GRADING
from environments.suites.outcomes import Grade, StateCheck
from prchain.core.timestamps import now
from sql.store import Store
from sql.tables import GradedTree
from trajectories.identity import digest
from trajectories.task import ProvedTests, StageTask

_LISTS = frozenset(field.name for field in fields(Grade) if field.name not in {"outcome", "safeguard", "reused"})


class KeptGrades:
    """The grades of one stage's trees by its proved tests, begun on a state with this check."""

    def __init__(
        self, store: Store, chain_id: str, stage: StageTask, tests: ProvedTests, check: StateCheck | None = None
    ) -> None:
        facts = (asdict(tests.classes), asdict(tests.baseline), asdict(check or StateCheck()))
        proof = digest((GRADING, tests.files, tests.image, *facts))
        self._store = store
        self._key: dict[str, Any] = {"chain_id": chain_id, "position": stage.position, "proof": proof}

    def find(self, tree: str, asker: str | None = None) -> Grade | None:
        """The grade of an equal tree; None where there is none. It is `reused` where it was made for another than this
        attempt."""
        with self._store.reading() as tx:
            found = next(iter(tx.rows(GradedTree, "grade", "graded_for", tree=tree, **self._key)), None)
        if found is None:
            return None
        values, made_for = found
        lists = {name: tuple(value) for name, value in values.items() if name in _LISTS}
        return Grade(values["outcome"], **lists, safeguard=values.get("safeguard"), reused=made_for != asker)

    def keep(self, tree: str, grade: Grade, asker: str | None = None) -> None:
        """Keep the grade of a tree by runs that say something of it."""
        row = {"outcome": grade.outcome, "grade": asdict(grade), "graded_for": asker, "graded_at": now()}
        with self._store.transaction() as tx:
            tx.upsert(GradedTree, [{**self._key, "tree": tree, **row}])
