"""What the parts of one read share: the store, the client, the repository, and what the read has done so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

from miner.archive import Json
from miner.budget import ApiUsage, Clock
from miner.github import pages, queries
from miner.github.client import GitHubClient
from miner.github.faults import Overloaded
from miner.github.pace import LISTING, Pace
from miner.github.pages import PullRequestPage
from prchain.errors import BadAnswer
from prchain.progress import ProgressTask
from prchain.timestamps import stamp
from sql.store import Store

MAX_DOUBTS = 3
MAX_STUMBLES = 8

CREATED_ASC = {"field": "CREATED_AT", "direction": "ASC"}
CREATED_DESC = {"field": "CREATED_AT", "direction": "DESC"}
UPDATED_DESC = {"field": "UPDATED_AT", "direction": "DESC"}


@dataclass(frozen=True)
class ResolvedRepository:
    """A repository as GitHub knows it now."""

    node_id: str
    owner: str
    name: str
    default_branch: str | None
    clone_url: str
    is_fork: bool
    requested_name: str
    """``owner/name`` as it was asked for; another one than the canonical where it was renamed."""
    pull_requests: int
    newest_update: str | None
    """When any of its pull requests last changed, by GitHub's clock."""
    usage: ApiUsage = field(default_factory=ApiUsage)
    """What it cost to resolve it."""

    @property
    def full_name(self) -> str:
        """``owner/name``, canonical."""
        return f"{self.owner}/{self.name}"


@dataclass(frozen=True)
class ReadSummary:
    """What one read did."""

    pull_requests: int
    """Pull requests written, new and changed ones."""
    changed: bool
    usage: ApiUsage
    total_count: int
    """How many GitHub says there are; for a bounded read, how many were asked for."""
    missing: tuple[int, ...] = ()
    """Pull requests that GitHub could not deliver, wholly or in part; the next read asks for them again."""
    unaccounted: int = 0
    """How many more GitHub counts than it lists."""


@dataclass
class RepositoryReading:
    """One read of one repository."""

    store: Store
    client: GitHubClient
    repository_id: int
    repository: ResolvedRepository
    task: Callable[[str, int | None], ProgressTask]
    clock: Clock
    written: set[int] = field(default_factory=set)
    missing: dict[int, str] = field(default_factory=dict)
    changed: bool = False

    @property
    def names(self) -> dict[str, str]:
        """The variables that name the repository."""
        return {"owner": self.repository.owner, "name": self.repository.name}

    def now(self) -> str:
        """The time as it is stored."""
        return stamp(datetime.fromtimestamp(self.clock(), UTC))


def listings(reading: RepositoryReading, order: Json, first: int | None = None) -> Iterator[PullRequestPage]:
    """Yield the repository's pull requests in the given order, number and times only, page after page.

    A page that looks wrong is asked for again; a list that cannot be followed to its end raises `BadAnswer`.
    """
    query = queries.load("listing")
    pace = Pace(LISTING, first)
    after: str | None = None
    trail: set[str] = set()
    doubts = stumbles = 0
    lenient = False
    while True:
        variables = {**reading.names, "first": pace.step.first, "after": after, "order": order}
        try:
            page = pages.listing(reading.client.graphql(query, variables).data)
        except Overloaded as fault:
            stumbles += 1
            if not pace.shrink() and stumbles >= MAX_STUMBLES:
                raise BadAnswer(f"GitHub could not even list pull requests: {fault}") from None
            reading.client.pause(stumbles - 1)
            continue
        if not follows(page, trail):
            doubts += 1
            if doubts > MAX_DOUBTS:
                raise BadAnswer("GitHub's list of pull requests leads in a circle or breaks off; run again later")
            reading.client.pause(doubts - 1)
            continue
        if is_short(page, variables["first"]) and not lenient:
            lenient = True
            continue
        doubts = stumbles = 0
        yield page
        if not page.has_next:
            return
        pace.succeeded()
        after = page.end_cursor
        trail.add(str(after))


def is_short(page: PullRequestPage, first: int) -> bool:
    """Whether a page has fewer items than asked for, though more are to come.

    GitHub does that where it hides some; or it lost some. Asked again once, the page is then taken as it is: the count
    at the end shows what is missing.
    """
    return page.has_next and len(page.nodes) < first


def follows(page: PullRequestPage, trail: set[str]) -> bool:
    """Whether the page has no next one, or a cursor that leads to one and not back."""
    return not page.has_next or (page.end_cursor is not None and page.end_cursor not in trail)
