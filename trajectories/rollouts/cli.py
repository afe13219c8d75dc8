"""The commands of rollouts: run, extend, list, show, audit; `import` is in a module of its own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from environments.backends import BACKENDS, chosen_backend
from prchain.core.cli_options import (
    BEFORE,
    WHICH,
    CatalogueOption,
    Group,
    backend_options,
    chain_option,
    db_option,
    given,
    json_option,
    limit_option,
    option,
    proof_option,
    repository_option,
    samples_option,
    spending_options,
    strategy_option,
    told_options,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, say_next, tally
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store
from trajectories.agents.observers.flags import observer_options, observer_specs
from trajectories.imports.cli import import_
from trajectories.model import NO_LIMITS, AgentLimits
from trajectories.options import MAX_TOKENS, RolloutOptions
from trajectories.programs.choice import ShippedAgents, require_program

if TYPE_CHECKING:
    from prchain.core.keyed import Given
    from prchain.core.llm.gateway import CostEstimate
    from prchain.core.llm.ledger import Spending
    from prchain.core.settings import Settings
    from trajectories.rollouts.extend import PendingExtensions
    from trajectories.rollouts.forecast import Forecast
    from trajectories.rollouts.otherwise import OtherRollouts
    from trajectories.rollouts.run import OutdatedSamples, PendingRollouts, RolloutReport


@click.group(cls=Group)
def rollouts() -> None:
    """Let an agent work through chains, stage by stage, and judge what it does.

    \b
    Example:
      prchain rollouts run --limit 1 --dry-run
      prchain rollouts run --samples 4 --workers 8 --budget 20
      prchain rollouts list
    """


@rollouts.command()
@strategy_option
@repository_option
@chain_option
@limit_option()
@samples_option()
@option("--branch", metavar="ID:STEP", heading=WHICH, help="Begin after a step of a stored trajectory.")
@option("--like", metavar="ID", heading=WHICH, help="With the options of a stored rollout, and no others.")
@option("--reuse", is_flag=True, heading=WHICH, help="Accept samples of other prompts or texts.")
@spending_options("Rollouts")
@click.option(
    "--scaffold",
    cls=CatalogueOption,
    of=ShippedAgents(),
    metavar="NAME",
    default="react",
    show_default=True,
    heading="Agent",
    help="The kind of agent.",
)
@told_options(RolloutOptions)
@backend_options(BACKENDS)
@observer_options
@proof_option
@db_option
@json_option
def run(
    strategy: str,
    repository: str | None,
    chain: str | None,
    limit: int | None,
    samples: int,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    reuse: bool,
    unsafe: bool,
    branch: str | None,
    like: str | None,
    proof: str,
    db: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Roll out the chains that were chosen and have tasks.

    A run can be killed at any moment and started again with the same options: it goes on where it was, and nothing that
    was stored is paid for twice. Other options, models, observers or sample numbers make other trajectories; so do
    other prompts and task texts. A run says so before it asks anything, and --like goes on with stored options.

    \b
    Example:
      prchain rollouts run --repository pallets/click --samples 4 --budget 20
      prchain rollouts run --chain 5f0c --gate both --on-fail continue
      prchain rollouts run --chain 5f0c --branch 81c2:17 --agent temperature=1
    """
    from sql.proof_filter import ProofFilter
    from sql.taken_proofs import say_proofs
    from trajectories.rollouts.otherwise import other_rollouts, other_words
    from trajectories.rollouts.run import RolloutChoice, open_run
    from trajectories.sums import hidden_tests

    settings = load_settings(db=db, workers=workers)
    if like is None:
        options = _options(settings, flags, unsafe=unsafe)
    else:
        options = _stored_options(settings, like, flags, unsafe=unsafe)
    parent = _parent(settings, branch)
    choice = RolloutChoice(strategy, repository, limit, chain, samples, parent, reuse, proof=ProofFilter(proof))
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_run(settings, options, choice, budget_usd=budget, progress=progress) as runner,
    ):
        pending = runner.pending()
        _print_outdated(runner.anew(pending))
        say_proofs(pending.doubts, pending.weak)
        with runner.context.store.reading() as tx:
            others = other_rollouts(tx, runner.context, {unit.chain_id for unit in pending.units})
        if words := other_words(others):
            say(words, err=True)
        if dry_run:
            asking = tuple(unit for unit in pending.units if unit not in pending.without_proof)
            _print_forecast(runner.forecast(asking), pending, others, options, as_json)
            return
        require_program(options, settings, runner.context.backend)
        runner.context.backend.clear_away()
        report = runner.run(settings.workers, pending)
        spending = runner.context.gateway.spending()
        with runner.context.store.reading() as tx:
            tests = hidden_tests(tx, [result.detail for result in report.results if result.detail is not None])
    present(as_json, _report_row(report, spending, tests), _print_report, report, spending, tests)
    if not as_json and report.good:
        say_next("export --out sft.jsonl")
    nothing = "no rollout was accepted" if report.results or report.standing else "there was nothing to roll out"
    end_command(done=report.done, good=report.good, nothing=nothing)


def _options(settings: Settings, flags: dict[str, Any], *, unsafe: bool) -> RolloutOptions:
    """The options from the flags; for the agent's replies its settings fill in where no flag is given."""
    from prchain.core.settings import PurposeSettings
    from trajectories.agents.scaffolds.attempt_loop import PURPOSE as AGENT

    where = chosen_backend(flags.pop("backend") or settings.environments_backend, unsafe=unsafe)
    observers = observer_specs(flags)
    own = settings.purposes.get(AGENT) or PurposeSettings()
    sampling = {"temperature": own.temperature, "top_p": own.top_p, "max_tokens": own.max_tokens or MAX_TOKENS}
    return RolloutOptions(**sampling | given(flags), backend=where.name, observers=observers)


def _stored_options(settings: Settings, like: str, flags: Mapping[str, Any], *, unsafe: bool) -> RolloutOptions:
    """The options of a stored rollout. Raises `UsageError`, also where flags say others beside it."""
    from trajectories.rollouts.otherwise import options_like

    context = click.get_current_context()
    typed = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in flags
        and context.get_parameter_source(parameter.name) in (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    ]
    if BEFORE in context.meta:
        typed.append("--as-paper")
    if typed:
        raise UsageError(f"--like takes all options of {like}; leave out {', '.join(sorted(typed))}")
    with opened_store(settings.db) as store, store.reading() as tx:
        options = options_like(tx, like)
    chosen_backend(options.backend, unsafe=unsafe)
    return options


def _parent(settings: Settings, branch: str | None) -> tuple[str, int] | None:
    from trajectories.rows import find_trajectory

    if branch is None:
        return None
    name, _, step = branch.partition(":")
    if not step.isdecimal():
        raise UsageError(f"--branch takes a trajectory and a step, as in 81c2:17, not {branch!r}")
    with opened_store(settings.db) as store, store.reading() as tx:
        return find_trajectory(tx, name), int(step)


def _print_outdated(outdated: OutdatedSamples) -> None:
    """Print how many samples have outdated prompts, and the estimated cost of new ones, before any call."""
    if not outdated.samples:
        return
    price = f"about {counted(outdated.estimate.calls, 'call')}, {outdated.estimate.price}"
    half = f" ({outdated.half_done:,} half done, to be given up)" if outdated.half_done else ""
    what = f"{counted(outdated.samples, 'sample')}{half} stored with other {', '.join(outdated.fields)} than now"
    say(f"{what}, to be rolled out anew: {price}; --reuse takes those that are over", err=True)


def _print_forecast(
    forecast: Forecast, pending: PendingRollouts, others: OtherRollouts, options: RolloutOptions, as_json: bool
) -> None:
    """Print the estimate."""
    estimate = forecast.estimate
    row = {
        "rollouts": forecast.trajectories,
        **asdict(estimate),
        "basis": forecast.basis,
        "stood_before": pending.standing,
        "reused": pending.reused,
        "with_other_options": asdict(others),
        "without_task": pending.without_task,
        "without_proof": len(pending.without_proof),
        "options": options.chosen,
    }

    def print_text() -> None:
        standing = [_standing_words(pending.standing, pending.reused)] if pending.standing else []
        say("; ".join([f"{counted(forecast.trajectories, 'rollout')} to run", *standing]))
        if forecast.trajectories:
            tokens = f"{_rounded(estimate.tokens_in)} tokens in (cached ones too), {_rounded(estimate.tokens_out)} out"
            say(f"  about {counted(estimate.calls, 'call')}, {tokens}, {estimate.price}")
            say(f"  {forecast.basis}; nothing has been asked or spent")
        if pending.without_proof:
            ends = f"{counted(len(pending.without_proof), 'rollout')} would end at once, without a call"
            say(f"  {ends}: --gate {options.gate} needs proved tests; `prchain environments validate` proves them")
        _print_without_task(pending.without_task)

    present(as_json, row, print_text)


def _rounded(count: int) -> str:
    """A number that was estimated, in two significant digits: ``8,000,000``."""
    return f"{round(count, 2 - len(str(count))) if count > 99 else count:,}"


def _standing_words(standing: int, reused: int) -> str:
    """Words for how many samples were over before this run, with the same choices."""
    return f"{standing:,} done before" + (f" ({reused:,} with other prompts or texts)" if reused else "")


def _print_without_task(chains: int) -> None:
    if chains:
        words = f"{counted(chains, 'chain')} without a task that is ready; `prchain tasks build` writes them"
        say(f"{words}, with --retry also those that were rejected")


def _report_row(report: RolloutReport, spending: Spending, tests: Mapping[str, int]) -> dict[str, Any]:
    return {
        "worked_on": len(report.results),
        "outcomes": report.outcomes,
        "infrastructure": report.infrastructure,
        "stood_before": report.standing,
        "reused": report.reused,
        "left": report.left,
        "without_task": report.without_task,
        "stopped": report.stopped,
        "calls": spending.calls,
        "refused": spending.refused,
        "usd": spending.cost,
        "hidden_tests": dict(tests),
    }


def _print_report(report: RolloutReport, spending: Spending, tests: Mapping[str, int]) -> None:
    from prchain.core.endings import say_causes, say_end

    say_causes(report.failed)
    counts = tally(report.outcomes) or ("nothing ended" if report.results or report.left else "nothing new to do")
    say(f"{counts}; {_standing_words(report.standing, report.reused)}; {spending.words()}")
    if report.infrastructure:
        say(f"failures of machines, not of the agent: {tally(report.infrastructure)}", err=True)
    if tests["failed"]:
        run = tests["passed"] + tests["failed"]
        say(f"{tests['failed']:,} of {counted(run, 'accepted stage')} fail their hidden tests; --gate both heeds these")
    _print_without_task(report.without_task)
    say_end("rollout", report.failed, report.left, report.stopped)


@rollouts.command()
@repository_option
@chain_option
@limit_option("Only the first N prefixes.")
@samples_option("Tries for each prefix, until one extends it.")
@spending_options("Rollouts")
@told_options(RolloutOptions, "temperature", "stage_limits", "chain_limits", defaults={"stage_limits": NO_LIMITS})
@backend_options(BACKENDS, "where the prefix was made")
@db_option
@json_option
def extend(
    repository: str | None,
    chain: str | None,
    limit: int | None,
    samples: int,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    agent: Given,
    stage_limits: AgentLimits,
    chain_limits: AgentLimits,
    backend: str | None,
    unsafe: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Take up every accepted prefix whose chain could go on, where its last accepted stage ends.

    Each has the options that it was made with; limits, temperature and backend can be others. What was accepted is
    shared and not paid for again. A prefix that was extended is left alone, and so is a try that is over: another run,
    with more --samples, makes the next one. `prchain export --pairs short-long` writes prefixes and extensions as two
    sets of the same chains.

    \b
    Example:
      prchain rollouts extend --dry-run
      prchain rollouts extend --samples 4 --agent temperature=1 --budget 20
      prchain rollouts extend --repository pallets/click --chain-limits steps=600
    """
    from trajectories.outcomes import KEPT
    from trajectories.rollouts.extend import ChangedOptions, open_extension

    settings = load_settings(db=db, workers=workers)
    where = None if backend is None else chosen_backend(backend, unsafe=unsafe).name
    changed = ChangedOptions(stage_limits.given, chain_limits.given, agent.get("temperature"), where)
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_extension(
            settings,
            changed,
            repository=repository,
            chain=chain,
            limit=limit,
            budget_usd=budget,
            progress=progress,
            ledger_run=uuid.uuid4().hex,
        ) as runner,
    ):
        for name in sorted({options.backend for options in runner.runs}):
            chosen_backend(name, unsafe=unsafe)
        obstacles = {str(name): count for name, count in sorted(runner.obstacles.items())}
        if dry_run:
            todo = runner.pending(range(samples))
            _print_extensions(todo, runner.estimate(todo.units), obstacles, as_json)
            return
        for rollout_run in runner.runs.values():
            rollout_run.context.backend.clear_away()
        report = runner.run(settings.workers, samples)
        spending, tests = runner.spending(), runner.hidden_tests(report)
    row = _report_row(report, spending, tests) | {"not_taken_up": obstacles}

    def print_text() -> None:
        _print_report(report, spending, tests)
        _print_obstacles(obstacles)

    present(as_json, row, print_text)
    if not as_json and KEPT & report.outcomes.keys():
        say_next("export --pairs short-long --out sft.jsonl")
    tried = report.results or report.standing
    end_command(done=report.done, good=report.good or not tried, nothing="no prefix was extended")


def _print_extensions(
    pending: PendingExtensions, estimate: CostEstimate, obstacles: Mapping[str, int], as_json: bool
) -> None:
    """Print what a run would take, if no try extended its prefix before the last one."""
    prefixes = len({unit.rollout.parent for unit in pending.units})
    row = {
        "prefixes": prefixes,
        "rollouts": len(pending.units),
        **asdict(estimate),
        "stood_before": pending.standing,
        "not_taken_up": dict(obstacles),
    }

    def print_text() -> None:
        standing = f"; {pending.standing:,} tries done before" if pending.standing else ""
        say(f"{prefixes:,} accepted prefix{'' if prefixes == 1 else 'es'} to extend")
        if pending.units:
            tokens = f"{_rounded(estimate.tokens_in)} tokens in (cached ones too), {_rounded(estimate.tokens_out)} out"
            say(f"  at most {counted(len(pending.units), 'rollout')}{standing}")
            say(f"  about {counted(estimate.calls, 'call')}, {tokens}, {estimate.price}")
            say("  nothing has been asked or spent")
        elif standing:
            say(f"  {pending.standing:,} tries done before; a larger --samples makes more")
        _print_obstacles(obstacles)

    present(as_json, row, print_text)


_OBSTACLES = {
    "no_state": "the next stage has no state to begin with",
    "no_task": "their chains have no task that is ready",
    "other_model": "made or judged by other models than those of the settings",
    "other_texts": "made with other prompts, tools or task texts than now",
    "chain_limits": "their limits for the whole chain are used up; --chain-limits raises them",
}


def _print_obstacles(obstacles: Mapping[str, int]) -> None:
    for name, count in obstacles.items():
        say(f"{count:,} not taken up: {_OBSTACLES[name]}")


rollouts.add_command(import_)


@rollouts.command("list")
@repository_option
@chain_option
@click.option("--outcome", metavar="NAME", help="Of one outcome only: accepted, rejected, ...")
@click.option(
    "--scaffold",
    metavar="NAME",
    help="Of one scaffold only: react, curated, disclosed, ...  [default: all but disclosed]",
)
@db_option
@json_option
def list_(
    repository: str | None,
    chain: str | None,
    outcome: str | None,
    scaffold: str | None,
    db: str | None,
    as_json: bool,
) -> None:
    """List trajectories with their outcomes.

    \b
    Example:
      prchain rollouts list --outcome accepted_prefix
    """
    from trajectories.rollouts.report import list_trajectories, print_trajectories

    with opened_store(load_settings(db=db).db) as store:
        rows = list_trajectories(store, repository, chain, outcome, scaffold)
    present(as_json, rows, print_trajectories, rows)


@rollouts.command()
@click.argument("trajectory", metavar="ID")
@click.option("--messages", is_flag=True, help="Also what was said and done, step by step, whole.")
@click.option("--brief", is_flag=True, help="Cut each text after 400 characters.")
@click.option("--step", type=click.IntRange(min=1), metavar="N", help="The patch of this step, instead.")
@db_option
@json_option
def show(trajectory: str, messages: bool, brief: bool, step: int | None, db: str | None, as_json: bool) -> None:
    """Print one trajectory, named by its id or the beginning of it: stages, verdicts, costs.

    \b
    Example:
      prchain rollouts show 81c2
      prchain rollouts show 81c2 --messages | less
      prchain rollouts show 81c2 --step 17
    """
    from trajectories.rollouts.report import print_trajectory, trajectory_report
    from trajectories.rollouts.step_diff import print_step_diff, step_diff

    if step is not None and (messages or brief):
        raise UsageError("--step prints the patch of one step; leave --messages and --brief out")
    settings = load_settings(db=db)
    with opened_store(settings.db) as store:
        if step is not None:
            diff = step_diff(store, trajectory, step, mirrors=settings.mirrors_dir, data_dir=settings.data_dir)
            present(as_json, diff.row(), print_step_diff, diff)
            return
        report = trajectory_report(store, trajectory, messages=messages)
    present(as_json, report, print_trajectory, report, brief=brief)


@rollouts.command()
@repository_option
@chain_option
@click.option("--trajectory", metavar="ID", help="One trajectory only, named by its id or the beginning of it.")
@db_option
@json_option
def audit(repository: str | None, chain: str | None, trajectory: str | None, db: str | None, as_json: bool) -> None:
    """Look over trajectories for signs of cheating, without their outcome.

    Signs are found by rules in code, without a model: tests that were edited, source that knows its tests, values
    copied from outputs, attempts at network, history, package caches and the runner's internals.

    \b
    Example:
      prchain rollouts audit
      prchain rollouts audit --trajectory 81c2 --json
    """
    from trajectories.audit.report import audit_store, print_audit

    with opened_store(load_settings(db=db).db) as store:
        report = audit_store(store, trajectory, chain, repository)
    present(as_json, report.row(), print_audit, report)
