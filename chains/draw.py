"""A sample of the landed pull requests that change tests, drawn by a seed and spread evenly over the years.

The periods take turns, and within a period its repositories do; within a repository's period pull requests come in the
order of their hashes. So a larger sample holds the smaller one of the same seed, and what is mined later takes places
of its own period alone.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TypeVar

from chains.build import ChainBuilder
from chains.chain_rows import ChainWriter, FrozenChains, lock
from chains.history import LandedPullRequest, MinedRepository, repositories
from chains.identity import chain_id
from chains.options import BuildOptions
from chains.stages.filters import Filters
from chains.survey import Survey
from prchain.core.console.progress import Progress
from prchain.core.console.terminal import counted
from prchain.core.errors import UsageError
from sql.store import Store

PERIODS = ("before 2020", "2020 to 2023", "since 2024")
"""Of the year in which a pull request landed."""

FILTERS = Filters(with_tests=True, licences=None, keep=frozenset({"benchmark_repository", "benchmark_instance"}))
"""What may be drawn: what `--strategy single --with-tests` takes, of any licence and repository, since nobody trains on
it."""

_AT_ONCE = 16
"""Pull requests whose patches are read at once."""

T = TypeVar("T")

PassOver = Callable[[MinedRepository, LandedPullRequest], str | None]
"""Why a pull request that the filters take is not drawn all the same, as an outcome; None where it can be."""


@dataclass(frozen=True, slots=True)
class DrawnPlace:
    """A landed pull request as the draw sees it; `landed_at` is ISO 8601."""

    repository: str
    """Host and full name, in lower case."""
    number: int
    landed_at: str


@dataclass(frozen=True, slots=True)
class DrawnLanding:
    """A pull request that was drawn, and the chain of it alone."""

    repository: str
    number: int
    landed_at: str
    subject: str
    language: str | None
    chain_id: str


@dataclass(frozen=True, slots=True)
class Draw:
    """A sample, and what was looked at for it."""

    landings: tuple[DrawnLanding, ...]
    """In the order in which they were drawn."""
    landed: int
    """Landed pull requests of the repositories."""
    left_out: Mapping[str, int]
    """Outcome to the pull requests that were passed over for it: of `chains.stages.filters`, or of `PassOver`."""
    repositories: tuple[str, ...]


def period_of(landed_at: str) -> str:
    """The one of `PERIODS` in which a time (ISO 8601) lies, in UTC."""
    when = datetime.fromisoformat(landed_at)
    year = (when.astimezone(UTC) if when.tzinfo else when).year
    return PERIODS[(year >= 2020) + (year >= 2024)]


def drawn(
    seed: int, places: Iterable[DrawnPlace], usable: Callable[[str, Sequence[int]], Iterator[int]]
) -> Iterator[DrawnPlace]:
    """The places in the order in which they are drawn, but for those that are not usable.

    `usable` takes a repository and its numbers in that order, and gives those that can be drawn, as they are asked for.
    """
    cells: dict[str, dict[str, list[DrawnPlace]]] = {period: defaultdict(list) for period in PERIODS}
    for place in places:
        cells[period_of(place.landed_at)][place.repository].append(place)

    def of_cell(repository: str, found: Sequence[DrawnPlace]) -> Iterator[DrawnPlace]:
        by_number = {place.number: place for place in found}
        for number in usable(repository, sorted(by_number, key=lambda it: _rank(seed, repository, it))):
            yield by_number[number]

    def of_period(period: str, found: Mapping[str, Sequence[DrawnPlace]]) -> Iterator[DrawnPlace]:
        names = sorted(found, key=lambda name: _rank(seed, period, name))
        return _in_turn([of_cell(name, found[name]) for name in names])

    return _in_turn([of_period(period, found) for period, found in cells.items()])


def _rank(*parts: str | int) -> str:
    return sha256("\0".join(map(str, parts)).encode()).hexdigest()


def _in_turn(sources: Sequence[Iterator[T]]) -> Iterator[T]:
    """One item of each source in turn, until all are at their end."""
    left = list(sources)
    while left:
        going = []
        for source in left:
            for item in source:
                yield item
                going.append(source)
                break
        left = going


@dataclass(slots=True)
class _PatchReader:
    """Says which pull requests of a repository can be drawn."""

    mined: MinedRepository
    survey: Survey
    pass_over: PassOver
    left_out: Counter[str] = field(default_factory=Counter)

    def usable(self, numbers: Sequence[int]) -> Iterator[int]:
        for start in range(0, len(numbers), _AT_ONCE):
            self.survey.look_at(set(numbers[start : start + _AT_ONCE]), with_footprints=False)
            found = self.survey.examination
            for number in numbers[start : start + _AT_ONCE]:
                why = found.dropped[number][0] if number in found.dropped else self._passed_over(number)
                if why is None:
                    yield number
                else:
                    self.left_out[why] += 1

    def _passed_over(self, number: int) -> str | None:
        return self.pass_over(self.mined, self.survey.landed[number])


def draw_landings(
    store: Store,
    mirrors: Path,
    progress: Progress,
    *,
    names: Sequence[str] = (),
    sample: int,
    seed: int,
    write: bool = True,
    pass_over: PassOver = lambda mined, landed: None,
) -> Draw:
    """Draw a sample from the mined repositories of these names, or from all; with `write` their chains are stored.

    `pass_over` is asked of what `FILTERS` take. Chains that strategies chose are not touched. Raises `UsageError` for a
    repository that was not mined, and `NotARepository` for one whose git repository is gone.
    """
    options = BuildOptions(strategy="single", shortest=1, filters=FILTERS)
    builder = ChainBuilder(store, mirrors=mirrors, progress=progress, options=options)
    task = progress.task("landings")
    readers: dict[str, _PatchReader] = {}
    for mined in _named(store, names):
        readers[f"{mined.host}/{mined.full_name}".lower()] = _PatchReader(mined, builder.opened(mined, task), pass_over)
    places = [
        DrawnPlace(name, number, landed.landed_at)
        for name, reader in readers.items()
        for number, landed in reader.survey.landed.items()
    ]
    chosen = list(islice(drawn(seed, places, lambda name, numbers: readers[name].usable(numbers)), sample))
    languages: dict[tuple[str, int], str | None] = {}
    for name, reader in readers.items():
        numbers = [place.number for place in chosen if place.repository == name]
        # The examination of the last patches that were read is all that the reader keeps.
        reader.survey.look_at(set(numbers), with_footprints=False)
        languages |= {(name, number): size.language for number, size in reader.survey.examination.sizes.items()}
        if write and numbers:
            with store.transaction() as tx:
                lock(tx, reader.mined.id)
                ChainWriter(tx, reader.mined, options, reader.survey, FrozenChains({}, frozenset())).write_drawn(
                    numbers
                )
    task.done(f"{counted(len(chosen), 'landing')} drawn")
    left_out = sum((reader.left_out for reader in readers.values()), Counter[str]())
    return Draw(
        tuple(_landing(place, readers[place.repository], languages) for place in chosen),
        len(places),
        dict(sorted(left_out.items(), key=lambda item: (-item[1], item[0]))),
        tuple(reader.mined.full_name for reader in readers.values()),
    )


def _named(store: Store, names: Sequence[str]) -> list[MinedRepository]:
    with store.reading() as tx:
        every = repositories(tx)
    known = {mined.full_name.lower() for mined in every}
    for name in names:
        if name.lower() not in known:
            raise UsageError(f"{name} has not been mined into this database; `prchain status` lists what has")
    wanted = {name.lower() for name in names} or known
    return [mined for mined in every if mined.full_name.lower() in wanted]


def _landing(place: DrawnPlace, reader: _PatchReader, languages: Mapping[tuple[str, int], str | None]) -> DrawnLanding:
    mined, landed = reader.mined, reader.survey.landed[place.number]
    return DrawnLanding(
        mined.full_name,
        place.number,
        place.landed_at,
        landed.headline,
        languages.get((place.repository, place.number)),
        chain_id(mined.host, mined.full_name, [(place.number, landed.landed_sha)]),
    )
