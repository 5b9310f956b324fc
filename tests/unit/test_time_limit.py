"""A time limit ends only the step that takes too long, and lets every other cancellation pass."""

import asyncio

import pytest

from evaluator_host.engine.system.time_limit import TimeLimit

LONG_S = 3600.0
SOON_S = 0.01


async def test_a_step_ends_at_its_limit_and_the_task_goes_on() -> None:
    limit = TimeLimit()
    for _ in range(3):
        with limit.within(SOON_S):
            await asyncio.sleep(LONG_S)
        assert limit.expired
    with limit.within(LONG_S):
        await asyncio.sleep(0)
    assert not limit.expired


async def test_a_short_limit_after_a_long_one_ends_its_step() -> None:
    limit = TimeLimit()
    with limit.within(LONG_S):
        await asyncio.sleep(0)
    with limit.within(SOON_S):
        await asyncio.sleep(LONG_S)
    assert limit.expired


async def test_the_timer_of_an_earlier_step_does_not_end_a_later_one() -> None:
    limit = TimeLimit()
    with limit.within(SOON_S):
        pass
    with limit.within(LONG_S):
        await asyncio.sleep(3 * SOON_S)
    assert not limit.expired
    with limit.within(SOON_S):
        pass
    await asyncio.sleep(3 * SOON_S)  # the time limit passes while no step is under way


async def test_a_step_that_pauses_has_no_limit_until_it_goes_on() -> None:
    limit = TimeLimit()
    with limit.within(SOON_S):
        left_s = limit.pause()
        await asyncio.sleep(3 * SOON_S)
        assert not limit.expired
        limit.go_on(left_s)
        await asyncio.sleep(LONG_S)
    assert limit.expired


async def test_a_cancellation_from_outside_ends_the_task() -> None:
    limit = TimeLimit()

    async def step() -> None:
        with limit.within(LONG_S):
            await asyncio.sleep(LONG_S)

    task = asyncio.create_task(step())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not limit.expired


async def test_a_cancellation_from_outside_at_the_limit_ends_the_task() -> None:
    limit = TimeLimit()

    async def step() -> None:
        with limit.within(SOON_S):
            try:
                await asyncio.sleep(LONG_S)
            finally:
                task.cancel()

    task = asyncio.create_task(step())
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_in_a_step_is_raised() -> None:
    limit = TimeLimit()
    with pytest.raises(ZeroDivisionError), limit.within(LONG_S):
        raise ZeroDivisionError
