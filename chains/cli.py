"""The commands of chains: build, list, show."""

from __future__ import annotations

import gc
import re
from dataclasses import replace
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from click.core import ParameterSource

from prchain.core.cli_options import (
    STRATEGIES,
    Group,
    choice_option,
    db_option,
    json_option,
    option,
    repository_option,
    strategy_option,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import counted, present, say_content, say_next
from prchain.core.endings import end_command
from prchain.core.errors import UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store

if TYPE_CHECKING:
    from chains.options import BuildOptions, Strategy


@click.group(cls=Group)
def chains() -> None:
    """Choose chains of pull requests that build on each other.

    \b
    Example:
      prchain chains build
      prchain chains list --limit 20
    """


@chains.command()
@click.argument("repository", required=False, metavar="[OWNER/NAME]")
@option(
    "--strategy",
    heading="Chains",
    type=STRATEGIES,
    default="evidence",
    show_default=True,
    help="evidence: all of the next two; reference: who cites whom, or was begun on whose branch; lineage: who changes "
    "whose code; temporal: adjacent in time; single: each alone.",
)
@option(
    "--min",
    "shortest",
    heading="Chains",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="Fewest stages.",
)
@option(
    "--max", "longest", heading="Chains", type=click.IntRange(min=1), default=5, show_default=True, help="Most stages."
)
@option(
    "--floor",
    heading="Chains",
    type=click.FloatRange(0, 1),
    help="Least confidence of an edge.  [default: the strategy's own]",
)
@option(
    "--worth",
    heading="Stages",
    type=click.FloatRange(0, 1),
    help="Least worth of a stage as a task.  [default: the strategy's own]",
)
@option(
    "--with-tests", heading="Stages", is_flag=True, help="Only stages that change tests: others can never be proved."
)
@option(
    "--span",
    heading="Chains",
    metavar="DAYS",
    type=click.IntRange(min=0),
    help="Most days from the first landing of a chain to its last.",
)
@option("--shared", heading="Chains", is_flag=True, help="A pull request may be in several chains.")
@option(
    "--reselect",
    heading="Chains",
    is_flag=True,
    help="Choose anew also what has tasks; chains that lose their place retire.",
)
@option(
    "--side-by-side",
    heading="Chains",
    is_flag=True,
    help="What other strategies made tasks of may be chosen, too: to compare strategies on the same pull requests.",
)
@option("--keep", heading="Stages", multiple=True, metavar="FILTER", help="Switch a filter off; may be repeated.")
@option(
    "--min-lines",
    heading="Stages",
    type=click.IntRange(min=0),
    help="Fewest lines of program text a stage changes.  [default: 5]",
)
@option(
    "--max-lines",
    heading="Stages",
    type=click.IntRange(min=1),
    help="Most lines of program text a stage changes.  [default: 1500]",
)
@option(
    "--max-files",
    heading="Stages",
    type=click.IntRange(min=1),
    help="Most files of program text a stage changes.  [default: 40]",
)
@option(
    "--language",
    heading="Stages",
    multiple=True,
    metavar="NAME",
    help="Only stages mostly in this language; may be repeated.",
)
@option(
    "--path",
    "paths",
    heading="Stages",
    multiple=True,
    metavar="GLOB",
    help="Only stages with program text there; !GLOB: elsewhere; may be repeated.",
)
@option(
    "--licence", heading="Repositories", multiple=True, metavar="SPDX", help="Allow this licence too; 'any' allows all."
)
@option(
    "--allow-benchmarks",
    heading="Repositories",
    is_flag=True,
    help="Keep repositories that evaluation benchmarks are made from.",
)
@option(
    "--benchmark-list",
    heading="Repositories",
    type=click.Path(path_type=Path),
    help="File of owner/name#N or instance ids that must not be in a chain.",
)
@db_option
@json_option
def build(
    repository: str | None,
    strategy: str,
    shortest: int,
    longest: int,
    floor: float | None,
    worth: float | None,
    with_tests: bool,
    span: int | None,
    shared: bool,
    reselect: bool,
    side_by_side: bool,
    keep: tuple[str, ...],
    min_lines: int | None,
    max_lines: int | None,
    max_files: int | None,
    language: tuple[str, ...],
    paths: tuple[str, ...],
    licence: tuple[str, ...],
    allow_benchmarks: bool,
    benchmark_list: Path | None,
    db: str | None,
    as_json: bool,
) -> None:
    """Choose the chains of the mined repositories, or of one.

    Every landed pull request ends with one outcome, which `prchain chains build` counts. Chains that have tasks stay;
    the others are chosen anew each time.

    \b
    Example:
      prchain chains build
      prchain chains build pallets/click --max 8 --span 365 --path '!docs/*'
      prchain chains build --strategy temporal --licence any --allow-benchmarks
    """
    from chains.build import ChainBuilder
    from chains.build_report import print_build, report_row

    if shortest > longest:
        raise UsageError(f"--min {shortest} is more than --max {longest}")
    typed = click.get_current_context().get_parameter_source("floor") is ParameterSource.COMMANDLINE
    if strategy in {"temporal", "single"} and (shared or typed):
        flag = "--shared" if shared else "--floor"
        raise UsageError(f"--strategy {strategy} does not look at who builds on whom; leave {flag} out")
    if strategy != "single" and shortest < 2:
        raise UsageError("a chain of one is --strategy single; give --min 2 or more")
    options = _options(
        strategy=cast("Strategy", strategy),
        limits=(shortest, longest),
        floors=(floor, worth),
        with_tests=with_tests,
        span=span,
        shared=shared,
        reselect=reselect,
        side_by_side=side_by_side,
        keep=keep,
        sizes=(min_lines, max_lines, max_files),
        languages=language,
        paths=paths,
        licences=licence,
        allow_benchmarks=allow_benchmarks,
        benchmark_list=benchmark_list,
    )
    # A run makes hundreds of thousands of signs and lines, and hardly any reference cycles to collect.
    gc.set_threshold(200_000, 20, 50)
    settings = load_settings(db=db)
    with (
        opened_store(settings.db) as store,
        open_progress(secrets=settings.secrets) as progress,
    ):
        builder = ChainBuilder(store, mirrors=settings.mirrors_dir, progress=progress, options=options)
        reports = builder.build(repository)
    if repository is not None and not reports:
        raise UsageError(f"{repository} has not been mined into this database; `prchain status` lists what has")
    present(as_json, [report_row(report) for report in reports], print_build, reports)
    if not as_json and any(report.chains for report in reports):
        say_next("tasks build --dry-run")
    chosen = sum(report.chains for report in reports)
    end_command(done=not any(report.error for report in reports), good=chosen, nothing="no chain is chosen")


def _options(
    *,
    strategy: Strategy,
    limits: tuple[int, int],
    floors: tuple[float | None, float | None],
    with_tests: bool,
    span: int | None,
    shared: bool,
    reselect: bool,
    side_by_side: bool,
    keep: tuple[str, ...],
    sizes: tuple[int | None, int | None, int | None],
    languages: tuple[str, ...],
    paths: tuple[str, ...],
    licences: tuple[str, ...],
    allow_benchmarks: bool,
    benchmark_list: Path | None,
) -> BuildOptions:
    from chains.options import BuildOptions
    from chains.stages.benchmarks import Benchmarks
    from chains.stages.filters import PERMISSIVE, Filters
    from chains.stages.licence import recognised
    from prchain.core.code.kinds import LANGUAGES

    for name in languages:
        if name.lower() not in LANGUAGES:
            raise UsageError(f"{name} is no language that is known; known are {', '.join(sorted(LANGUAGES))}")
    for licence in licences:
        if licence.lower() != "any" and licence not in recognised() | PERMISSIVE:
            raise UsageError(f"{licence} is no licence that can be recognised; write its SPDX id, such as GPL-3.0")
    names = ("min_source_lines", "max_source_lines", "max_source_files")
    size_limits: dict[str, Any] = {name: size for name, size in zip(names, sizes, strict=True) if size is not None}
    filters = Filters(
        keep=frozenset((*keep, *(("benchmark_repository",) if allow_benchmarks else ()))),
        languages=frozenset(name.lower() for name in languages),
        with_tests=with_tests,
        paths=paths,
        licences=None if "any" in {name.lower() for name in licences} else PERMISSIVE | set(licences),
        **size_limits,
    )
    return BuildOptions(
        strategy=strategy,
        shortest=1 if strategy == "single" else limits[0],
        longest=limits[1],
        floor=floors[0],
        worth=floors[1],
        span=span,
        disjoint=not shared,
        reselect=reselect,
        side_by_side=side_by_side,
        filters=filters,
        benchmarks=Benchmarks.load(benchmark_list),
    )


@chains.command("yield")
@click.argument("repository", required=False, metavar="[OWNER/NAME]")
@db_option
@json_option
def yield_(repository: str | None, db: str | None, as_json: bool) -> None:
    """Count the chains that each strategy would give at several floors, and how good they probably are.

    Nothing is chosen: `prchain chains build --strategy S --floor F --worth W` then takes the point that you want.

    \b
    Example:
      prchain chains yield pallets/click
    """
    from chains.build import ChainBuilder
    from chains.history import repositories
    from chains.yields import EVERYTHING, print_yields, repository_yields, yields_row

    settings = load_settings(db=db)
    with (
        opened_store(settings.db) as store,
        open_progress(secrets=settings.secrets) as progress,
    ):
        with store.reading() as tx:
            mined = repositories(tx, repository)
        if not mined:
            raise UsageError(
                f"{repository} has not been mined into this database"
                if repository
                else "no repository has been mined into this database; `prchain mine` does"
            )
        builder = ChainBuilder(store, mirrors=settings.mirrors_dir, progress=progress, options=EVERYTHING)
        found = []
        for one in mined:
            task = progress.task(f"{one.full_name}: yield")
            found.append(repository_yields(builder, one, task))
            task.done(f"{counted(found[-1].landed, 'landed pull request')} surveyed")
    present(as_json, [yields_row(one) for one in found], print_yields, found)


@chains.command("list")
@repository_option
@strategy_option
@click.option("--length", type=click.IntRange(min=1), help="Only chains of so many stages.")
@click.option("--language", metavar="NAME", help="Only chains mostly in this language.")
@click.option("--min-score", type=float, help="Only chains of at least this total confidence.")
@click.option("--span", metavar="DAYS", type=click.IntRange(min=0), help="Only chains that landed in so many days.")
@click.option("--with-tests", is_flag=True, help="Only chains of which each stage changes tests.")
@click.option("--retired", is_flag=True, help="List those that were retired instead.")
@choice_option(
    "--sort",
    ["score", "confidence", "length", "lines", "days", "date", "repository"],
    "Largest or latest first; confidence is that of the weakest edge.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N.")
@db_option
@json_option
def list_chains(
    repository: str | None,
    strategy: str,
    length: int | None,
    language: str | None,
    min_score: float | None,
    span: int | None,
    with_tests: bool,
    retired: bool,
    sort: str,
    limit: int | None,
    db: str | None,
    as_json: bool,
) -> None:
    """List the chains that were chosen.

    \b
    Example:
      prchain chains list --sort confidence --limit 20
      prchain chains list --repository pallets/click --length 3
    """
    from chains.chain_report import find_chains, other_strategies, print_chains

    with opened_store(load_settings(db=db).db) as store:
        rows = find_chains(store, strategy, retired=retired, repository=repository)
        others = other_strategies(store, strategy)
    total = len(rows)
    if length is not None:
        rows = [row for row in rows if row.length == length]
    if language is not None:
        rows = [row for row in rows if row.language == language.lower()]
    if min_score is not None:
        rows = [row for row in rows if row.score >= min_score]
    if span is not None:
        rows = [row for row in rows if row.days <= span]
    if with_tests:
        rows = [row for row in rows if all(stage.tested for stage in row.stages)]
    descending = sort != "repository"
    rows.sort(key=lambda row: row.id)
    rows.sort(key=attrgetter(sort), reverse=descending)
    present(as_json, rows[:limit], print_chains, rows[:limit], len(rows), total, others)


@chains.command()
@click.argument("repository", metavar="OWNER/NAME[#N]")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="Only the strongest N pairs.")
@click.option(
    "--min-lines",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Only pairs of so many lines of code.",
)
@click.option("--uncited", is_flag=True, help="Only pairs of which neither cites the other.")
@click.option("--diff", "with_lines", is_flag=True, help="Print the lines, too.")
@db_option
@json_option
def lineage(
    repository: str, limit: int, min_lines: int, uncited: bool, with_lines: bool, db: str | None, as_json: bool
) -> None:
    """Find and print whose code each landed pull request changes; of one pull request with #N.

    The history is walked once; later calls walk what was mined since. A changed line is one of source or tests that is
    code and that the later pull request does not only move.

    \b
    Example:
      prchain chains lineage pallets/click
      prchain chains lineage 'pallets/click#2622' --diff
    """
    from chains.lineage.pages import pairs_with_lines, traced_page
    from chains.lineage.report import print_changed_lines, print_lineage, print_trace

    name, mark, number = repository.partition("#")
    if mark and not re.fullmatch(r"\d{1,9}", number):
        raise UsageError(
            f"{repository!r} is not OWNER/NAME or OWNER/NAME#N; quote it, a shell may take # for a comment"
        )
    settings = load_settings(db=db)
    with (
        opened_store(settings.db) as store,
        open_progress(secrets=settings.secrets) as progress,
    ):
        report, page = traced_page(
            store,
            name,
            settings.mirrors_dir,
            progress,
            number=int(number) if mark else None,
            fewest=min_lines,
            uncited=uncited,
        )
        shown = pairs_with_lines(store, page, limit, settings.mirrors_dir) if with_lines else []
    page["pairs"] = page["pairs"][:limit] if as_json else page["pairs"]
    if as_json:
        present(True, page, print_trace, report)
        return
    print_trace(report)
    print_lineage(page, limit)
    for pair in shown:
        print_changed_lines(pair)


@chains.command()
@click.argument("chain", metavar="ID")
@click.option("--diff", "with_lines", is_flag=True, help="Print the lines of the stage before that each changes, too.")
@click.option("--reference", is_flag=True, help="Print the reference patch of each stage, too.")
@click.option("--stage", type=click.IntRange(min=1), metavar="N", help="With --reference: this stage's patch, alone.")
@db_option
@json_option
def show(chain: str, with_lines: bool, reference: bool, stage: int | None, db: str | None, as_json: bool) -> None:
    """Print one chain: its stages, why each follows the one before, and what it changes of it. The start of an ID is
    enough.

    \b
    Example:
      prchain chains show 1f0c
      prchain chains show 1f0c --diff
      prchain chains show 1f0c --reference
      prchain chains show 1f0c --reference --stage 2 | git apply
    """
    from chains.chain_report import PatchedStage, chain_report, print_chain
    from chains.lineage.pages import pairs_with_lines
    from chains.lineage.report import print_changed_lines
    from chains.reference_patches import print_reference, reference_patches, with_reference

    if stage is not None and (with_lines or not reference):
        raise UsageError("--stage prints the reference patch of one stage; give --reference, and leave --diff out")
    settings = load_settings(db=db)
    with opened_store(settings.db) as store:
        report = chain_report(store, chain)
        stages = tuple(one for one in report.stages if stage in (None, one.position))
        if not stages:
            raise UsageError(f"chain {report.id} has no stage {stage}")
        steps = [{"source": later.number, "target": earlier.number} for earlier, later in pairwise(stages)]
        traced = {"repository": report.repository, "pairs": steps}
        shown = pairs_with_lines(store, traced, len(steps), settings.mirrors_dir) if with_lines and not as_json else []
        mirrors = settings.mirrors_dir
        references = reference_patches(store, report.id, stages, mirrors) if reference else []
    if reference:
        stages = tuple(with_reference(PatchedStage, *it) for it in zip(stages, references, strict=True))
    if stage is not None:
        present(as_json, stages[0], say_content, references[0])
        return
    report = replace(report, stages=stages)
    present(as_json, report, print_chain, report)
    for pair in shown:
        print_changed_lines(pair)
    for one, patch in zip(stages, references, strict=False) if not as_json else ():
        print_reference(one.position, one.number, patch)
