"""What people wrote about a pull request, from the database, ready for a prompt.

All text goes through `prchain.core.secrets.scrub.scrub_mined`. Comments of bots are left out; authors are not named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import and_, select

from chains.history import display_subject
from chains.tasks.model import TaskChain
from prchain.core.secrets.scrub import scrub_mined
from sql.store import Transaction
from sql.tables import (
    ChainStage,
    Citation,
    ClosingReference,
    Commit,
    Issue,
    Landing,
    PullRequestCommit,
    PullRequestText,
)

_MERGE = "Merge pull request"
_NUMBER = re.compile(r"\s*\(#\d+\)$")
_CITATIONS = 3
"""Places where a pull request cites another one that are shown."""


@dataclass(frozen=True, slots=True)
class IssueText:
    """An issue that the pull request closes."""

    name: str
    """``OWNER/NAME#N``."""
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class PullTexts:
    """The texts of one pull request."""

    title: str
    body: str
    discussion: tuple[str, ...]
    """Comments and reviews, oldest first, each with a first line that says what it is."""
    commits: tuple[str, ...]
    """Messages of its own commits, oldest first, and of the landing, without duplicates."""
    issues: tuple[IssueText, ...]
    shas: tuple[str, ...]
    """Of its own commits."""

    def untold_commits(self) -> tuple[str, ...]:
        """The messages that tell more than title and body: a squash's message repeats both, and so does the commit that
        GitHub made them from."""
        told = _words(f"{_NUMBER.sub('', self.title)} {self.body}")
        return tuple(message for message in self.commits if _words(_unnumbered(message)) not in told)


def read_texts(
    tx: Transaction, repository_id: int, number: int, landed_sha: str, known: Collection[str] = ()
) -> PullTexts:
    """The texts of a pull request; where only git was read, title and body come from the landing's message.

    Commits of `known` are left out: a branch that was begun on another one has the commits of that as well.
    """
    title = body = None
    discussion: list[tuple[str, str, str]] = []
    columns = ("field", "key", "author_kind", "body", "path", "created_at")
    for field, key, kind, text, path, created_at in tx.rows(
        PullRequestText, *columns, repository_id=repository_id, number=number
    ):
        if field == "title":
            title = text
        elif field == "body":
            body = text
        elif text.strip() and kind != "Bot":
            label = f"review of {path}" if path else field.replace("_", " ")
            discussion.append((created_at or "", key, f"({label})\n{text}"))
    own = {sha: text for sha, text in _own_commits(tx, repository_id, number).items() if sha not in known}
    landing = _landing(tx, repository_id, number, landed_sha)
    subject, rest = _split_message(landing)
    messages = dict.fromkeys([*own.values(), landing])
    return PullTexts(
        title=scrub_mined(title if title and title.strip() else subject),
        body=scrub_mined(body if body is not None else rest),
        discussion=tuple(scrub_mined(text) for _, _, text in sorted(discussion)),
        commits=tuple(scrub_mined(message) for message in messages if message.strip()),
        issues=tuple(_issues(tx, repository_id, number)),
        shas=tuple(own),
    )


def read_links(tx: Transaction, chain: TaskChain) -> dict[int, str]:
    """Position to why the stage follows the one before, in words: its citations, and the signs for the link."""
    words: dict[int, str] = {}
    numbers = {stage.position: stage.number for stage in chain.stages}
    columns = ("position", "relation", "signs")
    for position, relation, signs in tx.rows(ChainStage, *columns, chain_id=chain.id):
        if position - 1 not in numbers:
            continue
        pair = {"source": numbers[position], "target": numbers[position - 1]}
        cited = tx.rows(Citation, "field", "snippet", repository_id=chain.repository_id, counted=True, **pair)
        lines = [f"{field}: {snippet}" for field, snippet in cited][:_CITATIONS]
        lines += [
            f"{sign['sign'].replace('_', ' ')}: {sign['detail']}"
            for sign in signs or ()
            if sign["weight"] > 0 and sign["detail"] and sign["sign"] != relation
        ]
        words[position] = scrub_mined("; ".join([(relation or "").replace("_", " "), *lines]).strip("; "))
    return words


def read_title(tx: Transaction, repository_id: int, number: int, landed_sha: str) -> str:
    """The title alone."""
    titles = list(tx.rows(PullRequestText, "body", repository_id=repository_id, number=number, field="title"))
    if titles and titles[0][0].strip():
        return scrub_mined(titles[0][0])
    return scrub_mined(_split_message(_landing(tx, repository_id, number, landed_sha))[0])


def _own_commits(tx: Transaction, repository_id: int, number: int) -> dict[str, str]:
    """Sha to message, oldest first; git's list before the API's, which may have commits that a force push removed."""
    query = (
        select(Commit.sha, Commit.message)
        .join(
            PullRequestCommit,
            and_(PullRequestCommit.repository_id == Commit.repository_id, PullRequestCommit.sha == Commit.sha),
        )
        .where(Commit.repository_id == repository_id, PullRequestCommit.number == number)
        .order_by(PullRequestCommit.origin.desc(), PullRequestCommit.position)
    )
    return {str(sha): str(message) for sha, message in tx.connection.execute(query)}


def _landing(tx: Transaction, repository_id: int, number: int, landed_sha: str) -> str:
    """The message of the landed commit, or its subject where the commit has no row."""
    rows = list(tx.rows(Commit, "message", repository_id=repository_id, sha=landed_sha))
    if rows:
        return str(rows[0][0])
    subjects = tx.rows(Landing, "subject", repository_id=repository_id, number=number, landed_sha=landed_sha)
    return next((str(subject) for (subject,) in subjects), "")


def _split_message(message: str) -> tuple[str, str]:
    """Title and body of a landing's message. GitHub writes a merge's title below a first line of its own, or none."""
    subject, _, rest = message.strip().partition("\n")
    if subject.startswith(_MERGE) and rest.strip():
        subject, _, rest = rest.strip().partition("\n")
    return display_subject(subject.strip()), rest.strip()


def _unnumbered(message: str) -> str:
    """Title and body of a message without the number that GitHub puts behind a squash's title."""
    title, body = _split_message(message)
    return f"{_NUMBER.sub('', title)} {body}"


def _words(text: str) -> str:
    """The text with every run of white space as one blank, between blanks, so that only whole words are found in it."""
    return f" {' '.join(text.split())} "


def _issues(tx: Transaction, repository_id: int, number: int) -> Iterator[IssueText]:
    query = (
        select(Issue.issue_repository, Issue.issue_number, Issue.title, Issue.body)
        .join(
            ClosingReference,
            and_(
                ClosingReference.repository_id == Issue.repository_id,
                ClosingReference.issue_repository == Issue.issue_repository,
                ClosingReference.issue_number == Issue.issue_number,
            ),
        )
        .where(Issue.repository_id == repository_id, ClosingReference.number == number)
        .order_by(Issue.issue_repository, Issue.issue_number)
    )
    for repository, issue, title, body in tx.connection.execute(query):
        if title or body:
            yield IssueText(f"{repository}#{issue}", scrub_mined(title or ""), scrub_mined(body or ""))
