"""The budget picks the token with the most left, waits exactly as long as told, and never longer than allowed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

import pytest

from miner.github.budget import LONGEST_PAUSE, MAX_STRIKES, SECONDARY_PAUSE, Budget
from miner.source import ApiUsage
from prchain.core.errors import BadToken, RateLimitExceeded


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def budget(time: Time, tokens: Sequence[str] = ("aaaa",), max_wait: float = 4000.0) -> Budget:
    return Budget(tokens, max_wait=max_wait, clock=time, sleep=time.sleep, jitter=lambda: 0.5)


def spend(budget: Budget, resource: str = "graphql", waits: list[str] | None = None) -> str:
    with budget.lease(resource, lambda seconds, reason: (waits if waits is not None else []).append(reason)) as token:
        return token.value


def rate_limit_headers(remaining: int, reset: float, resource: str = "graphql") -> dict[str, str]:
    return {
        "x-ratelimit-remaining": str(remaining),
        "x-ratelimit-reset": str(int(reset)),
        "x-ratelimit-resource": resource,
    }


def test_the_token_with_the_most_left_is_lent() -> None:
    time = Time()
    b = budget(time, ("aaaa", "bbbb"))
    b.observe(b.tokens[0], "graphql", rate_limit_headers(10, time.now + 100))
    b.observe(b.tokens[1], "graphql", rate_limit_headers(4000, time.now + 100))
    assert spend(b) == "bbbb"
    b.observe(b.tokens[1], "graphql", rate_limit_headers(9, time.now + 100))
    assert spend(b) == "aaaa"


def test_headers_count_for_the_resource_they_name() -> None:
    time = Time()
    b = budget(time)
    b.observe(b.tokens[0], "graphql", rate_limit_headers(0, time.now + 100, resource="core"))
    spend(b, "graphql")
    assert time.slept == []
    spend(b, "core")
    assert time.slept == [100.0]


def test_a_spent_token_waits_for_its_reset_only_when_no_other_has_any_left() -> None:
    time = Time()
    b = budget(time, ("aaaa", "bbbb"))
    waits: list[str] = []
    b.exhausted(b.tokens[0], "graphql", time.now + 300)
    assert spend(b, waits=waits) == "bbbb"
    b.exhausted(b.tokens[1], "graphql", time.now + 200)
    assert spend(b, waits=waits) == "bbbb"
    assert time.slept == [200.0]
    assert waits == ["GitHub's rate limit is spent", ""]


def test_a_reset_that_lies_in_the_past_still_waits() -> None:
    time = Time()
    b = budget(time)
    b.exhausted(b.tokens[0], "graphql", time.now - 5)
    spend(b)
    assert time.slept == [SECONDARY_PAUSE]


def test_a_wait_longer_than_allowed_is_refused_and_not_slept() -> None:
    time = Time()
    b = budget(time, max_wait=100)
    b.exhausted(b.tokens[0], "graphql", time.now + 101)
    with pytest.raises(RateLimitExceeded) as caught:
        spend(b)
    assert caught.value.seconds == 101
    assert time.slept == []


def test_retry_after_is_honoured_to_the_second() -> None:
    time = Time()
    b = budget(time)
    b.slowed(b.tokens[0], 37)
    spend(b)
    assert time.slept == [37.0]


def test_without_retry_after_the_pauses_double_from_a_minute_and_are_capped() -> None:
    time = Time()
    b = budget(time)
    for strike in range(MAX_STRIKES):
        b.slowed(b.tokens[0], None)
        spend(b)
        assert time.slept[strike] == pytest.approx(min(60 * 2**strike, LONGEST_PAUSE) * 1.05)
    with pytest.raises(RateLimitExceeded):
        b.slowed(b.tokens[0], None)


def test_an_answer_ends_the_row_of_strikes() -> None:
    time = Time()
    b = budget(time)
    for _ in range(3 * MAX_STRIKES):
        b.slowed(b.tokens[0], None)
        spend(b)
        b.succeeded(b.tokens[0])
    assert max(time.slept) == pytest.approx(63)


def test_a_refused_token_is_left_out_with_a_warning_that_does_not_name_it(caplog: pytest.LogCaptureFixture) -> None:
    b = budget(Time(), ("ghp_secret_value", "bbbb"))
    with caplog.at_level(logging.WARNING):
        b.drop(b.tokens[0])
    assert spend(b) == "bbbb"
    assert "token 1 of 2" in caplog.text
    assert "ghp_secret_value" not in caplog.text + repr(b.tokens)
    with pytest.raises(BadToken):
        b.drop(b.tokens[1])


@pytest.mark.parametrize(("tokens", "said"), [(["aaaa"], "refused the token"), (["aaaa", "bbbb"], "all 2 tokens")])
def test_who_asks_after_the_last_token_was_refused_is_told_that_it_was(tokens: list[str], said: str) -> None:
    b = budget(Time(), tokens)
    for token in b.tokens[:-1]:
        b.drop(token)
    with pytest.raises(BadToken) as first:
        b.drop(b.tokens[-1])
    with pytest.raises(BadToken) as second:
        spend(b)
    assert str(second.value) == str(first.value)
    assert said in str(first.value) and "(401)" in str(first.value)


def test_one_token_has_one_request_at_a_time() -> None:
    b = budget(Time())
    under_way, most = 0, 0
    guard = threading.Lock()

    def work() -> None:
        nonlocal under_way, most
        for _ in range(50):
            with b.lease("graphql", lambda seconds, reason: None):
                with guard:
                    under_way += 1
                    most = max(most, under_way)
                with guard:
                    under_way -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert most == 1


def test_usages_add_up() -> None:
    total = ApiUsage(1, 2, 3, 4.5)
    total.add(ApiUsage(10, 20, 30, 0.5))
    assert total == ApiUsage(11, 22, 33, 5.0)
