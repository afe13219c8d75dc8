"""What the miner stored of one repository, in the form that the chain builder needs."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select

from sql.outcomes import ENDED_WELL
from sql.store import Transaction
from sql.tables import Citation, Commit, Landing, MineRun, PullRequest, PullRequestCommit, PullRequestText, Repository

_TEXT_FIELDS = ("title", "body")
MERGE_PREFIX = "Merge pull request "
"""Of the subject of a merge by GitHub."""

_MERGED_BRANCH = re.compile(r"Merge pull request #\d+ from [^/\s]+/(\S+)")


@dataclass(frozen=True, slots=True)
class CountedCitation:
    """One counted citation of a pair, as the miner stored it."""

    relation: str
    field: str
    key: str
    snippet: str
    weak_signs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MinedRepository:
    """A mined repository."""

    id: int
    host: str
    full_name: str
    location: str
    default_branch: str | None
    by_api: bool = False
    """Whether GitHub's API was read, and not only the git repository."""
    unfinished: bool = False
    """Whether its last run of `prchain mine` did not end well: citations and landings may be missing."""


@dataclass(frozen=True, slots=True)
class LandedPullRequest:
    """A pull request with the landing that counts: on the default branch where there is one, else the first."""

    number: int
    branch: str
    is_default: bool
    position: int
    base_sha: str
    landed_sha: str
    landed_at: str
    subject: str
    by_bot: bool = False
    title: str = ""
    """From the API, else from the merge commit; empty where there is neither."""
    body: str = ""
    missing_files: int = 0
    """Files of its base and of its patch whose content the mirror lacked when it was mined."""

    @property
    def headline(self) -> str:
        """What it is called: its title, else the landing's subject."""
        return self.title or self.subject

    @property
    def order(self) -> tuple[str, int, int]:
        """Sorts the pull requests of one branch as they landed."""
        return self.branch, self.position, self.number


def repositories(tx: Transaction, full_name: str | None = None) -> list[MinedRepository]:
    """The mined repositories, or the one of that name, in the order of their names. Those of which only tasks of others
    were imported are none."""
    columns = ("id", "host", "owner", "name", "location", "default_branch", "node_id")
    runs = sorted(
        (id_, repository_id, outcome)
        for id_, repository_id, outcome in tx.rows(MineRun, "id", "repository_id", "outcome")
    )
    last = {repository_id: outcome for _, repository_id, outcome in runs}
    unfinished = {repository_id for repository_id, outcome in last.items() if outcome not in ENDED_WELL}
    found = [
        MinedRepository(id_, host, f"{owner}/{name}", location, branch, node_id is not None, id_ in unfinished)
        for id_, host, owner, name, location, branch, node_id in tx.rows(Repository, *columns)
        if location and (full_name is None or f"{owner}/{name}".lower() == full_name.lower())
    ]
    return sorted(found, key=lambda mined: (mined.full_name.lower(), mined.host))


def read_landed(tx: Transaction, repository_id: int) -> dict[int, LandedPullRequest]:
    """Every landed pull request by its number."""
    bots = {
        number
        for number, kind in tx.rows(PullRequest, "number", "author_kind", repository_id=repository_id)
        if kind == "Bot"
    }
    texts: dict[int, dict[str, str]] = defaultdict(dict)
    query = select(PullRequestText.number, PullRequestText.field, PullRequestText.body).where(
        PullRequestText.repository_id == repository_id, PullRequestText.field.in_(_TEXT_FIELDS)
    )
    for number, field, body in tx.connection.execute(query):
        texts[number][field] = body
    merge_titles = _merge_titles(tx, repository_id)
    found: dict[int, LandedPullRequest] = {}
    columns = (
        "number",
        "branch",
        "is_default",
        "position",
        "base_sha",
        "landed_sha",
        "landed_at",
        "subject",
        "missing_files",
    )
    for row in tx.rows(Landing, *columns, repository_id=repository_id):
        pull_texts = texts.get(row[0], {})
        title = pull_texts.get("title") or merge_titles.get(row[5], "")
        facts = dict(zip(columns, row, strict=True))
        facts["missing_files"] = facts["missing_files"] or 0
        candidate = LandedPullRequest(**facts, by_bot=row[0] in bots, title=title, body=pull_texts.get("body", ""))
        known = found.get(candidate.number)
        if known is None or _rank(candidate) < _rank(known):
            found[candidate.number] = candidate
    return found


def display_subject(subject: str) -> str:
    """A landing's subject for people to read: of a merge by GitHub, the name of the branch."""
    merged = _MERGED_BRANCH.match(subject)
    return merged[1] if merged else subject


def title_below(message: str) -> str:
    """The first line below a message's subject, where GitHub writes the title of what it merges; empty for none."""
    return message.partition("\n")[2].strip().partition("\n")[0].strip()


def _merge_titles(tx: Transaction, repository_id: int) -> dict[str, str]:
    """Titles as GitHub writes them below the subject of a merge, by the merge commit."""
    query = (
        select(Commit.sha, Commit.message)
        .join(Landing, (Landing.repository_id == Commit.repository_id) & (Landing.landed_sha == Commit.sha))
        .where(Commit.repository_id == repository_id, Landing.subject.startswith(MERGE_PREFIX))
    )
    messages = tx.connection.execute(query, execution_options={"yield_per": 1000})
    return {sha: title for sha, message in messages if (title := title_below(message))}


def _rank(landed: LandedPullRequest) -> tuple[bool, str, str]:
    return not landed.is_default, landed.landed_at, landed.branch


def read_citations(tx: Transaction, repository_id: int) -> dict[tuple[int, int], list[CountedCitation]]:
    """The counted citations of each (source, target) pair."""
    found: dict[tuple[int, int], list[CountedCitation]] = defaultdict(list)
    columns = ("source", "target", "relation", "field", "key", "snippet", "weak_signs")
    for source, target, relation, field, key, snippet, weak in tx.rows(
        Citation, *columns, repository_id=repository_id, counted=True
    ):
        signs = tuple(weak.split(",")) if weak else ()
        found[source, target].append(CountedCitation(relation, field, key, snippet, signs))
    return dict(found)


def days_between(earlier: str, later: str) -> float:
    """Days from one stored time to another; 0 where one cannot be read."""
    try:
        gap = datetime.fromisoformat(later) - datetime.fromisoformat(earlier)
    except ValueError:
        return 0.0
    return gap.total_seconds() / 86_400


def text_lengths(tx: Transaction, repository_id: int) -> dict[int, int]:
    """How many characters describe each pull request, besides its subject.

    Counts its description and the messages of its own commits and of its landing, without their first lines.
    """
    found: dict[int, int] = defaultdict(int)
    for number, body in tx.connection.execute(
        select(PullRequestText.number, PullRequestText.body).where(
            PullRequestText.repository_id == repository_id, PullRequestText.field == "body"
        )
    ):
        found[number] += len(body.strip())
    own = (
        select(PullRequestCommit.number, Commit.message)
        .join(Commit, (Commit.repository_id == PullRequestCommit.repository_id) & (Commit.sha == PullRequestCommit.sha))
        .where(PullRequestCommit.repository_id == repository_id)
    )
    landing = (
        select(Landing.number, Commit.message)
        .join(Commit, (Commit.repository_id == Landing.repository_id) & (Commit.sha == Landing.landed_sha))
        .where(Landing.repository_id == repository_id)
    )
    for query in (own, landing):
        for number, message in tx.connection.execute(query, execution_options={"yield_per": 1000}):
            found[number] += len(message.partition("\n")[2].strip())
    return dict(found)
