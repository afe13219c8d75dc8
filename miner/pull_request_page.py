"""The page of one pull request."""

from __future__ import annotations

from collections import Counter
from typing import Any

from sqlalchemy import select

from prchain.core.console.terminal import counted, say, say_facts, say_some
from prchain.core.errors import UsageError
from sql.link_changes import lines_changed
from sql.store import Store, Transaction
from sql.tables import (
    Citation,
    ClosingReference,
    Commit,
    IncompletePart,
    Landing,
    LandingFile,
    Lineage,
    PullRequest,
    PullRequestCommit,
    PullRequestText,
    Repository,
    ReviewThread,
)

_TEXT_COLUMNS = (
    "field",
    "key",
    "author",
    "state",
    "body",
    "review",
    "reply_to",
    "path",
    "line",
    "original_line",
    "side",
    "commit_sha",
    "created_at",
)


def find_pull_request(store: Store, repository: str, number: int) -> dict[str, Any]:
    """Everything that is stored of one pull request; raises `UsageError` where it is not there."""
    with store.reading() as tx:
        names = {i: f"{owner}/{name}" for i, owner, name in tx.rows(Repository, "id", "owner", "name")}
        repository_id = next((i for i, name in names.items() if name.lower() == repository.lower()), None)
        if repository_id is None:
            raise UsageError(f"{repository} has not been mined into this database; `prchain status` lists what has")
        key = {"repository_id": repository_id, "number": number}
        columns = [column.name for column in PullRequest.__table__.columns if column.name != "repository_id"]
        rows = list(tx.rows(PullRequest, *columns, **key))
        if not rows:
            raise UsageError(f"{repository} has no pull request #{number}; it may be an issue")
        cites = ("target", "relation", "field", "syntax", "snippet", "counted", "reason", "confidence")
        cited = ("source", *cites[1:])
        changed = ("removed_lines", "real_lines", "source_lines", "moved_lines", "inserted_lines")
        return {
            "repository": names[repository_id],
            **dict(zip(columns, rows[0], strict=True)),
            "texts": _dicts(tx, PullRequestText, _TEXT_COLUMNS, **key),
            "threads": _dicts(tx, ReviewThread, ("comment", "is_resolved", "is_outdated"), **key),
            "incomplete": _dicts(tx, IncompletePart, ("connection", "came", "total", "reason"), **key),
            "landings": _landings(tx, repository_id, number),
            "commits": _commits(tx, repository_id, number),
            "closes": _dicts(tx, ClosingReference, ("issue_repository", "issue_number"), **key),
            "cites": _dicts(tx, Citation, cites, repository_id=repository_id, source=number),
            "cited_by": _dicts(tx, Citation, cited, repository_id=repository_id, target=number),
            "changes": _dicts(tx, Lineage, ("earlier", *changed), repository_id=repository_id, later=number),
            "changed_by": _dicts(tx, Lineage, ("later", *changed), repository_id=repository_id, earlier=number),
        }


def _dicts(tx: Transaction, table: Any, columns: tuple[str, ...], **equals: Any) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in tx.rows(table, *columns, **equals)]


def _landings(tx: Transaction, repository_id: int, number: int) -> list[dict[str, Any]]:
    key = {"repository_id": repository_id, "number": number}
    columns = (
        "branch",
        "style",
        "base_sha",
        "landed_sha",
        "landed_at",
        "subject",
        "claim",
        "evidence",
        "missing_files",
    )
    landings = _dicts(tx, Landing, columns, **key)
    for landing in landings:
        files = ("status", "path", "old_path", "additions", "deletions", "note")
        landing["files"] = _dicts(tx, LandingFile, files, branch=landing["branch"], **key)
        commit = _dicts(tx, Commit, ("message",), repository_id=repository_id, sha=landing["landed_sha"])
        landing["message"] = commit[0]["message"] if commit else ""
    return landings


def _commits(tx: Transaction, repository_id: int, number: int) -> list[dict[str, Any]]:
    query = (
        select(Commit.sha, Commit.author, Commit.message)
        .join(
            PullRequestCommit,
            (PullRequestCommit.repository_id == Commit.repository_id) & (PullRequestCommit.sha == Commit.sha),
        )
        .where(Commit.repository_id == repository_id, PullRequestCommit.number == number)
        .order_by(PullRequestCommit.origin.desc(), PullRequestCommit.position)
    )
    unique = {row["sha"]: dict(row) for row in tx.connection.execute(query).mappings()}
    return list(unique.values())


def _title(landing: dict[str, Any]) -> str:
    """The title as the landing has it: below the subject of a GitHub merge, else the subject."""
    _, _, below = landing["message"].partition("\n\n")
    lines = below.splitlines()
    return str(lines[0] if landing["subject"].startswith("Merge pull request") and lines else landing["subject"])


def print_pull_request(page: dict[str, Any]) -> None:
    """Print the page of a pull request."""
    title = next((text["body"] for text in page["texts"] if text["field"] == "title"), None)
    title = title or next((_title(landing) for landing in page["landings"]), "")
    title = title or next((commit["message"].split("\n", 1)[0] for commit in page["commits"]), "")
    say(f"{page['repository']}#{page['number']}  {title}")
    reason = f" ({page['reason']})" if page["reason"] else ""
    author = f"{page['author']}, {page['state']}, created {page['created_at']}" if page["author"] else ""
    say_facts({"outcome": f"{page['outcome']}{reason}", "head": page["head_sha"] or "none", "author": author})
    say_facts({"reviews": _review_words(page)})
    for part in page["incomplete"]:
        say_facts({"incomplete": f"{part['connection'].replace('_', ' ')}: {part['reason']}"})
    for landing in page["landings"]:
        landed = f"{landing['landed_sha']} on {landing['branch']}, {landing['landed_at']}"
        say_facts({"landed": landed, "base": landing["base_sha"], "files": len(landing["files"])})
        if landing["missing_files"]:
            say_facts({"missing": f"{counted(landing['missing_files'], 'file')} of these trees, in the mirror"})
        say_some([_file_words(file) for file in landing["files"]], _SHOWN)
    say_facts({"commits": len(page["commits"])})
    subjects = [f"{commit['sha'][:12]} {next(iter(commit['message'].splitlines()), '')}" for commit in page["commits"]]
    say_some(subjects, _SHOWN)
    for issue in page["closes"]:
        say_facts({"closes": f"{issue['issue_repository']}#{issue['issue_number']}"})
    _print_citations("cites", page["cites"], "target")
    _print_citations("cited by", page["cited_by"], "source")
    _print_lineage("changes lines of", page["changes"], "earlier")
    _print_lineage("lines changed by", page["changed_by"], "later")


_SHOWN = 20
"""So many files and commits are printed."""


def _review_words(page: dict[str, Any]) -> str:
    """How many reviews of each state, and how many of their comments were resolved; empty where there are none."""
    states = Counter(text["state"] for text in page["texts"] if text["field"] == "review")
    words = [f"{count} {state.lower().replace('_', ' ')}" for state, count in sorted(states.items())]
    comments = [text for text in page["texts"] if text["field"] == "review_comment"]
    if comments:
        settled = {thread["comment"] for thread in page["threads"] if thread["is_resolved"]}
        resolved = sum((text["reply_to"] or text["key"]) in settled for text in comments)
        words.append(f"{counted(len(comments), 'comment')} ({resolved} resolved)")
    return ", ".join(words)


def _file_words(file: dict[str, Any]) -> str:
    moved = f" (from {file['old_path']})" if file["old_path"] else ""
    counts = f"  +{file['additions']} -{file['deletions']}" if file["additions"] is not None else ""
    return f"{file['status']} {file['path']}{moved}{counts}"


def _print_lineage(title: str, pairs: list[dict[str, Any]], other: str) -> None:
    """Those that `prchain chains lineage` has found; nothing where it has not run."""
    strongest = sorted(pairs, key=lambda pair: (-pair["real_lines"], -pair["inserted_lines"], pair[other]))
    if strongest:
        say_facts({title: counted(len(strongest), "pull request")})
    say_some([_lineage_words(pair, other) for pair in strongest], _SHOWN)


def _lineage_words(pair: dict[str, Any], other: str) -> str:
    lines = lines_changed(pair["real_lines"], pair["removed_lines"])
    inserted = f"{counted(pair['inserted_lines'], 'line')} of code put beside" if pair["inserted_lines"] else ""
    return f"#{pair[other]}  {', '.join(filter(None, (lines, inserted))) or 'no line; uses names that it brought'}"


def _print_citations(title: str, citations: list[dict[str, Any]], other: str) -> None:
    say_facts({title: f"{sum(citation['counted'] for citation in citations)} counted of {len(citations)}"})
    for citation in sorted(citations, key=lambda citation: (not citation["counted"], citation[other])):
        verdict = f"{citation['confidence']:.2f}" if citation["counted"] else f"no: {citation['reason']}"
        say(f"    #{citation[other]} {citation['relation']} [{citation['field']}, {citation['syntax']}] {verdict}")
        say(f"        {citation['snippet']}")
