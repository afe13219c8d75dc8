from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from pydantic import BaseModel

from prchain.core import errors
from prchain.core.llm.gateway import MAX_TOKENS, CostEstimate, Gateway, Question, Route
from prchain.core.llm.model import Message, Model, Reply, Request, Usage
from prchain.core.llm.price import Price
from prchain.core.llm.prompts import Fence, Prompt
from prchain.core.llm.scripted import ScriptedModel
from prchain.core.llm.sending import mark_sent
from tests.endpoint import wait_for
from tests.memory_ledger import MemoryLedger
from tests.models import FakeModel

PROMPT = Prompt.from_source("greet", b"{% block user %}Greet {{ whom }}.{% endblock %}")

PRICE = Price(input=1.0, output=10.0)


class Verdict(BaseModel):
    score: int
    why: str = ""


class Failing(FakeModel):
    """A model that fails with these errors in turn, then answers."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        super().__init__(self._next, "failing")

    def _next(self, request: Request) -> Reply | Exception:
        return self.faults.pop(0) if self.faults else Reply("fine", self.name, usage=Usage(10, 0, 1))


def question(whom: str = "me", **options: Any) -> Question:
    return Question("query", f"c:{whom}", PROMPT, PROMPT.render(whom=whom), **options)


def gateway_of(
    model: Model, ledger: MemoryLedger | None = None, price: Price | None = PRICE, **options: Any
) -> Gateway:
    waits: list[int] = []
    return Gateway(ledger or MemoryLedger(), Route(model, price), pause=waits.append, **options)


def scripted(*lines: dict[str, Any]) -> Gateway:
    return gateway_of(ScriptedModel(lines))


def states(gateway: Gateway) -> list[str]:
    assert isinstance(gateway.ledger, MemoryLedger)
    return [call.state for call in gateway.ledger.calls]


def test_an_answer_is_stored_and_the_same_question_is_not_paid_for_again() -> None:
    gateway = scripted({"reply": "hello", "usage": {"in": 1000, "out": 100}})
    first, second = gateway.ask(question()), gateway.ask(question())
    assert (first.value, first.stored) == ("hello", False)
    assert first.usd == pytest.approx(0.002)
    assert (second.value, second.stored, second.usd) == ("hello", True, 0.0)
    assert second.cost == first.cost == first.usd
    assert gateway.spending().calls == 1


@pytest.mark.parametrize(
    "other",
    [
        question("you"),
        question(sample=1),
        question(attempt=1),
        question(max_tokens=5),
        question(temperature=1.0),
        question(top_p=0.5),
    ],
)
def test_another_question_is_asked_anew(other: Question) -> None:
    gateway = scripted({"reply": "first"}, {"reply": "second"})
    gateway.ask(question())
    assert gateway.ask(other).value == "second"


def test_a_reply_is_stored_before_it_is_read() -> None:
    gateway = scripted({"reply": "no object"}, {"reply": "none"}, {"reply": "still none"})
    with pytest.raises(errors.BadReply, match=r"query of c:me: .*asked 3 times.*no JSON object"):
        gateway.ask_for(question(), Verdict)
    assert states(gateway) == ["stored"] * 3


def test_what_does_not_fit_is_asked_again_with_the_validators_words() -> None:
    model = FakeModel(ScriptedModel([{"reply": {"score": "9"}}, {"reply": "??"}, {"reply": {"score": 9}}]).complete)
    answer = gateway_of(model).ask_for(question(), Verdict)
    assert answer.value == Verdict(score=9)
    first, second, third = (request.messages for request in model.asked)
    assert second[: len(first)] == third[: len(first)] == first
    assert [message.role for message in second] == ["user", "assistant", "user"]
    assert second[1].content == '{"score": "9"}'
    assert "score: Input should be a valid integer" in second[2].content
    assert third[1].content == "??"
    assert model.asked[0].schema is not None
    assert (model.asked[0].purpose, model.asked[0].subject) == ("query", "c:me")


def test_a_rerun_walks_over_the_stored_repeats_and_pays_only_for_what_is_missing() -> None:
    ledger = MemoryLedger()
    killed = gateway_of(ScriptedModel([{"reply": "bad"}, {"reply": "worse"}]), ledger)
    with pytest.raises(errors.ScriptExhausted):
        killed.ask_for(question(), Verdict)
    rerun = gateway_of(ScriptedModel([{"reply": {"score": 1}}]), ledger)
    answer = rerun.ask_for(question(), Verdict)
    assert (answer.value.score, answer.stored) == (1, False)
    again = gateway_of(ScriptedModel([]), ledger).ask_for(question(), Verdict)
    assert (again.value.score, again.stored, again.usd) == (1, True, 0.0)


@pytest.mark.parametrize(
    "bad",
    [{"reply": ""}, {"reply": "  "}, {"refusal": "no"}, {"tool_calls": [{"name": "f"}]}, {"finish": "content_filter"}],
)
def test_prose_that_is_none_is_asked_for_again(bad: dict[str, Any]) -> None:
    assert scripted(bad, {"reply": "fine"}).ask(question()).value == "fine"


def test_a_model_that_refuses_to_the_end_is_named_so() -> None:
    refusing = {"refusal": "I will not", "repeat": True}
    with pytest.raises(errors.ModelRefused, match="refused, asked 3 times"):
        scripted(refusing).ask(question())


def test_a_reply_that_was_cut_off_is_asked_for_once_more_and_then_blamed_on_max_tokens() -> None:
    cut = {"reply": '{"score": 1', "finish": "length"}
    assert scripted(cut, {"reply": {"score": 1}}).ask_for(question(), Verdict).value.score == 1
    gateway = scripted(cut, cut, {"reply": {"score": 1}})
    with pytest.raises(errors.BadReply, match="max_tokens, 77, is too small"):
        gateway.ask_for(question(max_tokens=77), Verdict)
    assert states(gateway) == ["stored"] * 2


def test_a_model_that_only_thought_gets_more_room_and_the_same_question() -> None:
    asked: list[tuple[int, int]] = []

    def thinks(request: Request) -> Reply:
        asked.append((request.max_tokens, len(request.messages)))
        if request.max_tokens < 1000:
            return Reply("", "m", finish="length", reasoning="Let me see.", usage=Usage(9, None, request.max_tokens))
        return Reply('{"score": 1}', "m")

    gateway = gateway_of(FakeModel(thinks))
    assert gateway.ask_for(question(max_tokens=100), Verdict).value.score == 1
    assert asked == [(100, 1), (400, 1), (1600, 1)]
    assert gateway.ask_for(question(max_tokens=100), Verdict).stored


def test_room_for_thought_has_an_end() -> None:
    gateway = gateway_of(FakeModel(lambda request: Reply("", "m", finish="length", usage=Usage(9, None, 9))))
    with pytest.raises(errors.BadReply, match="max_tokens, 65536, is too small"):
        gateway.ask(question(max_tokens=30_000))


def test_a_token_that_the_prompt_showed_broken_is_whole_in_what_is_said_of_it() -> None:
    fenced = Prompt.from_source("tell", b"{% block user %}{{ fence('patch', patch) }}{% endblock %}")
    patch = "+EOS = '<|im_end|>'"
    messages = fenced.render(fence=Fence(patch), patch=patch)
    calls = [{"name": "bash", "arguments": {"command": "grep '<|im_end |>' ."}}]
    gateway = scripted({"reply": "Stop at `<|im_end |>`, not at <|other |>.", "tool_calls": calls, "repeat": True})
    told = Question("query", "c", fenced, messages)
    for _ in range(2):
        reply = gateway.complete(told).value
        assert reply.text == "Stop at `<|im_end|>`, not at <|other |>."
        assert reply.tool_calls[0].arguments == '{"command": "grep \'<|im_end|>\' ."}'
    assert "<|im_end |>" in Reply.to_json(gateway.ledger.calls[0].reply)  # type: ignore[attr-defined]


def test_what_is_said_again_of_an_unfit_reply_ends_no_turn() -> None:
    model = FakeModel(lambda request: "x <|im_end|> y" if len(request.messages) == 1 else '{"score": 1}')
    assert gateway_of(model).ask_for(question(), Verdict).value.score == 1
    assert model.asked[1].messages[1].content == "x <|im_end |> y"


def test_a_whole_turn_is_given_unread_and_stored_like_any_other() -> None:
    line = {"tool_calls": [{"name": "bash", "arguments": "{"}], "finish": "length"}
    gateway = scripted(line)
    tool = {"type": "function", "function": {"name": "bash"}}
    turn = gateway.complete(question(), [tool])
    assert turn.value.tool_calls[0].arguments == "{"
    assert gateway.complete(question(), [tool]).stored
    with pytest.raises(errors.ScriptExhausted):
        gateway.complete(question())


def test_a_call_that_may_have_been_paid_for_is_lost_and_sent_again_under_a_reservation_of_its_own() -> None:
    lost = errors.EndpointTimeout("late", billed=True)
    gateway = gateway_of(Failing(lost, lost))
    assert gateway.ask(question()).value == "fine"
    assert states(gateway) == ["lost", "lost", "stored"]
    assert gateway.ask(question()).stored
    assert gateway.spending().usd > 2 * MAX_TOKENS * 10 / 1e6


def test_calls_that_are_lost_again_and_again_end_with_their_error() -> None:
    gateway = gateway_of(Failing(*[errors.EndpointUnreachable("cut", billed=True)] * 5))
    with pytest.raises(errors.EndpointUnreachable):
        gateway.ask(question())
    assert states(gateway) == ["lost"] * 3


@pytest.mark.parametrize(
    "kind", [errors.RateLimited, errors.EndpointRefused, errors.ContextTooLong, errors.ScriptUnknown]
)
def test_a_call_that_cost_nothing_gives_its_reservation_back(kind: type[errors.LlmError]) -> None:
    gateway = gateway_of(Failing(kind("no")))
    with pytest.raises(kind):
        gateway.ask(question())
    assert states(gateway) == ["released"]
    assert gateway.spending().usd == 0


@pytest.mark.parametrize("ending", [KeyboardInterrupt(), ValueError("odd")])
def test_a_call_that_something_without_a_name_ends_once_it_was_sent_stays_reserved(ending: BaseException) -> None:
    def interrupted(request: Request) -> None:
        mark_sent()
        raise ending

    gateway = gateway_of(FakeModel(interrupted))
    with pytest.raises(type(ending)):
        gateway.ask(question())
    assert states(gateway) == ["reserved"]
    assert gateway.spending().usd > 0


def test_the_reservation_covers_every_byte_as_a_token_and_the_longest_reply() -> None:
    gateway = gateway_of(Failing())
    gateway.ask(question("ü" * 1000, max_tokens=500))
    assert isinstance(gateway.ledger, MemoryLedger)
    reserved = gateway.ledger.calls[0].reserved
    assert reserved is not None
    assert reserved >= (2000 * 1.0 + 500 * 10.0) / 1e6


def test_a_budget_without_a_price_is_refused_before_anything_is_sent() -> None:
    model = Failing()
    gateway = gateway_of(model, price=None, budget_usd=1.0)
    for attempt in (lambda: gateway.check("query"), lambda: gateway.ask(question())):
        with pytest.raises(errors.SettingsError, match=r"price of failing.*llm_price_input"):
            attempt()
    assert model.asked == []
    gateway_of(model, price=None).check("query")


@pytest.mark.parametrize("budget", [-1.0, float("nan"), float("inf")])
def test_a_budget_is_a_number_of_dollars(budget: float) -> None:
    with pytest.raises(errors.SettingsError, match="budget"):
        gateway_of(Failing(), budget_usd=budget)


def test_without_prices_calls_are_counted_and_their_cost_is_not_known() -> None:
    gateway = gateway_of(Failing(), price=None)
    assert gateway.ask(question()).usd is None
    assert (gateway.spending().unpriced, gateway.spending().tokens_in) == (1, 10)


def test_a_budget_that_is_too_small_stops_before_the_call() -> None:
    model = Failing()
    gateway = gateway_of(model, budget_usd=0.001)
    with pytest.raises(errors.BudgetExceeded, match="larger budget"):
        gateway.ask(question())
    assert model.asked == []


def test_a_call_waits_for_reservations_of_calls_in_flight_before_it_gives_up() -> None:
    started, go_on = threading.Event(), threading.Event()

    def slowly(request: Request) -> str:
        started.set()
        assert go_on.wait(10)
        return "fine"

    gateway = gateway_of(FakeModel(slowly), budget_usd=0.12)  # one reservation is 0.083, one call is 0.0002
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(gateway.ask, question("a"))
        assert started.wait(10)
        second = pool.submit(gateway.ask, question("b"))
        with pytest.raises(TimeoutError):
            second.result(timeout=0.1)
        go_on.set()
        assert (first.result().value, second.result().value) == ("fine", "fine")


def test_an_estimate_is_what_is_not_stored_and_adds_up() -> None:
    gateway = scripted({"reply": "x"})
    estimate = gateway.estimate(question(max_tokens=1000))
    assert (estimate.calls, estimate.tokens_out) == (1, 1000)
    assert estimate.usd is not None
    assert estimate.usd == pytest.approx((estimate.tokens_in + 10 * 1000) / 1e6)
    assert gateway.estimate(question(max_tokens=1000), Verdict).tokens_in > estimate.tokens_in
    assert estimate + estimate == CostEstimate(2, 2 * estimate.tokens_in, 2000, estimate.usd + estimate.usd)
    assert estimate + CostEstimate(1, 1, 1, None) == CostEstimate(2, estimate.tokens_in + 1, 1001, None)
    gateway.ask(question(max_tokens=1000))
    assert gateway.estimate(question(max_tokens=1000)) == CostEstimate()


def test_a_purpose_has_a_model_and_limits_of_its_own() -> None:
    judge, other = Failing(), Failing()
    judge.name = "the judge"
    gateway = Gateway(MemoryLedger(), Route(other), {"judge": Route(judge, None, temperature=0.0, max_tokens=7)})
    assert (gateway.model_name("judge"), gateway.model_name("query")) == ("the judge", "failing")
    gateway.ask(Question("judge", "s", PROMPT, (Message("user", "x"),)))
    assert (judge.asked[0].max_tokens, judge.asked[0].temperature) == (7, 0.0)
    assert other.asked == []


def test_what_a_question_says_itself_wins_over_the_settings_of_its_purpose() -> None:
    model = Failing()
    gateway = Gateway(MemoryLedger(), None, {"judge": Route(model, None, temperature=0.2, max_tokens=7, top_p=0.9)})
    for options in ({}, {"temperature": 0.0}, {"max_tokens": 9}, {"top_p": 0.5}):
        gateway.ask(Question("judge", "s", PROMPT, (Message("user", "x"),), **options))
    assert [(request.max_tokens, request.temperature, request.top_p) for request in model.asked] == [
        (7, 0.2, 0.9),
        (7, 0.0, 0.9),
        (9, 0.2, 0.9),
        (7, 0.2, 0.5),
    ]
    assert gateway.resolved("judge") == {"model": "failing", "max_tokens": 7, "temperature": 0.2, "top_p": 0.9}


def test_where_neither_question_nor_settings_say_it_replies_have_a_limit_of_ours() -> None:
    model = Failing()
    gateway_of(model).ask(question())
    assert (model.asked[0].max_tokens, model.asked[0].temperature, model.asked[0].top_p) == (MAX_TOKENS, None, None)


def test_a_limit_in_usd_wants_a_price() -> None:
    gateway = Gateway(MemoryLedger(), Route(Failing(), PRICE), {"agent": Route(Failing())})
    gateway.require_price("judge", "a limit in USD")
    with pytest.raises(errors.SettingsError, match=r"a limit in USD needs .* failing; .*\[purposes.agent\]"):
        gateway.require_price("agent", "a limit in USD")


def test_a_stored_reply_of_unknown_usage_costs_what_it_counted_for_when_it_came() -> None:
    ledger = MemoryLedger()
    first = gateway_of(ScriptedModel([{"reply": "hello", "usage": {}}]), ledger).ask(question())
    again = gateway_of(ScriptedModel([]), ledger).ask(question())
    assert (first.stored, again.stored) == (False, True)
    assert first.cost == again.cost == ledger.spending().usd and first.cost
    assert again.seconds == pytest.approx(first.seconds, abs=0.01)


def test_a_purpose_without_a_model_is_wrong_usage() -> None:
    gateway = Gateway(MemoryLedger(), routes={"judge": Route(Failing())})
    with pytest.raises(errors.UsageError, match=r"no model .* query; set llm_model, or model in \[purposes.query\]"):
        gateway.ask(question())


class Slow(FakeModel):
    """A model that answers when it is let, and fails the first `faults` times."""

    def __init__(self, faults: int = 0) -> None:
        self.faults = faults
        self.go = threading.Event()
        super().__init__(self._when_let, "slow")

    def _when_let(self, request: Request) -> str | Exception:
        number = len(self.asked)
        assert self.go.wait(10)
        return errors.EndpointRefused("no") if number <= self.faults else f"answer {number}"


def test_threads_that_ask_the_same_at_once_pay_once_and_keep_no_other_question_waiting() -> None:
    model = Slow()
    gateway = gateway_of(model)
    with ThreadPoolExecutor(9) as pool:
        same = [pool.submit(gateway.ask, question()) for _ in range(8)]
        other = pool.submit(gateway.ask, question("another"))
        wait_for(lambda: len(model.asked) == 2)
        model.go.set()
        answers = [future.result(10) for future in same]
    assert len({answer.value for answer in answers}) == 1 and sum(not answer.stored for answer in answers) == 1
    assert not other.result().stored
    assert states(gateway) == ["stored"] * 2 and len(model.asked) == 2


def test_when_the_thread_that_asks_fails_the_next_one_asks() -> None:
    model = Slow(faults=1)
    gateway = gateway_of(model)
    with ThreadPoolExecutor(3) as pool:
        same = [pool.submit(gateway.ask, question()) for _ in range(3)]
        wait_for(lambda: len(model.asked) == 1)
        model.go.set()
        errors_seen = [future.exception(10) for future in same]
    assert sorted(type(base_exception).__name__ for base_exception in errors_seen) == [
        "EndpointRefused",
        "NoneType",
        "NoneType",
    ]
    assert states(gateway) == ["released", "stored"]


@pytest.mark.parametrize("ending", [ValueError("odd"), RecursionError(), MemoryError(), KeyboardInterrupt()])
def test_whatever_ends_a_call_before_it_is_sent_its_reservation_is_given_back(ending: BaseException) -> None:
    def ended(request: Request) -> None:
        raise ending

    gateway = gateway_of(FakeModel(ended), budget_usd=0.1)
    for _ in range(30):  # each reservation is about 0.08 USD
        with pytest.raises(type(ending)):
            gateway.ask(question())
    assert set(states(gateway)) == {"released"}
    assert gateway.spending().usd == 0
