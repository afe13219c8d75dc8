"""From stored texts to stored citations: reads a repository's rows, applies `miner.edges`, replaces its citations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Any

from sqlalchemy import select

from miner.citations import may_cite
from miner.citations.urls import UrlForm
from miner.claims import source_branch, source_owner
from miner.copies import CommitText, Provenance, copied_commits
from miner.edge_facts import PullRequestFacts, SourceText
from miner.edges import PullRequestIndex
from miner.source import Forge
from sql.store import Transaction
from sql.tables import (
    Citation,
    Commit,
    Landing,
    LandingFile,
    PullRequest,
    PullRequestCommit,
    PullRequestText,
    Repository,
    RepositoryAlias,
    TimelineEvent,
)

RULES = "2"
"""Raise it when `miner.citations` or `miner.edges` change their rules: stored citations are then rebuilt."""

_COLUMNS = (
    "repository_id",
    "source",
    "target",
    "relation",
    "field",
    "key",
    "syntax",
    "snippet",
    "counted",
    "reason",
    "confidence",
    "weak_signs",
)

_TEXT_COLUMNS = ("number", "field", "key", "body", "author", "author_kind")
_EVENT_COLUMNS = ("number", "key", "kind", "other_repository", "other_number", "other_kind", "closes", "before")
_STACK_COLUMNS = ("number", "base_branch", "head_branch", "head_repository", "created_at", "closed_at")
_BASE_CHANGES = frozenset({"BaseRefChangedEvent", "AutomaticBaseChangeSucceededEvent"})

_OWNERS_READ = 50
"""So many of the oldest merges tell under which owner a repository began."""
_OWNERS_LEAST = 10


def stamp(tx: Transaction, repository_id: int) -> str:
    """A hash that changes exactly when something that the citations are made from changes.

    The facts of git are not included: they have a fingerprint of their own.
    """
    digest = sha256(RULES.encode())
    own = {"repository_id": repository_id}
    for rows in (
        tx.rows(Repository, "host", "owner", "name", "default_branch", id=repository_id),
        tx.rows(RepositoryAlias, "alias", **own),
        tx.rows(PullRequest, "number", "head_sha", "author_kind", **own),
        tx.rows(PullRequest, *_STACK_COLUMNS, **own),
        tx.rows(PullRequestText, *_TEXT_COLUMNS, **own),
        tx.rows(PullRequestCommit, "number", "sha", "position", origin="api", **own),
        tx.rows(TimelineEvent, *_EVENT_COLUMNS, **own),
    ):
        for row in rows:
            digest.update(repr(tuple(row)).encode("utf-8", "surrogatepass"))
        digest.update(b"|")
    return digest.hexdigest()


def rebuild(tx: Transaction, repository_id: int, repository: str, forge: Forge) -> int:
    """Replace the citations of the repository, which the forge holds under that name; returns how many there are."""
    _note_aliases(tx, repository_id, repository)
    index = _pull_request_index(tx, repository_id, repository, forge)
    tx.delete(Citation, repository_id=repository_id)
    count = 0

    def rows() -> Iterator[tuple[Any, ...]]:
        nonlocal count
        for number in sorted(index.pulls):
            for edge in index.edges_of(index.pulls[number]):
                count += 1
                yield (
                    repository_id,
                    edge.source,
                    edge.target,
                    edge.relation,
                    edge.field,
                    edge.key,
                    edge.syntax,
                    edge.snippet,
                    edge.counted,
                    edge.reason,
                    edge.confidence,
                    ",".join(edge.weak_signs) or None,
                )

    tx.bulk(Citation, _COLUMNS, rows())
    return count


def _note_aliases(tx: Transaction, repository_id: int, repository: str) -> None:
    """The owner under whom a repository began, from the merges of its own branches at the start of its history."""
    owner, _, name = repository.partition("/")
    query = (
        select(Commit.message)
        .join(Landing, (Landing.repository_id == Commit.repository_id) & (Landing.landed_sha == Commit.sha))
        .where(Commit.repository_id == repository_id, Landing.claim == "merge_subject")
        .order_by(Landing.landed_at)
        .limit(_OWNERS_READ)
    )
    owners = Counter(source_owner(message) for (message,) in tx.connection.execute(query))
    if not owners:
        return
    first, count = owners.most_common(1)[0]
    if first and first.lower() != owner.lower() and count >= _OWNERS_LEAST and 2 * count >= owners.total():
        alias = {"repository_id": repository_id, "alias": f"{first}/{name}".lower(), "evidence": "merge_subject"}
        tx.insert_new(RepositoryAlias, [alias])


def _pull_request_index(tx: Transaction, repository_id: int, repository: str, forge: Forge) -> PullRequestIndex:
    commits = _commits(tx, repository_id, forge.urls)
    pulls = {
        number: PullRequestFacts(number, head_sha=head, by_bot=kind == "Bot")
        for number, head, kind in tx.rows(PullRequest, "number", "head_sha", "author_kind", repository_id=repository_id)
    }
    own_shas = _own_shas(tx, repository_id)
    landings = _landings(tx, repository_id)
    for number, paths in _paths(tx, repository_id):
        pulls[number].paths = paths
    provenance = Provenance()
    shas: dict[str, int] = {}
    landed_in_order = sorted(landings, key=lambda number: (landings[number][3], landings[number][2], number))
    for number in [*landed_in_order, *sorted(set(pulls) - set(landings))]:
        pull = pulls[number]
        own_commits = [commits[sha] for sha in own_shas.get(number, ()) if sha in commits]
        landing = None
        if number in landings:
            branch, style, position, landed_at, landed_sha = landings[number]
            pull.order, pull.landed_at, pull.landed_sha = (branch, position), landed_at, landed_sha
            landing = commits.get(landed_sha)
            shas.setdefault(landed_sha, number)
            if style in {"merge", "fast_forward"}:
                for commit in own_commits:
                    shas.setdefault(commit.sha, number)
        pull.own = own_shas.get(number, ())
        provenance.add(number, landing is not None, landing, own_commits)
        _add_git_texts(pull, own_commits, landing, landings[number][1] if number in landings else None)
    for pull in pulls.values():
        own_commits = [commits[sha] for sha in pull.own if sha in commits]
        _mark_copies(pull, own_commits, provenance)
    _add_api_texts(tx, repository_id, pulls, provenance)
    for pull in pulls.values():
        pull.subject = pull.subject or _first_subject([commits[sha] for sha in pull.own if sha in commits])
    aliases = [alias for (alias,) in tx.rows(RepositoryAlias, "alias", repository_id=repository_id)]
    names = {repository.lower(), *aliases}
    _add_branches(tx, repository_id, names, pulls)
    _add_events(tx, repository_id, names, pulls)
    [(default,)] = tx.rows(Repository, "default_branch", id=repository_id)
    for pull in pulls.values():
        pull.bases = [(branch, event) for branch, event in pull.bases if branch != default]
    return PullRequestIndex(repository, aliases, forge, pulls, provenance, shas)


def _commits(tx: Transaction, repository_id: int, urls: UrlForm) -> dict[str, CommitText]:
    columns = ("sha", "author", "authored_at", "parents", "message")
    return {
        row[0]: CommitText(row[0], row[1], row[2], row[3], row[4], may_cite(row[4], urls))
        for row in tx.rows(Commit, *columns, repository_id=repository_id)
    }


def _own_shas(tx: Transaction, repository_id: int) -> dict[int, list[str]]:
    """Own commits, oldest first: git's walk where there is one, else the forge's list."""
    by_origin: dict[str, dict[int, list[tuple[int, str]]]] = {"git": defaultdict(list), "api": defaultdict(list)}
    for number, origin, sha, position in tx.rows(
        PullRequestCommit, "number", "origin", "sha", "position", repository_id=repository_id
    ):
        by_origin[origin][number].append((position, sha))
    merged = {**by_origin["api"], **by_origin["git"]}
    return {number: [sha for _, sha in sorted(listed)] for number, listed in merged.items()}


def _landings(tx: Transaction, repository_id: int) -> dict[int, tuple[str, str, int, str, str]]:
    found: dict[int, tuple[str, str, int, str, str]] = {}
    columns = ("number", "branch", "is_default", "style", "position", "landed_at", "landed_sha")
    for number, branch, is_default, style, position, landed_at, sha in tx.rows(
        Landing, *columns, repository_id=repository_id
    ):
        if number not in found or is_default:
            found[number] = (branch, style, position, landed_at, sha)
    return found


def _paths(tx: Transaction, repository_id: int) -> Iterator[tuple[int, list[str]]]:
    current: int | None = None
    paths: list[str] = []
    for number, path in tx.rows(LandingFile, "number", "path", repository_id=repository_id):
        if number != current:
            if current is not None:
                yield current, paths
            current, paths = number, []
        paths.append(path)
    if current is not None:
        yield current, paths


def _add_git_texts(
    pull: PullRequestFacts, own: list[CommitText], landing: CommitText | None, style: str | None
) -> None:
    for commit in own:
        if commit.cites:
            pull.texts.append(SourceText("commit", commit.sha, commit.message, "commit"))
    if landing is None:
        return
    if branch := source_branch(landing.message):
        pull.texts.append(SourceText("branch", landing.sha, branch, "branch"))
    title = landing.message.split("\n", 1)[0]
    if title.startswith("Merge pull request"):
        title = next((line for line in landing.message.split("\n")[1:] if line.strip()), title)
    pull.subject = title
    # After a rebase or fast-forward the landed commit is the last own commit, whose message is there already.
    if landing.cites and style not in {"rebase", "fast_forward"}:
        pull.texts.append(SourceText("landing", landing.sha, landing.message, "commit"))


def _mark_copies(pull: PullRequestFacts, own: list[CommitText], provenance: Provenance) -> None:
    copied = copied_commits(pull.number, own, provenance)
    if copied:
        pull.texts = [
            SourceText(t.field, t.key, t.text, t.kind, t.by_bot, copied[t.key])
            if t.field == "commit" and t.key in copied
            else t
            for t in pull.texts
        ]


def _first_subject(own: list[CommitText]) -> str:
    return next((commit.message.split("\n", 1)[0] for commit in own if commit.parents < 2), "")


def _add_api_texts(
    tx: Transaction, repository_id: int, pulls: dict[int, PullRequestFacts], provenance: Provenance
) -> None:
    for number, branch in tx.rows(PullRequest, "number", "head_branch", repository_id=repository_id):
        if branch:
            pulls[number].texts = [text for text in pulls[number].texts if text.field != "branch"]
            pulls[number].texts.append(SourceText("branch", "", branch, "branch"))
    for number, field, key, body, author, kind in tx.rows(PullRequestText, *_TEXT_COLUMNS, repository_id=repository_id):
        pull = pulls[number]
        if field == "title":
            pull.subject = body
            provenance.add_subject(number, body)
        by_bot = field not in {"title", "body"} and (kind == "Bot" or (author or "").endswith("[bot]"))
        pull.texts.append(SourceText(field, key, body, "title" if field == "title" else "markdown", by_bot))


def _add_events(
    tx: Transaction, repository_id: int, names: Collection[str], pulls: dict[int, PullRequestFacts]
) -> None:
    for cited, key, kind, other, citing, other_kind, closes, before in tx.rows(
        TimelineEvent, *_EVENT_COLUMNS, repository_id=repository_id
    ):
        is_own = other is not None and other.lower() in names
        if kind == "CrossReferencedEvent" and is_own and other_kind == "PullRequest" and citing in pulls:
            pulls[citing].events.append((cited, key, "closes" if closes else "mentions"))
        elif kind in _BASE_CHANGES and before:
            pulls[cited].bases.append((before, key))


def _add_branches(
    tx: Transaction, repository_id: int, names: Collection[str], pulls: dict[int, PullRequestFacts]
) -> None:
    """Where each pull request came from and was to go to, and when it was open."""
    for number, base, head, head_repository, opened, closed in tx.rows(
        PullRequest, *_STACK_COLUMNS, repository_id=repository_id
    ):
        pull = pulls[number]
        if opened is None:
            continue
        pull.opened_at, pull.closed_at = opened, closed
        pull.head_branch = head if (head_repository or "").lower() in names else None
        pull.bases = [(base, "")] if base else []
