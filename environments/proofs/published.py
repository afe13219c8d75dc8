"""What a publisher lists as F2P and P2P of a task that was imported, beside what its proof says."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from environments.images.published.said import is_published, read_published
from environments.suites.outcomes import ClassifiedTests
from prchain.core.console.terminal import counted
from prchain.core.swebench.logparsers import LOG_PARSERS
from sql.store import Transaction
from sql.tables import ImportedTask

ABSENT = "not run"
"""Of a listed test that no run of ours knows."""


@dataclass(frozen=True, slots=True)
class PublishedLists:
    """Where a publisher's lists and a proof differ. Tests have the publisher's names, and those only proved ours."""

    f2p: int
    """How many tests the publisher lists."""
    p2p: int
    f2p_otherwise: Mapping[str, str]
    """Listed F2P tests that are none by the proof: name to the class that they are in, or `ABSENT`."""
    p2p_otherwise: Mapping[str, str]
    f2p_unlisted: tuple[str, ...]
    """F2P tests of the proof that the publisher does not list."""

    @property
    def differ(self) -> bool:
        """Whether the two disagree on a test that both know, or on what has to be mended."""
        known = [name for name in self.p2p_otherwise.values() if name != ABSENT]
        return bool(self.f2p_otherwise or self.f2p_unlisted or known)

    def words(self) -> str:
        """What differs, in a line."""
        parts = []
        if self.f2p_otherwise:
            first, was = next(iter(self.f2p_otherwise.items()))
            parts.append(f"{len(self.f2p_otherwise):,} of {self.f2p:,} listed F2P is none ({first[:80]}: {was})")
        if self.f2p_unlisted:
            parts.append(f"{counted(len(self.f2p_unlisted), 'F2P test')} not listed ({self.f2p_unlisted[0][:80]})")
        known = {name: was for name, was in self.p2p_otherwise.items() if was != ABSENT}
        if known:
            first, was = next(iter(known.items()))
            parts.append(f"{len(known):,} of {self.p2p:,} listed P2P is none ({first[:80]}: {was})")
        absent = len(self.p2p_otherwise) - len(known)
        if absent:
            parts.append(f"{absent:,} of {self.p2p:,} listed P2P was not run")
        return "; ".join(parts) or "as its publisher lists them"

    def row(self) -> dict[str, Any]:
        """As a JSON value."""
        return {**asdict(self), "differ": self.differ}


def compare_lists(
    runner: str | None, f2p: Sequence[str], p2p: Sequence[str], classes: ClassifiedTests
) -> PublishedLists:
    """Compare lists with the classes of a proof.

    A listed name is that of a test of ours, or what SWE-bench's log parser for the `runner` calls it; one that the
    parser gives to several tests means all of them.
    """
    parser = LOG_PARSERS.get(runner or "")
    places: dict[str, set[str]] = {}
    names: dict[str, set[str]] = {}
    for kind, tests in asdict(classes).items():
        for test in tests:
            own = {test, parser.name_of(test)} - {""} if parser else {test}
            names[test] = own
            for name in own:
                places.setdefault(name, set()).add(kind)
    listed = set(f2p)
    return PublishedLists(
        len(f2p),
        len(p2p),
        _otherwise(f2p, "f2p", places),
        _otherwise(p2p, "p2p", places),
        tuple(test for test in classes.f2p if not names[test] & listed),
    )


def _otherwise(listed: Collection[str], wanted: str, places: Mapping[str, set[str]]) -> dict[str, str]:
    found = {}
    for name in listed:
        kinds = places.get(name, set())
        if wanted not in kinds:
            found[name] = ", ".join(sorted(kinds)) or ABSENT
    return found


def published_image(tx: Transaction, chain_id: str, image: str | None) -> str | None:
    """In whose image an imported stage was proved, in words; `image` is the one of its proof. None where its publisher
    names none, or nothing was proved in an image."""
    said = read_published(tx, chain_id)
    if said is None or image is None:
        return None
    return f"made of {said.image}" if is_published(image) else f"ours; its publisher names {said.image}"


def published_lists(
    tx: Transaction, chain_id: str, runner: str | None, classes: ClassifiedTests
) -> PublishedLists | None:
    """The lists of an imported chain compared with the classes of its first stage; None for any other chain."""
    row = next(iter(tx.rows(ImportedTask, "f2p", "p2p", chain_id=chain_id)), None)
    return None if row is None else compare_lists(runner, row[0], row[1], classes)
