"""A server that leaves begins what it has read, so that other processes need not wait for it."""

from typing import Any

import pytest

from holdfast.web.doors.leaving import Leaving
from tests.web.requests import PUBLISH, chunked, encode, post
from tests.web.rig import Rig

LIMIT_S = 60.0
# More than begin in a few turns.
MANY = 100
BODY = encode(PUBLISH)


@pytest.mark.parametrize("request_", [post(BODY, path="/publish"), chunked(BODY, 20)])
async def test_everything_that_was_read_has_begun(
    monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    async with Rig(is_turn_over=lambda: True) as rig:
        begun, handle = list[object](), rig.scheduler.handle

        def note(*given: Any) -> Any:
            begun.append(given)
            return handle(*given)

        monkeypatch.setattr(rig.scheduler, "handle", note)
        leaving = Leaving(rig.endpoint, rig.sockets, {})
        for _ in range(MANY):
            rig.connect().send_now(request_)
        await leaving.begin_all(LIMIT_S)
        count = len(begun)
        assert count >= MANY
        await rig.connect().settle(10 * MANY)
        assert len(begun) == count
