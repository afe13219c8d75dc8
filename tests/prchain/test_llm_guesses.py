"""A long prompt that is refused without a cause counts as too long, once a call, and says that it is a guess."""

from __future__ import annotations

from typing import Any

import pytest

from prchain.core import errors
from prchain.core.llm.gateway import Gateway, Question, Route
from prchain.core.llm.guesses import ContextGuesses
from prchain.core.llm.model import Reply, Request
from prchain.core.llm.prompts import Prompt
from tests.memory_ledger import MemoryLedger
from tests.models import FakeModel

PROMPT = Prompt.from_source("greet", b"{% block user %}{{ words }}{% endblock %}")
BAD = errors.EndpointRefused("h answered 400: Bad Request", unexplained=True)


def question(size: int, **options: Any) -> Question:
    return Question("judge", "c/1", PROMPT, PROMPT.render(words="x" * size), max_tokens=100, **options)


def gateway_of(answer: Any, context_tokens: int | None = 1_100) -> Gateway:
    return Gateway(MemoryLedger(), Route(FakeModel(answer), context_tokens=context_tokens))


@pytest.mark.parametrize(
    ("error", "tokens", "context", "guessed"),
    [
        (BAD, 900, 1_100, True),
        (BAD, 899, 1_100, False),
        (BAD, 5_000, 1_100, True),
        (BAD, 5_000, None, False),
        (BAD, 90, 100, True),
        (errors.EndpointRefused("unsupported"), 5_000, 1_100, False),
        (errors.RateLimited("later"), 5_000, 1_100, False),
        (errors.EndpointIncompatible("odd", billed=True), 5_000, 1_100, False),
    ],
)
def test_what_is_guessed(error: errors.LlmError, tokens: int, context: int | None, guessed: bool) -> None:
    named = ContextGuesses().named(error, "a call", tokens, 100, context)
    assert isinstance(named, errors.ContextTooLong) == guessed
    if guessed:
        assert "a guess" in str(named) and str(error) in str(named) and not named.billed
    else:
        assert named is error


def test_a_call_is_guessed_once_until_it_was_answered() -> None:
    guesses = ContextGuesses()
    kinds = []
    for call in ("a", "a", "b"):
        kinds.append(type(guesses.named(BAD, call, 1_000, 100, 1_100)))
    guesses.answered("a")
    kinds.append(type(guesses.named(BAD, "a", 1_000, 100, 1_100)))
    too_long, refused = errors.ContextTooLong, errors.EndpointRefused
    assert kinds == [too_long, refused, too_long, too_long]


def test_the_ledger_keeps_a_guess_as_one_and_the_call_as_unpaid() -> None:
    gateway = gateway_of(lambda request: BAD)
    with pytest.raises(errors.ContextTooLong, match="a guess"):
        gateway.complete(question(4_000))
    with pytest.raises(errors.EndpointRefused):
        gateway.complete(question(3_900))
    assert isinstance(gateway.ledger, MemoryLedger)
    first, second = (str(call.error) for call in gateway.ledger.calls)
    assert first.startswith("context_too_long: ") and "a guess" in first
    assert second.startswith("endpoint_refused: ")
    assert (gateway.spending().calls, gateway.spending().refused) == (0, 2)


def test_a_short_prompt_and_a_model_of_unknown_size_are_refused_as_before() -> None:
    for gateway, size in ((gateway_of(lambda request: BAD), 2_000), (gateway_of(lambda request: BAD, None), 9_000)):
        with pytest.raises(errors.EndpointRefused):
            gateway.complete(question(size))


def test_who_asks_may_know_the_size_better() -> None:
    gateway = gateway_of(lambda request: BAD, None)
    with pytest.raises(errors.ContextTooLong):
        gateway.complete(question(400, prompt_tokens=1_950, context_tokens=2_000))


def test_a_prompt_that_is_halved_after_a_guess_is_answered() -> None:
    def answer(request: Request) -> Any:
        return BAD if len(request.messages[0].content) > 3_000 else Reply("fine", "m")

    gateway = gateway_of(answer)
    with pytest.raises(errors.ContextTooLong):
        gateway.ask(question(4_000))
    assert gateway.ask(question(2_000)).value == "fine"
