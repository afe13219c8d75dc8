"""What a process reward model costs besides its model: the observer of each step, a replay, the reading of a reply.

The model is one of this process that answers at once with the same reply of `REPLY` characters. The observer is called
after every step of a conversation that grows, and what it says is inserted, as the loop does.

`python -m research.bench.prm_bench DATABASE` replays the trajectories of a database, and prints what that took as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import event

from prchain.core.leaks import Finding
from prchain.core.llm.gateway import Gateway, Route
from prchain.core.llm.ledger import Ledger
from prchain.core.llm.model import Reply, Request, Usage
from prchain.core.llm.price import Price
from prchain.core.llm.replies import UnfitReply
from research.bench.child import peak_bytes
from research.bench.durations import Duration, clock, fastest
from research.bench.git_bench import timed
from research.bench.hidden import hidden_content
from research.bench.measures import Measure
from research.bench.rollout_bench import OUTPUT, STEPS, begin_rows
from research.bench.watched import OVERVIEW, QUERY, TOOLS, source, worked_stage
from sql.ledger import SqlLedger
from sql.store import Store
from tests.memory_ledger import MemoryLedger
from trajectories.agents.guidance.observer import make_prm
from trajectories.agents.guidance.reply import read_reply
from trajectories.agents.guidance.settings import EVERY, PrmSettings
from trajectories.agents.guidance.taxonomy import load_taxonomy
from trajectories.agents.scaffolds.scaffold import ObservedAttempt
from trajectories.model import Entry, EntryKind
from trajectories.rows import end_trajectory
from trajectories.studies.guidance.replay import ReplayChoice, ReplayRun
from trajectories.verdicts.hidden import CommentCheck, HiddenContent

OBSERVATION = 10_000
"""Characters of an observation: what the tools show at most."""
GOAL = 2.0
"""Milliseconds of the observer a step, without its model: CPU time, which other work of the machine changes least."""
TURNS = 5

REPLAYED = 1_000
REPLAYED_STEPS = 40
REDUCTION = 10
"""The first replay has so many times fewer trajectories, to compare the memory."""
GROWTH_GOAL = 8.0
"""MB that the memory of the large replay may be above the small one's. Each result is kept, a kilobyte."""

CACHE_KB = 1_024
"""Of SQLite, a connection."""

REPLY = 3_000
"""Characters."""
READINGS = 50

OWN = "the observer's calls"
LEAKS = "with the leak check"
LEAKING = "with the leak check, where all words leak"
STORED = "with ledger and rows in SQLite"
ADAPTIVE = "on the adaptive schedule, which looks at every step"

PIECES = (
    "DETECTED: Yes\n",
    "1. ",
    "**",
    "| ",
    "EVIDENCE: ",
    "Step Repetition: ",
    "<think>",
    '"',
    "- Detected?: ",
    "\n",
)
"""What hostile replies repeat."""

_QUOTES = (
    "holds for blocks as well, and what is left",
    "I look at what it does with a comment",
    "Then the tests of step",
)
"""Words that the agent says in each step."""


@dataclass(frozen=True)
class _Replies:
    """A model that answers at once, and keeps nothing."""

    text: str
    name: str = "said"

    def complete(self, request: Request) -> Reply:
        """See `prchain.core.llm.model.Model`."""
        return Reply(self.text, self.name, usage=Usage(100, 0, 10))


def reply_of(size: int) -> str:
    """A reply of so many characters, in which three categories are detected, each with a quote."""
    quotes = iter(_QUOTES)
    lines = []
    for number, category in enumerate(load_taxonomy().categories, 1):
        quote = next(quotes, None) if number % 4 == 1 else None
        lines += [f"{number}. **{category.title}**", f"DETECTED: {'No' if quote is None else 'Yes'}"]
        lines += [] if quote is None else [f'EVIDENCE: "{quote}"', f"RECOVERY_ACTION: {category.recovery}"]
    lines += ["", "TASK_STATUS: Needs correction", "OVERALL_GUIDANCE: "]
    head = "\n".join(lines)
    words = "Go by what the tests have shown so far, and write down what is still open before you read on. "
    return head + (words * (size // len(words) + 1))[: size - len(head)]


def run(
    *, steps: int = STEPS, turns: int = TURNS, replayed: int = REPLAYED, replayed_steps: int = REPLAYED_STEPS
) -> list[Measure]:
    """Measure all three."""
    before = os.getloadavg()[0]
    measures = [*_observing(steps, turns), *_reading(), *_replaying(replayed, replayed_steps)]
    load = Measure("the machine meanwhile", "load average before", before, note=f"{os.cpu_count()} processors")
    return [*measures, load]


# ---- the observer


Leaks = Callable[[str, Sequence[Entry]], Sequence[Finding]]


def _observing(steps: int, turns: int) -> list[Measure]:
    entries = worked_stage(steps, OBSERVATION)
    hidden = hidden_content()
    text = reply_of(REPLY)
    leaking = text.replace("write down", f"run {min(hidden.stages[0].test_paths)} and write down")
    own: dict[str, Callable[[], list[Duration]]] = {
        OWN: lambda: _steps(entries, text),
        LEAKS: lambda: _steps(entries, text, _leaks(hidden)),
        LEAKING: lambda: _steps(entries, leaking, _leaks(hidden)),
        STORED: lambda: _stored_steps(entries, text),
        ADAPTIVE: lambda: _steps(entries, text, schedule="adaptive"),
    }
    runs: dict[str, list[list[Duration]]] = {name: [] for name in own}
    for turn in range(turns + 1):
        for name, runner in own.items():
            result = runner()
            if turn:  # the first loads and compiles
                runs[name].append(result)
    bench = f"a watched step without its model, mean of {steps} with observations of {OBSERVATION:,} characters"
    measures = []
    for name, results in runs.items():
        taken = fastest(results)
        late = fastest([result[-EVERY:] for result in results])
        note = f"the last {EVERY} {late.cpu:.2f} ms; wall time {taken.wall:.2f} ms"
        measures.append(Measure(bench, name, taken.cpu, "ms", GOAL if name == OWN else None, note=note))
    return measures


def _steps(
    entries: Sequence[Entry],
    text: str,
    leaks: Leaks | None = None,
    ledger: Ledger | None = None,
    store: Store | None = None,
    **settings: str,
) -> list[Duration]:
    """The time of each call of an observer, and of storing what came of it, where there is a store."""
    gateway = Gateway(ledger or MemoryLedger(), Route(_Replies(text), Price(1.0, 2.0)))
    attempt = ObservedAttempt(gateway, "bench/1", 0, 1, 1, OVERVIEW, QUERY, TOOLS)
    observer = make_prm(variant="D", **settings).observe(attempt if leaks is None else replace(attempt, leaks=leaks))
    conversation: list[Entry] = []
    times = []
    for place, entry in enumerate(entries):
        conversation.append(replace(entry, ordinal=len(conversation)))
        if entry.kind is not EntryKind.OBSERVATION:
            continue
        assert place + 1 == len(entries) or entries[place + 1].kind is EntryKind.TURN, "a step ends here"
        began = clock()
        advice = observer(conversation)
        if advice is not None and advice.record is not None and store is not None:
            with store.transaction() as tx:
                advice.record(tx)
        times.append(clock() - began)
        if advice is not None and advice.guidance is not None:
            kind, details = EntryKind.GUIDANCE, {"observer": "prm", **advice.details}
            said = Entry(len(conversation), 1, 1, entry.step, kind, "user", advice.guidance, details=details)
            conversation.append(said)
    return times


def _stored_steps(entries: Sequence[Entry], text: str) -> list[Duration]:
    with ExitStack() as resources:
        folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="prchain-bench-"))
        store = resources.enter_context(closing(Store.open(f"sqlite:///{folder}/bench.db")))
        begin_rows(store, "react", entries)
        return _steps(entries, text, ledger=SqlLedger(store, "bench"), store=store)


def _leaks(hidden: HiddenContent) -> Leaks:
    """As the stage of a rollout makes it, but that git's part, the diff of what the agent did, is there already."""
    told = [OVERVIEW, QUERY]
    patch = "diff --git a/src/reader/part_1.py b/src/reader/part_1.py\n--- a/src/reader/part_1.py\n"
    lines = source(1, 10_000).split("\n")
    patch += f"+++ b/src/reader/part_1.py\n@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)

    def leaks(text: str, entries: Sequence[Entry]) -> list[Finding]:
        found = CommentCheck(hidden, 1, told=told)(text)
        if found:
            seen = [*told, *(entry.content for entry in entries if entry.kind is EntryKind.OBSERVATION)]
            found = CommentCheck(hidden, 1, agent_patch=patch.encode(), told=seen)(text)
        return found

    return leaks


# ---- the reading of a reply


def _reading() -> list[Measure]:
    taxonomy = load_taxonomy()
    texts = {"": reply_of(REPLY)} | {piece: (piece * REPLY)[:REPLY] for piece in PIECES}
    times: dict[str, float] = {}
    for piece, text in texts.items():
        runs = []
        for _ in range(READINGS):
            began = clock()
            with suppress(UnfitReply):
                read_reply(text, taxonomy, action=False)
            runs.append([clock() - began])
        times[piece] = fastest(runs).cpu
    bench = f"a reply of {REPLY:,} characters, the fastest of {READINGS}"
    usual = times.pop("")
    slowest = max(times, key=lambda piece: times[piece])
    note = f"of {len(times)} pieces: {slowest!r}"
    return [
        Measure(bench, "read", usual, "ms"),
        Measure(bench, "read, one piece again and again", times[slowest], "ms", note=note),
    ]


# ---- a replay


def _replaying(trajectories: int, steps: int) -> list[Measure]:
    small, large = (_replayed(count, steps) for count in (max(trajectories // REDUCTION, 1), trajectories))
    bench = f"a replay of {trajectories:,} trajectories of {steps} steps, without its model"
    growth = (large["peak"] - small["peak"]) / 1e6
    windows = f"{large['windows'] / trajectories:.0f} windows each, ledger and rows in SQLite included"
    return [
        Measure(bench, "peak memory", large["peak"] / 1e6, "MB"),
        Measure(bench, "peak memory, above that of a tenth of them", growth, "MB", GROWTH_GOAL),
        Measure(bench, "a trajectory", large["wall"] / trajectories * 1000, "ms", note=windows),
        Measure(bench, "a trajectory, CPU", large["cpu"] / trajectories * 1000, "ms"),
    ]


def _replayed(trajectories: int, steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="prchain-bench-") as folder:
        database = f"sqlite:///{folder}/bench.db"
        with closing(Store.open(database)) as store:
            for number in range(trajectories):
                name = f"{number:016x}"
                begin_rows(store, "react", worked_stage(steps, OUTPUT, seed=number), name)
                with store.transaction() as tx:
                    end_trajectory(tx, name, "rejected", reason=None, accepted=0, overview=None)
        process = timed([sys.executable, "-m", "research.bench.prm_bench", database], keep_output=True)
    if process.status:
        raise RuntimeError(f"the replay fails: {process.errors.strip()[-300:]}")
    figures: dict[str, float] = json.loads(process.output)
    assert figures["trajectories"] == trajectories
    return figures


def replay(database: str) -> dict[str, float]:
    """Read all trajectories of a database: seconds, the peak memory of this process, and how many windows."""
    with closing(Store.open(database)) as store:
        store.engine.dispose()
        event.listen(store.engine, "connect", _with_small_cache)
        gateway = Gateway(SqlLedger(store, "bench"), Route(_Replies(reply_of(REPLY)), Price(1.0, 2.0)))
        run = ReplayRun(store, gateway, PrmSettings.model_validate({"variant": "D"}), ReplayChoice())
        began = clock()
        report = run.run()
        taken = clock() - began
    assert report.done, report.counts
    return {
        "wall": taken.wall / 1000,
        "cpu": taken.cpu / 1000,
        "peak": peak_bytes(),
        "trajectories": len(report.results),
        "windows": sum(result.detail for result in report.results),
    }


def _with_small_cache(connection: Any, _record: Any) -> None:
    """SQLite keeps up to 32 MB of the file for each connection, and fills that with many trajectories only: its memory
    would hide ours."""
    connection.execute(f"PRAGMA cache_size={-CACHE_KB}").close()


if __name__ == "__main__":
    print(json.dumps(replay(sys.argv[1])))
