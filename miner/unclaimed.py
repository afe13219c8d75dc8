"""Landings that no message names: merges of a head, rebases, fast-forwards, equal trees. Pure rules over the graph."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace

from miner.history import FirstParentLine, History
from miner.landing import LandingCandidate, LandingDecisions, OwnCommits, is_plain, own_commits, run_below


def unclaimed(history: History, line: FirstParentLine, heads: Mapping[int, int], settled: LandingDecisions) -> None:
    """Settle numbers that no message names: merges of the head, rebases, fast-forwards, equal trees, carried heads.

    For the trunk only: another branch may be a contributor's, which holds its own heads and copies of others'.
    """
    waiting = {number: head for number, head in heads.items() if number not in settled.landed}
    _merges_of_heads(history, line, waiting, settled)
    free = _free(history, line, settled)
    rebased = _rebases(history, line, waiting, free, settled)
    sharing = Counter(waiting.values())
    for number, head in sorted(waiting.items()):
        if number in settled.landed or number in rebased:
            continue
        order = line.order(head)
        if order is None:
            continue
        if head in free and sharing[head] == 1 and _may_be_pushed(history, settled, head, number):
            settled.accept(_fast_forward(history, line, number, head, free, settled))
        elif order > line.fork and line.at(order) != head:
            settled.carried.setdefault(number, line.at(order))
    _equal_trees(history, line, waiting, free, settled)


def _merges_of_heads(
    history: History, line: FirstParentLine, waiting: dict[int, int], settled: LandingDecisions
) -> None:
    numbers_of: dict[int, list[int]] = defaultdict(list)
    for number, head in waiting.items():
        numbers_of[head].append(number)
    for position, commit in enumerate(line.commits, line.fork + 1):
        parents = history.parents[commit]
        for parent in parents[1:]:
            # A head that stood on the line before is not brought by this merge.
            order = line.order(parent)
            if parent not in numbers_of or order != position:
                continue
            if commit in settled.landed_numbers:
                for number in numbers_of[parent]:
                    settled.carried.setdefault(number, commit)
                continue
            *others, number = sorted(numbers_of[parent])
            own = own_commits(history, parent, line, position)
            settled.accept(
                LandingCandidate(
                    number, parent, commit, parents[0], line, position, "head", "head_is_parent", "merge", own
                )
            )
            for other in others:
                settled.carried.setdefault(other, commit)


def _free(history: History, line: FirstParentLine, settled: LandingDecisions) -> dict[int, int]:
    """The commits of the line that nothing landed with, and their positions."""
    return {
        commit: position
        for position, commit in enumerate(line.commits, line.fork + 1)
        if commit not in settled.landed_numbers and history.parents[commit]
    }


def _rebases(
    history: History,
    line: FirstParentLine,
    waiting: Mapping[int, int],
    free: Mapping[int, int],
    settled: LandingDecisions,
) -> set[int]:
    """Land heads whose own commits all stand on the line under other shas; where two fit, the larger number did."""
    positions: dict[tuple[str, int, str], int] = {}
    for commit, position in free.items():
        if len(history.parents[commit]) == 1:
            positions.setdefault(history.signature(commit), position)
    found: dict[int, tuple[int, int, LandingCandidate, set[tuple[str, int, str]]]] = {}
    matched: set[int] = set()
    for number, head in sorted(waiting.items()):
        if number in settled.landed or line.order(head) is not None:
            continue
        if len(history.parents[head]) != 1 or history.signature(head) not in positions:
            continue
        own = own_commits(history, head, line, None)
        if own is None:
            continue
        plain = [c for c in own.commits if len(history.parents[c]) == 1]
        signatures = {history.signature(c) for c in plain}
        if not all(signature in positions for signature in signatures):
            continue
        last = max(positions[signature] for signature in signatures)
        commit = line.at(last)
        candidate = LandingCandidate(number, head, commit, commit, line, last, "commits", "same_commits", "rebase", own)
        matched.add(number)
        size = len(run_below(history, line, commit, signatures, settled.landed_numbers, number))
        if commit not in found or (size, number) > found[commit][:2]:
            found[commit] = (size, number, candidate, signatures)
    for _, number, candidate, signatures in sorted(found.values(), key=lambda item: item[2].position):
        # What a lower pull request of a stack landed before is not landed by this one again.
        run = run_below(history, line, candidate.commit, signatures, settled.landed_numbers, number)
        settled.accept(replace(candidate, base=history.parents[run[-1]][0]))
    for number in matched:
        if number not in settled.landed:
            settled.carried.setdefault(number, line.at(positions[history.signature(waiting[number])]))
    return matched


def _may_be_pushed(history: History, settled: LandingDecisions, commit: int, number: int) -> bool:
    """Whether a head on the line may have been fast-forwarded to.

    A contributor who resets a branch to the trunk leaves a head that stands on the line too; where the commit names
    another number, or several heads share it, that is what happened.
    """
    claimed_numbers = [claim.number for claim in settled.claims(history, commit) if not claim.weak]
    return is_plain(history, commit) and all(other == number for other in claimed_numbers)


def _fast_forward(
    history: History, line: FirstParentLine, number: int, head: int, free: Mapping[int, int], settled: LandingDecisions
) -> LandingCandidate:
    """The landing of a head that is on the line: its author's unbroken run of commits that nobody else landed."""
    position = free[head]
    own = [head]
    first = position
    while first - 1 > line.fork:
        below = line.at(first - 1)
        if (
            below in settled.landed_numbers
            or not is_plain(history, below)
            or history.authors[below] != history.authors[head]
        ):
            break
        if history.commit_times[head] - history.commit_times[below] > 14 * 86400:
            break
        own.append(below)
        first -= 1
    base = history.parents[own[-1]][0]
    return LandingCandidate(
        number, head, head, base, line, position, "head", "is_head", "fast_forward", OwnCommits(tuple(own), base)
    )


def _equal_trees(
    history: History,
    line: FirstParentLine,
    waiting: Mapping[int, int],
    free: Mapping[int, int],
    settled: LandingDecisions,
) -> None:
    by_tree: dict[str, list[int]] = defaultdict(list)
    for commit in free:
        if history.trees[commit] != history.trees[history.parents[commit][0]]:
            by_tree[history.trees[commit]].append(commit)
    for number, head in sorted(waiting.items(), reverse=True):
        commits = by_tree.get(history.trees[head], [])
        if (
            number in settled.landed
            or number in settled.carried
            or len(commits) != 1
            or commits[0] in settled.landed_numbers
        ):
            continue
        commit = commits[0]
        if line.order(head) is not None:
            continue
        own = own_commits(history, head, line, free[commit])
        if own is None or own.fork is None or history.trees[own.fork] == history.trees[head]:
            continue
        style = "squash" if len(history.parents[commit]) == 1 else "merge"
        settled.accept(
            LandingCandidate(
                number, head, commit, history.parents[commit][0], line, free[commit], "tree", "same_tree", style, own
            )
        )
