"""Mining repositories: sources -> rows -> citations, each step a transaction that a killed run need not repeat."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from sqlalchemy import update

from miner import citation_rows, git_rows
from miner.budget import ApiUsage
from miner.git_rows import WHOLE, ApiState, PullRequestSelection
from miner.git_source import ApiKnowledge, Refs, read, read_refs
from miner.repositories import RepositorySpec
from prchain.errors import BadAnswer, DiskFull, GitHubError, PrchainError, RepositoryNotFound, StoreError
from prchain.git import GitRepository, mirror_path, update_mirror
from prchain.progress import SILENT, Progress, ProgressTask
from prchain.runs import RunResult, Tell, UnitResult, run_units
from prchain.scrub import redact
from prchain.settings import Settings
from prchain.terminal import counted, listed
from prchain.timestamps import now
from sql.lock import exclusive_lock
from sql.outcomes import MINED, UNCHANGED
from sql.store import Store, Transaction
from sql.tables import Cursor, Landing, MineRun, PullRequest, Repository, RepositoryAlias

if TYPE_CHECKING:
    from miner.github import GitHubSource

GIT_RULES = "1"
"""Raise it when the git source changes its rules: stored landings are then rebuilt."""

_COUNTED_AT_ONCE = 500

SourceName = Literal["auto", "github", "git"]


@dataclass(frozen=True, slots=True)
class MineOptions:
    """What a run of `prchain mine` was asked to do."""

    source: SourceName = "auto"
    selection: PullRequestSelection = WHOLE
    rescan: bool = False
    from_archive: bool = False
    line_counts: bool = False


@dataclass(frozen=True, slots=True)
class RepositoryReport:
    """How the run over one repository ended."""

    spec: RepositorySpec
    outcome: str
    """``mined``, ``unchanged``, or the name of the error that ended it."""
    error: str | None = None
    pull_requests: int = 0
    landed: int = 0
    graphql_requests: int = 0
    rest_requests: int = 0
    points: int = 0


@contextmanager
def open_run(settings: Settings, options: MineOptions, *, progress: Progress = SILENT) -> Iterator[Miner]:
    """What a run, or a worker of one, needs: the database, which is made where there is none, and GitHub's API where it
    is to be read. Raises `StoreError`."""
    tokens = tuple(token.get_secret_value() for token in settings.github_tokens)
    with closing(Store.open(settings.db)) as store:
        github: GitHubSource | None = None
        if tokens and options.source != "git" and not options.from_archive:
            from miner.github import GitHubSource  # noqa: PLC0415  the client takes a tenth of a second

            github = GitHubSource(
                store,
                tokens=tokens,
                api_url=settings.github_api_url,
                max_wait=settings.max_wait_seconds,
                timeout=settings.request_timeout_seconds,
                progress=progress,
            )
        host = web_host(settings.github_api_url)
        yield Miner(
            store, options, mirrors=settings.mirrors_dir, progress=progress, github=github, api_host=host, tokens=tokens
        )


def web_host(api_url: str) -> str:
    """The host that people see: github.com for api.github.com, the server itself for GitHub Enterprise."""
    host = urlsplit(api_url).hostname or "github.com"
    return host.removeprefix("api.")


class Miner:
    """One run of `prchain mine` (`prchain.runs.Work`); its threads mine one repository each."""

    title = "repositories"

    def __init__(
        self,
        store: Store,
        options: MineOptions,
        *,
        mirrors: Path,
        progress: Progress = SILENT,
        github: GitHubSource | None = None,
        api_host: str = "github.com",
        tokens: tuple[str, ...] = (),
    ) -> None:
        self._store = store
        self._mirrors = mirrors
        self._progress = progress
        self._options = options
        self._github = github
        self._api_host = api_host
        self._tokens = tokens
        self._naming = threading.Lock()

    def run(self, specs: Sequence[RepositorySpec], workers: int = 2) -> RunResult[RepositorySpec]:
        """Mine the repositories; `detail` of each result is a `RepositoryReport`. Raises as `run_units`."""
        return run_units(self, specs, workers=workers, progress=self._progress, secrets=self._tokens)

    def holding(self, unit: RepositorySpec) -> AbstractContextManager[None]:
        """See `Work`."""
        digest = sha256(unit.group.lower().encode()).hexdigest()[:16]
        return exclusive_lock(self._store, f"mine-{digest}", "prchain mine")

    def work_on(self, unit: RepositorySpec, tell: Tell) -> UnitResult[RepositorySpec]:
        """See `Work`."""
        report = self.mine(unit)
        return UnitResult(unit, report.outcome, report.error, report)

    def failed(self, unit: RepositorySpec, outcome: str, reason: str) -> UnitResult[RepositorySpec]:
        """See `Work`: the run over the repository ends so, and what was committed stays."""
        with self._store.transaction() as tx:
            running = update(MineRun).where(MineRun.spec == unit.text, MineRun.outcome == "running")
            tx.connection.execute(running.values(finished_at=now(), outcome=outcome, reason=reason))
        return UnitResult(unit, outcome, reason, RepositoryReport(unit, outcome, reason))

    def spent(self) -> None:
        """See `Work`: nothing."""
        return None

    def mine(self, spec: RepositorySpec) -> RepositoryReport:
        """Mine one repository as far as it goes; a failure with a name is reported, and what was committed stays."""
        run_id = self._begin(spec)
        work = _Work()
        try:
            self._mine(spec, run_id, work)
        except PrchainError as error:
            _raise_if_the_database_failed(error)
            work.fail(error)
        if work.repository_id is not None and work.error is not None:
            try:
                # What was read before the failure is worth its outcomes and its citations.
                self._settle_rest(work.repository_id)
                self._cite(work.repository_id, work)
            except PrchainError as error:
                _raise_if_the_database_failed(error)
                work.fail(error)
        return self._finish(spec, run_id, work)

    def _mine(self, spec: RepositorySpec, run_id: int, work: _Work) -> None:
        if self._options.from_archive:
            self._replay(spec, run_id, work)
            return
        if self._options.source == "github" and spec.host != self._api_host:
            raise RepositoryNotFound(f"{spec.full_name} is on {spec.host}, and the API is {self._api_host}'s")
        uses_api = self._github is not None and self._options.source != "git" and spec.host == self._api_host
        if uses_api:
            try:
                self._read_api(spec, run_id, work)
            except GitHubError as error:
                # The history is worth having without the API, and the API's failure is still reported.
                work.fail(error)
        if work.repository_id is None:
            with self._store.reading() as tx:
                known_row = self._known_row(tx, spec, None)
            if known_row is not None:
                work.repository_id = known_row[0]
                self._note_run(run_id, known_row[0])
            elif work.error is not None and not spec.is_path:
                return
        self._read_git(spec, run_id, work)
        if work.repository_id is not None:
            self._cite(work.repository_id, work)

    def _read_api(self, spec: RepositorySpec, run_id: int, work: _Work) -> None:
        assert self._github is not None
        resolved = self._github.resolve(spec.owner, spec.name)
        work.repository_id = self._repository(replace(spec, owner=resolved.owner, name=resolved.name), resolved.node_id)
        self._note_run(run_id, work.repository_id)
        work.usage.add(resolved.usage)
        selection = self._options.selection
        summary = self._github.read(
            work.repository_id, resolved, since=selection.since, limit=selection.limit, rescan=self._options.rescan
        )
        work.usage.add(summary.usage)
        work.changed = work.changed or summary.changed
        if summary.missing:
            missing = counted(len(summary.missing), "pull request")
            numbers = listed([f"#{number}" for number in summary.missing], 5)
            work.fail(BadAnswer(f"GitHub did not deliver {missing} whole: {numbers}"))

    def _replay(self, spec: RepositorySpec, run_id: int, work: _Work) -> None:
        with self._store.reading() as tx:
            known_row = self._known_row(tx, spec, None)
        if known_row is None:
            raise RepositoryNotFound(
                f"{spec.full_name} has not been mined into this database; there is no archive of it"
            )
        from miner.github import replay  # noqa: PLC0415  the client takes a tenth of a second, which git alone need not pay

        work.repository_id = known_row[0]
        self._note_run(run_id, work.repository_id)
        summary = replay(self._store, work.repository_id)
        work.changed = work.changed or summary.changed
        self._settle_rest(work.repository_id)
        self._cite(work.repository_id, work)

    def _read_git(self, spec: RepositorySpec, run_id: int, work: _Work) -> None:
        task = self._progress.task(f"{spec.full_name}: git history")
        try:
            task.phase("fetching")
            repository = self._open(spec)
            refs = read_refs(repository)
            if work.repository_id is None:
                work.repository_id = self._repository(spec, None)
                self._note_run(run_id, work.repository_id)
            found = self._write_history(work.repository_id, repository, refs, task, work)
            if self._options.line_counts:
                counted = count_stored(self._store, work.repository_id, repository, task)
                work.changed = work.changed or counted > 0
            task.done(found)
        except PrchainError:
            task.done("failed")
            raise

    def _write_history(
        self, repository_id: int, repository: GitRepository, refs: Refs, task: ProgressTask, work: _Work
    ) -> str:
        """Store where pull requests landed; returns what was found, in words."""
        api = self._api_states(repository_id)
        stamp = self._git_stamp(refs.fingerprint, api)
        with self._store.reading() as tx:
            cursor = list(tx.rows(Cursor, "position", repository_id=repository_id, stream="git"))
        if cursor and cursor[0][0] == stamp:
            return UNCHANGED
        merges = {number: state.merge_sha for number, state in api.items() if state.merge_sha}
        facts = read(repository, refs, ApiKnowledge(merges), task.phase)
        task.phase("writing")
        same_rules = bool(cursor) and cursor[0][0].split("|", 1)[0] == GIT_RULES
        with self._store.transaction() as tx:
            git_rows.write(tx, repository_id, repository, facts, self._options.selection, api, keep_landings=same_rules)
            tx.upsert(Cursor, [_cursor(repository_id, "git", stamp)])
            statement = update(Repository).where(Repository.id == repository_id)
            tx.connection.execute(statement.values(default_branch=refs.default_branch))
        work.changed = True
        return f"{len(refs.heads):,} pull heads, {len(facts.decisions.landed):,} landed"

    def _open(self, spec: RepositorySpec) -> GitRepository:
        if spec.is_path:
            return GitRepository.open(Path(spec.location))
        token = self._tokens[0] if self._tokens and spec.host == self._api_host else None
        path = mirror_path(self._mirrors, spec.host, f"{spec.owner}/{spec.name}")
        return update_mirror(spec.location, path, token=token)

    def _git_stamp(self, fingerprint: str, api: Mapping[int, ApiState]) -> str:
        digest = sha256()
        for number, state in sorted(api.items()):
            digest.update(f"{number} {state.state} {state.merge_sha} {state.gone_at}\n".encode())
        return "|".join([GIT_RULES, fingerprint, self._options.selection.text(), digest.hexdigest()])

    def _api_states(self, repository_id: int) -> dict[int, ApiState]:
        with self._store.reading() as tx:
            columns = ("number", "node_id", "state", "merge_sha", "gone_at", "reason")
            return {
                number: ApiState(state, merge_sha, gone_at, None if state else reason)
                for number, node_id, state, merge_sha, gone_at, reason in tx.rows(
                    PullRequest, *columns, repository_id=repository_id
                )
                if node_id is not None
            }

    def _cite(self, repository_id: int, work: _Work) -> None:
        with self._store.reading() as tx:
            [(host, owner, name)] = tx.rows(Repository, "host", "owner", "name", id=repository_id)
            git = [position for (position,) in tx.rows(Cursor, "position", repository_id=repository_id, stream="git")]
            stamp = "|".join([*git, citation_rows.stamp(tx, repository_id)])
            cursor = list(tx.rows(Cursor, "position", repository_id=repository_id, stream="citations"))
        if cursor and cursor[0][0] == stamp:
            return
        task = self._progress.task(f"{owner}/{name}: citations")
        with self._store.transaction() as tx:
            count = citation_rows.rebuild(tx, repository_id, f"{owner}/{name}", host)
            stamp = "|".join([*git, citation_rows.stamp(tx, repository_id)])
            tx.upsert(Cursor, [_cursor(repository_id, "citations", stamp)])
        work.changed = True
        task.done(f"{count:,} found")

    def _settle_rest(self, repository_id: int) -> None:
        """Give an outcome to pull requests that the git history has not settled."""
        with self._store.transaction() as tx:
            git_rows.settle_without_history(tx, repository_id)

    def _repository(self, spec: RepositorySpec, node_id: str | None) -> int:
        """The row of a repository, made where there is none."""
        with self._naming, self._store.transaction() as tx:
            known_row = self._known_row(tx, spec, node_id)
            repository_id: int = (
                known_row[0] if known_row else max((i for (i,) in tx.rows(Repository, "id")), default=0) + 1
            )
            owner, name = (known_row[1], known_row[2]) if known_row and not node_id else (spec.owner, spec.name)
            row = {
                "id": repository_id,
                "host": spec.host,
                "owner": owner,
                "name": name,
                "location": redact(spec.location),
            }
            tx.upsert(Repository, [{**row, "node_id": node_id} if node_id else row])
            return repository_id

    def _known_row(self, tx: Transaction, spec: RepositorySpec, node_id: str | None) -> Sequence[Any] | None:
        """Id, owner and name of a repository that has a row: by GitHub's id, by name in any case, or by an alias."""
        rows = [row for row in tx.rows(Repository, "id", "owner", "name", "host", "node_id") if row[3] == spec.host]
        by_id = [row for row in rows if node_id and row[4] == node_id]
        by_name = [row for row in rows if f"{row[1]}/{row[2]}".lower() == spec.full_name.lower()]
        aliases = tx.rows(RepositoryAlias, "repository_id", alias=spec.full_name.lower())
        aliased_ids = set() if node_id else {repository_id for (repository_id,) in aliases}
        by_alias = [row for row in rows if row[0] in aliased_ids]
        return next(iter([*by_id, *by_name, *by_alias]), None)

    def _begin(self, spec: RepositorySpec) -> int:
        with self._naming, self._store.transaction() as tx:
            run_id = max((i for (i,) in tx.rows(MineRun, "id")), default=0) + 1
            row = {
                "id": run_id,
                "spec": spec.text,
                "source": self._options.source,
                "started_at": now(),
                "outcome": "running",
                "graphql_requests": 0,
                "rest_requests": 0,
                "points": 0,
                "waited_seconds": 0.0,
            }
            # An earlier run of this line that did not end was killed, or still runs and will store how it ended.
            unfinished = update(MineRun).where(MineRun.spec == spec.text, MineRun.outcome == "running")
            tx.connection.execute(unfinished.values(outcome="interrupted"))
            tx.upsert(MineRun, [row])
        return run_id

    def _note_run(self, run_id: int, repository_id: int) -> None:
        with self._store.transaction() as tx:
            statement = update(MineRun).where(MineRun.id == run_id).values(repository_id=repository_id)
            tx.connection.execute(statement)

    def _finish(self, spec: RepositorySpec, run_id: int, work: _Work) -> RepositoryReport:
        outcome = work.error.name if work.error else MINED if work.changed else UNCHANGED
        reason = redact(str(work.error), self._tokens) if work.error else None
        spent = {
            "graphql_requests": work.usage.graphql_requests,
            "rest_requests": work.usage.rest_requests,
            "points": work.usage.points,
        }
        waited = work.usage.waited_seconds
        pull_requests = landed = 0
        with self._store.transaction() as tx:
            values = {"finished_at": now(), "outcome": outcome, "reason": reason, "waited_seconds": waited, **spent}
            tx.connection.execute(update(MineRun).where(MineRun.id == run_id).values(**values))
            if work.repository_id is not None:
                pull_requests = tx.count(PullRequest, repository_id=work.repository_id)
                landed = tx.count(Landing, repository_id=work.repository_id)
        return RepositoryReport(spec, outcome, reason, pull_requests, landed, **spent)


@dataclass(slots=True)
class _Work:
    """The state of one repository's run."""

    repository_id: int | None = None
    usage: ApiUsage = field(default_factory=ApiUsage)
    changed: bool = False
    error: PrchainError | None = None

    def fail(self, error: PrchainError) -> None:
        """Keep the first failure: it is the one that explains the rest."""
        self.error = self.error or error


def count_stored(store: Store, repository_id: int, repository: GitRepository, task: ProgressTask) -> int:
    """The second pass: line counts of every stored landing that has none yet; returns how many were counted.

    Each batch is a transaction, so a killed pass goes on where it was.
    """
    with store.reading() as tx:
        columns = ("number", "branch", "base_sha", "landed_sha")
        waiting = list(tx.rows(Landing, *columns, repository_id=repository_id, counts="none"))
    task.phase("counting lines", len(waiting))
    for start in range(0, len(waiting), _COUNTED_AT_ONCE):
        batch = waiting[start : start + _COUNTED_AT_ONCE]
        with store.transaction() as tx:
            git_rows.write_counts(tx, repository_id, repository, batch)
        task.advance(len(batch))
    return len(waiting)


def _raise_if_the_database_failed(error: PrchainError) -> None:
    """Then the repository's failure cannot be stored either. A full disk may be that of the mirrors alone."""
    if isinstance(error, StoreError) and not isinstance(error, DiskFull):
        raise error


def _cursor(repository_id: int, stream: str, position: str) -> dict[str, Any]:
    return {"repository_id": repository_id, "stream": stream, "position": position, "complete": True}
