"""Curated trajectories for people: the list, and the page of one with its windows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from prchain.core.console.terminal import counted, dollars, say, say_prose, say_table, shortened
from prchain.core.errors import UsageError
from sql.store import Store
from trajectories.curation.graphs.rows import find_graph
from trajectories.curation.windows.candidates import DROPPED, WindowCandidate
from trajectories.curation.windows.options import DEFAULTS
from trajectories.curation.windows.rows import StoredWindow, read_candidates, read_windows
from trajectories.curation.windows.settings import read_settings, settings_of, settings_words
from trajectories.privileged import CURATED
from trajectories.rollouts.report import ListedTrajectory, list_trajectories
from trajectories.rows import find_trajectory, stored_trajectory

_REASON = 160
_EVIDENCE = 80


def list_curated(
    store: Store, repository: str | None = None, chain: str | None = None, outcome: str | None = None
) -> list[ListedTrajectory]:
    """The curated trajectories, with the settings of their windows among the options. Raises `UsageError` for an
    unknown chain."""
    rows = list_trajectories(store, repository, chain, outcome, CURATED)
    with store.reading() as tx:
        settings = read_settings(tx)
    return [replace(row, options={**row.options, "windows": settings_words(settings[row.id])}) for row in rows]


def find_shown(store: Store, prefix: str) -> tuple[str | None, str | None]:
    """The graph or the trajectory whose id begins with `prefix`. Raises `UsageError` where none does, or several do."""
    found: list[str | None] = []
    errors = []
    with store.reading() as tx:
        for find in (find_graph, find_trajectory):
            try:
                found.append(find(tx, prefix))
            except UsageError as error:
                found.append(None)
                errors.append(str(error))
    graph, trajectory = found
    several = next((error for error in errors if error.startswith("several")), None)
    if several is not None or (graph and trajectory):
        raise UsageError(several or f"a graph's and a trajectory's id begin with {prefix}; write more of it")
    if graph is None and trajectory is None:
        raise UsageError(f"no id begins with {prefix!r}; `prchain curate list` and `list --graphs` list them")
    return graph, trajectory


def curated_page(store: Store, prefix: str) -> dict[str, Any]:
    """Everything that is stored of the windows of one curated trajectory. Raises `UsageError`."""
    shown = ("chain_id", "sample", "scaffold", "model", "outcome", "reason", "steps", "usd")
    with store.reading() as tx:
        name = find_trajectory(tx, prefix)
        row = stored_trajectory(tx, name)
        if row.scaffold != CURATED:
            raise UsageError(f"trajectory {name} was not curated; `prchain rollouts show {name}` prints it")
        windows = [(window, read_candidates(tx, window.key)) for window in read_windows(tx, name)]
    return {
        "id": name,
        **{column: getattr(row, column) for column in shown},
        "options": {**DEFAULTS, **settings_of(row.decided_by)},
        "settings": settings_words(settings_of(row.decided_by)),
        "decided_by": (row.decided_by or {}).get("curation", {}),
        "effectiveness": sum(_committed(window, candidates) for window, candidates in windows),
        "windows": [_window_row(window, candidates) for window, candidates in windows],
    }


def _committed(window: StoredWindow, candidates: list[WindowCandidate]) -> float:
    """Prog of the steps that a window committed: their sum is the trajectory's Eff (P2T, appendix E)."""
    chosen = [candidate for candidate in candidates if candidate.number == window.chosen]
    return sum(step.progress for candidate in chosen for step in candidate.progress[: window.committed])


def _window_row(window: StoredWindow, candidates: list[WindowCandidate]) -> dict[str, Any]:
    return {
        "stage": window.key.position,
        "number": window.key.number,
        "graph": window.graph_id,
        "step": window.step,
        "frontier": list(window.frontier),
        "established": sorted(window.standing.established),
        "waiting": sorted(window.standing.waiting),
        "floor": window.floor,
        "chosen": window.chosen,
        "how": window.how,
        "committed": window.committed,
        "leftovers": window.leftovers,
        "seconds": window.seconds,
        "candidates": [_candidate_row(candidate) for candidate in candidates],
    }


def _candidate_row(candidate: WindowCandidate) -> dict[str, Any]:
    return {
        "number": candidate.number,
        "kind": "seed" if candidate.is_seed else "variant",
        "seed": candidate.seed,
        "place": candidate.place,
        "target": candidate.target,
        "outcome": candidate.outcome,
        "reason": candidate.reason,
        "steps": len(candidate.steps),
        "progress": [step.progress for step in candidate.progress],
        "counted": [list(step.counted) for step in candidate.progress],
        "premature": [list(step.premature) for step in candidate.progress],
        "grounded": candidate.grounded,
        "effectiveness": candidate.effectiveness,
        "length": candidate.length,
        "rewrite": candidate.rewrite,
        "faults": [fault._asdict() for fault in candidate.faults],
        "establishments": [{"node": it.node, "step": it.step, "evidence": it.evidence} for it in candidate.established],
        "notes": list(candidate.notes),
        "verifier_calls": candidate.verifier_calls,
        "usd": candidate.usd,
        "seconds": candidate.seconds,
    }


def print_windows(page: dict[str, Any]) -> None:
    """Print a page: each window as a table of its candidates, the chosen one marked."""
    say(f"trajectory {page['id']}: {page['outcome']}, {counted(page['steps'], 'step')}, {dollars(page['usd'])}")
    if page["reason"]:
        say_prose(f"reason: {page['reason']}", indent=2)
    windows = counted(len(page["windows"]), "window")
    say(f"  chain {page['chain_id']}, sample {page['sample']}; {page['model']}")
    say_prose(f"settings of windows: {page['settings']}", indent=2)
    say(f"  Eff {page['effectiveness']:.2f} of the steps that {windows} committed")
    for window in page["windows"]:
        say()
        print_window(window)


def print_window(window: dict[str, Any]) -> None:
    """Print one window of a page as a table of its candidates, the chosen one marked."""
    say(
        f"stage {window['stage']}, window {window['number']}, after step {window['step']}: "
        f"{counted(len(window['established']), 'node')} established, floor {window['floor']:g}"
    )
    say_prose(f"frontier: {', '.join(window['frontier']) or 'empty'}", indent=2)
    say_table(
        ("", "candidate", "Eff", "Len", "steps", "ground", "established"),
        [_line(candidate, window) for candidate in window["candidates"]],
    )
    for candidate in window["candidates"]:
        if candidate["outcome"] in DROPPED:
            words = f"{_title(candidate)}: {candidate['outcome']}: {candidate['reason'] or 'no reason given'}"
            say_prose(shortened(words, _REASON), indent=2)
    if window["chosen"] is not None:
        ended = f"; {counted(window['leftovers'], 'background process')} ended" if window["leftovers"] else ""
        steps = f"{counted(window['committed'], 'step')} of candidate {window['chosen']}"
        say(f"  committed {steps} ({window['how']}){ended}")


def took_variant(window: dict[str, Any]) -> bool:
    """Whether the chosen candidate of a page's window has a rewritten step."""
    return any(it["number"] == window["chosen"] and it["kind"] == "variant" for it in window["candidates"])


def _line(candidate: dict[str, Any], window: dict[str, Any]) -> tuple[str, ...]:
    names = [name for step in candidate["counted"] for name in step]
    early = [f"({name})" for step in candidate["premature"] for name in step]
    ground = {True: "yes", False: "no", None: ""}[candidate["grounded"]]
    return (
        "*" if candidate["number"] == window["chosen"] else "",
        _title(candidate),
        f"{candidate['effectiveness']:.2f}",
        f"{candidate['length']:,}",
        str(candidate["steps"]),
        ground,
        shortened(" ".join([*names, *early]), _EVIDENCE),
    )


def _title(candidate: dict[str, Any]) -> str:
    if candidate["kind"] == "seed":
        return f"{candidate['number']} seed"
    towards = f" at {candidate['place'] + 1} to {candidate['target']}" if candidate["target"] else ""
    return f"{candidate['number']} on {candidate['seed']}{towards}"
