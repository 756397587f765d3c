"""Hand-overs that a signal interrupts at a step, and what clients see of them."""

import asyncio
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import NamedTuple

from tests.chaos.arena import Arena
from tests.chaos.history import What, read
from tests.chaos.manners import Manner
from tests.chaos.steps import OF_FORMER
from tests.chaos.supervised import Supervised
from tests.chaos.talker import SocketTalker, Talker

_LOOK_S = 0.02
# Long enough for each client to ask something of the server.
_BETWEEN_S = 0.3
_REACHED_S = 30.0
_FROZEN_S = 1.0
PLAIN = ("plain", "fast")


class Whom(Enum):
    """Who gets the signal at the step."""

    ITSELF = "itself"
    SUPERVISOR = "supervisor"
    STORE = "store"


class Blow(NamedTuple):
    """A signal at a step of a hand-over."""

    step: str
    whom: Whom = Whom.ITSELF
    number: signal.Signals = signal.SIGKILL


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a restart brought."""

    # Why it failed; empty if the successor serves.
    failed: str
    # The sessions without a name that ended with it.
    lost: frozenset[str]
    # The longest time in which a client had no answer.
    silent_s: float


def add_people(ring: Arena) -> None:
    """Add sessions with and without names, over HTTP and WebSockets, and publishers."""
    ring.add_receiver("joe/1", Manner(refuses_one_in=20))
    ring.add_receiver("ann/1", Manner(is_explicit=True, stumbles_at=40), by=SocketTalker)
    plain = Manner(gives_verdicts=False)
    for name, by in zip(PLAIN, (Talker, SocketTalker), strict=True):
        ring.add_receiver(name, plain, is_named=False, by=by)
    ring.add_publisher("careless", is_careful=False)
    ring.add_publisher("insistent", has_keys=True)


async def restart(ring: Arena, *blows: Blow, timeout_s: float = 60.0) -> Outcome:
    """Restart once, with these blows; returns when everybody is served again."""
    servers = ring.processes
    assert isinstance(servers, Supervised)
    deadly = _fault_of(blows)
    fault = ring.history.begin("nemesis", What.FAULT, kind=deadly) if deadly else None
    pids = {
        Whom.ITSELF: 0,
        Whom.SUPERVISOR: servers.supervisor_pid,
        Whom.STORE: servers.store_pid() or 0,
    }
    for blow in blows:
        servers.arm(blow.step, blow.number, pids[blow.whom])
    begun_ns = ring.history.clock.monotonic_ns()
    thawing = asyncio.create_task(_thaw_store(servers, blows))
    failed = await servers.restart(timeout=timeout_s)
    await thawing
    if any(blow.whom is Whom.SUPERVISOR for blow in blows):
        await servers.ended()
        await servers.start()
        ring.proxy.upstream = servers.address
    await _works(ring)
    await asyncio.sleep(_BETWEEN_S)
    if fault is not None:
        fault.ok()
    await ring.scan()
    return Outcome(failed, _lost_since(ring, begun_ns), _silence_since(ring, begun_ns))


def _fault_of(blows: Sequence[Blow]) -> str:
    """The name of the fault in histories, if it may excuse anything."""
    if any(blow.whom is Whom.STORE for blow in blows):
        frozen = all(blow.number is signal.SIGSTOP for blow in blows)
        return "pause store" if frozen else "kill store"
    # Nothing is excused by the death of a server that has not served.
    is_of_serving = any(
        blow.whom is Whom.SUPERVISOR or blow.step in OF_FORMER or blow.step == "ready"
        for blow in blows
    )
    return "kill server" if is_of_serving else ""


async def _thaw_store(servers: Supervised, blows: Sequence[Blow]) -> None:
    for blow in blows:
        if blow.whom is Whom.STORE and blow.number is signal.SIGSTOP:
            await _until(partial(servers.is_past, blow.step))
            await asyncio.sleep(_FROZEN_S)
            servers.signal_store(signal.SIGCONT)


async def _works(ring: Arena) -> None:
    while not await ring.processes.is_ready():  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
    await _until(lambda: all(each.is_there for each in ring.receivers))


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(_REACHED_S):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)


def _lost_since(ring: Arena, begun_ns: int) -> frozenset[str]:
    return frozenset(
        each.process
        for each in read(ring.history.path)
        if each.what is What.SESSION_LOST and each.begun_ns >= begun_ns
    )


def _silence_since(ring: Arena, begun_ns: int) -> float:
    """The longest time between two answers to publishers, each of which has one all the time."""
    answered = [
        each.ended_ns
        for each in read(ring.history.path)
        if each.what is What.PUBLISH and each.is_ok and (each.ended_ns or 0) >= begun_ns
    ]
    times = sorted(each for each in answered if each is not None)
    gaps = [later - earlier for earlier, later in zip([begun_ns, *times], times, strict=False)]
    return max(gaps, default=0) / 1e9
