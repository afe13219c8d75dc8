"""The command that writes tasks for others: our own lines, SWE-bench's instances, Harbor's folders."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prchain.core.cli_options import (
    chain_option,
    choice_option,
    db_option,
    json_option,
    option,
    proof_option,
    strategy_option,
)
from prchain.core.console.terminal import counted, present, say
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store
from sql.outcomes import READY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chains.tasks.export import TaskExportOptions
    from prchain.core.code.needs import Interface
    from prchain.core.settings import Settings
    from trajectories.export.tasks.harbor.export import HarborOptions, Steps
    from trajectories.export.tasks.harbor.folder import AgentUser, Network


@click.command()
@click.option(
    "--out",
    required=True,
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE",
    help="Where to write; - is standard output.",
)
@strategy_option
@choice_option(
    "--interface",
    ["appended", "paper"],
    "appended: with the names and texts that hidden tests need; paper: without, and such tests cannot gate.",
)
@click.option("--solvable", is_flag=True, help="Only tasks that tell all names and texts that their tests need.")
@click.option("--outcome", default="ready", show_default=True, metavar="NAME", help="Tasks of this outcome.")
@choice_option(
    "--format",
    ["tasks", "swebench", "harbor"],
    "tasks: a line a task; swebench: a SWE-bench instance a validated stage, graded by `swebench eval`; harbor: "
    "folders of Harbor's tasks below --out.",
    "form",
)
@chain_option
@choice_option(
    "--steps",
    ["both", "chain", "single"],
    "With harbor: a multi-step task a chain, a single-step task a stage, or both.",
    heading="Harbor",
)
@choice_option(
    "--network",
    ["declared", "compose"],
    "With harbor: how a task has no network. declared: network_mode; compose: a file for Docker alone, which needs no "
    "image of Docker Hub.",
    heading="Harbor",
)
@choice_option(
    "--agent-user",
    ["image", "declared"],
    "With harbor: the agent's user. image: the image's, and the verifier's is declared; declared: for verifiers and "
    "prime-rl, which take no user of a verifier; not for TRL, whose agent would be root.",
    heading="Harbor",
)
@option("--registry", heading="Harbor", metavar="PREFIX", help="With harbor: push the images under this prefix.")
@option(
    "--min-reward",
    heading="Harbor",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    metavar="SHARE",
    help="With harbor: a step of a chain below it ends the trial.",
)
@click.option("--retired", is_flag=True, help="Also those of chains that were chosen once and are not any more.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@proof_option
@db_option
@json_option
def export(
    out: Path,
    strategy: str,
    interface: Interface,
    solvable: bool,
    outcome: str,
    form: str,
    chain: str | None,
    steps: Steps,
    network: Network,
    agent_user: AgentUser,
    registry: str | None,
    min_reward: float,
    retired: bool,
    force: bool,
    proof: str,
    db: str | None,
    as_json: bool,
) -> None:
    """Write tasks as JSON lines, each with everything that a rollout needs; docs/tasks.schema.json describes a line.

    A task whose commits are not in the repository any more is named and left out; so is, with --format swebench, a
    stage that SWE-bench's harness cannot grade. Where there is nothing to write, no file is written.

    With --format harbor a folder is written for each proved stage, and for each chain whose stages share an image, with
    the image of a stage's checkout, which is made in Docker; to a file whose name ends in .parquet, as rows of a
    folder's name and its packed files.

    \b
    Example:
      prchain tasks export --out tasks.jsonl
      prchain tasks export --format swebench --out instances.jsonl
      prchain tasks export --solvable --out - | head -1
      prchain tasks export --format harbor --out harbor --steps single
    """
    from chains.tasks.export import (
        TaskExportOptions,
        UnreadableTask,
        outcomes_of_chains,
        print_lines,
        proofs_of_tasks,
        records,
        task_lines,
        write_lines,
    )
    from chains.tasks.harness import OmittedStage, harness_lines
    from chains.tasks.record import TaskRecord
    from sql.proof_filter import ProofFilter
    from sql.taken_proofs import say_proofs
    from trajectories.export.tasks.harbor.export import HarborOptions

    settings = load_settings(db=db)
    if form == "harbor":
        options = TaskExportOptions(strategy, outcome, interface, retired, solvable, ProofFilter(proof))
        folders = HarborOptions(steps, network, registry, min_reward, agent_user)
        _export_folders(settings, options, folders, chain, out, force, as_json)
        return
    if chain is not None or HarborOptions(steps, network, registry, min_reward, agent_user) != HarborOptions():
        raise UsageError("--chain, --steps, --network, --agent-user, --registry, --min-reward are of --format harbor")
    to_stdout = str(out) == "-"
    if to_stdout and as_json:
        raise UsageError("--json reports on standard output, where --out - writes; give a file's name")
    left_out: list[UnreadableTask] = []
    ungraded: list[OmittedStage] = []
    unsolvable: list[TaskRecord] = []
    with opened_store(settings.db) as store:
        options = TaskExportOptions(strategy, outcome, interface, retired, solvable, ProofFilter(proof))
        say_proofs(*proofs_of_tasks(store, options), noun="task")
        tasks = records(store, settings.mirrors_dir, options, left_out.append, unsolvable.append)
        lines = harness_lines(store, tasks, ungraded.append) if form == "swebench" else task_lines(tasks)
        count = print_lines(lines, sys.stdout.buffer) if to_stdout else write_lines(lines, out, force=force)
        found = outcomes_of_chains(store, options)
    for task in left_out:
        say(f"{task.chain_id} ({task.repository}): left out, {task.outcome}: {task.reason}", err=True)
    for record in unsolvable:
        for unsolved in record.stages:
            for need in unsolved.unmet:
                words = "not known: " if need.kind == "unseen" else f"{need.kind} "
                say(
                    f"{record.chain_id}, stage {unsolved.position}: left out: what tests need is "
                    f"{words}{need.text[:80]!r} ({need.withheld or 'not told'})",
                    err=True,
                )
    for stage in ungraded:
        say(f"{stage.chain_id}, stage {stage.position}: left out: {stage.reason}", err=True)
    noun = "instance" if form == "swebench" else "task"
    row = {f"{noun}s": count, "file": str(out) if count else None, "left_out": len(left_out), "stand_as": found}
    if solvable:
        verdicts = [record.verdict for record in unsolvable]
        row |= {verdict: verdicts.count(verdict) for verdict in ("not_solvable", "unseen")}
    if form == "swebench":
        row["stages_left_out"] = len(ungraded)
    if as_json or (count and not to_stdout):
        present(as_json, row, say, f"{counted(count, noun)} written to {out}")
    _print_others(found, outcome)
    if left_out:
        say(f"{counted(len(left_out), 'task')} left out; mine their repositories again", err=True)
    lacks = f"no {noun} to write" if found else "no chain is chosen; `prchain chains build` chooses them"
    nothing = lacks + ("" if to_stdout else f", so {out} was not written")
    if left_out and not count:
        say(nothing, err=True)
    end_command(done=not left_out, good=count, nothing=nothing)


def _print_others(found: Mapping[str, int], outcome: str) -> None:
    """What became of the chains whose tasks are not of the outcome that is exported."""
    from chains.tasks.model import FINAL
    from chains.tasks.run_report import outcome_words

    others = {name: count for name, count in found.items() if name != outcome}
    if not others:
        return
    say(f"not {outcome}: {counted(sum(others.values()), 'chain')}, {outcome_words(others)}", err=True)
    if others.keys() - FINAL:
        say("  `prchain tasks build` writes what is missing", err=True)
    if others.keys() & (FINAL - {READY}):
        say("  `prchain tasks show ID` says why, `prchain tasks build --retry` begins another round", err=True)


def _export_folders(
    settings: Settings,
    options: TaskExportOptions,
    harbor: HarborOptions,
    chain: str | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    from chains.tasks.export import UnreadableTask, records
    from trajectories.export.tasks.harbor.export import TABLE, open_export, write_tasks
    from trajectories.export.tasks.harbor.said import print_report, report_row

    if str(out) == "-":
        raise UsageError("--format harbor writes folders; give --out the name of one")
    if out.exists() and not out.is_dir() and out.suffix != TABLE:
        raise UsageError(f"{out} is a file, and --format harbor writes folders; give --out the name of one")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise UsageError(f"{out} is there and not empty; --force writes over the tasks in it")
    unread: list[UnreadableTask] = []
    with (
        opened_store(settings.db) as store,
        open_export(store, settings, out, harbor, force=force) as export,
    ):
        tasks = records(store, settings.mirrors_dir, options, unread.append)
        chosen = (task for task in tasks if chain is None or task.chain_id.startswith(chain))
        report = write_tasks(export, chosen, lambda chain_id: say(f"chain {chain_id}", err=True))
    for task in unread:
        say(f"{task.chain_id} ({task.repository}): left out, {task.outcome}: {task.reason}", err=True)
    present(as_json, report_row(report, out), print_report, report, out)
    count = sum(report.counts.values())
    nothing = "no task to write" if report.omitted or unread else "no task is ready; `prchain tasks build` writes them"
    end_command(done=not unread, good=count, nothing=nothing)
