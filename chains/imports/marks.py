"""Whether a row is of a benchmark: so it is taken, unless its data set is known to be made for training.

Names are those that the user gave and those of files and folders. What columns of a row say can mark it, and never
frees it: rows of a benchmark are handed on in blends with any column. A row of our own export is free where its chain
is in the database (`unknown_claims`). ``--training`` frees what is marked in error.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from sqlalchemy import select

from chains.imports.instance import DataSet, Instance
from chains.stages.benchmarks import Benchmarks
from sql.store import Transaction
from sql.tables import ChainStage, Repository

_BENCHMARK = re.compile(
    r"(?:.*[-.])?(?:(?:swe|swt)-?bench(?!-extra)|swe-?poly-?bench|swe-lancer|nocode-bench|leaderboard"
    r"|verified|multilingual|multimodal|20[0-9]{2}-[01][0-9])(?:[-.].*)?"
)
"""Names of data sets, files and splits that measure models; SWE-rebench's leaderboard names its splits by months."""

_TRAINING = re.compile(
    r"swe-gym(?:-lite|-raw)?|swe-rebench(?:-v2)?(?:-filtered)?|swe-bench-extra|swe-smith(?:-[a-z]+)?|multi-swe-rl"
    r"|nemotron(?:-.*)?"
)
"""Names of data sets that are made for training."""

_WHOLE = frozenset({"swe-bench/swe-bench", "princeton-nlp/swe-bench"})
"""SWE-bench itself, the one benchmark with a split for training, which is of other repositories than those for
measuring."""


def is_benchmark(instance: Instance, where: DataSet, benchmarks: Benchmarks) -> bool:
    """Whether no training data may hold an instance that was read `where`.

    So it is where its row says so, where a benchmark is made from its repository, and where a name is that of a
    benchmark; else unless a name, or what only a training set does (bring faults in), shows that it is for training, or
    it says that it is our own (`Instance.own`), which its importer has to look at.
    """
    if instance.benchmark or benchmarks.repository(instance.repository):
        return True
    if where.source.lower() in _WHOLE and where.split == "train":
        return instance.source != where.source and _any(_BENCHMARK, [instance.source])
    names = [where.source, *where.names, *filter(None, (where.split,))]
    if _any(_BENCHMARK, [*names, instance.source, *filter(None, (instance.split,))]):
        return True
    return not (instance.breaks or instance.own or _any(_TRAINING, names))


def unknown_claims(tx: Transaction, instances: Iterable[Instance], barred: Container[str]) -> set[str]:
    """Those of these instances, by the ids of their chains, that say they were exported from a chain of ours, and no
    chain of this database, of the same repository and with a stage that begins on the same commit, shows it; nor does a
    `barred` one, which holds a benchmark's task (`sql.benchmarks.benchmark_chains`)."""
    claiming = [it for it in instances if it.own is not None]
    query = (
        select(ChainStage.chain_id, Repository.owner, Repository.name, ChainStage.base_sha)
        .join(Repository, Repository.id == ChainStage.repository_id)
        .where(ChainStage.chain_id.in_({it.own for it in claiming} - {it.chain_id for it in claiming}))
    )
    rows = tx.connection.execute(query) if claiming else ()
    held = {(str(chain), f"{owner}/{name}".lower(), str(base)) for chain, owner, name, base in rows}
    return {
        it.chain_id
        for it in claiming
        if it.own in barred or (it.own, it.repository.lower(), it.base_commit) not in held
    }


def _any(pattern: re.Pattern[str], names: Iterable[str]) -> bool:
    """Whether the last word of one of these names is such a name; ``_`` counts as ``-``."""
    return any(pattern.fullmatch(name.rpartition("/")[2].lower().replace("_", "-")) for name in names)
