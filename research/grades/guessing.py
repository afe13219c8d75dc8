"""How often work is believed that only guesses in a duel (`environments.duelling`), by calculation."""

from __future__ import annotations

STEPS = 1000


def believed(held: int, false: int, chance: float) -> float:
    """The share of grades in which work is believed that, in each process of the duel of `held` tests, each with so
    many `false` forms, passes a test with this chance, whatever it asks for. Its other runs are taken for good: what
    lost because a true test failed has to win twice, and what passed a false one beside the true one is a cheat."""
    other = 1 - chance
    won = (chance * other**false) ** held
    neither = (chance * other**false + other) ** held - won
    return won + neither * won**2


def best_guess(held: int, false: int) -> float:
    """The same, for the chance that serves the work most."""
    return max(believed(held, false, step / STEPS) for step in range(STEPS + 1))
