"""Which chains and stages ``--proof`` takes, by what their proofs are worth and what guards grades by them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from prchain.core.console.terminal import counted, say
from prchain.core.errors import UsageError
from prchain.core.safeguards import Safeguard, safeguard_of
from sql.outcomes import PROVED
from sql.proof_filter import ProofFilter
from sql.store import Transaction
from sql.strength import Strength, Worth, read_strengths, worst
from sql.tables import ChainStage, ImportedTask, StageTests


def meets(strength: Strength | None, wanted: ProofFilter) -> bool:
    """Whether a proof of this strength is what `OWN` or `CAUGHT` asks for; one that was not measured is not."""
    if strength is None:
        return False
    return bool(strength.own) if wanted is ProofFilter.OWN else strength.worth is Worth.STRONG


def taken(tx: Transaction, wanted: ProofFilter) -> Callable[[str, Collection[int]], bool]:
    """Whether ``--proof`` takes a chain's stages at these positions: all of them, or those that a sample holds. Chains
    whose tasks are of others are taken; what was not proved is not."""
    if wanted is ProofFilter.ANY:
        return lambda chain, positions: True
    good: dict[str, set[int]] = {}
    if wanted is ProofFilter.TOLD:
        for chain, position, baseline in tx.rows(StageTests, "chain_id", "position", "baseline", outcome=PROVED):
            if safeguard_of(baseline) is Safeguard.TOLD:
                good.setdefault(str(chain), set()).add(int(position))
    else:
        for chain, strengths in read_strengths(tx).items():
            good[chain] = {position for position, it in strengths.items() if meets(it, wanted)}
    imported = imported_chains(tx)
    return lambda chain, positions: chain in imported or (bool(positions) and good.get(chain, set()) >= {*positions})


def imported_chains(tx: Transaction) -> frozenset[str]:
    """The chains whose tasks are of others, benchmarks among them: ``--proof`` asks nothing of these."""
    return frozenset(str(chain) for (chain,) in tx.rows(ImportedTask, "chain_id"))


def meeting(tx: Transaction, chain_ids: Sequence[str], wanted: ProofFilter) -> list[str]:
    """Those chains that ``--proof`` takes, in their order: with all of their stages."""
    if wanted is ProofFilter.ANY:
        return list(chain_ids)
    takes = taken(tx, wanted)
    stages: dict[str, set[int]] = {}
    for chain, position in tx.rows(ChainStage, "chain_id", "position"):
        stages.setdefault(str(chain), set()).add(int(position))
    return [it for it in chain_ids if takes(it, stages.get(it, set()))]


def require_proof(tx: Transaction, chain_id: str, wanted: ProofFilter) -> None:
    """Raise `UsageError` for a chain that somebody named and ``--proof`` does not take."""
    if not meeting(tx, [chain_id], wanted):
        raise UsageError(
            f"the proof of chain {chain_id} is worth less than --proof {wanted} asks for; "
            f"`prchain environments show {chain_id}` says what"
        )


def doubts(tx: Transaction, chain_ids: Collection[str], wanted: ProofFilter) -> tuple[str, ...]:
    """Lines on what is not to be believed of the proofs of some chains that ``--proof`` takes: `doubt_words`, each by
    its weakest stage, where it asks for nothing, and `unguarded` where it does not ask for that."""
    found = None
    if wanted is ProofFilter.ANY:
        strengths = read_strengths(tx)
        proved = strengths.keys() - imported_chains(tx)
        counts = Counter(worst(strengths[chain].values()) for chain in chain_ids if chain in proved)
        found = doubt_words(counts, "chain", ", each by its weakest stage")
    safeguards = None if wanted is ProofFilter.TOLD else unguarded(tx, chain_ids)
    return tuple(filter(None, (found, safeguards)))


def unguarded(tx: Transaction, chain_ids: Iterable[str]) -> str | None:
    """One line on what guards the grades of some chains' proved stages; None where a test is held in each."""
    counts: Counter[Safeguard] = Counter()
    for chain in {*chain_ids} - imported_chains(tx):
        for (baseline,) in tx.rows(StageTests, "baseline", outcome=PROVED, chain_id=chain):
            counts[safeguard_of(baseline)] += 1
    if not (counts[Safeguard.NONE] or counts[Safeguard.CANARIES]):
        return None
    told = ", ".join(f"{counts[name]:,} {name}" for name in Safeguard if counts[name])
    return (
        f"what guards the grades of {counted(counts.total(), 'stage')}: {told}; work that only seems to be done may "
        "pass where no test is held; type `prchain environments validate --renew` where that was proved before tests "
        "were, or --proof told to leave them out"
    )


def doubt_words(counts: Mapping[Any, int], noun: str, whole: str) -> str | None:
    """One line on proofs that may be worth nothing, of how many there are by `Worth`; None where there is none.

    `noun` is what each of the counted proofs is of, and `whole` goes on with what all of these are.
    """
    told = ", ".join(f"{counts[name]:,} {name}" for name in (Worth.IMPORT_ONLY, Worth.NOT_MEASURED) if counts.get(name))
    if not told:
        return None
    of = counted(sum(counts.get(name, 0) for name in Worth), noun)
    return (
        f"proofs of {of}{whole}: {told}; hidden tests that pass may say nothing there; type "
        "`prchain environments validate --strength` to measure them, or --proof own to leave them out"
    )


def say_proofs(doubts: Iterable[str | None], weak: int, noun: str = "chain") -> None:
    """Tell of proofs what there is to know, once a command: the lines of `doubts`, and how many chains ``--proof`` left
    out."""
    for doubt in filter(None, doubts):
        say(f"warning: {doubt}", err=True)
    if weak:
        say(f"{counted(weak, noun)} left out: what the proof is worth is less than --proof asks for", err=True)
