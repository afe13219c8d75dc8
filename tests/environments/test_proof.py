"""One outcome a stage, from runs on both sides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from environments.proofs.proof import (
    EARLIER_BROKEN,
    NEEDS_SERVICE,
    NO_F2P,
    NOTHING_COLLECTED,
    REFERENCE_FAILS,
    TESTS_UNUSABLE,
    UNPROVED,
    EarlierTests,
    file_of,
    prove,
    unusable,
)
from environments.suites.outcomes import ClassifiedTests
from environments.suites.testlogs import Status
from environments.suites.testruns import RUNNER_MISSING, TestRun
from prchain.core.code.inline_tests import InlineTest
from sql.outcomes import PROVED

P, F, E, S = Status.passed, Status.failed, Status.error, Status.skipped
OWN, OTHER = "tests/test_a.py", "tests/test_b.py"
A, B = f"{OWN}::one", f"{OTHER}::two"


def run(**statuses: Status) -> TestRun:
    return TestRun({{"a": A, "b": B}.get(name, name): status for name, status in statuses.items()}, "", 1.0, 0)


def proved(
    before: list[TestRun],
    after: list[TestRun],
    *,
    own: tuple[str, ...] = (OWN,),
    files: tuple[str, ...] = (OWN, OTHER),
    earlier: tuple[EarlierTests, ...] = (),
) -> tuple[str, tuple[str, ...]]:
    proof = prove(before, after, runner="pytest", files=files, own_files=own, earlier=earlier)
    assert (proof.reason is None) == (proof.outcome == PROVED)
    return proof.outcome, proof.removed


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        (run(a=F, b=P), run(a=P, b=P), PROVED),
        (run(b=P), run(a=P, b=P), PROVED),
        (run(a=P, b=P), run(a=P, b=P), NO_F2P),
        (run(), run(), NOTHING_COLLECTED),
        (run(a=F, b=F), run(a=P, b=F), PROVED),
        (run(a=F, b=P), run(a=F, b=P), REFERENCE_FAILS),
        (run(a=P, b=P), run(a=F, b=P), REFERENCE_FAILS),
        (run(a=P, b=F), run(a=P, b=F), NO_F2P),
        (run(a=F), run(a=S), NO_F2P),
    ],
)
def test_a_stage_ends_by_what_its_tests_do(before: TestRun, after: TestRun, outcome: str) -> None:
    assert proved([before] * 3, [after] * 3) == (outcome, ())


@pytest.mark.parametrize(("statuses", "code"), [({"a": F}, 1), ({}, 2)])
def test_tests_that_say_that_a_service_refuses_need_it(statuses: dict[str, Status], code: int) -> None:
    now = replace(run(**statuses), tail="Error 111 connecting to localhost:6379. Connection refused.", exit_code=code)
    proof = prove([run(a=F)], [now], runner="pytest", files=(OWN,), own_files=(OWN,))
    assert proof.outcome == NEEDS_SERVICE and str(proof.reason).startswith("Redis: ")


def test_without_a_test_file_of_its_own_a_stage_is_unproved_whatever_runs() -> None:
    assert proved([run(b=F)], [run(b=P)], own=()) == (UNPROVED, ())


def test_a_side_without_a_usable_run_says_nothing() -> None:
    good = run(a=P)
    for bad in (replace(good, infra="out_of_memory"), replace(good, timed_out=True), replace(good, infra="x")):
        assert proved([bad], [good])[0] == TESTS_UNUSABLE
        assert proved([run(a=F)], [bad, bad])[0] == TESTS_UNUSABLE
        assert proved([bad, run(a=F)], [good, bad])[0] == PROVED
    assert proved([], [good])[0] == TESTS_UNUSABLE


def test_a_runner_that_did_not_start_is_told_with_what_was_said_then() -> None:
    said = "node:internal\nError: Cannot find module 'jest-cli'\n    at x\n"
    missing = TestRun({}, said, 1.0, 1, infra=RUNNER_MISSING)
    assert unusable("after", missing) == "after: runner_missing (Error: Cannot find module 'jest-cli')"
    assert unusable("after", replace(missing, tail="")) == "after: runner_missing"
    assert unusable("before", replace(missing, infra="out_of_memory")) == "before: out_of_memory"


def before_of(*changed: str) -> tuple[EarlierTests, ...]:
    return (EarlierTests((B,), (OTHER,), frozenset(changed)),)


@pytest.mark.parametrize(
    ("before", "after", "changed", "outcome", "removed"),
    [
        (run(a=F, b=P), run(a=P, b=P), (), PROVED, ()),
        (run(a=F), run(a=P), (), EARLIER_BROKEN, ()),
        (run(a=F), run(a=P), (OTHER,), PROVED, (B,)),
        (run(a=F), run(a=P), (OWN,), EARLIER_BROKEN, ()),
        (run(a=F, b=P), run(a=P, b=F), (), EARLIER_BROKEN, ()),
        (run(a=F, b=P), run(a=P, b=F), (OTHER,), EARLIER_BROKEN, ()),
        (run(a=F, b=P), run(a=P, b=S), (OTHER,), PROVED, (B,)),
        (run(a=F, b=P), run(a=P, b=S), (), EARLIER_BROKEN, ()),
        (run(a=F, b=F), run(a=P, b=P), (), PROVED, ()),
        (run(a=F, **{OTHER: E}), run(a=P, **{OTHER: E}), (OTHER,), EARLIER_BROKEN, ()),
    ],
)
def test_earlier_work_stands_or_upstream_took_its_tests_away(
    before: TestRun, after: TestRun, changed: tuple[str, ...], outcome: str, removed: tuple[str, ...]
) -> None:
    assert proved([before], [after], earlier=before_of(*changed)) == (outcome, removed)


def test_a_flaky_test_of_earlier_breaks_nothing() -> None:
    assert proved([run(a=F, b=P)], [run(a=P, b=P), run(a=P, b=F)], earlier=before_of()) == (PROVED, ())


def test_nothing_is_said_of_an_untouched_file_that_is_not_run() -> None:
    assert proved([run(a=F)], [run(a=P)], files=(OWN,), earlier=before_of()) == (PROVED, ())
    assert proved([run(a=F)], [run(a=P)], files=(OWN,), earlier=before_of(OTHER)) == (PROVED, (B,))


@pytest.mark.parametrize(
    ("runner", "test", "files", "file"),
    [
        ("pytest", "tests/test_a.py::C::t[x::y]", [OWN], OWN),
        ("pytest", "tests/test_c.py::t", [OWN], None),
        ("unittest", "tests.test_a.Case.test_x", [OWN, "tests/__init__.py"], OWN),
        ("unittest", "unittest.loader._FailedTest.tests.test_a", [OWN], OWN),
        ("unittest", "tests.test_ab.Case.t", [OWN], None),
        ("jest", "src/a.test.ts > cart > adds > up", ["src/a.test.ts"], "src/a.test.ts"),
        ("cargo", "till tests/cart.rs adds::up", ["tests/cart.rs"], "tests/cart.rs"),
        (
            "surefire",
            "org.till.CartTest$Inner#adds",
            ["src/test/java/org/till/CartTest.java"],
            "src/test/java/org/till/CartTest.java",
        ),
        ("go", "example.org/till.TestCart", ["cart_test.go"], None),
    ],
)
def test_a_test_is_of_the_file_that_its_id_tells(runner: str, test: str, files: list[str], file: str | None) -> None:
    assert file_of(runner, test, files) == file


def test_where_ids_name_no_file_any_touched_one_will_do() -> None:
    earlier = EarlierTests(("p.TestOld",), ("a_test.go",), frozenset({"a_test.go"}))
    after, before = TestRun({"p.TestNew": P}, "", 1.0, 0), TestRun({}, "", 1.0, 0)
    for changed, outcome in (({"a_test.go"}, PROVED), ({"a.go"}, EARLIER_BROKEN)):
        stage = replace(earlier, changed=frozenset(changed))
        proof = prove([before], [after], runner="go", files=["b_test.go"], own_files=["b_test.go"], earlier=[stage])
        assert proof.outcome == outcome


SUMS = InlineTest("src/b.rs", ("tests", "sums"))


def inside_source(tests: Sequence[str], inline: InlineTest, *files: str) -> set[str]:
    """Those of some tests that pass on both sides which are of the class ``inline``."""
    runs = [TestRun(dict.fromkeys(tests, P), "", 1.0, 0)]
    return set(prove(runs, runs, runner="cargo", files=files, own_files=files, inline={inline}).classes.inline)


def test_an_inline_test_is_told_from_its_namesakes_by_the_modules_that_cargo_prints() -> None:
    same, case, other, unit = (
        f"cart src/lib.rs {name}::sums" for name in ("b::tests", "b::tests", "tests", "c::tests")
    )
    tests = (same, f"{case}::case_1", other, unit, "cart src/main.rs tests::sums")
    assert inside_source(tests, SUMS, "tests/api.rs") == {same, f"{case}::case_1"}
    assert inside_source(tests, SUMS._replace(path="crates/cart/src/c/mod.rs"), "tests/api.rs") == {unit}
    assert inside_source(tests[-1:], SUMS._replace(path="src/bin/b/main.rs"), "tests/api.rs") == {tests[-1]}


def test_laid_tests_with_the_name_of_an_inline_one_count() -> None:
    member, module = "cart tests/api/main.rs tests::sums", "cart src/lib.rs c::tests::sums"
    assert not inside_source((member,), SUMS, "crates/cart/tests/api/main.rs")
    assert not inside_source((module,), SUMS, "crates/cart/src/c/tests.rs")


def test_where_no_test_bears_out_the_path_of_its_file_an_inline_test_is_known_by_its_name() -> None:
    moved = "cart src/lib.rs unix::tests::sums"
    assert inside_source((moved, "cart src/lib.rs tests::other"), SUMS, "tests/api.rs") == {moved}


def test_doc_tests_whose_ids_hold_their_lines_are_not_asked_of_an_agent() -> None:
    before, after = (TestRun({f"cart doc src/lib.rs - sum (line {line})": P}, "", 1.0, 0) for line in (2, 7))
    proof = prove([before], [after], runner="cargo", files=("src/tests.rs",), own_files=("src/tests.rs",))
    assert proof.classes.sizes() == {**ClassifiedTests().sizes(), "inline": 2}


def test_what_stands_inside_the_source_of_the_reference_is_not_asked_of_an_agent() -> None:
    inline, case, kept = (
        f"cart src/lib.rs {name}" for name in ("b::tests::sums", "b::tests::sums::case_1", "tests::old")
    )
    laid = "cart tests/api.rs sums"
    before = TestRun({kept: P, laid: F, case: P}, "", 1.0, 0)
    after = TestRun({inline: P, kept: P, laid: P, case: P}, "", 1.0, 0)
    files = ("tests/api.rs", "src/cart/tests.rs")
    proof = prove([before], [after], runner="cargo", files=files, own_files=files, inline={SUMS})
    assert (proof.outcome, proof.classes.f2p, proof.classes.p2p) == (PROVED, (laid,), (kept,))
    assert proof.classes.inline == tuple(sorted((inline, case)))


def test_a_stage_whose_only_new_tests_stand_inside_the_source_is_not_proved() -> None:
    test = "cart src/lib.rs tests::sums"
    runs = [TestRun({}, "", 1.0, 0)], [TestRun({test: P}, "", 1.0, 0)]
    files = ("src/cart/tests.rs",)
    assert prove(*runs, runner="cargo", files=files, own_files=files, inline={SUMS}).outcome == NO_F2P


def test_a_run_that_broke_off_says_its_last_error() -> None:
    tail = "Traceback:\n  File x\nE   ImportError: No module named x\nERROR: usage of it: bad option\n==== oh ====\n"
    broken = replace(run(), tail=tail, exit_code=4)
    proof = prove([broken], [broken], runner="pytest", files=[OWN], own_files=[OWN])
    assert (proof.outcome, proof.reason) == (TESTS_UNUSABLE, "the run broke off: ERROR: usage of it: bad option")
    none = replace(run(), tail="collected 0 items / 4 skipped\n\n=== 4 skipped in 2 s ===\n", exit_code=5)
    proof = prove([none], [none], runner="pytest", files=[OWN], own_files=[OWN])
    assert (proof.outcome, proof.reason) == (
        NOTHING_COLLECTED,
        "no test was found in 1 file (exit code 5); 4 skipped in 2 s",
    )
