"""The query constructor: what it asks, what it takes for an answer, what becomes of a text that leaks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from chains.tasks.context import StageContext, checked_issue, read_chain
from chains.tasks.excerpt import ExcerptLimits
from chains.tasks.model import TaskChain
from chains.tasks.query import REPEATS, ROUND, QueryConstructor
from chains.tasks.rows import read_task_chain
from chains.tasks.texts import IssueText, PullTexts, read_texts
from prchain.core.code.needs import names_of
from prchain.core.errors import ContextTooLong
from prchain.core.git import GitRepository
from prchain.core.git.patches import Hunk
from prchain.core.leaks import Finding, check
from prchain.core.llm.model import Request
from prchain.core.llm.purposes import PLAN, QUERY
from tests.chains.taskworld import CHAIN, OVERVIEW, QUERIES, FakeModel, TaskWorld, gateway_of, good_answer, mined, shop
from tests.memory_ledger import MemoryLedger
from tests.prchain.secrets_table import DRAWN_TOKEN, drawn

LEAK = QUERIES[1] + " Call quantize() of it."


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskWorld]:
    folder = tmp_path_factory.mktemp("query")
    with mined(folder, shop(folder), [CHAIN]) as task_world:
        task_world.say(1, body=f"Sums differ.\n\nWrite to jane@example.org, token {DRAWN_TOKEN}.", comment="Why even?")
        task_world.close_issue(
            1,
            77,
            "Totals are off by a cent",
            "The bank rounds to even, please add round_half_even_cents.\n\n"
            "    return float(Decimal(amount).quantize(Decimal('0.01')))\n\nWe do not.",
        )
        yield task_world


@pytest.fixture(scope="module")
def chain(world: TaskWorld) -> TaskChain:
    with world.store.reading() as tx:
        return read_task_chain(tx, world.chains[0])


@pytest.fixture(scope="module")
def contexts(world: TaskWorld, chain: TaskChain) -> list[StageContext]:
    return read_chain(world.store, GitRepository.open(world.world.path), chain)


def constructor(model: FakeModel, **options: Any) -> QueryConstructor:
    return QueryConstructor(gateway_of(model), **options)


class TestContext:
    def test_texts_come_from_the_api_and_else_from_the_landing(self, contexts: list[StageContext]) -> None:
        first, second, _ = (context.texts for context in contexts)
        assert first.title == "Round as banks do (#1)"
        assert first.body.startswith("Sums differ.")
        assert second.body == "Follow-up to #1."
        assert first.discussion == ("(comment)\nWhy even?",)
        assert first.commits == ("step 0 of 1", "Round as banks do (#1)\n\nHalves of a cent go to the even neighbour.")
        assert len(first.shas) == 1

    def test_commits_of_an_earlier_stage_are_left_out(self, world: TaskWorld, contexts: list[StageContext]) -> None:
        first = contexts[0]
        with world.store.reading() as tx:
            texts = read_texts(tx, 1, first.stage.number, first.stage.landed_sha, known=first.texts.shas)
        assert texts.commits == ("Round as banks do (#1)\n\nHalves of a cent go to the even neighbour.",)
        assert texts.shas == ()

    def test_texts_are_scrubbed(self, contexts: list[StageContext]) -> None:
        body = contexts[0].texts.body
        assert "jane@example.org" not in body and "ghp_" not in body

    def test_the_patch_is_parted_and_its_paths_known(self, contexts: list[StageContext]) -> None:
        assert contexts[0].files == ("src/till/cart.py", "src/till/prices.py")
        assert contexts[0].test_files == ("tests/test_prices.py",)
        assert contexts[1].files == ("src/till/cart.py", "src/till/coupons.py")
        assert "src/till/coupons.py" not in contexts[1].paths_at_base
        assert "src/till/coupons.py" in contexts[2].paths_at_base

    def test_the_interface_is_what_the_tests_use_and_only_the_patch_introduces(
        self, contexts: list[StageContext]
    ) -> None:
        # New modules are names too: tests import from them.
        needed = [
            {"round_half_even_cents"},
            {"coupons", "CouponLedger", "redeem_once"},
            {"print_itemised_receipt", "receipt"},
        ]
        assert [{need.text for need in context.needs} for context in contexts] == needed
        assert [need.words() for need in contexts[0].needs] == ["`round_half_even_cents`: function, src/till/prices.py"]

    def test_a_passage_of_an_issue_that_shows_the_solution_is_left_out(self, contexts: list[StageContext]) -> None:
        issue = contexts[0].issues[0]
        assert "Totals are off by a cent" in issue and "We do not." in issue
        assert "quantize" not in issue and "left out" in issue
        assert {found.text for found in contexts[0].issue_findings} == {"issue shop/till#77"}
        assert contexts[1].issues == ()

    def test_a_name_that_only_a_later_stages_tests_use_is_told_where_it_is_made(self, tmp_path: Path) -> None:
        later_test = "from till.pool import lock_for\n\n\ndef test_locks():\n    assert lock_for('a')\n"
        source = "def lock_for(key):\n    return key\n"
        made = shop(tmp_path, patches={1: {"src/till/pool.py": source}, 2: {"tests/test_pool.py": later_test}})
        with mined(tmp_path, made, [CHAIN]) as world:
            with world.store.reading() as tx:
                chain = read_task_chain(tx, world.chains[0])
            first, second, _ = read_chain(world.store, GitRepository.open(world.world.path), chain)
        assert "`lock_for`: function, src/till/pool.py" in [need.words() for need in first.needs]
        assert "lock_for" not in names_of(second.needs)

    def test_a_parameter_and_an_attribute_of_one_name_are_both_told(self, tmp_path: Path) -> None:
        source = "class Pool:\n    def __init__(self, limit=3):\n        self.limit = limit\n"
        test = "from till.pool import Pool\n\n\ndef test_it():\n    assert Pool(limit=4).limit == 4\n"
        made = shop(tmp_path, patches={1: {"src/till/pool.py": source, "tests/test_pool.py": test}})
        with mined(tmp_path, made, [CHAIN]) as world:
            with world.store.reading() as tx:
                chain = read_task_chain(tx, world.chains[0])
            first, *_ = read_chain(world.store, GitRepository.open(world.world.path), chain)
        told = {need.words() for need in first.needs if need.text == "limit"}
        assert told == {
            "`limit`: parameter of `Pool`, src/till/pool.py",
            "`limit`: attribute of `Pool`, src/till/pool.py",
        }

    def test_files_to_name_are_program_text_that_changes_and_is_there(self, contexts: list[StageContext]) -> None:
        assert contexts[1].named_files == ("src/till/cart.py",)
        lint = replace(
            contexts[1].reference.code[0], path="src/till/lint.py", hunks=(Hunk(1, 0, 1, 1, "", ("+# why",)),)
        )
        reference = replace(contexts[1].reference, source=(*contexts[1].reference.source, lint))
        paths = contexts[1].paths_at_base | {"src/till/lint.py"}
        assert replace(contexts[1], reference=reference, paths_at_base=paths).named_files == ("src/till/cart.py",)

    def test_an_issue_may_name_what_the_solver_is_told_anyway(self, contexts: list[StageContext]) -> None:
        assert "please add round_half_even_cents" in contexts[0].issues[0]


def test_an_issue_of_many_paragraphs_is_checked_as_a_whole_and_parted_only_where_it_leaks(
    contexts: list[StageContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []

    def counting(text: str, *arguments: Any, **options: Any) -> list[Finding]:
        checked.append(text)
        return check(text, *arguments, **options)

    monkeypatch.setattr("chains.tasks.context.check", counting)
    facts = [context.facts for context in contexts]
    paragraphs = [f"Remark number {n} on the totals." for n in range(200)]
    clean = IssueText("shop/till#7", "Totals", "\n\n".join(paragraphs))
    text, found = checked_issue(clean, facts, contexts[0])
    assert (text, found, len(checked)) == ("\n\n".join(["Totals", *paragraphs]), [], 1)
    leaky = [*paragraphs[:60], "    return float(Decimal(amount).quantize(Decimal('0.01')))", *paragraphs[60:]]
    text, found = checked_issue(IssueText("shop/till#7", "Totals", "\n\n".join(leaky)), facts, contexts[0])
    assert found and "quantize" not in text and text.count("left out") == 1
    assert all(paragraph in text for paragraph in paragraphs) and len(checked) < 30


def test_parts_of_a_secret_in_a_literal_are_no_names_of_the_patch(tmp_path: Path) -> None:
    secret = drawn("sk-proj-{62:40}", 1)
    source = f"LOGIN = 'Xy {secret}'\n\n\ndef log_in_at_bank():\n    return LOGIN\n"
    with mined(tmp_path, shop(tmp_path, patches={1: {"src/till/login.py": source}}), [CHAIN]) as world:
        with world.store.reading() as tx:
            chain = read_task_chain(tx, world.chains[0])
        context, *rest = read_chain(world.store, GitRepository.open(world.world.path), chain)
        assert "log_in_at_bank" in context.names
        model = FakeModel()
        maker = constructor(model)
        maker.query(chain, [context, *rest], 1, maker.plan(chain, context))
        for prompt in (*model.prompts(PLAN), *model.prompts(QUERY)):
            assert "log_in_at_bank" in prompt and "AbCdEf12" not in prompt


class TestHappyPath:
    def test_plan_then_query_then_overview(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        model = FakeModel()
        maker = constructor(model)
        plan = maker.plan(chain, contexts[0])
        assert plan == "why: Sums were off.\n\nwhere: The price module.\n\nhow: By rounding as banks do."
        written = maker.query(chain, contexts, 1, plan)
        assert (written.clean, written.text, written.attempts) == (True, QUERIES[1], 1)
        overview = maker.overview(chain, contexts, list(QUERIES.values()))
        assert (overview.clean, overview.text) == (True, OVERVIEW)
        assert [request.purpose for request in model.asked] == ["plan", "query", "overview"]
        assert [request.subject for request in model.asked] == [
            f"{chain.id}/1",
            f"{chain.id}/1",
            f"{chain.id}/overview",
        ]
        assert set(maker.prompts) == {"material", "plan", "query", "overview", "again"}

    def test_the_prompts_hold_what_they_are_for(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        model = FakeModel()
        maker = constructor(model)
        maker.query(chain, contexts, 1, maker.plan(chain, contexts[0]))
        plan, query = model.prompts(PLAN)[0], model.prompts(QUERY)[0]
        for text in (plan, query):
            assert "Round as banks do" in text and "Sums differ." in text and "Totals are off by a cent" in text
            assert "+def round_half_even_cents(amount):" in text
            assert "jane@example.org" not in text and "ghp_" not in text
        assert "Why even?" in plan and "test_half" in plan and "step 0 of 1" in plan
        assert "By rounding as banks do." in query and "round_half_even_cents`: function" in query
        assert re.search(r"<<<files \w+\nsrc/till/cart.py\nsrc/till/prices.py\n", query)
        assert re.search(r"<<<names \w+\n\(none\)", query), "the issue says the name itself"

    def test_plan_and_query_begin_with_the_same_material(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        model = FakeModel()
        maker = constructor(model)
        maker.query(chain, contexts, 2, maker.plan(chain, contexts[1]), [QUERIES[1]])
        plan, query = ["".join(message.content for message in request.messages) for request in model.asked]
        shared = "".join(a for a, b in takewhile(lambda pair: pair[0] == pair[1], zip(plan, query, strict=False)))
        assert "class CouponLedger" in shared and "def test_" in shared
        assert len(shared) > 0.5 * len(plan)

    def test_a_query_is_written_with_the_earlier_ones_and_what_links_them(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        model = FakeModel()
        maker = constructor(model)
        maker.query(chain, contexts, 2, "plan", [QUERIES[1]])
        maker.query(chain, contexts, 1, "plan")
        later, first = [request.messages[-1].content for request in model.asked]
        assert QUERIES[1] in later and "stage 2 of 3" in later and "Follow-up to #1" in later
        assert "<<<earlier" not in first and "<<<link" not in first and "stage 1 of 3" in first

    def test_an_overview_is_written_with_what_links_the_stages(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        model = FakeModel()
        constructor(model).overview(chain, contexts, list(QUERIES.values()))
        assert "follows: follow up; landing: Follow-up to #1" in model.asked[0].messages[-1].content

    def test_new_files_are_not_asked_to_be_named(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        model = FakeModel()
        constructor(model).query(chain, contexts, 2, "plan")
        assert re.search(r"<<<files \w+\nsrc/till/cart.py\nfiles", model.prompts(QUERY)[0])

    def test_an_empty_part_of_a_plan_is_asked_for_again(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        plans = iter([{"why": "a", "where": "b", "how": " "}, {"why": "a", "where": "b", "how": "c"}])
        model = FakeModel(lambda request: next(plans))
        assert constructor(model).plan(chain, contexts[0]).endswith("how: c")


def leaks_first(times: int) -> FakeModel:
    """A model whose first queries leak."""
    replies = iter([{"query": LEAK}] * times + [{"query": QUERIES[1]}])
    return FakeModel(lambda request: next(replies) if request.purpose == QUERY else good_answer(request))


class TestLeaks:
    def test_a_text_that_leaks_is_asked_again_with_the_findings(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        model = leaks_first(1)
        written = constructor(model).query(chain, contexts, 1, "plan")
        assert (written.clean, written.text, written.attempts) == (True, QUERIES[1], 2)
        first, second = model.asked
        assert second.messages[: len(first.messages)] == first.messages
        rejected, findings = second.messages[len(first.messages) :]
        assert (rejected.role, json.loads(rejected.content)) == ("assistant", {"query": LEAK})
        assert findings.role == "user" and "quantize" in findings.content

    def test_three_times_at_most(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        model = leaks_first(REPEATS)
        assert constructor(model).query(chain, contexts, 1, "plan").attempts == 1 + REPEATS == 4

    def test_then_it_is_rejected_and_the_findings_are_kept(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        model = leaks_first(99)
        written = constructor(model).query(chain, contexts, 1, "plan")
        assert not written.clean and len(model.asked) == ROUND == written.attempts
        assert ("introduced_name", "leak") in {(finding.kind, finding.severity) for finding in written.findings}
        assert written.text == LEAK

    def test_names_of_the_interface_may_not_stand_in_the_prose(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        assert "CouponLedger" in names_of(contexts[1].needs)
        model = FakeModel(lambda request: {"query": QUERIES[2] + " Call it CouponLedger."})
        assert not constructor(model).query(chain, contexts, 2, "plan").clean

    def test_where_it_is_wanted_names_of_the_interface_may_stand_in_the_prose_and_no_others(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        model = FakeModel(lambda request: {"query": QUERIES[2] + " Call it CouponLedger."})
        maker = constructor(model, names="interface")
        assert maker.query(chain, contexts, 2, "plan").clean
        asked = model.asked[0].messages[-1].content
        assert "CouponLedger" not in asked.partition("<<<names")[2].partition("names")[0]
        assert maker.prompts.items() > constructor(model).prompts.items()
        later = FakeModel(lambda request: {"query": QUERIES[2] + " Call it print_itemised_receipt."})
        assert not constructor(later, names="interface").query(chain, contexts, 2, "plan").clean
        whole = FakeModel(lambda request: {"overview": OVERVIEW + " It ends with CouponLedger."})
        assert not constructor(whole, names="interface").overview(chain, contexts, list(QUERIES.values())).clean

    def test_where_the_agent_is_told_no_interface_its_writer_is_told_of_none(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        model = FakeModel(lambda request: {"query": QUERIES[2]})
        maker = constructor(model, names="withheld")
        assert maker.query(chain, contexts, 2, "plan").clean
        asked = model.asked[0].messages[-1].content
        interface = asked.partition("<<<interface")[2].partition("interface ")[0]
        assert "(none)" in interface and "CouponLedger" not in interface
        assert "CouponLedger" in asked.partition("<<<names")[2].partition("names ")[0], "it stays a name not to be said"
        assert maker.prompts.items() > constructor(model).prompts.items(), "such a task is another one"
        leaks = FakeModel(lambda request: {"query": QUERIES[2] + " Call it CouponLedger."})
        assert not constructor(leaks, names="withheld").query(chain, contexts, 2, "plan").clean

    def test_what_the_issue_or_the_landing_says_itself_may_stand_in_the_prose(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        assert "round_half_even_cents" in contexts[0].facts.told
        text = QUERIES[1] + " The issue asks for round_half_even_cents: halves of a cent go to the even neighbour."
        written = constructor(FakeModel(lambda request: {"query": text})).query(chain, contexts, 1, "plan")
        assert [(found.kind, found.severity) for found in written.findings] == [("introduced_name", "warning")]
        assert (
            not constructor(FakeModel(lambda request: {"overview": OVERVIEW + text}))
            .overview(chain, contexts, list(QUERIES.values()))
            .clean
        )

    def test_a_later_stage_may_not_be_given_away(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        text = QUERIES[1] + " Mind that print_itemised_receipt will need it."
        model = FakeModel(lambda request: {"query": text})
        written = constructor(model).query(chain, contexts, 1, "plan")
        assert not written.clean and 3 in {finding.stage for finding in written.findings}

    def test_an_overview_may_give_away_no_stage(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        model = FakeModel(lambda request: {"overview": OVERVIEW + " It ends with CouponLedger."})
        assert not constructor(model).overview(chain, contexts, list(QUERIES.values())).clean

    def test_a_rejected_text_of_any_length_is_shown_again_in_part(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        model = FakeModel(lambda request: {"query": LEAK + " and so on" * 5_000})
        constructor(model).query(chain, contexts, 1, "plan")
        assert max(len(message.content) for message in model.asked[1].messages if message.role == "assistant") < 8_000

    def test_another_round_asks_other_questions(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        ledger = MemoryLedger()
        maker = QueryConstructor(gateway_of(leaks_first(99), ledger))
        maker.query(chain, contexts, 1, "plan")
        maker.query(chain, contexts, 1, "plan")
        assert len(ledger.calls) == ROUND
        assert maker.query(chain, contexts, 1, "plan", start=ROUND).attempts == 2 * ROUND
        assert len(ledger.calls) == 2 * ROUND


class TestContextTooLong:
    @staticmethod
    def narrow(most: int) -> FakeModel:
        def answer(request: Request) -> Any:
            size = sum(len(message.content) for message in request.messages)
            return ContextTooLong("too long") if size > most else good_answer(request)

        return FakeModel(answer)

    def test_the_material_is_halved_until_it_fits(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        wide = FakeModel()
        limits = ExcerptLimits(patch=400, tests=400, body=400, discussion=400, commits=400, issues=400)
        constructor(wide, limits=limits).plan(chain, contexts[0])
        size = len(wide.prompts(PLAN)[0])
        model = self.narrow(size - 250)
        assert constructor(model, limits=limits).plan(chain, contexts[0])
        assert 1 < len(model.asked) <= 3
        assert "left out" in model.prompts(PLAN)[-1]

    def test_what_is_far_below_the_limits_is_cut_all_the_same(
        self, chain: TaskChain, contexts: list[StageContext]
    ) -> None:
        model = self.narrow(10)
        with pytest.raises(ContextTooLong):
            constructor(model).plan(chain, contexts[0])
        sizes = [len(prompt) for prompt in model.prompts(PLAN)]
        assert sizes == sorted(set(sizes), reverse=True)

    def test_twice_and_then_the_stage_ends(self, chain: TaskChain, contexts: list[StageContext]) -> None:
        model = self.narrow(10)
        with pytest.raises(ContextTooLong):
            constructor(model).plan(chain, contexts[0])
        assert len(model.asked) == 3


def test_estimates_count_the_calls_of_a_clean_run(chain: TaskChain, contexts: list[StageContext]) -> None:
    model = FakeModel()
    estimates = list(constructor(model).estimates(chain, contexts, {1: 0, 2: 0, 3: 0}))
    assert [estimate.calls for estimate in estimates] == [1] * 7
    assert all(estimate.usd and estimate.tokens_in > 500 for estimate in estimates)
    assert model.asked == []


def test_prompts_ship_with_the_package() -> None:
    folder = Path(read_chain.__code__.co_filename).parent / "prompts"
    assert {"plan.j2", "query.j2", "overview.j2", "again.j2"} <= {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("Queue jobs (#3)\n\nJobs wait\nfor a slot.", False),
        ("Merge pull request #3 from a/b\n\nQueue jobs", False),
        ("Queue jobs (#3)\n\nJobs wait for a slot, in order.", True),
        ("Queue", False),
        ("Let jobs wait", True),
    ],
)
@pytest.mark.parametrize("title", ["Queue jobs", "Queue jobs (#3)"])
def test_a_commit_that_repeats_title_and_body_is_not_shown_again(title: str, message: str, shown: bool) -> None:
    texts = PullTexts(title, "Jobs wait for a slot.", (), (message,), (), ())
    assert texts.untold_commits() == ((message,) if shown else ())
