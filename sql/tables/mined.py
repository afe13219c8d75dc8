"""The tables of the miner: pull requests, their texts, their code facts, their citations, and how they were read."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from sql.json_text import JsonText
from sql.tables.base import Base


class Repository(Base):
    """One mined repository under its canonical name."""

    __tablename__ = "repositories"
    __table_args__ = (UniqueConstraint("host", "owner", "name"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    host: Mapped[str] = mapped_column(String(255))
    owner: Mapped[str] = mapped_column(String(255))
    name: Mapped[str] = mapped_column(String(255))
    location: Mapped[str] = mapped_column(Text)
    """Where its git history was read from: a path or a clone URL without credentials; empty where only tasks of others
    were imported."""
    default_branch: Mapped[str | None] = mapped_column(Text)
    node_id: Mapped[str | None] = mapped_column(String(255))
    """GitHub's own id; survives renames. Null when only git was read."""


class RepositoryAlias(Base):
    """A former or other name of a repository; citations under it are citations of the repository itself."""

    __tablename__ = "repository_aliases"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    alias: Mapped[str] = mapped_column(String(255), primary_key=True)
    """``owner/name``, lower case."""
    evidence: Mapped[str] = mapped_column(String(32))
    """``spec`` (what the user wrote), ``api`` (a rename GitHub resolved) or ``merge_subject``."""


class PullRequest(Base):
    """One pull request, whatever became of it. Columns that only the API knows are null when git alone was read."""

    __tablename__ = "pull_requests"
    __table_args__ = (Index("ix_pull_requests_outcome", "repository_id", "outcome"),)

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(String(32), default="unsettled")
    """Exactly one of `miner.outcomes`; ``unsettled`` only while a run is under way."""
    reason: Mapped[str | None] = mapped_column(Text)
    """Why, with the evidence, where the outcome alone does not say it."""
    head_sha: Mapped[str | None] = mapped_column(String(64))
    """What ``refs/pull/N/head`` points at."""
    node_id: Mapped[str | None] = mapped_column(String(255))
    state: Mapped[str | None] = mapped_column(String(16))
    """``open``, ``closed`` or ``merged``, as GitHub says."""
    is_draft: Mapped[bool | None]
    author: Mapped[str | None] = mapped_column(String(255))
    """Login; null for a deleted account or when only git was read."""
    author_kind: Mapped[str | None] = mapped_column(String(32))
    """GraphQL's ``__typename`` of the author: User, Bot, Mannequin, Organization, EnterpriseUserAccount."""
    author_association: Mapped[str | None] = mapped_column(String(32))
    base_branch: Mapped[str | None] = mapped_column(Text)
    head_branch: Mapped[str | None] = mapped_column(Text)
    head_repository: Mapped[str | None] = mapped_column(String(511))
    api_head_sha: Mapped[str | None] = mapped_column(String(64))
    api_base_sha: Mapped[str | None] = mapped_column(String(64))
    """GraphQL's ``baseRefOid``: where the base branch stood, not the base the pull request landed on."""
    merge_sha: Mapped[str | None] = mapped_column(String(64))
    """GraphQL's ``mergeCommit.oid``; a claim of the API that the git history is asked to bear out."""
    commit_count: Mapped[int | None]
    changed_files: Mapped[int | None]
    additions: Mapped[int | None]
    deletions: Mapped[int | None]
    created_at: Mapped[str | None] = mapped_column(String(32))
    updated_at: Mapped[str | None] = mapped_column(String(32))
    closed_at: Mapped[str | None] = mapped_column(String(32))
    merged_at: Mapped[str | None] = mapped_column(String(32))
    gone_at: Mapped[str | None] = mapped_column(String(32))
    """When a rescan no longer found it on GitHub; null while it is there."""


class PullRequestText(Base):
    """One text of a pull request that the API gave: title, body, a comment, a review, a review comment."""

    __tablename__ = "pull_request_texts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    field: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``title``, ``body``, ``comment``, ``review`` or ``review_comment``."""
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    """The item's ``fullDatabaseId`` in decimal; empty for title and body."""
    author: Mapped[str | None] = mapped_column(String(255))
    author_kind: Mapped[str | None] = mapped_column(String(32))
    author_association: Mapped[str | None] = mapped_column(String(32))
    body: Mapped[str] = mapped_column(Text)
    state: Mapped[str | None] = mapped_column(String(32))
    """A review's state: APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED."""
    path: Mapped[str | None] = mapped_column(Text)
    diff_hunk: Mapped[str | None] = mapped_column(Text)
    commit_sha: Mapped[str | None] = mapped_column(String(64))
    reply_to: Mapped[str | None] = mapped_column(String(255))
    """The key of the review comment this one answers."""
    created_at: Mapped[str | None] = mapped_column(String(32))
    """Of a review: when it was submitted."""
    updated_at: Mapped[str | None] = mapped_column(String(32))
    review: Mapped[str | None] = mapped_column(String(255))
    """The key of the review that a review comment belongs to."""
    line: Mapped[int | None]
    """A review comment's line at the head; null where the head has it no more, or the comment is on a whole file."""
    original_line: Mapped[int | None]
    """Its line at the commit that it was made on."""
    original_start_line: Mapped[int | None]
    """Where it is on several lines, the first of them."""
    side: Mapped[str | None] = mapped_column(String(8))
    """``RIGHT`` for a line as the pull request has it, ``LEFT`` for one as it was before."""


class ReviewThread(Base):
    """A thread of review comments, and whether it was resolved."""

    __tablename__ = "review_threads"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    """GitHub's node id."""
    position: Mapped[int]
    """Its place in GitHub's list, 0 is the first."""
    is_resolved: Mapped[bool]
    is_outdated: Mapped[bool]
    path: Mapped[str] = mapped_column(Text)
    line: Mapped[int | None]
    original_line: Mapped[int | None]
    original_start_line: Mapped[int | None]
    side: Mapped[str | None] = mapped_column(String(8))
    comment: Mapped[str | None] = mapped_column(String(255))
    """The key of the review comment that it begins with; null where none is known."""
    told: Mapped[bool] = mapped_column(default=False)
    """Whether GitHub was asked for that comment; else its place tells it (`miner.github.threads`)."""


class IncompletePart(Base):
    """What GitHub counts of a pull request and does not give, asked twice. It is not asked again until the pull request
    changes."""

    __tablename__ = "incomplete_parts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    connection: Mapped[str] = mapped_column(String(32), primary_key=True)
    """``labels``, ``commits``, ``comments``, ``reviews``, ``threads``, ``closing_issues`` or ``timeline``."""
    came: Mapped[int]
    total: Mapped[int | None]
    """How many GitHub counts; null where it does not say."""
    reason: Mapped[str] = mapped_column(Text)
    """In words, with the type of GitHub's error where it named one."""


class Label(Base):
    """One label on one pull request."""

    __tablename__ = "labels"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(String(255), primary_key=True)


class Issue(Base):
    """An issue that some pull request closes, possibly of another repository."""

    __tablename__ = "issues"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    """The mined repository in whose pages it was seen."""
    issue_repository: Mapped[str] = mapped_column(String(511), primary_key=True)
    issue_number: Mapped[int] = mapped_column(primary_key=True)
    title: Mapped[str | None] = mapped_column(Text)
    body: Mapped[str | None] = mapped_column(Text)
    state: Mapped[str | None] = mapped_column(String(16))
    author: Mapped[str | None] = mapped_column(String(255))


class ClosingReference(Base):
    """GitHub says that this pull request closes this issue."""

    __tablename__ = "closing_references"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["repository_id", "issue_repository", "issue_number"],
            ["issues.repository_id", "issues.issue_repository", "issues.issue_number"],
            ondelete="CASCADE",
        ),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    issue_repository: Mapped[str] = mapped_column(String(511), primary_key=True)
    issue_number: Mapped[int] = mapped_column(primary_key=True)


class TimelineEvent(Base):
    """One event of a pull request's timeline: cross-references, connections, force pushes, renames."""

    __tablename__ = "timeline_events"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
        Index("ix_timeline_events_source", "repository_id", "other_number"),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    """The pull request on whose timeline the event stands: the one that is *cited* in a cross-reference."""
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    """The event's node id."""
    kind: Mapped[str] = mapped_column(String(64))
    """GraphQL's ``__typename``, e.g. ``CrossReferencedEvent``."""
    actor: Mapped[str | None] = mapped_column(String(255))
    created_at: Mapped[str | None] = mapped_column(String(32))
    other_repository: Mapped[str | None] = mapped_column(String(511))
    other_number: Mapped[int | None]
    other_kind: Mapped[str | None] = mapped_column(String(16))
    """``PullRequest`` or ``Issue``."""
    closes: Mapped[bool | None]
    sha: Mapped[str | None] = mapped_column(String(64))
    before: Mapped[str | None] = mapped_column(Text)
    """Force push: old head. Rename or base change: old title or branch."""
    after: Mapped[str | None] = mapped_column(Text)


class Commit(Base):
    """A commit that is some pull request's own, or that landed one."""

    __tablename__ = "commits"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    sha: Mapped[str] = mapped_column(String(64), primary_key=True)
    author: Mapped[str] = mapped_column(Text)
    """The author's name; never the e-mail address."""
    authored_at: Mapped[str] = mapped_column(String(32))
    committed_at: Mapped[str] = mapped_column(String(32))
    parents: Mapped[int]
    """How many parents it has: 0 for a root, -1 where only the API has shown it, which does not say."""
    message: Mapped[str] = mapped_column(Text)


class PullRequestCommit(Base):
    """A commit of a pull request: brought by its head and not by the branch it went to."""

    __tablename__ = "pull_request_commits"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(["repository_id", "sha"], ["commits.repository_id", "commits.sha"], ondelete="CASCADE"),
        Index("ix_pull_request_commits_sha", "repository_id", "sha"),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    origin: Mapped[str] = mapped_column(String(8), primary_key=True)
    """``git`` (walked from the pull head) or ``api`` (GitHub's own list)."""
    sha: Mapped[str] = mapped_column(String(64), primary_key=True)
    position: Mapped[int]
    """0 is the oldest."""


class Landing(Base):
    """Where a pull request landed: base B_t, landed commit M_t, on one branch. The number was borne out by its head."""

    __tablename__ = "landings"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
        Index("ix_landings_landed_sha", "repository_id", "landed_sha"),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    branch: Mapped[str] = mapped_column(String(255), primary_key=True)
    """Without ``refs/heads/``."""
    is_default: Mapped[bool]
    style: Mapped[str] = mapped_column(String(16))
    """merge, squash, rebase, fast_forward or other."""
    base_sha: Mapped[str] = mapped_column(String(64))
    landed_sha: Mapped[str] = mapped_column(String(64))
    head_sha: Mapped[str | None] = mapped_column(String(64))
    landed_at: Mapped[str] = mapped_column(String(32))
    subject: Mapped[str] = mapped_column(Text)
    position: Mapped[int]
    """Index of the landed commit on the branch's first-parent line, 0 is the oldest; orders landings of one branch."""
    claim: Mapped[str] = mapped_column(String(32))
    """What tied the number to the commit: the syntax of the message, or a sign of the graph."""
    evidence: Mapped[str] = mapped_column(String(64))
    """What bore it out: head_is_parent, head_contains, same_tree, same_patch, same_files, same_commits, api ..."""
    counts: Mapped[str] = mapped_column(String(16), default="none")
    """Line counts of its files: ``none`` (not asked for), ``done`` or ``partial`` (a blob is missing)."""
    missing_files: Mapped[int | None]
    """How many files of its base and of its patch have no content in the mirror; null where that was not looked at."""


class LandingFile(Base):
    """One file of a reference patch, B_t to M_t."""

    __tablename__ = "landing_files"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "number", "branch"],
            ["landings.repository_id", "landings.number", "landings.branch"],
            ondelete="CASCADE",
        ),
        Index("ix_landing_files_path", "repository_id", "path"),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    branch: Mapped[str] = mapped_column(String(255), primary_key=True)
    path: Mapped[str] = mapped_column(Text, primary_key=True)
    status: Mapped[str] = mapped_column(String(1))
    """git's letter: A, M, D, R (renamed), T (type changed). Copies are not looked for."""
    old_path: Mapped[str | None] = mapped_column(Text)
    old_mode: Mapped[str] = mapped_column(String(6))
    new_mode: Mapped[str] = mapped_column(String(6))
    old_blob: Mapped[str] = mapped_column(String(64))
    new_blob: Mapped[str] = mapped_column(String(64))
    additions: Mapped[int | None]
    deletions: Mapped[int | None]
    note: Mapped[str | None] = mapped_column(String(64))
    """Why there are no line counts: ``binary`` or ``missing_blob``."""


class RefusedClaim(Base):
    """A commit that names a number which its pull head does not bear out."""

    __tablename__ = "refused_claims"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    sha: Mapped[str] = mapped_column(String(64), primary_key=True)
    branch: Mapped[str] = mapped_column(Text)
    claim: Mapped[str] = mapped_column(String(32))
    reason: Mapped[str] = mapped_column(String(64))
    subject: Mapped[str] = mapped_column(Text)


class Citation(Base):
    """One place where a pull request cites another one of the same repository."""

    __tablename__ = "citations"
    __table_args__ = (
        ForeignKeyConstraint(
            ["repository_id", "source"], ["pull_requests.repository_id", "pull_requests.number"], ondelete="CASCADE"
        ),
        Index("ix_citations_target", "repository_id", "target"),
    )

    repository_id: Mapped[int] = mapped_column(primary_key=True)
    source: Mapped[int] = mapped_column(primary_key=True)
    target: Mapped[int] = mapped_column(primary_key=True)
    """The cited number; a pull request's, or, with reason ``not_a_pull_request``, something else's."""
    relation: Mapped[str] = mapped_column(String(16), primary_key=True)
    field: Mapped[str] = mapped_column(String(32), primary_key=True)
    """Where it stands: a field of the API's texts, ``commit`` (own message), ``landing`` (of the landing commit),
    ``branch`` (the head branch's name), ``event`` (the API's timeline), ``base`` (the base branch, which is the head
    branch of the cited one) or ``history`` (ancestry)."""
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    """Which text of that field: its key, a commit's sha, or empty."""
    syntax: Mapped[str] = mapped_column(String(16))
    snippet: Mapped[str] = mapped_column(Text)
    counted: Mapped[bool]
    reason: Mapped[str | None] = mapped_column(String(32))
    """Why it is not counted; null where it is."""
    confidence: Mapped[float]
    """0 to 1, from the weak signs; `miner.edges`."""
    weak_signs: Mapped[str | None] = mapped_column(Text)
    """The names of the signs that lowered the confidence, comma-separated."""


class ArchivedPage(Base):
    """One raw answer of the API, scrubbed and compressed, so that parsing can be redone without the network."""

    __tablename__ = "archived_pages"
    __table_args__ = (UniqueConstraint("repository_id", "stream", "request_key"),)

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    """Grows in the order of arrival; replaying in this order gives the rows of the run."""
    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"))
    stream: Mapped[str] = mapped_column(String(64))
    """What was read: ``sweep``, ``incremental``, ``more:comments``, ``review_comments`` ..."""
    request_key: Mapped[str] = mapped_column(String(64))
    """SHA-256 of the query and its variables, or of the REST path and its parameters, and of the pass they are of."""
    fetched_at: Mapped[str] = mapped_column(String(32))
    body: Mapped[bytes] = mapped_column(LargeBinary)
    """zlib-compressed UTF-8 JSON."""


class Cursor(Base):
    """How far one stream of one repository has been read. Written in the transaction of the rows it covers."""

    __tablename__ = "cursors"

    repository_id: Mapped[int] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"), primary_key=True)
    stream: Mapped[str] = mapped_column(String(64), primary_key=True)
    position: Mapped[str | None] = mapped_column(Text)
    """The stream's own notion: an end cursor, a time, a fingerprint of refs."""
    watermark: Mapped[str | None] = mapped_column(String(32))
    """Everything changed up to this time has been read."""
    page_size: Mapped[int | None]
    """The page size that last worked, remembered across runs."""
    complete: Mapped[bool] = mapped_column(default=False)
    detail: Mapped[dict[str, Any] | None] = mapped_column(JsonText())
    """Small JSON of the stream's own."""


class MineRun(Base):
    """One run over one repository: when, from where, what it cost and how it ended."""

    __tablename__ = "mine_runs"

    id: Mapped[int] = mapped_column(primary_key=True)
    repository_id: Mapped[int | None] = mapped_column(ForeignKey("repositories.id", ondelete="CASCADE"))
    spec: Mapped[str] = mapped_column(Text)
    """The line of the list, without credentials."""
    source: Mapped[str] = mapped_column(String(16))
    started_at: Mapped[str] = mapped_column(String(32))
    finished_at: Mapped[str | None] = mapped_column(String(32))
    outcome: Mapped[str] = mapped_column(String(32))
    """``running``, ``interrupted``, ``mined``, ``unchanged`` or the name of the error that ended it."""
    reason: Mapped[str | None] = mapped_column(Text)
    graphql_requests: Mapped[int] = mapped_column(default=0)
    rest_requests: Mapped[int] = mapped_column(default=0)
    points: Mapped[int] = mapped_column(default=0)
    waited_seconds: Mapped[float] = mapped_column(default=0.0)
    replaced: Mapped[dict[str, Any] | None] = mapped_column(JsonText(sort_keys=True))
    """JSON: how many secrets of each kind were replaced in the texts that it read; null for none."""
