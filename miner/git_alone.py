"""The source that asks nobody: what git tells of a repository is all."""

from __future__ import annotations

from dataclasses import dataclass

from miner.source import EVERYTHING, ApiUsage, Forge, ReadResult, Resolved, SourceKind, Wanted
from prchain.core.secrets.scrub import Counts
from sql.store import Store


@dataclass(frozen=True, slots=True)
class GitAlone:
    """A `Source` of a forge that is not to be asked, or cannot be; what was once archived of it is replayed."""

    forge: Forge
    kind: SourceKind
    store: Store

    def resolve(self, owner: str, name: str, *, spent: ApiUsage | None = None) -> Resolved | None:
        """See `Source`: None."""
        return None

    def name_of(self, node_id: str, *, spent: ApiUsage | None = None) -> str | None:
        """See `Source`: it knows none."""
        return None

    def read(
        self,
        repository_id: int,
        resolved: Resolved,
        wanted: Wanted = EVERYTHING,
        *,
        replaced: Counts | None = None,
        spent: ApiUsage | None = None,
    ) -> ReadResult:
        """See `Source`: nothing."""
        return ReadResult(False)

    def replay(self, repository_id: int) -> ReadResult:
        """See `Source`."""
        return self.kind.replay(self.store, repository_id)
