"""Chains proved by replaying their reference, in bubblewrap; a run that is cut off makes no stored run twice."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from environments.images.provide import Provider
from environments.images.stage_image import StageImage
from environments.proofs.proof import (
    EARLIER_BROKEN,
    NO_F2P,
    NOT_REACHED,
    NOTHING_COLLECTED,
    REFERENCE_FAILS,
    TESTS_UNUSABLE,
    UNPROVED,
)
from environments.proofs.proof_rows import ChainProof, forget
from environments.proofs.reference_runs import AFTER, BEFORE
from environments.proofs.validations import ValidateReport, ValidateRun, ValidationChoice
from environments.sandboxes import leftovers
from environments.suites.baseline import RunnerBaseline
from environments.suites.canaries.falsehoods import PYTHON_FALSIFIER
from environments.suites.testlogs import Status
from environments.suites.testruns import TestRun, run_tests
from prchain.core.console.progress import open_progress
from prchain.core.errors import BuildFailed, EngineUnavailable, IncompleteRepository, NoRecipe, UsageError
from sql.lock import exclusive_lock
from sql.outcomes import PROVED
from sql.tables import ReferenceRun, StageTests, Validation
from tests.environments.stageworld import CHANGES, Changes, StageWorld, stage_world, test_file

ROOT = Path(__file__).parents[2]


pytestmark = pytest.mark.usefixtures("bubblewrap")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[StageWorld]:
    with stage_world(tmp_path) as world:
        yield world


@pytest.fixture
def short(tmp_path: Path) -> Iterator[StageWorld]:
    """The world with a chain of one stage, for tests to which more stages would add nothing."""
    with stage_world(tmp_path, chains=[(1,)]) as world:
        yield world


def validate(world: StageWorld, *, runs: int = 1, **choice: Any) -> ValidateReport:
    workers = choice.pop("workers", 1)
    return ValidateRun(world.store, world.prover(runs=runs), ValidationChoice(**choice)).run(workers)


def outcomes(world: StageWorld) -> list[str]:
    return [stage.outcome for stage in world.stages()]


def facts(world: StageWorld) -> dict[str, Any]:
    """Everything that a validation stores, without the times."""
    columns = ("chain_id", "position", "side", "ordinal", "key", "statuses", "exit_code", "complete", "tampered")
    stages = ("chain_id", "position", "outcome", "reason", "files", "classes", "removed", "tampered", "command")
    return {
        "runs": world.rows(ReferenceRun, *columns),
        "stages": world.rows(StageTests, *stages),
        "chains": world.rows(Validation, "chain_id", "outcome", "reason", "backend"),
    }


def test_a_chain_whose_tests_show_its_work_is_proved(world: StageWorld) -> None:
    report = validate(world, runs=2)
    assert report.done and report.counts == {PROVED: 1}
    first, second, third = world.stages()
    assert {first.outcome, second.outcome, third.outcome} == {PROVED}
    assert first.classes.f2p == ("tests.test_prices.Case.test_halved",)
    assert second.classes.f2p == ("tests.test_cart.Case.test_sale",)
    assert set(second.classes.p2p) == {"tests.test_cart.Case.test_empty", "tests.test_prices.Case.test_halved"}
    assert set(first.classes.f2p + second.classes.f2p) <= set(third.classes.p2p)
    assert (first.runner, first.recipe, first.image, first.removed) == ("unittest", "plain", None, ())
    assert first.command == "python -m unittest -v tests.test_prices"
    assert world.rows(ReferenceRun, "position", "side", "ordinal") == [
        (position, side, ordinal) for position in (1, 2, 3) for side in (AFTER, BEFORE) for ordinal in (1, 2)
    ]
    assert world.rows(Validation, "outcome", "reason", "backend") == [(PROVED, None, "local")]


def test_what_is_proved_is_not_run_again(short: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    validate(short)
    monkeypatch.setattr("environments.workplace.run_tests", lambda *a, **k: pytest.fail("run again"))
    assert validate(short, retry=True) == ValidateReport((), 0, None, {"proved": 1})
    with short.store.transaction() as tx:
        tx.delete(Validation, chain_id=short.chain_id)
    assert validate(short).counts == {PROVED: 1}


def test_a_stage_without_tests_leaves_the_chain_unproved_and_the_others_proved(tmp_path: Path) -> None:
    changes: dict[int, Changes] = {2: {"till/cart.py": "def total(items, sale=False):\n    return sum(items)\n"}}
    with stage_world(tmp_path, changes) as world:
        assert validate(world).counts == {UNPROVED: 1}
        assert outcomes(world) == [PROVED, UNPROVED, PROVED]
        assert validate(world).standing == 1
        assert validate(world, retry=True).counts == {UNPROVED: 1}
        assert set(world.stages()[1].classes.p2p) >= {"tests.test_prices.Case.test_halved"}


@pytest.mark.parametrize(
    ("body", "outcome"), [("self.assertEqual(this.total([]) + 0, 0)", NO_F2P), ("self.fail('always')", REFERENCE_FAILS)]
)
def test_the_first_failure_names_the_chain_and_ends_it(tmp_path: Path, body: str, outcome: str) -> None:
    changes: dict[int, Changes] = {2: {**CHANGES[2], "tests/test_cart.py": test_file("cart", empty=body)}}
    with stage_world(tmp_path, changes) as world:
        report = validate(world)
        assert report.done and report.counts == {outcome: 1}
        assert outcomes(world) == [PROVED, outcome, NOT_REACHED]
        assert report.proofs[0].reason is not None and report.proofs[0].reason.startswith("stage 2: ")


def test_work_that_breaks_what_an_earlier_stage_showed_is_found(tmp_path: Path) -> None:
    broken: Changes = {"till/prices.py": "def halved(amount):\n    return 0\n"}
    with stage_world(tmp_path, between={3: broken}, chains=[(1, 3)]) as world:
        assert validate(world).counts == {EARLIER_BROKEN: 1}
        assert "test_halved" in str(world.stages()[1].reason)


def test_a_test_that_upstream_took_away_does_not_gate(tmp_path: Path) -> None:
    other = test_file("prices", quartered="self.assertEqual(this.halved(this.halved(4)), 1)")
    with stage_world(tmp_path, between={3: {"tests/test_prices.py": other}}, chains=[(1, 3)]) as world:
        assert validate(world).counts == {PROVED: 1}
        assert world.stages()[1].removed == ("tests.test_prices.Case.test_halved",)
    second = tmp_path / "second"
    second.mkdir()
    with stage_world(second, between={3: {"tests/test_prices.py": None}}, chains=[(1, 3)]) as world:
        assert validate(world).counts == {PROVED: 1}
        assert world.stages()[1].removed == ("tests.test_prices.Case.test_halved",)


def test_a_flaky_test_is_of_no_gating_class(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    single = world.add_chain((2,), strategy="single")
    runs: list[int] = []

    def second_fails(*args: Any, **named: Any) -> Any:
        run = run_tests(*args, **named)
        runs.append(1)
        if len(runs) == 2:
            run.statuses["tests.test_cart.Case.test_empty"] = Status.failed
        return run

    monkeypatch.setattr("environments.workplace.run_tests", second_fails)
    assert validate(world, runs=2, chain=single).counts == {PROVED: 1}
    classes = world.stages(single)[0].classes
    assert classes.flaky == ("tests.test_cart.Case.test_empty",) and classes.f2p and not classes.p2p


def test_the_runners_functions_that_the_reference_replaces_are_left_alone(tmp_path: Path) -> None:
    # Only pytest's reporter watches the runner; the host may have no pytest, so the run itself is made up.
    calls: list[tuple[str, ...]] = []

    def tampering(*args: Any, **named: Any) -> Any:
        run = run_tests(*args, **named)
        calls.append(tuple(named["baseline"].replaced))
        return type(run)(
            run.statuses,
            run.tail,
            run.seconds,
            run.exit_code,
            observed=replace(run.observed, replaced=("runner.call",)),
        )

    with stage_world(tmp_path) as world, pytest.MonkeyPatch.context() as patch:
        patch.setattr("environments.workplace.run_tests", tampering)
        single = world.add_chain((1,), strategy="single")
        assert validate(world, runs=2, chain=single).counts == {PROVED: 1}
        assert calls == [(), ("runner.call",), ("runner.call",), ("runner.call",), ("runner.call",)]
        assert {stage.baseline.replaced for stage in world.stages(single)} == {("runner.call",)}
        before, count = facts(world), len(calls)
        with world.store.transaction() as tx:
            tx.delete(Validation, chain_id=single)
        validate(world, runs=2, chain=single)
        assert facts(world) == before and len(calls) == count


def test_tests_that_never_end_are_unusable_and_run_once(tmp_path: Path) -> None:
    file = test_file("prices", halved="__import__('time').sleep(60)")
    with stage_world(tmp_path, {1: {**CHANGES[1], "tests/test_prices.py": file}}) as world:
        proof = world.prover(test_timeout=1.0).prove(world.chain_id)
        assert (proof.outcome, str(proof.reason)[:9]) == (TESTS_UNUSABLE, "stage 1: ")
        assert world.rows(ReferenceRun, "side", "ordinal", "timed_out") == [(AFTER, 1, True)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("environments.workplace.run_tests", lambda *a, **k: pytest.fail("run again"))
            assert world.prover(test_timeout=1.0).prove(world.chain_id).outcome == TESTS_UNUSABLE
        world.prover(test_timeout=2.0).prove(world.chain_id)
        assert world.rows(ReferenceRun, "seconds")[0][0] > 1.9


def test_a_refresh_that_fails_is_an_outcome(tmp_path: Path) -> None:
    start: Changes = {"broken": "no\n"}
    text = 'name = "plain"\nlanguage = "shell"\nrank = 1\ndetects = ["till/*.py"]\nrunner = "unittest"\n'
    with stage_world(tmp_path, start=start, recipe=f"{text}refresh = ['test ! -e broken']\n") as world:
        assert validate(world).counts == {"refresh_failed": 1}
        assert outcomes(world) == ["refresh_failed", NOT_REACHED, NOT_REACHED]


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (NoRecipe("nothing fits"), "no_recipe"),
        (BuildFailed("the step x failed", lines=["error: a", "error: b"]), "build_failed"),
        (IncompleteRepository("a blob is missing"), "incomplete_repository"),
    ],
)
def test_what_keeps_an_image_away_is_the_stages_outcome(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, error: Exception, name: str
) -> None:
    def fails(*args: object, **named: object) -> None:
        raise error

    monkeypatch.setattr(Provider, "provide", fails)
    report = validate(world)
    assert report.done and report.counts == {name: 1}
    assert outcomes(world) == [name, NOT_REACHED, NOT_REACHED]
    assert all(line in str(world.stages()[0].reason) for line in getattr(error, "lines", ()))


class Broken:
    """Stands for `Provider.provide`: an image that lacks what every test needs, unless a stage is to have its own."""

    def __init__(self, *, neighbour: str = "") -> None:
        self.neighbour = neighbour
        self.whole = Provider.provide
        self.asked: list[bool] = []

    def __call__(self, *args: Any, own: bool = False) -> StageImage:
        self.asked.append(own)
        found = self.whole(*args)
        if own:
            return found
        return replace(found, plan=replace(found.plan, test="exit 1"), neighbour=self.neighbour)


def test_a_stage_that_is_not_proved_in_a_neighbour_s_image_gets_its_own(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = Broken(neighbour="in a neighbour's image")
    monkeypatch.setattr(Provider, "provide", partialmethod(broken))
    single = world.add_chain((1,), strategy="single")
    assert validate(world, runs=1, chain=single).counts == {PROVED: 1}
    assert broken.asked == [False, True]


@pytest.mark.parametrize("mended", [True, False])
def test_an_image_in_which_tests_do_not_run_is_repaired_by_what_they_say(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, *, mended: bool
) -> None:
    told: list[BuildFailed] = []

    def repaired(self: Provider, *args: Any) -> None:
        *stage, failure, proves = args
        told.append(failure)
        proves(broken(self, *stage, own=mended))

    broken = Broken()
    monkeypatch.setattr(Provider, "provide", partialmethod(broken))
    monkeypatch.setattr(Provider, "repairs", True)
    monkeypatch.setattr(Provider, "repaired", repaired)
    single = world.add_chain((1,), strategy="single")
    assert validate(world, runs=1, chain=single).counts == {PROVED if mended else NOTHING_COLLECTED: 1}
    assert [failure.step for failure in told] == ["tests"]


def test_the_engines_failure_is_no_outcome_and_the_next_run_goes_on(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    single = world.add_chain((1,), strategy="single")
    runs: list[int] = []

    def lost(*args: Any, **named: Any) -> Any:
        runs.append(1)
        if len(runs) == 4:
            raise EngineUnavailable("the engine is gone")
        return run_tests(*args, **named)

    monkeypatch.setattr("environments.workplace.run_tests", lost)
    report = validate(world, runs=2, chain=single)
    assert not report.done and report.failed[0].outcome == "engine_unavailable"
    assert world.rows(Validation, "outcome") == [] and len(world.rows(ReferenceRun, "side")) == 3
    assert validate(world, runs=2, chain=single).counts == {PROVED: 1}
    assert len(runs) == 5


def test_an_engine_that_is_gone_ends_the_run_for_all(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add_chain((1, 2))
    world.add_chain((2, 3))

    def gone(*args: object, **named: object) -> None:
        raise EngineUnavailable("no daemon")

    monkeypatch.setattr(Provider, "provide", gone)
    world.add_chain((1, 3))
    report = validate(world, workers=1)
    assert len(report.failed) == 3 and report.left == 1 and not report.done
    assert report.stopped == "3 chains in a row ended engine_unavailable, as the others would: no daemon"


def test_a_defect_on_one_chain_is_told_and_the_others_end(world: StageWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    world.add_chain((1,), score=0.5)
    real = Provider.provide

    def defect(self: Provider, *args: Any, **named: Any) -> Any:
        if args[3].position == 2:
            raise ZeroDivisionError("ours")
        return real(self, *args, **named)

    monkeypatch.setattr(Provider, "provide", defect)
    report = validate(world)
    assert report.outcomes == {PROVED: 1} and [result.outcome for result in report.failed] == ["defect"]
    assert "ZeroDivisionError" in str(report.failed[0].reason)


def test_a_run_that_hangs_is_seen_in_the_log_under_its_own_phase_and_stores_what_duels_found(tmp_path: Path) -> None:
    log = io.StringIO()
    with stage_world(tmp_path, chains=[(1,)], duels=True) as world, open_progress(log, every=0) as progress:
        ValidateRun(world.store, world.prover(runs=1), ValidationChoice(), progress=progress).run()
        (stage,) = world.stages()
    words = [line.partition(f"({world.chain_id}: ")[2].rstrip(")") for line in log.getvalue().splitlines()]
    assert [word for word in words if "stage 1" in word] == [
        "stage 1: image",
        "stage 1: after, run 1",
        "stage 1: before, run 1",
        "stage 1: masks, run 1",
        "stage 1: masks, among all tests",
        "stage 1: masks, on what was before",
        *(f"stage 1: duel {falsehood}" for falsehood in PYTHON_FALSIFIER.seeds),
    ]
    assert [(held.file, held.name) for held in stage.baseline.held] == [("tests/test_prices.py", "test_halved")]


def test_failures_stand_until_they_are_tried_anew(tmp_path: Path) -> None:
    changes: dict[int, Changes] = {1: {**CHANGES[1], "tests/test_prices.py": test_file("prices", a="self.fail()")}}
    with stage_world(tmp_path, changes) as world:
        assert validate(world).counts == {REFERENCE_FAILS: 1}
        assert validate(world).standing == 1
        before = world.rows(ReferenceRun, "side", "ran_at", "seconds")
        assert validate(world, retry=True).counts == {REFERENCE_FAILS: 1}
        assert world.rows(ReferenceRun, "side", "ran_at", "seconds") != before


def test_a_chain_proved_with_fewer_runs_than_are_wanted_goes_on_with_those_that_lack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[int] = []

    def counted(*args: Any, **named: Any) -> Any:
        runs.append(1)
        return run_tests(*args, **named)

    with stage_world(tmp_path, chains=[(1, 2)]) as world:
        assert validate(world, runs=1).counts == {PROVED: 1}
        assert validate(world, runs=1).standing == 1
        monkeypatch.setattr("environments.workplace.run_tests", counted)
        assert validate(world, runs=2).counts == {PROVED: 1}
        assert len(runs) == 2 * 2, "one more on each side of each stage"
        assert validate(world, runs=2).standing == validate(world, runs=1).standing == 1


def test_a_proof_is_renewed_without_a_test_run_that_would_be_the_same(
    short: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate(short)
    monkeypatch.setattr("environments.workplace.run_tests", lambda *a, **k: pytest.fail("run again"))
    assert validate(short, renew=True).counts == {PROVED: 1}


MEANWHILE = "another run has ended it meanwhile"


def test_a_chain_that_another_run_has_ended_meanwhile_is_not_proved_again(short: StageWorld) -> None:
    run = ValidateRun(short.store, short.prover(runs=1), ValidationChoice())
    (unit,), _ = run.pending()
    validate(short)
    at = short.rows(Validation, "validated_at")
    result = run.work_on(unit, lambda words: None)
    assert (result.outcome, result.reason) == (PROVED, MEANWHILE)
    assert short.rows(Validation, "validated_at") == at


def test_a_chain_that_only_this_run_has_seen_ended_is_proved_again_where_all_are_renewed(short: StageWorld) -> None:
    validate(short)
    run = ValidateRun(short.store, short.prover(runs=1), ValidationChoice(renew=True))
    (unit,), _ = run.pending()
    assert unit.validated_at is not None
    assert run.work_on(unit, lambda words: None).reason is None


def test_what_another_run_has_ended_meanwhile_by_other_rules_does_not_stand(short: StageWorld) -> None:
    run = ValidateRun(short.store, short.prover(runs=2), ValidationChoice())
    (unit,), _ = run.pending()
    assert validate(short, runs=1).counts == {PROVED: 1}
    result = run.work_on(unit, lambda words: None)
    assert (result.outcome, result.reason) == (PROVED, None)
    assert len(short.rows(ReferenceRun, "side")) == 2 * 2, "with the runs that were wanted"


def test_a_proof_that_does_not_stand_is_made_anew_before_it_is_measured(
    short: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate(short, runs=1)
    prover, done = short.prover(runs=2, strength=True), list[str]()

    def proved(*_: Any, **__: Any) -> ChainProof:
        done.append("proved")
        return ChainProof(short.chain_id, PROVED, None, ())

    def measured(*_: Any, **__: Any) -> ChainProof:
        done.append("measured")
        return ChainProof(short.chain_id, PROVED, None, ())

    monkeypatch.setattr(prover, "prove", proved)
    monkeypatch.setattr(prover, "measure", measured)
    ValidateRun(short.store, prover, ValidationChoice()).run()
    assert done == ["proved"], "which measures it then"


def test_a_machine_without_the_runner_is_no_fault_of_the_chain_and_the_next_run_tries_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage_world(tmp_path, chains=[(1,)]) as world:
        tail = "Traceback ...\nModuleNotFoundError: No module named 'pytest'\n"
        missing = TestRun({}, tail, 0.1, 1, infra="runner_missing")
        with monkeypatch.context() as patched:
            patched.setattr("environments.workplace.run_tests", lambda *a, **k: missing)
            [result] = validate(world).results
            assert result.outcome == "runner_missing" and result.detail is None
            assert str(result.reason).startswith("unittest is missing on this machine (ModuleNotFoundError: No module")
            assert "or take --backend docker" in str(result.reason)
        assert world.rows(ReferenceRun, "side") == [], "what says nothing of the chain is not stored"
        assert validate(world).counts == {PROVED: 1}


def test_looking_for_what_to_retry_takes_nothing_from_a_run_at_work(tmp_path: Path) -> None:
    changes: dict[int, Changes] = {1: {**CHANGES[1], "tests/test_prices.py": test_file("prices", a="self.fail()")}}
    with stage_world(tmp_path, changes) as world:
        validate(world)
        before = world.rows(ReferenceRun, "side", "ran_at")
        units, ended = ValidateRun(world.store, world.prover(), ValidationChoice(retry=True)).pending()
        assert (len(units), ended) == (1, {}) and world.rows(ReferenceRun, "side", "ran_at") == before
        with exclusive_lock(world.store, f"proof-{world.chain_id}", "x"):
            assert validate(world, retry=True).counts == {"taken": 1}
        assert world.rows(ReferenceRun, "side", "ran_at") == before


def test_a_validation_elsewhere_does_not_stand_here(short: StageWorld) -> None:
    validate(short)
    with short.store.transaction() as tx:
        tx.connection.execute(update(Validation).values(backend="docker"))
    assert validate(short).counts == {PROVED: 1}


def test_a_checkout_that_is_gone_is_made_again_without_another_test_run(
    short: StageWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    validate(short)
    with short.store.transaction() as tx:
        tx.connection.execute(update(StageTests).values(stage_image="prchain/shop--till:stage"))
    monkeypatch.setattr("environments.workplace.run_tests", lambda *a, **k: pytest.fail("run again"))
    for images, again in (({"prchain/shop--till:stage"}, 0), (set[str](), 1)):
        run = ValidateRun(short.store, short.prover(runs=1), ValidationChoice(), images=images)
        assert len(run.run().proofs) == again


def test_one_chain_is_chosen_by_the_beginning_of_its_id(world: StageWorld) -> None:
    single = world.add_chain((2,), strategy="single")
    report = validate(world, chain=single[:3])
    assert [proof.chain_id for proof in report.proofs] == [single]
    with pytest.raises(UsageError):
        validate(world, chain="zz")


def test_several_chains_are_proved_at_once_and_one_that_another_run_has_is_passed_over(world: StageWorld) -> None:
    for number in (1, 2, 3):
        world.add_chain((number,), strategy="single")
    report = validate(world, workers=2, strategy="single")
    assert report.counts == {PROVED: 3}
    with exclusive_lock(world.store, f"proof-{world.chain_id}", "x"):
        report = validate(world, strategy="reference")
    assert (report.counts, report.done) == ({"taken": 1}, False)


KILLED = """
import sys, os
sys.path.insert(0, {root!r})
from pathlib import Path
from environments import workplace
from tests.environments.stageworld import StageWorld, try_no_duels
from sql.store import Store

real, left = workplace.run_tests, [{after}]


def run_tests(*args, **named):
    if left[0] == 0:
        print("now", flush=True)
        import time; time.sleep(60)
    left[0] -= 1
    return real(*args, **named)


workplace.run_tests = run_tests
try_no_duels(setattr)
folder = Path({folder!r})
world = StageWorld(folder, Store.open(str(folder / "prchain.db")), None, [{chain!r}])
world.prover().prove({chain!r})
"""


def test_after_kill_9_no_stored_run_is_made_again_and_the_rows_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stage_world(tmp_path) as world:
        chain = world.add_chain((2, 3), strategy="single")
        validate(world, runs=2, chain=chain)
        expected = facts(world)
        with world.store.transaction() as tx:
            forget(tx, [chain])
        script = KILLED.format(root=str(ROOT), folder=str(tmp_path), after=5, chain=chain)
        process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        assert process.stdout is not None and process.stdout.readline() == b"now\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert len(world.rows(ReferenceRun, "side")) == 5 and world.rows(Validation, "outcome") == []
        found = leftovers.clear_local()
        assert found and all(found.values())

        runs: list[int] = []

        def counted(*args: Any, **named: Any) -> Any:
            runs.append(1)
            return run_tests(*args, **named)

        monkeypatch.setattr("environments.workplace.run_tests", counted)
        assert validate(world, runs=2, chain=chain).counts == {PROVED: 1}
        assert len(runs) == 8 - 5
        assert facts(world) == expected


def test_a_canary_that_passes_on_the_base_is_not_used(tmp_path: Path) -> None:
    lied: list[RunnerBaseline] = []

    def lying(*args: Any, **named: Any) -> Any:
        run = run_tests(*args, **named)
        known = named["baseline"]
        fails = any(status is not Status.passed for status in run.statuses.values())
        if known.canaries and fails and not lied:
            lied.append(known)
            return replace(run, cheats=("a test that must not pass passes: tests/test_cart.py:1",))
        return run

    with stage_world(tmp_path) as world, pytest.MonkeyPatch.context() as patch:
        patch.setattr("environments.workplace.run_tests", lying)
        single = world.add_chain((1,), strategy="single")
        assert validate(world, runs=2, chain=single).counts == {PROVED: 1}
        assert lied and world.stages(single)[0].baseline.canaries == ()
        assert len(list(world.rows(ReferenceRun, "ordinal", side=BEFORE))) == 2


def test_canaries_that_are_in_the_way_of_tests_are_not_used(tmp_path: Path) -> None:
    source = "taken = []\n\n\ndef take(name):\n    taken.append(name)\n    return len(taken)\n"
    # unittest runs tests by their names; canaries have the end of another test's, and so come before z.
    names = (f"{letter}_n{letter}" for letter in "abcdefghijklm")
    others = test_file("cart", **dict.fromkeys(names, "self.assertEqual(this.total([]), 0)"))
    tests = test_file("till", z="self.assertEqual(this.take('z'), 1)", zz="self.assertEqual(this.take('zz'), 2)")
    changes: dict[int, Changes] = {1: {"till/till.py": source, "tests/test_till.py": tests}}
    with stage_world(tmp_path, changes=changes, start={"tests/test_others.py": others}) as world:
        single = world.add_chain((1,), strategy="single")
        assert validate(world, runs=2, chain=single).counts == {PROVED: 1}
        (stage,) = world.stages(single)
        assert stage.baseline.canaries == () and len(stage.classes.f2p) == 2
