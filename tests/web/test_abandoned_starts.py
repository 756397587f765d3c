"""What becomes of a server that still starts when its supervisor ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest

from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.supervised import Supervised
from holdfast.supervisor.control import Channel, channel_pair

_GIVEN = {"names": [], "successor": True, "first": False, "stand_in": False}


@asynccontextmanager
async def successor() -> AsyncIterator[tuple[Supervised, Channel]]:
    ours, theirs = channel_pair()
    with closing(ours), closing(theirs):
        ours.send(**_GIVEN)
        server = Supervised(theirs)
        await server.begin()
        try:
            yield server, ours
        finally:
            server.end()


async def start(server: Supervised) -> None:
    with server.starting():
        # A store that nobody starts again never answers.
        await asyncio.Event().wait()


async def test_a_start_ends_with_the_supervisor_whatever_it_waits_for() -> None:
    async with successor() as (server, supervisor):
        starting = asyncio.create_task(start(server))
        await asyncio.sleep(0)
        supervisor.close()
        ended, _ = await asyncio.wait([starting], timeout=5.0)
        assert ended
        with pytest.raises(CannotStart, match="the supervisor has ended"):
            await starting


async def test_nothing_starts_once_the_supervisor_has_ended() -> None:
    async with successor() as (server, supervisor):
        supervisor.close()
        await server.ended()
        with pytest.raises(CannotStart, match="the supervisor has ended"):
            await asyncio.wait_for(start(server), 60)


async def test_whoever_cancels_a_start_sees_it_cancelled() -> None:
    async with successor() as (server, _):
        starting = asyncio.create_task(start(server))
        await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting


async def test_a_standby_that_waits_is_dismissed_and_not_cancelled() -> None:
    async with successor() as (server, supervisor):

        async def wait() -> None:
            with server.starting():
                await server.dismissed()

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        supervisor.close()
        await asyncio.wait_for(waiting, 60)
