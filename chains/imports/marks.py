"""Whether a row is of a benchmark: so it is taken, unless its data set is known to be made for training.

Names are those that the user gave and those of files and folders. What columns of a row say can mark it, and never
frees it: rows of a benchmark are handed on in blends with any column. ``--training`` frees what is marked in error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from chains.imports.instance import DataSet, Instance
from chains.stages.benchmarks import Benchmarks

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
    benchmark; else unless a name, or what only a training set does (bring faults in), shows that it is for training.
    """
    if instance.benchmark or benchmarks.repository(instance.repository):
        return True
    if where.source.lower() in _WHOLE and where.split == "train":
        return instance.source != where.source and _any(_BENCHMARK, [instance.source])
    names = [where.source, *where.names, *filter(None, (where.split,))]
    if _any(_BENCHMARK, [*names, instance.source, *filter(None, (instance.split,))]):
        return True
    return not (instance.breaks or instance.own or _any(_TRAINING, names))


def _any(pattern: re.Pattern[str], names: Iterable[str]) -> bool:
    """Whether the last word of one of these names is such a name; ``_`` counts as ``-``."""
    return any(pattern.fullmatch(name.rpartition("/")[2].lower().replace("_", "-")) for name in names)
