"""What guidance comes to: a chain rolled out twice with the same options, alone and under a process reward model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from prchain.core.console.terminal import counted, dollars, say, say_prose, say_table, shortened
from prchain.core.llm.scripted import NAME as SCRIPTED
from prchain.demo.beside import call_words
from sql.store import Store, Transaction
from sql.tables import ChainStage, Trajectory
from trajectories.agents.steps.conversation import steps_of
from trajectories.model import Entry, EntryKind
from trajectories.outcomes import NOT_REACHED
from trajectories.rows import read_entries, read_stages, stored_trajectory
from trajectories.studies.guidance.stage_runs import ReachedStage, reached_stages
from trajectories.studies.guidance.stored import StoredFinding, StoredReading, stored_windows

_WIDTH = 96


@dataclass(frozen=True, slots=True)
class GuidedPair:
    """Two rollouts of a chain with bash alone, by their ids: the newest without and with an observer."""

    alone: str
    guided: str


@dataclass(frozen=True, slots=True)
class GuidedStage:
    """A stage of both rollouts. A run is None where the rollout did not work on the stage to its end."""

    position: int
    number: int
    """Of the pull request."""
    outcomes: tuple[str, str]
    alone: ReachedStage | None
    guided: ReachedStage | None


def guided_pair(tx: Transaction, chain: str) -> GuidedPair | None:
    """Those of the chain whose id begins so; None where one of them is missing. Raises `StoreError`."""
    newest: dict[bool, tuple[str, str]] = {}
    for name, chain_id, options, started in tx.rows(Trajectory, "id", "chain_id", "options", "started_at"):
        if chain_id.startswith(chain) and options.get("tools") == "bash":
            watched = bool(options.get("observers"))
            newest[watched] = max(newest.get(watched, ("", "")), (started, str(name)))
    return GuidedPair(newest[False][1], newest[True][1]) if len(newest) == 2 else None


def guided_stages(tx: Transaction, pair: GuidedPair) -> list[GuidedStage]:
    """The stages of the chain, in order. Raises `StoreError`."""
    names = (pair.alone, pair.guided)
    chain = stored_trajectory(tx, pair.guided).chain_id
    outcomes = [{stage.position: stage.outcome for stage in read_stages(tx, it)} for it in names]
    reached = reached_stages(tx, dict.fromkeys(names, True))
    runs = [{run.position: run for run in reached.get(it, ())} for it in names]
    return [
        GuidedStage(
            position,
            number,
            (outcomes[0].get(position, NOT_REACHED), outcomes[1].get(position, NOT_REACHED)),
            runs[0].get(position),
            runs[1].get(position),
        )
        for position, number in sorted(map(tuple, tx.rows(ChainStage, "position", "number", chain_id=chain)))
    ]


def print_guidance(store: Store, chain: str, workdir: str | None) -> None:
    """Print what came of both rollouts of the chain whose id begins so: the first window that needed correction, what
    was found in it and told, the steps of each stage, and the calls of agent and process reward model.

    Paths below `workdir` are relative. Prints nothing where one of the rollouts is missing. Raises `StoreError`.
    """
    with store.reading() as tx:
        pair = guided_pair(tx, chain)
        if pair is None:
            return
        windows = stored_windows(tx, pair.guided).windows
        entries = read_entries(tx, pair.guided)
        stages = guided_stages(tx, pair)
        model = stored_trajectory(tx, pair.guided).model
    told = next((window for window in windows if window.suboptimal and window.sent), None)
    if told is not None:
        _print_window(told, entries, workdir)
    else:
        say("No window was told to need correction.")
    others = [f"{_title(it)}, {counted(len(it.findings), 'finding')}" for it in windows if it is not told]
    if others:
        say_prose(f"Other windows: {'; '.join(others)}.")
    say()
    say_table(("stage", "alone", "with guidance"), _stage_rows(stages))
    stage = stages[0] if told is None else next(it for it in stages if it.position == told.position)
    if stage.alone is not None and stage.guided is not None:
        say(_saved(stage.position, stage.alone, stage.guided))
    say()
    say_table(("calls of", "", "number", "tokens in", "tokens out", "cost"), _call_rows(stage, stages))
    if model == SCRIPTED:
        say("A script costs nothing; its tokens are an estimate, by four bytes a token.")


# ---- the window


def _print_window(window: StoredReading, entries: Sequence[Entry], workdir: str | None) -> None:
    say()
    say(f"A window: {_title(window)}")
    for step in steps_of(entry for entry in entries if window.first_step <= entry.step <= window.last_step):
        say(f"{step.number:>4}  {shortened(call_words(step, workdir), _WIDTH)}")
    say()
    say("What was found in it, by the model and by detectors:")
    say_table(("by", "category", "steps", "evidence"), _finding_rows(window.findings), indent=2, most=_WIDTH)
    say()
    say("What the agent was told:")
    for entry in entries:
        if entry.kind is EntryKind.GUIDANCE and entry.details.get("window") == window.id:
            for line in filter(None, entry.content.split("\n")):
                say_prose(line, indent=2)
    say()


def _title(window: StoredReading) -> str:
    status = (window.status or window.fault or "no status").replace("_", " ")
    return f"stage {window.position}, steps {window.first_step} to {window.last_step}: {status}"


def _finding_rows(findings: Iterable[StoredFinding]) -> Iterator[tuple[str, str, str, str]]:
    """A row for each finder and category, with the evidence that came first."""
    groups: dict[tuple[str, str, bool], list[StoredFinding]] = {}
    for finding in findings:
        groups.setdefault((finding.found_by, finding.category, finding.kept), []).append(finding)
    for (found_by, category, kept), group in groups.items():
        places = [str(finding.step) for finding in group if finding.step is not None]
        evidence = shortened(group[0].evidence, _WIDTH) + ("" if kept else " (dropped: no step holds it)")
        yield found_by, category.replace("_", " "), ", ".join(places), evidence


# ---- the figures


def _stage_rows(stages: Iterable[GuidedStage]) -> Iterator[tuple[str, ...]]:
    for stage in stages:
        cells = [
            outcome if run is None else f"{outcome}, {counted(run.steps, 'step')}"
            for outcome, run in zip(stage.outcomes, (stage.alone, stage.guided), strict=True)
        ]
        yield f"{stage.position} (#{stage.number})", *cells


def _saved(position: int, alone: ReachedStage, guided: ReachedStage) -> str:
    """How many steps guidance saved at a stage. An agent that was not done with it might have gone on for ever."""
    words = f"Steps saved at stage {position}: {alone.steps - guided.steps}"
    if alone.resolved or not guided.resolved:
        return f"{words}."
    changed = "" if alone.patch else " and had changed no file"
    return f"{words} at least: alone the agent had taken {alone.steps}{changed}."


def _call_rows(stage: GuidedStage, stages: Iterable[GuidedStage]) -> Iterator[tuple[str, ...]]:
    here = f"stage {stage.position}"
    guided = [it.guided for it in stages if it.guided is not None]
    if stage.alone is not None:
        yield here, "agent alone", *_calls([stage.alone], prm=False)
    if stage.guided is not None:
        yield here, "agent with guidance", *_calls([stage.guided], prm=False)
        yield here, "process reward model", *_calls([stage.guided], prm=True)
    yield "all stages", "agent with guidance", *_calls(guided, prm=False)
    yield "all stages", "process reward model", *_calls(guided, prm=True)


def _calls(runs: Iterable[ReachedStage], *, prm: bool) -> tuple[str, str, str, str]:
    """Number, tokens and cost of the calls of the agent or of the process reward model."""
    calls = [run.prm if prm else run.agent for run in runs]
    priced = [it.usd for it in calls if it.usd is not None]
    figures = (sum(it.count for it in calls), sum(it.tokens_in for it in calls), sum(it.tokens_out for it in calls))
    number, tokens_in, tokens_out = (f"{figure:,}" for figure in figures)
    return number, tokens_in, tokens_out, dollars(sum(priced) if len(priced) == len(calls) else None)
