"""Tasks that nobody awaits."""

import asyncio

import pytest

from holdfast.web.tasks import cancel, task_of


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
