"""How near chosen chains come to the best: `python -m research.optimality [--graphs N] [--nodes N]`.

The best is found by trying every way to cut a small graph into paths, in code that shares nothing with `chains`. With
`--db FILE --mirrors FOLDER`: the largest components of mined repositories, cut in the order of landing to at most 3,000
edges, beside the upper bound of a linear programme (`research.path_bound`).
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from chains import outcomes
from chains.choice.select import choose_chains
from chains.edges.graph import Edge, build_graph, components
from research.evidence.population import populations
from research.path_bound import upper_bound
from sql.store import Store

Edges = Mapping[tuple[int, int], float]
"""(later, earlier) -> confidence."""

CONFIDENCES = (0.3, 0.36, 0.42, 0.5, 0.6, 0.6, 0.6, 0.7, 0.8, 0.8, 0.9, 0.95, 1.0)


def best_total(edges: Edges, shortest: int, longest: int) -> float:
    """The greatest sum of confidences of disjoint paths within the limits; the nodes' numbers are their order."""
    nodes = sorted({node for edge in edges for node in edge})
    bit = {node: 1 << index for index, node in enumerate(nodes)}
    successors: dict[int, list[tuple[int, float]]] = {node: [] for node in nodes}
    for (later, earlier), confidence in edges.items():
        successors[earlier].append((later, confidence))

    @cache
    def best(free: int) -> float:
        if not free:
            return 0.0
        first = nodes[(free & -free).bit_length() - 1]
        top = best(free & ~bit[first])
        walks = [(first, free & ~bit[first], 0.0, 1)]
        while walks:
            node, rest, total, size = walks.pop()
            if size >= shortest:
                top = max(top, total + best(rest))
            if size < longest:
                walks += [
                    (later, rest & ~bit[later], total + confidence, size + 1)
                    for later, confidence in successors[node]
                    if rest & bit[later]
                ]
        return top

    return best((1 << len(nodes)) - 1)


def total(edges: Edges, chains: Sequence[Sequence[int]]) -> float:
    """The sum of the confidences that the chains use."""
    return sum(edges[later, earlier] for chain in chains for earlier, later in pairwise(chain))


def tree(rng: random.Random, size: int) -> Edges:
    """Each pull request cites an earlier one."""
    return {(node, rng.randrange(node)): rng.choice(CONFIDENCES) for node in range(1, size)}


def star(rng: random.Random, size: int) -> Edges:
    """Few hubs that most others cite."""
    hubs = rng.randint(1, 3)
    edges = {(node, rng.randrange(min(hubs, node))): rng.choice(CONFIDENCES) for node in range(1, size)}
    for _ in range(size // 3):
        earlier, later = sorted(rng.sample(range(size), 2))
        edges[later, earlier] = rng.choice(CONFIDENCES)
    return edges


def path(rng: random.Random, size: int) -> Edges:
    """One long history, with a few shortcuts."""
    edges = {(node, node - 1): rng.choice(CONFIDENCES) for node in range(1, size)}
    for _ in range(rng.randint(0, 3)):
        earlier, later = sorted(rng.sample(range(size), 2))
        edges[later, earlier] = rng.choice(CONFIDENCES)
    return edges


def near(rng: random.Random, size: int) -> Edges:
    """Each pull request cites one or two that landed shortly before."""
    return {
        (node, max(0, node - rng.choice((1, 1, 2, 2, 3, 4)))): rng.choice(CONFIDENCES)
        for node in range(1, size)
        for _ in range(rng.randint(1, 2))
    }


def dense(rng: random.Random, size: int) -> Edges:
    """Many edges of any span."""
    share = rng.uniform(0.2, 0.7)
    edges = {
        (later, earlier): rng.choice(CONFIDENCES)
        for later in range(size)
        for earlier in range(later)
        if rng.random() < share
    }
    return edges or {(1, 0): 0.5}


def even(rng: random.Random, size: int) -> Edges:
    """Few different confidences, so that many choices are equal."""
    return {edge: rng.choice((0.6, 0.6, 0.8)) for edge in {**near(rng, size), **star(rng, size)}}


SHAPES: Mapping[str, Callable[[random.Random, int], Edges]] = {
    shape.__name__: shape for shape in (tree, star, path, near, dense, even)
}
LIMITS = ((2, 5), (2, 3), (2, 2), (3, 5), (3, 3), (4, 5))


@dataclass(frozen=True, slots=True)
class Ratio:
    """The share of the best total that was reached on some graphs."""

    shape: str
    limits: tuple[int, int]
    average: float
    worst: float
    optimal: int
    graphs: int


def ratios(graphs: int, nodes: int, exact: int, seed: int = 1) -> list[Ratio]:
    """Each shape with each pair of limits, on `graphs` graphs of up to `nodes` nodes."""
    found = []
    for shape, make in SHAPES.items():
        for limits in LIMITS:
            rng = random.Random(f"{seed} {shape} {limits}")
            shares: list[float] = []
            while len(shares) < graphs:
                edges = make(rng, rng.randint(min(5, nodes), nodes))
                if (best := best_total(edges, *limits)) > 0:
                    graph = build_graph(Edge(*edge, "mentions", edges[edge]) for edge in edges)
                    chains = choose_chains(graph, shortest=limits[0], longest=limits[1], exact=exact)
                    shares.append(total(edges, chains) / best)
            optimal = sum(share > 1 - 1e-9 for share in shares)
            found.append(Ratio(shape, limits, sum(shares) / len(shares), min(shares), optimal, len(shares)))
    return found


MOST_EDGES = 3_000
"""Of a component; the linear programme has four variables for each."""


def first_edges(edges: Edges, most: int) -> dict[tuple[int, int], float]:
    """The edges among the first pull requests of a graph, as many as have at most `most` edges among them."""
    found: dict[tuple[int, int], float] = {}
    by_later: dict[int, list[tuple[int, int]]] = {}
    for edge in edges:
        by_later.setdefault(max(edge), []).append(edge)
    for node in sorted(by_later):
        if len(found) + len(by_later[node]) > most:
            break
        found |= {edge: edges[edge] for edge in by_later[node]}
    return found


def bounded(edges: Edges, longest: int) -> tuple[float, float]:
    """The weight of the chains that are chosen, and the bound."""
    graph = build_graph(Edge(*edge, "mentions", edges[edge]) for edge in edges)
    return total(edges, choose_chains(graph, longest=longest)), upper_bound(edges, longest)


def print_bounds(db: str, mirrors: Path, floor: float) -> int:
    """Print, for each mined repository, what was chosen of its largest component beside the bound."""
    worst = 1.0
    with closing(Store.open(db, create=False)) as store:
        for population in populations(store, mirrors):
            kept = [
                link.edge
                for link in population.survey.links
                if link.outcome == outcomes.KEPT and link.edge.confidence >= floor
            ]
            largest = components(build_graph(kept))[0] if kept else set()
            whole = {(edge.source, edge.target): edge.confidence for edge in kept if edge.source in largest}
            edges = first_edges(whole, MOST_EDGES)
            if edges:
                chosen, bound = bounded(edges, 5)
                worst = min(worst, chosen / bound)
                share = f"{chosen / bound:.1%} of the bound {bound:.1f}"
                print(f"{population.mined.full_name}: {len(edges):,} of {len(whole):,} edges: {chosen:.1f}, {share}")
    print(f"worst {worst:.1%}")
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ratios; exit code 1 where the average is below 95 % of the best."""
    parser = argparse.ArgumentParser(prog="python -m research.optimality", description=__doc__)
    parser.add_argument("--graphs", type=int, default=25, metavar="N", help="of each shape and limits (default: 25)")
    parser.add_argument("--nodes", type=int, default=11, metavar="N", help="at most in a graph (default: 11)")
    parser.add_argument("--exact", type=int, default=0, metavar="N", help="edges up to which no heuristic is used")
    parser.add_argument("--db", help="instead: a database of a finished `prchain mine`")
    parser.add_argument("--mirrors", type=Path, default=Path("data/mirrors"), metavar="FOLDER")
    parser.add_argument("--floor", type=float, default=0.5, help="of the edges of --db (default: 0.5)")
    options = parser.parse_args(arguments)
    if options.db:
        return print_bounds(options.db, options.mirrors, options.floor)
    rows = ratios(options.graphs, options.nodes, options.exact)
    print(f"{'shape':8}{'limits':9}{'average':>9}{'worst':>9}{'best found':>14}")
    for row in rows:
        limits = f"{row.limits[0]}..{row.limits[1]}"
        print(f"{row.shape:8}{limits:9}{row.average:9.4f}{row.worst:9.4f}{row.optimal:8} of {row.graphs}")
    average = sum(row.average for row in rows) / len(rows)
    print(f"all: average {average:.4f}, worst {min(row.worst for row in rows):.4f}")
    return 0 if average >= 0.95 else 1


if __name__ == "__main__":
    sys.exit(main())
