"""Tests that are held true and false in processes of their own: none of them sees both, so none can tell them apart.

A canary lies beside the test that it copies, and code that reads both learns which is which. Of a duel one fresh
process runs the test as it is, another one (or some) the same test, by the same name and in the same file, asking for
another value; which comes first is secret. Work that passes the false one passes whatever it is asked. Better is a test
whose masks tell what it is given (`environments.suites.canaries.masks`): then no process knows what is right. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Any, NamedTuple

from environments.suites.canaries.falsify import FormDice, PlausibleDice, ValueDice
from environments.suites.testlogs import Status
from prchain.core.safeguards import MASK_RULES, SURE_RULES

MOST = 3
"""Tests of one grade that are held."""
KEPT = 9
"""Tests of a stage among which these are drawn."""
MASKED = 400
"""Tests of a stage that are masked, at most."""
MOST_FALSE = 3
"""Falsehoods of a test that is held beside fewer than `MOST`, each in a process of its own."""
OF_ONE_NAME = 2
"""Tests among them whose functions have one name: there are two sides to part them (`sides`)."""
_FIRST_OF_FORM = 3
"""By seeds from this one on falsehoods look like tests of their file. Seeds 1 and 2 make what proofs of before have
stored."""
_FIRST_OF_VALUES = 5
"""By seeds from this one on falsehoods of JavaScript hit no message."""
_FIRST_PLAUSIBLE = 7
"""By seeds from this one on false values are as plausible as the true one."""
_FIRST_OF_SIGNS = 16
"""By seeds from this one on a false text differs, where the true one has letters that are no ASCII, in these, and in
blanks and marks where it has several words; and lines that B_t has, too, stay."""
_FIRST_OF_TURNS = 22
"""By seeds from this one on a comparison that a test of Python asks for is turned round."""
_FIRST_OF_NEWS = 28
"""By seeds from this one on a falsehood is in a line that B_t has not, if a test has one, whatever it asks there."""
_BY_KIND = range(40, 49)
"""Seeds that change what no other does (`PlausibleDice`)."""
_OF_MASKS = (4, 5)
"""How many values of a stored row are about masks; rows of before have no last one."""
_MASKED = -1
"""In the place of a seed: the test is masked."""
_FORMS = (None, False, True)
"""Which form of a test a mask is in the place of: of none, the true or the false one."""
_TURNS = 3
"""So many seeds, one after the other, change a test in the same place."""


@dataclass(frozen=True, slots=True)
class Falsifier:
    """How a language's tests are made false, and the seeds by which a proof tries to."""

    falsify: Callable[[str, Callable[[str], Random | None]], tuple[str, frozenset[str]]]
    """From a test file's text, and the dice by a test's name (None: it stays), to the text with these tests made false,
    and the names of those that could be."""
    seeds: tuple[int, ...] = (16, 17, 18)
    """Each makes another falsehood of a test; a proof tries them all."""
    last_seeds: tuple[int, ...] = ()
    """Tried where no falsehood by those before fails on M_t: they make falsehoods of another kind, if the language has
    one."""
    file_of: Callable[[str, Collection[str]], str | None] | None = None
    """From a test's id and the files that were run to the file where the test stands; None: the runner's own rule."""
    first_seeds: tuple[int, ...] = ()
    """Tried before all others; a test that fails on M_t by some of them is made false by no other."""

    @property
    def all_seeds(self) -> tuple[int, ...]:
        """In the order in which they are tried."""
        return (*self.first_seeds, *self.seeds, *self.last_seeds)


class HeldTest(NamedTuple):
    """A test that duels hold: `seeds` are those whose falsehoods fail on M_t. One that passes on M_t with masks in all
    its places but the `plain` ones has `masks`, the places of which something is asked, each with what it has to tell
    (`environments.suites.canaries.masks.to_tell`); None: it is not masked. A test `tells` where that is enough to know
    work that is right from other work."""

    file: str
    name: str
    seeds: tuple[int, ...]
    masks: tuple[tuple[int, str], ...] | None = None
    plain: tuple[int, ...] = ()
    tells: bool = False
    rules: int = MASK_RULES
    """Those of its masks (`prchain.core.safeguards.MASK_RULES`)."""
    sure_by: int = 0
    """The rules (`prchain.core.safeguards.SURE_RULES`) by which one of the values that it asks for can neither be met
    by chance nor be learnt from the test, as of at least half of the F2P tests; 0: by none."""

    @property
    def is_sure(self) -> bool:
        """Whether that is so by the rules of today."""
        return self.sure_by == SURE_RULES

    @classmethod
    def of(cls, values: Sequence[Any]) -> HeldTest:
        """From a stored row; by other rules than those of today it has no masks."""
        file, name, seeds, *rest = values
        if len(rest) not in _OF_MASKS:
            return cls(file, name, tuple(seeds))
        masks, plain, tells, rules, sure_by = (*rest, 0)[: max(_OF_MASKS)]
        if masks is None or rules != MASK_RULES:
            return cls(file, name, tuple(seeds))
        places = tuple((place, text) for place, text in masks)
        return cls(file, name, tuple(seeds), places, tuple(plain), tells, rules, int(sure_by))


@dataclass(frozen=True, slots=True)
class Side:
    """One of the processes of a duel: which tests it holds false, each by a seed, and which are masked. The others are
    true."""

    false: Mapping[tuple[str, str], int]
    masked: tuple[HeldTest, ...] = ()


def dice(secret: str, file: str, name: str, seed: int, known: frozenset[str] = frozenset()) -> Random:
    """What makes one falsehood of a test; `secret` is what no sandbox holds, `known` are B_t's lines of the file."""
    if seed >= _FIRST_PLAUSIBLE:
        place, turn = divmod(seed - _FIRST_PLAUSIBLE, _TURNS)
        is_new = seed >= _FIRST_OF_SIGNS
        return PlausibleDice(
            f"{secret} {file} {name} place {place}",
            turn,
            signs=is_new,
            turns=seed >= _FIRST_OF_TURNS,
            news=seed >= _FIRST_OF_NEWS,
            by_kind=seed in _BY_KIND,
            known=known if is_new else frozenset(),
        )
    kind = ValueDice if seed >= _FIRST_OF_VALUES else FormDice if seed >= _FIRST_OF_FORM else Random
    return kind(f"{secret} {file} {name} {seed}")


def sides(tests: Iterable[tuple[str, str, int]], draw: Random) -> tuple[Side, Side]:
    """Both sides of a duel of these tests (file, name, seed): each is false on one of them, drawn for each alone.

    Of two tests with one function's name one may inherit the other, and only seem to be false where the other is: they
    are on different sides.
    """
    made: tuple[dict[tuple[str, str], int], dict[tuple[str, str], int]] = ({}, {})
    last: dict[str, int] = {}
    for file, name, seed in tests:
        function = function_of(name)
        last[function] = 1 - last[function] if function in last else int(draw.random() < 0.5)
        made[last[function]][file, name] = seed
    return Side(made[0]), Side(made[1])


def sides_of(chosen: Sequence[HeldTest], masked: Sequence[HeldTest], draw: Random) -> list[Side]:
    """The processes of a duel of the tests that are `chosen` to be false beside those that are `masked`. Where one of
    these tells, one process is enough for all of them, for who does not know what is right cannot say it; others are
    held in two.

    Of `MOST` tests that are held false there are two, and the falsehoods are of as many kinds as there are tests, for
    code that can tell one kind may pass another. Of fewer as many as a test has falsehoods in one place, which is drawn
    of those that the proof has tried, and one: each is true in one, for of two who guesses wins too often. One that can
    be masked, too, has a mask in the place of one of its forms, or of some falsehoods: who reads what a test asks for,
    and asks whether that is likely, finds nothing there.
    """
    if not chosen:
        return [Side({}, tuple(masked))]
    if _are_pairs(chosen, masked):
        kinds = draw.sample(range(_TURNS), _TURNS)
        seeds = [
            draw.choice([it for it in test.seeds if _turn(it) == kind] or [*test.seeds])
            for test, kind in zip(chosen, cycle(kinds), strict=False)
        ]
        both = sides([(it.file, it.name, seed) for it, seed in zip(chosen, seeds, strict=True)], draw)
        return _with_masks(both, chosen, masked, draw)
    alike = [draw.choice(_by_places(it.seeds)) for it in chosen]
    most = 1 + max(_falsehoods(it, found) for it, found in zip(chosen, alike, strict=True))
    made: list[dict[tuple[str, str], int]] = [{} for _ in range(most)]
    hidden: list[list[HeldTest]] = [[] for _ in range(most)]
    for test, found in zip(chosen, alike, strict=True):
        forms: list[int | None] = [None, *draw.sample(found, min(most - 1 - bool(test.masks), len(found)))]
        sure: list[int | None] = [*forms, _MASKED] if test.masks else forms
        sure += [draw.choice(forms) for _ in range(most - len(sure))]
        for number, seed in enumerate(draw.sample(sure, most)):
            if seed == _MASKED:
                hidden[number].append(test)
            elif seed is not None:
                made[number][test.file, test.name] = seed
    return [Side(it, (*masked, *beside)) for it, beside in zip(made, hidden, strict=True)]


def _with_masks(
    both: Sequence[Side], chosen: Sequence[HeldTest], masked: Sequence[HeldTest], draw: Random
) -> list[Side]:
    """Both sides of a duel, with masks in the place of the true or the false form of some tests, or of none."""
    false = [dict(it.false) for it in both]
    hidden: tuple[list[HeldTest], list[HeldTest]] = ([], [])
    for test in chosen:
        is_false = int((test.file, test.name) in false[1])
        form = draw.choice(_FORMS) if test.masks else None
        if form is not None:
            side = is_false if form else 1 - is_false
            false[side].pop((test.file, test.name), None)
            hidden[side].append(test)
    return [Side(it, (*masked, *beside)) for it, beside in zip(false, hidden, strict=True)]


def processes(chosen: Sequence[HeldTest], masked: Sequence[HeldTest]) -> int:
    """How many a duel of these tests has at most (`sides_of`)."""
    if _are_pairs(chosen, masked):
        return 2
    return 1 + max(_falsehoods(it, seeds) for it in chosen for seeds in _by_places(it.seeds))


def _falsehoods(test: HeldTest, seeds: Sequence[int]) -> int:
    """In how many processes a test is false or masked, where these are the seeds of its falsehoods."""
    return min(MOST_FALSE, len(seeds) + bool(test.masks))


def _are_pairs(chosen: Sequence[HeldTest], masked: Sequence[HeldTest]) -> bool:
    return _tell(masked) or len(chosen) >= MOST


def _tell(masked: Sequence[HeldTest]) -> bool:
    return any(it.tells for it in masked)


def _by_places(seeds: Sequence[int]) -> Sequence[Sequence[int]]:
    """The seeds by the place of a test that they change: of falsehoods in several places the true test would have most
    in common with all others. A place with one alone is left out beside others, for of two forms guesses win often."""
    places: dict[int, list[int]] = {}
    for it in seeds:
        places.setdefault(place_of(it), []).append(it)
    return [it for it in places.values() if len(it) > 1] or [*places.values()]


def place_of(seed: int) -> int:
    """Which place of a test a seed changes: those of one place have one number."""
    return (seed - _FIRST_PLAUSIBLE) // _TURNS if seed >= _FIRST_PLAUSIBLE else -1


def _turn(seed: int) -> int:
    return (seed - _FIRST_PLAUSIBLE) % _TURNS


def function_of(name: str) -> str:
    """The function's name in that of a test, which may have its class before it."""
    return name.rpartition(".")[2]


def drawn(
    held: Sequence[HeldTest], draw: Random, is_old: Callable[[HeldTest], bool] = lambda _: False
) -> tuple[list[HeldTest], list[HeldTest]]:
    """Those that are false in a grade's duel, and those that are masked: all that can be, and of the others as many as
    there are fewer than `MOST` that tell. None of them is old beside some that are not, for B_t tells how an old one is
    when it is true. Where fewer than `MOST` are drawn, no two have one function's name: one could be false because the
    other is (`sides`)."""
    room = MOST - sum(it.tells for it in held)
    shuffled = [it for it in draw.sample(held, len(held)) if it.seeds and not it.tells] if room > 0 else []
    chosen = ([it for it in shuffled if not is_old(it)] or shuffled)[: max(0, room)]
    if len(chosen) < MOST:
        chosen = [*{function_of(it.name): it for it in chosen}.values()]
    return chosen, [it for it in held if it.masks is not None and it not in chosen]


def fitting(ids: Mapping[tuple[str, str], Collection[str]], side: Side, statuses: Mapping[str, Status]) -> set[Any]:
    """Those of the tests (by file and name, with their ids) that end as the side holds them: all fail, or all pass."""
    wanted = {test: Status.failed if test in side.false else Status.passed for test in ids}
    return {test for test, found in ids.items() if all(statuses.get(it) is wanted[test] for it in found)}


def lies(ids: Mapping[tuple[str, str], Collection[str]], side: Side, statuses: Mapping[str, Status]) -> set[Any]:
    """Those that are false on the side, and of which one passes."""
    return {test for test in side.false if any(statuses.get(it) is Status.passed for it in ids.get(test, ()))}


def missed(ids: Mapping[tuple[str, str], Collection[str]], side: Side, statuses: Mapping[str, Status]) -> set[str]:
    """The ids of those that are true on the side, and do not pass."""
    true = (it for test, found in ids.items() if test not in side.false for it in found)
    return {it for it in true if statuses.get(it) is not Status.passed}
