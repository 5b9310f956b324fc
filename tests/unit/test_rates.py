"""A key may make requests only up to its rate."""

import pytest

from evaluator_host.platform.http.auth.access import Rate, RateLimiter
from evaluator_host.types.errors import RateLimited


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def taken(rates: RateLimiter, key: str | None, times: int, rate: Rate) -> int:
    """Make requests, and return how many were accepted."""
    count = 0
    for _ in range(times):
        try:
            rates.count_request(key, rate)
        except RateLimited:
            continue
        count += 1
    return count


def test_a_burst_is_let_in_and_then_a_steady_rate() -> None:
    clock = Clock()
    rates, rate = RateLimiter(clock), Rate(10.0, 5)
    assert taken(rates, "a", 20, rate) == 5
    clock.now += 1
    assert taken(rates, "a", 20, rate) == 5, "after a pause, there may be at most one burst"
    clock.now += 0.35
    assert taken(rates, "a", 20, rate) == 3
    assert taken(rates, "b", 20, rate) == 5, "each key must have its own limit"
    assert taken(rates, "c", 20, Rate(1.0, 2)) == 2, "a key may have its own rate"


def test_the_wait_is_told_and_is_enough() -> None:
    clock = Clock()
    rates, rate = RateLimiter(clock), Rate(0.5, 3)
    assert taken(rates, None, 3, rate) == 3
    with pytest.raises(RateLimited) as limited:
        rates.count_request(None, rate)
    assert limited.value.retry_after_s == 2
    assert "may make 3 calls at once, and then 0.5 per second; try again in 2 s" in limited.value.detail
    clock.now += limited.value.retry_after_s
    rates.count_request(None, rate)


def test_without_a_rate_there_is_no_limit() -> None:
    assert taken(RateLimiter(), "a", 1000, Rate(None, 1)) == 1000


def test_full_buckets_are_forgotten_and_a_limited_key_stays_limited() -> None:
    clock = Clock()
    rates, rate = RateLimiter(clock), Rate(1.0, 2)
    for number in range(12_000):
        rates.count_request(f"key-{number}", rate)
    clock.now += 3
    assert taken(rates, "greedy", 5, rate) == 2
    assert len(rates._buckets) < 10
    assert taken(rates, "greedy", 5, rate) == 0
