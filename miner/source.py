"""Where pull requests come from: the interface of a source, and the values that it gives.

What git tells is read of every repository (`miner.git_facts`). A source adds what its forge knows beside it, and says
how the forge names things. Each module of `miner.sources` holds one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from miner.citations.urls import UrlForm
from prchain.core.console.progress import Progress
from prchain.core.secrets.scrub import Counts
from prchain.core.settings import Settings
from sql.store import Store


@dataclass(frozen=True, slots=True)
class Forge:
    """How a server that holds pull requests names things, to whoever reads them and by whatever way."""

    title: str
    """As people write it."""
    host: str
    """The host of its web pages, which is that of the repositories it holds."""
    pull_heads: str
    """The refs at which the heads of pull requests stand, with ``*`` for the number, as git's patterns have it."""
    urls: UrlForm
    credentials: str | None = field(default=None, repr=False)
    """``user:password`` for git, where there is a token."""


@dataclass
class ApiUsage:
    """What was spent on a forge's API. Every attempt counts, also the failed ones."""

    graphql_requests: int = 0
    rest_requests: int = 0
    points: int = 0
    waited_seconds: float = 0.0

    def add(self, other: ApiUsage) -> None:
        """Add what `other` spent."""
        self.graphql_requests += other.graphql_requests
        self.rest_requests += other.rest_requests
        self.points += other.points
        self.waited_seconds += other.waited_seconds


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a read is asked for."""

    since: str | None = None
    """Only pull requests that were updated since that time."""
    limit: int | None = None
    """Only so many, the newest."""
    rescan: bool = False
    """Everything is read again, so that edits and deletions show which no time of update betrays."""
    recheck_days: int | None = None
    """What was last updated within so many days is read again in any case; None: as the source thinks best."""


EVERYTHING = Wanted()


@dataclass(frozen=True)
class Resolved:
    """A repository as its forge knows it now."""

    node_id: str
    """The forge's own id, which survives renames."""
    owner: str
    name: str


@dataclass(frozen=True)
class ReadResult:
    """What one read did."""

    changed: bool
    """Whether it wrote any rows."""

    @property
    def failures(self) -> tuple[str, ...]:
        """What the forge did not deliver as it should have, in words; the next read asks for it again."""
        return ()


R = TypeVar("R", bound=Resolved)


class Source(Protocol[R]):
    """Reads the repositories of one forge; one instance a run, used by its threads, one repository each.

    What a read writes, it commits piece by piece, so that a killed run goes on where it was: `PullRequest` rows with a
    ``node_id`` and a ``state`` (open, closed, merged), and what else the tables of `sql.tables.mined` have room for.
    Texts are scrubbed before they are stored (`miner.archive.scrub`). It leaves ``outcome`` and ``head_sha`` alone,
    which git settles.
    """

    @property
    def forge(self) -> Forge:
        """How its forge names things."""
        ...

    def resolve(self, owner: str, name: str, *, spent: ApiUsage | None = None) -> R | None:
        """The repository under the name that it has now; None where git alone is to be read.

        What it costs is added to `spent`, also where it raises `RepositoryNotFound` or another `ForgeError`.
        """
        ...

    def name_of(self, node_id: str, *, spent: ApiUsage | None = None) -> str | None:
        """What the repository of this id is called now; None where the forge has, or shows, none such."""
        ...

    def read(
        self,
        repository_id: int,
        resolved: R,
        wanted: Wanted = EVERYTHING,
        *,
        replaced: Counts | None = None,
        spent: ApiUsage | None = None,
    ) -> ReadResult:
        """Bring the rows of the repository with this row id up to date with the forge.

        Raises `ForgeError`; what was committed stays. Secrets that were replaced in texts are added to `replaced`, and
        what it cost to `spent`.
        """
        ...

    def replay(self, repository_id: int) -> ReadResult:
        """Write the same rows again from what is archived of them, without the network."""
        ...


class SourceKind(ABC):
    """A kind of source, before a run: cheap to make, without a network."""

    @abstractmethod
    def forge(self, settings: Settings) -> Forge:
        """The forge that the settings name."""

    @abstractmethod
    def lacks(self, settings: Settings) -> str | None:
        """What the settings lack for it to ask the forge, and how to set it; None where they have all."""

    @abstractmethod
    def source(self, settings: Settings, store: Store, progress: Progress) -> Source[Any]:
        """A source that asks the forge. Raises `ForgeError` where the settings lack something."""

    @abstractmethod
    def replay(self, store: Store, repository_id: int) -> ReadResult:
        """See `Source.replay`."""
