"""What the parts of one read share: the store, the client, the repository, and what the read has done so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from miner import names
from miner.archive import Json
from miner.github import pages, queries
from miner.github.budget import Clock
from miner.github.client import GitHubClient, GraphAnswer
from miner.github.faults import CursorRefused, Incomplete, Malformed, Overloaded
from miner.github.pace import LISTING, Pace
from miner.github.pages import PullRequestPage
from miner.github.queries import Query
from miner.source import ApiUsage, ReadResult, Resolved
from prchain.core.console.progress import ProgressTask
from prchain.core.console.terminal import counted, listed
from prchain.core.errors import BadAnswer, RepositoryNotFound
from prchain.core.timestamps import stamp
from sql.store import Store

MAX_DOUBTS = 3
MAX_STUMBLES = 8
MAX_MALFORMED = 3
"""So often the same question is asked whose answers are malformed: asking for less does not help there."""

CREATED_ASC = {"field": "CREATED_AT", "direction": "ASC"}
CREATED_DESC = {"field": "CREATED_AT", "direction": "DESC"}
UPDATED_DESC = {"field": "UPDATED_AT", "direction": "DESC"}


@dataclass(frozen=True)
class ResolvedRepository(Resolved):
    """A repository as GitHub knows it now."""

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
class ReadSummary(ReadResult):
    """What one read of GitHub did."""

    pull_requests: int
    """Pull requests written, new and changed ones."""
    usage: ApiUsage
    total_count: int
    """How many GitHub says there are; for a bounded read, how many were asked for."""
    missing: tuple[int, ...] = ()
    """Pull requests that GitHub could not deliver, wholly or in part; the next read asks for them again."""
    unaccounted: int = 0
    """How many more GitHub counts than it lists."""
    missing_reasons: tuple[str, ...] = ()
    """Why, of each of them."""
    malformed: tuple[str, ...] = ()
    """Review comments without the form they must have, and what is wrong with each; the next read asks again."""

    @property
    def failures(self) -> tuple[str, ...]:
        """See `ReadResult`."""
        told = []
        if self.missing:
            pulls = counted(len(self.missing), "pull request")
            numbers = listed([f"#{number}" for number in self.missing], 5)
            reasons = listed(sorted(set(self.missing_reasons)), 2)
            told.append(f"GitHub did not deliver {pulls} whole: {numbers}: {reasons}")
        if self.malformed:
            comments = counted(len(self.malformed), "review comment")
            told.append(f"GitHub's answer has {comments} without form: {listed(self.malformed, 2)}")
        return tuple(told)


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
    malformed: list[str] = field(default_factory=list)
    changed: bool = False

    @property
    def names(self) -> dict[str, str]:
        """The variables that name the repository."""
        return {"owner": self.repository.owner, "name": self.repository.name}

    def now(self) -> str:
        """The time as it is stored."""
        return stamp(datetime.fromtimestamp(self.clock(), UTC))

    def ask(self, query: Query, variables: Mapping[str, Json]) -> GraphAnswer:
        """Return the answer to a query (`GitHubClient.graphql`); where it tells a new name, the rows follow it.

        Raises `Incomplete` where the name belongs to another repository by now: the next question has the right one.
        """
        answer = self.client.graphql(query, variables)
        node_id, name = _home(answer.data)
        if node_id is not None and node_id != self.repository.node_id:
            self.follow()
            raise Incomplete("the answer is another repository's, which has taken the name")
        self._called(name)
        return answer

    def follow(self) -> bool:
        """Ask what the repository is called now; returns whether that is new. Raises `RepositoryNotFound`."""
        answer = self.client.graphql(queries.load("home"), {"id": self.repository.node_id})
        home = answer.data["node"]
        if home is None:
            raise RepositoryNotFound(f"{self.repository.full_name} has gone from GitHub while it was read")
        before = self.repository.full_name
        self.client.moved = False
        self._called(home["nameWithOwner"])
        return before != self.repository.full_name

    def _called(self, name: str | None) -> None:
        if name is None or name == self.repository.full_name:
            return
        with self.store.transaction() as tx:
            names.rename(tx, self.repository_id, name)
        owner, _, own_name = name.partition("/")
        self.repository = replace(self.repository, owner=owner, name=own_name)
        self.changed = True


def _home(data: Mapping[str, Json]) -> tuple[str | None, str | None]:
    """Node id and name of the repository that an answer is about, as far as it tells them."""
    if data.get("repository"):
        return data["repository"]["id"], data["repository"]["nameWithOwner"]
    nodes = data["nodes"] or () if "nodes" in data else data.values()
    homes = (node["repository"] for node in nodes if isinstance(node, dict) and node.get("repository"))
    return None, next((home["nameWithOwner"] for home in homes), None)


def listings(reading: RepositoryReading, order: Json, first: int | None = None) -> Iterator[PullRequestPage]:
    """Yield the repository's pull requests in the given order, number and times only, page after page.

    A page that looks wrong is asked for again; a list that cannot be followed to its end raises `BadAnswer`.
    """
    query = queries.load("listing")
    pace = Pace(LISTING, first)
    after: str | None = None
    trail: set[str] = set()
    doubts = stumbles = 0
    lenient = begun_anew = False
    while True:
        variables = {**reading.names, "first": pace.step.first, "after": after, "order": order}
        try:
            page = pages.listing(reading.ask(query, variables).data)
        except CursorRefused as fault:
            if begun_anew or after is None:
                raise BadAnswer(f"GitHub refuses the cursors of its own list: {fault}") from None
            begun_anew, after = True, None
            trail.clear()
            continue
        except Overloaded as fault:
            stumbles += 1
            if isinstance(fault, Malformed):
                smaller, most = False, MAX_MALFORMED
            else:
                smaller, most = pace.shrink(), MAX_STUMBLES
            if not smaller and stumbles >= most:
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
