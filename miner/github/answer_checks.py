"""GitHub's answers, held against the form that its schema promises of each.

What passes can be made into rows without a further look: keys are there, values have their types and fit their columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from miner.github.answer_shapes import (
    ClosedIssueShape,
    CommentShape,
    ConnectionShape,
    HomeAnswer,
    LabelShape,
    ListingAnswer,
    PartShape,
    PullCommitShape,
    PullRequestsAnswer,
    ResolveAnswer,
    ReviewCommentShape,
    ReviewShape,
    Shape,
    SweepAnswer,
    ThreadShape,
    ThreadStartsAnswer,
    TimelineShape,
)
from miner.github.faults import Malformed

Json = Any

_ANSWERS: Mapping[str, type[Shape]] = {
    "Resolve": ResolveAnswer,
    "Home": HomeAnswer,
    "Listing": ListingAnswer,
    "Sweep": SweepAnswer,
    "PullRequests": PullRequestsAnswer,
    "ThreadStarts": ThreadStartsAnswer,
}
_PARTS: Mapping[str, tuple[str, TypeAdapter[Any]]] = {
    "MoreLabels": ("labels", TypeAdapter(ConnectionShape[LabelShape] | None)),
    "MoreCommits": ("commits", TypeAdapter(ConnectionShape[PullCommitShape] | None)),
    "MoreComments": ("comments", TypeAdapter(ConnectionShape[CommentShape] | None)),
    "MoreReviews": ("reviews", TypeAdapter(ConnectionShape[ReviewShape] | None)),
    "MoreThreads": ("reviewThreads", TypeAdapter(ConnectionShape[ThreadShape] | None)),
    "MoreClosingIssues": ("closingIssuesReferences", TypeAdapter(ConnectionShape[ClosedIssueShape] | None)),
    "MoreTimeline": ("timelineItems", TypeAdapter(ConnectionShape[TimelineShape] | None)),
}


def check(operation: str, data: Mapping[str, Json]) -> None:
    """Hold the data of a GraphQL answer against what its operation asks for. Raises `Malformed`."""
    try:
        if operation in _PARTS:
            field, adapter = _PARTS[operation]
            for node in (value for name, value in data.items() if name != "rateLimit" and value is not None):
                PartShape.model_validate(node)
                if field not in node:
                    raise Malformed(f"GitHub's answer is malformed: {field} is missing")
                adapter.validate_python(node[field])
        else:
            _ANSWERS[operation].model_validate(data)
    except ValidationError as error:
        raise Malformed(f"GitHub's answer is malformed: {_words(error)}") from None


def review_comments(items: Iterable[Json]) -> tuple[list[Json], tuple[str, ...]]:
    """Return those of REST's review comments that are well-formed, and of each of the others what is wrong with it."""
    good, wrong = [], []
    for item in items:
        try:
            ReviewCommentShape.model_validate(item)
        except ValidationError as error:
            wrong.append(f"review comment {item.get('id')!s:.20}: {_words(error)}")
        else:
            good.append(item)
    return good, tuple(wrong)


def _words(error: ValidationError) -> str:
    """Where the first fault is, and what it is; nothing of the value."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg'][:1].lower()}{first['msg'][1:]}"
