"""From the JSON of an answer to rows: pure functions, no store and no network.

GitHub's nulls are facts: a deleted account has no author, a deleted fork no head repository. A missing required value
raises `Incomplete`: an answer cut short by a limit is never taken for a whole one. A connection that is null, has null
nodes or fewer nodes than it counts is owed once more, and then an `IncompletePart`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from miner.archive import Json
from miner.github.faults import Incomplete
from miner.github.page_rows import Connection, Key, PageRows, PendingConnection, Row
from prchain.core.timestamps import stamp
from sql.tables import (
    ClosingReference,
    Commit,
    IncompletePart,
    Issue,
    Label,
    PullRequest,
    PullRequestCommit,
    PullRequestText,
    ReviewThread,
    TimelineEvent,
)

UNKNOWN_PARENTS = -1
"""`Commit.parents` of a commit that only the API has shown; asking for the parents would make a page cost 7 points."""


@dataclass(frozen=True)
class PullRequestPage:
    """One page of a list of pull requests. `nodes` are as they came."""

    total: int
    has_next: bool
    end_cursor: str | None
    nodes: list[dict[str, Json]]


def listing(data: Json) -> PullRequestPage:
    """Return the page of ``repository.pullRequests``; raises `Incomplete` when any of it is null."""
    info, nodes, total = _connection(data.get("repository") or {}, "pullRequests")
    if any(not isinstance(node, dict) for node in nodes):
        raise Incomplete("a pull request is missing in the page")
    return PullRequestPage(total, info["hasNextPage"] is True, info["endCursor"], nodes)


def pull_request(
    repository_id: int, repository: str, node: Json, refusals: Mapping[str, str] | None = None
) -> PageRows:
    """Return the rows of one pull request with the first page of each of its connections.

    `refusals` has by field what GitHub's error about it was called, e.g. ``FORBIDDEN``.
    """
    if not isinstance(node, dict) or "number" not in node:
        raise Incomplete("a pull request is missing in the answer")
    key = Key(repository_id, repository, int(node["number"]))
    rows = PageRows()
    rows.add(PullRequest, {**key.columns, **_columns(node, (refusals or {}).get("commits"))}, key.number)
    for text in ("title", "body"):
        row = _text(key, text, "", node, body=node[text] or "")
        rows.add(PullRequestText, row, key.number, text, "")
    for name in CONNECTIONS:
        rows.merge(page_of(key, node, PendingConnection(name, node["id"], key.number, None, 0), refusals))
    return rows


def page_of(
    key: Key, node: Mapping[str, Json], asked: PendingConnection, refusals: Mapping[str, str] | None = None
) -> PageRows:
    """Return the rows of the page of a connection that `asked` stands for; what is still lacking is owed.

    A connection that ended and lacks something is owed from its start, once; then it is an `IncompletePart`.
    """
    connection = CONNECTIONS[asked.connection]
    if connection.archived_without and connection.field not in node:
        return PageRows()
    refusal = (refusals or {}).get(connection.field)
    if _withheld(node, connection.field, refusal):
        total = (node.get(connection.field) or {}).get("totalCount")
        rows = _lacking(key, asked, asked.offset - asked.hidden, total, refusal)
        return rows.merge(_total(key, asked, total))
    info, nodes, total = _connection(node, connection.field)
    rows = connection.rows(key, nodes, asked.offset).merge(_total(key, asked, total))
    listed, hidden = asked.offset + len(nodes), asked.hidden + sum(item is None for item in nodes)
    if info["hasNextPage"]:
        if not info["endCursor"]:
            raise Incomplete(f"the cursor of {connection.field} is missing")
        rest = replace(asked, after=info["endCursor"], offset=listed, hidden=hidden)
        rows.owed.append(rest)
        return rows
    expected = total if connection.total_holds else listed
    if listed - hidden < expected:
        rows.merge(_lacking(key, asked, listed - hidden, expected, refusal))
    return rows


def _total(key: Key, asked: PendingConnection, total: int | None) -> PageRows:
    """The pull request's column that has the connection's total, where the first reading may not have had it."""
    rows = PageRows()
    column = CONNECTIONS[asked.connection].total_column
    if asked.again and column is not None and total is not None:
        rows.add(PullRequest, {**key.columns, column: total}, key.number)
    return rows


def _lacking(key: Key, asked: PendingConnection, came: int, total: int | None, refusal: str | None) -> PageRows:
    rows = PageRows()
    if not asked.again:
        rows.owed.append(PendingConnection(asked.connection, asked.node_id, asked.number, None, 0, again=True))
        return rows
    counts = f"GitHub counts {total} and gave {came}" if total is not None else "GitHub gave null for the list"
    reason = f"{counts} ({refusal})" if refusal else counts
    part = {**key.columns, "connection": asked.connection, "came": came, "total": total, "reason": reason}
    rows.add(IncompletePart, part, key.number, asked.connection)
    return rows


def review_comment(repository_id: int, item: Mapping[str, Json]) -> Row:
    """Return the row of one review comment as REST gives it."""
    user = item.get("user")
    author = {"login": user["login"], "__typename": user.get("type")} if user else None
    reply, review = item.get("in_reply_to_id"), item.get("pull_request_review_id")
    return {
        "repository_id": repository_id,
        "number": int(item["pull_request_url"].rstrip("/").rsplit("/", 1)[1]),
        "field": "review_comment",
        "key": str(item["id"]),
        "author": login(author),
        "author_kind": author["__typename"] if author else None,
        "author_association": item.get("author_association"),
        "body": item.get("body") or "",
        "state": None,
        "path": item.get("path"),
        "diff_hunk": item.get("diff_hunk"),
        "commit_sha": item.get("original_commit_id") or item.get("commit_id"),
        "reply_to": str(reply) if reply is not None else None,
        "review": str(review) if review is not None else None,
        "line": item.get("line"),
        "original_line": item.get("original_line"),
        "original_start_line": item.get("original_start_line"),
        "side": item.get("side"),
        "created_at": utc(item.get("created_at")),
        "updated_at": utc(item.get("updated_at")),
    }


def utc(text: str | None) -> str | None:
    """Return an ISO 8601 time as ``YYYY-MM-DDTHH:MM:SSZ``."""
    if text is None:
        return None
    return stamp(datetime.fromisoformat(text))


def login(actor: Json) -> str | None:
    """Return an actor's login; None for a deleted account. A bot is called ``name[bot]`` in places: here ``name``."""
    if not actor:
        return None
    name = str(actor["login"])
    return name.removesuffix("[bot]") if actor["__typename"] == "Bot" else name


def _connection(node: Mapping[str, Json], name: str) -> tuple[Json, list[Json], int]:
    connection = node.get(name)
    if not isinstance(connection, dict) or connection.get("nodes") is None or not connection.get("pageInfo"):
        raise Incomplete(f"{name} is missing in the answer")
    return connection["pageInfo"], connection["nodes"], int(connection["totalCount"])


def _withheld(node: Mapping[str, Json], field: str, refusal: str | None) -> bool:
    """Whether a connection, or its list of nodes, is null because GitHub does not give it: its own error says so.

    Where the schema allows a null connection, none has to.
    """
    connection = node.get(field)
    if connection is None:
        return field in NULLABLE or refusal is not None
    return connection["nodes"] is None and refusal is not None


def _columns(node: Mapping[str, Json], commits_refusal: str | None) -> Row:
    author = node["author"]
    if _withheld(node, "commits", commits_refusal):
        commit_count = (node["commits"] or {}).get("totalCount")
    else:
        commit_count = _connection(node, "commits")[2]
    return {
        "node_id": node["id"],
        "state": node["state"].lower(),
        "is_draft": node["isDraft"],
        "author": login(author),
        "author_kind": author["__typename"] if author else None,
        "author_association": node["authorAssociation"],
        "base_branch": node["baseRefName"],
        "head_branch": node["headRefName"],
        "head_repository": (node["headRepository"] or {}).get("nameWithOwner"),
        "api_head_sha": node["headRefOid"],
        "api_base_sha": node["baseRefOid"],
        "merge_sha": (node["mergeCommit"] or {}).get("oid"),
        "commit_count": commit_count,
        "changed_files": node["changedFiles"],
        "additions": node["additions"],
        "deletions": node["deletions"],
        "created_at": utc(node["createdAt"]),
        "updated_at": utc(node["updatedAt"]),
        "closed_at": utc(node["closedAt"]),
        "merged_at": utc(node["mergedAt"]),
        "gone_at": None,
    }


API_COLUMNS = [
    "node_id",
    "state",
    "is_draft",
    "author",
    "author_kind",
    "author_association",
    "base_branch",
    "head_branch",
    "head_repository",
    "api_head_sha",
    "api_base_sha",
    "merge_sha",
    "commit_count",
    "changed_files",
    "additions",
    "deletions",
    "created_at",
    "updated_at",
    "closed_at",
    "merged_at",
    "gone_at",
]
"""The columns of `PullRequest` that the API fills."""


def _text(key: Key, name: str, item: str, node: Mapping[str, Json], *, body: str, **extra: str | None) -> Row:
    author = node["author"]
    return {
        **key.columns,
        "field": name,
        "key": item,
        "author": login(author),
        "author_kind": author["__typename"] if author else None,
        "author_association": node["authorAssociation"],
        "body": body,
        "state": extra.get("state"),
        "path": None,
        "diff_hunk": None,
        "commit_sha": extra.get("commit_sha"),
        "reply_to": None,
        "review": None,
        "line": None,
        "original_line": None,
        "original_start_line": None,
        "side": None,
        "created_at": extra.get("at") or utc(node["createdAt"]),
        "updated_at": utc(node["updatedAt"]),
    }


def _present(nodes: Iterable[Json]) -> Iterable[Json]:
    """The nodes that this token may see; others of the answer are null."""
    return (node for node in nodes if node is not None)


def _labels(key: Key, nodes: list[Json], offset: int) -> PageRows:
    rows = PageRows()
    for node in _present(nodes):
        rows.add(Label, {**key.columns, "name": node["name"]}, key.number, node["name"])
    return rows


def _comments(key: Key, nodes: list[Json], offset: int) -> PageRows:
    rows = PageRows()
    for node in _present(nodes):
        item = str(node["fullDatabaseId"])
        row = _text(key, "comment", item, node, body=node["body"] or "")
        rows.add(PullRequestText, row, key.number, "comment", item)
    return rows


def _reviews(key: Key, nodes: list[Json], offset: int) -> PageRows:
    rows = PageRows()
    for node in _present(nodes):
        if node["state"] != "PENDING":
            item = str(node["fullDatabaseId"])
            facts = {"state": node["state"], "commit_sha": (node["commit"] or {}).get("oid")}
            row = _text(key, "review", item, node, body=node["body"] or "", at=utc(node["submittedAt"]), **facts)
            rows.add(PullRequestText, row, key.number, "review", item)
    return rows


def _threads(key: Key, nodes: list[Json], offset: int) -> PageRows:
    rows = PageRows()
    for position, node in enumerate(nodes, start=offset):
        if node is None:
            continue
        row = {
            **key.columns,
            "key": node["id"],
            "position": position,
            "is_resolved": node["isResolved"],
            "is_outdated": node["isOutdated"],
            "path": node["path"],
            "line": node["line"],
            "original_line": node["originalLine"],
            "original_start_line": node["originalStartLine"],
            "side": node["diffSide"],
            "comment": None,
            "told": False,
        }
        rows.add(ReviewThread, row, key.number, node["id"])
    return rows


def _commits(key: Key, nodes: list[Json], offset: int) -> PageRows:
    rows = PageRows()
    for position, node in enumerate(nodes, start=offset):
        if node is None:
            continue
        commit = node["commit"]
        sha = commit["oid"]
        facts = {
            "repository_id": key.repository_id,
            "sha": sha,
            "author": (commit["author"] or {}).get("name") or "",
            "authored_at": utc(commit["authoredDate"]),
            "committed_at": utc(commit["committedDate"]),
            "parents": UNKNOWN_PARENTS,
            "message": commit["message"] or "",
        }
        rows.add(Commit, facts, sha)
        place = {**key.columns, "origin": "api", "sha": sha, "position": position}
        rows.add(PullRequestCommit, place, key.number, sha)
    return rows


def _closing_issues(key: Key, nodes: list[Json], offset: int) -> PageRows:
    rows = PageRows()
    for node in _present(nodes):
        repository = node["repository"]["nameWithOwner"]
        issue = {"repository_id": key.repository_id, "issue_repository": repository, "issue_number": node["number"]}
        facts = {"title": node["title"], "body": node["body"], "state": node["state"].lower()}
        rows.add(Issue, {**issue, **facts, "author": login(node["author"])}, repository, node["number"])
        rows.add(ClosingReference, {**issue, "number": key.number}, key.number, repository, node["number"])
    return rows


def _timeline(key: Key, nodes: list[Json], offset: int) -> PageRows:
    rows = PageRows()
    for node in _present(nodes):
        if "id" in node:
            rows.add(TimelineEvent, _event(key, node), key.number, node["id"])
    return rows


def _event(key: Key, node: Mapping[str, Json]) -> Row:
    other = _other_end(key, node)
    repository = other.get("repository") or node.get("commitRepository") or {}
    return {
        **key.columns,
        "key": node["id"],
        "kind": node["__typename"],
        "actor": login(node.get("actor")),
        "created_at": utc(node["createdAt"]),
        "other_repository": repository.get("nameWithOwner"),
        "other_number": other.get("number"),
        "other_kind": other.get("__typename"),
        "closes": node.get("willCloseTarget"),
        "sha": (node.get("commit") or {}).get("oid"),
        "before": _first(node, "previousTitle", "previousRefName", "oldBase")
        or (node.get("beforeCommit") or {}).get("oid"),
        "after": _first(node, "currentTitle", "currentRefName", "newBase")
        or (node.get("afterCommit") or {}).get("oid"),
    }


def _other_end(key: Key, node: Mapping[str, Json]) -> Mapping[str, Json]:
    """The issue or pull request at the other end of the event, whichever side of it this pull request is on."""
    for side in ("source", "subject", "canonical"):
        end = node.get(side)
        if end and (end["number"], end["repository"]["nameWithOwner"].lower()) != (key.number, key.repository.lower()):
            return dict(end)
    return {}


def _first(node: Mapping[str, Json], *names: str) -> str | None:
    return next((node[name] for name in names if node.get(name) is not None), None)


CONNECTIONS = {
    "labels": Connection("labels", "more_labels", _labels),
    "commits": Connection("commits", "more_commits", _commits, total_column="commit_count"),
    "comments": Connection("comments", "more_comments", _comments),
    "reviews": Connection("reviews", "more_reviews", _reviews),
    "threads": Connection("reviewThreads", "more_threads", _threads, archived_without=True),
    "closing_issues": Connection("closingIssuesReferences", "more_closing_issues", _closing_issues),
    "timeline": Connection("timelineItems", "more_timeline", _timeline, total_holds=False),
}
NULLABLE = frozenset({"labels", "reviews", "closingIssuesReferences"})
"""Connections that GitHub's schema allows to be null; where there is none it gives an empty one."""
