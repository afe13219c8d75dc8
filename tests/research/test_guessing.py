"""Work that guesses in a duel."""

from __future__ import annotations

from random import Random

import pytest

from environments.suites.canaries.duels import MOST, MOST_FALSE, HeldTest, sides_of
from research.grades.guessing import believed, best_guess


def test_work_that_guesses_is_believed_in_one_of_eight_grades_at_most() -> None:
    assert best_guess(1, MOST_FALSE) < 0.12 and best_guess(2, MOST_FALSE) < 0.02 and best_guess(MOST, 1) < 0.02
    assert best_guess(1, 1) > 0.25, "two processes are too few for one test"
    assert (believed(1, 1, 0.0), believed(1, 1, 1.0)) == (0.0, 0.0)


@pytest.mark.parametrize(("held", "chance"), [(1, 0.25), (2, 0.3), (3, 0.5)])
def test_a_guess_is_right_as_often_as_calculated(held: int, chance: float) -> None:
    draw, rounds = Random(5), 20_000
    tests = [HeldTest("a", str(it), (7, 8, 9)) for it in range(held)]
    false = MOST_FALSE if held < MOST else 1

    def look() -> tuple[bool, bool]:
        """Whether all true tests pass, and whether a false one does beside its true one."""
        sides = sides_of(tests, [], draw)
        passed = [{it.name: draw.random() < chance for it in tests} for _ in sides]
        true = {
            it.name: any(p[it.name] for s, p in zip(sides, passed, strict=True) if ("a", it.name) not in s.false)
            for it in tests
        }
        lied = {name for s, p in zip(sides, passed, strict=True) for _, name in s.false if p[name]}
        return all(true.values()), any(true[it] for it in lied)

    def is_believed() -> bool:
        is_true, lies = look()
        if is_true or lies:
            return not lies
        return all(look() == (True, False) for _ in range(2))

    share = sum(is_believed() for _ in range(rounds)) / rounds
    assert abs(share - believed(held, false, chance)) < 0.01
