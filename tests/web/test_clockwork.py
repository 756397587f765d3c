"""Turns end whenever somebody is to be told something, also what was said before the clock ran."""

import asyncio
from unittest.mock import Mock

from app.web.clockwork import Clockwork


async def test_what_was_said_before_the_start_is_told_when_it_starts() -> None:
    server = Mock()
    clockwork = Clockwork(Mock())
    clockwork.end_turn_soon()
    await asyncio.sleep(0)
    clockwork.start(server)
    await asyncio.sleep(0)
    assert server.flush.call_count == 1
    clockwork.stop()
