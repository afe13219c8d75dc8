"""The objects of a GitHub universe. Field names are GitHub's, in snake case; times are ISO 8601 text, UTC."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.emulator.objects import Commit

INT_MAX = 2**31 - 1


@dataclass(slots=True, eq=False)
class Thing:
    """Anything with a node id and a database id."""

    id: str
    database_key: int

    @property
    def database_id(self) -> int | None:
        """GraphQL's Int; null where the number does not fit, as for GitHub's newer comments."""
        return self.database_key if self.database_key <= INT_MAX else None

    @property
    def full_database_id(self) -> str:
        return str(self.database_key)

    @property
    def order(self) -> tuple[str, int]:
        """Its key in a connection. Cursors are made from it, so an insertion elsewhere moves no cursor."""
        return ("", self.database_key)


@dataclass(slots=True, eq=False)
class Account(Thing):
    """A user, bot, organization, mannequin or enterprise account; `kind` is GraphQL's ``__typename``."""

    login: str
    kind: str = "User"
    name: str | None = None
    root: str = "https://github.example"

    @property
    def url(self) -> str:
        path = f"apps/{self.login}" if self.kind == "Bot" else self.login
        return f"{self.root}/{path}"


@dataclass(slots=True, eq=False)
class Dated(Thing):
    """A thing that connections sort by time."""

    created_at: str

    @property
    def order(self) -> tuple[str, int]:
        return (self.created_at, self.database_key)


@dataclass(slots=True, eq=False)
class Written(Dated):
    """A text with an author: author None where the account was deleted, body None where REST has null."""

    author: Account | None
    author_association: str
    body: str | None
    updated_at: str
    last_edited_at: str | None = field(default=None, kw_only=True)

    @property
    def includes_created_edit(self) -> bool:
        return self.last_edited_at is not None


@dataclass(slots=True, eq=False)
class Label(Thing):
    name: str
    color: str = "ededed"
    description: str | None = None
    kind: str = "Label"


@dataclass(slots=True, eq=False)
class Milestone(Thing):
    title: str
    number: int
    kind: str = "Milestone"


@dataclass(slots=True, eq=False)
class Ref(Thing):
    name: str
    target: Commit | None
    prefix: str = "refs/heads/"
    kind: str = "Ref"


@dataclass(slots=True, eq=False)
class Repository(Dated):
    owner: Account
    name: str
    is_fork: bool = False
    is_private: bool = False
    parent: Repository | None = None
    former_names: list[str] = field(default_factory=list)
    branches: dict[str, Ref] = field(default_factory=dict)
    default_branch: str = "main"
    numbered: dict[int, PullRequest | Issue] = field(default_factory=dict)
    pulls: list[PullRequest] = field(default_factory=list)
    review_comments: list[ReviewComment] = field(default_factory=list)
    issue_comments: list[IssueComment] = field(default_factory=list)
    updated_at: str = ""
    is_archived: bool = False
    kind: str = "Repository"

    @property
    def name_with_owner(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def url(self) -> str:
        return f"{self.owner.root}/{self.name_with_owner}"

    @property
    def visibility(self) -> str:
        return "PRIVATE" if self.is_private else "PUBLIC"

    @property
    def pushed_at(self) -> str:
        return self.updated_at

    @property
    def default_branch_ref(self) -> Ref | None:
        return self.branches.get(self.default_branch)


@dataclass(slots=True, eq=False)
class Issue(Written):
    repository: Repository
    number: int
    title: str
    state: str = "OPEN"
    state_reason: str | None = None
    closed_at: str | None = None
    labels: list[Label] = field(default_factory=list)
    kind: str = "Issue"

    @property
    def closed(self) -> bool:
        return self.state == "CLOSED"

    @property
    def url(self) -> str:
        return f"{self.repository.url}/issues/{self.number}"


@dataclass(slots=True, eq=False)
class IssueComment(Written):
    subject: PullRequest | Issue
    is_minimized: bool = False
    kind: str = "IssueComment"

    @property
    def minimized_reason(self) -> str | None:
        return "outdated" if self.is_minimized else None

    @property
    def url(self) -> str:
        return f"{self.subject.url}#issuecomment-{self.database_key}"


@dataclass(slots=True, eq=False)
class Review(Written):
    pull: PullRequest
    state: str
    submitted_at: str | None
    commit: Commit | None
    comments: list[ReviewComment] = field(default_factory=list)
    is_minimized: bool = False
    kind: str = "PullRequestReview"

    @property
    def url(self) -> str:
        return f"{self.pull.url}#pullrequestreview-{self.database_key}"


@dataclass(slots=True, eq=False)
class ReviewThread(Dated):
    pull: PullRequest
    path: str
    line: int | None
    is_resolved: bool = False
    is_outdated: bool = False
    comments: list[ReviewComment] = field(default_factory=list)
    diff_side: str = "RIGHT"
    subject_type: str = "LINE"
    kind: str = "PullRequestReviewThread"

    @property
    def original_line(self) -> int | None:
        return self.line

    @property
    def start_line(self) -> int | None:
        return None

    @property
    def original_start_line(self) -> int | None:
        return None


@dataclass(slots=True, eq=False)
class ReviewComment(Written):
    pull: PullRequest
    thread: ReviewThread
    review: Review | None
    diff_hunk: str
    commit: Commit | None
    original_commit: Commit | None
    reply_to: ReviewComment | None = None
    is_minimized: bool = False
    kind: str = "PullRequestReviewComment"

    @property
    def path(self) -> str:
        return self.thread.path

    @property
    def line(self) -> int | None:
        return None if self.outdated else self.thread.line

    @property
    def original_line(self) -> int | None:
        return self.thread.line

    @property
    def start_line(self) -> int | None:
        return None

    @property
    def original_start_line(self) -> int | None:
        return None

    @property
    def outdated(self) -> bool:
        return self.thread.is_outdated

    @property
    def subject_type(self) -> str:
        return self.thread.subject_type

    @property
    def pull_request_review(self) -> Review | None:
        return self.review

    @property
    def url(self) -> str:
        return f"{self.pull.url}#discussion_r{self.database_key}"


@dataclass(slots=True, eq=False)
class PullRequestCommit(Thing):
    commit: Commit
    pull: PullRequest
    kind: str = "PullRequestCommit"

    @property
    def url(self) -> str:
        return f"{self.pull.url}/commits/{self.commit.oid}"


@dataclass(slots=True, eq=False)
class Event(Dated):
    """One timeline event; `kind` is its ``__typename`` and `data` holds the fields that only this kind has."""

    kind: str
    actor: Account | None
    data: dict[str, Any]


@dataclass(slots=True, eq=False)
class PullRequest(Written):
    repository: Repository
    number: int
    title: str
    base_ref_name: str
    base_ref_oid: str
    head_ref_name: str
    head_repository: Repository | None
    head: Commit
    is_cross_repository: bool = False
    state: str = "OPEN"
    is_draft: bool = False
    locked: bool = False
    active_lock_reason: str | None = None
    closed_at: str | None = None
    merged_at: str | None = None
    merged_by: Account | None = None
    merge_commit: Commit | None = None
    landing: str | None = None
    """How it landed, for tests: merge, squash, rebase, fast_forward; null where it did not. The API does not say."""
    milestone: Milestone | None = None
    changed_files: int = 0
    additions: int = 0
    deletions: int = 0
    head_ref: Ref | None = None
    labels: list[Label] = field(default_factory=list)
    commits: list[PullRequestCommit] = field(default_factory=list)
    comments: list[IssueComment] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    threads: list[ReviewThread] = field(default_factory=list)
    closing: list[Issue] = field(default_factory=list)
    timeline: list[Event] = field(default_factory=list)
    test_merge: Commit | None = None
    kind: str = "PullRequest"

    @property
    def url(self) -> str:
        return f"{self.repository.url}/pull/{self.number}"

    @property
    def merged(self) -> bool:
        return self.state == "MERGED"

    @property
    def closed(self) -> bool:
        return self.state != "OPEN"

    @property
    def head_ref_oid(self) -> str:
        return self.head.oid

    @property
    def base_repository(self) -> Repository:
        return self.repository

    @property
    def head_repository_owner(self) -> Account | None:
        return self.head_repository.owner if self.head_repository else None
