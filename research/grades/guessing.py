"""How often work is believed that only guesses in a duel (`environments.duelling`), by calculation."""

from __future__ import annotations

STEPS = 1000


def believed(held: int, false: int, chance: float) -> float:
    """The share of grades in which work is believed that, in each process of the duel of `held` tests, each with so
    many
    `false` forms, passes a test with this chance, whatever it asks for. Its other runs are taken for good."""
    other = 1 - chance
    won, nothing = chance * other**false, other * other**false
    odd = other * (1 - other**false)
    all_won = won**held
    again = (won + nothing) ** held - all_won
    twice = (won + nothing + odd) ** held - (won + nothing) ** held
    return all_won + again * all_won + twice * all_won**2


def best_guess(held: int, false: int) -> float:
    """The same, for the chance that serves the work most."""
    return max(believed(held, false, step / STEPS) for step in range(STEPS + 1))
