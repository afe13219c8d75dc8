"""One chain's proof to read: how each stage ended, by which tests, and what its runs took."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from environments.proofs.proof import EARLIER_BROKEN, NOT_REACHED, UNPROVED, file_of
from environments.proofs.proof_rows import StageProof, read_stages
from environments.proofs.reference_runs import AFTER, BEFORE
from environments.stages import read_chain
from environments.suites.outcomes import removed_upstream
from environments.suites.testruns import LEFT_OUT
from prchain.core.console.terminal import counted, listed, say
from prchain.core.errors import UsageError
from sql.chosen import find_chain
from sql.outcomes import PROVED
from sql.store import Store, Transaction
from sql.strength import Strength, UndoingOutcome, strength_row, strength_words
from sql.tables import ReferenceRun, Validation

_RUN = ("side", "ordinal", "seconds", "exit_code", "timed_out", "complete", "infra", "notes", "tail")
_ALWAYS = ("f2p", "p2p", "flaky", "failing")
"""Classes whose number is told also where it is 0."""

_LABELS = {"f2p": "F2P", "p2p": "P2P", "timed_out": "timed out"}
_LAST_LINES = 6
_SHOWN = 5


def proof_page(store: Store, prefix: str, *, tests: bool = False) -> dict[str, Any]:
    """The proof of the chain whose id begins with `prefix`; with `tests` also the names of its tests, by class.

    Raises `UsageError` for a chain that is not there, or that was not validated.
    """
    with store.reading() as tx:
        chain = read_chain(tx, find_chain(tx, prefix))
        columns = ("outcome", "reason", "backend", "seconds", "validated_at")
        known = next(tx.rows(Validation, *columns, chain_id=chain.id), None)
        if known is None:
            raise UsageError(
                f"the chain {chain.id} was not validated; `prchain environments validate --chain {chain.id}` does"
            )
        proofs = {stage.position: stage for stage in read_stages(tx, chain.id)}
        runs = _runs(tx, chain.id)
    stages = []
    for stage in chain.stages:
        proof = proofs.get(stage.position) or StageProof(stage.position, NOT_REACHED)
        earlier = [proofs[place] for place in sorted(proofs) if place < stage.position]
        row = _stage_row(proof, earlier, runs.get(stage.position, []), tests=tests)
        stages.append({"position": stage.position, "number": stage.number, **row})
    facts = dict(zip(columns, known, strict=True))
    return {"chain_id": chain.id, "repository": chain.repository, **facts, "stages": stages}


def _runs(tx: Transaction, chain_id: str) -> dict[int, list[dict[str, Any]]]:
    """Position to its stored runs, in order; those on B_t first."""
    found: dict[int, list[dict[str, Any]]] = {}
    for position, *values in tx.rows(ReferenceRun, "position", *_RUN, chain_id=chain_id):
        row = dict(zip(_RUN, values, strict=True))
        if row["side"] in (BEFORE, AFTER):
            found.setdefault(int(position), []).append(row)
    for rows in found.values():
        rows.sort(key=lambda row: (row["side"] != "before", row["ordinal"]))
    return found


def _stage_row(
    proof: StageProof, earlier: Sequence[StageProof], runs: Sequence[Mapping[str, Any]], *, tests: bool
) -> dict[str, Any]:
    columns = ("outcome", "reason", "seconds", "runner", "recipe", "image", "stage_image", "command")
    row = {name: getattr(proof, name) for name in columns}
    row |= {"files": list(proof.files), "counts": proof.classes.sizes()}
    row |= {"own_plugins": list(proof.baseline.own_plugins), "canaries": len(proof.baseline.slots)}
    row |= {"removed": list(proof.removed), "earlier_broken": earlier_broken(proof, earlier)}
    row["strength"] = None if proof.outcome != PROVED else strength_row(proof.strength) | _named(proof.strength)
    row["strength_words"] = strength_words(proof.strength) if proof.outcome == PROVED else ""
    if tests and proof.strength:
        row["hidden"] = list(proof.strength.hidden)
    if tests:
        row["tests"] = {name: list(names) for name, names in dataclasses.asdict(proof.classes).items()}
    notes = [note for run in runs for note in json.loads(run["notes"])]
    row["left_out"] = sorted({note.removeprefix(LEFT_OUT) for note in notes if note.startswith(LEFT_OUT)})
    last = _decisive_run(runs)["tail"] if runs and _has_failed(proof.outcome) else ""
    row["runs"] = [{name: value for name, value in run.items() if name not in {"tail", "notes"}} for run in runs]
    row["last_lines"] = [line for line in last.splitlines() if line.strip()][-_LAST_LINES:]
    return row


def _named(strength: Strength | None) -> dict[str, Any]:
    """What a strength names."""
    if strength is None:
        return {}
    undone = [{"kind": str(it.kind), "place": it.place, "outcome": str(it.outcome)} for it in strength.undone]
    passed = [f"{it.place} ({it.kind})" for it in strength.undone if it.outcome is UndoingOutcome.PASSED]
    return {"failing_tests": list(strength.failing), "undone": undone, "passed": passed}


def _decisive_run(runs: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The run that tells why a stage failed: one that is not usable, or the last one on M_t."""
    return next((run for run in runs if run["infra"] or run["timed_out"]), runs[-1])


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


def print_proof(page: Mapping[str, Any]) -> None:
    """A page of `proof_page` for people."""
    say(
        f"{page['chain_id']}  {page['repository']}  {page['outcome']} in {page['seconds']:.0f} s "
        f"({page['backend']}, {page['validated_at'][:10]})"
    )
    if page["reason"]:
        say(f"  {page['reason']}")
    for stage in page["stages"]:
        for line in _stage_lines(stage):
            say(line)


def _stage_lines(stage: Mapping[str, Any]) -> Iterator[str]:
    heading = f"stage {stage['position']} (#{stage['number']}): {stage['outcome']}"
    if stage["outcome"] == NOT_REACHED:
        yield heading
        return
    yield f"{heading} in {stage['seconds']:.0f} s"
    if stage["reason"]:
        yield f"  {stage['reason']}"
    if stage["runner"]:
        counts = {name: count for name, count in stage["counts"].items() if count or name in _ALWAYS}
        summary = ", ".join(f"{_name(name)} {count:,}" for name, count in counts.items())
        yield f"  {stage['runner']}, {counted(len(stage['files']), 'test file')}: {summary}"
    if stage["strength_words"]:
        yield f"  proof: {stage['strength_words']}"
        known = stage["strength"]
        for name, words in (("failing_tests", "new or changed tests fail on M_t"), ("passed", "undone and not caught")):
            if known.get(name):
                yield f"  {words}: {listed(known[name], _SHOWN)}"
    if stage["canaries"]:
        yield f"  {counted(stage['canaries'], 'canary')} among them when work is graded"
    if stage["own_plugins"]:
        yield f"  its own plugins of the runner stay the agent's: {', '.join(stage['own_plugins'])}"
    for name, words in (("removed", "removed or rewritten upstream"), ("earlier_broken", "broken here")):
        if stage[name]:
            yield f"  {counted(len(stage[name]), 'F2P test')} of earlier stages {words}"
    if stage["left_out"]:
        yield f"  left out, since the runner cannot be given them: {', '.join(stage['left_out'])}"
    if stage["image"]:
        yield f"  in {stage['image']}" + (f"; its checkout: {stage['stage_image']}" if stage["stage_image"] else "")
    if stage["runs"]:
        yield "  runs: " + ", ".join(_run_words(run) for run in stage["runs"])
    yield from (f"  | {line}" for line in stage["last_lines"])
    if "tests" in stage:
        lists = {
            "files": stage["files"],
            **stage["tests"],
            "hidden by an import alone": stage.get("hidden", []),
            "removed upstream": stage["removed"],
            "earlier broken": stage["earlier_broken"],
        }
        for name, tests in lists.items():
            yield from [f"  {_name(name)}:", *(f"    {test}" for test in tests)] if tests else ()


def _run_words(run: Mapping[str, Any]) -> str:
    ending = run["infra"] or ("out of time" if run["timed_out"] else "" if run["complete"] else "broke off")
    return f"{run['side']} {run['ordinal']} {run['seconds']:.0f} s" + (f" ({ending})" if ending else "")


def _name(name: str) -> str:
    return _LABELS.get(name, name)
