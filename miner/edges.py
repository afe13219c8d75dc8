"""The miner's rules: which citations count as edges between pull requests, and how surely.

Pure: texts and facts of one repository in, edges out. `miner.citations` says what a text cites; here it is decided
whether the citing pull request means it. What does not count keeps its reason. Weak signs lower the confidence and
never drop an edge by themselves.

===================  ==================================================================================
merge_message        the text is the message of a merge inside the pull request
landed_copy          the commit is a copy of one that another pull request landed
shared_commit        the commit came with an earlier pull request
copied_subject       the line is the cited pull request's own subject, or a listed commit's with its number
own_tail             the number stands where a commit's own number stands
quote, details ...   the text is somebody else's; the words of `miner.citations`
release              the pull request makes a release
dependency_bump      the pull request updates dependencies
release_notes        the text carries release notes
number_list          the text, or the pull request, cites more than anybody depends on
not_a_pull_request   the number is an issue's or nobody's
landed_later         the cited pull request landed after the citing one
closes_landed        the text closes a number that has landed: a fork's or another tracker's issue
no_common_file       only ancestry speaks for it, and the two change no file in common
===================  ==================================================================================
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from miner.citations import Citation, extract, is_dependency_bump, looks_like_release_notes
from miner.copies import Provenance, has_bullet, line_at
from miner.edge_facts import PullRequestFacts, SourceText
from miner.source import Forge
from miner.stacks import Stacks
from prchain.core.code.housekeeping import housekeeping_of

MOST_IN_TEXT = 10
MOST_IN_PULL_REQUEST = 12
"""Beyond so many distinct pull requests a text, or a pull request, is a list of what happened, not of what it needs."""
MOST_BARE = 25
"""Of a pull request whose commits cite more numbers than this, only what it says in plain words is believed.

Few pull requests make most of the bad edges (one made 21 of 22 in a repository): they bring other histories along."""
_BUMP_READ = 500
"""Characters that are read of a text that bumps a dependency; what follows are the dependency's notes and numbers."""
_BARE = frozenset({"mentions", "closes", "fixes"})

_SMALL_NUMBER = 30
_MANY_PULL_REQUESTS = 1000

_BASE_CONFIDENCE = {"mentions": 0.6, "closes": 0.6, "fixes": 0.8, "supersedes": 0.8}
_EXPLICIT = 0.9
_SIGNS = {"cites_larger_number": 0.3, "small_number": 0.3, "bot": 0.5, "unlanded": 0.7, "ancestry_only": 0.7}


@dataclass(frozen=True, slots=True)
class CitationEdge:
    """One citation of one pull request by another; the columns of `sql.tables.Citation`."""

    source: int
    target: int
    relation: str
    field: str
    key: str
    syntax: str
    snippet: str
    counted: bool
    reason: str | None
    confidence: float
    weak_signs: tuple[str, ...]


class PullRequestIndex:
    """The pull requests of one repository, as the rules see them."""

    def __init__(
        self,
        repository: str,
        aliases: Collection[str],
        forge: Forge,
        pulls: Mapping[int, PullRequestFacts],
        provenance: Provenance,
        shas: Mapping[str, int],
    ) -> None:
        self.repository = repository.lower()
        self.aliases = aliases
        self.forge = forge
        self.pulls = pulls
        self.provenance = provenance
        self._shas: dict[str, list[tuple[str, int]]] = {}
        for sha, number in shas.items():
            self._shas.setdefault(sha[:7], []).append((sha, number))
        self._stacks = Stacks(pulls, forge.title)

    def edges_of(self, pull: PullRequestFacts) -> list[CitationEdge]:
        """Every citation of a pull request by this one, counted or with the reason why not."""
        found: dict[tuple[int, str, str, str], CitationEdge] = {}

        def keep(edge: CitationEdge) -> None:
            key = (edge.target, edge.relation, edge.field, edge.key)
            previous = found.get(key)
            if previous is None or (edge.counted, edge.confidence) > (previous.counted, previous.confidence):
                found[key] = edge

        housekeeping = housekeeping_of(pull.subject, pull.paths)
        for text in pull.texts:
            for edge in self._edges_of_text(pull, text, housekeeping):
                keep(edge)
        for edge in self._events(pull, list(found.values()), housekeeping):
            keep(edge)
        for edge in self._stack_edges(pull):
            keep(edge)
        return _without_lists(list(found.values()))

    def _edges_of_text(
        self, pull: PullRequestFacts, text: SourceText, housekeeping: str | None
    ) -> Iterable[CitationEdge]:
        bumps = housekeeping == "dependency_bump" or (text.kind == "commit" and is_dependency_bump(text.text[:200]))
        citations = extract(
            text.text[:_BUMP_READ] if bumps else text.text,
            self.repository,
            self.aliases,
            kind=text.kind,
            urls=self.forge.urls,
            own=pull.number,
            foreign=False,
            wording=housekeeping is None,
        )
        if not citations:
            return
        notes = text.kind != "branch" and looks_like_release_notes(text.text)
        crowded = len({c.number for c in citations if c.number}) >= MOST_IN_TEXT
        for citation in citations:
            target = self._target(citation)
            if target is None or target == pull.number:
                continue
            reason = (
                text.copied
                or citation.context
                or ("not_a_pull_request" if target not in self.pulls else None)
                or housekeeping
                or ("release_notes" if notes else None)
                or ("number_list" if crowded else None)
                or self._copied_subject(pull, text, citation, target)
                or self._too_late(pull, target)
                or self._closes_landed(citation.relation, target)
            )
            yield self._edge(pull, target, citation.relation, text, citation, reason)

    def _target(self, citation: Citation) -> int | None:
        if citation.sha is not None:
            if citation.repository not in {self.repository, ""}:
                return None
            matches = {n for sha, n in self._shas.get(citation.sha[:7], ()) if sha.startswith(citation.sha)}
            return matches.pop() if len(matches) == 1 else None
        return citation.number if citation.repository == self.repository else None

    def _edge(
        self,
        pull: PullRequestFacts,
        target: int,
        relation: str,
        text: SourceText,
        citation: Citation,
        reason: str | None,
    ) -> CitationEdge:
        signs = self._weak_signs(pull, target, text.by_bot)
        confidence = _confidence(relation, signs)
        return CitationEdge(
            pull.number,
            target,
            relation,
            text.field,
            text.key,
            citation.syntax,
            citation.snippet,
            reason is None,
            reason,
            confidence,
            signs,
        )

    def _weak_signs(self, pull: PullRequestFacts, target: int, by_bot: bool) -> tuple[str, ...]:
        signs = []
        if target > pull.number:
            signs.append("cites_larger_number")
        if target <= _SMALL_NUMBER and len(self.pulls) > _MANY_PULL_REQUESTS:
            signs.append("small_number")
        if by_bot or pull.by_bot:
            signs.append("bot")
        cited = self.pulls.get(target)
        if cited is not None and cited.order is None:
            signs.append("unlanded")
        return tuple(signs)

    def _copied_subject(self, pull: PullRequestFacts, text: SourceText, citation: Citation, target: int) -> str | None:
        if text.kind not in {"commit", "markdown"} or citation.relation in {"reverts", "relands", "backports"}:
            return None
        line = line_at(text.text, citation.start)
        if pull.order is None and text.kind == "commit" and line.startswith("Merge pull request "):
            return "landed_copy"
        if self.provenance.is_subject_of(target, line):
            return "copied_subject"
        if text.kind == "commit" and has_bullet(line) and line.rstrip().endswith(f"(#{target})"):
            return "copied_subject"
        return None

    def _too_late(self, pull: PullRequestFacts, target: int) -> str | None:
        cited = self.pulls[target]
        if pull.order is None or cited.order is None:
            return None
        same_branch = pull.order[0] == cited.order[0]
        later = cited.order[1] > pull.order[1] if same_branch else cited.landed_at > pull.landed_at
        return "landed_later" if later else None

    def _closes_landed(self, relation: str, target: int) -> str | None:
        """A landed pull request is closed already: a text that closes its number means an issue of another tracker."""
        return "closes_landed" if relation == "closes" and self.pulls[target].order is not None else None

    def _events(
        self, pull: PullRequestFacts, text_edges: Sequence[CitationEdge], housekeeping: str | None
    ) -> Iterable[CitationEdge]:
        """The forge's own cross-references: a second witness of a text, or the only one of a text we do not have."""
        by_target: dict[int, list[CitationEdge]] = defaultdict(list)
        for edge in text_edges:
            by_target[edge.target].append(edge)
        for target, key, relation in pull.events:
            if target not in self.pulls or target == pull.number:
                continue
            same_target = by_target.get(target, [])
            if any(edge.counted for edge in same_target):
                reason = None
            elif same_target:
                reason = same_target[0].reason
            else:
                reason = housekeeping or self._too_late(pull, target)
            signs = self._weak_signs(pull, target, False)
            yield CitationEdge(
                pull.number,
                target,
                relation,
                "event",
                key,
                "event",
                f"{self.forge.title}: #{pull.number} cites #{target}",
                reason is None,
                reason,
                _confidence(relation, signs),
                signs,
            )

    def _stack_edges(self, pull: PullRequestFacts) -> Iterable[CitationEdge]:
        """What it was stacked on. What has landed later is left out where only ancestry tells: it was carried over."""
        for found in self._stacks.signs(pull):
            late = self._too_late(pull, found.target)
            if late and found.field == "history":
                continue
            reason = found.reason or late
            signs = self._weak_signs(pull, found.target, False)
            if found.field == "history":
                signs = (*signs, "ancestry_only")
            yield CitationEdge(
                pull.number,
                found.target,
                "stacked_on",
                found.field,
                found.key,
                found.syntax,
                found.snippet,
                reason is None,
                reason,
                _confidence("stacked_on", signs),
                signs,
            )


def _confidence(relation: str, signs: Iterable[str]) -> float:
    confidence = _BASE_CONFIDENCE.get(relation, _EXPLICIT)
    for sign in signs:
        confidence *= _SIGNS[sign]
    return round(confidence, 4)


def _without_lists(edges: list[CitationEdge]) -> list[CitationEdge]:
    """Refuse what is left of a pull request that cites too many others to depend on them."""
    if len({edge.target for edge in edges if edge.counted}) > MOST_IN_PULL_REQUEST:
        believed: set[int] = set()
    elif len({edge.target for edge in edges if edge.field in {"commit", "landing"}}) > MOST_BARE:
        believed = {edge.target for edge in edges if edge.counted and edge.relation not in _BARE}
    else:
        return edges

    def doubted(edge: CitationEdge) -> bool:
        is_explicit = edge.relation not in _BARE or edge.field == "event"
        return edge.counted and not (is_explicit and edge.target in believed)

    return [replace(edge, counted=False, reason="number_list") if doubted(edge) else edge for edge in edges]
