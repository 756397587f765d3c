"""Shards that move to another host while what moves them dies: sessions with names go on.

-s shows how long the named sessions waited. --every-step dies at every step, in every way.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chaos.host_moves import ALL, SOME, BrokenMoves, KillPrimary
from tests.chaos.hosts import three_hosts
from tests.chaos.test_hosts import scene_of
from tests.store.servers import ValkeyServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


async def test_a_move_that_fails_at_a_step_costs_no_session_with_a_name(
    pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    plays = [*ALL.values()] if pytestconfig.getoption("--every-step") else [SOME]
    for number, halts in enumerate(plays):
        home = tmp_path / str(number)
        home.mkdir()
        async with (
            three_hosts(home, max_sessions_per_browser=-1) as (hosts, ways),
            scene_of(hosts, ways) as play,
        ):
            assert hosts.store is not None
            await BrokenMoves(play, killer_of(hosts.store)).play_all(halts)


def killer_of(store: ValkeyServer) -> KillPrimary:
    async def kill(_: int, go_on: Callable[[], None]) -> None:
        store.kill()
        go_on()
        await asyncio.to_thread(store.start)

    return kill
