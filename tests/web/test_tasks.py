"""Tasks that nobody awaits, and waits within limits."""

import asyncio
import time

import pytest

from holdfast.web.tasks import Tasks, cancel, reached, task_of


async def fails() -> None:
    raise ValueError("broken")


async def test_the_failure_of_a_task_that_nobody_awaits_is_reported() -> None:
    failures = list[str]()
    task = task_of(fails(), lambda error: failures.append(str(error)))
    with pytest.raises(ValueError, match="broken"):
        await task
    assert failures == ["broken"]


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_task_that_ends_otherwise_has_not_failed(is_cancelled: bool) -> None:
    failures = list[Exception]()
    task = task_of(asyncio.sleep(60 if is_cancelled else 0), failures.append)
    if is_cancelled:
        await cancel(task)
    await asyncio.wait([task])
    assert not failures


async def test_the_outcome_of_work_that_has_just_ended_is_told_once_even_if_all_is_given_up() -> (
    None
):
    tasks, heard = Tasks(time.monotonic), list[object]()

    def done(outcome: object, _: float) -> None:
        heard.append(outcome)
        # Before the loop tells anybody that the task has ended.
        asyncio.get_running_loop().call_soon(tasks.give_up)

    tasks(asyncio.sleep(0, "right"), done)
    await asyncio.sleep(0.01)
    await tasks.close()
    assert heard == ["right"]


async def test_a_wait_ends_in_time_although_each_look_comes_late() -> None:
    looks = 0

    def look() -> bool:
        nonlocal looks
        looks += 1
        time.sleep(0.02)
        return False

    assert not await reached(0.1, look)
    assert looks <= 6


async def test_what_holds_already_needs_no_time() -> None:
    assert await reached(0.0, lambda: True)
