"""The graphs of a chain's stages, made by a scripted model on a copy of the database, and the fate of wrong nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic

from environments.checkouts.carry import Carry
from prchain.core.settings import Settings
from research.graph_stages.cases import HandChain, HandStage
from research.graph_stages.report import StageResult
from research.graph_stages.stage import distiller, real_stage, stored_state, unlike_landed, write_script
from research.graph_stages.wrong import OneProposal, refusal
from research.real_rollouts.__main__ import copy
from trajectories.curation.graphs.candidates import kept_nodes
from trajectories.curation.graphs.options import GraphOptions
from trajectories.curation.graphs.run import GraphChoice, GraphRun, GraphUnit, PendingGraphs, open_run

OPTIONS = GraphOptions(carry=Carry.REFERENCE)

Tell = Callable[[str], None]


def chain_results(
    folder: Path, scratch: Path, hand: HandChain, positions: Sequence[int], tell: Tell
) -> Iterator[StageResult]:
    """The results of a chain's stages. `folder` holds the database, `scratch` takes its copy. Raises `PrchainError`."""
    copied, script = scratch / f"{hand.chain}.db", scratch / f"{hand.chain}.jsonl"
    copy(folder / "prchain.db", copied)
    script.write_text("", encoding="utf-8")
    settings = Settings.load(db=str(copied), data_dir=folder, llm_script=script)
    choice = GraphChoice(chain=hand.chain)
    hands = {it.position: it for it in hand.stages if it.nodes and (not positions or it.position in positions)}
    with open_run(settings, OPTIONS, choice) as run:
        units = [unit for unit in run.pending().units if unit.position in hands]
        write_script(script, [real_stage(run.context, unit, hands[unit.position]) for unit in units])
    with open_run(settings, OPTIONS, choice) as run:  # which reads the script
        for unit in units:
            tell(f"{hand.repository}, {unit.key}")
            yield _stage_result(run, unit, hand.repository, hands[unit.position], tell)


def _stage_result(run: GraphRun, unit: GraphUnit, repository: str, hand: HandStage, tell: Tell) -> StageResult:
    started = monotonic()
    [ended] = run.run(1, PendingGraphs((unit,))).results
    seconds = monotonic() - started
    context = run.context
    stage = real_stage(context, unit, hand)
    state = stored_state(context.store, unit.id)
    with distiller(context, stage) as made:
        if not state.candidates:  # the critic's reply fits the right nodes alone: which of them were refused?
            state = made.round(state, OneProposal(tuple(stage.right.values())))
        nodes = kept_nodes(state.candidates)
        graph = made.graph(state)
        held = [candidate for candidate in state.candidates if candidate.kept]
        refusals = []
        for wrong in hand.wrong:
            refusals.append(refusal(made, stage, wrong, held))
            tell(f"  {wrong.rule} {wrong.name}: {', '.join(refusals[-1].rules) or 'came through'}")
    lost = [
        f"{candidate.node.name}: {fault.rule}: {fault.words}"
        for candidate in state.candidates
        if not candidate.kept
        for fault in candidate.reasons
    ]
    return StageResult(
        repository,
        stage.task.stage.number,
        unit.position,
        ended.outcome,
        ended.reason,
        (len({node.name for node in nodes} & set(stage.facts)), len(stage.facts)),
        tuple(unlike_landed(stage, nodes)),
        len(stage.target.paths),
        len(nodes),
        len(graph.edges),
        len(set(graph.levels.values())),
        seconds,
        tuple(lost),
        tuple(refusals),
    )
