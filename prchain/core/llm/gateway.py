"""The gateway, through which every stage asks models.

It finds the reply that an earlier run stored; else it reserves, asks, stores and only then reads. A reply that does not
fit is asked for again, with words on what is wrong. It can be killed at any moment: the next run repeats the same steps
on stored replies and continues with the first call that has none.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from random import random
from time import monotonic, sleep
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from prchain.core.errors import (
    BadReply,
    BudgetExceeded,
    EndpointUnreachable,
    LlmError,
    ModelRefused,
    SettingsError,
    StoreError,
    UsageError,
)
from prchain.core.llm.finishes import broke_off, with_finish
from prchain.core.llm.guesses import ContextGuesses
from prchain.core.llm.ledger import CallKey, CallNote, Ledger, Spending
from prchain.core.llm.model import Message, Model, Reply, Request
from prchain.core.llm.pauses import full_jitter
from prchain.core.llm.price import Pricing
from prchain.core.llm.prompts import Prompt, fenced_texts, with_whole_tokens
from prchain.core.llm.replies import UnfitReply, closed_schema, read_shape, read_text
from prchain.core.llm.sending import sending
from prchain.core.llm.special_tokens import without_special_tokens
from prchain.core.llm.verdicts import read_verdict
from prchain.core.llm.wire import MOST_TOKENS, most_bytes, serialised
from prchain.core.waiting import waiting_for

log = logging.getLogger(__name__)

T = TypeVar("T")
Shape = TypeVar("Shape", bound=BaseModel)

_BYTES_PER_TOKEN = 4
"""Of English and of code, about, for estimates."""

MAX_TOKENS = 8192
"""Tokens of a reply, reasoning included, where neither the question nor the settings say it."""
LONGEST_REPLY = 65_536
"""Tokens up to which a model that thinks gets more room: no model of today takes less than that and thinks longer."""

_NOTHING_USUAL: Mapping[str, float] = {}

_LONGEST_ECHO = 4_000
"""So many characters of a reply that did not fit are shown to the model when it is asked again."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what for. Equal questions have one answer, which is paid for once."""

    purpose: str
    """Which of the settings' purposes it is: ``query``, ``overview``, ``judge`` ... ; 32 characters at most."""
    subject: str
    """What it is about, e.g. a chain's id and a stage; 255 characters at most."""
    prompt: Prompt | None
    """None: no text of ours asks it."""
    messages: tuple[Message, ...]
    max_tokens: int | None = None
    """Of the reply; None: what the settings say of the purpose, or `MAX_TOKENS`."""
    temperature: float | None = None
    """None: what the settings say of the purpose, or the endpoint's own."""
    sample: int = 0
    """Which of several answers to the same question."""
    attempt: int = 0
    """Which attempt of the stage that asks."""
    top_p: float | None = None
    """None: what the settings say of the purpose, or the endpoint's own."""
    prompt_tokens: int | None = None
    """Of the prompt, where who asks has counted them; None: by its bytes."""
    context_tokens: int | None = None
    """Size of the model's context, where who asks knows it; None: what the table of prices says of the model."""


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What came of a question."""

    value: T
    reply: Reply
    usd: float | None
    """What it cost now, repeats included: 0 for a stored one, None where the price is not known."""
    stored: bool
    """Whether the ledger had it, so that nothing was paid now."""
    cost: float | None = None
    """What it cost when it was paid for, now or by an earlier run, repeats included; None where that is not known."""
    seconds: float = 0.0
    """How long it took to come when it was paid for, repeats included; of a stored one about, by whole seconds."""


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """What questions would cost: replies are counted with all the tokens they may have, stored ones not at all."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float | None = 0.0
    """None where a price is not known."""

    def __add__(self, other: CostEstimate) -> CostEstimate:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return CostEstimate(
            self.calls + other.calls, self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out, usd
        )

    @property
    def price(self) -> str:
        """The price for people."""
        return "price unknown" if self.usd is None else f"about {self.usd:.4g} USD"

    def words(self) -> str:
        """What a dry run says of tokens and price."""
        price = self.price.replace("about", "at most")
        return f"about {self.tokens_in:,} tokens in, at most {self.tokens_out:,} out, {price}"


@dataclass(frozen=True, slots=True)
class Route:
    """The model that answers a purpose, its price, and the defaults for what a question leaves open."""

    model: Model
    price: Pricing | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    top_p: float | None = None
    context_tokens: int | None = None
    """Size of the model's context; None where it is not known."""
    token_ids: bool = False
    """Whether replies to programs of others are to have their token ids and log-probabilities."""


@dataclass(frozen=True, slots=True)
class _PaidReply:
    reply: Reply
    usd: float | None
    stored: bool
    cost: float | None
    seconds: float


@dataclass
class Gateway:
    """Asks models through a ledger. Safe for several threads: each waits for its own answer, and of those that ask the
    same at once only one pays.

    `routes` maps a purpose to its route; `default` serves the others. `budget_usd` caps what the ledger's run may
    spend. A reply that does not fit is asked for `repeats` more times; so is one that was lost on its way.
    """

    ledger: Ledger
    default: Route | None = None
    routes: Mapping[str, Route] = field(default_factory=dict)
    budget_usd: float | None = None
    repeats: int = 2
    pause: Callable[[int], None] = field(default=lambda tries: sleep(full_jitter(tries, random)), repr=False)
    """Waits after the given number of tries whose replies were lost."""
    cleanup: ExitStack = field(default_factory=ExitStack, repr=False)
    """What is to be closed with the gateway."""
    _freed: threading.Condition = field(default_factory=threading.Condition, repr=False)
    _in_flight: int = 0
    _answered: threading.Condition = field(default_factory=threading.Condition, repr=False)
    _asking: set[CallKey] = field(default_factory=set, repr=False)
    _guesses: ContextGuesses = field(default_factory=ContextGuesses, repr=False)

    def __post_init__(self) -> None:
        if self.budget_usd is not None and not (math.isfinite(self.budget_usd) and self.budget_usd >= 0):
            raise SettingsError("the budget must be a number of USD, 0 or more")

    def close(self) -> None:
        """Close the connections of the models' endpoints."""
        self.cleanup.close()

    def model_name(self, purpose: str) -> str:
        """The name of the model that answers a purpose. Raises `UsageError` where there is none."""
        return self._route(purpose).model.name

    def resolved(
        self,
        purpose: str,
        *,
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        usual: Mapping[str, float] = _NOTHING_USUAL,
    ) -> Mapping[str, Any]:
        """Model and sampling settings of the questions of a purpose that name these: ``model``, ``max_tokens``, and
        ``temperature`` and ``top_p`` where these are not left to the endpoint. `usual` are the stage's own values,
        which the settings of the purpose outrank. Raises `UsageError` where there is no model."""
        route = self._route(purpose)
        settings = {
            "temperature": _first(_first(temperature, route.temperature), usual.get("temperature")),
            "top_p": _first(_first(top_p, route.top_p), usual.get("top_p")),
        }
        sampling = {name: float(value) for name, value in settings.items() if value is not None}
        most = max_tokens or route.max_tokens or int(usual.get("max_tokens", MAX_TOKENS))
        return {"model": route.model.name, "max_tokens": most, **sampling}

    def priced(self, purpose: str, calls: int, tokens_in: int, tokens_out: int) -> CostEstimate:
        """The estimate of so many calls of a purpose that have so many tokens together, at the price of its model."""
        route = self.routes.get(purpose, self.default)
        price = None if route is None else route.price
        usd = None if price is None else price.estimate(calls, tokens_in, tokens_out)
        return CostEstimate(calls, tokens_in, tokens_out, usd)

    def check(self, *purposes: str) -> None:
        """Make sure, before anything is sent, that each purpose has a model, and a price where there is a budget.

        Raises `UsageError` and `SettingsError`.
        """
        for purpose in purposes:
            self._route(purpose)

    def require_price(self, purpose: str, limit: str) -> None:
        """Make sure that what a purpose costs can be counted against a limit, which is named in words.

        Raises `UsageError` where the purpose has no model, and `SettingsError` where its price is not known.
        """
        route = self._route(purpose)
        if route.price is None:
            raise _unpriced(route.model.name, purpose, limit)

    def spending(self) -> Spending:
        """What the run spent so far."""
        return self.ledger.spending()

    def ask(self, question: Question) -> Answer[str]:
        """Ask for prose. Raises `BadReply` (or `ModelRefused`) when asking again did not help, and other `LlmError`."""
        return self._ask(question, None, read_text)

    def ask_for(self, question: Question, shape: type[Shape]) -> Answer[Shape]:
        """Ask for a value of a shape; raises as `ask`.

        The schema goes with the request, and the reply is checked all the same. Keep shapes plain: a number's bounds
        are not enforced by every endpoint, but checked here.
        """
        return self._ask(question, shape, lambda reply: read_shape(reply, shape))

    def ask_verdict(self, question: Question, shape: type[Shape]) -> Answer[Shape]:
        """Ask for a decision; raises as `ask`.

        As `ask_for`, but the object has to end the reply and must not stand in the texts that the question's prompt
        fences: see `prchain.core.llm.verdicts`.
        """
        shown = fenced_texts(question.messages)
        return self._ask(question, shape, lambda reply: read_verdict(reply, shape, shown))

    def complete(self, question: Question, tools: Sequence[Mapping[str, Any]] = ()) -> Answer[Reply]:
        """One turn of a conversation, unread: whatever the model says, calls of tools included. Raises `LlmError`."""
        request = self._request(question, None, tools=tuple(tools))
        paid = self._find_or_pay(question, request, 0)
        return Answer(paid.reply, paid.reply, paid.usd, paid.stored, paid.cost, paid.seconds)

    def forward(
        self,
        question: Question,
        body: Mapping[str, Any],
        ordinal: int = 0,
        *,
        token_ids: Callable[[], bool] = lambda: True,
    ) -> Answer[Reply]:
        """Answer what a program of others asks, in its own words: `body` is that of ``/chat/completions``, and the
        question's messages are those that it holds.

        What the question, or the settings of the purpose, say of temperature, top_p and the reply's length stands in
        place of its own; without any, a reply has as much room as the program gives it. `ordinal` tells equal bodies
        apart that are to have replies of their own. `token_ids` says whether those of the reply, and of the prompt
        with them, may be kept; it is called where the settings want them. Raises `LlmError`.
        """
        request = replace(self._request(question, None), body=body)
        if self._route(question.purpose).token_ids and token_ids():
            request = replace(request, token_ids=True)
        asked = body.get("max_completion_tokens") or body.get("max_tokens")
        ours = question.max_tokens or self._route(question.purpose).max_tokens
        if ours is None and type(asked) is int and 0 < asked <= MOST_TOKENS:
            request = replace(request, max_tokens=asked)
        paid = self._find_or_pay(question, request, ordinal)
        return Answer(paid.reply, paid.reply, paid.usd, paid.stored, paid.cost, paid.seconds)

    def estimate(self, question: Question, shape: type[BaseModel] | None = None) -> CostEstimate:
        """What the question would cost, by four bytes a token and replies as long as they may be; no repeats."""
        request = self._request(question, shape)
        route = self._route(question.purpose)
        body = serialised(request, route.model.name)
        if self.ledger.find(_key(question, body, 0)) is not None:
            return CostEstimate()
        tokens_in = -(-len(body) // _BYTES_PER_TOKEN)
        return self.priced(question.purpose, 1, tokens_in, request.max_tokens)

    def _route(self, purpose: str) -> Route:
        route = self.routes.get(purpose, self.default)
        if route is None:
            raise UsageError(f"no model is configured for {purpose}; set llm_model, or model in [purposes.{purpose}]")
        if self.budget_usd is not None and route.price is None:
            raise _unpriced(route.model.name, purpose, "a budget in USD")
        return route

    def _request(
        self, question: Question, shape: type[BaseModel] | None, tools: tuple[Mapping[str, Any], ...] = ()
    ) -> Request:
        route = self._route(question.purpose)
        return Request(
            messages=question.messages,
            max_tokens=question.max_tokens or route.max_tokens or MAX_TOKENS,
            temperature=_first(question.temperature, route.temperature),
            top_p=_first(question.top_p, route.top_p),
            schema=closed_schema(shape) if shape is not None else None,
            schema_name=shape.__name__ if shape is not None else "reply",
            tools=tools,
            purpose=question.purpose,
            subject=question.subject,
        )

    def _ask(self, question: Question, shape: type[BaseModel] | None, reader: Callable[[Reply], T]) -> Answer[T]:
        request = self._request(question, shape)
        usd: float | None = 0.0
        cost: float | None = 0.0
        seconds = 0.0
        stored, cut_off, ordinal, about = True, 0, 0, (question.purpose, question.subject)
        while True:
            paid = self._find_or_pay(question, request, ordinal)
            usd = None if usd is None or paid.usd is None else usd + paid.usd
            cost = None if cost is None or paid.cost is None else cost + paid.cost
            stored = stored and paid.stored
            seconds += paid.seconds
            try:
                return Answer(reader(paid.reply), paid.reply, usd, stored, cost, seconds)
            except UnfitReply as fault:
                ordinal += 1
                if fault.cut_off and _only_thought(paid.reply) and request.max_tokens < LONGEST_REPLY:
                    log.info("%s of %s: the model thought up to its limit, asking again with more room", *about)
                    request = replace(request, max_tokens=min(4 * request.max_tokens, LONGEST_REPLY))
                    continue
                cut_off += fault.cut_off
                if cut_off > 1 or ordinal > self.repeats:
                    raise _final_error(question, request, fault, ordinal) from None
                fault_words = "was cut off" if fault.cut_off else "was a refusal" if fault.refused else "did not fit"
                log.info("%s of %s: the reply %s, asking again", *about, fault_words)
                request = replace(request, messages=(*question.messages, *_correction(paid.reply, fault)))

    def _find_or_pay(self, question: Question, request: Request, ordinal: int) -> _PaidReply:
        """The stored reply to the request, or a new one, stored before it is given.

        Special tokens that the prompt showed broken are whole again in what the model says of them.
        """
        route = self._route(question.purpose)
        body = serialised(request, route.model.name)
        key = _key(question, body, ordinal)
        with self._alone(key):
            stored = self.ledger.find(key)
            paid = (
                _PaidReply(stored.reply, 0.0, True, stored.usd, stored.seconds)
                if stored is not None
                else self._pay(question, request, key, body)
            )
        # The ledger has the reply as it came. Who sends a body of its own did not break the special tokens in it.
        shown = question.messages if request.body is None else ()
        reply = with_whole_tokens(with_finish(paid.reply, request), shown)
        return replace(paid, reply=reply)

    def _pay(self, question: Question, request: Request, key: CallKey, body: bytes) -> _PaidReply:
        route = self._route(question.purpose)
        size = most_bytes(request, route.model.name, body)
        most_usd = route.price.most(size, request.max_tokens) if route.price else None
        priced_by = route.price.source if route.price else None
        prompt = ("", "") if question.prompt is None else (question.prompt.name, question.prompt.hash)
        note = CallNote(*prompt, route.model.name, priced_by)
        asked = (question.purpose, question.subject, question.sample, question.attempt)
        tokens = question.prompt_tokens or -(-len(body) // _BYTES_PER_TOKEN)
        context = question.context_tokens or route.context_tokens
        began = monotonic()
        for tries in range(1, self.repeats + 2):
            with self._reserved(key, note, most_usd) as call:
                try:
                    with sending() as sent, waiting_for(f"{note.model} ({question.purpose})"):
                        reply = _whole(route.model.complete(request))
                except LlmError as failure:
                    error = self._guesses.named(failure, asked, tokens, request.max_tokens, context)
                    (self.ledger.lose if error.billed else self.ledger.release)(call, f"{error.name}: {error}")
                    if error is not failure:
                        raise error from failure
                    if not error.billed or tries > self.repeats:
                        raise
                    log.warning("%s of %s: a reply was lost, asking again: %s", key.purpose, key.subject, error.name)
                except BaseException as ending:
                    if not sent.sent:
                        with suppress(StoreError):  # what ended the call is to be told
                            self.ledger.release(call, f"{type(ending).__name__}, before it was sent")
                    raise
                else:
                    usd = route.price.of(reply.usage) if route.price else None
                    self.ledger.settle(call, reply, usd)
                    self._guesses.answered(asked)
                    paid = most_usd if usd is None else usd
                    seconds = monotonic() - began
                    log.debug("%s of %s: answered by %s after %.1f s", key.purpose, key.subject, note.model, seconds)
                    return _PaidReply(reply, paid, False, paid, seconds)
            self.pause(tries)
        raise AssertionError("the last try returns or raises")

    @contextmanager
    def _alone(self, key: CallKey) -> Iterator[None]:
        """Wait until no other thread asks this; its reply is stored then."""
        with self._answered:
            self._answered.wait_for(lambda: key not in self._asking)
            self._asking.add(key)
        try:
            yield
        finally:
            with self._answered:
                self._asking.remove(key)
                self._answered.notify_all()

    @contextmanager
    def _reserved(self, key: CallKey, note: CallNote, most_usd: float | None) -> Iterator[int]:
        """A reserved call. Where the budget is short, wait for the calls in flight, which mostly cost less."""
        while True:
            with self._freed:
                try:
                    call = self.ledger.reserve(key, note, most_usd, self.budget_usd)
                    self._in_flight += 1
                    break
                except BudgetExceeded:
                    if not self._in_flight:
                        raise
                    log.debug("%s of %s: waiting for the budget of calls under way", key.purpose, key.subject)
                    self._freed.wait(timeout=1)
        try:
            yield call
        finally:
            with self._freed:
                self._in_flight -= 1
                self._freed.notify_all()


def _first(asked: float | None, default: float | None) -> float | None:
    """A sampling setting of a question, else of its purpose; None leaves it to the endpoint."""
    return default if asked is None else asked


def _unpriced(model: str, purpose: str, limit: str) -> SettingsError:
    return SettingsError(
        f"{limit} needs the price of {model}; no table has it for this endpoint, so set llm_price_input and "
        f"llm_price_output, or price_input and price_output in [purposes.{purpose}]"
    )


def _key(question: Question, body: bytes, ordinal: int) -> CallKey:
    return CallKey(
        question.purpose,
        question.subject,
        question.sample,
        question.attempt,
        ordinal,
        hashlib.sha256(body).hexdigest(),
    )


def _whole(reply: Reply) -> Reply:
    """The reply. Raises `EndpointUnreachable`, perhaps paid for, where its finish says that it broke off."""
    if broke_off(reply.finish):
        raise EndpointUnreachable(f"a reply of {reply.model} broke off (finish is {reply.finish!r})", billed=True)
    return reply


def _only_thought(reply: Reply) -> bool:
    """Whether a reply ended before its text began: what there was room for is reasoning, shown or not."""
    return not reply.text.strip() and not reply.tool_calls and (bool(reply.reasoning) or bool(reply.usage.tokens_out))


def _correction(reply: Reply, fault: UnfitReply) -> tuple[Message, Message]:
    """What follows the question when it is asked again. Roles keep alternating, as some chat templates demand."""
    reply_text = reply.text.strip() or reply.refusal or "(no text)"
    echo, complaint = map(without_special_tokens, (reply_text[:_LONGEST_ECHO], fault.words))
    return Message("assistant", echo), Message("user", complaint)


def _final_error(question: Question, request: Request, fault: UnfitReply, tries: int) -> BadReply:
    about = f"{question.purpose} of {question.subject}"
    if fault.cut_off:
        return BadReply(f"{about}: the reply was cut off; max_tokens, {request.max_tokens}, is too small for it")
    if fault.refused:
        return ModelRefused(f"{about}: the model refused, asked {tries} times")
    return BadReply(f"{about}: no usable reply, asked {tries} times; the last fault: {fault.words}")
