"""From the facts of git to rows, written in one transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, delete, exists, or_, select, update

from miner.git_facts import GitFacts, count_lines
from miner.landing import LandingCandidate
from miner.outcomes import GIT_NOT_READ, Evidence, choose
from prchain.core.ahead import ahead
from prchain.core.git import GitRepository, RawChange
from prchain.core.secrets.scrub import Counts, redact_mined
from prchain.core.storable import clean_text
from prchain.core.timestamps import of_unix
from sql.store import Transaction
from sql.tables import Commit, Landing, LandingFile, PullRequest, PullRequestCommit, RefusedClaim

_COMMIT_COLUMNS = ("repository_id", "sha", "author", "authored_at", "committed_at", "parents", "message")
_OWN_COLUMNS = ("repository_id", "number", "origin", "sha", "position")
_LANDING_COLUMNS = (
    "repository_id",
    "number",
    "branch",
    "is_default",
    "style",
    "base_sha",
    "landed_sha",
    "head_sha",
    "landed_at",
    "subject",
    "position",
    "claim",
    "evidence",
    "counts",
)
_FILE_COLUMNS = (
    "repository_id",
    "number",
    "branch",
    "path",
    "status",
    "old_path",
    "old_mode",
    "new_mode",
    "old_blob",
    "new_blob",
)


@dataclass(frozen=True, slots=True)
class ApiState:
    """What an earlier reading of the API says of one pull request."""

    state: str | None
    merge_sha: str | None
    gone_at: str | None
    note: str | None = None
    """Why it is not whole, where the forge could not deliver it."""


@dataclass(frozen=True, slots=True)
class PullRequestSelection:
    """Which pull requests a run looks at: landed (or, unlanded, last committed to) since a time, or the newest N."""

    since: str | None = None
    limit: int | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self.since is None and self.limit is None

    def text(self) -> str:
        """As the user wrote it."""
        parts = [f"--since {self.since}"] if self.since else []
        return " ".join(parts + ([f"--limit {self.limit}"] if self.limit is not None else []))

    def numbers(self, facts: GitFacts) -> set[int]:
        """The selected numbers among the pull heads."""
        history = facts.history
        chosen = set(facts.refs.heads)
        if self.since is not None:
            chosen = {number for number in chosen if of_unix(history.commit_times[_last(facts, number)]) >= self.since}
        if self.limit is not None:
            chosen = set(sorted(chosen)[-self.limit :] if self.limit else [])
        return chosen


WHOLE = PullRequestSelection()


def _last(facts: GitFacts, number: int) -> int:
    landed = facts.decisions.landed.get(number)
    return landed.commit if landed else facts.history.index[facts.refs.heads[number]]


def write(
    tx: Transaction,
    repository_id: int,
    repository: GitRepository,
    facts: GitFacts,
    selection: PullRequestSelection,
    api: Mapping[int, ApiState],
    *,
    forge: str,
    same_rules: bool = True,
    anew: Collection[int] = (),
    replaced: Counts | None = None,
) -> None:
    """Replace what git says of the selected pull requests; the others keep the facts of an earlier, wider run.

    Unchanged landings keep their rows, files and line counts, and commits their texts, unless `same_rules` is false:
    they were written under other rules. Landings that are to be read `anew` are. Secrets that were replaced in commits
    are added to `replaced`. `forge` is the forge's title.
    """
    numbers = selection.numbers(facts) | (set(api) - set(facts.refs.heads))
    known_outcomes = {
        number: "unsettled" if reason == GIT_NOT_READ else outcome
        for number, outcome, reason in tx.rows(PullRequest, "number", "outcome", "reason", repository_id=repository_id)
    }
    landed = {n: _landing(repository_id, facts, c) for n, c in facts.decisions.landed.items() if n in numbers}
    stored = {row[0]: row for row in tx.rows(Landing, *_LANDING_COLUMNS[1:-1], repository_id=repository_id)}
    kept = {n for n, row in landed.items() if same_rules and n not in anew and stored.get(n) == row[1:-1]}
    _clear(tx, repository_id, None if selection.whole else numbers, sorted(set(stored) - kept))
    tx.upsert(PullRequest, _pull_requests(repository_id, facts, numbers, selection, api, known_outcomes, forge))
    commits = {c for number in numbers for c in facts.own.get(number, ())}
    commits.update(facts.decisions.landed[number].commit for number in landed)
    with ahead(facts.files(repository, [n for n in landed if n not in kept])) as files:
        _write_commits(tx, repository_id, facts, sorted(commits), same_rules, replaced)
        tx.bulk(PullRequestCommit, _OWN_COLUMNS, _own(repository_id, facts, numbers))
        tx.bulk(Landing, _LANDING_COLUMNS, (row for n, row in landed.items() if n not in kept))
        tx.bulk(LandingFile, _FILE_COLUMNS, _files(repository_id, facts, files))
    tx.upsert(RefusedClaim, _refusals(repository_id, facts, numbers if not selection.whole else None))
    tx.connection.execute(_DELETE_UNUSED_COMMITS, {"repository": repository_id})


def _clear(tx: Transaction, repository_id: int, numbers: Collection[int] | None, changed: list[int]) -> None:
    """Delete what is written anew: everything of the numbers (None: of all), and the landings that changed."""
    for number in changed:
        if numbers is None or number in numbers:
            tx.delete(Landing, repository_id=repository_id, number=number)
    if numbers is None:
        tx.delete(RefusedClaim, repository_id=repository_id)
        tx.delete(PullRequestCommit, repository_id=repository_id, origin="git")
        return
    for number in numbers:
        tx.delete(RefusedClaim, repository_id=repository_id, number=number)
        tx.delete(PullRequestCommit, repository_id=repository_id, number=number, origin="git")


def _pull_requests(
    repository_id: int,
    facts: GitFacts,
    numbers: Collection[int],
    selection: PullRequestSelection,
    api: Mapping[int, ApiState],
    known_outcomes: Mapping[int, str],
    forge: str,
) -> Iterator[dict[str, Any]]:
    heads = facts.refs.heads
    for number in sorted(set(heads) | set(api) | set(known_outcomes)):
        if number in numbers or number not in heads:
            listed = number in api or not api or not selection.whole
            outcome, reason = choose(_evidence(facts, number, api.get(number), forge, listed=listed))
        elif known_outcomes.get(number, "unsettled") in {"unsettled", "not_selected"}:
            outcome, reason = "not_selected", selection.text()
        else:
            continue
        yield {
            "repository_id": repository_id,
            "number": number,
            "head_sha": heads.get(number),
            "outcome": outcome,
            "reason": reason,
        }


def _evidence(facts: GitFacts, number: int, api: ApiState | None, forge: str, *, listed: bool) -> Evidence:
    landed = facts.decisions.landed.get(number)
    carrier = facts.decisions.carried.get(number)
    carried = None
    if carrier is not None:
        with_number = facts.decisions.landed_numbers.get(carrier)
        carried = f"with {f'#{with_number}' if with_number else 'a merge'} in {facts.history.shas[carrier][:12]}"
    return Evidence(
        landed=f"{landed.style} on {_branch(landed.line.branch)}: {landed.claim}, {landed.evidence}"
        if landed
        else None,
        carried=carried,
        state=api.state if api else None,
        merge_sha=api.merge_sha if api else None,
        gone_at=api.gone_at if api else None,
        has_head=number in facts.refs.heads,
        listed=listed,
        note=api.note if api else None,
        forge=forge,
    )


def _write_commits(
    tx: Transaction, repository_id: int, facts: GitFacts, commits: list[int], same_rules: bool, replaced: Counts | None
) -> None:
    history = facts.history
    stored_parents = {row[0]: row[1] for row in tx.rows(Commit, "sha", "parents", repository_id=repository_id)}

    def row(commit: int) -> tuple[Any, ...]:
        return (
            repository_id,
            history.shas[commit],
            _stored(history.authors[commit][0], replaced),
            of_unix(history.author_times[commit]),
            of_unix(history.commit_times[commit]),
            len(history.parents[commit]),
            _stored(history.message(commit), replaced),
        )

    tx.bulk(Commit, _COMMIT_COLUMNS, (row(commit) for commit in commits if history.shas[commit] not in stored_parents))
    # Those that the API told have no parents yet.
    stale = [
        c
        for c in commits
        if (parents := stored_parents.get(history.shas[c])) is not None and not (same_rules and parents >= 0)
    ]
    tx.upsert(Commit, (dict(zip(_COMMIT_COLUMNS, row(commit), strict=True)) for commit in stale))


def _stored(text: str, replaced: Counts | None = None) -> str:
    return redact_mined(clean_text(text), counts=replaced).rstrip("\n")


@lru_cache(1000)
def _branch(name: str) -> str:
    # A name can be what a merge message says, which is any text of any length.
    return _stored(name)[:255]


def _own(repository_id: int, facts: GitFacts, numbers: Collection[int]) -> Iterator[tuple[Any, ...]]:
    shas = facts.history.shas
    for number in sorted(numbers):
        for position, commit in enumerate(facts.own.get(number, ())):
            yield (repository_id, number, "git", shas[commit], position)


def _landing(repository_id: int, facts: GitFacts, landed: LandingCandidate) -> tuple[Any, ...]:
    history = facts.history
    return (
        repository_id,
        landed.number,
        _branch(landed.line.branch),
        landed.line.is_default,
        landed.style,
        history.shas[landed.base],
        history.shas[landed.commit],
        facts.refs.heads.get(landed.number),
        of_unix(history.commit_times[landed.commit]),
        _stored(history.subject(landed.commit)),
        landed.position,
        landed.claim,
        landed.evidence,
        "none",
    )


def _files(
    repository_id: int, facts: GitFacts, files: Iterable[tuple[int, list[RawChange]]]
) -> Iterator[tuple[Any, ...]]:
    for number, changes in files:
        branch = _branch(facts.decisions.landed[number].line.branch)
        for change in changes:
            yield (
                repository_id,
                number,
                branch,
                clean_text(change.path),
                change.status,
                clean_text(change.old_path) if change.old_path else None,
                change.old_mode,
                change.new_mode,
                change.old_blob,
                change.new_blob,
            )


def _refusals(repository_id: int, facts: GitFacts, numbers: Collection[int] | None) -> Iterator[dict[str, Any]]:
    history = facts.history
    for refusal in facts.decisions.refused:
        if numbers is None or refusal.number in numbers:
            yield {
                "repository_id": repository_id,
                "number": refusal.number,
                "sha": history.shas[refusal.commit],
                "branch": _branch(refusal.branch),
                "claim": refusal.claim,
                "reason": refusal.reason,
                "subject": _stored(history.subject(refusal.commit)),
            }


def settle_without_history(tx: Transaction, repository_id: int, forge: str) -> None:
    """Give an outcome to what the API has brought, from the API alone, where no history could be read.

    What an earlier reading of the history has settled stays; `awaits_history` is true of the rest.
    """
    columns = ("number", "outcome", "node_id", "state", "merge_sha", "gone_at", "head_sha")
    rows = []
    for number, outcome, node_id, state, merge_sha, gone_at, head_sha in tx.rows(
        PullRequest, *columns, repository_id=repository_id
    ):
        if outcome in _SETTLED_BY_HISTORY or (node_id is None and outcome != "unsettled"):
            continue
        evidence = Evidence(
            state=state,
            merge_sha=merge_sha,
            gone_at=gone_at,
            has_head=head_sha is not None,
            git_read=False,
            forge=forge,
        )
        chosen, reason = choose(evidence)
        if chosen != outcome:
            rows.append({"repository_id": repository_id, "number": number, "outcome": chosen, "reason": reason})
    tx.upsert(PullRequest, rows)


def awaits_history(tx: Transaction, repository_id: int) -> bool:
    """Whether some pull request has no outcome yet, or one that was chosen without the history."""
    undecided = or_(PullRequest.outcome == "unsettled", PullRequest.reason == GIT_NOT_READ)
    found = exists().where(PullRequest.repository_id == repository_id, undecided)
    return bool(tx.connection.execute(select(found)).scalar())


def write_counts(
    tx: Transaction, repository_id: int, repository: GitRepository, landings: Sequence[Sequence[Any]]
) -> None:
    """Write the line counts of some (number, branch, base, landed) landings whose files are stored."""
    files = [_stored_files(tx, repository_id, number, branch) for number, branch, _, _ in landings]
    pairs = [(base, landed) for _, _, base, landed in landings]
    rows, landing_rows = [], []
    for (number, branch, _, _), changes, counts in zip(
        landings, files, count_lines(repository, pairs, files), strict=True
    ):
        key = {"key_repository": repository_id, "key_number": number, "key_branch": branch}
        for change in changes:
            count = counts.get(change.path)
            note = "missing_blob" if count is None else "binary" if count.additions is None else None
            if "160000" in (change.old_mode, change.new_mode):
                note = "submodule"
            rows.append(
                {
                    **key,
                    "key_path": change.path,
                    "additions": count.additions if count else None,
                    "deletions": count.deletions if count else None,
                    "note": note,
                }
            )
        whole = all(change.path in counts for change in changes)
        landing_rows.append({**key, "counts": "done" if whole else "partial"})
    if rows:
        tx.connection.execute(_UPDATE_COUNTS, rows)
    tx.connection.execute(_UPDATE_LANDING, landing_rows)


def _stored_files(tx: Transaction, repository_id: int, number: int, branch: str) -> list[RawChange]:
    columns = ("old_mode", "new_mode", "old_blob", "new_blob", "status", "path", "old_path")
    return [
        RawChange(*row)
        for row in tx.rows(LandingFile, *columns, repository_id=repository_id, number=number, branch=branch)
    ]


_SETTLED_BY_HISTORY = frozenset({"landed", "carried", "not_selected"})

_DELETE_UNUSED_COMMITS = delete(Commit).where(
    Commit.repository_id == bindparam("repository"),
    ~exists().where(PullRequestCommit.repository_id == Commit.repository_id, PullRequestCommit.sha == Commit.sha),
    ~exists().where(Landing.repository_id == Commit.repository_id, Landing.landed_sha == Commit.sha),
)
"""A head that was pushed anew leaves the commits of the old one behind."""

_UPDATE_COUNTS = (
    update(LandingFile)
    .where(
        LandingFile.repository_id == bindparam("key_repository"),
        LandingFile.number == bindparam("key_number"),
        LandingFile.branch == bindparam("key_branch"),
        LandingFile.path == bindparam("key_path"),
    )
    .values(additions=bindparam("additions"), deletions=bindparam("deletions"), note=bindparam("note"))
)
_UPDATE_LANDING = (
    update(Landing)
    .where(
        Landing.repository_id == bindparam("key_repository"),
        Landing.number == bindparam("key_number"),
        Landing.branch == bindparam("key_branch"),
    )
    .values(counts=bindparam("counts"))
)
