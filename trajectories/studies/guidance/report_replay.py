"""What a replay found: detections by category and by outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import select

from prchain.core.console.terminal import counted, say, say_table
from prchain.core.errors import UsageError
from sql.store import Store, Transaction
from sql.tables import PrmFinding, PrmWindow, Trajectory
from trajectories.agents.guidance.reading import MODEL
from trajectories.agents.guidance.variants import VARIANTS
from trajectories.studies.guidance.agreement import Score, Share, print_scores
from trajectories.studies.guidance.stored import LIVE, ReadingChoice

_LONGEST = 30


def replay_row(store: Store, replay: str, trajectories: Collection[str]) -> dict[str, Any]:
    """Counts of a replay's windows over these trajectories: how many, faults, suboptimal ones, and by category how
    many windows of which outcome; those of detectors apart."""
    wanted = set(trajectories)
    windows: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    found: dict[str, dict[str, Counter[str]]] = {"model": {}, "detectors": {}}
    suboptimal = unquoted = 0
    outcome_of: dict[str, str] = {}
    with store.reading() as tx:
        query = (
            select(PrmWindow.id, PrmWindow.trajectory_id, Trajectory.outcome, PrmWindow.fault, PrmWindow.suboptimal)
            .join(Trajectory, Trajectory.id == PrmWindow.trajectory_id)
            .where(PrmWindow.replay == replay)
        )
        for id_, trajectory, outcome, fault, bad in tx.connection.execute(query):
            if trajectory in wanted:
                outcome_of[id_] = outcome
                windows[outcome] += 1
                faults[fault or ""] += 1
                suboptimal += bool(bad)
        findings = select(PrmFinding.window_id, PrmFinding.category, PrmFinding.found_by, PrmFinding.kept).join(
            PrmWindow, PrmWindow.id == PrmFinding.window_id
        )
        seen = set()
        for id_, category, found_by, kept in tx.connection.execute(findings.where(PrmWindow.replay == replay)):
            if id_ not in outcome_of:
                continue
            unquoted += not kept
            who, what = ("model", category) if found_by == MODEL else ("detectors", found_by)
            if kept and (id_, who, what) not in seen:
                seen.add((id_, who, what))
                found[who].setdefault(what, Counter())[outcome_of[id_]] += 1
    faults.pop("", None)
    detected = {
        who: {what: dict(sorted(counts.items())) for what, counts in sorted(of.items())} for who, of in found.items()
    }
    return {
        "replay": replay,
        "windows": sum(windows.values()),
        "by_outcome": dict(sorted(windows.items())),
        "suboptimal": suboptimal,
        "unquoted": unquoted,
        "faults": {name: count for name, count in sorted(faults.items(), key=str) if name},
        "detected": detected,
    }


def print_replay(row: Mapping[str, Any]) -> None:
    """Print the counts in 80 columns."""
    faults = "".join(f", {count:,} {name}" for name, count in row["faults"].items())
    say(f"replay {row['replay']}: {counted(row['windows'], 'window')}, {row['suboptimal']:,} suboptimal{faults}")
    outcomes = list(row["by_outcome"])
    for who, words in (("model", "detected by the model"), ("detectors", "found by code")):
        found = row["detected"][who]
        if found:
            cells = [(what[:_LONGEST], *(counts.get(name, 0) for name in outcomes)) for what, counts in found.items()]
            say_table((f"windows: {words}", *outcomes), cells)
    if row["unquoted"]:
        say(f"{counted(row['unquoted'], 'finding')} dropped: what it quotes stands nowhere in the window")
    if "scores" in row:
        print_scores({name: _score(values) for name, values in row["scores"].items()})


def _score(values: Mapping[str, Any]) -> Score:
    shares = {name: None if values[name] is None else Share(**values[name]) for name in ("precision", "recall")}
    return Score(**{**values, **shares})


def reading_choice(tx: Transaction, name: str) -> ReadingChoice:
    """The readings that a user names: ``live``, a variant, or a replay by the beginning of its id.

    Raises `UsageError` where nothing, or more than one replay, has that name.
    """
    if name == LIVE:
        return ReadingChoice(replay=LIVE)
    replays = {row[0]: row[1] for row in tx.rows(PrmWindow, "replay", "variant") if row[0] is not None}
    chosen = sorted(
        replay
        for replay, variant in replays.items()
        if (variant == name if name in VARIANTS else replay.startswith(name))
    )
    if len(chosen) == 1:
        return ReadingChoice(replay=chosen[0])
    if not chosen:
        raise UsageError(f"there is no replay {name!r}; `prchain prm replay` makes them")
    raise UsageError(f"{name!r} is the name of {len(chosen)} replays: {', '.join(chosen)}")
