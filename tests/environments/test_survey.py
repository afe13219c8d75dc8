"""A survey draws evenly and always the same, disturbs no chain, goes on after a kill, and tells every failure."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from chains.build import ChainBuilder
from chains.draw import FILTERS, PERIODS, Draw, DrawnPlace, draw_landings, drawn, period_of
from chains.options import BuildOptions
from environments.proofs.proof_rows import ChainProof, StageProof, write_proof
from environments.proofs.validate import ValidateOptions
from environments.suites.testruns import run_tests
from prchain.cli import run
from prchain.core.console.progress import SILENT
from prchain.core.runs import UnitResult
from sql.chosen import LAST, ChainUnit, resolved
from sql.outcomes import PROVED
from sql.tables import (
    BuiltImage,
    Candidate,
    Chain,
    ChainBuild,
    ChainStage,
    Landing,
    ReferenceRun,
    Selection,
    Task,
    Validation,
)
from tests.environments.stageworld import CHANGES, NAME, StageWorld, stage_world
from trajectories.studies.survey.report import drawing, print_survey
from trajectories.studies.survey.survey import SurveyReport, first_cause, survey_report

YEARS = {1: "2018", 2: "2021", 3: "2025"}
"""When the pull requests of the world landed."""

Landings = Mapping[tuple[str, int], int]


def places(years: Landings) -> list[DrawnPlace]:
    return [DrawnPlace(name, number, f"{year}-06-01T00:00:00+00:00") for (name, number), year in years.items()]


def sequence(years: Landings, seed: int = 1, unusable: Sequence[int] = ()) -> list[DrawnPlace]:
    return list(drawn(seed, places(years), lambda _, numbers: (it for it in numbers if it not in unusable)))


LANDINGS = st.dictionaries(
    st.tuples(st.sampled_from(["h/a/a", "h/b/b", "h/c/c"]), st.integers(1, 40)),
    st.sampled_from([2015, 2019, 2020, 2023, 2024, 2026]),
    max_size=60,
)


@given(LANDINGS, st.integers(0, 5), st.sets(st.integers(1, 40), max_size=10))
def test_a_draw_takes_all_that_is_usable_evenly_over_periods_and_repositories(
    years: Landings, seed: int, unusable: set[int]
) -> None:
    order = sequence(years, seed, tuple(unusable))
    assert sorted((it.repository, it.number) for it in order) == sorted(it for it in years if it[1] not in unusable)
    assert order == sequence(dict(sorted(years.items(), reverse=True)), seed, tuple(unusable))
    periods = [period_of(it.landed_at) for it in order]
    cells = [(period_of(it.landed_at), it.repository) for it in order]
    for size in range(1, len(order) + 1):
        assert_even(Counter(periods[:size]), Counter(periods))
        for period in set(periods):
            taken = Counter(cell for cell in cells[:size] if cell[0] == period)
            assert_even(taken, Counter(cell for cell in cells if cell[0] == period))


def assert_even(taken: Counter[Any], there: Counter[Any]) -> None:
    """Whoever has more left than another's share was not passed over."""
    unfinished = [taken[it] for it in there if taken[it] < there[it]]
    assert max(taken.values(), default=0) <= min(unfinished, default=10**9) + 1


@given(LANDINGS, st.lists(st.integers(41, 60), max_size=4, unique=True), st.integers(1, 30))
def test_what_is_mined_later_takes_no_more_places_than_it_has_pull_requests(
    years: Landings, later: Sequence[int], size: int
) -> None:
    before, after = (sequence(it)[:size] for it in (years, {**years, **{("h/b/b", number): 2026 for number in later}}))
    assert len(set(before) - set(after)) <= len(later)


def test_another_seed_draws_others() -> None:
    years = {("h/a/a", number): 2015 + number % 12 for number in range(200)}
    samples = [{it.number for it in sequence(years, seed)[:20]} for seed in range(3)]
    assert samples[0] != samples[1] != samples[2] and all(len(sample) == 20 for sample in samples)


def test_no_more_patches_are_read_than_the_sample_needs() -> None:
    asked: list[int] = []

    def usable(_: str, numbers: Sequence[int]) -> Iterator[int]:
        for number in numbers:
            asked.append(number)
            yield number

    years = {("h/a/a", number): 2015 for number in range(100)}
    assert len(list(islice(drawn(1, places(years), usable), 5))) == len(asked) == 5


@pytest.mark.parametrize(
    ("landed_at", "period"),
    [
        ("2019-12-31T23:59:59Z", PERIODS[0]),
        ("2020-01-01T00:30:00+01:00", PERIODS[0]),
        ("2020-01-01T00:00:00+00:00", PERIODS[1]),
        ("2023-12-31T23:30:00-01:00", PERIODS[2]),
        ("2024-01-01", PERIODS[2]),
    ],
)
def test_a_period_is_told_by_the_year_in_utc(landed_at: str, period: str) -> None:
    assert period_of(landed_at) == period


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StageWorld]:
    """Three landings with tests, of three periods, and no chain; they are smaller than stages mostly may be."""
    monkeypatch.setattr("chains.draw.FILTERS", replace(FILTERS, min_source_lines=1))
    with stage_world(tmp_path, chains=()) as world:
        with world.store.transaction() as tx:
            for number, year in YEARS.items():
                day = f"{year}-06-01T12:00:00+00:00"
                tx.connection.execute(update(Landing).where(Landing.number == number).values(landed_at=day))
        monkeypatch.setenv("PRCHAIN_DB", world.settings.db)
        monkeypatch.setenv("PRCHAIN_DATA_DIR", str(world.settings.data_dir))
        monkeypatch.setenv("PRCHAIN_ENVIRONMENTS_RECIPES_DIR", str(world.settings.environments_recipes_dir))
        yield world


def draw(world: StageWorld, sample: int = 3, **options: Any) -> Draw:
    return draw_landings(world.store, world.settings.mirrors_dir, SILENT, sample=sample, seed=1, **options)


def report_of(world: StageWorld, found: Draw, **options: Any) -> SurveyReport:
    with world.store.reading() as tx:
        return survey_report(tx, found, seed=1, wanted=3, backend="local", **options)


def store_proofs(world: StageWorld, found: Draw, *stages: StageProof) -> None:
    with world.store.transaction() as tx:
        for landing, stage in zip(sorted(found.landings, key=lambda it: it.number), stages, strict=False):
            reason = f"stage 1: {stage.reason}" if stage.reason else None
            write_proof(tx, ChainProof(landing.chain_id, stage.outcome, reason, (stage,)), "local")


def survey(*arguments: str) -> int:
    return run(["environments", "survey", "--backend", "local", "--workers", "1", *arguments])


def test_a_draw_stores_chains_of_one_that_other_commands_do_not_see(world: StageWorld) -> None:
    known = world.add_chain((1, 2))
    found = draw(world)
    assert [it.number for it in found.landings] == [1, 2, 3] and found.landed == 3
    assert draw(world) == found and draw(world, 2).landings == found.landings[:2]
    ids = {it.chain_id for it in found.landings}
    assert world.rows(Selection, "chain_id", "outcome", strategy="survey") == sorted((it, "selected") for it in ids)
    assert world.rows(Candidate, "number") == [] == world.rows(ChainBuild, "strategy")
    with world.store.reading() as tx:
        assert resolved(tx, LAST) == "reference"
    with world.store.transaction() as tx:
        tx.delete(Selection, chain_id=known)
    with world.store.reading() as tx:
        assert resolved(tx, LAST) == "evidence", "a survey is no choice of the user's"


def test_a_dry_draw_stores_nothing(world: StageWorld) -> None:
    assert draw(world, write=False).landings and world.rows(Chain, "id") == []


def build_single(world: StageWorld, **options: Any) -> None:
    filters = replace(FILTERS, min_source_lines=1)
    values = BuildOptions(strategy="single", shortest=1, filters=filters, **options)
    ChainBuilder(world.store, mirrors=world.settings.mirrors_dir, progress=SILENT, options=values).build()


def test_chains_of_strategies_and_of_surveys_leave_each_other_alone(world: StageWorld) -> None:
    found = draw(world, 2)
    store_proofs(world, found, StageProof(1, PROVED), StageProof(1, PROVED))
    build_single(world)
    assert len(world.rows(Selection, "chain_id", strategy="single")) == 3
    before = world.rows(Selection, "strategy", "chain_id", "outcome", strategy="single")
    assert draw(world, 3).landings[:2] == found.landings
    assert world.rows(Selection, "strategy", "chain_id", "outcome", strategy="single") == before
    # A strategy that lets go of everything takes no chain of the survey, nor its proof, with it.
    with world.store.transaction() as tx:
        tx.delete(Selection, strategy="single")
    ChainBuilder(world.store, mirrors=world.settings.mirrors_dir, progress=SILENT, options=BuildOptions()).build()
    assert len(world.rows(Chain, "id")) == 3 and len(world.rows(Validation, "chain_id")) == 2


def test_a_drawn_chain_with_a_task_is_frozen_by_its_strategy_alone(world: StageWorld) -> None:
    build_single(world)
    chain = draw(world, 1).landings[0].chain_id
    row: dict[str, Any] = {"chain_id": chain, "outcome": "ready", "findings": [], "attempts": 1, "prompts": {}}
    with world.store.transaction() as tx:
        tx.upsert(Task, [{**row, "reason": None, "overview": "", "model": None, "created_at": "2026-01-01T00:00:00Z"}])
        retired = (Selection.strategy == "single", Selection.chain_id == chain)
        tx.connection.execute(update(Selection).where(*retired).values(outcome="retired"))
    build_single(world)
    assert dict(world.rows(Candidate, "number", "outcome", strategy="single"))[1] == "chained"


def test_a_report_tells_shares_causes_time_and_disk(world: StageWorld, capsys: pytest.CaptureFixture[str]) -> None:
    found = draw(world)
    store_proofs(
        world,
        found,
        StageProof(1, "build_failed", "the step project failed: \x1b[31mno use_2to3 | error: b", seconds=30.0),
        StageProof(1, "no_f2p", "3 p2p", image="i:1", recipe="plain", seconds=50.0),
        StageProof(1, PROVED, image="i:1", recipe="plain", seconds=40.0),
    )
    image = {"name": "i:1", "repository": NAME, "recipe": "plain", "outcome": "built", "notes": [], "seconds": 20.0}
    with world.store.transaction() as tx:
        tx.upsert(BuiltImage, [{**image, "reason": None, "as_of": None, "size_bytes": 9, "repairs": 0, "built_at": ""}])
    report = report_of(world, found, image_bytes={"i:1": (2_000_000, 500_000_000)})
    assert (report.all.drawn, report.all.ended) == (3, 3)
    assert [it.count for it in (report.all.built, report.all.ran, report.all.proved)] == [2, 2, 1]
    # By hand from Wilson's formula, z = 1.96: 1 of 3.
    share = report.all.proved
    assert share.low is not None and share.high is not None
    assert (round(share.low, 3), round(share.high, 3)) == (0.061, 0.792)
    assert [(it.name, it.proved.count) for it in report.by_period] == [
        (PERIODS[0], 0),
        (PERIODS[1], 0),
        (PERIODS[2], 1),
    ]
    assert [it.name for it in report.by_language] == ["python"]
    assert [(it.name, it.share.count) for it in report.causes] == [("build_failed: project", 1), ("no_f2p", 1)]
    took = report.took
    assert (took.seconds, took.images, took.image_seconds, took.failed_build_seconds) == (120.0, 1, 20.0, 30.0)
    assert (took.shared, took.images_there, took.own_bytes, took.all_bytes) == (1, 1, 2_000_000, 500_000_000)
    print_survey(report)
    out = capsys.readouterr().out
    assert "\x1b" not in out and "use_2to3" in out and "error: b" not in out
    assert f"{NAME}#2" in out and f"{NAME}#3" not in out, "each failure has a line"
    assert "disk of 1 image: 2.0 MB" in out and "2 min (40 s a landing)" in out
    assert "use_2to3" not in drawing(report) and fromstring(drawing(report)).tag.endswith("svg")


def test_what_has_not_ended_counts_in_no_share(world: StageWorld, capsys: pytest.CaptureFixture[str]) -> None:
    found = draw(world)
    store_proofs(world, found, StageProof(1, PROVED, recipe="plain"))
    with world.store.transaction() as tx:
        other = {"outcome": PROVED, "reason": None, "backend": "docker", "seconds": 1.0, "validated_at": ""}
        tx.upsert(Validation, [{**other, "chain_id": found.landings[1].chain_id}])
    gone = UnitResult(ChainUnit(found.landings[2].chain_id), "engine_unavailable", "no daemon")
    report = report_of(world, found, stopped=[gone])
    assert (report.all.drawn, report.all.ended, report.all.proved.value) == (3, 1, 1.0)
    print_survey(report)
    out = capsys.readouterr().out
    assert "1 of 3" in out and "engine_unavailable: no daemon" in out
    assert report.by_period[1].proved.value is None and "0: -" in out


def test_a_first_cause_is_the_first_line_without_its_place() -> None:
    assert first_cause("stage 1: the step a failed: x | y | z") == "the step a failed: x"
    assert first_cause(None) is None


@pytest.mark.usefixtures("bubblewrap")
def test_a_survey_that_was_cut_off_goes_on_and_a_finished_one_runs_nothing(
    world: StageWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    runs: list[int] = []

    def cut_off(*args: Any, **named: Any) -> Any:
        runs.append(1)
        if len(runs) == 4:
            raise KeyboardInterrupt
        return run_tests(*args, **named)

    monkeypatch.setattr("trajectories.studies.survey.run.ValidateOptions", partial(ValidateOptions, runs=1))
    monkeypatch.setattr("environments.workplace.run_tests", cut_off)
    assert survey("--sample", "2") == 130
    assert len(world.rows(Validation, "chain_id")) == 1 and len(world.rows(ReferenceRun, "side")) == 3
    drawings = tmp_path / "s.svg"
    capsys.readouterr()
    assert survey("--sample", "2", "--svg", str(drawings)) == 0
    assert len(runs) == 4 + 1, "no stored run is made twice"
    out = capsys.readouterr().out
    assert "2: 100 (34 to 100)" in out and drawings.read_text().startswith("<svg")
    monkeypatch.setattr("environments.workplace.run_tests", lambda *a, **k: pytest.fail("run again"))
    assert survey("--sample", "2", "--svg", str(drawings)) == 0
    assert capsys.readouterr().out == out
    assert survey(NAME.upper(), "--sample", "2", "--json") == 0
    row = json.loads(capsys.readouterr().out)
    assert [it["number"] for it in row["landings"]] == [1, 2] and row["all"]["proved"]["count"] == 2
    assert [it["proved"]["value"] for it in row["by_period"]] == [1.0, 1.0]


def test_what_has_no_test_by_the_runners_rule_is_passed_over_and_what_no_recipe_fits_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("chains.draw.FILTERS", replace(FILTERS, min_source_lines=1))
    helper: dict[str | bytes, Any] = {**CHANGES[2], "tests/test_cart.py": None, "tests/cart_checks.py": "LIMIT = 3\n"}
    with stage_world(tmp_path, {2: helper}, chains=()) as world:
        monkeypatch.setenv("PRCHAIN_DATA_DIR", str(world.settings.data_dir))
        recipes = tmp_path / "recipes"
        monkeypatch.setenv("PRCHAIN_ENVIRONMENTS_RECIPES_DIR", str(recipes))
        found = {}
        for name in ("plain.toml", "none"):
            assert survey("--dry-run", "--json", "--db", world.settings.db) == 0
            row = json.loads(capsys.readouterr().out)
            found[name] = (sorted(it["number"] for it in row["landings"]), row["left_out"])
            (recipes / "plain.toml").write_text((recipes / "plain.toml").read_text().replace("till/*.py", "no/*"))
        assert found == {"plain.toml": ([1, 3], {"no_tests": 1}), "none": ([1, 2, 3], {})}


def test_wrong_usage_is_one_line(
    world: StageWorld, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    cases = {
        ("no/such",): "no/such has not been mined into this database",
        ("--budget", "1"): "give --repair, too",
        ("--sample", "0"): "--sample",
        ("--svg", str(tmp_path / "notes.txt")): "is no drawing",
        ("--svg", str(tmp_path / "none" / "s.svg")): "there is no folder",
    }
    for arguments, words in cases.items():
        assert survey(*arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()[-1:]
        assert words in line
    assert (tmp_path / "notes.txt").read_text() == "mine" and world.rows(Chain, "id") == []


def test_a_repository_that_is_gone_and_one_without_tests_are_told(
    world: StageWorld, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("chains.draw.FILTERS", replace(FILTERS, min_source_lines=10_000))
    assert survey() == 1
    printed = capsys.readouterr()
    assert "0 landings with tests drawn of 24 wanted" in printed.out and "3 source_too_small" in printed.out
    assert printed.err.splitlines()[-1].startswith("no landed pull request with tests can be drawn")
    world.world.path.rename(world.world.path.with_name("moved.git"))
    assert survey(NAME) == 1
    assert "was mined from" in capsys.readouterr().err.splitlines()[-1]
    assert world.rows(ChainStage, "chain_id") == []
