"""What the commands of environments print: lines for people, rows for machines."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from rich.filesize import decimal

from environments.images.build_run import Build
from environments.images.images import Image
from environments.images.interpreters.offered import BASE, Offer
from environments.images.stage_image import BUILT
from environments.proofs.proof import UNPROVED
from environments.proofs.proof_rows import ChainProof, StageProof
from environments.proofs.validations import ValidateReport
from prchain.core.console.terminal import counted, say, say_reasons, say_table, shortened, tally
from prchain.core.endings import say_causes, say_end
from prchain.core.errors import BuildFailed
from sql.outcomes import PROVED
from sql.store import Store
from sql.strength import strength_row
from sql.tables import BuiltImage

BUILD_FAILED = BuildFailed("").name

_WIDTH = 300
"""Characters of what is said of a build."""


def size_text(count: int | None) -> str:
    """Bytes for people: ``1.2 GB``, in powers of ten, as docker prints them."""
    return "?" if count is None else decimal(count)


def failed_builds(store: Store) -> list[dict[str, Any]]:
    """The builds that failed when they were last tried."""
    with store.reading() as tx:
        rows = list(tx.rows(BuiltImage, "name", "repository", "recipe", "outcome", "reason", "built_at"))
    names = ("name", "repository", "recipe", "outcome", "reason", "built_at")
    found = [dict(zip(names, row, strict=True)) for row in rows]
    return [{**row, "reason": row["reason"] or {}} for row in found if row["outcome"] != BUILT]


def image_rows(images: Sequence[Image], own: Collection[str]) -> list[dict[str, Any]]:
    """Images as rows; `own` are the names that the database knows."""
    names = ("name", "repository", "recipe", "size_bytes", "own_bytes", "created", "as_of", "notes")
    return [{**{name: getattr(image, name) for name in names}, "of_database": image.name in own} for image in images]


def print_images(
    images: Sequence[Image],
    failed: Sequence[dict[str, Any]],
    own: Collection[str],
    layers: Sequence[Image] = (),
    *,
    hidden: int = 0,
) -> None:
    """One line an image with what it takes alone, one a layer and one a failed build; `hidden` images are not shown."""
    lines = []
    for image in images:
        origin = "" if image.name in own else " (not of this database)"
        details = "; ".join((f"{image.recipe}, {image.created[:10]}", *image.notes))
        lines.append((size_text(image.own_bytes), f"{image.name}{origin}", shortened(details, _WIDTH)))
    for layer in layers:
        details = "; ".join((f"layer: {layer.recipe}, {layer.created[:10]}", *layer.notes))
        lines.append((size_text(layer.own_bytes), layer.name, details))
    for build in failed:
        details = f"{build['recipe']}, {build['reason'].get('message', build['outcome'])}"
        lines.append(("-", build["name"], shortened(f"failed: {details}", _WIDTH)))
    if lines:
        say_table(("size", "image", "recipe"), lines)
    takes = sum(image.own_bytes or 0 for image in images)
    builds = counted(len(failed), "failed build")
    say(f"{counted(len(images), 'image')}, {size_text(takes)} beyond what they share; {builds}")
    if hidden:
        say(f"{counted(hidden, 'more image')} of prchain on the engine, not of this database; --everybody lists them")


def interpreter_rows(offers: Sequence[Offer], no_base: str = "") -> list[dict[str, str | None]]:
    """What is offered, for machines; `no_base` says why the base image's own is unknown."""
    rows: list[dict[str, str | None]] = [
        {"python": it.text, "years": it.years, "origin": it.origin, "source": it.source} for it in offers
    ]
    return [*rows, {"python": None, "years": None, "origin": BASE, "source": no_base}] if no_base else rows


def print_interpreters(offers: Sequence[Offer], no_base: str = "") -> None:
    """One line an interpreter, and how to get those that lack."""
    rows = [(it.text, it.years, f"{it.origin}: {it.source}") for it in offers]
    say_table(("python", "for", "from"), [*rows, ("?", "?", BASE)] if no_base else rows)
    if no_base:
        say(no_base)
    missing = [f"3.{minor}" for minor in range(6, 15) if (3, minor) not in {it.minor for it in offers}]
    if missing:
        say(
            f"not here: {', '.join(missing)}; `pyenv install VERSION` or `uv python install VERSION` on this machine "
            "brings one, a registry with the official images python:X.Y-slim all of them"
        )


def print_pruned(images: Sequence[Image]) -> None:
    """What was removed."""
    for image in images:
        say(f"removed {image.name} ({size_text(image.own_bytes)})")
    own = sum(image.own_bytes or 0 for image in images)
    say(f"{counted(len(images), 'image')} removed, {size_text(own)}")


def print_leftovers(removed: Sequence[str], left: Sequence[str]) -> None:
    """What was cleared away, and what could not be."""
    for name in removed:
        say(f"removed {name}")
    for name in left:
        say(f"{name} cannot be removed; something else stands on it", err=True)
    say(f"{counted(len(removed), 'leftover')} removed" if removed else "nothing was left behind")


def print_builds(builds: Sequence[Build], build_help: BuildHelp) -> None:
    """One line an image or failure, the sum, and what to do where a build failed."""
    for build in builds:
        if build.ok:
            stages = counted(build.stages, "stage")
            duration = f" in {build.seconds:.0f} s" if build.seconds else ""
            repairs = f", {counted(build.repairs, 'repair')}" if build.repairs else ""
            notes = f"; {shortened('; '.join(build.notes), _WIDTH)}" if build.notes else ""
            say(f"{build.outcome}{duration}: {build.image} ({stages}{repairs}){notes}")
    say_reasons(
        (f"{build.repository} ({counted(build.stages, 'stage')})", build.outcome, build.reason)
        for build in builds
        if not build.ok
    )
    if not builds:
        return
    good = [build for build in builds if build.ok]
    served = counted(sum(build.stages for build in good), "stage")
    say(f"{counted(len(good), 'image')} there for {served}, {len(builds) - len(good):,} failed")
    if any(build.outcome == BUILD_FAILED for build in builds):
        build_help.print()


@dataclasses.dataclass(frozen=True, slots=True)
class BuildHelp:
    """What can be done about builds that failed. `logs` and `recipes` are folders; `repaired`: a model has tried."""

    logs: Path
    recipes: Path
    repaired: bool

    def print(self) -> None:
        """Say it in one line."""
        log = f"read the log in {self.logs}" if self.logs.is_dir() else "read what the step printed"
        repair = "" if self.repaired else "; --repair lets a model change the recipe"
        say(
            f"of build_failed: {log}{repair}; or write OWNER--NAME.toml, with keys of a recipe of your own, into "
            f"{self.recipes} (environments_recipes_dir)",
            err=True,
        )


def validation_rows(report: ValidateReport) -> dict[str, Any]:
    """A validation run for machines; tests are counted, not named."""
    return {
        "outcomes": report.outcomes,
        "stood_before": report.standing,
        "left": report.left,
        "chains": [_chain_row(proof) for proof in report.proofs],
        "stopped": [
            {"chain_id": result.unit.key, "outcome": result.outcome, "reason": result.reason}
            for result in report.failed
        ],
        "stopped_early": report.stopped,
    }


def _chain_row(proof: ChainProof) -> dict[str, Any]:
    stages = [
        {
            "position": stage.position,
            "outcome": stage.outcome,
            "reason": stage.reason,
            "image": stage.image,
            **({"publisher": stage.publisher} if stage.publisher else {}),
            **({"neighbour": stage.neighbour} if stage.neighbour else {}),
            "files": len(stage.files),
            "classes": stage.classes.sizes(),
            "removed": len(stage.removed),
            "stage_image": stage.stage_image,
            "strength": strength_row(stage.strength) if stage.outcome == PROVED else None,
            "safeguard": str(stage.baseline.safeguard) if stage.outcome == PROVED else None,
            "seconds": round(stage.seconds, 1),
        }
        for stage in proof.stages
    ]
    return {
        "chain_id": proof.chain_id,
        "outcome": proof.outcome,
        "reason": proof.reason,
        "seconds": round(proof.seconds, 1),
        "stages": stages,
        **({"published": proof.published.row()} if proof.published else {}),
    }


def print_validations(report: ValidateReport, build_help: BuildHelp) -> None:
    """One line a chain with F2P and P2P of each stage, the sum, and what to do where a build failed."""
    for proof in report.proofs:
        tests = ", ".join(
            f"{stage.position}: {len(stage.classes.f2p)}/{len(stage.classes.p2p)}{_worth(stage)}"
            if stage.outcome in {PROVED, UNPROVED}
            else f"{stage.position}: {stage.outcome}"
            for stage in proof.stages
        )
        say(f"{proof.chain_id} {proof.outcome} in {proof.seconds:.0f} s; F2P/P2P of stages {tests}")
        for stage in proof.stages:
            if stage.publisher:
                say(f"  {stage.publisher}")
            if stage.neighbour:
                say(f"  stage {stage.position} {stage.neighbour}")
        if proof.published and proof.published.differ:
            say(f"  {proof.published.words()}")
    say_causes(result for result in report.results if result.outcome != PROVED)
    failed, failed_before = (
        sum(count for name, count in counts.items() if name not in {PROVED, UNPROVED})
        for counts in (report.outcomes, report.before)
    )
    before = f" ({tally(dict(report.before))})" if failed_before else ""
    say(f"{_ended_words(report)}; {report.standing:,} done before{before}")
    if failed or failed_before:
        hint = "`prchain environments show ID` says more, --retry begins anew with them"
        say(f"{counted(failed + failed_before, 'chain')} failed; {hint}")
    if BUILD_FAILED in report.outcomes:
        build_help.print()
    say_end("chain", report.failed, report.left, report.stopped)


def _worth(stage: StageProof) -> str:
    safeguard = str(stage.baseline.safeguard) if stage.outcome == PROVED else ""
    return "".join(f" {it}" for it in (stage.strength and stage.strength.worth, safeguard) if it)


def _ended_words(report: ValidateReport) -> str:
    """How many chains ended how, and what became of those that did not: ``0 done, 1 image_missing, 3 not begun``."""
    if report.done and not report.proofs:
        return "nothing new to do"
    stopped = dict(sorted(Counter(result.outcome for result in report.failed).items()))
    ended = (tally(report.outcomes) or "0 done", tally(stopped), tally({"not begun": report.left}))
    return ", ".join(filter(None, ended))
