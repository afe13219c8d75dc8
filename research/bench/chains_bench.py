"""From the edges of a large graph to chains: time and memory, in a process of its own.

`python -m research.bench.chains_bench PULLS EDGES_EACH` prints what one run measured as JSON. Citations give about two
edges a pull request; all evidence, where every floor is off, up to ten.
"""

from __future__ import annotations

import gc
import json
import random
import sys
import time
from collections import Counter
from itertools import pairwise

from chains.choice.select import choose_chains
from chains.edges.graph import Edge, build_graph, components
from research.bench.child import peak_bytes
from research.bench.git_bench import timed
from research.bench.measures import Measure

PULLS = 200_000
SECONDS_GOAL, PEAK_GOAL = 20.0, 1024.0
EVIDENCE_EACH, EVIDENCE_SECONDS_GOAL, EVIDENCE_PEAK_GOAL = 10, 60.0, 2048.0
_CONFIDENCES = (0.3, 0.36, 0.42, 0.56, 0.6, 0.6, 0.6, 0.63, 0.8, 0.8, 0.9, 0.95)


def rows(pulls: int, each: int = 2, seed: int = 1) -> list[tuple[int, int, float]]:
    """`each` times as many edges (source, target, confidence) as pull requests.

    Three of ten pull requests are one component, with hubs: a fourth of its citations go to pull requests that are
    cited already. The others are small groups. Most edges are short in landing order.
    """
    rng = random.Random(seed)
    giant: list[int] = []
    others: list[int] = []
    for number in range(1, pulls + 1):
        (giant if rng.random() < 0.3 else others).append(number)
    edges: dict[tuple[int, int], float] = {}
    start = 0
    while start < len(others):
        group = others[start : start + 2 + min(28, int(rng.expovariate(1 / 3)))]
        start += len(group)
        for index in range(1, len(group)):
            for _ in range(1 + (rng.random() < 0.35)):
                earlier = max(0, index - 1 - int(rng.expovariate(1 / 1.5)))
                edges[group[index], group[earlier]] = rng.choice(_CONFIDENCES)
    cited: list[int] = []
    while len(edges) < each * pulls:
        index = rng.randrange(1, len(giant))
        hub = bool(cited) and rng.random() < 0.25
        earlier = rng.choice(cited) if hub else index - 1 - int(rng.expovariate(1 / (20 * each)))
        if 0 <= earlier < index:
            cited.append(earlier)
            edges[giant[index], giant[earlier]] = rng.choice(_CONFIDENCES)
    return [(source, target, confidence) for (source, target), confidence in edges.items()]


def measure(pulls: int, each: int) -> dict[str, object]:
    """One run: seconds of both parts, the peak memory of this process, and the result."""
    gc.set_threshold(200_000, 20, 50)  # as the commands do
    edges = rows(pulls, each)
    processor, started = time.process_time(), time.perf_counter()
    graph = build_graph(Edge(source, target, "mentions", confidence) for source, target, confidence in edges)
    built = time.perf_counter()
    chains = choose_chains(graph)
    chosen = time.perf_counter()
    processor = time.process_time() - processor
    peak = peak_bytes()
    sizes = sorted(Counter(map(len, chains)).items())
    confidence = sum(graph[b][a]["confidence"] for chain in chains for a, b in pairwise(chain))
    return {
        "edges": graph.number_of_edges(),
        "build": built - started,
        "choose": chosen - built,
        "processor": processor,
        "peak": peak / 1e6,
        "largest": len(components(graph)[0]),
        "chains": len(chains),
        "sizes": ", ".join(f"{count:,} of {size}" for size, count in sizes),
        "confidence": confidence,
    }


def run(pulls: int = PULLS) -> list[Measure]:
    """Measure with so many generated pull requests, with edges as citations give them and as all evidence does."""
    return [
        *_run(pulls, 2, SECONDS_GOAL, PEAK_GOAL),
        *_run(pulls, EVIDENCE_EACH, EVIDENCE_SECONDS_GOAL, EVIDENCE_PEAK_GOAL),
    ]


def _run(pulls: int, each: int, seconds: float, peak: float) -> list[Measure]:
    process = timed([sys.executable, "-m", "research.bench.chains_bench", str(pulls), str(each)], keep_output=True)
    if process.status:
        raise RuntimeError(f"choosing chains fails: {process.errors.strip()[-300:]}")
    figures = json.loads(process.output)
    name = f"chains, of {pulls:,} generated pull requests with {each} edges each"
    return [
        Measure(name, "edges", figures["edges"]),
        Measure(name, "pull requests in the largest component", figures["largest"]),
        Measure(name, "edges to graph", figures["build"], "s"),
        Measure(name, "graph to chains", figures["choose"], "s"),
        Measure(name, "edges to chains", figures["build"] + figures["choose"], "s", seconds),
        Measure(name, "processor time of edges to chains", figures["processor"], "s", note="for a busy machine"),
        Measure(name, "peak memory of edges to chains", figures["peak"], "MB", peak),
        Measure(name, "chains", figures["chains"], note=figures["sizes"]),
        Measure(name, "total confidence", figures["confidence"]),
    ]


if __name__ == "__main__":
    print(json.dumps(measure(*map(int, sys.argv[1:]))))
