"""What has lasted too long is ended a few at a time."""

import asyncio
import logging
from functools import partial

import pytest

from holdfast.web.scheduling.endings import Endings

MANY = 100


async def turns_of(ended: list[int], count: int) -> list[int]:
    """How many had ended after each turn of the event loop, until all have."""
    told = [len(ended)]
    while told[-1] < count:
        await asyncio.sleep(0)
        if len(ended) > told[-1]:
            told.append(len(ended))
    return told


async def test_what_is_due_together_is_ended_in_order_over_several_turns() -> None:
    endings, ended = Endings(), list[int]()
    for number in range(MANY):
        endings.add(partial(ended.append, number))
    told = await turns_of(ended, MANY)
    assert len(told) > 5
    assert ended == [*range(MANY)]


async def test_a_few_end_at_once_and_the_others_in_order_over_several_turns() -> None:
    endings, ended = Endings(), list[int]()
    for number in range(MANY):
        endings.end(partial(ended.append, number))
    assert 0 < len(ended) < MANY / 5
    await turns_of(ended, MANY)
    assert ended == [*range(MANY)]
    await asyncio.sleep(0)
    endings.end(partial(ended.append, MANY))
    assert ended[-1] == MANY


async def test_others_have_a_turn_between_two_slices() -> None:
    endings, ended, seen = Endings(), list[int](), list[int]()

    def look() -> None:
        seen.append(len(ended))
        if len(ended) < MANY:
            asyncio.get_running_loop().call_soon(look)

    for number in range(MANY):
        endings.add(partial(ended.append, number))
    look()
    await turns_of(ended, MANY)
    assert len(set(seen)) > 5


async def test_what_cannot_be_ended_is_logged_and_the_others_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    endings, ended = Endings(), list[int]()
    endings.add(lambda: 1 / 0)
    endings.add(lambda: ended.append(1))
    await turns_of(ended, 1)
    assert [record.levelno for record in caplog.records] == [logging.ERROR]


async def test_blocks_that_time_out_together_do_so_over_several_turns() -> None:
    endings, ended = Endings(), list[int]()
    due = asyncio.get_running_loop().time()

    async def wait(number: int) -> None:
        with pytest.raises(TimeoutError):
            async with endings.timeout_at(due):
                await asyncio.Event().wait()
        ended.append(number)

    async with asyncio.TaskGroup() as tasks:
        for number in range(MANY):
            tasks.create_task(wait(number))
        assert len(await turns_of(ended, MANY)) > 5


async def test_a_block_that_ends_in_time_is_not_interrupted() -> None:
    endings = Endings()
    async with endings.timeout_at(asyncio.get_running_loop().time()):
        # It is due, but not ended yet.
        await asyncio.sleep(0)
    await asyncio.sleep(0)
