"""Reading one repository's git history into the rows of its pull requests, where it has changed since."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from sqlalchemy import update

from miner import git_rows, missing
from miner.git_facts import ApiKnowledge, Refs, read
from miner.git_rows import ApiState, PullRequestSelection
from prchain.core.console.progress import ProgressTask
from prchain.core.git import GitRepository
from prchain.core.secrets.scrub import Counts
from sql.outcomes import UNCHANGED
from sql.store import Store
from sql.tables import Cursor, Landing, PullRequest, Repository

GIT_RULES = "2"
"""Raise it when what is read of git has other rules: stored landings and commits are then written anew."""

_COUNTED_AT_ONCE = 500


class GitReading:
    """One read of one repository's history; `changed` tells whether it wrote any rows."""

    def __init__(
        self, store: Store, repository_id: int, repository: GitRepository, forge: str, task: ProgressTask
    ) -> None:
        """`forge` is the title of the forge, for the reasons of outcomes."""
        self.changed = False
        self._store = store
        self._repository_id = repository_id
        self._repository = repository
        self._forge = forge
        self._task = task

    def write_history(self, refs: Refs, selection: PullRequestSelection, replaced: Counts) -> str:
        """Store where pull requests landed; returns what was found, in words.

        Secrets that were replaced in commits are added to `replaced`.
        """
        number, repository = self._repository_id, self._repository
        # What was missing and was fetched since is read anew: renames show only where the files are there.
        anew = missing.fetched_since(self._store, number, repository)
        api = self._api_states()
        stamp = _stamp(refs.fingerprint, selection, api)
        with self._store.reading() as tx:
            cursor = list(tx.rows(Cursor, "position", repository_id=number, stream="git"))
            is_current = bool(cursor) and cursor[0][0] == stamp and not git_rows.awaits_history(tx, number)
        if is_current and not anew:
            return UNCHANGED
        merges = {pull: state.merge_sha for pull, state in api.items() if state.merge_sha}
        facts = read(repository, refs, ApiKnowledge(merges), self._task.phase)
        self._task.phase("writing")
        same_rules = bool(cursor) and cursor[0][0].split("|", 1)[0] == GIT_RULES
        with self._store.transaction() as tx:
            git_rows.write(
                tx,
                number,
                repository,
                facts,
                selection,
                api,
                forge=self._forge,
                same_rules=same_rules,
                anew=anew,
                replaced=replaced,
            )
            position = {"repository_id": number, "stream": "git", "position": stamp, "complete": True}
            tx.upsert(Cursor, [position])
            statement = update(Repository).where(Repository.id == number)
            tx.connection.execute(statement.values(default_branch=refs.default_branch))
        self.changed = True
        return f"{len(refs.heads):,} pull heads, {len(facts.decisions.landed):,} landed"

    def count_lines(self) -> None:
        """The second pass: line counts of every stored landing that has none yet.

        Each batch is a transaction, so a killed pass goes on where it was.
        """
        with self._store.reading() as tx:
            columns = ("number", "branch", "base_sha", "landed_sha")
            waiting = list(tx.rows(Landing, *columns, repository_id=self._repository_id, counts="none"))
        self._task.phase("counting lines", len(waiting))
        for start in range(0, len(waiting), _COUNTED_AT_ONCE):
            batch = waiting[start : start + _COUNTED_AT_ONCE]
            with self._store.transaction() as tx:
                git_rows.write_counts(tx, self._repository_id, self._repository, batch)
            self._task.advance(len(batch))
            self.changed = True

    def _api_states(self) -> dict[int, ApiState]:
        with self._store.reading() as tx:
            columns = ("number", "node_id", "state", "merge_sha", "gone_at", "reason")
            return {
                number: ApiState(state, merge_sha, gone_at, None if state else reason)
                for number, node_id, state, merge_sha, gone_at, reason in tx.rows(
                    PullRequest, *columns, repository_id=self._repository_id
                )
                if node_id is not None
            }


def _stamp(fingerprint: str, selection: PullRequestSelection, api: Mapping[int, ApiState]) -> str:
    digest = sha256()
    for number, state in sorted(api.items()):
        digest.update(f"{number} {state.state} {state.merge_sha} {state.gone_at}\n".encode())
    return "|".join([GIT_RULES, fingerprint, selection.text(), digest.hexdigest()])
