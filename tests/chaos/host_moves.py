"""Planned moves of shards between hosts, which halt at a step; then something of them dies."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.chaos.hosts import Host, Hosts, until
from tests.chaos.steps import OF_GIVER, OF_TAKER

# Longer than a shard is offered, and than a lease lasts.
_FROZEN_S = 8.0
_LOOK_S = 0.02
# So many that each worker of a host has some, or one gets them from the others.
_GUESTS = 6


class Play(Protocol):
    """The hosts, and whoever notices what happens to them."""

    hosts: Hosts

    async def goes_on(self, what: str, /) -> object:
        """Wait until all sessions go on."""
        ...


class Then(Enum):
    """What happens while the process that gives or takes the shard is halted."""

    WORKER_DIES = "its process is killed"
    PRIMARY_DIES = "the primary is killed"
    CLAIMER_DIES = "the claimer of its host is killed"
    HOST_DIES = "its host is killed"
    FREEZES = "its process stays frozen for 8 s"
    # It must not end a drain that goes on.
    CHANGES_MIND = "the drain is ended"


class Halt(NamedTuple):
    """A step of a move, and what happens there."""

    step: str
    then: Then

    def __str__(self) -> str:
        side = "giver" if self.step in OF_GIVER else "taker"
        return f"{side}, {self.step}: {self.then.value}"


# Kills the primary that has this shard, lets the move go on, and repairs the store.
KillPrimary = Callable[[int, Callable[[], None]], Awaitable[None]]
ALL = {then: [Halt(step, then) for step in (*OF_GIVER, *OF_TAKER)] for then in Then}
# One of each kind, at the steps where most is at stake.
SOME = [
    Halt("given complete", Then.WORKER_DIES),
    Halt("offered", Then.HOST_DIES),
    Halt("loaded", Then.WORKER_DIES),
]


class BrokenMoves:
    """Has shards moved, and what moves them fail."""

    def __init__(self, play: Play, kill_primary: KillPrimary) -> None:
        self._play, self._kill_primary = play, kill_primary

    async def play_all(self, halts: Sequence[Halt]) -> None:
        for each in halts:
            await self.play(each)

    async def play(self, halt: Halt) -> None:
        """Drain the host with the most shards, until the move reaches the step."""
        hosts = self._play.hosts
        giver = max(hosts.all, key=lambda each: len(each.shards))
        async with _guests(giver):
            await self._play_at(giver, halt)

    async def _play_at(self, giver: Host, halt: Halt) -> None:
        hosts = self._play.hosts
        others = [each for each in hosts.all if each is not giver]
        step = halt.step
        watched = [giver] if step in OF_GIVER else others
        for each in watched:
            each.arm(step, signal.SIGSTOP)
        await hosts.drain(giver)
        host, pid = await reached(watched, step)
        for each in watched:
            each.disarm(step)
        await self._do(halt.then, host, pid, giver)
        await self._play.goes_on(str(halt))
        if not host.is_running:
            host.begin()
        await hosts.uncordon(giver)
        await until(hosts.have_all_shards)

    async def _do(self, then: Then, host: Host, pid: int, giver: Host) -> None:
        match then:
            case Then.WORKER_DIES:
                os.kill(pid, signal.SIGKILL)
            case Then.CLAIMER_DIES:
                os.kill(host.claimer, signal.SIGKILL)
                _go_on(pid)
            case Then.HOST_DIES:
                await host.kill_all()
            case Then.PRIMARY_DIES:
                shard = next(each for each, worker in host.shards.items() if worker == pid)
                await self._kill_primary(shard, lambda: _go_on(pid))
            case Then.FREEZES:
                await asyncio.sleep(_FROZEN_S)
                _go_on(pid)
            case Then.CHANGES_MIND:
                await self._play.hosts.uncordon(giver)
                _go_on(pid)


def _go_on(pid: int) -> None:
    # Its supervisor may have killed what did not run.
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGCONT)


@asynccontextmanager
async def _guests(host: Host) -> AsyncIterator[None]:
    """Keep connections to a host, which it has to give to another process."""
    address = host.address.host, host.address.port
    made = [await asyncio.open_connection(*address) for _ in range(_GUESTS)]
    try:
        for _, writer in made:
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        yield
    finally:
        for _, writer in made:
            writer.close()


async def reached(hosts: Sequence[Host], step: str) -> tuple[Host, int]:
    """Return the first process that stands at the step, and its host."""
    found: list[tuple[Host, int]] = []

    def is_reached() -> bool:
        pids = [(each, each.taken_by(step)) for each in hosts]
        found[:] = [(each, pid) for each, pid in pids if pid is not None and _is_stopped(pid)]
        return bool(found)

    await until(is_reached)
    return found[0]


def _is_stopped(pid: int) -> bool:
    with suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] == "T"
    return False
