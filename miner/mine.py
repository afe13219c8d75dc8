"""Mining repositories: sources -> rows -> citations, each step a transaction that a killed run need not repeat."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from miner import citation_rows, git_rows, missing, names, run_rows
from miner.git_alone import GitAlone
from miner.git_facts import read_refs
from miner.git_reading import GitReading
from miner.git_rows import WHOLE, PullRequestSelection
from miner.missing import LackingMirror
from miner.repositories import RepositorySpec
from miner.source import ApiUsage, Forge, Source, Wanted
from miner.sources import AUTO, GIT, SOURCES
from miner.sources.github import forge_at
from prchain.core.console.progress import SILENT, Progress
from prchain.core.errors import BadAnswer, DiskFull, ForgeError, PrchainError, RepositoryNotFound, StoreError
from prchain.core.git import GitRepository, mirror_path, update_mirror
from prchain.core.runs import RunResult, Tell, UnitResult, run_units
from prchain.core.secrets.scrub import Counts, redact
from prchain.core.settings import Settings
from sql.lock import exclusive_lock
from sql.outcomes import MINED, UNCHANGED
from sql.repositories import new_repository
from sql.store import Store
from sql.tables import Cursor, IncompletePart, Landing, PullRequest, Repository


@dataclass(frozen=True, slots=True)
class MineOptions:
    """What a run of `prchain mine` was asked to do."""

    source: str = AUTO
    """``git``: git alone; a source's name: that one and git; ``auto``: for each repository the source of its host."""
    selection: PullRequestSelection = WHOLE
    rescan: bool = False
    from_archive: bool = False
    line_counts: bool = False
    recheck_days: int | None = None
    """What was updated within so many days is read again; None: 30 days, once a day."""


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
    incomplete: int = 0
    """Stored pull requests that lack something their forge counts and does not give, of this run and earlier ones."""
    note: str | None = None
    """What the user should know of the repository's name."""
    missing: LackingMirror | None = None
    replaced: Mapping[str, int] = field(default_factory=dict)
    """How many secrets of each kind were replaced in the texts that were read."""


@contextmanager
def open_run(settings: Settings, options: MineOptions, *, progress: Progress = SILENT) -> Iterator[Miner]:
    """What a run, or a worker of one, needs: the database, which is made where there is none, and the sources.
    Raises `StoreError`."""
    with closing(Store.open(settings.db)) as store:
        sources: list[Source[Any]] = []
        for name, kind in SOURCES.items():
            may_ask = options.source in (AUTO, name) and not options.from_archive
            if may_ask and kind.lacks(settings) is None:
                sources.append(kind.source(settings, store, progress))
            else:
                sources.append(GitAlone(kind.forge(settings), kind, store))
        yield Miner(
            store,
            options,
            mirrors=settings.mirrors_dir,
            progress=progress,
            sources=sources,
            secrets=settings.secrets,
        )


class Miner:
    """One run of `prchain mine` (`prchain.core.runs.Work`); its threads mine one repository each."""

    title = "repositories"

    def __init__(
        self,
        store: Store,
        options: MineOptions,
        *,
        mirrors: Path,
        progress: Progress = SILENT,
        sources: Sequence[Source[Any]] = (),
        secrets: tuple[str, ...] = (),
    ) -> None:
        """A repository at a host of none of the sources is read by git, and named as GitHub names things."""
        self._store = store
        self._mirrors = mirrors
        self._progress = progress
        self._options = options
        self._sources = sources
        self._secrets = secrets
        self._naming = threading.Lock()

    def run(self, specs: Sequence[RepositorySpec], workers: int = 2) -> RunResult[RepositorySpec]:
        """Mine the repositories; `detail` of each result is a `RepositoryReport`. Raises as `run_units`."""
        return run_units(self, specs, workers=workers, progress=self._progress, secrets=self._secrets)

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
            cost = run_rows.end_running(tx, unit.text, outcome, reason)
        return UnitResult(unit, outcome, reason, RepositoryReport(unit, outcome, reason, **cost))

    def spent(self) -> None:
        """See `Work`: nothing."""
        return None

    def mine(self, spec: RepositorySpec) -> RepositoryReport:
        """Mine one repository as far as it goes; a failure with a name is reported, and what was committed stays."""
        run_id = self._begin(spec)
        work = _Work(self._source(spec))
        try:
            self._mine(spec, run_id, work)
        except PrchainError as error:
            _raise_if_the_database_failed(error)
            work.fail(error)
        except BaseException as error:  # a defect of ours, or Ctrl-C: it goes on, and what was paid is known
            self._note_cost(run_id, work)
            if not isinstance(error, Exception):
                self._end_interrupted(run_id)
            raise
        if work.repository_id is not None and work.error is not None:
            try:
                # What was read before the failure is worth its outcomes and its citations.
                if not work.git_read:
                    self._settle_rest(work.repository_id, work)
                self._cite(work.repository_id, work)
            except PrchainError as error:
                _raise_if_the_database_failed(error)
                work.fail(error)
        return self._finish(spec, run_id, work)

    def _mine(self, spec: RepositorySpec, run_id: int, work: _Work) -> None:
        if self._options.from_archive:
            self._replay(spec, run_id, work)
            return
        if self._options.source not in (AUTO, GIT) and isinstance(work.source, GitAlone):
            asked = next(source.forge.host for source in self._sources if not isinstance(source, GitAlone))
            raise RepositoryNotFound(f"{spec.full_name} is on {spec.host}, and the API is {asked}'s")
        try:
            self._ask(spec, run_id, work)
        except ForgeError as error:
            # The history is worth having without the API, and the API's failure is still reported.
            work.fail(error)
        if work.repository_id is None:
            with self._store.reading() as tx:
                known_row = names.find(tx, spec.host, spec.full_name)
            if known_row is not None:
                work.repository_id = known_row[0]
                self._note_run(run_id, known_row[0])
            elif work.error is not None and not spec.is_path:
                return
        with ThreadPoolExecutor(1, "missing") as threads:
            looking = self._read_git(spec, run_id, work, threads)
            if work.repository_id is not None:
                self._cite(work.repository_id, work)
            work.missing = looking.result()

    def _source(self, spec: RepositorySpec) -> Source[Any]:
        """The source of the repository's host."""
        found = next((source for source in self._sources if source.forge.host == spec.host), None)
        return found or GitAlone(forge_at(spec.host), SOURCES["github"], self._store)

    def _ask(self, spec: RepositorySpec, run_id: int, work: _Work) -> None:
        """Read what the repository's source knows beside git, if anything."""
        resolved = None
        if self._options.source != GIT:
            resolved = work.source.resolve(spec.owner, spec.name, spent=work.usage)
        if resolved is None:
            return
        spec = replace(spec, owner=resolved.owner, name=resolved.name)
        self._make_room(spec, resolved.node_id, work)
        work.repository_id = self._repository(spec, resolved.node_id)
        self._note_run(run_id, work.repository_id)
        options, selection = self._options, self._options.selection
        wanted = Wanted(selection.since, selection.limit, options.rescan, options.recheck_days)
        result = work.source.read(work.repository_id, resolved, wanted, replaced=work.replaced, spent=work.usage)
        work.changed = work.changed or result.changed
        for failure in result.failures:
            work.fail(BadAnswer(failure))

    def _make_room(self, spec: RepositorySpec, node_id: str, work: _Work) -> None:
        """Where the name belonged to another repository, that one keeps its rows and its mirror under another name:
        the one that the forge has for it now, else one of ours."""
        with self._store.reading() as tx:
            held = names.holder(tx, spec.host, spec.full_name)
            known = names.find(tx, spec.host, spec.full_name, node_id)
            old = names.full_name(tx, held[0]) if held is not None else ""
        if held is None or (known is not None and known[0] == held[0]):
            return
        other_id, other_node = held
        now_called = work.source.name_of(other_node, spent=work.usage) if other_node else None
        new = now_called or names.former(old, other_id)
        names.move_mirror(self._mirrors, spec.host, old, new)
        with self._naming, self._store.transaction() as tx:
            names.rename(tx, other_id, new)
        work.changed = True
        where = (
            "is called so now"
            if now_called
            else f"is no longer on {work.source.forge.title}, as far as this token sees"
        )
        work.note = f"another repository has the name {old} now; what was mined before is kept as {new}, which {where}"

    def _replay(self, spec: RepositorySpec, run_id: int, work: _Work) -> None:
        with self._store.reading() as tx:
            known_row = names.find(tx, spec.host, spec.full_name)
        if known_row is None:
            raise RepositoryNotFound(
                f"{spec.full_name} has not been mined into this database; there is no archive of it"
            )
        work.repository_id = known_row[0]
        self._note_run(run_id, work.repository_id)
        result = work.source.replay(work.repository_id)
        work.changed = work.changed or result.changed
        self._settle_rest(work.repository_id, work)
        self._cite(work.repository_id, work)

    def _read_git(
        self, spec: RepositorySpec, run_id: int, work: _Work, threads: ThreadPoolExecutor
    ) -> Future[LackingMirror | None]:
        """Store the history; what the mirror lacks is looked for from then on, by git on another core."""
        task = self._progress.task(f"{spec.full_name}: git history")
        try:
            task.phase("fetching")
            forge = work.source.forge
            repository = self._open(spec, work.repository_id, forge)
            refs = read_refs(repository, forge.pull_heads)
            if work.repository_id is None:
                work.repository_id = self._repository(spec, None)
                self._note_run(run_id, work.repository_id)
            reading = GitReading(self._store, work.repository_id, repository, forge.title, task)
            found = reading.write_history(refs, self._options.selection, work.replaced)
            work.git_read = True
            work.changed = work.changed or reading.changed
            url = None if spec.is_path else redact(spec.location)
            looking = threads.submit(missing.look, self._store, work.repository_id, repository, url, forge.pull_heads)
            if self._options.line_counts:
                reading.count_lines()
                work.changed = work.changed or reading.changed
            task.done(found)
        except PrchainError:
            task.done("failed")
            raise
        return looking

    def _open(self, spec: RepositorySpec, repository_id: int | None, forge: Forge) -> GitRepository:
        if spec.is_path:
            return GitRepository.open(Path(spec.location))
        full_name = spec.full_name
        if repository_id is not None:
            with self._store.reading() as tx:
                full_name = names.full_name(tx, repository_id)
            names.move_mirror(self._mirrors, spec.host, spec.full_name, full_name)
        path = mirror_path(self._mirrors, spec.host, full_name)
        return update_mirror(spec.location, path, refs=[forge.pull_heads], credentials=forge.credentials)

    def _cite(self, repository_id: int, work: _Work) -> None:
        with self._store.reading() as tx:
            [(owner, name)] = tx.rows(Repository, "owner", "name", id=repository_id)
            git = [position for (position,) in tx.rows(Cursor, "position", repository_id=repository_id, stream="git")]
            stamp = "|".join([*git, citation_rows.stamp(tx, repository_id)])
            cursor = list(tx.rows(Cursor, "position", repository_id=repository_id, stream="citations"))
        if cursor and cursor[0][0] == stamp:
            return
        task = self._progress.task(f"{owner}/{name}: citations")
        with self._store.transaction() as tx:
            count = citation_rows.rebuild(tx, repository_id, f"{owner}/{name}", work.source.forge)
            stamp = "|".join([*git, citation_rows.stamp(tx, repository_id)])
            tx.upsert(Cursor, [_cursor(repository_id, "citations", stamp)])
        work.changed = True
        task.done(f"{count:,} found")

    def _settle_rest(self, repository_id: int, work: _Work) -> None:
        """Give an outcome to pull requests that no git history has settled."""
        with self._store.transaction() as tx:
            git_rows.settle_without_history(tx, repository_id, work.source.forge.title)

    def _repository(self, spec: RepositorySpec, node_id: str | None) -> int:
        """The row of a repository, made where there is none."""
        with self._naming, self._store.transaction() as tx:
            known_row = names.find(tx, spec.host, spec.full_name, node_id)
            location = redact(spec.location)
            if known_row is None:
                new_id = new_repository(tx, spec.host, spec.owner, spec.name, location)
                known_row = (new_id, spec.owner, spec.name)
            repository_id, owner, name = known_row
            row = {"id": repository_id, "host": spec.host, "owner": owner, "name": name, "location": location}
            tx.upsert(Repository, [{**row, "node_id": node_id} if node_id else row])
            return repository_id

    def _begin(self, spec: RepositorySpec) -> int:
        with self._naming, self._store.transaction() as tx:
            return run_rows.begin(tx, spec.text, self._options.source)

    def _note_run(self, run_id: int, repository_id: int) -> None:
        with self._store.transaction() as tx:
            run_rows.note_repository(tx, run_id, repository_id)

    def _note_cost(self, run_id: int, work: _Work) -> None:
        with self._store.transaction() as tx:
            run_rows.note_cost(tx, run_id, work.usage, work.replaced)

    def _end_interrupted(self, run_id: int) -> None:
        with self._store.transaction() as tx:
            run_rows.end(tx, run_id, "interrupted", None)

    def _finish(self, spec: RepositorySpec, run_id: int, work: _Work) -> RepositoryReport:
        outcome = work.error.name if work.error else MINED if work.changed else UNCHANGED
        reason = redact(str(work.error), self._secrets) if work.error else None
        pull_requests = landed = incomplete = 0
        with self._store.transaction() as tx:
            run_rows.note_cost(tx, run_id, work.usage, work.replaced)
            run_rows.end(tx, run_id, outcome, reason)
            if work.repository_id is not None:
                pull_requests = tx.count(PullRequest, repository_id=work.repository_id)
                landed = tx.count(Landing, repository_id=work.repository_id)
                incomplete = len(set(tx.rows(IncompletePart, "number", repository_id=work.repository_id)))
        return RepositoryReport(
            spec,
            outcome,
            reason,
            pull_requests,
            landed,
            **{name: getattr(work.usage, name) for name in run_rows.COSTS},
            incomplete=incomplete,
            note=work.note,
            missing=work.missing,
            replaced=dict(sorted(work.replaced.items())),
        )


@dataclass(slots=True)
class _Work:
    """The state of one repository's run."""

    source: Source[Any]
    repository_id: int | None = None
    usage: ApiUsage = field(default_factory=ApiUsage)
    replaced: Counts = field(default_factory=Counter)
    """Secrets in the texts that were read."""
    changed: bool = False
    git_read: bool = False
    missing: LackingMirror | None = None
    error: PrchainError | None = None
    note: str | None = None

    def fail(self, error: PrchainError) -> None:
        """Keep the first failure: it is the one that explains the rest."""
        self.error = self.error or error


def _raise_if_the_database_failed(error: PrchainError) -> None:
    """Then the repository's failure cannot be stored either. A full disk may be that of the mirrors alone."""
    if isinstance(error, StoreError) and not isinstance(error, DiskFull):
        raise error


def _cursor(repository_id: int, stream: str, position: str) -> dict[str, Any]:
    return {"repository_id": repository_id, "stream": stream, "position": position, "complete": True}
