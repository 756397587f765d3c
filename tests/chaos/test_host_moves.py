"""Shards that move to another host while what moves them dies: sessions with names go on.

-s shows how long the named sessions waited. --every-step dies at every step, in every way; -k
primary_dies in one of them.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.chaos.host_moves import ALL, SOME, BrokenMoves, Halt, KillPrimary
from tests.chaos.hosts import three_hosts
from tests.chaos.test_hosts import scene_of
from tests.store.servers import ValkeyServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if metafunc.config.getoption("--every-step"):
        plays = {then.name.lower(): halts for then, halts in ALL.items()}
    else:
        plays = {"some": SOME}
    metafunc.parametrize("halts", plays.values(), ids=plays)


async def test_a_move_that_fails_at_a_step_costs_no_session_with_a_name(
    halts: Sequence[Halt], tmp_path: Path
) -> None:
    async with (
        three_hosts(tmp_path, max_sessions_per_browser=-1) as (hosts, ways),
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
