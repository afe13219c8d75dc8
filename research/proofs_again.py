"""Whether proofs hold where all is made anew: `python -m research.proofs_again DB [--chains 10] [--seed 1]`.

Proved chains, drawn by the seed, are proved once more on a copy of the database, in an engine that has none of their
images (DOCKER_HOST names it), and the tests of each stage are compared.
"""

from __future__ import annotations

import argparse
import random
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from environments.images.images import find_image
from environments.images.provide import Provider
from environments.proofs.proof_rows import ChainProof, StageProof, forget, read_proof, validations
from environments.proofs.validate import ChainProver, ValidateOptions
from prchain.core.settings import Settings
from sql.outcomes import PROVED
from sql.store import Store


def differences(before: StageProof, after: StageProof) -> list[str]:
    """What is another in the second proof of a stage: its outcome, and each test with its two classes."""
    found = [f"{before.outcome}, then {after.outcome}: {after.reason}"] if before.outcome != after.outcome else []
    first, second = dict(_classes(before)), dict(_classes(after))
    for test in sorted(first.keys() | second.keys()):
        if first.get(test) != second.get(test):
            found.append(f"{test}: {first.get(test, 'none')}, then {second.get(test, 'none')}")
    return found


def _classes(proof: StageProof) -> Iterator[tuple[str, str]]:
    for kind in ("f2p", "p2p"):
        for test in getattr(proof.classes, kind):
            yield test, kind


def line(before: ChainProof, after: ChainProof, at: int, differing: list[str]) -> str:
    """A stage in one line."""
    old, new = before.stages[at], after.stages[at]
    counts = ", ".join(f"{len(getattr(new.classes, kind)):,} {kind}" for kind in ("f2p", "p2p"))
    same = "same tests" if not differing else f"{len(differing):,} differ"
    image = "" if old.image == new.image else f", in {new.image} after {old.image}"
    return (
        f"{after.chain_id}.{old.position}  {same}: {counts} ({after.seconds:.0f} s after {before.seconds:.0f} s{image})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("db", type=Path)
    parser.add_argument("--chains", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--copy", type=Path, default=Path("again.db"), help="made anew")
    arguments = parser.parse_args()
    arguments.copy.unlink(missing_ok=True)
    source = sqlite3.connect(f"file:{arguments.db}?mode=ro", uri=True)
    with closing(source), closing(sqlite3.connect(arguments.copy)) as target:
        source.backup(target)
    settings = Settings.load(db=str(arguments.copy))
    with closing(Store.open(settings.db)) as store, closing(Provider(settings, store=store)) as provider:
        with store.reading() as tx:
            proved = sorted(chain for chain, ended in validations(tx).items() if ended.outcome == PROVED)
            drawn = random.Random(arguments.seed).sample(proved, min(arguments.chains, len(proved)))
            known = {chain: read_proof(tx, chain) for chain in drawn}
        images = {stage.image for proof in known.values() for stage in proof.stages if stage.image}
        if there := [name for name in sorted(images) if find_image(provider.engine(), name)]:
            sys.exit(f"the engine has {', '.join(there)}: name a fresh one in DOCKER_HOST")
        with store.transaction() as tx:
            forget(tx, drawn)
        prover, equal = ChainProver(store, provider, settings, ValidateOptions()), 0
        for chain, before in known.items():
            after = prover.prove(chain)
            found = [differences(old, new) for old, new in zip(before.stages, after.stages, strict=True)]
            equal += not any(found)
            for at, differing in enumerate(found):
                print("\n  ".join([line(before, after, at, differing), *differing[:20]]), flush=True)
        print(f"{equal} of {len(known)} chains have the same tests")
    return 0 if equal == len(known) else 1


if __name__ == "__main__":
    sys.exit(main())
