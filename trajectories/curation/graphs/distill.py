"""One round of a graph, and the graph that comes of all of them (P2T, section 4.1 and appendix D).

The proposer proposes nodes; code refuses what breaks a rule that it can decide; the critic keeps, prunes or revises
what is left, and code looks at what was revised and at the set as a whole. Only the proposer adds a claim, and only
the critic takes one away for what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from prchain.core.console.terminal import counted
from prchain.core.git.output import path_text
from prchain.core.git.trees import TreeEntry, TreeStore
from trajectories.agents.steps.entities import EDGE_KINDS, EntityKind, entities
from trajectories.curation.graphs.bench import Bench
from trajectories.curation.graphs.candidates import NodeCandidate, NodeVerdict, hashes, kept_nodes, unused_name
from trajectories.curation.graphs.edits import EditedTree, EditFault
from trajectories.curation.graphs.gates import LeakGate, NodeFault, form_faults, merge_equal, narrowed, order_faults
from trajectories.curation.graphs.graph import ProcessGraph, defined_names_at, linked, without_marks
from trajectories.curation.graphs.nodes import ActionTool, Node, NodeKind
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.outcomes import CYCLIC, INSUFFICIENT
from trajectories.curation.graphs.reference import TargetPatch, unlike
from trajectories.curation.graphs.replay import files_for, observation_fault
from trajectories.curation.graphs.rounds import GraphState, after_round
from trajectories.curation.graphs.shapes import CriticReply, NodeReply, ProposerReply

_QUOTED = 80
"""Characters of a statement by which feedback names a node."""


class Curators(Protocol):
    """The two agents of a round. Both return None where their round is dropped, with the reason told apart."""

    def propose(self, state: GraphState, mismatch: Mapping[str, str]) -> ProposerReply | None:
        """New candidates for a graph in this state."""

    def criticize(self, state: GraphState, nodes: Sequence[Node], mismatch: Mapping[str, str]) -> CriticReply | None:
        """Verdicts on these candidates."""


@dataclass(frozen=True)
class Distiller:
    """Makes the graph of one stage's reference patch. `roots` are the folders in which the repository may lie."""

    trees: TreeStore
    target: TargetPatch
    query: str
    bench: Bench
    options: GraphOptions
    roots: tuple[str, ...]
    tell: Callable[[str], None] = lambda words: None

    # ---- a round

    def round(self, state: GraphState, curators: Curators) -> GraphState:
        """The state after one more round. Raises `LlmError`, `SandboxError`, `StateError`, `StoreError`, `GitError`."""
        number = state.rounds + 1
        self.tell(f"round {number}: proposer")
        before = list(state.candidates)
        proposal = curators.propose(state, self.mismatch(kept_nodes(before)))
        if proposal is None:
            return after_round(state, before, state.feedback, proposed=0, dropped=True, options=self.options)
        self.tell(f"round {number}: {len(proposal.nodes)} nodes are run again")
        candidates = [*before, *self._examined(proposal.nodes, before, number)]
        candidates = self._settled(candidates, number)
        nodes = kept_nodes(candidates)
        feedback: list[str] = []
        if nodes and hashes(candidates) != hashes(before):
            self.tell(f"round {number}: critic")
            verdicts = curators.criticize(state, nodes, self.mismatch(nodes))
            if verdicts is None:
                fault = NodeFault("critic", "the critic gave no answer in this round")
                dropped = [
                    candidate.ended(NodeVerdict.DROPPED, number, [fault])
                    if candidate.kept and place >= len(before)
                    else candidate
                    for place, candidate in enumerate(candidates)
                ]
                kept = [*before, *dropped[len(before) :]]
                proposed = len(proposal.nodes)
                return after_round(state, kept, state.feedback, proposed=proposed, dropped=True, options=self.options)
            candidates = self._settled(self._judged(candidates, verdicts, number), number)
            feedback = verdicts.words()
        feedback = [*self._code_feedback(candidates, number), *feedback]
        return after_round(
            state, candidates, feedback, proposed=len(proposal.nodes), dropped=False, options=self.options
        )

    def _examined(
        self, replies: Sequence[NodeReply], before: Sequence[NodeCandidate], number: int
    ) -> list[NodeCandidate]:
        """Proposed nodes as candidates, each kept, or refused for the rules that it breaks by itself."""
        names = {candidate.node.name for candidate in before}
        nodes: list[tuple[Node, str]] = []
        for reply in replies:
            name = unused_name(reply.id, names, number)
            names.add(name)
            nodes.append((reply.node(name, number, self.roots), reply.observation))
        held = kept_nodes(before)
        found: dict[str, NodeCandidate] = {}
        # Edits first: validations run on the tree with all of them.
        for kinds in (_BEFORE_EDITS, {NodeKind.CODE_EDIT}, {NodeKind.VALIDATION}):
            for node, claimed in nodes:
                if node.kind in kinds:
                    candidate = self._examine(node, claimed, held, number)
                    found[node.name] = candidate
                    held = [*held, candidate.node] if candidate.kept else held
        return [found[node.name] for node, _ in nodes]

    def _examine(self, node: Node, claimed: str, held: Sequence[Node], number: int) -> NodeCandidate:
        """A node as a candidate: kept with what its action printed, or refused. `held` are the nodes of the graph."""
        candidate = NodeCandidate(node, claimed, verdict_round=number)
        faults = [*form_faults(node), *self._leaks(node)]
        if faults:
            return candidate.ended(NodeVerdict.REFUSED, number, faults)
        earlier = self._edited(held)
        if node.kind is NodeKind.CODE_EDIT:
            try:
                replace(earlier, changed=dict(earlier.changed)).apply(node.action)
            except EditFault as fault:
                return candidate.ended(NodeVerdict.REFUSED, number, [NodeFault("R6", str(fault))])
        files = earlier.changed if node.kind is NodeKind.CODE_EDIT else files_for(node, _made(held), earlier.changed)
        replay = self.bench.observe(node.action, files)
        found = observation_fault(node, replay, claimed)
        if found is not None:
            return candidate.ended(NodeVerdict.REFUSED, number, [found])
        action = narrowed(node.action, "\n".join(replay.text.split("\n")[1:]), claimed, wide=self.options.wide_view)
        reasons: tuple[NodeFault, ...] = ()
        if action != node.action:
            reasons = (NodeFault("S2", f"narrowed from lines {node.action.first}-{node.action.last}"),)
            replay = self.bench.observe(action, files)
        kept = replace(node, action=action, observation=replay.text)
        return replace(candidate, node=kept, reasons=reasons)

    @cached_property
    def _leaks(self) -> LeakGate:
        here = frozenset(map(path_text, self._entries))
        target = self.target
        sources = frozenset(target.paths)
        return LeakGate(target.facts, target.hidden_paths, here, self.query, self._stands, self.roots, sources)

    def _stands(self, said: str) -> bool:
        """Whether a word, or a line but for its white space, stands in S_t."""
        if said.isidentifier():
            return bool(self.trees.words_at(self.target.start, [said]))
        texts = self.trees.texts(self.target.start)
        return any(
            " ".join(line.split()) == said for text in texts for line in text.decode("utf-8", "replace").split("\n")
        )

    @cached_property
    def _entries(self) -> Mapping[bytes, TreeEntry]:
        return self.trees.entries(self.target.start)

    def _judged(self, candidates: Sequence[NodeCandidate], reply: CriticReply, number: int) -> list[NodeCandidate]:
        """The candidates after the critic's verdicts. A revised node is examined like a proposed one. An edit takes the
        place of the one that it replaces, since later edits may stand on it; other nodes come last."""
        verdicts = {verdict.id: verdict for verdict in reply.verdicts}
        judged: list[NodeCandidate] = []
        names = {candidate.node.name for candidate in candidates}
        revised: list[NodeCandidate] = []
        for place, candidate in enumerate(candidates):
            verdict = verdicts.get(candidate.node.name) if candidate.kept else None
            if verdict is None or verdict.verdict == "keep":
                judged.append(candidate)
            elif verdict.verdict == "prune":
                judged.append(candidate.ended(NodeVerdict.PRUNE, number, verdict.faults()))
            else:
                assert verdict.patched_node is not None
                name = unused_name(candidate.node.name, names, 2)
                names.add(name)
                judged.append(candidate.ended(NodeVerdict.REVISE, number, verdict.faults()))
                patched, action = verdict.patched_node, candidate.node.action
                node = patched.node(name, number, self.roots)
                # The evidence of an action that stays may be left out.
                claimed = patched.observation or (candidate.claimed if node.action == action else "")
                if node.kind is candidate.node.kind is NodeKind.CODE_EDIT:
                    judged.append(self._examine(node, claimed, kept_nodes(candidates[:place]), number))
                    continue
                held = [node for node in kept_nodes(candidates) if node.name != candidate.node.name]
                revised.append(self._examine(node, claimed, held, number))
        return [*judged, *revised]

    def _settled(self, candidates: Sequence[NodeCandidate], number: int) -> list[NodeCandidate]:
        """The candidates after the rules of the set: equal claims merged (S1), edits that still apply (H6),
        validations that still print what they printed (H3), milestones in order (H4)."""
        settled = list(candidates)
        kept, merged = merge_equal(kept_nodes(settled))
        settled = _ended(
            settled,
            NodeVerdict.MERGED,
            number,
            {name: NodeFault("S1", f"{stays} makes the same claim") for name, stays in merged.items()},
        )
        edits = self._tree()
        faults = edits.apply_all([node for node in kept if node.kind is NodeKind.CODE_EDIT])
        settled = _refused(settled, number, {name: NodeFault("H6", words) for name, words in faults.items()})
        settled = _refused(settled, number, self._outdated(settled, edits))
        return _refused(settled, number, order_faults(kept_nodes(settled)))

    def _outdated(self, candidates: Sequence[NodeCandidate], edits: EditedTree) -> dict[str, NodeFault]:
        """Validations that print something else on the tree with these edits."""
        faults: dict[str, NodeFault] = {}
        nodes = kept_nodes(candidates)
        for candidate in candidates:
            node = candidate.node
            if candidate.kept and node.kind is NodeKind.VALIDATION:
                replay = self.bench.observe(node.action, files_for(node, _made(nodes), edits.changed))
                if (fault := observation_fault(node, replay, candidate.claimed)) is not None:
                    faults[node.name] = NodeFault("H3", fault.words)
        return faults

    def _tree(self) -> EditedTree:
        return EditedTree(self.trees, self._entries)

    def _edited(self, nodes: Iterable[Node]) -> EditedTree:
        edits = self._tree()
        edits.apply_all([node for node in nodes if node.kind is NodeKind.CODE_EDIT])
        return edits

    def mismatch(self, nodes: Iterable[Node]) -> dict[str, str]:
        """Path to what is wrong with it after the edits of these nodes, where they are not the reference (H6)."""
        return unlike(self._edited(nodes), self.target)

    def _code_feedback(self, candidates: Sequence[NodeCandidate], number: int) -> list[str]:
        """What the proposer is told of this round by code: what fell, by which rule, and what the edits lack."""
        told = [
            f"{candidate.node.name} ({candidate.node.statement[:_QUOTED]}) {_FELL[candidate.verdict]}: "
            f"{fault.rule}, {fault.words}"
            for candidate in candidates
            if candidate.verdict in _FELL and candidate.verdict_round == number
            for fault in candidate.reasons
        ]
        wrong = self.mismatch(kept_nodes(candidates))
        return told + [f"The edits are not the patch yet: {path}: {words}" for path, words in wrong.items()]

    # ---- the end

    def graph(self, state: GraphState) -> ProcessGraph:
        """The graph of the nodes that are kept. Raises `GitError`."""
        nodes = kept_nodes(state.candidates)
        named = {
            entity.text
            for node in nodes
            for entity in entities(without_marks(node.action.text), roots=self.roots, kinds=EDGE_KINDS)
            if entity.kind is EntityKind.NAME
        }
        return linked(
            nodes, self.query, defined=defined_names_at(self.trees, self.target.start, named), roots=self.roots
        )

    def outcome(self, state: GraphState, graph: ProcessGraph) -> tuple[str, str | None]:
        """The outcome of an ended graph, and the reason where it is not how its rounds ended."""
        wrong = self.mismatch(graph.nodes)
        if wrong:
            paths = "; ".join(f"{path}: {words}" for path, words in list(wrong.items())[:3])
            return INSUFFICIENT, f"after {state.rounds} rounds the edits are not the reference: {paths}"
        if graph.dropped_share > self.options.most_dropped:
            count, most = counted(len(graph.dropped), "edge"), self.options.most_dropped
            return CYCLIC, f"{count} would close a cycle, more than {most:.0%} of those by name"
        assert state.ending is not None
        return state.ending, None


_FELL = {
    NodeVerdict.REFUSED: "was refused",
    NodeVerdict.PRUNE: "was pruned by the critic",
    NodeVerdict.REVISE: "was replaced by the critic",
    NodeVerdict.MERGED: "was left out",
}
"""Verdicts of which the proposer is told, in words."""

_BEFORE_EDITS = set(NodeKind) - {NodeKind.CODE_EDIT, NodeKind.VALIDATION}


def _made(nodes: Iterable[Node]) -> dict[str, Node]:
    """Path to node of the scripts that reproductions create."""
    return {
        str(node.action.path): node
        for node in nodes
        if node.kind is NodeKind.REPRODUCE_SCRIPT and node.action.tool is ActionTool.CREATE
    }


def _refused(candidates: Sequence[NodeCandidate], number: int, faults: Mapping[str, NodeFault]) -> list[NodeCandidate]:
    return _ended(candidates, NodeVerdict.REFUSED, number, faults)


def _ended(
    candidates: Sequence[NodeCandidate], verdict: NodeVerdict, number: int, faults: Mapping[str, NodeFault]
) -> list[NodeCandidate]:
    return [
        candidate.ended(verdict, number, [faults[candidate.node.name]])
        if candidate.kept and candidate.node.name in faults
        else candidate
        for candidate in candidates
    ]
