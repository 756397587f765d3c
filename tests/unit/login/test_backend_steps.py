"""Requests to the application begin a few at a time, in their order."""

import asyncio
from itertools import pairwise

from holdfast.login.backend.steps import Steps


async def test_many_begin_in_steps_and_in_their_order() -> None:
    steps, begun = Steps(), list[int]()

    async def begin(number: int) -> None:
        await steps.next()
        begun.append(number)

    tasks = [asyncio.create_task(begin(number)) for number in range(64)]
    sizes = [0]
    while len(begun) < 64:
        await asyncio.sleep(0)
        sizes.append(len(begun))
    await asyncio.gather(*tasks)
    assert begun == [*range(64)]
    assert max(after - before for before, after in pairwise(sizes)) <= 4


async def test_who_is_cancelled_takes_no_turn() -> None:
    steps = Steps()
    for _ in range(4):
        await steps.next()
    given_up = [asyncio.create_task(steps.next()) for _ in range(100)]
    await asyncio.sleep(0)
    for each in given_up:
        each.cancel()
    async with asyncio.timeout(60):
        await steps.next()
    assert all(each.cancelled() for each in given_up)
