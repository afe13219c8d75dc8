"""Chains whose stages landed within so many days."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from chains.choice.select import Chain


def within_span(
    chosen: Iterable[Chain], days: Callable[[int, int], float], most: float, *, shortest: int
) -> list[Chain]:
    """The chains, cut where they last longer than `most` days; `days` gives those from one landing to a later one.

    A chain is cut at its widest gap, and so are its parts; those of fewer than `shortest` stages are left out. The
    choice does not heed the span of three stages and more, so what is left may be less than the best.
    """
    return sorted(part for chain in chosen for part in _parts(chain, days, most) if len(part) >= shortest)


def _parts(chain: Chain, days: Callable[[int, int], float], most: float) -> Iterator[Chain]:
    if len(chain) < 2 or days(chain[0], chain[-1]) <= most:
        yield chain
        return
    cut = max(range(1, len(chain)), key=lambda place: days(chain[place - 1], chain[place]))
    yield from _parts(chain[:cut], days, most)
    yield from _parts(chain[cut:], days, most)
