"""The readings as rows without any text of a repository: `replays.csv`."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from prchain.core.errors import IncompleteRepository, UsageError
from research.prm_replays.references import References
from research.prm_windows.conversation import RealTrajectory
from sql.store import Store
from sql.tables import PrmFinding, PrmWindow
from trajectories.agents.guidance.window import StepWindow

REPLAYS = Path(__file__).with_name("replays.csv")


@dataclass(frozen=True)
class Replayed:
    """One reading of a window. `categories` and `detectors` are names with commas between; of the model's findings
    `unquoted` were dropped; `leaks` counts what only the reference has, empty where its mirror is not whole; `score`
    and `unjustified` are a second reader's: of what use the words are, 1 to 5, and findings that are not borne out."""

    variant: str
    trajectory: str
    last_step: int
    status: str
    suboptimal: str
    categories: str
    detectors: str
    unquoted: int
    fault: str
    usd: float
    leaks: str
    score: str
    unjustified: str


def read_table(path: Path) -> list[Replayed]:
    """The rows of a file. Raises `UsageError` for a file that is none of these."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [_row(values) for values in csv.DictReader(file)]
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"the readings {path} cannot be read: {error!r}") from None


def _row(values: Mapping[str, str]) -> Replayed:
    texts = {field.name: values[field.name] for field in fields(Replayed)}
    taken: dict[str, Any] = {**texts, "usd": float(texts["usd"])}
    return Replayed(**taken | {name: int(texts[name]) for name in ("last_step", "unquoted")})


def write_table(rows: Iterable[Replayed], path: Path) -> None:
    """Write the rows, by variant and trajectory. Raises `OSError`."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Replayed)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(rows, key=lambda it: (it.variant, it.trajectory)))


Scores = Mapping[tuple[str, str], tuple[str, str]]
"""Variant and trajectory to the second reader's score and the number of findings that are not borne out."""


def read_scores(path: Path | None) -> Scores:
    """Those of a file with the columns variant, trajectory, score, unjustified. Raises `UsageError`."""
    if path is None:
        return {}
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return {
                (row["variant"], row["trajectory"]): (row["score"], row["unjustified"]) for row in csv.DictReader(file)
            }
    except (OSError, UnicodeDecodeError, KeyError) as error:
        raise UsageError(f"the scores {path} cannot be read: {error!r}") from None


def stored_readings(
    database: Path,
    chosen: Mapping[str, tuple[RealTrajectory, StepWindow]],
    references: References,
    scores: Scores,
) -> Iterator[Replayed]:
    """The readings in a database that `prchain prm replay` has filled. Raises `PrchainError`."""
    columns = ("id", "trajectory_id", "variant", "status", "suboptimal", "guidance", "fault", "usd")
    with closing(Store.open(str(database))) as store, store.transaction() as tx:
        findings = list(tx.rows(PrmFinding, "window_id", "category", "found_by", "recovery", "kept"))
        for key, name, variant, status, suboptimal, guidance, fault, usd in tx.rows(PrmWindow, *columns):
            own = [it for it in findings if it[0] == key]
            trajectory, window = chosen[name]
            words = "\n".join(filter(None, (guidance, *(it[3] for it in own if it[2] == "model" and it[4]))))
            score, unjustified = scores.get((variant, name), ("", ""))
            yield Replayed(
                variant,
                name,
                window.last,
                status or "",
                "" if suboptimal is None else json.dumps(bool(suboptimal)),
                ",".join(it[1] for it in own if it[2] == "model" and it[4]),
                ",".join(it[1] for it in own if it[2] != "model"),
                sum(not it[4] for it in own),
                fault or "",
                round(usd or 0.0, 6),
                _leaks(references, trajectory, window, words),
                score,
                unjustified,
            )


def _leaks(references: References, trajectory: RealTrajectory, window: StepWindow, words: str) -> str:
    try:
        return str(len(references.leaks(trajectory, window.last, words)))
    except IncompleteRepository:
        return ""
