"""Files whose content a mirror lacks: how many of them each landing needs, and how to fetch them.

A partial clone, or a damaged mirror, is mined without them: commits and trees tell where a pull request landed. What
comes later reads files: the reference patch, the tree that a stage starts from, the manifests of its image.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, update

from prchain.core.git import GitRepository, RawChange
from sql.store import Store
from sql.tables import Landing

Pair = tuple[str, str]
"""Base and landed commit."""

_HEADS = "+refs/heads/*:refs/heads/*"
_REMOTE_HEADS = "+refs/heads/*:refs/remotes/{}/*"


@dataclass(frozen=True, slots=True)
class MissingFiles:
    """What a mirror lacks of what the landings need."""

    contents: int
    """Distinct contents of files (blobs)."""
    needed: Mapping[Pair, int]
    """For each landing that was asked about, the files of its base and of its patch that are not there; 0 for most."""


@dataclass(frozen=True, slots=True)
class LackingMirror:
    """What a mirror lacks of what its landings need."""

    contents: int
    """Distinct contents of files."""
    landings: int
    """How many landings need some of them."""
    fetch: str
    """The command that fetches them."""


def missing_files(repository: GitRepository, pairs: Sequence[Pair]) -> MissingFiles:
    """What the repository lacks for these landings.

    On the first-parent line a tree differs from the one before by the commit's changes, so one pass over the changes
    counts for every tree; it is made only where something is missing. Raises `IncompleteRepository` where a commit or
    a tree is.
    """
    missing = repository.missing_blobs(dict.fromkeys(sha for pair in pairs for sha in pair)) if pairs else set()
    if not missing:
        return MissingFiles(0, dict.fromkeys(pairs, 0))
    lacking = _lacking_files(repository, [base for base, _ in pairs], missing)
    patches = repository.changes(pairs)
    needed = {pair: lacking[pair[0]] + _brought(patch, missing) for pair, patch in zip(pairs, patches, strict=True)}
    return MissingFiles(len(missing), needed)


def look(
    store: Store, repository_id: int, repository: GitRepository, url: str | None, pull_heads: str
) -> LackingMirror | None:
    """Store how many files each landing lacks, of those that were not looked at before or that lacked some.

    Returns what the mirror lacks of what they need; None where it lacks nothing. `url` and `pull_heads` are as in
    `refetch_command`.
    """
    found = _stored(store, repository_id)
    missing = missing_files(repository, [pair for *_, pair in found])
    rows = [
        {"key_repository": repository_id, "key_number": number, "key_branch": branch, "files": missing.needed[pair]}
        for number, branch, before, pair in found
        if before != missing.needed[pair]
    ]
    if rows:
        with store.transaction() as tx:
            tx.connection.execute(_UPDATE, rows)
    landings = sum(missing.needed[pair] > 0 for *_, pair in found)
    return LackingMirror(missing.contents, landings, refetch_command(repository, pull_heads, url)) if landings else None


def fetched_since(store: Store, repository_id: int, repository: GitRepository) -> set[int]:
    """The pull requests whose landings lacked files that have come since."""
    lacked = [row for row in _stored(store, repository_id) if row[2]]
    needed = missing_files(repository, [pair for *_, pair in lacked]).needed
    return {number for number, _, _, pair in lacked if not needed[pair]}


def _stored(store: Store, repository_id: int) -> list[tuple[int, str, int | None, Pair]]:
    """Number, branch, missing files, and commits of the landings that are not known to be whole."""
    columns = ("number", "branch", "missing_files", "base_sha", "landed_sha")
    with store.reading() as tx:
        rows = tx.rows(Landing, *columns, repository_id=repository_id)
        return [(n, branch, count, (base, sha)) for n, branch, count, base, sha in rows if count != 0]


_UPDATE = (
    update(Landing)
    .where(
        Landing.repository_id == bindparam("key_repository"),
        Landing.number == bindparam("key_number"),
        Landing.branch == bindparam("key_branch"),
    )
    .values(missing_files=bindparam("files"))
)


def _lacking_files(repository: GitRepository, commits: Collection[str], missing: Collection[str]) -> dict[str, int]:
    """For each commit and its first-parent ancestors, how many files of its tree are missing."""
    parents = {sha: parents[0] if parents else None for sha, *parents in repository.parents(dict.fromkeys(commits))}
    steps: list[Pair] = []
    lacking: dict[str, int] = {}
    seen: set[str] = set()
    for commit in commits:
        line: list[Pair] = []
        tip = commit
        while tip not in seen:
            seen.add(tip)
            parent = parents[tip]
            if parent is None:
                lacking[tip] = sum(blob in missing for blob in repository.blobs_at(tip).values())
                break
            line.append((parent, tip))
            tip = parent
        steps.extend(reversed(line))
    for (parent, commit), changes in zip(steps, repository.changes(steps), strict=True):
        taken = sum(change.old_blob in missing for change in changes)
        lacking[commit] = lacking[parent] + _brought(changes, missing) - taken
    return lacking


def _brought(changes: Iterable[RawChange], missing: Collection[str]) -> int:
    return sum(change.new_blob in missing for change in changes)


def refetch_command(repository: GitRepository, pull_heads: str, url: str | None = None) -> str:
    """The command that fetches everything anew into the repository, from `url` or from its own remote.

    `pull_heads` is the pattern of the refs of pull heads.

    `--refetch` asks for what git believes to have, and `--no-filter` outranks a partial clone's own filter.
    """
    remotes = repository.run("remote", named=True).split()
    remote = url or next(iter(["origin"] if "origin" in remotes else remotes), None)
    is_bare = repository.run("rev-parse", "--is-bare-repository", named=True).strip() == "true"
    heads = _HEADS if is_bare or url or remote is None else _REMOTE_HEADS.format(remote)
    command = ["git", "-C", str(repository.path), "fetch", "--refetch", "--no-filter", remote or "URL"]
    return shlex.join([*command, heads, f"+{pull_heads}:{pull_heads}"])
