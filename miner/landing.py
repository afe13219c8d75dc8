"""Which pull requests landed, where, and how: claims and signs of the graph, each borne out by the pull head.

Pure: values in, values out. The caller runs git for the patches that some claims need
(`LandingCandidate.needs_patch`).

A number on a commit proves nothing: imported histories, trac tickets and pasted merge lines carry numbers of other
places. A claim stands when the pull head bears it out, in this order of strength:

==================  ====================================================================================
api                 GitHub names this commit as the merge commit
head_is_parent      the head is a parent of the merge
head_contains       the merge brought the head in, below other commits
same_tree           head and landed commit are the same tree
same_commits        the own commits stand on the branch under other shas (author, author date, subject)
is_head             the head itself stands on the branch (fast-forward)
contained_in_head   the merged commit is one of the head's (it was pushed to after the landing)
same_patch          the same paths with the same contents changed
same_files          the same paths changed
most_files          at least half of the landed paths are among the head's
some_files          some are, and the author is one of the head's authors
==================  ====================================================================================
"""

from __future__ import annotations

from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from miner.claims import MERGE_SUBJECTS, Claim, claims
from miner.history import FirstParentLine, History
from prchain.core.code.paths import is_housekeeping

OWN_COMMITS_LIMIT = 5000
"""A head with more commits of its own than this is another history, not a pull request's work."""

_RANK = {
    name: rank
    for rank, name in enumerate(
        (
            "api",
            "head_is_parent",
            "head_contains",
            "same_tree",
            "same_commits",
            "is_head",
            "contained_in_head",
            "same_patch",
            "same_files",
            "most_files",
            "some_files",
        )
    )
}

Patch = Mapping[str, str]
"""Path to new blob, of every path that a diff names."""


@dataclass(frozen=True, slots=True)
class OwnCommits:
    """The commits that a head has and the base of its landing has not, newest first, and where it forked."""

    commits: tuple[int, ...]
    fork: int | None
    """The newest commit of the base's history below the own commits, or of what that was before it was rewritten; None
    for unrelated histories."""
    ahead: bool = False
    """The head holds commits that the branch got only later: it was pushed to after the landing, or never landed."""


@dataclass(slots=True)
class LandingCandidate:
    """A commit that may be where pull request `number` landed."""

    number: int
    head: int | None
    """None where only the API vouches for the landing."""
    commit: int
    base: int
    line: FirstParentLine
    position: int
    claim: str
    evidence: str | None = None
    style: str = "squash"
    own: OwnCommits | None = None
    weak: bool = False
    inner: bool = False

    @property
    def needs_patch(self) -> bool:
        """Whether only the patches of landing and head can bear this claim out."""
        if self.evidence is not None or self.weak or self.own is None:
            return False
        return self.own.fork is not None and not self.own.ahead

    @property
    def may_be_picked(self) -> bool:
        """Whether this may be a merge picked over from another branch: a merge's subject on a commit of one parent."""
        return self.evidence is None and self.style == "squash" and self.claim in MERGE_SUBJECTS


@dataclass(frozen=True, slots=True)
class Refusal:
    """A claim that was not borne out."""

    number: int
    commit: int
    branch: str
    claim: str
    reason: str


@dataclass(slots=True)
class LandingDecisions:
    """What is settled so far; each pass over a line adds to it."""

    landed: dict[int, LandingCandidate] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    carried: dict[int, int] = field(default_factory=dict)
    """Number to the line commit with which its head came in, where it did not land by itself."""
    landed_numbers: dict[int, int] = field(default_factory=dict)
    """Landed commit to the number that landed with it."""
    doubted: set[tuple[int, int]] = field(default_factory=set)
    """(number, commit) of claims that were looked at and not borne out; branches share commits."""
    _claims: dict[int, list[Claim]] = field(default_factory=dict, repr=False)

    def claims(self, history: History, commit: int) -> list[Claim]:
        """What a commit's message claims; read once, however many branches hold the commit."""
        found_claims = self._claims.get(commit)
        if found_claims is None:
            found_claims = self._claims[commit] = claims(history.message(commit))
        return found_claims

    def accept(self, candidate: LandingCandidate) -> None:
        """Settle a candidate."""
        self.landed[candidate.number] = candidate
        self.landed_numbers.setdefault(candidate.commit, candidate.number)


def own_commits(history: History, head: int, line: FirstParentLine, position: int | None) -> OwnCommits | None:
    """The commits of `head` that `line` did not have below `position`, or never had; None when there are too many.

    A head that shares nothing with the line may be of a time before its history was rewritten (files taken out,
    authors put right): then what the line had are its commits as they were.
    """
    found = _own_commits(history, head, line.order, line, position)
    if position is None or (found is not None and (found.fork is not None or found.ahead)):
        return found

    def order(commit: int) -> int | None:
        twin = line.twin(history, commit) if commit != head else None
        return twin if twin is not None and twin < position else None

    rewritten = _own_commits(history, head, order, line, position)
    return rewritten if rewritten is not None and rewritten.fork is not None else found


def _own_commits(
    history: History,
    head: int,
    order_of: Callable[[int], int | None],
    line: FirstParentLine,
    position: int | None,
) -> OwnCommits | None:
    own: list[int] = []
    fork: int | None = None
    fork_order = -1
    ahead = False
    seen = {head}
    pending = [head]
    while pending:
        commit = pending.pop()
        order = order_of(commit)
        if order is not None and (position is None or order < position):
            if order > fork_order:
                fork, fork_order = commit, order
            continue
        if order is not None and position is not None and order > position and line.at(order) == commit:
            ahead = True
        else:
            own.append(commit)
        if len(own) > OWN_COMMITS_LIMIT:
            return None
        for parent in history.parents[commit]:
            if parent not in seen:
                seen.add(parent)
                pending.append(parent)
    own.sort()
    return OwnCommits(tuple(own), fork, ahead)


def unlanded_commits(history: History, head: int, lines: Sequence[FirstParentLine]) -> OwnCommits | None:
    """The commits of a head that none of the lines has, nor had before its history was rewritten (`own_commits`); None
    when there are too many."""
    landed = [line.brought for line in lines]
    own, is_met = _above(history, head, lambda commit: any(commit in brought for brought in landed))
    if not is_met:
        above, is_met = _above(
            history,
            head,
            lambda commit: commit != head and any(line.twin(history, commit) is not None for line in lines),
        )
        own = above if is_met else own
    return None if own is None else OwnCommits(tuple(sorted(own)), None)


def _above(history: History, head: int, is_landed: Callable[[int], bool]) -> tuple[list[int] | None, bool]:
    """The commits of a head above those that landed, None when there are too many; and whether one of these was met."""
    own: list[int] = []
    is_met = False
    seen = {head}
    pending = [head]
    while pending:
        commit = pending.pop()
        if is_landed(commit):
            is_met = True
            continue
        own.append(commit)
        if len(own) > OWN_COMMITS_LIMIT:
            return None, is_met
        for parent in history.parents[commit]:
            if parent not in seen:
                seen.add(parent)
                pending.append(parent)
    return own, is_met


def claimed(
    history: History, line: FirstParentLine, heads: Mapping[int, int], settled: LandingDecisions, api: Mapping[int, int]
) -> list[LandingCandidate]:
    """Candidates for every number that a commit of the line claims (or that the API says landed with it)."""
    by_api = {commit: number for number, commit in api.items()}
    candidates = []
    for position, commit in enumerate(line.commits, line.fork + 1):
        parents = history.parents[commit]
        if not parents:
            continue
        found_claims = list(settled.claims(history, commit))
        if commit in by_api and all(claim.number != by_api[commit] for claim in found_claims):
            found_claims.append(Claim(by_api[commit], "api"))
        for claim in found_claims:
            if claim.number in settled.landed or (claim.number, commit) in settled.doubted:
                continue
            head = heads.get(claim.number)
            if head is None and api.get(claim.number) != commit:
                if not claim.weak:
                    settled.refused.append(Refusal(claim.number, commit, line.branch, claim.syntax, "no_pull_head"))
                continue
            candidate = LandingCandidate(claim.number, head, commit, parents[0], line, position, claim.syntax)
            candidate.weak, candidate.inner = claim.weak, claim.inner
            candidate.style = "merge" if len(parents) > 1 else "squash"
            if head is None:
                candidate.evidence = "api"
            else:
                _bear_out_by_graph(history, candidate, head, api)
            if candidate.evidence or not claim.weak:
                candidates.append(candidate)
    return candidates


def _bear_out_by_graph(history: History, candidate: LandingCandidate, head: int, api: Mapping[int, int]) -> None:
    parents = history.parents[candidate.commit]
    line, position = candidate.line, candidate.position
    if head == candidate.commit:
        # A head that was reset to its own landing commit, unless somebody pushed it there without GitHub's help.
        candidate.evidence = "is_head"
        if is_plain(history, head):
            candidate.style = "fast_forward"
    elif head in parents[1:]:
        candidate.evidence = "head_is_parent"
    elif len(parents) > 1 and line.order(head) == position:
        candidate.evidence = "head_contains"
    elif history.trees[head] == history.trees[candidate.commit]:
        candidate.evidence = "same_tree"
    if candidate.evidence is None and candidate.weak:
        return
    candidate.own = own_commits(history, head, line, position)
    if candidate.evidence is None and candidate.own is not None and set(parents[1:]) & set(candidate.own.commits):
        candidate.evidence = "contained_in_head"
    if candidate.evidence is None and api.get(candidate.number) == candidate.commit:
        candidate.evidence = "api"


def judge_patch(history: History, candidate: LandingCandidate, landed: Patch, proposed: Patch) -> str | None:
    """What the patch of the head says of a claim: the evidence's name, or None where it does not bear it out.

    The numbers of imported histories meet pull requests that touch the same files by chance. So contents that differ
    need a second sign: an author of the work, exactly its paths, or a landing soon after it. Where all shared paths
    are such as every pull request changes (changelogs, manifests, lock files), two signs are needed.
    """
    common = landed.keys() & proposed.keys()
    age = _age(history, candidate)
    if not common or age is None:
        return None
    if len(common) == len(landed) and all(landed[path] == proposed[path] for path in common):
        return "same_patch"
    same_author = _shares_author(history, candidate)
    same_paths = landed.keys() == proposed.keys()
    if all(is_housekeeping(path) for path in common):
        credible = (same_author and same_paths) or (age <= _AT_ONCE and (same_author or same_paths))
    else:
        credible = same_author or same_paths or age <= _SOON
    if not credible:
        return None
    if same_paths:
        return "same_files"
    if 2 * len(common) >= len(landed):
        return "most_files"
    return "some_files" if same_author and age <= _SOON else None


_AT_ONCE = 30 * 86400
_SOON = 180 * 86400


def _age(history: History, candidate: LandingCandidate) -> int | None:
    """Seconds from the newest own work to the landing; None for a landing before the oldest of it."""
    assert candidate.own is not None
    times = [history.author_times[c] for c in candidate.own.commits if len(history.parents[c]) < 2]
    landed = history.commit_times[candidate.commit]
    if not times or landed < min(times) - 86400:
        return None
    return max(0, landed - max(times))


def _shares_author(history: History, candidate: LandingCandidate) -> bool:
    assert candidate.own is not None
    authors = {history.authors[commit] for commit in candidate.own.commits[:200]}
    name, mail = history.authors[candidate.commit]
    return name in {name for name, _ in authors} or mail in {mail for _, mail in authors}


def settle(history: History, candidates: Sequence[LandingCandidate], settled: LandingDecisions) -> None:
    """Choose among borne-out candidates: one landing a number, the strongest evidence and then the earliest.

    Claims of one number on consecutive commits are one rebase landing.
    """
    by_number: dict[int, list[LandingCandidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.evidence is None:
            settled.doubted.add((candidate.number, candidate.commit))
            settled.refused.append(_refusal(candidate, "head_differs"))
        else:
            by_number[candidate.number].append(candidate)
    strong_numbers = {c.commit: c.number for c in candidates if c.evidence and not c.weak}
    claimed_by = ChainMap(settled.landed_numbers, strong_numbers)  # a view: `landed_numbers` grows below
    for number, options in sorted(by_number.items(), key=lambda item: (all(o.inner for o in item[1]), item[0])):
        if number in settled.landed:
            continue
        free = [option for option in options if not (option.inner and option.commit in settled.landed_numbers)]
        strong = [option for option in free if not option.weak]
        if not strong:
            # A citation of N on the landing of another pull request is no claim of N.
            strong = [option for option in free if strong_numbers.get(option.commit, number) == number]
        if not strong:
            continue
        best = min(strong, key=lambda option: (_RANK[option.evidence or ""], option.weak, option.position))
        landed, run = _with_rebase(history, best, strong, claimed_by)
        settled.accept(landed)
        for other in strong:
            if other.commit not in run and other is not best and not other.weak:
                settled.refused.append(_refusal(other, "number_landed_elsewhere"))


def _refusal(candidate: LandingCandidate, reason: str) -> Refusal:
    return Refusal(candidate.number, candidate.commit, candidate.line.branch, candidate.claim, reason)


def _with_rebase(
    history: History, best: LandingCandidate, options: Sequence[LandingCandidate], claimed_by: Mapping[int, int]
) -> tuple[LandingCandidate, list[int]]:
    """The same landing as a rebase, with the commits of its run, where own commits stand there under other shas.

    Where several commits of the run name the number, the newest of them is the landing.
    """
    for option in sorted(options, key=lambda option: option.commit):
        own = option.own
        if own is None or option.style == "fast_forward":
            continue
        signatures = {history.signature(c) for c in own.commits if len(history.parents[c]) == 1}
        run = run_below(history, option.line, option.commit, signatures, claimed_by, option.number)
        if best.commit not in run:
            continue
        # One own commit: squash and rebase leave the same history, unless GitHub wrote a subject of its own.
        same_message = history.messages[option.commit].strip() == history.messages[own.commits[0]].strip()
        if len(run) > 1 or (len(signatures) == 1 and same_message):
            return replace(option, style="rebase", base=history.parents[run[-1]][0]), run
    return best, []


def run_below(
    history: History,
    line: FirstParentLine,
    last: int,
    signatures: Collection[tuple[str, int, str]],
    claimed_by: Mapping[int, int],
    number: int,
) -> list[int]:
    """The unbroken run of own commits under other shas that ends at `last`, newest first; another number ends it."""
    run: list[int] = []
    commit = last
    while len(history.parents[commit]) == 1 and history.signature(commit) in signatures:
        order = line.order(commit)
        if claimed_by.get(commit, number) != number or (order is not None and order <= line.fork):
            break
        run.append(commit)
        commit = history.parents[commit][0]
    return run


def is_plain(history: History, commit: int) -> bool:
    """Whether a commit of the line may have been pushed from a pull head: neither a merge nor made on GitHub's site."""
    return len(history.parents[commit]) == 1 and history.committers[commit] != "GitHub"
