"""The emulator's schema with resolvers over a world."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from graphql import (
    GraphQLError,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLUnionType,
    build_schema,
)

from tests.emulator.model import Account, PullRequest, Repository
from tests.emulator.objects import Commit, Signature
from tests.emulator.paging import BadCursor, Key, Page, Scope, cut, order_of
from tests.emulator.world import World

SCHEMA_FILE = Path(__file__).with_name("schema.graphql")


@dataclass
class Context:
    """The context of one execution, besides the query."""

    world: World
    rate_limit: dict[str, Any] | None
    viewer: str
    pulls: PullIndex
    bend: str | None = None
    """A fault that changes the first page cut: short_page, lost_cursor or repeated_cursor."""


@dataclass
class PullIndex:
    """A repository's pull requests by any order and filter, sorted once for each state of the world."""

    _orders: dict[tuple[Any, ...], tuple[int, list[PullRequest], list[Key]]] = field(default_factory=dict)

    def ordered(
        self,
        world: World,
        repository: Repository,
        order: str,
        filter_key: tuple[Any, ...],
        keep: Callable[[PullRequest], bool],
    ) -> tuple[list[PullRequest], list[Key]]:
        name = (repository.id, order, filter_key)
        found = self._orders.get(name)
        if found is None or found[0] != world.changes:
            rows = sorted(((_pull_key(p, order), p) for p in repository.pulls if keep(p)), key=lambda row: row[0])
            found = self._orders[name] = (world.changes, [p for _, p in rows], [key for key, _ in rows])
        return found[1], found[2]


def _pull_key(pull: PullRequest, order: str) -> Key:
    if order == "UPDATED_AT":
        return (pull.updated_at, pull.database_key)
    if order == "COMMENTS":
        return (len(pull.comments), pull.database_key)
    return (pull.created_at, pull.database_key)


class GitActor(NamedTuple):
    name: str
    email: str
    user: Account | None


def _failure(kind: str, message: str) -> GraphQLError:
    return GraphQLError(message, extensions={"type": kind})


def _not_found(id_: str) -> GraphQLError:
    return _failure("NOT_FOUND", f"Could not resolve to a node with the global id of '{id_}'.")


def page(info: Any, scope_name: str, items: Sequence[Any], arguments: dict[str, Any], **options: Any) -> Page:
    """Cut a page, changed by the fault of this exchange if there is one."""
    context: Context = info.context
    first = arguments.get("first")
    bend, context.bend = context.bend, None
    if bend == "short_page" and first:
        first = max(1, min(first, len(items)) // 2)
    try:
        cut_page = cut(
            items,
            Scope(context.world.seed, scope_name),
            first=first,
            last=arguments.get("last"),
            after=arguments.get("after"),
            before=arguments.get("before"),
            **options,
        )
    except BadCursor as error:
        raise _failure("INVALID_CURSOR_ARGUMENTS", str(error)) from None
    ends = cut_page.page_info
    if bend == "lost_cursor":
        ends.lost, ends.has_next_page = True, True
    elif bend == "repeated_cursor":
        ends.end, ends.has_next_page = arguments.get("after") or ends.start_cursor, True
    return cut_page


def _repository(_: Any, info: Any, owner: str, name: str, **arguments: Any) -> Repository:
    world: World = info.context.world
    found = world.find(f"{owner}/{name}", follow=arguments.get("followRenames") is not False)
    if found is None or found.is_private:
        raise _failure("NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'.")
    return found


def _node(_: Any, info: Any, id: str) -> Any:
    found = info.context.world.nodes.get(id)
    if found is None or (isinstance(found, Repository) and found.is_private):
        raise _not_found(id)
    return found


def _nodes(_: Any, info: Any, ids: list[str]) -> list[Any]:
    nodes = info.context.world.nodes
    return [nodes.get(id_) or _not_found(id_) for id_ in ids]


def _numbered(kind: str | None) -> Callable[..., Any]:
    def resolve(repository: Repository, info: Any, number: int) -> Any:
        found = repository.numbered.get(number)
        if found is None or (kind and found.kind != kind):
            name = {"PullRequest": "a PullRequest", "Issue": "an Issue"}.get(kind or "", "an issue or pull request")
            raise _failure("NOT_FOUND", f"Could not resolve to {name} with the number of {number}.")
        return found

    return resolve


def _pulls(repository: Repository, info: Any, **arguments: Any) -> Page:
    order = arguments.get("orderBy") or {"field": "CREATED_AT", "direction": "ASC"}
    states = arguments.get("states")
    conditions = {
        "state": set(states) if states else None,
        "base_ref_name": {arguments["baseRefName"]} if arguments.get("baseRefName") else None,
        "head_ref_name": {arguments["headRefName"]} if arguments.get("headRefName") else None,
    }
    labels = set(arguments.get("labels") or ())

    def keep(pull: PullRequest) -> bool:
        return all(values is None or getattr(pull, name) in values for name, values in conditions.items()) and (
            not labels or any(label.name in labels for label in pull.labels)
        )

    filters = (*(tuple(sorted(v)) if v else None for v in conditions.values()), tuple(sorted(labels)))
    context: Context = info.context
    items, keys = context.pulls.ordered(context.world, repository, order["field"], filters, keep)
    scope = f"{repository.id}/pullRequests/{order['field']}/{filters}"
    return page(info, scope, items, arguments, keys=keys, descending=order["direction"] == "DESC")


def _timeline(pull: PullRequest, info: Any, **arguments: Any) -> Page:
    types, since = arguments.get("itemTypes"), arguments.get("since")
    kinds = {_camel(name) for name in types} if types else None
    items = [e for e in pull.timeline if (not kinds or e.kind in kinds) and (not since or e.created_at >= since)]
    scope = f"{pull.id}/timelineItems/{sorted(kinds or ())}"
    cut_page = page(info, scope, items, arguments, total=len(pull.timeline))  # whatever itemTypes are asked for
    cut_page.updated_at = pull.updated_at
    return cut_page


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _parents(commit: Commit, info: Any, **arguments: Any) -> Page:
    keys = [("", index) for index in range(len(commit.parents))]
    return page(info, f"{commit.id}/parents", commit.parents, arguments, keys=keys)


def _reviews(pull: PullRequest, info: Any, **arguments: Any) -> Page:
    states, author = arguments.get("states"), arguments.get("author")
    items = [
        review
        for review in pull.reviews
        if (not states or review.state in states) and (not author or (review.author and review.author.login == author))
    ]
    return page(info, f"{pull.id}/reviews", items, arguments)


def _list_of(attribute: str, name: str) -> Callable[..., Page]:
    def resolve(source: Any, info: Any, **arguments: Any) -> Page:
        key = _label_key if attribute == "labels" else order_of
        items = getattr(source, attribute)
        if attribute == "labels":
            items = sorted(items, key=_label_key)
        return page(info, f"{source.id}/{name}", items, arguments, key=key)

    return resolve


def _label_key(label: Any) -> Key:
    return ("", label.database_key)


def _git_actor(signature: Signature, user: Any) -> GitActor:
    return GitActor(signature.name, signature.email, user)


_SPECIAL: dict[str, Callable[..., Any]] = {
    "Query.repository": _repository,
    "Query.node": _node,
    "Query.nodes": _nodes,
    "Query.rateLimit": lambda _, info, **more: info.context.rate_limit,
    "Query.viewer": lambda _, info: info.context.world.account(info.context.viewer),
    "Repository.pullRequests": _pulls,
    "Repository.pullRequest": _numbered("PullRequest"),
    "Repository.issue": _numbered("Issue"),
    "Repository.issueOrPullRequest": _numbered(None),
    "PullRequest.timelineItems": _timeline,
    "PullRequest.reviews": _reviews,
    "PullRequest.reviewThreads": _list_of("threads", "reviewThreads"),
    "PullRequest.closingIssuesReferences": _list_of("closing", "closingIssuesReferences"),
    "PullRequest.labels": _list_of("labels", "labels"),
    "PullRequest.commits": _list_of("commits", "commits"),
    "PullRequest.comments": _list_of("comments", "comments"),
    "PullRequestReview.comments": _list_of("comments", "comments"),
    "PullRequestReviewThread.comments": _list_of("comments", "comments"),
    "Issue.labels": _list_of("labels", "labels"),
    "Commit.parents": _parents,
    "Commit.author": lambda commit, _: _git_actor(commit.author_line, commit.user),
    "Commit.committer": lambda commit, _: _git_actor(commit.committer_line, None),
    "Commit.abbreviatedOid": lambda commit, _: commit.oid[:7],
    "Commit.url": lambda commit, _: f"{commit.repository.url}/commit/{commit.oid}",
    "RateLimit": lambda source, info: source[info.field_name],
}


def _attribute(name: str) -> Callable[..., Any]:
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    if snake == "body":
        return lambda source, _: source.body or ""
    return lambda source, _: getattr(source, snake)


def _event_field(name: str) -> Callable[..., Any]:
    if name in {"id", "createdAt", "actor"}:
        return _attribute(name)
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    return lambda source, _: source.data.get(snake)


def _resolver(type_name: str, name: str) -> Callable[..., Any]:
    special = _SPECIAL.get(f"{type_name}.{name}") or _SPECIAL.get(type_name)
    if special is not None:
        return special
    return _event_field(name) if type_name.endswith("Event") else _attribute(name)


@cache
def load_schema() -> GraphQLSchema:
    """Return the emulator's schema, every field with its resolver: one for all emulators of a process."""
    schema = build_schema(SCHEMA_FILE.read_text(encoding="utf-8"))
    for type_ in schema.type_map.values():
        if isinstance(type_, GraphQLObjectType) and not type_.name.startswith("__"):
            fields: dict[str, GraphQLField] = type_.fields
            for name, definition in fields.items():
                definition.resolve = _resolver(type_.name, name)
        elif isinstance(type_, GraphQLInterfaceType | GraphQLUnionType):
            type_.resolve_type = lambda value, _info, _type: value.kind
    return schema
