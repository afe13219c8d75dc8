"""Pull requests that landed on a branch which the trunk then merged: pure rules over the graph."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from miner.claims import MERGE_SUBJECTS, merged_branch
from miner.history import FirstParentLine, History, bring_in
from miner.landing import OWN_COMMITS_LIMIT, LandingCandidate, LandingDecisions, OwnCommits


def nested(
    history: History,
    heads: Mapping[int, int],
    settled: LandingDecisions,
    trunk: FirstParentLine,
    branches: Collection[str],
) -> list[LandingCandidate]:
    """Candidates that stand on no first-parent line but inside what the trunk merged.

    They landed on a branch that was then merged (a release branch, a development branch), or on the trunk itself
    where a maintainer pulled and pushed a merge the wrong way round. `_Carriers` names the branch.
    """
    candidates = []
    carriers = _Carriers(history, trunk, branches)
    for commit, position in trunk.brought.items():
        parents = history.parents[commit]
        if trunk.at(position) == commit or not parents:
            continue
        for claim in settled.claims(history, commit):
            head = heads.get(claim.number)
            if head is None or claim.weak or claim.number in settled.landed:
                continue
            if len(parents) == 1 and claim.syntax in MERGE_SUBJECTS:
                continue  # a merge that was picked over to another branch
            branch = carriers.branch(commit)
            line = replace(trunk, branch=branch, is_default=branch == trunk.branch)
            candidate = LandingCandidate(claim.number, head, commit, parents[0], line, position, claim.syntax)
            candidate.inner = claim.inner
            candidate.style = "merge" if len(parents) > 1 else "squash"
            if head in parents[1:]:
                candidate.evidence = "head_is_parent"
            elif head != commit and history.trees[head] == history.trees[commit]:
                candidate.evidence = "same_tree"
            candidate.own = _own_beside(history, head, parents[0], trunk, position)
            if candidate.evidence or (len(parents) == 1 and candidate.own is not None):
                candidates.append(candidate)
    return candidates


def _own_beside(history: History, head: int, base: int, line: FirstParentLine, position: int) -> OwnCommits | None:
    """The commits of `head` that `base` does not have, both inside what the line brought in at `position`."""
    inside: set[int] = set()
    pending = [base]
    while pending:
        commit = pending.pop()
        order = line.order(commit)
        if commit not in inside and (order is None or order >= position):
            inside.add(commit)
            pending.extend(history.parents[commit])
    own: set[int] = set()
    fork: int | None = None
    pending = [head]
    while pending:
        commit = pending.pop()
        if commit in own:
            continue
        order = line.order(commit)
        if order is not None and order > position and line.at(order) == commit:
            return None
        if commit in inside or (order is not None and order < position):
            fork = commit if fork is None else min(fork, commit)
            continue
        own.add(commit)
        if len(own) > OWN_COMMITS_LIMIT:
            return None
        pending.extend(history.parents[commit])
    return OwnCommits(tuple(sorted(own)), fork)


class _Carriers:
    """Tells which branch a commit was on before merges carried it to the trunk."""

    def __init__(self, history: History, trunk: FirstParentLine, branches: Collection[str]) -> None:
        self._history = history
        self._trunk = trunk
        self._branches = branches
        self._sides: dict[int, list[FirstParentLine]] = {}

    def branch(self, commit: int) -> str:
        """The name that the innermost merge of the commit's own first-parent line gives; else the trunk's.

        ``master`` that is no longer there is the trunk under its former name.
        """
        order = self._trunk.order(commit)
        assert order is not None
        carrier = self._trunk.at(order)
        while True:
            inner = self._step(carrier, order, commit)
            if inner is None or inner == commit:
                break
            carrier = inner
        name = merged_branch(self._history.message(carrier))
        if name is None or (name == "master" and name not in self._branches):
            return self._trunk.branch
        return name

    def _step(self, carrier: int, order: int, commit: int) -> int | None:
        """The commit on a merged side's first-parent line that brought `commit` to that side."""
        if carrier not in self._sides:
            self._sides[carrier] = [self._side(parent, order) for parent in self._history.parents[carrier][1:]]
        for side in self._sides[carrier]:
            place = side.brought.get(commit)
            if place is not None:
                return side.commits[place]
        return None

    def _side(self, tip: int, order: int) -> FirstParentLine:
        commits = []
        for commit in self._history.first_parents(tip):
            if self._trunk.brought.get(commit) != order:
                break
            commits.append(commit)
        commits.reverse()

        def elsewhere(commit: int) -> bool:
            return self._trunk.brought.get(commit) != order

        return FirstParentLine("", False, commits, -1, bring_in(self._history, commits, 0, elsewhere))
