"""The REST routes: resources, lists with Link headers, redirects of renamed repositories."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.emulator.answers import Answer, json_answer, message, not_found
from tests.emulator.model import (
    Account,
    Issue,
    IssueComment,
    PullRequest,
    PullRequestCommit,
    Repository,
    Review,
    ReviewComment,
    Written,
)
from tests.emulator.world import World

PER_PAGE, PER_PAGE_AT_MOST = 30, 100


@dataclass
class RestApi:
    """GET routes over one world. `base` is the API's URL, `page_cap` the item beyond which comment lists answer 422."""

    world: World
    base: str
    page_cap: int = 40_000
    _sorted: dict[tuple[str, str], tuple[int, list[Any], list[str]]] = field(default_factory=dict)

    def get(self, path: str, query: dict[str, str], viewer: str) -> Answer:
        """Answer a GET; `path` has no /api/v3 in front."""
        if path == "/user":
            return json_answer(200, self._user(self.world.account(viewer)))
        by_id = re.fullmatch(r"/repositories/(\d+)(/.*)?", path)
        if by_id:
            found = self.world.repositories.get(int(by_id[1]))
            return self._in_repository(found, by_id[2] or "", path, query) if found else not_found()
        by_name = re.fullmatch(r"/repos/([^/]+)/([^/]+)(/.*)?", path)
        if not by_name:
            return not_found()
        name, rest = f"{by_name[1]}/{by_name[2]}", by_name[3] or ""
        found = self.world.find(name)
        if found and found.name_with_owner.lower() != name.lower() and not found.is_private:
            where = f"{self.base}/repositories/{found.database_key}{rest}" + (f"?{urlencode(query)}" if query else "")
            moved = message(301, "Moved Permanently", url=where)
            moved.headers["Location"] = where
            return moved
        return self._in_repository(found, rest, path, query)

    def _in_repository(self, repository: Repository | None, rest: str, path: str, query: dict[str, str]) -> Answer:
        if repository is None or repository.is_private:
            return not_found()
        if rest == "":
            return json_answer(200, self._repository(repository))
        if rest == "/pulls":
            return self._pulls(repository, path, query)
        if rest == "/pulls/comments":
            rows = repository.review_comments
            return self._comments(repository, "review", rows, self._review_comment, path, query)
        if rest == "/issues/comments":
            return self._comments(repository, "issue", repository.issue_comments, self._issue_comment, path, query)
        match = re.fullmatch(r"/(pulls|issues)/(\d+)(/comments|/reviews|/commits)?", rest)
        found = repository.numbered.get(int(match[2])) if match else None
        if match is None or found is None:
            return not_found()
        if match[1] == "issues" and match[3] == "/comments":
            comments = [c for c in repository.issue_comments if c.subject is found]
            return self._page(comments, self._issue_comment, path, query)
        if match[1] == "issues" and not match[3]:
            return json_answer(200, self._issue(found))
        if not isinstance(found, PullRequest):
            return not_found()
        if not match[3]:
            return json_answer(200, self._pull(found))
        if match[3] == "/comments":
            rows = sorted((c for t in found.threads for c in t.comments), key=lambda c: c.order)
            return self._page(rows, self._review_comment, path, query)
        if match[3] == "/reviews":
            return self._page(found.reviews, self._review, path, query)
        return self._page(found.commits, self._commit, path, query)

    # -- lists ---------------------------------------------------------------------------------------------------

    def _ordered(
        self, repository: Repository, what: str, rows: Sequence[Any], name: str
    ) -> tuple[list[Any], list[str]]:
        key = (repository.id + what, name)
        found = self._sorted.get(key)
        if found is None or found[0] != self.world.changes:
            ordered = sorted(rows, key=lambda row: (getattr(row, name), row.database_key))
            found = self._sorted[key] = (self.world.changes, ordered, [getattr(row, name) for row in ordered])
        return found[1], found[2]

    def _pulls(self, repository: Repository, path: str, query: dict[str, str]) -> Answer:
        name = "updated_at" if query.get("sort") == "updated" else "created_at"
        state = query.get("state", "open")
        rows, _ = self._ordered(repository, "pulls", repository.pulls, name)
        if state != "all":
            rows = [pull for pull in rows if (pull.state == "OPEN") is (state == "open")]
        if query.get("direction", "desc") == "desc":
            rows = rows[::-1]
        return self._page(rows, self._pull, path, query)

    def _comments(
        self,
        repository: Repository,
        what: str,
        rows: Sequence[Any],
        show: Callable[[Any], dict[str, Any]],
        path: str,
        query: dict[str, str],
    ) -> Answer:
        updated = query.get("sort", "created") == "updated"
        ordered, _ = self._ordered(repository, what, rows, "updated_at" if updated else "created_at")
        since = query.get("since")
        if since and updated:
            _, times = self._ordered(repository, what, rows, "updated_at")
            ordered = ordered[bisect_left(times, since) :]
        elif since:
            ordered = [row for row in ordered if row.updated_at >= since]
        # without `sort` GitHub ignores the direction
        if "sort" in query and query.get("direction", "desc") == "desc":
            ordered = ordered[::-1]
        if _number(query, "page", 1) * _size(query) > self.page_cap:
            return message(422, "In order to keep the API fast for everyone, pagination is limited for this resource.")
        return self._page(ordered, show, path, query)

    def _page(
        self, rows: Sequence[Any], show: Callable[[Any], dict[str, Any]], path: str, query: dict[str, str]
    ) -> Answer:
        number, size = max(1, _number(query, "page", 1)), _size(query)
        last = max(1, -(-len(rows) // size))
        answer = json_answer(200, [show(row) for row in rows[(number - 1) * size : number * size]])
        links = []
        relations = [("prev", number - 1), ("next", number + 1), ("last", last), ("first", 1)]
        for name, target in relations:
            if (name in {"prev", "first"} and number > 1) or (name in {"next", "last"} and number < last):
                links.append(f'<{self.base}{path}?{urlencode({**query, "page": str(target)})}>; rel="{name}"')
        if links:
            answer.headers["Link"] = ", ".join(links)
        return answer

    # -- objects -------------------------------------------------------------------------------------------------

    def _user(self, account: Account | None) -> dict[str, Any] | None:
        if account is None:
            return None
        return {
            "login": account.login,
            "id": account.database_key,
            "node_id": account.id,
            "url": f"{self.base}/users/{account.login}",
            "html_url": account.url,
            "type": account.kind if account.kind in {"Bot", "Organization", "Mannequin"} else "User",
            "site_admin": False,
        }

    def _repository(self, repository: Repository) -> dict[str, Any]:
        return {
            "id": repository.database_key,
            "node_id": repository.id,
            "name": repository.name,
            "full_name": repository.name_with_owner,
            "owner": self._user(repository.owner),
            "private": repository.is_private,
            "fork": repository.is_fork,
            "html_url": repository.url,
            "url": self._home(repository),
            "clone_url": f"{repository.url}.git",
            "default_branch": repository.default_branch,
            "created_at": repository.created_at,
            "updated_at": repository.updated_at,
            "pushed_at": repository.pushed_at,
            "archived": repository.is_archived,
            "visibility": repository.visibility.lower(),
        }

    def _home(self, repository: Repository) -> str:
        return f"{self.base}/repos/{repository.name_with_owner}"

    def _text(self, it: Written) -> dict[str, Any]:
        return {
            "id": it.database_key,
            "node_id": it.id,
            "user": self._user(it.author),
            "author_association": it.author_association,
            "body": it.body,
            "created_at": it.created_at,
            "updated_at": it.updated_at,
        }

    def _issue(self, it: PullRequest | Issue) -> dict[str, Any]:
        return {
            **self._text(it),
            "number": it.number,
            "title": it.title,
            "state": "open" if it.state == "OPEN" else "closed",
            "url": f"{self._home(it.repository)}/issues/{it.number}",
            "html_url": it.url,
            "closed_at": it.closed_at,
            "labels": [{"name": label.name, "color": label.color, "node_id": label.id} for label in it.labels],
        }

    def _pull(self, it: PullRequest) -> dict[str, Any]:
        head = it.head_repository
        return {
            **self._issue(it),
            "url": f"{self._home(it.repository)}/pulls/{it.number}",
            "draft": it.is_draft,
            "locked": it.locked,
            "merged_at": it.merged_at,
            "merge_commit_sha": it.merge_commit.oid if it.merge_commit else None,
            "head": {"ref": it.head_ref_name, "sha": it.head.oid, "repo": self._repository(head) if head else None},
            "base": {"ref": it.base_ref_name, "sha": it.base_ref_oid, "repo": self._repository(it.repository)},
        }

    def _issue_comment(self, it: IssueComment) -> dict[str, Any]:
        home = f"{self._home(it.subject.repository)}/issues"
        return {
            **self._text(it),
            "url": f"{home}/comments/{it.database_key}",
            "html_url": it.url,
            "issue_url": f"{home}/{it.subject.number}",
        }

    def _review_comment(self, it: ReviewComment) -> dict[str, Any]:
        home = f"{self._home(it.pull.repository)}/pulls"
        original = it.original_commit.oid if it.original_commit else None
        row = {
            **self._text(it),
            "url": f"{home}/comments/{it.database_key}",
            "html_url": it.url,
            "pull_request_url": f"{home}/{it.pull.number}",
            "pull_request_review_id": it.review.database_key if it.review else None,
            "diff_hunk": it.diff_hunk,
            "path": it.path,
            "commit_id": it.commit.oid if it.commit else original,
            "original_commit_id": original,
            "line": it.line,
            "original_line": it.original_line,
            "side": it.thread.diff_side,
            "subject_type": it.subject_type.lower(),
        }
        if it.reply_to:  # absent, not null, for a thread's first comment
            row["in_reply_to_id"] = it.reply_to.database_key
        return row

    def _review(self, it: Review) -> dict[str, Any]:
        return {
            **{name: value for name, value in self._text(it).items() if name not in {"created_at", "updated_at"}},
            "state": it.state,
            "submitted_at": it.submitted_at,
            "commit_id": it.commit.oid if it.commit else None,
            "html_url": it.url,
        }

    def _commit(self, it: PullRequestCommit) -> dict[str, Any]:
        commit = it.commit
        author = commit.user if isinstance(commit.user, Account) else None
        signed = commit.author_line
        return {
            "sha": commit.oid,
            "node_id": commit.id,
            "commit": {
                "message": commit.message,
                "author": {"name": signed.name, "email": signed.email, "date": commit.authored_date},
                "committer": {"name": signed.name, "email": signed.email, "date": commit.committed_date},
            },
            "author": self._user(author),
            "parents": [{"sha": parent.oid} for parent in commit.parents],
        }


def _number(query: dict[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    return int(text) if text.isdigit() else default


def _size(query: dict[str, str]) -> int:
    return min(PER_PAGE_AT_MOST, max(1, _number(query, "per_page", PER_PAGE)))
