"""The commands of process reward models: replay, compare, report, labels; `sweep` is in a module of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from prchain.core.cli_options import Group, db_option, json_option, repository_option, spending_options
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say, tally
from prchain.core.endings import end_command
from prchain.core.loading import load_settings
from sql.opening import opened_store
from trajectories.agents.observers.flags import prm_option, prm_spec
from trajectories.studies.drawing import require_drawing, write_drawing
from trajectories.studies.guidance.sweeps.cli import sweep

if TYPE_CHECKING:
    from prchain.core.settings import Settings
    from trajectories.studies.guidance.stored import ReadingChoice

_Command = TypeVar("_Command", bound=Callable[..., Any])

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.group(cls=Group)
def prm() -> None:
    """Measure process reward models, which guide agents while they run.

    `rollouts run --prm` and `curate run --prm` let one guide.

    \b
    Example:
      prchain rollouts run --prm D --stage-limits steps=75
      prchain prm replay --prm D --dry-run
      prchain prm sweep --variants base,S,D,DR --strategy single --budget 20
      prchain prm report
    """


# ---- replay


@prm.command()
@click.option("--trajectory", metavar="ID", help="Of one trajectory only, named by its id or the beginning of it.")
@click.option("--outcome", metavar="NAME", help="Of one outcome only: accepted, rejected, ...")
@click.option("--model-purpose", default="prm", show_default=True, metavar="NAME", help="Whose model answers.")
@click.option("--against", type=_FILE, metavar="FILE", help="Score it by labels: trajectory, position, attempt, "
              "last_step, category, label.")  # fmt: skip
@prm_option
@spending_options("Trajectories")
@db_option
@json_option
def replay(
    trajectory: str | None,
    outcome: str | None,
    model_purpose: str,
    against: Path | None,
    workers: int | None,
    budget: float | None,
    dry_run: bool,
    prm: Mapping[str, str] | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Read the windows of stored trajectories, without the agent: nothing is inserted.

    Says what is detected, by category and by the trajectory's outcome. A window that was read with the same settings,
    model and prompt is not asked about again. A run can be killed at any moment and started again.

    \b
    Example:
      prchain prm replay --outcome rejected --prm D --dry-run
      prchain prm replay --trajectory 81c2 --prm S --model-purpose judge
      prchain prm replay --prm D --against labels.csv
    """
    from trajectories.agents.guidance.observer import PrmKind
    from trajectories.agents.guidance.taxonomy import load_taxonomy
    from trajectories.studies.guidance.endings import end_run, print_estimates
    from trajectories.studies.guidance.label_file import read_labels
    from trajectories.studies.guidance.replay import ReplayChoice, open_replay
    from trajectories.studies.guidance.report_replay import print_replay, replay_row
    from trajectories.studies.guidance.stored import ReadingChoice

    settings = load_settings(db=db, workers=workers)
    kind = _kind(prm)
    assert isinstance(kind, PrmKind)
    chosen = kind.chosen
    labels = None if against is None else read_labels(against, chosen.categories or load_taxonomy())
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_replay(
            settings,
            chosen,
            ReplayChoice(trajectory, outcome),
            purpose=model_purpose,
            budget_usd=budget,
            progress=progress,
        ) as runner,
    ):
        if dry_run:
            windows, estimate = runner.estimate()
            print_estimates({f"{chosen.name}, {counted(windows, 'window')}": estimate}, as_json)
            return
        report = runner.run(settings.workers)
        spending = runner.gateway.spending()
        row = replay_row(runner.store, runner.id, [unit.trajectory for unit in runner.units()])
    row |= {"left": report.left + len(report.failed), "stopped": report.stopped, "usd": spending.cost}
    if labels is not None:
        row["scores"] = _scored(settings, ReadingChoice(replay=row["replay"]), labels)
    present(as_json, row, print_replay, row)
    if not as_json:
        say(spending.words())
    unread = sum(row["faults"].values())
    good = row["windows"] - unread if row["windows"] else len(report.results)
    nothing = f"no window was read: {tally(row['faults'])}"
    end_run(report, report.failed, "trajectory", good=good, nothing=nothing)


def _kind(chosen: Mapping[str, str] | None) -> object:
    """The process reward model of these settings; the paper's canonical variant where they are None."""
    from trajectories.agents.observers.setup import make_observers

    (kind,) = make_observers((prm_spec(chosen or {}),))
    return kind


def _scored(settings: Settings, choice: ReadingChoice, labels: Sequence[Any]) -> dict[str, Any]:
    from trajectories.studies.guidance.agreement import scores
    from trajectories.studies.guidance.label_file import check_windows, settled
    from trajectories.studies.guidance.stored import known_windows, stored_readings

    with opened_store(settings.db) as store, store.reading() as tx:
        check_windows(labels, known_windows(tx))
        found = stored_readings(tx, choice)
    return {name: asdict(score) for name, score in scores(found, settled(labels).labels).items()}


@prm.command()
@click.argument("one", metavar="ONE")
@click.argument("other", metavar="OTHER")
@db_option
@json_option
def compare(one: str, other: str, db: str | None, as_json: bool) -> None:
    """Compare two readings of the same windows, by category: kappa.

    ONE and OTHER are replays (the id that `replay` prints, or its beginning), variants, or `live` for what was read
    while agents ran.

    \b
    Example:
      prchain prm compare D S
      prchain prm compare 3f0c live
    """
    from trajectories.studies.guidance.agreement import category_kappas, print_agreement, suboptimal_kappa
    from trajectories.studies.guidance.report_replay import reading_choice
    from trajectories.studies.guidance.stored import stored_readings

    with opened_store(load_settings(db=db).db) as store, store.reading() as tx:
        first, second = (stored_readings(tx, reading_choice(tx, name)) for name in (one, other))
    overall, categories = suboptimal_kappa(first, second), category_kappas(first, second)
    row = {"suboptimal": asdict(overall), "categories": {name: asdict(it) for name, it in categories.items()}}
    present(as_json, row, print_agreement, overall, categories, one[:12], other[:12])


prm.add_command(sweep)


# ---- figures and data


@prm.command()
@repository_option
@click.option(
    "--difficulty",
    type=_FILE,
    metavar="FILE",
    help="CSV: CHAIN/POSITION, minutes.  [default: the publisher's words, else by reference patches]",
)
@click.option("--svg", type=_FILE, metavar="FILE", help="Also draw what was resolved, by difficulty.")
@db_option
@json_option
def report(repository: str | None, difficulty: Path | None, svg: Path | None, db: str | None, as_json: bool) -> None:
    """What guidance came to: rollouts with and without it, over the same stages.

    Resolution by hidden tests, also by difficulty; patches, steps, tokens, windows, cost, and what one more resolved
    stage cost (SWE-PRM, section 4.3 and table 4). Differences have 95 % bootstrap intervals, paired by stage.

    \b
    Example:
      prchain prm report --difficulty minutes.csv
      prchain prm report --svg difficulty.svg
    """
    from trajectories.studies.guidance.difficulty import read_minutes
    from trajectories.studies.guidance.drawing import difficulty_drawing
    from trajectories.studies.guidance.report import print_prm_report, prm_report

    if svg is not None:
        require_drawing(svg)
    minutes = None if difficulty is None else read_minutes(difficulty)
    with opened_store(load_settings(db=db).db) as store:
        row = prm_report(store, repository=repository, minutes=minutes)
    if svg is not None:
        write_drawing(svg, difficulty_drawing(row))
    present(as_json, row, print_prm_report, row)


@prm.command()
@click.option("--out", type=_FILE, required=True, metavar="FILE", help="JSON Lines.")
@click.option("--beginnings", is_flag=True, help="Beginnings that two rollouts share, one guided and one not.")
@click.option("--trajectory", metavar="ID", help="Of one trajectory only.")
@click.option("--outcome", metavar="NAME", help="Of trajectories with one outcome only.")
@click.option("--variant", metavar="NAME", help="Of one variant only.")
@click.option("--benchmarks", is_flag=True, help="Also of tasks that measure models.")
@click.option("--force", is_flag=True, help="Replace the file.")
@db_option
@json_option
def labels(
    out: Path,
    beginnings: bool,
    trajectory: str | None,
    outcome: str | None,
    variant: str | None,
    benchmarks: bool,
    force: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Write windows with what was found in them and what came after: data to train a smaller model.

    With --beginnings: those that two rollouts share, of which one was guided there and the other was not, where their
    verdicts differ.

    \b
    Example:
      prchain prm labels --out windows.jsonl --variant D
      prchain prm labels --beginnings --out pairs.jsonl
    """
    from prchain.core.errors import UsageError
    from trajectories.studies.guidance.labels import write_labels
    from trajectories.studies.guidance.pairs import write_pairs

    if beginnings and (trajectory or outcome or variant):
        raise UsageError("--beginnings compares all rollouts; it takes no --trajectory, --outcome or --variant")
    settings = load_settings(db=db)
    with opened_store(settings.db) as store:
        if beginnings:
            counts: Any = write_pairs(store, out, benchmarks=benchmarks, force=force, secrets=settings.secrets)
        else:
            counts = write_labels(
                store,
                out,
                trajectory=trajectory,
                outcome=outcome,
                variant=variant,
                benchmarks=benchmarks,
                force=force,
                secrets=settings.secrets,
            )
    names = counts.__dataclass_fields__
    row = {name: dict(it) if isinstance(it := getattr(counts, name), Mapping) else it for name in names}
    present(as_json, row, _print_written, counts, out)
    end_command(done=True, good=counts.rows, nothing=f"no row to write, so {out} was not written")


def _print_written(counts: Any, out: Path) -> None:
    if counts.rows:
        say(f"{counted(counts.rows, 'row')} written to {out}")
    if barred := counts.left_out.get("benchmark"):
        say(f"{barred:,} left out over tasks that measure models (benchmark); --benchmarks takes them")
