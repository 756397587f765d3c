"""What answers operators is made for the first request, once."""

import asyncio
from collections.abc import Sequence

import pytest

from holdfast.web.admin.handlers import Handler, handlers
from holdfast.web.admin.routing import Once
from tests.web.fake_operations import FakeOperations


class Making:
    """Makes the handlers in several turns, and fails as often as it is told."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.count = 0

    async def __call__(self) -> Sequence[Handler]:
        self.count += 1
        await asyncio.sleep(0)
        if self.count <= self.failures:
            raise ImportError("a module has just been replaced")
        return handlers([FakeOperations()])


async def test_requests_that_come_together_have_their_answers_made_once() -> None:
    making = Making()
    once = Once(making)
    first, second = await asyncio.gather(once(), once())
    assert first is second is await once()
    assert making.count == 1


async def test_what_could_not_be_made_is_made_for_the_next_request() -> None:
    making = Making(failures=1)
    once = Once(making)
    with pytest.raises(ImportError):
        await once()
    assert len(await once()) == len(handlers([FakeOperations()]))
    assert making.count == 2
