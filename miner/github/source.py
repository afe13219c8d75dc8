"""GitHub's API as a source of pull requests: resolve a repository, read it, and parse it again from the archive."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from miner import archive, names
from miner.github import pages, queries, rows, vanished
from miner.github.budget import Budget, Clock, Sleep
from miner.github.by_id import ById
from miner.github.changes import Changes
from miner.github.client import GitHubClient
from miner.github.faults import Malformed, Overloaded
from miner.github.overflow import Overflow
from miner.github.reading import MAX_MALFORMED, MAX_STUMBLES, ReadSummary, RepositoryReading, ResolvedRepository
from miner.github.recheck import Recheck
from miner.github.review_comments import ReviewComments
from miner.github.rows import Window
from miner.github.skips import Skips
from miner.github.sweep import Sweep
from miner.github.threads import ReviewThreads, find_links, write_links, write_starts
from miner.github.vanished import VanishedComments
from miner.source import EVERYTHING, ApiUsage, Forge, Wanted
from prchain.core.console.progress import Progress, ProgressTask
from prchain.core.errors import BadAnswer, BadToken, RepositoryNotFound
from prchain.core.secrets.scrub import Counts, redact
from sql.store import Store, Transaction
from sql.tables import PullRequest, RepositoryAlias


class GitHubSource:
    """Reads repositories through GitHub's API; a `miner.source.Source`.

    `api_url` is GitHub's REST address (``https://api.github.com``, or ``https://host/api/v3`` of GitHub Enterprise).
    `max_wait` is the longest single wait for a rate limit and `timeout` that for one answer, in seconds.
    """

    def __init__(
        self,
        store: Store,
        *,
        forge: Forge,
        tokens: Sequence[str],
        api_url: str,
        max_wait: float,
        timeout: float,
        progress: Progress,
        clock: Clock | None = None,
        sleep: Sleep | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if not tokens:
            raise BadToken("the github source needs a token; set GITHUB_TOKEN")
        self.forge = forge
        self._store = store
        self._api_url = api_url
        self._timeout = timeout
        self._progress = progress
        self._clock = clock or time.time
        self._jitter = jitter
        self._budget = Budget(
            tokens, max_wait=max_wait, clock=self._clock, sleep=sleep or time.sleep, jitter=self._jitter
        )
        self._usage = ApiUsage()
        self._lock = threading.Lock()

    def resolve(self, owner: str, name: str, *, spent: ApiUsage | None = None) -> ResolvedRepository:
        """Return the repository under its canonical name; renames are followed.

        What it costs is added to `spent`, also where it raises `RepositoryNotFound`, `BadToken`, `NetworkUnreachable`,
        `RateLimitExceeded` or `BadAnswer`.
        """
        usage = ApiUsage()
        try:
            with self._client(usage) as client:
                data = self._resolve(client, owner, name)
        finally:
            self._spend(usage, spent)
        repository = data["repository"]
        canonical_owner, _, canonical_name = repository["nameWithOwner"].partition("/")
        newest = repository["pullRequests"]["nodes"]
        return ResolvedRepository(
            node_id=repository["id"],
            owner=canonical_owner,
            name=canonical_name,
            default_branch=(repository["defaultBranchRef"] or {}).get("name"),
            clone_url=f"{_web_address(self._api_url)}/{repository['nameWithOwner']}.git",
            is_fork=repository["isFork"],
            requested_name=f"{owner}/{name}",
            pull_requests=repository["pullRequests"]["totalCount"],
            newest_update=pages.utc(newest[0]["updatedAt"]) if newest else None,
            usage=usage,
        )

    def name_of(self, node_id: str, *, spent: ApiUsage | None = None) -> str | None:
        """Return what the repository of this node id is called now; None where GitHub has, or shows, none such."""
        usage = ApiUsage()
        try:
            with self._client(usage, None) as client:
                home = client.graphql(queries.load("home"), {"id": node_id}).data["node"]
        except RepositoryNotFound:
            return None
        except Overloaded as fault:
            raise BadAnswer(f"GitHub gave no usable answer when asked for a repository's name: {fault}") from None
        finally:
            self._spend(usage, spent)
        return str(home["nameWithOwner"]) if home else None

    def read(
        self,
        repository_id: int,
        resolved: ResolvedRepository,
        wanted: Wanted = EVERYTHING,
        *,
        replaced: Counts | None = None,
        spent: ApiUsage | None = None,
    ) -> ReadSummary:
        """See `miner.source.Source.read`.

        The first time everything is read, later what changed, and what `Recheck.run` says.
        """
        usage = ApiUsage()
        tasks = _Tasks(self._progress, resolved.full_name)
        try:
            with self._client(usage, tasks, replaced) as client:
                reading = RepositoryReading(self._store, client, repository_id, resolved, tasks.start, self._clock)
                self._settle_names(reading)
                if wanted.since or wanted.limit:
                    total, unaccounted = self._read_some(reading, wanted)
                else:
                    total, unaccounted = self._read_all(reading, wanted)
        finally:
            tasks.close()
            self._spend(usage, spent)
        missing = tuple(sorted(reading.missing))
        return ReadSummary(
            reading.changed,
            len(reading.written),
            usage,
            total,
            missing,
            unaccounted,
            missing_reasons=tuple(reading.missing[number] for number in missing),
            malformed=tuple(dict.fromkeys(reading.malformed)),
        )

    def replay(self, repository_id: int) -> ReadSummary:
        """See `replay`."""
        return replay(self._store, repository_id)

    def usage(self) -> ApiUsage:
        """What this instance has spent so far; reads under way count when they end."""
        with self._lock:
            total = ApiUsage()
            total.add(self._usage)
            return total

    def _read_all(self, reading: RepositoryReading, wanted: Wanted) -> tuple[int, int]:
        overflow, skips = Overflow(reading), Skips(reading)
        by_id = ById(reading, overflow, skips)
        changes, recheck = Changes(reading, by_id, skips), Recheck(reading, by_id, bounded=False)
        sweep = Sweep(reading, overflow, skips)
        if not sweep.has_begun or (wanted.rescan and sweep.finished):
            sweep.begin()
        sweep.run()
        changes.catch_up()
        if sweep.finished:
            recheck.run(wanted.recheck_days)
        unaccounted = changes.check(thoroughly=sweep.is_rescan and not sweep.finished)
        overflow.drain(wholly=True)
        VanishedComments(reading).run()
        comments = ReviewComments(reading, bounded=False)
        comments.run()
        name = reading.repository.full_name
        if comments.came and reading.follow() and self._is_taken(reading, name):
            # What came under the name since it was taken is another repository's: a second look sorts it out.
            comments.begin_anew()
            comments.run()
        if comments.strangers:
            changes.catch_up()
            overflow.drain(wholly=True)
        ReviewThreads(reading).run()
        if not sweep.finished:
            with self._store.transaction() as tx:
                recheck.all_read(tx)
                sweep.finish(tx)
        return changes.total, unaccounted

    def _read_some(self, reading: RepositoryReading, wanted: Wanted) -> tuple[int, int]:
        overflow, skips = Overflow(reading), Skips(reading)
        by_id = ById(reading, overflow, skips)
        changes = Changes(reading, by_id, skips)
        chosen = changes.bounded(pages.utc(wanted.since), wanted.limit)
        Recheck(reading, by_id, bounded=True).run(wanted.recheck_days, chosen)
        overflow.drain(wholly=True)
        VanishedComments(reading).run()
        if changes.total:
            ReviewComments(reading, bounded=True).run()
            ReviewThreads(reading).run()
        return changes.total, 0

    def _resolve(self, client: GitHubClient, owner: str, name: str) -> dict[str, archive.Json]:
        for attempt in range(MAX_STUMBLES):
            try:
                data = client.graphql(queries.load("resolve"), {"owner": owner, "name": name}).data
            except Overloaded as fault:
                if isinstance(fault, Malformed) and attempt + 1 >= MAX_MALFORMED:
                    raise BadAnswer(f"GitHub was asked for the repository's name: {fault}") from None
                client.pause(attempt)
                continue
            except RepositoryNotFound:
                full_name = redact(f"{owner}/{name}", tuple(token.value for token in self._budget.tokens))
                raise RepositoryNotFound(
                    f"{full_name} is unknown to GitHub, or private for this token; check the name and the token"
                ) from None
            if data.get("repository") is not None:
                return data
            client.pause(attempt)
        raise BadAnswer("GitHub gave no usable answer when asked for the repository's name; run again later")

    def _is_taken(self, reading: RepositoryReading, name: str) -> bool:
        """Whether a name that the repository has lost is another's now; while it is not, GitHub redirects."""
        owner, _, own_name = name.partition("/")
        try:
            data = self._resolve(reading.client, owner, own_name)
        except RepositoryNotFound:
            return False
        return bool(data["repository"]["id"] != reading.repository.node_id)

    def _settle_names(self, reading: RepositoryReading) -> None:
        """Let the rows have the name that GitHub has, and keep the name asked for and the name stored as aliases."""
        number, now, asked = reading.repository_id, reading.repository.full_name, reading.repository.requested_name
        with self._store.reading() as tx:
            stored = names.full_name(tx, number)
            known = {now.lower(), *(alias for (alias,) in tx.rows(RepositoryAlias, "alias", repository_id=number))}
        if stored != now or asked.lower() not in known:
            with self._store.transaction() as tx:
                names.rename(tx, number, now)
                names.add_alias(tx, number, asked)

    def _client(self, usage: ApiUsage, tasks: _Tasks | None = None, replaced: Counts | None = None) -> GitHubClient:
        return GitHubClient(
            self._budget,
            api_url=self._api_url,
            timeout=self._timeout,
            usage=usage,
            show_wait=tasks.show_wait if tasks else lambda seconds, reason: None,
            jitter=self._jitter,
            replaced=replaced,
        )

    def _spend(self, usage: ApiUsage, spent: ApiUsage | None) -> None:
        with self._lock:
            self._usage.add(usage)
        if spent is not None:
            spent.add(usage)


class _Tasks:
    """The progress of one read: one task at a time, which also shows the waits."""

    def __init__(self, progress: Progress, repository: str) -> None:
        self._progress = progress
        self._repository = repository
        self._current: ProgressTask | None = None

    def start(self, title: str, total: int | None) -> ProgressTask:
        self._current = self._progress.task(f"{self._repository}: {title}", total)
        return self._current

    def show_wait(self, seconds: float, reason: str) -> None:
        if self._current is not None:
            self._current.update(note=f"{reason}: waiting {seconds:.0f} s" if reason else "")

    def close(self) -> None:
        if self._current is not None:
            self._current.done("ended early")  # unless it has said how it ended
        self._current = None


def replay(store: Store, repository_id: int) -> ReadSummary:
    """Parse the archived pages of a repository again, without the network, into the same rows.

    All of it is one transaction: a failure leaves the rows as they were.
    """
    numbers: set[int] = set()
    with store.transaction() as tx:
        rows.forget(tx, repository_id)
        name_then: str | None = None
        for page in archive.stored_pages(tx, repository_id):
            name: str | None = page.request.get("repository", name_then)
            if name is not None and name_then is not None and name != name_then:
                names.rewrite(tx, repository_id, name_then, name)
            name_then = name
            numbers.update(_apply(tx, repository_id, page))
        if name_then is not None:
            names.rewrite(tx, repository_id, name_then, names.full_name(tx, repository_id))
        write_links(tx, repository_id, find_links(tx, repository_id)[0])
        total = len(rows.present(tx, repository_id))
    return ReadSummary(bool(numbers), len(numbers), ApiUsage(), total)


def _apply(tx: Transaction, repository_id: int, page: archive.Page) -> set[int]:
    request = page.request
    if page.stream.startswith("review_comments"):
        window = Window(*request["window"]) if "window" in request else None
        rows.write_review_comments(tx, repository_id, page.answer, window, bounded=request["bounded"])
    elif page.stream == vanished.STREAM:
        rows.keep_review_comments(tx, repository_id, request["number"], page.answer)
    elif page.stream == "skipped":
        rows.mark_skipped(tx, repository_id, request["number"], request["node_id"], request["reason"])
    elif page.stream == "thread_starts":
        write_starts(tx, repository_id, page)
    elif page.stream == "gone":
        rows.mark_gone(tx, repository_id, request["gone"], request["at"])
    else:
        page_rows = rows.parse(repository_id, page)
        rows.write(tx, repository_id, page_rows, replace=not page.stream.startswith("more:"))
        rows.mark_gone(tx, repository_id, request.get("gone", ()), request.get("at", ""))
        return {row["number"] for row in page_rows.of(PullRequest)}
    return set()


def _web_address(api_url: str) -> str:
    """The address under which repositories are cloned, from that of the API."""
    parts = urlsplit(api_url)
    host = "github.com" if parts.netloc == "api.github.com" else parts.netloc
    return f"{parts.scheme}://{host}"
