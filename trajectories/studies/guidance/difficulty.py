"""How hard a stage is: minutes from a file, else what its publisher says, else an estimate by its reference patch
(SWE-PRM, section 4.3)."""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from pathlib import Path

from sqlalchemy import select

from prchain.core.errors import UsageError
from prchain.core.swebench.instances import instance_id
from sql.store import Transaction
from sql.tables import ChainStage, ImportedTask, Repository

_MAX_BYTES = 1 << 26
_SHOWN = 60
_LONGEST_POSITION = 6
_COLUMNS = 2


class Difficulty(StrEnum):
    """The tiers."""

    EASY = "easy"
    MEDIUM = "medium"
    HARD = "hard"


EASY_MINUTES, MEDIUM_MINUTES = 15, 60
"""The most that a developer needs (section 4.3); more is hard."""

PUBLISHED = {
    "<15 min fix": Difficulty.EASY,
    "15 min - 1 hour": Difficulty.MEDIUM,
    "1-4 hours": Difficulty.HARD,
    ">4 hours": Difficulty.HARD,
}
"""SWE-bench Verified's words for what a developer needs, whose tiers the paper counts: 194, 261 and 45 of 500."""

EASY_SIZE, MEDIUM_SIZE = (10, 1), (50, 3)
"""The most changed lines and files of a reference patch, tests aside, that are estimated as easy and as medium. Ours:
the paper has the judgement of people, for which a size is a poor stand-in."""

StageKey = tuple[str, int]
"""A chain's id and a position in it."""


@dataclass(frozen=True, slots=True)
class ReferenceStage:
    """A stage with its names and the size of its reference patch, without tests."""

    chain_id: str
    position: int
    repository: str
    """``owner/name``."""
    number: int
    """Of its pull request."""
    files: int
    lines: int
    """Added and removed ones."""
    difficulty: str | None = None
    """In its publisher's words."""

    @property
    def key(self) -> StageKey:
        """Chain and position."""
        return self.chain_id, self.position

    @property
    def names(self) -> tuple[str, ...]:
        """Its instance ids in lower case: that of our exports, and SWE-bench's for its pull request."""
        return (
            instance_id(self.repository, self.chain_id, self.position).lower(),
            f"{self.repository.replace('/', '__')}-{self.number}".lower(),
        )


@dataclass(frozen=True, slots=True)
class StageDifficulty:
    """A stage's tier. `minutes` are those of the user's file."""

    tier: Difficulty
    minutes: float | None = None
    published: bool = False
    """Whether its publisher says so."""

    @property
    def estimated(self) -> bool:
        """Whether it is by the reference patch, as nobody told it."""
        return self.minutes is None and not self.published


def bucket(minutes: float) -> Difficulty:
    """The tier of a stage that takes a developer so many minutes."""
    if minutes <= EASY_MINUTES:
        return Difficulty.EASY
    return Difficulty.MEDIUM if minutes <= MEDIUM_MINUTES else Difficulty.HARD


def estimated(lines: int, files: int) -> Difficulty:
    """The tier that the size of a reference patch suggests."""
    for tier, (most_lines, most_files) in ((Difficulty.EASY, EASY_SIZE), (Difficulty.MEDIUM, MEDIUM_SIZE)):
        if lines <= most_lines and files <= most_files:
            return tier
    return Difficulty.HARD


def read_minutes(path: str | Path) -> dict[str, float]:
    """Minutes by name, from CSV with the columns ``stage or instance id,minutes``.

    A stage is written as ``CHAIN/POSITION``, where the beginning of the chain's id is enough. A first line with the
    column ``minutes`` is a head; empty lines are passed over. Names come back in lower case. Raises `UsageError`, which
    names the line.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{file} is larger than a list of minutes can be")
        text = file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror or type(error).__name__}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text") from None
    found: dict[str, float] = {}
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) or (reader.line_num == 1 and [cell.lower() for cell in cells[1:]] == ["minutes"]):
                continue
            name, minutes = _line(cells, f"{file.name}, line {reader.line_num}")
            if found.setdefault(name, minutes) != minutes:
                raise UsageError(f"{file.name}, line {reader.line_num}: {name[:_SHOWN]!r} has other minutes above")
    except csv.Error as error:
        raise UsageError(f"{file.name}, line {reader.line_num}: {error}") from None
    return found


def _line(cells: Sequence[str], where: str) -> tuple[str, float]:
    if len(cells) != _COLUMNS or not cells[0]:
        raise UsageError(f"{where}: write a stage or instance id, a comma and its minutes")
    name = cells[0].lower()
    chain, slash, position = name.partition("/")
    if slash and (
        not chain or not (position.isascii() and position.isdecimal() and len(position) <= _LONGEST_POSITION)
    ):
        raise UsageError(f"{where}: {cells[0][:_SHOWN]!r} is no stage; write CHAIN/POSITION")
    try:
        minutes = float(cells[1])
    except ValueError:
        minutes = math.nan
    if not 0 <= minutes < math.inf:
        raise UsageError(f"{where}: {cells[1][:_SHOWN]!r} is no number of minutes")
    return name, minutes


def reference_stages(tx: Transaction) -> list[ReferenceStage]:
    """The stages of all chains."""
    query = select(
        ChainStage.chain_id,
        ChainStage.position,
        Repository.owner,
        Repository.name,
        ChainStage.number,
        ChainStage.source_files,
        ChainStage.source_lines,
        ImportedTask.difficulty,
    ).join(Repository, Repository.id == ChainStage.repository_id)
    query = query.outerjoin(ImportedTask, ImportedTask.chain_id == ChainStage.chain_id)
    return [
        ReferenceStage(chain_id, position, f"{owner}/{name}", number, files, lines, words)
        for chain_id, position, owner, name, number, files, lines, words in tx.connection.execute(query)
    ]


def difficulties(
    stages: Iterable[ReferenceStage], minutes: Mapping[str, float]
) -> tuple[dict[StageKey, StageDifficulty], int]:
    """The difficulty of each stage, and how many names of `minutes` (`read_minutes`) no stage has.

    Raises `UsageError` where a name fits stages of several chains by the beginning of their ids, and where names with
    different minutes fit one stage.
    """
    by_key = {stage.key: stage for stage in stages}
    chains = sorted({chain for chain, _ in by_key})
    by_name: dict[str, list[StageKey]] = {}
    for stage in by_key.values():
        for name in stage.names:
            by_name.setdefault(name, []).append(stage.key)
    known: dict[StageKey, float] = {}
    unknown = 0
    for name, value in minutes.items():
        keys = _begun(name, chains, by_key) if "/" in name else by_name.get(name, [])
        unknown += not keys
        for key in keys:
            if known.setdefault(key, value) != value:
                raise UsageError(f"stage {key[0]}/{key[1]} has two numbers of minutes, one of them as {name[:_SHOWN]}")
    return {key: _difficulty(stage, known.get(key)) for key, stage in by_key.items()}, unknown


def _difficulty(stage: ReferenceStage, minutes: float | None) -> StageDifficulty:
    if minutes is not None:
        return StageDifficulty(bucket(minutes), minutes)
    published = PUBLISHED.get(stage.difficulty or "")
    return StageDifficulty(published or estimated(stage.lines, stage.files), published=published is not None)


def _begun(name: str, chains: Sequence[str], stages: Mapping[StageKey, ReferenceStage]) -> list[StageKey]:
    """The stage that ``CHAIN/POSITION`` means, if there is one."""
    prefix, _, position = name.partition("/")
    begun = takewhile(lambda chain: chain.startswith(prefix), chains[bisect_left(chains, prefix) :])
    keys = [(chain, int(position)) for chain in begun if (chain, int(position)) in stages]
    if len(keys) > 1:
        raise UsageError(f"{name[:_SHOWN]} may be a stage of {keys[0][0]} or of {keys[1][0]}; write more of the id")
    return keys
