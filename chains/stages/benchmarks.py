"""Repositories and pull requests of evaluation benchmarks: training data must not contain them unless asked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from prchain.core.errors import BenchmarkListError

_OWNER = r"(?P<owner>[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))"
_REFERENCE = re.compile(
    rf"(?:https://github\.com/)?{_OWNER}/(?P<name>[\w.-]{{1,100}})(?:#|/pull/)(?P<number>[0-9]{{1,9}})/?"
)
_INSTANCE = re.compile(
    rf"(?:instance_)?{_OWNER}__(?P<name>[\w.-]{{1,100}}?)[-_](?P<number>[0-9]{{1,9}})"
    r"(?P<suffix>(?:__|[.-])[A-Za-z][\w.-]*)?"
)
_MAX_BYTES = 1 << 26


@dataclass(frozen=True)
class Benchmarks:
    """Repositories that benchmarks are made from, and single pull requests that the user listed."""

    repositories: Mapping[str, str] = field(default_factory=dict)
    """Full name in lower case to the benchmark's name, or names."""
    instances: frozenset[tuple[str, int]] = frozenset()
    """(full name in lower case, number)."""

    @classmethod
    def load(cls, path: Path | None = None) -> Benchmarks:
        """The known benchmarks, and the instances of the list at `path`.

        Each line is ``owner/name#N``, the URL of a pull request, or an instance id of SWE-bench, ``owner__name-N``,
        with or without a suffix (``__s2``, ``.variant``); ``#`` begins a comment at the start of a line or after a
        blank. Raises `BenchmarkListError`, which names file and line.
        """
        if path is None:
            return cls(_known())
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise BenchmarkListError(f"{path} is larger than a list of instances can be")
            text = path.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise BenchmarkListError(f"{path} cannot be read: {error.strerror or type(error).__name__}") from error
        except UnicodeDecodeError as error:
            raise BenchmarkListError(f"{path} is not UTF-8 text") from error
        return cls(_known(), frozenset(_instances(path.name, text.split("\n"))))

    def repository(self, full_name: str) -> str | None:
        """The benchmark made from a repository (``owner/name``); several are joined by commas."""
        return self.repositories.get(full_name.lower())

    def contains(self, full_name: str, number: int) -> bool:
        """Whether the user's list names this pull request of a repository."""
        return (full_name.lower(), number) in self.instances


def _instances(name: str, lines: Iterable[str]) -> Iterable[tuple[str, int]]:
    for position, line in enumerate(lines, start=1):
        entry = re.split(r"(?:^|\s)#", line, maxsplit=1)[0].strip()
        if not entry:
            continue
        match = _REFERENCE.fullmatch(entry) or _INSTANCE.fullmatch(entry)
        if match is None:
            raise BenchmarkListError(
                f"{name}, line {position}: {entry[:80]!r} is no instance; write owner/name#N or owner__name-N"
            )
        yield f"{match['owner']}/{match['name']}".lower(), int(match["number"])


@lru_cache(maxsize=1)
def _known() -> Mapping[str, str]:
    """Each repository of ``benchmarks.toml`` with the benchmarks that it is part of."""
    found: dict[str, list[str]] = {}
    table = tomllib.loads(files("chains.stages").joinpath("benchmarks.toml").read_text(encoding="utf-8"))
    for benchmark in table["benchmark"]:
        for repository in benchmark["repositories"]:
            found.setdefault(repository.lower(), []).append(benchmark["name"])
    return {repository: ", ".join(names) for repository, names in found.items()}
