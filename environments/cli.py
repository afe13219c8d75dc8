"""The commands of environments: build, list, prune, gc, base, validate, show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from environments.backends import BACKENDS, chosen_backend
from prchain.core.cli_options import (
    COST,
    WHICH,
    Group,
    backend_options,
    budget_option,
    db_option,
    json_option,
    limit_option,
    option,
    repository_option,
    strategy_option,
    workers_option,
)
from prchain.core.console.progress import open_progress
from prchain.core.console.terminal import present, say, say_next
from prchain.core.endings import end_command
from prchain.core.errors import ImageMissing, UsageError
from prchain.core.loading import load_settings
from sql.opening import opened_store

NO_CHAIN = "no chain was chosen; `prchain chains build` does"

if TYPE_CHECKING:
    from prchain.core.llm.gateway import Gateway
    from prchain.core.settings import Settings
    from sql.store import Store


def _chain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = (
        strategy_option,
        repository_option,
        limit_option("Only the N best chains; those that are done count."),
        option(
            "--chain", metavar="ID", heading=WHICH, help="One chain, by the beginning of its id, whatever chose it."
        ),
    )
    for add in reversed(options):
        command = add(command)
    return command


@click.group(cls=Group)
def environments() -> None:
    """Build images of repositories' dependencies, and prove chains by their tests.

    \b
    Example:
      prchain environments build --repository pallets/click
      prchain environments validate --repository pallets/click
      prchain environments show 5f0c
    """


@environments.command()
@_chain_options
@option(
    "--repair", is_flag=True, heading=COST, help="Let a model mend a recipe that does not build, three times at most."
)
@budget_option("Spend no more than this on repairs.")
@click.option("--rebuild", is_flag=True, help="Build anew also what is there.")
@db_option
@json_option
def build(
    strategy: str,
    repository: str | None,
    limit: int | None,
    chain: str | None,
    repair: bool,
    budget: float | None,
    rebuild: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Build the images that the stages of the chosen chains need; stages whose manifests agree share one.

    \b
    Example:
      prchain environments build --repository pallets/click --limit 5
      prchain environments build --chain 5f0c --repair --budget 1
    """
    from environments.images.build_run import build_images
    from environments.images.provide import Provider, build_logs
    from environments.report import BuildHelp, print_builds
    from environments.sandboxes import leftovers

    settings = load_settings(db=db)
    with ExitStack() as stack:
        store = stack.enter_context(opened_store(settings.db))
        progress = stack.enter_context(open_progress(secrets=settings.secrets))
        gateway = _gateway(stack, settings, store, repair, budget)
        provider = stack.enter_context(closing(Provider(settings, store=store, gateway=gateway)))
        leftovers.remove(provider.engine(), leftovers.find(provider.engine()))
        builds = build_images(
            store,
            provider,
            settings,
            progress,
            strategy=strategy,
            repository=repository,
            limit=limit,
            chain=chain,
            rebuild=rebuild,
        )
    build_help = BuildHelp(build_logs(settings), provider.recipes_dir, repaired=repair)
    present(as_json, [asdict(build) for build in builds], print_builds, builds, build_help)
    end_command(done=all(build.ok for build in builds), good=len(builds), nothing=NO_CHAIN)


def _require_repair(repair: bool, budget: float | None) -> None:
    if budget is not None and not repair:
        raise UsageError("--budget is what repairs may cost; give --repair, too")


def _gateway(stack: ExitStack, settings: Settings, store: Store, repair: bool, budget: float | None) -> Gateway | None:
    _require_repair(repair, budget)
    if not repair:
        return None
    from environments.images.repair import PURPOSE
    from sql.ledger import open_gateway

    return stack.enter_context(open_gateway(settings, store, (PURPOSE,), budget_usd=budget))


@environments.command("list")
@repository_option
@click.option("--everybody", is_flag=True, help="Also images that other databases had built.")
@db_option
@json_option
def list_(repository: str | None, everybody: bool, db: str | None, as_json: bool) -> None:
    """List the database's images with what they take on the disk, the layers that images share, and the builds that
    failed.

    \b
    Example:
      prchain environments list --repository pallets/click
      prchain environments list --everybody
    """
    from environments.images.images import list_images
    from environments.images.interpreters.layers import list_layers
    from environments.proofs.proof_rows import own_images
    from environments.report import failed_builds, image_rows, print_images

    settings = load_settings(db=db)
    with opened_store(settings.db) as store, _engine(settings) as engine:
        found = [image for image in list_images(engine) if _is_of(image.repository, repository)]
        layers = list_layers(engine) if repository is None else []
        failed = [
            failed_build for failed_build in failed_builds(store) if _is_of(failed_build["repository"], repository)
        ]
        with store.reading() as tx:
            own = own_images(tx)
    images = [image for image in found if everybody or image.name in own]
    row = {"images": image_rows(images, own), "layers": image_rows(layers, own), "failed": failed}
    present(as_json, row, print_images, images, failed, own, layers, hidden=len(found) - len(images))


def _is_of(name: str, requested: str | None) -> bool:
    return requested is None or name.lower() == requested.lower()


@environments.command()
@repository_option
@click.option("--older-than", type=click.FloatRange(min=0), metavar="DAYS", help="Only images built so long ago.")
@click.option("--all", "every", is_flag=True, help="Also images that validated stages of the database need.")
@click.option("--everybody", is_flag=True, help="Also images that other databases had built, and may need.")
@db_option
@json_option
def prune(
    repository: str | None, older_than: float | None, every: bool, everybody: bool, db: str | None, as_json: bool
) -> None:
    """Remove images that the database had built, and that none of its validated stages needs.

    Images that only other databases know stay, and so do those that nobody knows any more: the engine does not tell
    whose they are. Without --repository, layers that no image stands on go, too. What is removed can be built again.

    \b
    Example:
      prchain environments prune
      prchain environments prune --all --repository pallets/click
    """
    from environments.images.images import prune_images
    from environments.images.interpreters.layers import prune_layers
    from environments.proofs.proof_rows import forget_images, needed_images, own_images
    from environments.report import image_rows, print_pruned

    settings = load_settings(db=db)
    before = datetime.now(UTC) - timedelta(days=older_than) if older_than is not None else None
    with opened_store(settings.db) as store, _engine(settings) as engine:
        with store.reading() as tx:
            keep = frozenset() if every else needed_images(tx)
            own = own_images(tx)
        removed = prune_images(engine, keep=keep, only=None if everybody else own, repository=repository, before=before)
        with store.transaction() as tx:
            forget_images(tx, [image.name for image in removed])
        if repository is None:
            removed += prune_layers(engine, before)
    present(as_json, image_rows(removed, own), print_pruned, removed)


@environments.command()
@click.option("--everybody", is_flag=True, help="Also what running prchain processes and other machines have made.")
@db_option
@json_option
def gc(everybody: bool, db: str | None, as_json: bool) -> None:
    """Remove containers, snapshots and folders that a crash of prchain left behind.

    `build`, `validate` and `rollouts run` begin with it, each for its own backend. Nothing without a label of ours is
    touched. Volumes of agents whose installation was cut off go, too; with --everybody all that no sandbox uses.

    \b
    Example:
      prchain environments gc
    """
    from environments.report import print_leftovers

    settings = load_settings(db=db)
    found: dict[str, bool] = {}
    # Backends without an engine come first, so that they are cleared even where no engine answers.
    for backend in sorted(BACKENDS.values(), key=lambda backend: backend.needs_image):
        found |= backend.of(settings).clear_away(everybody=everybody)
    removed = [name for name, gone in found.items() if gone]
    left = [name for name, gone in found.items() if not gone]
    present(as_json, {"removed": removed, "left": left}, print_leftovers, removed, left)
    end_command(done=not left, good=True, nothing="")


@environments.command()
@click.option("--suite", default="bookworm", show_default=True, help="The release of Debian: bullseye has Python 3.9.")
@click.option("--name", metavar="NAME", help="The image's name.  [default: prchain-base:SUITE]")
@click.option("--mirror", metavar="URL", help="A mirror of Debian.  [default: the one of this machine's apt]")
@db_option
@json_option
def base(suite: str, name: str | None, mirror: str | None, db: str | None, as_json: bool) -> None:
    """Make a base image with debootstrap, where no registry can be reached.

    Needs root and Debian's package debootstrap; name the image in environments_base_image. Those of other releases are
    found by themselves, for stages that want their Python.

    \b
    Example:
      prchain environments base
      export PRCHAIN_ENVIRONMENTS_BASE_IMAGE=prchain-base:bookworm
      prchain environments build
    """
    from environments.images.base_image import make_base_image

    settings = load_settings(db=db)
    name = name or f"prchain-base:{suite}"
    with _engine(settings) as engine:
        image_id = make_base_image(engine, name, suite=suite, mirror=mirror)
    present(as_json, {"name": name, "id": image_id}, say, f"{name} is there; set environments_base_image to its name")


@environments.command()
@db_option
@json_option
def interpreters(db: str | None, as_json: bool) -> None:
    """Say which Pythons images can have here, of which years, from where, and how to get more; also without the base
    image, whose own Python is unknown then.

    \b
    Example:
      prchain environments interpreters
    """
    from environments.images.image_settings import BuildSettings
    from environments.images.interpreters.offered import Interpreters
    from environments.report import interpreter_rows, print_interpreters

    settings = load_settings(db=db)
    with _engine(settings) as engine:
        there = Interpreters(BuildSettings.of(settings))
        try:
            offers, no_base = there.offers(engine), ""
        except ImageMissing as error:
            offers, no_base = there.without_base(engine), str(error)
    found = list(offers.values())
    present(as_json, interpreter_rows(found, no_base), print_interpreters, found, no_base)


@environments.command()
@_chain_options
@option(
    "--runs", type=click.IntRange(1, 20), default=3, show_default=True, heading="Proof", help="Test runs on each side."
)
@backend_options(BACKENDS)
@option(
    "--timeout",
    type=click.FloatRange(min=1),
    default=900,
    show_default=True,
    metavar="SECONDS",
    heading="Proof",
    help="What one run of all test files of a stage may take; a stage whose first run is out of time is "
    "tests_unusable. A single test is ended after 180 s, and fails; environments_build_timeout_seconds limits builds.",
)
@workers_option("Chains")
@option(
    "--stage-images",
    is_flag=True,
    heading="Proof",
    help="Keep an image of each proved stage, for SWE-bench.",
)
@option(
    "--repair",
    is_flag=True,
    heading=COST,
    help="Let a model mend recipes that do not build, or in whose images tests do not run, three times at most.",
)
@budget_option("Spend no more than this on repairs.")
@option("--retry", is_flag=True, heading=WHICH, help="Begin anew with chains that ended and were not proved.")
@option("--renew", is_flag=True, heading=WHICH, help="Prove them once more, with the present recipes and images.")
@option("--strength", is_flag=True, heading="Proof", help="Measure what proofs are worth, also of those that stand.")
@db_option
@json_option
def validate(
    strategy: str,
    repository: str | None,
    limit: int | None,
    chain: str | None,
    runs: int,
    backend: str | None,
    unsafe: bool,
    timeout: float,
    workers: int | None,
    stage_images: bool,
    repair: bool,
    budget: float | None,
    retry: bool,
    renew: bool,
    strength: bool,
    db: str | None,
    as_json: bool,
) -> None:
    """Replay the reference of every stage of the chains, and prove that its tests show its work.

    Each stage's tests run before and after its reference patch, three times on each side. A run can be killed at any
    moment and started again: no stored test run is made twice.

    \b
    Example:
      prchain environments validate --repository pallets/click --workers 4
      prchain environments validate --chain 5f0c --stage-images
      prchain environments validate --repository pallets/click --strength
    """
    from environments.images.provide import build_logs
    from environments.proofs.validate import ValidateOptions
    from environments.proofs.validations import ValidationChoice, open_run
    from environments.report import BuildHelp, print_validations, validation_rows

    settings = load_settings(db=db, workers=workers)
    chosen = chosen_backend(backend or settings.environments_backend, unsafe=unsafe)
    if stage_images and not chosen.needs_image:
        raise UsageError("--stage-images needs a backend that needs images, as docker does")
    options = ValidateOptions(
        backend=chosen.name, runs=runs, test_timeout=timeout, stage_images=stage_images, strength=strength
    )
    choice = ValidationChoice(strategy, repository, limit, chain, retry, renew)
    _require_repair(repair, budget)
    with (
        open_progress(secrets=settings.secrets) as progress,
        open_run(settings, options, choice, repair=repair, budget_usd=budget, progress=progress) as run,
    ):
        provider = run.prover.provider
        run.prover.backend.clear_away()
        report = run.run(settings.workers)
    build_help = BuildHelp(build_logs(settings), provider.recipes_dir, repaired=repair)
    present(as_json, validation_rows(report), print_validations, report, build_help)
    if not as_json and report.good:
        say_next("rollouts run --dry-run")
    nothing = "no chain was proved" if report.results or report.standing else NO_CHAIN
    end_command(done=report.done, good=report.good, nothing=nothing)


@environments.command()
@click.argument("chain", metavar="ID")
@click.option("--tests", is_flag=True, help="Name the tests, not only their numbers.")
@db_option
@json_option
def show(chain: str, tests: bool, db: str | None, as_json: bool) -> None:
    """Print the proof of one chain, named by its id or the beginning of it: how each stage ended, and by which tests.

    \b
    Example:
      prchain environments show 5f0c --tests
    """
    from environments.proofs.proof_report import print_proof, proof_report

    with opened_store(load_settings(db=db).db) as store:
        report = proof_report(store, chain, tests=tests)
    present(as_json, report, print_proof, report)


@contextmanager
def _engine(settings: Settings) -> Iterator[Any]:
    from environments.sandboxes.engine import connect

    with closing(connect(settings.environments_engine)) as engine:
        yield engine
