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
from tests.chaos.receiver import Receiver
from tests.chaos.steps import OF_FORMER
from tests.chaos.supervised import Supervised
from tests.chaos.talker import SocketTalker, Talker

_LOOK_S = 0.02
_REACHED_S = 60.0
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


def add_people(ring: Arena) -> None:
    """Add sessions with and without names, over HTTP and WebSockets, and publishers."""
    ring.add_receiver("joe/1", Manner(refuses_one_in=20))
    ring.add_receiver("ann/1", Manner(is_explicit=True, stumbles_at=40), by=SocketTalker)
    plain = Manner(gives_verdicts=False)
    for name, by in zip(PLAIN, (Talker, SocketTalker), strict=True):
        ring.add_receiver(name, plain, is_named=False, by=by)
    ring.add_publisher("careless", is_careful=False)
    ring.add_publisher("insistent", has_keys=True)


async def restart(ring: Arena, *blows: Blow) -> Outcome:
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
    position = ring.history.path.stat().st_size
    thawing = asyncio.create_task(_thaw_store(servers, blows))
    failed = await servers.restart()
    await thawing
    if any(blow.whom is Whom.SUPERVISOR for blow in blows):
        await servers.ended()
        await servers.start()
        ring.proxy.upstream = servers.address
    for blow in blows:
        # A former server that has handed over may reach its last steps late.
        await _until(partial(servers.is_past, blow.step))
    await _works(ring)
    if fault is not None:
        fault.ok()
    await ring.scan()
    since = read(ring.history.path, behind=position)
    lost = frozenset(each.process for each in since if each.what is What.SESSION_LOST)
    return Outcome(failed, lost)


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
    """Wait until the server that serves from now on has answered everybody.

    Who has lost a session knows it then.
    """
    while not await ring.processes.is_ready():  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_S)
    ready_ns = ring.history.clock.monotonic_ns()
    people = [each for each in ring.receivers if isinstance(each, Receiver)]
    await _until(lambda: all(each.is_there and each.asked_ns > ready_ns for each in people))


async def _until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(_REACHED_S):
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(_LOOK_S)
