"""The process graph: nodes linked by what has to be known before (P2T, section 4.1 and appendix D).

An edge u -> v is drawn where v's action names an entity that u was first to show, in the order in which nodes were
made, and that the query does not hold; or where v is a milestone of the kind that follows u's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise, product

import networkx as nx

from prchain.core.code.identifiers import definitions, is_code_name
from prchain.core.git.repository import GitRepository
from prchain.core.leaks.vocabulary import is_plain
from trajectories.agents.steps.entities import EDGE_KINDS, Entity, EntityKind, Place, entities, places
from trajectories.curation.graphs.nodes import MILESTONES, ActionTool, Node
from trajectories.curation.graphs.surfaced import Surfaced

_HERE = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(['\"]?)(\w{1,40})\1")

_NAMES = (EntityKind.NAME, EntityKind.DEFINED)

ORDER = "order"
"""The rule of an edge between milestones; other edges have an entity instead."""


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """An edge: the node `source` comes before the node `target`. `reason` is the entity, or `ORDER`."""

    source: str
    target: str
    reason: str


@dataclass(frozen=True)
class ProcessGraph:
    """Nodes in the order in which they were made, and the edges between them, which have no cycle."""

    nodes: tuple[Node, ...]
    edges: tuple[Prerequisite, ...]
    dropped: tuple[Prerequisite, ...] = field(default=())
    """Edges that would have closed a cycle."""

    @cached_property
    def digraph(self) -> nx.DiGraph[str]:
        """The names of the nodes and their edges."""
        digraph: nx.DiGraph[str] = nx.DiGraph()
        digraph.add_nodes_from(node.name for node in self.nodes)
        digraph.add_edges_from((edge.source, edge.target) for edge in self.edges)
        return digraph

    @cached_property
    def levels(self) -> Mapping[str, int]:
        """Name to level: 0 for a node that needs no other, else one more than the highest of its predecessors."""
        generations = enumerate(nx.topological_generations(self.digraph))
        return {name: level for level, names in generations for name in names}

    @property
    def dropped_share(self) -> float:
        """The share of edges between what is shown and what is named that would have closed a cycle."""
        named = sum(edge.reason != ORDER for edge in self.edges) + len(self.dropped)
        return len(self.dropped) / named if named else 0.0

    def predecessors(self, name: str) -> set[str]:
        """The names of the nodes that have to be established before a node."""
        return set(self.digraph.predecessors(name))

    def frontier(self, established: Collection[str]) -> set[str]:
        """The names of the nodes that are not established and whose predecessors all are (A_t; P2T, section 4.1)."""
        known = set(established)
        return {node.name for node in self.nodes if node.name not in known and self.predecessors(node.name) <= known}


def linked(
    nodes: Sequence[Node], query: str, *, defined: Collection[str] = (), roots: Collection[str] = ()
) -> ProcessGraph:
    """The graph of these nodes, which are in the order in which they were made.

    `query` is the text that an agent begins with. Of single names only those in `defined` count: what S_t defines
    (`defined_names_at`). `roots` are the folders in which the repository may lie. Of the edges of a cycle, the one that
    is made last is dropped: those between milestones are made first, then those of each node in its turn.
    """
    names = frozenset(defined)
    made = dict[tuple[str, str], Prerequisite]()
    dropped: list[Prerequisite] = []
    digraph: nx.DiGraph[str] = nx.DiGraph()
    digraph.add_nodes_from(node.name for node in nodes)
    for edge in (*_order(nodes), *_shown_first(nodes, query, names, roots)):
        pair = (edge.source, edge.target)
        if pair in made:
            continue
        if nx.has_path(digraph, edge.target, edge.source):
            dropped.append(edge)
            continue
        digraph.add_edge(*pair)
        made[pair] = edge
    unique = {(edge.source, edge.target): edge for edge in reversed(dropped)}
    return ProcessGraph(tuple(nodes), tuple(made.values()), tuple(reversed(unique.values())))


def _order(nodes: Sequence[Node]) -> Iterator[Prerequisite]:
    """From every milestone to those of the next kind that is present."""
    kinds = [[node for node in nodes if node.kind is kind] for kind in MILESTONES]
    for before, after in pairwise(filter(None, kinds)):
        for source, target in product(before, after):
            yield Prerequisite(source.name, target.name, ORDER)


def _shown_first(
    nodes: Sequence[Node], query: str, defined: frozenset[str], roots: Collection[str]
) -> Iterator[Prerequisite]:
    """From the node that is first to show what a node's action names, unless it is that node or the query. Texts that
    an agent writes itself show what they name to no other node, and need no later one to show it."""
    shown = [_surfaced(node.shown, defined, roots) for node in nodes]
    lines = [list(_places(node, roots)) for node in nodes]
    told = _surfaced(query, defined, roots)
    for number, node in enumerate(nodes):
        for entity in sorted(_named(without_marks(node.action.text), defined, roots), key=_order_of):
            if told.holds(entity):
                continue
            earlier = shown[:number] if node.written else shown
            first = next((place for place, surfaced in enumerate(earlier) if surfaced.holds(entity)), number)
            if first != number:
                yield Prerequisite(nodes[first].name, node.name, entity.text)
        if node.action.tool is ActionTool.VIEW:
            wanted = _view(node)
            first = next((at for at, own in enumerate(lines) if any(_overlap(wanted, it) for it in own)), number)
            if first != number:
                yield Prerequisite(nodes[first].name, node.name, f"{wanted.path}:{wanted.first}-{wanted.last}")


def without_marks(text: str) -> str:
    """A command without the words that only mark where its here-documents end: they name nothing."""
    words = {match[2] for match in _HERE.finditer(text)}
    if not words:
        return text
    return "\n".join(line for line in _HERE.sub(" ", text).split("\n") if line.strip() not in words)


def _order_of(entity: Entity) -> tuple[str, str]:
    return (entity.kind, entity.text)


def _surfaced(text: str, defined: frozenset[str], roots: Collection[str]) -> Surfaced:
    surfaced = Surfaced()
    surfaced.add(_named(text, defined, roots))
    return surfaced


def _named(text: str, defined: frozenset[str], roots: Collection[str]) -> list[Entity]:
    found = entities(text, roots=roots, kinds=EDGE_KINDS)
    return [entity for entity in found if entity.kind not in _NAMES or entity.text in defined]


def _view(node: Node) -> Place:
    """The lines of a view, whose path is from the root already. Not read from text: a path may hold anything."""
    action = node.action
    return Place(str(action.path), int(action.first or 0), int(action.last or 0))


def _places(node: Node, roots: Collection[str]) -> Iterator[Place]:
    """The lines of files that a node shows or names in what it shows."""
    if node.action.tool is ActionTool.VIEW:
        yield _view(node)
        return
    yield from places(node.observation, roots=roots)
    named = {entity.text for entity in entities(node.action.text, roots=roots, kinds=frozenset({EntityKind.PATH}))}
    if node.action.tool is ActionTool.BASH and len(named) == 1:  # grep -n of one file prints no path
        [path] = named
        for line in node.observation.splitlines():
            number = line.partition(":")[0]
            if number.isdecimal() and len(number) < 8:
                yield Place(path, int(number), int(number))


def _overlap(one: Place, other: Place) -> bool:
    return one.path == other.path and one.first <= other.last and other.first <= one.last


def defined_names_at(git: GitRepository, tree: str, names: Iterable[str]) -> set[str]:
    """Those of `names` that some file of a tree defines and that are no plain words: functions, classes, constants, and
    fields and parameters in the shape of code. Raises `GitError`."""
    wanted = sorted({name for name in names if name.isidentifier() and (is_code_name(name) or not is_plain(name))})
    if not wanted:
        return set()
    lines: dict[str, list[str]] = {}
    arguments = ("grep", "-I", "-z", "--no-color", "-w", "-F", "-f", "-", tree, "--")
    with git.stream(*arguments, lines=wanted, fine=(0, 1)) as output:
        for row in output.read().decode("utf-8", "replace").split("\n"):
            path, separator, line = row.partition("\0")
            if separator:
                lines.setdefault(path.partition(":")[2], []).append(line)
    found: set[str] = set()
    for path, texts in lines.items():
        named = definitions(texts, path)
        found |= named.strong | {name for name in named.weak if is_code_name(name)}
    return found & set(wanted)
