"""Calibrating the judge: patches of known quality, correct figures, and no verdict paid for twice."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from prchain import cli
from prchain.core import errors
from prchain.core.code.kinds import FileKind, kind_of
from prchain.core.git import GitRepository
from prchain.core.llm.gateway import Gateway
from prchain.core.llm.model import Reply, Request
from prchain.core.llm.price import Price
from sql.tables import LlmCall, StageTests, Task, TaskStage, Trajectory, TrajectoryStage, Verdict
from tests.chains.taskworld import CHAIN, QUERIES, FakeModel, TaskWorld, gateway_of, mined, shop
from tests.memory_ledger import MemoryLedger
from trajectories.studies.verdicts.agreement import THRESHOLDS, Agreement, agreement, agreement_across, curve, spread
from trajectories.studies.verdicts.calibrate import (
    Calibration,
    CalibrationOptions,
    Calibrator,
    StoredVerdict,
    UnmeasuredStage,
    stored_verdicts,
)
from trajectories.studies.verdicts.report import summary
from trajectories.studies.verdicts.variants import Variant, halved
from trajectories.verdicts.judge import Judge
from trajectories.verdicts.patch_text import file_patches

PRICED = Price(input=1.0, output=2.0)
CALLS = 4 * 2 * 2
"""Calls for one stage: variants that are not empty, times orders, times repeats."""


@pytest.fixture(scope="module")
def mined_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskWorld]:
    folder = tmp_path_factory.mktemp("calibrate")
    with mined(folder, shop(folder), [CHAIN]) as world:
        yield world


@pytest.fixture
def world(mined_shop: TaskWorld) -> Iterator[TaskWorld]:
    with mined_shop.store.transaction() as tx:
        for table in (Trajectory, LlmCall):
            tx.delete(table)
    prove(mined_shop, {1: "proved", 2: "proved", 3: "no_f2p"})
    yield mined_shop
    if elsewhere(mined_shop).exists():
        elsewhere(mined_shop).rename(mined_shop.world.path)


def elsewhere(world: TaskWorld) -> Path:
    return world.folder / "elsewhere.git"


def prove(world: TaskWorld, outcomes: dict[int, str]) -> None:
    """Add the rows that `prchain tasks build` and `prchain environments validate` write."""
    chain = world.chains[0]
    with world.store.transaction() as tx:
        tx.upsert(
            Task,
            [
                {
                    "chain_id": chain,
                    "outcome": "ready",
                    "reason": None,
                    "overview": "All of it.",
                    "findings": [],
                    "attempts": 1,
                    "model": "m",
                    "prompts": {},
                    "created_at": "",
                }
            ],
        )
        tx.upsert(
            TaskStage,
            [
                {
                    "chain_id": chain,
                    "position": position,
                    "outcome": "ready",
                    "reason": None,
                    "plan": "p",
                    "query": QUERIES[position],
                    "interface": ["round_half_even_cents"] if position == 1 else [],
                    "files": [],
                    "findings": [],
                    "attempts": 1,
                }
                for position in outcomes
            ],
        )
        tx.upsert(
            StageTests,
            [
                {
                    "chain_id": chain,
                    "position": position,
                    "outcome": outcome,
                    "reason": None,
                    "image": None,
                    "recipe": None,
                    "runner": None,
                    "files": [],
                    "classes": {},
                    "removed": [],
                    "tampered": [],
                    "stage_image": None,
                    "seconds": 0.0,
                }
                for position, outcome in outcomes.items()
            ],
        )


def verdict(world: TaskWorld, attempt: int, score: float | None, error: str | None, tests: str | None) -> None:
    """Add a row that a rollout writes."""
    with world.store.transaction() as tx:
        tx.upsert(
            Trajectory,
            [
                {
                    "id": "t",
                    "chain_id": world.chains[0],
                    "sample": 0,
                    "parent_id": None,
                    "parent_step": None,
                    "scaffold": "react",
                    "model": "m",
                    "options": {},
                    "options_hash": "",
                    "prompts": {},
                    "tools": [],
                    "outcome": "running",
                    "reason": None,
                    "accepted": 0,
                    "overview": None,
                    "usd": None,
                    "tokens_in": 0,
                    "tokens_out": 0,
                    "steps": 0,
                    "seconds": 0.0,
                    "worker": None,
                    "tries": 0,
                    "started_at": "",
                    "finished_at": None,
                }
            ],
        )
        tx.upsert(
            TrajectoryStage,
            [
                {
                    "trajectory_id": "t",
                    "position": 1,
                    "outcome": "running",
                    "reason": None,
                    "start_tree": None,
                    "end_tree": None,
                    "conflicts": [],
                    "reset_tests": [],
                    "check": {},
                    "attempts": 0,
                    "endings": [],
                    "steps": 0,
                    "seconds": 0.0,
                }
            ],
        )
        tx.upsert(
            Verdict,
            [
                {
                    "trajectory_id": "t",
                    "position": 1,
                    "attempt": attempt,
                    "tree": "",
                    "accepted": None,
                    "gate": "judge",
                    "score": score,
                    "comment": None,
                    "shown": None,
                    "findings": [],
                    "judge_error": error,
                    "tests": tests,
                    "grade": {},
                    "usd": 0.0,
                    "seconds": 0.0,
                    "at": "",
                }
            ],
        )


def judged_by(world: TaskWorld, model: str, prompts: Mapping[str, str]) -> None:
    """Make the stored verdicts this judge's."""
    with world.store.transaction() as tx:
        tx.connection.execute(update(Trajectory).values(judge=model, prompts=dict(prompts)))


def fenced(request: Request) -> dict[str, str]:
    text = request.messages[-1].content
    return dict(re.findall(r"<<<(\w+) [0-9a-f]{16}\n(.*?)\n\1 [0-9a-f]{16}>>>", text, re.S))


def right(request: Request) -> Any:
    """A judge that is always right about patches made of references."""
    material = fenced(request)
    return {"comment": "Seen.", "score": 0.95 if material["candidate"] == material["reference"] else 0.1}


def calibrator(world: TaskWorld, model: FakeModel | Gateway, **options: Any) -> Calibrator:
    gateway = model if isinstance(model, Gateway) else gateway_of(model)
    return Calibrator(world.store, Judge(gateway), CalibrationOptions(**options), mirrors=world.folder / "mirrors")


def page(found: Calibration, threshold: float = 0.8) -> dict[str, Any]:
    return summary(found, threshold=threshold, model="m", prompts={"judge": "h"})


# ---- the run


def test_a_judge_that_is_right_gets_full_marks_on_every_proved_stage(world: TaskWorld) -> None:
    model = FakeModel(right)
    found = calibrator(world, model).run()
    assert found.done and found.stages == 2 and len(model.asked) == 2 * CALLS
    report = page(found)
    assert {name: (row["count"], row["accepted"]) for name, row in report["variants"].items()} == {
        "reference": (8, 1.0),
        "empty": (2, 0.0),
        "reverted": (8, 0.0),
        "other_stage": (8, 0.0),
        "half": (8, 0.0),
    }
    assert (report["repeats"]["same"], report["orders"]["same"], report["orders"]["apart"]) == (1.0, 1.0, 0.0)
    assert (report["repeats"]["pairs"], report["orders"]["pairs"]) == (2 * 4 * 2, 2 * 4 * 4)
    assert all(
        (point["precision"], point["recall"], point["accepted"]) == (1.0, 1.0, 0.25)
        for point in report["known"]["curve"]
    )
    assert [point["threshold"] for point in report["known"]["curve"]] == list(THRESHOLDS)
    assert report["wrong"] == [] and report["unscored"] == {} and report["known"]["verdicts"] == 32


def test_what_is_asked_is_the_query_as_agents_read_it_and_the_patches_of_the_stage(world: TaskWorld) -> None:
    model = FakeModel(right)
    calibrator(world, model, limit=1, repeats=1, orders="reference").run()
    materials = {request.subject.rpartition("/")[2]: fenced(request) for request in model.asked}
    assert set(materials) == {"reference", "reverted", "other_stage", "half"}
    assert all(
        "`round_half_even_cents`" in material["query"] and QUERIES[1] in material["query"]
        for material in materials.values()
    )
    assert len({material["reference"] for material in materials.values()}) == 1
    assert "+def round_half_even_cents(amount):" in materials["reference"]["candidate"]
    assert "-def round_half_even_cents(amount):" in materials["reverted"]["candidate"]
    assert "+class CouponLedger:" in materials["other_stage"]["candidate"]
    assert "test_prices.py" in materials["half"]["candidate"]
    assert materials["half"]["candidate"] != materials["reference"]["reference"]


def test_a_judge_that_minds_the_order_is_found_out(world: TaskWorld) -> None:
    def answer(request: Request) -> Any:
        text = request.messages[-1].content
        first = text.index("<<<candidate") < text.index("<<<reference")
        return {"comment": "Seen.", "score": 0.9 if first else 0.5}

    report = page(calibrator(world, FakeModel(answer)).run())
    assert report["repeats"]["same"] == 1.0
    assert report["orders"]["same"] == 0.0 and report["orders"]["apart"] == pytest.approx(0.4)
    assert report["variants"]["reference"]["accepted"] == 0.5
    assert {trial["variant"] for trial in report["wrong"]} == {"reference", "reverted", "other_stage", "half"}
    assert report["known"]["curve"][0]["precision"] == 0.25


def test_a_judge_that_wavers_is_found_out(world: TaskWorld) -> None:
    counts: dict[str, int] = {}

    def answer(request: Request) -> Any:
        text = request.messages[-1].content
        counts[text] = counts.get(text, 0) + 1
        return {"comment": "Seen.", "score": 0.9 if counts[text] % 2 else 0.2}

    report = page(calibrator(world, FakeModel(answer)).run(1))
    assert report["repeats"]["same"] == 0.0 and report["repeats"]["apart"] == pytest.approx(0.7)


def test_what_is_unscored_is_counted_apart_and_stands_in_no_share(world: TaskWorld) -> None:
    def answer(request: Request) -> Any:
        return "no verdict" if "/reverted" in request.subject else right(request)

    report = page(calibrator(world, FakeModel(answer)).run())
    assert report["unscored"] == {"bad_reply": 8}
    row = report["variants"]["reverted"]
    assert (row["count"], row["unscored"], row["accepted"], row["median"]) == (8, 8, None, None)
    assert report["known"]["verdicts"] == 24
    assert report["known"]["curve"][0]["accepted"] == pytest.approx(8 / 24)


class Killed(BaseException):
    """Ends the run like a killed process."""


@pytest.mark.parametrize("after", [0, 1, CALLS - 1, CALLS, CALLS + 5])
def test_a_run_that_was_killed_goes_on_and_pays_nothing_twice(world: TaskWorld, after: int) -> None:
    ledger = MemoryLedger()
    model = FakeModel(right)
    killed: list[bool] = []

    def until_killed(request: Request) -> Reply:
        # A thread of the killed run may still make a call while the next run works.
        if killed or len(model.asked) == after:
            killed.append(True)
            raise Killed
        return model.complete(request)

    with pytest.raises(Killed):
        calibrator(world, gateway_of(FakeModel(until_killed), ledger)).run(1)
    found = calibrator(world, gateway_of(model, ledger)).run(1)
    assert len(model.asked) == 2 * CALLS
    assert page(found) == page(calibrator(world, FakeModel(right)).run(1))


def test_a_budget_ends_the_run_and_the_next_one_goes_on(world: TaskWorld) -> None:
    ledger, model = MemoryLedger(), FakeModel(right)
    first = calibrator(world, gateway_of(model, ledger, budget=0.026, price=PRICED)).run(1)
    calls = len(model.asked)
    assert not first.done and first.stopped is not None and first.stopped.startswith("the budget of ")
    assert 0 < calls < 2 * CALLS and first.left == 2 - first.stages
    second = calibrator(world, gateway_of(model, ledger, price=PRICED)).run(1)
    assert second.done and len(model.asked) == 2 * CALLS


def test_an_endpoint_that_fails_leaves_its_stages_and_says_why(world: TaskWorld) -> None:
    model = FakeModel(lambda request: errors.EndpointRefused("bad key"))
    found = calibrator(world, model).run(1)
    assert (found.done, found.stages, found.results) == (False, 0, ())
    assert found.unread == tuple(UnmeasuredStage(world.chains[0], n, "endpoint_refused: bad key") for n in (1, 2))
    assert len(model.asked) == 2
    prove(world, {1: "proved", 2: "proved", 3: "proved"})
    found = calibrator(world, model).run(1)
    assert found.stopped == "3 stages in a row ended endpoint_refused, as the others would: bad key"


def test_an_estimate_counts_the_calls_of_a_run_and_asks_nothing(world: TaskWorld) -> None:
    model = FakeModel(right)
    gateway = gateway_of(model, price=PRICED)
    run = calibrator(world, gateway)
    stages, estimate, unread = run.estimate()
    assert (stages, estimate.calls, unread, model.asked) == (2, 2 * CALLS, (), [])
    assert estimate.usd is not None and estimate.usd > 0
    run.run()
    assert run.estimate()[1].calls == 0


def test_a_repository_that_is_gone_is_named_and_left_out(world: TaskWorld) -> None:
    world.world.path.rename(elsewhere(world))
    run = calibrator(world, FakeModel(right))
    found = run.run()
    assert (found.stages, found.left, found.stopped, found.done) == (0, 0, None, False)
    assert sorted((unmeasured.chain_id, unmeasured.position) for unmeasured in found.unread) == [
        (world.chains[0], 1),
        (world.chains[0], 2),
    ]
    assert all(unmeasured.reason.startswith("not_a_repository: ") for unmeasured in found.unread)
    assert sorted(map(repr, run.estimate()[2])) == sorted(map(repr, found.unread))


def test_two_runs_do_not_pay_for_the_same(world: TaskWorld) -> None:
    inner: list[Calibration] = []
    second = FakeModel(right)

    def answer(request: Request) -> Any:
        if not inner:
            inner.append(calibrator(world, second, limit=1).run(1))
        return right(request)

    assert calibrator(world, FakeModel(answer)).run(1).done
    assert (inner[0].unread, inner[0].left, inner[0].done) == ((), 1, False) and second.asked == []


def test_every_stage_is_counted_once_whatever_became_of_it(world: TaskWorld) -> None:
    prove(world, {1: "proved", 2: "proved", 3: "proved"})
    kinds = iter([errors.EndpointRefused("bad key"), errors.EngineUnavailable("odd"), errors.BudgetExceeded("spent")])
    found = calibrator(world, FakeModel(lambda request: next(kinds)), repeats=1).run(1)
    assert (found.stages, len(found.unread), found.left, found.stopped) == (0, 2, 1, "spent")


def test_stored_verdicts_are_held_against_the_tests(world: TaskWorld) -> None:
    for attempt, (score, error, tests) in enumerate(
        [
            (0.9, None, "passed"),
            (0.85, None, "f2p_failed"),
            (0.6, None, "passed"),
            (0.1, None, "p2p_broken"),
            (0.9, None, None),
            (0.9, None, "state_broken"),
            (None, "bad_reply", "passed"),
            (None, None, "passed"),
        ],
        1,
    ):
        verdict(world, attempt, score, error, tests)
    own = calibrator(world, FakeModel(right), limit=1)
    judged_by(world, own.judge.model, own.judge.prompts)
    with world.store.reading() as tx:
        for model, prompts, theirs, others in (
            (own.judge.model, own.judge.prompts, 7, 0),
            ("another", own.judge.prompts, 0, 7),
            (own.judge.model, {"judge": "as it was before"}, 0, 7),
        ):
            found, other_count = stored_verdicts(tx, model, prompts)
            assert (len(found), other_count) == (theirs, others), "a verdict of another judge says nothing of this one"
    tests_page = page(own.run())["tests"]
    assert (tests_page["verdicts"], tests_page["unscored"], tests_page["without_tests"]) == (4, 1, 2)
    assert tests_page["agree"] == 0.5
    by_threshold = {point["threshold"]: point for point in tests_page["curve"]}
    assert (by_threshold[0.5]["precision"], by_threshold[0.5]["recall"]) == (pytest.approx(2 / 3), 1.0)
    assert (by_threshold[0.8]["precision"], by_threshold[0.8]["recall"]) == (0.5, 0.5)
    assert (by_threshold[0.9]["precision"], by_threshold[0.9]["recall"]) == (1.0, 0.5)
    assert by_threshold[0.95]["precision"] is None


def test_a_verdict_whose_judge_saw_the_tests_is_not_held_against_them(world: TaskWorld) -> None:
    for attempt in (1, 2, 3):
        verdict(world, attempt, 0.9, None, "passed")
    with world.store.transaction() as tx:
        for attempt, sees in ((1, "tests"), (2, "patches")):
            tx.connection.execute(update(Verdict).where(Verdict.attempt == attempt).values(judge_sees=sees))
    judged_by(world, "m", {"judge": "h"})
    with world.store.reading() as tx:
        own, others = stored_verdicts(tx, "m", {"judge": "h"})
    assert (len(own), others) == (2, 1)


def test_without_stages_there_is_nothing_to_say(world: TaskWorld) -> None:
    prove(world, {1: "no_f2p", 2: "unproved", 3: "build_failed"})
    found = calibrator(world, FakeModel(right)).run()
    report = page(found)
    assert found.done and (report["stages"], report["variants"], report["repeats"]["same"]) == (0, {}, None)


# ---- patches of known worth


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    world = shop(tmp_path_factory.mktemp("shop"))
    git = GitRepository.open(world.path)
    commits = git.run("rev-list", "--reverse", "--first-parent", "main", named=True).split()
    return [git.patch_text(old, new, functions=whole) for old, new in pairwise(commits) for whole in (False, True)]


def code_lines(patch: bytes) -> int:
    return sum(
        len(file.added) + len(file.removed) for file in file_patches(patch) if kind_of(file.path) is FileKind.SOURCE
    )


def test_half_of_a_patch_lacks_half_of_its_code_and_keeps_the_rest(references: list[bytes]) -> None:
    for patch in references:
        half = halved(patch)
        if code_lines(patch) < 2:
            continue
        assert half is not None and 0 < code_lines(half) <= code_lines(patch) / 2
        kept = {file.path: file for file in file_patches(half)}
        for file in file_patches(patch):
            if kind_of(file.path) is not FileKind.SOURCE:
                assert kept[file.path] == file


_RUNS = st.lists(st.tuples(st.sampled_from("+- "), st.integers(1, 4)), min_size=1, max_size=8)


def patch_of(files: list[list[list[tuple[str, int]]]]) -> bytes:
    """A patch from lists of files, of hunks, of runs: (mark, number of lines)."""
    parts = []
    for number, hunks in enumerate(files):
        path = f"src/f{number}.py"
        parts.append(f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n")
        for at, runs in enumerate(hunks):
            lines = [f"{mark}line {at} {i}\r x" for i, (mark, count) in enumerate(runs) for _ in range(count)]
            old, new = (sum(line[0] in marks for line in lines) for marks in (" -", " +"))
            parts.append(f"@@ -{at * 99 + 1},{old} +{at * 99 + 1},{new} @@ def f():\n" + "\n".join(lines) + "\n")
    return "".join(parts).encode()


@given(st.lists(st.lists(_RUNS, min_size=1, max_size=4), min_size=1, max_size=4))
def test_half_of_any_patch_is_a_patch_with_half_or_less_of_its_lines(files: list[list[list[tuple[str, int]]]]) -> None:
    patch = patch_of(files)
    total = code_lines(patch)
    half = halved(patch)
    assert (half is None) == (total < 2)
    if half is None:
        return
    assert 0 < code_lines(half) <= total / 2
    hunks = [hunk for file in file_patches(patch) for hunk in file.hunks]
    lines = {line for hunk in hunks for line in hunk.lines}
    now = {line for file in file_patches(half) for hunk in file.hunks for line in hunk.lines}
    assert now <= lines | {" " + line[1:] for line in lines}


@pytest.mark.parametrize("patch", [patch_of([[[("+", 1)]]]), patch_of([[[(" ", 3)]]]), b""])
def test_what_has_no_half_has_none(patch: bytes) -> None:
    assert halved(patch) is None


def test_only_the_reference_is_to_be_accepted() -> None:
    assert [variant for variant in Variant if variant.to_accept] == [Variant.REFERENCE]


# ---- figures

_SCORED = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=40)


@given(_SCORED)
def test_a_curve_counts_what_reaches_each_threshold(scored: list[tuple[float, bool]]) -> None:
    points = curve(scored)
    accepted = [point.accepted for point in points]
    recall = [point.recall for point in points]
    if not scored:
        assert set(accepted) == {None}
        return
    assert accepted == sorted(accepted, key=lambda share: -(share or 0.0))
    for point in points:
        reached = [truth for score, truth in scored if score >= point.threshold]
        assert point.accepted == len(reached) / len(scored)
        assert (point.precision is None) == (not reached)
        if point.precision is not None and point.recall is not None:
            good = sum(truth for _, truth in scored)
            assert point.precision * len(reached) == pytest.approx(point.recall * good)
    assert (None in recall) == (not any(truth for _, truth in scored))


def test_agreement_is_over_pairs_of_what_was_scored() -> None:
    assert agreement([[1.0, 0.75, None], [0.1], []], 0.8) == Agreement(1, 0.0, 0.25)
    assert agreement([[0.9, 0.8, 1.0]], 0.8).same == 1.0
    assert agreement_across([([1.0, 1.0], [0.75]), ([0.1], [None])], 0.8) == Agreement(2, 0.0, 0.25)
    assert agreement([], 0.8) == Agreement(0, None, None)


def test_a_spread_keeps_unscored_ones_apart() -> None:
    found = spread([0.2, None, 0.9], 0.8)
    assert (found.count, found.unscored, found.accepted, found.least, found.most) == (3, 1, 0.5, 0.2, 0.9)
    assert spread([None], 0.8).accepted is None


# ---- the command


def run(world: TaskWorld, monkeypatch: pytest.MonkeyPatch, *arguments: str, score: float = 0.9) -> int:
    script = world.folder / "script.jsonl"
    line = {
        "purpose": "judge",
        "repeat": True,
        "reply": {"comment": "Seen.", "score": score},
        "usage": {"in": 10, "out": 5},
    }
    script.write_text(json.dumps(line) + "\n")
    monkeypatch.setenv("PRCHAIN_LLM_SCRIPT", str(script))
    monkeypatch.setenv("PRCHAIN_DATA_DIR", str(world.folder))
    return cli.run(["judge", "calibrate", "--db", world.database, *arguments])


def test_the_command_prints_json_and_pays_once(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(world, monkeypatch, "--json", "--limit", "1", "--repeats", "1") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["stages"] == 1 and report["model"] == "scripted" and report["cost"]["calls"] == 8
    assert report["variants"]["reverted"]["accepted"] == 1.0
    assert run(world, monkeypatch, "--json", "--limit", "1", "--repeats", "1") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["cost"] == {"calls": 0, "tokens_in": 0, "tokens_out": 0, "usd": 0.0}
    assert {**again, "cost": None} == {**report, "cost": None}


def test_the_command_prints_tables(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict(world, 1, 0.9, None, "passed")
    assert run(world, monkeypatch, "--limit", "1", "--repeats", "1", "--order", "reference") == 0
    others = "1 stored verdict of another model or prompt, or of a judge that saw tests, left aside"
    assert others in capsys.readouterr().out
    judged_by(world, "scripted", Judge(gateway_of(FakeModel(right))).prompts)
    assert run(world, monkeypatch, "--repeats", "1", "--order", "reference", "--threshold", "0.95") == 0
    out = capsys.readouterr().out
    assert "scripted on 2 stages, threshold 0.95" in out
    assert re.search(r"reference +accepted +2 +0 +0\.0%", out)
    assert re.search(r"empty +rejected +2 +0 +0\.0%", out)
    assert "other order: nothing to compare" in out
    assert re.search(r"0\.85 +100\.0% +25\.0% +100\.0%", out)
    assert "against tests, 1 stored verdict, 0.0% agree" in out
    assert "wrong: " in out


def test_a_dry_run_spends_nothing(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(world, monkeypatch, "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["calls"] == 2 * CALLS
    assert run(world, monkeypatch, "--dry-run") == 0
    assert "2 stages with proved tests: 32 calls to the judge" in capsys.readouterr().out
    assert world.rows(Verdict, "attempt") == []


def test_a_run_that_could_not_read_a_chain_ends_with_status_1(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world.world.path.rename(elsewhere(world))
    assert run(world, monkeypatch) == 1
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert first.startswith(f"{world.chains[0]} stage 1 and 1 more: not_a_repository: ")
    assert second == "2 stages not done; mend what is said above, then run the same command again"


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_run_without_any_verdict_ends_with_status_1_and_says_why_once_now_and_later(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    for _ in range(2):  # the patch that is empty is judged without a call, and says nothing of the judge
        assert run(world, monkeypatch, *words, "--repeats", "1", score=7.0) == 1
        printed = capsys.readouterr()
        assert printed.err.splitlines()[-1] == "the judge gave no verdict: 16 bad_reply"
        assert printed.err.count("bad_reply") == 1 and ("bad_reply" not in printed.out or words)


def test_without_a_model_the_command_says_what_to_do(
    world: TaskWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PRCHAIN_DATA_DIR", str(world.folder))
    assert cli.run(["judge", "calibrate", "--db", world.database]) == 2
    assert "no model is configured" in capsys.readouterr().err


def test_stored_verdicts_say_nothing_where_tests_said_nothing() -> None:
    found = Calibration((), (StoredVerdict(0.9, None, None),), 0)
    assert page(found)["tests"]["verdicts"] == 0
