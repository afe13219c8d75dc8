"""From mined rows to chains, on a history that has every case: chosen, dropped with a name, frozen, retired."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from chains.history import days_between
from chains.stages.filters import Filters
from prchain.core.errors import ShallowRepository
from sql.chosen import LAST, resolved
from sql.store import Store
from sql.tables import Candidate, Chain, ChainStage, Dependency, Landing, Selection, Task
from tests.chains.chainworld import Shop, build, chosen, dump, function, grown, mined, module
from tests.miner.gitworld import Content


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with mined(tmp_path, grown(tmp_path)) as found:
        yield found


def outcomes(store: Store, strategy: str = "reference") -> dict[int, str]:
    with store.reading() as tx:
        return {row[0]: row[1] for row in tx.rows(Candidate, "number", "outcome", strategy=strategy)}


def edges(store: Store) -> dict[tuple[int, int], str]:
    with store.reading() as tx:
        return {(row[0], row[1]): row[2] for row in tx.rows(Dependency, "source", "target", "outcome")}


def make_task(store: Store, chain: str, outcome: str = "ready") -> None:
    row: dict[str, Any] = {
        "chain_id": chain,
        "outcome": outcome,
        "reason": None,
        "overview": "",
        "findings": [],
        "attempts": 1,
        "model": None,
        "prompts": {},
        "created_at": "2026-01-01T00:00:00Z",
    }
    with store.transaction() as tx:
        tx.upsert(Task, [row])


def test_the_chain_that_builds_on_itself_is_found_and_every_other_landing_says_why_not(
    store: Store, tmp_path: Path
) -> None:
    report = build(store, tmp_path)
    assert list(chosen(store).values()) == [(1, 2, 3)]
    assert outcomes(store) == {
        1: "chained",
        2: "chained",
        3: "chained",
        4: "reverted",
        5: "revert",
        6: "docs_only",
        7: "unlinked",
        8: "unlinked",
    }
    assert report.candidates.total() == report.landed == 8
    assert edges(store) == {
        (2, 1): "kept",
        (3, 2): "kept",
        (5, 4): "reversal",
        (6, 3): "stage_dropped",
        (8, 7): "below_floor",
    }


def test_no_chain_lasts_longer_than_its_span(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path)
    with store.reading() as tx:
        landed = sorted(str(at) for (at,) in tx.rows(ChainStage, "landed_at"))
    days = days_between(landed[0], landed[-1])
    build(store, tmp_path, span=days)
    assert list(chosen(store).values()) == [(1, 2, 3)]
    build(store, tmp_path, span=days * 0.9)
    assert [len(numbers) for numbers in chosen(store).values()] == [2]
    build(store, tmp_path, span=0.0)
    assert chosen(store) == {}
    assert edges(store)[2, 1] == "too_far_apart"


def test_a_second_run_writes_the_same_rows(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path)
    before = dump(store)
    report = build(store, tmp_path)
    assert (report.added, report.kept) == (0, 1)
    assert dump(store) == before


def test_both_databases_get_the_same_chains(database_url: str, tmp_path: Path) -> None:
    with mined(tmp_path, grown(tmp_path), database_url) as found:
        build(found, tmp_path)
        assert list(chosen(found).values()) == [(1, 2, 3)]
        build(found, tmp_path, strategy="single", longest=1, shortest=1)
        assert len(chosen(found, "single")) == 5


def test_every_filter_can_be_switched_off_by_its_name(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path, filters=Filters(keep=frozenset({"docs_only", "no_source", "config_only"})))
    assert outcomes(store)[6] != "docs_only"


def test_the_strategies_for_ablations_do_not_disturb_each_other(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path)
    build(store, tmp_path, strategy="temporal", longest=2)
    build(store, tmp_path, strategy="single", shortest=1)
    assert list(chosen(store).values()) == [(1, 2, 3)]
    assert sorted(chosen(store, "temporal").values()) == [(1, 2), (3, 7)]
    assert sorted(chosen(store, "single").values()) == [(1,), (2,), (3,), (7,), (8,)]
    assert outcomes(store, "temporal")[8] == "not_chosen"


def test_a_chain_that_two_strategies_choose_is_one_chain(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path, longest=3)
    build(store, tmp_path, strategy="temporal", longest=3)
    shared = chosen(store).keys() & chosen(store, "temporal").keys()
    assert len(shared) == 1


def test_chains_that_have_tasks_stay_until_they_are_chosen_anew(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path, longest=2)
    ((first, numbers),) = chosen(store).items()
    make_task(store, first)
    report = build(store, tmp_path)
    assert (report.frozen, chosen(store)) == (1, {first: numbers})
    assert outcomes(store)[numbers[0]] == "frozen"
    report = build(store, tmp_path, reselect=True)
    assert report.retired == 1
    assert list(chosen(store).values()) == [(1, 2, 3)]
    assert chosen(store, outcome="retired") == {first: numbers}


def test_chains_without_tasks_are_forgotten_when_they_lose_their_place(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path, longest=2)
    build(store, tmp_path)
    with store.reading() as tx:
        assert tx.count(Chain) == tx.count(Selection) == 1


def test_a_retired_chain_that_is_chosen_again_stands_again(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path, longest=2)
    (first,) = chosen(store)
    make_task(store, first)
    build(store, tmp_path, reselect=True)
    build(store, tmp_path, longest=2, reselect=True)
    assert first in chosen(store)


def test_what_landed_again_stands_for_what_was_taken_back(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    duty = {"src/till/taxes.py": module("taxes", function("import_duty"))}
    shop.land(1, duty, "Know import duties")
    shop.land(2, {"src/till/taxes.py": module("taxes")}, 'Revert "Know import duties"\n\nThis reverts #1.')
    shop.land(3, duty, 'Reland "Know import duties"\n\nRelands #1.')
    later = {"src/till/taxes.py": module("taxes", function("import_duty", 4))}
    shop.land(4, later, "Mend import duties\n\nFollow-up to #1.")
    with mined(tmp_path, shop) as store:
        build(store, tmp_path)
        assert list(chosen(store).values()) == [(3, 4)]
        assert {number: outcomes(store)[number] for number in (1, 2)} == {1: "reverted", 2: "revert"}


def test_a_repository_without_its_mirror_is_one_error_and_no_loss(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path)
    before = dump(store)
    (tmp_path / "till.git").rename(tmp_path / "gone.git")
    report = build(store, tmp_path)
    assert report.error is not None and report.error.name == "not_a_repository"
    assert dump(store) == before


def test_a_licence_that_is_not_allowed_drops_everything_before_a_patch_is_read(store: Store, tmp_path: Path) -> None:
    report = build(store, tmp_path, filters=Filters(licences=frozenset({"MIT"})))
    assert report.chains == 0
    assert report.candidates["licence"] == report.landed


def test_no_pull_request_of_a_listed_instance_is_in_a_chain(store: Store, tmp_path: Path) -> None:
    from chains.stages.benchmarks import Benchmarks

    build(store, tmp_path, benchmarks=Benchmarks(instances=frozenset({("shop/till", 3)})))
    assert list(chosen(store).values()) == [(1, 2)]
    assert outcomes(store)[3] == "benchmark_instance"


def evidence(store: Store) -> list[tuple[int, str | None]]:
    with store.reading() as tx:
        return [(row[0], row[1]) for row in tx.rows(ChainStage, "number", "relation")]


def test_another_strategy_that_finds_the_same_chain_does_not_wipe_its_evidence(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path)
    before = evidence(store)
    make_task(store, next(iter(chosen(store))))
    build(store, tmp_path, strategy="temporal", longest=3)
    assert set(before) <= set(evidence(store))
    assert before[1] == (2, "follow_up")


def test_the_reference_strategy_adds_its_evidence_to_a_chain_that_another_found_first(
    store: Store, tmp_path: Path
) -> None:
    build(store, tmp_path, strategy="temporal", longest=3)
    build(store, tmp_path)
    assert (2, "follow_up") in evidence(store)


def test_a_task_that_is_written_while_chains_are_chosen_freezes_its_chain(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chains import survey

    build(store, tmp_path)
    ((chain, numbers),) = chosen(store).items()
    look_at = survey.Survey.look_at

    def look_while_a_task_is_written(*arguments: Any, **options: Any) -> None:
        look_at(*arguments, **options)
        make_task(store, chain)

    monkeypatch.setattr(survey.Survey, "look_at", look_while_a_task_is_written)
    report = build(store, tmp_path, longest=2)
    assert (report.frozen, report.retired, chosen(store)) == (1, 0, {chain: numbers})


def test_a_task_that_an_error_ended_freezes_nothing(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path)
    make_task(store, next(iter(chosen(store))), "budget_exceeded")
    build(store, tmp_path, longest=2)
    assert [len(numbers) for numbers in chosen(store).values()] == [2]


def test_overlapping_chains_stay_the_same_when_one_of_them_gets_a_task(tmp_path: Path) -> None:
    shop = grown(tmp_path)
    text = {"src/till/prices.py": module("prices", function("round_half_even_amount", 9), function("refund_amount"))}
    shop.land(9, text, "Round refunds too\n\nFollow-up to #2.")
    with mined(tmp_path, shop) as store:
        build(store, tmp_path, disjoint=False)
        before = chosen(store)
        assert len(before) == 2
        make_task(store, min(before))
        build(store, tmp_path, disjoint=False)
        assert chosen(store) == before


def test_a_licence_that_changes_and_comes_back_is_seen_where_it_holds(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    steps = [function("round_half_even_amount", step) for step in range(4)]
    shop.land(1, {"src/till/prices.py": module("prices", steps[0])}, "Round amounts")
    licence = str(shop.made("main").files[b"LICENSE"][1], "utf-8")
    shop.commit("main", {"LICENSE": "All rights reserved. " * 100}, "close the source")
    shop.land(2, {"src/till/prices.py": module("prices", steps[1])}, "Mend rounding\n\nFollow-up to #1.")
    shop.commit("main", {"LICENSE": licence}, "open it again")
    shop.land(3, {"src/till/prices.py": module("prices", steps[2])}, "Mend it again\n\nFollow-up to #2.")
    with mined(tmp_path, shop) as store:
        build(store, tmp_path)
        assert outcomes(store) == {1: "unlinked", 2: "licence_unknown", 3: "unlinked"}


def test_a_frozen_chain_whose_history_was_rewritten_is_told(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path)
    make_task(store, next(iter(chosen(store))))
    with store.transaction() as tx:
        other = next(iter(tx.rows(Landing, "landed_sha", number=7)))[0]
        tx.connection.execute(update(Landing).where(Landing.number == 2).values(landed_sha=other))
    report = build(store, tmp_path)
    assert (report.frozen, report.stale) == (1, 1)


def test_a_revert_on_a_release_branch_takes_nothing_from_the_trunk(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.land(1, {"src/till/prices.py": module("prices", function("round_half_even_amount"))}, "Round amounts")
    shop.branch("release-1.0", "main")
    head = shop.propose(3, {"src/till/prices.py": module("prices")}, base="release-1.0")
    shop.squash("release-1.0", head, 'Revert "Round amounts" (#3)\n\nThis reverts #1 on the release branch only.')
    later = {"src/till/prices.py": module("prices", function("round_half_even_amount", 5))}
    shop.land(2, later, "Mend rounding\n\nFollow-up to #1.")
    with mined(tmp_path, shop) as store:
        build(store, tmp_path)
        assert list(chosen(store).values()) == [(1, 2)]
        assert outcomes(store)[3] == "revert"


def uncited(folder: Path) -> Shop:
    """The rounding of `grown` without a word of who follows whom, and with tests."""
    shop = Shop(folder)
    for number, step in enumerate((0, 5, 7), 1):
        extra = [function("refund_amount")] if number == 3 else []
        files: dict[str, Content] = {
            "src/till/prices.py": module("prices", function("round_half_even_amount", step), *extra),
            "tests/test_prices.py": "\n\n".join(
                f"def test_{part}_{number}():\n    assert round_half_even_amount({part}) == {step}" for part in range(6)
            ),
        }
        shop.land(number, files, f"Round half even amounts, part {number}")
    return shop


def test_a_chain_that_nobody_cited_is_found_in_the_code(tmp_path: Path) -> None:
    with mined(tmp_path, uncited(tmp_path)) as store:
        assert build(store, tmp_path).chains == 0
        report = build(store, tmp_path, strategy="evidence", floor=0.1, worth=0.1)
        assert list(chosen(store, "evidence").values()) == [(1, 2, 3)]
        assert report.sources == {"lineage": 2}
        assert build(store, tmp_path, strategy="lineage", floor=0.1, worth=0.1).chains == 1
        with store.reading() as tx:
            stages = list(tx.rows(ChainStage, "relation", "worth", "worth_signs"))
            assert [row[0] for row in stages] == [None, "changes_code", "changes_code"]
            assert all(row[1] > 0.1 and "tests_added" in str(row[2]) for row in stages)


def test_each_strategy_uses_the_pairs_that_its_sources_know(store: Store, tmp_path: Path) -> None:
    for strategy in ("reference", "lineage", "evidence"):
        build(store, tmp_path, strategy=strategy, floor=0.0, worth=0.0)
        with store.reading() as tx:
            rows = tx.rows(Dependency, "source", "target", "sources", "outcome")
            pairs = {(source, target): found for source, target, *found in rows}
        assert pairs[2, 1] == ["citation,lineage", "kept"]
        assert pairs[8, 7] == ["citation", "unused_source" if strategy == "lineage" else "kept"]


def test_what_one_strategy_made_a_task_of_is_frozen_for_the_others_and_kept_by_those_like_it(
    store: Store, tmp_path: Path
) -> None:
    build(store, tmp_path, longest=2)
    ((first, numbers),) = chosen(store).items()
    make_task(store, first)
    report = build(store, tmp_path, strategy="evidence", floor=0.0, worth=0.0)
    assert report.frozen == 1
    assert first in chosen(store, "evidence")
    assert not [other for key, other in chosen(store, "evidence").items() if key != first and set(other) & set(numbers)]
    assert {outcomes(store, "evidence")[number] for number in numbers} == {"frozen"}
    build(store, tmp_path, strategy="single", shortest=1)
    assert first not in chosen(store, "single")
    assert not {number for one in chosen(store, "single").values() for number in one} & set(numbers)


def test_stages_of_little_worth_and_without_tests_can_be_left_out(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path, worth=0.99)
    assert outcomes(store)[2] == "low_worth"
    build(store, tmp_path, filters=Filters(with_tests=True))
    assert outcomes(store)[2] == "no_tests"


def test_a_repository_without_lineage_to_read_still_gives_what_is_cited(store: Store, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("chains.build.trace", lambda *_: (_ for _ in ()).throw(ShallowRepository("cut off")))
        report = build(store, tmp_path)
        assert isinstance(report.lineage_error, ShallowRepository)
        assert list(chosen(store).values()) == [(1, 2, 3)]
        assert isinstance(build(store, tmp_path, strategy="lineage").error, ShallowRepository)


def test_commands_take_what_was_built_last(store: Store, tmp_path: Path) -> None:
    with store.reading() as tx:
        assert resolved(tx, LAST) == "evidence"
    for strategy in ("reference", "single", "evidence"):
        build(store, tmp_path, strategy=strategy, shortest=1 if strategy == "single" else 2)
        with store.reading() as tx:
            assert resolved(tx, LAST) == strategy
            assert resolved(tx, "temporal") == "temporal"


def test_two_strategies_that_keep_each_others_chains_still_choose_anew_when_told(store: Store, tmp_path: Path) -> None:
    build(store, tmp_path, longest=2)
    (first,) = chosen(store)
    make_task(store, first)
    build(store, tmp_path, strategy="evidence", floor=0.0, worth=0.0)
    report = build(store, tmp_path, reselect=True)
    assert report.retired == 1
    assert list(chosen(store).values()) == [(1, 2, 3)]


STRATEGIES: dict[str, dict[str, Any]] = {"single": {"shortest": 1}, "temporal": {}, "reference": {}}


def three_chains(folder: Path) -> Shop:
    """Ten pull requests, of which eight build on one another in three chains."""
    shop = Shop(folder)
    number = 0
    for name, length in (("prices", 3), ("taxes", 3), ("cart", 2), ("print", 1)):
        for step in range(length):
            number += 1
            text = module(name, function(f"reckon_{name}_amount", step), function(f"settle_{name}", step))
            words = f"\n\nFollow-up to #{number - 1}, which forgot refunds." if step else ""
            shop.land(number, {f"src/till/{name}.py": text}, f"Reckon {name}, part {step}{words}")
    shop.land(10, {"src/till/coins.py": module("coins")}, "Count coins")
    return shop


@pytest.mark.parametrize("order", [*permutations(STRATEGIES)], ids="-".join)
def test_strategies_side_by_side_choose_the_same_chains_in_any_order(order: tuple[str, ...], tmp_path: Path) -> None:
    with mined(tmp_path, three_chains(tmp_path)) as store:
        for again in (False, True):
            for strategy in order:
                report = build(store, tmp_path, strategy=strategy, side_by_side=True, **STRATEGIES[strategy])
                for chain in () if again else chosen(store, strategy):
                    make_task(store, chain)
                assert (report.gone, report.retired, report.frozen > 0) == (0, 0, again)
        lengths = {it: sorted(map(len, chosen(store, it).values())) for it in order}
        assert lengths == {"single": [1] * 10, "temporal": [5, 5], "reference": [2, 3, 3]}
        with store.reading() as tx:
            assert tx.count(Task, outcome="ready") == 15
        # Without that, each keeps what it has and gets nothing of what others have.
        report = build(store, tmp_path, strategy="reference", reselect=True)
        assert (report.chains, report.retired, report.taken) == (0, 3, 10)
