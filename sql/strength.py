"""What the proof of a stage is worth: how `environments` stores it, and how others read it.

The rules by which it is found are in docs/grading.md, "What a proof is worth".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self

from prchain.core.console.terminal import counted
from sql.outcomes import PROVED
from sql.store import Transaction
from sql.tables import StageTests

ENOUGH = 3
"""Undoings that have to be valid before a share of them says anything."""


class Worth(StrEnum):
    """What a proof is worth, in one word, worst first."""

    NOT_MEASURED = "not_measured"
    """Nobody has looked: proofs of before there was a strength, and those that `--strength` has not been to."""
    IMPORT_ONLY = "import_only"
    """Every F2P test was hidden by an import alone; none shows the stage's work."""
    UNKNOWN = "unknown"
    """The run on B_t with its own tests says nothing, or too few undoings were valid."""
    WEAK = "weak"
    """Most of the work can be undone, and no test says so; or names with nothing behind them pass."""
    STRONG = "strong"
    """At least half of the undoings were caught."""


class UndoingKind(StrEnum):
    """What was undone."""

    HUNK = "hunk"
    """One hunk of the source reference was reverted."""
    RAISES = "raises"
    """The body of a changed function raises."""
    RETURNS_NONE = "returns_none"
    """The body of a changed function returns None."""
    NEW_RETURN_NONE = "new_return_none"
    """The bodies of all new functions return None at once."""
    STUB = "stub"
    """All of it, but names that the tests import are bound to None."""
    CHANGE = "change"
    """One block of changed lines of a hunk was reverted."""
    STATEMENT = "statement"
    """One statement or condition of a changed function does nothing."""


PARTS = frozenset({UndoingKind.CHANGE, UndoingKind.STATEMENT})
"""Parts of hunks and functions: they are undone where hunks and functions alone are too few to say anything."""
EMPTY = frozenset({UndoingKind.STUB, UndoingKind.NEW_RETURN_NONE})
"""Nothing is behind the names: a proof that this passes is weak. It is no part of the work, so no share counts it."""
_BODIES = frozenset({UndoingKind.RAISES, UndoingKind.RETURNS_NONE})


class UndoingOutcome(StrEnum):
    """How an undoing ended."""

    CAUGHT = "caught"
    """A test failed twice that had passed in all runs of the proof."""
    PASSED = "passed"
    """The tests passed all the same."""
    INVALID = "invalid"
    """It did not build, or tests were not collected; or there was no time for it."""


class WhyNone(StrEnum):
    """Why nothing is said of undoings, or of the tests of before; the name of an error or limit where one ended the run
    (`sql.tables.ReferenceRun.infra`)."""

    TIMED_OUT = "timed_out"
    DISTRUSTED = "distrusted"
    """Its results are not believed."""
    BROKE_OFF = "broke_off"
    NO_TEST_ENDED = "no_test_ended"
    """No test came to an end of its own: packages are others than at the proof, or the build fails."""
    NOT_ALONE = "not_alone"
    """No own F2P test passes where their files are run alone, with nothing undone."""
    NOTHING_TO_UNDO = "nothing_to_undo"
    """The reference has no part without which a test could end otherwise."""
    NONE_RAN = "none_ran"
    """What was undone did not build, or tests were not found with it."""
    NO_TIME = "no_time"


_WHY_WORDS: Mapping[str, str] = {
    WhyNone.TIMED_OUT: "the tests ran out of time",
    WhyNone.DISTRUSTED: "results of the tests are not believed",
    WhyNone.BROKE_OFF: "the tests broke off",
    WhyNone.NO_TEST_ENDED: "no test ran to its end; were packages changed since the proof?",
    WhyNone.NOT_ALONE: "no own F2P passes where their files are run alone, with nothing undone",
    WhyNone.NOTHING_TO_UNDO: "the reference has no part that tests could miss",
    WhyNone.NONE_RAN: "none built, or tests were not found",
    WhyNone.NO_TIME: "there was no time",
}


@dataclass(frozen=True, slots=True)
class Undone:
    """One undoing of a part of the reference. `place` is ``path:line``."""

    kind: UndoingKind
    place: str
    outcome: UndoingOutcome


@dataclass(frozen=True, slots=True)
class Strength:
    """What the proof of one stage is worth. Tests are named by their ids."""

    own: int | None
    """F2P tests that are left (`own_f2p`); None where the run on B_t with its own tests says nothing."""
    changed: int = 0
    """Those of them that the pull request adds or changes."""
    hidden: tuple[str, ...] = ()
    """F2P tests that pass on B_t with its own tests: only an import or the like hid them. They count as P2P."""
    failing: tuple[str, ...] = ()
    """Tests that the pull request adds or changes and that fail on M_t."""
    guards: int = 0
    """P2P tests, the hidden ones among them, in test files of the stage's own or of the modules that it touches."""
    undone: tuple[Undone, ...] = ()
    seconds: float = 0.0
    """Wall time that the measuring took."""
    untried: int = 0
    """Undoings for which there was no time left."""
    cause: str | None = None
    """Why a run that all depends on says nothing, or that there is nothing to undo; None of strengths of before, and
    where that is not so."""

    @property
    def shares(self) -> Counter[UndoingOutcome]:
        """The undoings of parts of the work by their outcome. Both bodies of one function are one: a test that only
        calls it fails where it raises, so it is caught where a test sees that it returns None."""
        outcomes = [it.outcome for it in self.undone if it.kind not in EMPTY | _BODIES]
        bodies: dict[str, dict[UndoingKind, UndoingOutcome]] = {}
        for it in self.undone:
            if it.kind in _BODIES:
                bodies.setdefault(it.place, {})[it.kind] = it.outcome
        return Counter([*outcomes, *map(_of_function, bodies.values())])

    @property
    def caught(self) -> int:
        """Undoings that tests caught."""
        return self.shares[UndoingOutcome.CAUGHT]

    @property
    def valid(self) -> int:
        """Undoings that say something."""
        return self.caught + self.shares[UndoingOutcome.PASSED]

    @property
    def why_none(self) -> str | None:
        """Why there is no valid undoing: a `WhyNone`, or the name of an error or limit. None where there is one, where
        no own F2P asks for any, and where it is not stored."""
        if self.own == 0 or self.valid:
            return None
        if self.cause or self.own is None:
            return self.cause
        if self.shares[UndoingOutcome.INVALID]:
            return WhyNone.NONE_RAN
        return WhyNone.NO_TIME if self.untried else None

    @property
    def worth(self) -> Worth:
        """In one word."""
        if self.own is None:
            return Worth.UNKNOWN
        if not self.own:
            return Worth.IMPORT_ONLY
        if any(it.kind in EMPTY and it.outcome is UndoingOutcome.PASSED for it in self.undone):
            return Worth.WEAK
        if self.valid < ENOUGH:
            return Worth.UNKNOWN
        return Worth.STRONG if 2 * self.caught >= self.valid else Worth.WEAK

    def row(self) -> dict[str, Any]:
        """As `sql.tables.StageTests.strength` holds it."""
        return asdict(self)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The other way round."""
        undone = tuple(
            Undone(UndoingKind(it["kind"]), it["place"], UndoingOutcome(it["outcome"])) for it in row["undone"]
        )
        named = {name: tuple(row[name]) for name in ("hidden", "failing")}
        return cls(**{**row, **named, "undone": undone})


def _of_function(outcomes: Mapping[UndoingKind, UndoingOutcome]) -> UndoingOutcome:
    seen = outcomes.get(UndoingKind.RETURNS_NONE, UndoingOutcome.INVALID)
    if seen is UndoingOutcome.INVALID and outcomes.get(UndoingKind.RAISES) is UndoingOutcome.PASSED:
        return UndoingOutcome.PASSED
    return seen


def strength_row(strength: Strength | None) -> dict[str, Any]:
    """A strength for machines: tests are counted, not named, for most of those that read it must not know them."""
    if strength is None:
        return {"worth": str(Worth.NOT_MEASURED)}
    return {
        "worth": str(strength.worth),
        "own_f2p": strength.own,
        "changed_f2p": strength.changed,
        "hidden_by_import": len(strength.hidden),
        "failing": len(strength.failing),
        "guards": strength.guards,
        "caught": strength.caught,
        "valid": strength.valid,
        "invalid": strength.shares[UndoingOutcome.INVALID],
        "untried": strength.untried,
        "why_none": strength.why_none,
    }


def read_strengths(tx: Transaction, chain_id: str | None = None) -> dict[str, dict[int, Strength | None]]:
    """Chain to the strength of each of its stages whose tests are proved; of one chain, or of all."""
    where = {} if chain_id is None else {"chain_id": chain_id}
    found: dict[str, dict[int, Strength | None]] = {}
    for chain, position, row in tx.rows(StageTests, "chain_id", "position", "strength", outcome=PROVED, **where):
        found.setdefault(str(chain), {})[int(position)] = Strength.from_row(row) if row else None
    return found


def worst(strengths: Iterable[Strength | None]) -> Worth | None:
    """The worth of the weakest of some stages; None of none."""
    order = list(Worth)
    return min((it.worth if it else Worth.NOT_MEASURED for it in strengths), key=order.index, default=None)


def worth_counts(strengths: Iterable[Strength | None]) -> dict[str, int]:
    """How many stages are worth what, worst first."""
    counts = Counter(it.worth if it else Worth.NOT_MEASURED for it in strengths)
    return {str(name): counts[name] for name in Worth if counts[name]}


_LEFT_OUT = {"invalid": "invalid", "untried": "not tried"}


def strength_words(row: Mapping[str, Any]) -> str:
    """A `strength_row` in one line, for people."""
    if row["worth"] == Worth.NOT_MEASURED:
        return f"{Worth.NOT_MEASURED}; `prchain environments validate --strength` does"
    if row["own_f2p"] is None:
        why = f" ({_why_words(row['why_none'])})" if row["why_none"] else ""
        return f"{row['worth']}: the tests of before say nothing of the tree of before{why}"
    undone = f"{row['caught']} of {counted(row['valid'], 'undoing')} caught"
    if not row["valid"]:
        undone = f"nothing could be undone: {_why_words(row['why_none'])}"
    undone += "".join(f", {row[name]} {words}" for name, words in _LEFT_OUT.items() if row.get(name))
    parts = (
        f"{row['own_f2p']:,} own F2P, {row['changed_f2p']:,} of them added or changed",
        f"{row['hidden_by_import']:,} hidden by an import alone" if row["hidden_by_import"] else "",
        undone if row["own_f2p"] else "",
        f"{row['guards']:,} P2P beside them" if row["guards"] else "no P2P beside them",
    )
    return f"{row['worth']}: {'; '.join(filter(None, parts))}"


def _why_words(why: str | None) -> str:
    if why is None:
        return "why was not stored; `prchain environments validate --strength --renew` tells it"
    return _WHY_WORDS.get(why, f"the tests ended with {why}")
