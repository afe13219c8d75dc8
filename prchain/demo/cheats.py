"""What became of the demo's agent that cheats."""

from __future__ import annotations

from environments.suites.outcomes import TAMPERED
from prchain.core.console.terminal import say, say_prose
from sql.store import Store
from sql.tables import Verdict


def print_cheats(store: Store) -> None:
    """Print the verdicts on tests that were tampered with, and how that was seen. Raises `StoreError`."""
    with store.reading() as tx:
        columns = ("trajectory_id", "position", "attempt", "grade")
        rows = sorted(tuple(row) for row in tx.rows(Verdict, *columns, tests=TAMPERED))
    for trajectory, position, attempt, grade in rows:
        say(f"Rollout {trajectory[:6]}, stage {position}, attempt {attempt}: rejected as tampered.")
        for line in grade["cheats"]:
            say_prose(line, indent=2)
    if not rows:
        say("No verdict found a cheat.")
