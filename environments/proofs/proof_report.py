"""One chain's proof to read: how each stage ended, by which tests, and what its runs took."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from environments.proofs.proof import EARLIER_BROKEN, NOT_REACHED, UNPROVED, file_of
from environments.proofs.proof_rows import StageProof, StoredRun, read_runs, read_stages, validations
from environments.proofs.published import PublishedLists, published_image, published_lists
from environments.proofs.reference_runs import AFTER, BEFORE
from environments.stages import read_chain
from environments.suites.canaries.canary import is_renamed
from environments.suites.outcomes import removed_upstream
from environments.suites.testruns import LEFT_OUT, TestRun
from prchain.core.console.reports import WHERE_ASKED
from prchain.core.console.terminal import counted, listed, say
from prchain.core.errors import UsageError
from prchain.core.safeguards import Safeguard
from sql.chosen import find_chain
from sql.outcomes import PROVED
from sql.store import Store
from sql.strength import Strength, UndoingOutcome, strength_row, strength_words
from sql.tables import BuiltImage

_ALWAYS = ("f2p", "p2p", "flaky", "failing")
"""Classes whose number is told also where it is 0."""

_GUARDED = {
    Safeguard.NONE: "nothing guards a grade: what makes its tests pass is believed, unless `--gate tests+audit` "
    "suspects it",
    Safeguard.CANARIES: "canaries alone guard a grade: who reads them and the tests tells them apart",
    Safeguard.HELD: "held: a grade finds out who guesses, and not always who reads its tests",
    Safeguard.TOLD: "told: a grade asks for what none of its processes holds",
}
_LABELS = {"f2p": "F2P", "p2p": "P2P", "timed_out": "timed out"}
_LAST_LINES = 6
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class RunReport:
    """One stored run of a stage's tests."""

    side: str
    ordinal: int
    seconds: float
    exit_code: int | None
    timed_out: bool
    complete: bool
    infra: str | None


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage's proof."""

    position: int
    number: int
    outcome: str
    reason: str | None
    seconds: float
    runner: str | None
    recipe: str | None
    image: str | None
    publisher: str | None
    """In whose image an imported stage was proved, where its publisher names one."""
    packages_of: str | None
    """The day as of which its image has packages (ISO 8601), where that was built here."""
    stage_image: str | None
    command: str | None
    files: tuple[str, ...]
    counts: Mapping[str, int]
    strength: Mapping[str, Any] | None
    """What the proof is worth (`sql.strength.strength_row`), with what that names; None of a stage without a proof."""
    hidden: tuple[str, ...] | None = field(metadata=WHERE_ASKED)
    """The F2P tests that only an import hid."""
    own_plugins: tuple[str, ...]
    canaries: int
    renamed: int
    """Tests that have other names when work is graded."""
    telling: int
    """F2P tests whose masks tell a grade whether work is right."""
    duels: int
    """F2P tests that a grade can hold true and false."""
    safeguard: str | None
    """What guards a grade (`prchain.core.safeguards.Safeguard`); None of a stage without a proof."""
    removed: tuple[str, ...]
    earlier_broken: tuple[str, ...]
    tests: Mapping[str, tuple[str, ...]] | None = field(metadata=WHERE_ASKED)
    """The names of its tests, by class."""
    left_out: tuple[str, ...]
    runs: tuple[RunReport, ...]
    last_lines: tuple[str, ...]
    """Of the run that tells why the stage failed."""


@dataclass(frozen=True, slots=True)
class ProofReport:
    """One chain's proof."""

    chain_id: str
    repository: str
    outcome: str
    reason: str | None
    backend: str
    seconds: float
    validated_at: str
    stages: tuple[StageReport, ...]
    published: PublishedLists | None = field(default=None, metadata=WHERE_ASKED)
    """Of an import: where its publisher's lists differ."""


def proof_report(store: Store, prefix: str, *, tests: bool = False) -> ProofReport:
    """The proof of the chain whose id begins with `prefix`; with `tests` also the names of its tests, by class.

    Raises `UsageError` for a chain that is not there, or that was not validated.
    """
    with store.reading() as tx:
        chain = read_chain(tx, find_chain(tx, prefix))
        known = validations(tx, chain.id).get(chain.id)
        if known is None:
            raise UsageError(
                f"the chain {chain.id} was not validated; `prchain environments validate --chain {chain.id}` does"
            )
        proofs = {stage.position: stage for stage in read_stages(tx, chain.id)}
        first = proofs.get(1)
        whose = published_image(tx, chain.id, first.image) if first else None
        published = published_lists(tx, chain.id, first.runner, first.classes) if first and first.files else None
        found = [run for run in read_runs(tx, chain.id) if run.side in (BEFORE, AFTER)]
        runs = sorted(found, key=lambda run: (run.side != BEFORE, run.ordinal))
        images = tx.rows(BuiltImage, "name", "as_of", repository=chain.repository)
        dates: dict[str, str | None] = {str(name): as_of for name, as_of in images}
    stages = tuple(
        _stage_report(
            stage.number,
            proofs.get(stage.position) or StageProof(stage.position, NOT_REACHED),
            [proofs[place] for place in sorted(proofs) if place < stage.position],
            [run for run in runs if run.position == stage.position],
            whose,
            dates,
            tests=tests,
        )
        for stage in chain.stages
    )
    ending = (known.outcome, known.reason, known.backend, known.seconds, known.validated_at)
    return ProofReport(chain.id, chain.repository, *ending, stages, published)


def _stage_report(
    number: int,
    proof: StageProof,
    earlier: Sequence[StageProof],
    runs: Sequence[StoredRun],
    publisher: str | None,
    dates: Mapping[str, str | None],
    *,
    tests: bool,
) -> StageReport:
    notes = [note for stored in runs for note in stored.run.notes]
    last = _decisive_run([stored.run for stored in runs]).tail if runs and _has_failed(proof.outcome) else ""
    same = ("position", "outcome", "reason", "seconds", "runner", "recipe", "image", "stage_image", "command")
    return StageReport(
        **{name: getattr(proof, name) for name in (*same, "files", "removed")},
        number=number,
        publisher=publisher,
        packages_of=dates.get(proof.image or ""),
        counts=proof.classes.sizes(),
        strength=strength_row(proof.strength) | _named(proof.strength) if proof.outcome == PROVED else None,
        hidden=(proof.strength.hidden if proof.strength else ()) if tests else None,
        own_plugins=proof.baseline.own_plugins,
        canaries=sum(not is_renamed(slot) for slot in proof.baseline.slots),
        renamed=sum(map(is_renamed, proof.baseline.slots)),
        telling=sum(it.tells for it in proof.baseline.held),
        duels=sum(bool(it.seeds) for it in proof.baseline.held),
        safeguard=str(proof.baseline.safeguard) if proof.outcome == PROVED else None,
        earlier_broken=tuple(earlier_broken(proof, earlier)),
        tests=dataclasses.asdict(proof.classes) if tests else None,
        left_out=tuple(sorted({note.removeprefix(LEFT_OUT) for note in notes if note.startswith(LEFT_OUT)})),
        runs=tuple(_run_report(stored) for stored in runs),
        last_lines=tuple([line for line in last.splitlines() if line.strip()][-_LAST_LINES:]),
    )


def _named(strength: Strength | None) -> dict[str, Any]:
    """What a strength names."""
    if strength is None:
        return {}
    undone = [{"kind": str(it.kind), "place": it.place, "outcome": str(it.outcome)} for it in strength.undone]
    passed = [f"{it.place} ({it.kind})" for it in strength.undone if it.outcome is UndoingOutcome.PASSED]
    return {"failing_tests": list(strength.failing), "undone": undone, "passed": passed}


def _run_report(stored: StoredRun) -> RunReport:
    run = stored.run
    ending = (run.exit_code, run.timed_out, run.complete, run.infra)
    return RunReport(stored.side, stored.ordinal, run.seconds, *ending)


def _decisive_run(runs: Sequence[TestRun]) -> TestRun:
    """The run that tells why a stage failed: one that is not usable, or the last one on M_t."""
    return next((run for run in runs if run.infra or run.timed_out), runs[-1])


def _has_failed(outcome: str) -> bool:
    return outcome not in {PROVED, UNPROVED, NOT_REACHED}


def earlier_broken(proof: StageProof, earlier: Sequence[StageProof]) -> list[str]:
    """The F2P tests of earlier stages that a stage breaks, as `environments.proofs.proof.prove` found them.

    Found again from the stored rows: those that are not P2P here, not spared, and not removed upstream.
    """
    if proof.outcome != EARLIER_BROKEN:
        return []
    classes = proof.classes
    spared = {*classes.f2p, *classes.flaky, *classes.timed_out, *proof.removed}
    bad = {*classes.failing, *classes.broken}
    found: set[str] = set()
    for stage in earlier:
        for test in set(removed_upstream(stage.classes.f2p, classes)) - spared:
            file = file_of(proof.runner or "", test, stage.files)
            if file is None or file in proof.files or test in bad:
                found.add(test)
    return sorted(found)


def print_proof(report: ProofReport) -> None:
    """Print a proof for people."""
    say(
        f"{report.chain_id}  {report.repository}  {report.outcome} in {report.seconds:.0f} s "
        f"({report.backend}, {report.validated_at[:10]})"
    )
    if report.reason:
        say(f"  {report.reason}")
    if report.published is not None:
        say(f"  its publisher's lists: {report.published.words()}")
    for stage in report.stages:
        for line in _stage_lines(stage):
            say(line)


def _stage_lines(stage: StageReport) -> Iterator[str]:
    heading = f"stage {stage.position} (#{stage.number}): {stage.outcome}"
    if stage.outcome == NOT_REACHED:
        yield heading
        return
    yield f"{heading} in {stage.seconds:.0f} s"
    if stage.reason:
        yield f"  {stage.reason}"
    if stage.runner:
        counts = {name: count for name, count in stage.counts.items() if count or name in _ALWAYS}
        summary = ", ".join(f"{_name(name)} {count:,}" for name, count in counts.items())
        yield f"  {stage.runner}, {counted(len(stage.files), 'test file')}: {summary}"
    if stage.strength is not None:
        yield f"  proof: {strength_words(stage.strength)}"
        for name, words in (("failing_tests", "new or changed tests fail on M_t"), ("passed", "undone and not caught")):
            if stage.strength.get(name):
                yield f"  {words}: {listed(stage.strength[name], _SHOWN)}"
    if stage.canaries:
        yield f"  {counted(stage.canaries, 'canary')} among them when work is graded"
    if stage.renamed:
        yield f"  {counted(stage.renamed, 'test')} by other names when work is graded"
    if stage.telling:
        yield f"  {counted(stage.telling, 'test')} masked when work is graded"
    if stage.duels:
        yield f"  {counted(stage.duels, 'test')} can be made false when work passes"
    if stage.safeguard is not None:
        yield f"  {_GUARDED[Safeguard(stage.safeguard)]}"
    if stage.own_plugins:
        yield f"  its own plugins of the runner stay the agent's: {', '.join(stage.own_plugins)}"
    for name, words in (("removed", "removed or rewritten upstream"), ("earlier_broken", "broken here")):
        if count := len(getattr(stage, name)):
            yield f"  {counted(count, 'F2P test')} of earlier stages {words}"
    if stage.left_out:
        yield f"  left out, since the runner cannot be given them: {', '.join(stage.left_out)}"
    if stage.image:
        whose = f" ({stage.publisher})" if stage.publisher else ""
        whose += f", of packages as of {stage.packages_of[:10]}" if stage.packages_of else ""
        yield f"  in {stage.image}{whose}" + (f"; its checkout: {stage.stage_image}" if stage.stage_image else "")
    if stage.runs:
        yield "  runs: " + ", ".join(_run_words(run) for run in stage.runs)
    yield from (f"  | {line}" for line in stage.last_lines)
    if stage.tests is not None:
        lists = {
            "files": stage.files,
            **stage.tests,
            "hidden by an import alone": stage.hidden or (),
            "removed upstream": stage.removed,
            "earlier broken": stage.earlier_broken,
        }
        for name, tests in lists.items():
            yield from [f"  {_name(name)}:", *(f"    {test}" for test in tests)] if tests else ()


def _run_words(run: RunReport) -> str:
    ending = run.infra or ("out of time" if run.timed_out else "" if run.complete else "broke off")
    return f"{run.side} {run.ordinal} {run.seconds:.0f} s" + (f" ({ending})" if ending else "")


def _name(name: str) -> str:
    return _LABELS.get(name, name)
