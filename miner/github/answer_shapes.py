"""The form that GitHub's schema promises of each answer (`miner.github.answer_checks` holds answers against it).

Nulls pass where the schema allows them, and as nodes and connections, which GitHub also hides for want of rights.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag
from pydantic.alias_generators import to_camel

from prchain.core.timestamps import stamp

Json = Any
T = TypeVar("T")


def _is_time(text: str) -> str:
    try:
        time = datetime.fromisoformat(text)
        stamp(time)
    except (ValueError, OverflowError):
        raise ValueError("no time") from None
    if time.tzinfo is None:
        raise ValueError("a time without a zone")
    return text


Time = Annotated[str, AfterValidator(_is_time)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Number = Annotated[int, Field(ge=1, lt=2**31)]
Sha = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
Word = Annotated[str, Field(max_length=32)]
Side = Annotated[str, Field(max_length=8)]
Name = Annotated[str, Field(max_length=255)]
FullName = Annotated[str, Field(pattern=r"^[^/\s]{1,255}/[^/\s]{1,255}$")]
DatabaseId = Annotated[int, Field(ge=1)] | Annotated[str, Field(pattern=r"^\d{1,20}$")]
"""GraphQL writes a BigInt as text."""


class Shape(BaseModel):
    """The keys that are read of a JSON object, with their types; other keys may be there."""

    model_config = ConfigDict(strict=True, alias_generator=to_camel)


class HomeShape(Shape):
    name_with_owner: FullName


class OidShape(Shape):
    oid: Sha


class ActorShape(Shape):
    typename: Word = Field(alias="__typename")
    login: Name


class PageInfoShape(Shape):
    has_next_page: bool
    end_cursor: str | None


class ConnectionShape(Shape, Generic[T]):
    total_count: Count
    page_info: PageInfoShape | None
    nodes: list[T | None] | None


class LabelShape(Shape):
    name: Name


class SignatureShape(Shape):
    name: str | None


class CommitShape(Shape):
    oid: Sha
    message: str | None
    authored_date: Time
    committed_date: Time
    author: SignatureShape | None


class PullCommitShape(Shape):
    commit: CommitShape


class WrittenShape(Shape):
    author: ActorShape | None
    author_association: Word
    body: str | None
    created_at: Time
    updated_at: Time


class CommentShape(WrittenShape):
    full_database_id: DatabaseId


class ReviewShape(CommentShape):
    state: Word
    submitted_at: Time | None
    commit: OidShape | None


class ThreadShape(Shape):
    id: Name
    is_resolved: bool
    is_outdated: bool
    path: str
    line: Count | None
    original_line: Count | None
    original_start_line: Count | None
    diff_side: Side


class KeyShape(Shape):
    full_database_id: DatabaseId


class FirstCommentShape(KeyShape):
    reply_to: KeyShape | None


class FirstCommentsShape(Shape):
    nodes: list[FirstCommentShape | None] | None


class ThreadStartShape(Shape):
    id: Name
    comments: FirstCommentsShape | None


class ClosedIssueShape(Shape):
    number: Number
    title: str
    body: str | None
    state: Annotated[str, Field(max_length=16)]
    author: ActorShape | None
    repository: HomeShape


class EndShape(Shape):
    """The issue or pull request at an end of an event."""

    typename: Annotated[str, Field(max_length=16)] = Field(alias="__typename")
    number: Number
    repository: HomeShape


class OtherEventShape(Shape):
    typename: Annotated[str, Field(max_length=64)] = Field(alias="__typename")


class EventShape(OtherEventShape):
    id: Name
    created_at: Time
    actor: ActorShape | None


class CrossReferenceShape(EventShape):
    will_close_target: bool
    source: EndShape | None


class LinkShape(EventShape):
    source: EndShape | None
    subject: EndShape | None


class ReferenceShape(EventShape):
    commit: OidShape | None
    commit_repository: HomeShape | None


class DuplicateShape(EventShape):
    canonical: EndShape | None


class ForcePushShape(EventShape):
    before_commit: OidShape | None
    after_commit: OidShape | None


class BaseChangeShape(EventShape):
    previous_ref_name: str
    current_ref_name: str


class AutomaticBaseChangeShape(EventShape):
    old_base: str
    new_base: str


class TitleChangeShape(EventShape):
    previous_title: str
    current_title: str


_EVENTS = {
    "CrossReferencedEvent": "cross_reference",
    "ConnectedEvent": "link",
    "DisconnectedEvent": "link",
    "ReferencedEvent": "reference",
    "MarkedAsDuplicateEvent": "duplicate",
    "HeadRefForcePushedEvent": "force_push",
    "BaseRefChangedEvent": "base_change",
    "AutomaticBaseChangeSucceededEvent": "automatic_base_change",
    "RenamedTitleEvent": "title_change",
}


def _event_tag(node: Json) -> str:
    kind = node.get("__typename") if isinstance(node, dict) else None
    return _EVENTS.get(kind, "other") if isinstance(kind, str) else "other"


TimelineShape = Annotated[
    Annotated[CrossReferenceShape, Tag("cross_reference")]
    | Annotated[LinkShape, Tag("link")]
    | Annotated[ReferenceShape, Tag("reference")]
    | Annotated[DuplicateShape, Tag("duplicate")]
    | Annotated[ForcePushShape, Tag("force_push")]
    | Annotated[BaseChangeShape, Tag("base_change")]
    | Annotated[AutomaticBaseChangeShape, Tag("automatic_base_change")]
    | Annotated[TitleChangeShape, Tag("title_change")]
    | Annotated[OtherEventShape, Tag("other")],
    Discriminator(_event_tag),
]


class ListedShape(Shape):
    """A pull request in the list of what exists."""

    id: Name
    number: Number
    created_at: Time
    updated_at: Time
    head_ref_oid: Sha
    state: Annotated[str, Field(pattern="^(OPEN|CLOSED|MERGED)$")]


class PullRequestShape(ListedShape, WrittenShape):
    title: str
    is_draft: bool
    closed_at: Time | None
    merged_at: Time | None
    base_ref_name: str
    base_ref_oid: Sha
    head_ref_name: str
    head_repository: HomeShape | None
    merge_commit: OidShape | None
    changed_files: Count
    additions: Count
    deletions: Count
    labels: ConnectionShape[LabelShape] | None
    commits: ConnectionShape[PullCommitShape] | None
    comments: ConnectionShape[CommentShape] | None
    reviews: ConnectionShape[ReviewShape] | None
    review_threads: ConnectionShape[ThreadShape] | None
    closing_issues_references: ConnectionShape[ClosedIssueShape] | None
    timeline_items: ConnectionShape[TimelineShape] | None


class BranchShape(Shape):
    name: str


class UpdateShape(Shape):
    updated_at: Time


class NewestShape(Shape):
    total_count: Count
    nodes: list[UpdateShape]


class ResolvedShape(HomeShape):
    id: Name
    is_fork: bool
    default_branch_ref: BranchShape | None
    pull_requests: NewestShape


class ListingShape(HomeShape):
    id: Name
    pull_requests: ConnectionShape[ListedShape] | None


class SweepShape(HomeShape):
    id: Name
    pull_requests: ConnectionShape[PullRequestShape] | None


class ResolveAnswer(Shape):
    repository: ResolvedShape | None


class ListingAnswer(Shape):
    repository: ListingShape | None


class SweepAnswer(Shape):
    repository: SweepShape | None


class HomeAnswer(Shape):
    node: HomeShape | None


class HousedPullRequestShape(PullRequestShape):
    repository: HomeShape


class PullRequestsAnswer(Shape):
    nodes: list[HousedPullRequestShape | None] | None


class ThreadStartsAnswer(Shape):
    nodes: list[ThreadStartShape | None] | None


class PartShape(Shape):
    """A pull request of which one connection is read on."""

    id: Name
    number: Number
    repository: HomeShape


class RestShape(BaseModel):
    """As `Shape`, in REST's spelling; REST leaves keys out where GraphQL has nulls."""

    model_config = ConfigDict(strict=True)


class UserShape(RestShape):
    login: Name
    type: Word | None = None


class ReviewCommentShape(RestShape):
    id: Annotated[int, Field(ge=1)]
    pull_request_url: Annotated[str, Field(pattern=r"/\d{1,9}/?$")]
    user: UserShape | None = None
    author_association: Word | None = None
    body: str | None = None
    path: str | None = None
    diff_hunk: str | None = None
    commit_id: Sha | None = None
    original_commit_id: Sha | None = None
    in_reply_to_id: int | None = None
    pull_request_review_id: int | None = None
    line: Count | None = None
    original_line: Count | None = None
    original_start_line: Count | None = None
    side: Side | None = None
    created_at: Time
    updated_at: Time
