"""What a test run on the reference, M_t, shows of its runner: what graded runs may hold as well."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from environments.suites.canaries.canary import hiding
from environments.suites.canaries.duels import HeldTest
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.safeguards import PLANTING, Safeguard, safeguard_of


@dataclass(frozen=True, slots=True)
class RunnerBaseline:
    """What is loaded and replaced in the runner when the reference's own tests run: there nobody cheats."""

    replaced: tuple[str, ...] = ()
    """Functions of the runner that the project itself replaces."""
    plugins: tuple[str, ...] | None = None
    """The installed plugins that are loaded, by the names of their entry points, in order; None: not known, the runner
    loads what it finds."""
    hooks: tuple[str, ...] | None = None
    """Files of the tree that implement hooks: ``conftest.py`` files, and plugins of its own; None: not known."""
    canaries: tuple[str, ...] | None = None
    """The slots of `environments.suites.canaries` that are reported as they have to be; None: not known."""

    watched: bool = False
    """Whether a reporter on Node looked for functions that are `replaced`; in proofs of before none did."""
    planting: int = 0
    """The version of the rules that planted them, `prchain.core.safeguards.PLANTING`."""
    held: tuple[HeldTest, ...] = ()
    """F2P tests that can be held true and false (`environments.suites.canaries.duels`)."""

    @property
    def slots(self) -> tuple[str, ...]:
        """The `canaries` that the present rules plant; none where other rules did."""
        return (self.canaries or ()) if self.planting == PLANTING else ()

    @property
    def safeguard(self) -> Safeguard:
        """What guards grades."""
        return safeguard_of(self.row())

    @property
    def own_plugins(self) -> tuple[str, ...]:
        """The files of `hooks` that are source: a project that is a plugin of its runner has some, and against these
        only canaries guard."""
        return tuple(path for path in self.hooks or () if kind_of(path) is not FileKind.TEST and not _is_conftest(path))

    def with_canaries(self, slots: Collection[str]) -> RunnerBaseline:
        """The same with those of these slots that hide something (`environments.suites.canaries.canary.hiding`)."""
        return replace(self, canaries=tuple(hiding(slots)), planting=PLANTING)

    def row(self) -> dict[str, Any]:
        """The fields as they are stored, without `replaced`, which has a column of its own."""
        values = asdict(self)
        del values["replaced"]
        if not self.watched:
            del values["watched"]  # as proofs of before have it
        return values

    @classmethod
    def from_row(cls, replaced: Collection[str], values: Mapping[str, Any]) -> RunnerBaseline:
        """The other way round."""
        known: dict[str, Any] = {name: tuple(it) if isinstance(it, list) else it for name, it in values.items()}
        known.pop("duels", None)  # of proofs that could take a test for false which inherits another one
        known["held"] = tuple(map(HeldTest.of, known.get("held", ())))
        return cls(tuple(replaced), **known)


def _is_conftest(path: str) -> bool:
    return path.rpartition("/")[2] == "conftest.py"
