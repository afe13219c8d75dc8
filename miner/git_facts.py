"""What a git repository with the heads of pull requests tells of them, without token or API.

A handful of streaming git processes a repository: one log, and diff-tree processes that answer thousands of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain

from miner.branches import UnlandedEvidence, may_hold_landings, other_branches
from miner.history import FirstParentLine, History, branch_line, default_line
from miner.landing import (
    LandingCandidate,
    LandingDecisions,
    claimed,
    judge_patch,
    settle,
    unlanded_commits,
)
from miner.nested import nested
from miner.unclaimed import unclaimed
from prchain.core.errors import IncompleteRepository, NoPullRefs
from prchain.core.git import GitRepository, LineCount, RawChange

OWN_COMMITS_STORED = 1000
"""GitHub shows 250 commits of a pull request; a head with more than this brings another history along."""

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Refs:
    """The refs that a run reads, all taken at one moment."""

    default_branch: str
    branches: Mapping[str, str]
    heads: Mapping[int, str]

    @property
    def fingerprint(self) -> str:
        """Changes when, and only when, some ref does."""
        lines = [f"{self.default_branch}\n", *(f"{n} {s}\n" for n, s in sorted(self.branches.items()))]
        lines += [f"{n} {s}\n" for n, s in sorted(self.heads.items())]
        return sha256("".join(lines).encode()).hexdigest()


def read_refs(repository: GitRepository, pull_heads: str) -> Refs:
    """Branches, and pull heads at the refs of a pattern with ``*`` for the number.

    Raises `NoPullRefs` where there are no pull heads, and `IncompleteRepository` where there is no branch.
    """
    branches = {name.removeprefix("refs/heads/"): sha for name, sha in repository.refs("refs/heads").items()}
    before, _, after = pull_heads.partition("*")
    heads = {}
    for name, sha in repository.refs(before.rstrip("/")).items():
        number = name.removeprefix(before).removesuffix(after)
        if name == f"{before}{number}{after}" and number.isascii() and number.isdigit():
            heads[int(number)] = sha
    if not branches:
        raise IncompleteRepository(f"{repository.path} has no branches")
    if not heads:
        raise NoPullRefs(
            f"{repository.path} has no {pull_heads}; fetch them there: git fetch origin '+{pull_heads}:{pull_heads}'"
        )
    default = repository.default_branch()
    if default not in branches:
        default = next((name for name in ("main", "master") if name in branches), sorted(branches)[0])
    assert default is not None
    return Refs(default, branches, heads)


@dataclass(frozen=True, slots=True)
class ApiKnowledge:
    """What the forge says of landings, to be borne out by the history: merge commit by number."""

    merges: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class GitFacts:
    """Everything the history says of the pull requests."""

    refs: Refs
    history: History
    decisions: LandingDecisions
    own: dict[int, Sequence[int]]
    """Number to own commits, oldest first."""
    patches: dict[int, list[RawChange]]
    """Number to the patch of its landing without renames, where a claim had to be borne out by it."""

    def files(
        self, repository: GitRepository, numbers: Iterable[int]
    ) -> Generator[tuple[int, list[RawChange]], None, None]:
        """For each landed number, the files of its reference patch with renames; in no particular order.

        Renames need blobs, so only patches that both add and delete are asked again, and only where all their blobs
        are there: real mirrors lack a few.
        """
        shas = self.history.shas
        rename_suspects: list[tuple[LandingCandidate, list[RawChange]]] = []
        for candidate, changes in self._plain_patches(repository, numbers):
            if {"A", "D"} <= {change.status for change in changes}:
                rename_suspects.append((candidate, changes))
            else:
                yield candidate.number, changes
        if not rename_suspects:
            return
        blobs = {
            blob
            for _, changes in rename_suspects
            for change in changes
            if change.status in "AD"
            for blob in (change.old_blob if change.status == "D" else change.new_blob,)
            if not _is_submodule(change)
        }
        missing = blobs if repository.is_partial() else repository.missing(sorted(blobs))
        complete = []
        for candidate, changes in rename_suspects:
            if missing and any(change.old_blob in missing or change.new_blob in missing for change in changes):
                yield candidate.number, changes
            else:
                complete.append(candidate)
        pairs = [(shas[c.base], shas[c.commit]) for c in complete]
        for candidate, changes in zip(complete, repository.changes(pairs, renames=True), strict=True):
            yield candidate.number, changes

    def _plain_patches(
        self, repository: GitRepository, numbers: Iterable[int]
    ) -> Iterator[tuple[LandingCandidate, list[RawChange]]]:
        shas = self.history.shas
        unread = []
        for number in numbers:
            candidate = self.decisions.landed[number]
            patch = self.patches.pop(number, None)
            if patch is None:
                unread.append(candidate)
            else:
                yield candidate, patch
        yield from zip(unread, repository.changes([(shas[c.base], shas[c.commit]) for c in unread]), strict=True)


def _is_submodule(change: RawChange) -> bool:
    return "160000" in (change.old_mode, change.new_mode)


def read(repository: GitRepository, refs: Refs, api: ApiKnowledge, note: Note = lambda _text: None) -> GitFacts:
    """Read the history and decide what landed where.

    Raises `IncompleteRepository` where commits or trees are missing.
    """
    note("reading the history")
    history = History(repository.commits(dict.fromkeys(chain(refs.branches.values(), refs.heads.values()))))
    heads = {number: history.index[sha] for number, sha in refs.heads.items()}
    merges = {number: history.index[sha] for number, sha in api.merges.items() if sha in history.index}
    decisions = LandingDecisions()
    patches: dict[int, list[RawChange]] = {}
    trunk = default_line(history, refs.default_branch, history.index[refs.branches[refs.default_branch]])

    note("finding what landed")
    candidates = claimed(history, trunk, heads, decisions, merges)
    picked_merges = [candidate for candidate in candidates if candidate.may_be_picked]
    _decide(repository, history, [c for c in candidates if not c.may_be_picked], decisions, patches)
    _decide(repository, history, nested(history, heads, decisions, trunk, refs.branches), decisions, patches)
    lines = [trunk]
    waiting = UnlandedEvidence.of(heads, decisions, merges)
    for branch, commits, fork in other_branches(history, refs.branches, refs.heads.values(), trunk):
        if may_hold_landings(history, commits, heads, decisions, waiting):
            line = branch_line(history, branch, commits, fork, trunk)
            before = len(decisions.landed)
            _decide(repository, history, claimed(history, line, heads, decisions, merges), decisions, patches)
            if len(decisions.landed) > before:
                lines.append(line)
                waiting = UnlandedEvidence.of(heads, decisions, merges)
    remaining = [candidate for candidate in picked_merges if candidate.number not in decisions.landed]
    _decide(repository, history, remaining, decisions, patches)
    unclaimed(history, trunk, heads, decisions)
    return GitFacts(refs, history, decisions, _own_commits(history, heads, decisions, lines), patches)


def _decide(
    repository: GitRepository,
    history: History,
    candidates: Sequence[LandingCandidate],
    decisions: LandingDecisions,
    patches: dict[int, list[RawChange]],
) -> None:
    waiting = [candidate for candidate in candidates if candidate.needs_patch]
    shas = history.shas
    landed = repository.changes([(shas[c.base], shas[c.commit]) for c in waiting])
    proposed = repository.changes([(shas[_fork(c)], shas[c.head or 0]) for c in waiting])
    read_patches = {}
    for candidate, ours, theirs in zip(waiting, landed, proposed, strict=True):
        candidate.evidence = judge_patch(history, candidate, _patch(ours), _patch(theirs))
        if candidate.evidence is not None:
            read_patches[candidate.commit, candidate.base] = ours
    settle(history, candidates, decisions)
    for candidate in candidates:
        chosen = decisions.landed.get(candidate.number)
        if chosen is not None and (patch := read_patches.get((chosen.commit, chosen.base))) is not None:
            patches[candidate.number] = patch


def _fork(candidate: LandingCandidate) -> int:
    assert candidate.own is not None and candidate.own.fork is not None
    return candidate.own.fork


def _patch(changes: Iterable[RawChange]) -> dict[str, str]:
    return {change.path: change.new_blob for change in changes}


def _own_commits(
    history: History, heads: Mapping[int, int], decisions: LandingDecisions, lines: Sequence[FirstParentLine]
) -> dict[int, Sequence[int]]:
    own: dict[int, Sequence[int]] = {}
    for number, head in heads.items():
        candidate = decisions.landed.get(number)
        if candidate is not None:
            commits = candidate.own
        else:
            commits = unlanded_commits(history, head, [line for line in lines if line.position(head) is None])
        if commits is not None and len(commits.commits) <= OWN_COMMITS_STORED:
            own[number] = commits.commits[::-1]
    return own


COUNTED_APART = 200
"""So many patches with missing blobs are counted path by path; a mirror that lacks more was made without blobs."""


def count_lines(
    repository: GitRepository, pairs: Sequence[tuple[str, str]], files: Sequence[Sequence[RawChange]]
) -> Iterator[dict[str, LineCount]]:
    """For each (base, landed) pair with its known files, line counts by path, without paths that lack a blob."""
    if repository.is_partial():
        yield from ({} for _ in pairs)
        return
    blobs = {blob for changes in files for change in changes for blob in _blobs(change)}
    missing = repository.missing(sorted(blobs))
    are_whole = [not any(missing.intersection(_blobs(change)) for change in changes) for changes in files]
    answers = repository.line_counts([pair for pair, is_whole in zip(pairs, are_whole, strict=True) if is_whole])
    apart = 0
    for pair, changes, is_whole in zip(pairs, files, are_whole, strict=True):
        if is_whole:
            counts = next(answers)
        else:
            apart += 1
            countable = [change for change in changes if not missing.intersection(_blobs(change))]
            counts = repository.line_counts_of(pair, countable) if countable and apart <= COUNTED_APART else []
        yield {count.path: count for count in counts}


def _blobs(change: RawChange) -> list[str]:
    if _is_submodule(change):
        return []
    return [blob for blob in (change.old_blob, change.new_blob) if blob.strip("0")]
