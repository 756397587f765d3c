"""Random faults: the same seed makes the same schedule."""

import asyncio
import math
import signal
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import cycle
from random import Random

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError

from tests.chaos.history import HistoryWriter, What
from tests.chaos.paired import Paired
from tests.chaos.processes import Processes
from tests.chaos.proxy import Proxy, Way
from tests.chaos.steps import OF_FORMER, OF_SUCCESSOR
from tests.chaos.supervised import Supervised

RETURNS_S = 60.0
_LOOK_S = 0.05
_LAST_MOMENT_S = 0.3
_DUMP = """
local found = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
    found[#found + 1] = key
    found[#found + 1] = redis.call('DUMP', key)
end
return found
"""
_RESTORE = """
redis.call('FLUSHALL')
for at = 1, #ARGV, 2 do
    redis.call('RESTORE', ARGV[at], 0, ARGV[at + 1])
end
"""

Deed = Callable[[], object]


class Target(Enum):
    """The target of a fault; two faults at one time have different ones."""

    STORE = "store"
    SERVER = "server"
    NETWORK = "network"


class Kind(Enum):
    """Faults by the names that histories have."""

    KILL_STORE = "kill store"
    PAUSE_STORE = "pause store"
    CUT_STORE = "cut store"
    FORGET_SCRIPTS = "forget scripts of store"
    TAKE_STORE_BACK = "take store back"
    KILL_SERVER = "kill server"
    PAUSE_SERVER = "pause server"
    RESTART_SERVER = "restart server"
    LOSE_POWER = "lose power"
    RESET = "reset connections"
    REFUSE = "refuse connections"
    EAT_RESPONSES = "eat responses"
    EAT_EVENTS = "eat events"
    BLACK_HOLE = "black hole"
    DEAF_SERVER = "nothing reaches the server"
    DEAF_CLIENTS = "nothing reaches the clients"
    LATENCY = "latency"
    THROTTLE = "throttle"
    # Only for servers below a supervisor. The second kills the successor before it serves, the
    # third the server that leaves; each at another step every time.
    HAND_OVER = "hand over"
    FAIL_HAND_OVER = "hand over to a server that dies"
    DIE_IN_HAND_OVER = "kill server that hands over"
    # Only for a store that has a replica. The second and the fourth kill the server, too, so that
    # nobody knows what the replica lacks.
    PROMOTE = "promote replica of dead primary"
    PROMOTE_AND_KILL = "promote replica of dead primary, kill server"
    REPLACE_FROZEN = "promote replica of frozen primary"
    REPLACE_FROZEN_AND_KILL = "promote replica of frozen primary, kill server"

    @property
    def target(self) -> Target:
        return _TARGETS.get(self, Target.NETWORK)


_TARGETS = {
    Kind.KILL_STORE: Target.STORE,
    Kind.PAUSE_STORE: Target.STORE,
    Kind.CUT_STORE: Target.STORE,
    Kind.FORGET_SCRIPTS: Target.STORE,
    Kind.TAKE_STORE_BACK: Target.STORE,
    Kind.PROMOTE: Target.STORE,
    Kind.PROMOTE_AND_KILL: Target.STORE,
    Kind.REPLACE_FROZEN: Target.STORE,
    Kind.REPLACE_FROZEN_AND_KILL: Target.STORE,
    Kind.KILL_SERVER: Target.SERVER,
    Kind.PAUSE_SERVER: Target.SERVER,
    Kind.RESTART_SERVER: Target.SERVER,
    Kind.LOSE_POWER: Target.SERVER,
    Kind.HAND_OVER: Target.SERVER,
    Kind.FAIL_HAND_OVER: Target.SERVER,
    Kind.DIE_IN_HAND_OVER: Target.SERVER,
}
HAND_OVERS = (Kind.HAND_OVER, Kind.FAIL_HAND_OVER, Kind.DIE_IN_HAND_OVER)
NETWORK = tuple(kind for kind in Kind if kind.target is Target.NETWORK)
SERVER = tuple(kind for kind in Kind if kind.target is Target.SERVER and kind not in HAND_OVERS)
# With the server, which knows what a replica lacks, dies what it lacks.
FORGETTING = (Kind.PROMOTE_AND_KILL, Kind.REPLACE_FROZEN_AND_KILL)
PROMOTIONS = (Kind.PROMOTE, Kind.REPLACE_FROZEN, *FORGETTING)


@dataclass(frozen=True, slots=True)
class Step:
    """Faults that begin together, after a pause, and end together."""

    pause_s: float
    kinds: tuple[Kind, ...]
    lasts_s: float


def schedule(seed: int, seconds: float, kinds: Sequence[Kind]) -> list[Step]:
    """Steps for about so many seconds; now and then two or three faults happen at once."""
    random = Random(seed)
    steps: list[Step] = []
    left_s = seconds
    while left_s > 0:
        step = Step(random.uniform(0.2, 1.5), _together(random, kinds), random.uniform(0.1, 2.0))
        left_s -= step.pause_s + step.lasts_s
        steps.append(step)
    return steps


def _together(random: Random, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    count = random.choice((1, 1, 1, 2, 2, 3))
    by_target: dict[Target, Kind] = {}
    for kind in random.sample(list(kinds), min(count, len(kinds))):
        by_target.setdefault(kind.target, kind)
    return tuple(by_target.values())


class Nemesis:
    """Makes faults happen, and undoes them."""

    def __init__(self, processes: Processes, proxy: Proxy, history: HistoryWriter) -> None:
        self._processes = processes
        self._proxy = proxy
        self._history = history
        # At which steps the next hand-overs are interrupted.
        self._of_successor = cycle(each for each in OF_SUCCESSOR if each != "ready")
        self._of_former = cycle(OF_FORMER)
        # The keys and values of the store at the beginning of a fault.
        self._past: list[bytes] = []
        self._begins: dict[Kind, Deed] = {
            Kind.KILL_STORE: lambda: processes.signal_store(signal.SIGKILL),
            Kind.PAUSE_STORE: lambda: processes.signal_store(signal.SIGSTOP),
            Kind.CUT_STORE: lambda: self._tell_store("CLIENT", "KILL", "TYPE", "normal"),
            Kind.FORGET_SCRIPTS: lambda: self._tell_store("SCRIPT", "FLUSH"),
            Kind.TAKE_STORE_BACK: self._remember_store,
            Kind.PROMOTE: lambda: self._paired.cut_replica_off(),
            Kind.PROMOTE_AND_KILL: lambda: self._paired.cut_replica_off(),
            Kind.REPLACE_FROZEN: lambda: self._paired.promote_beside_frozen(),
            Kind.REPLACE_FROZEN_AND_KILL: lambda: self._paired.promote_beside_frozen(),
            Kind.KILL_SERVER: processes.kill,
            Kind.PAUSE_SERVER: processes.freeze,
            Kind.RESTART_SERVER: processes.stop,
            Kind.LOSE_POWER: self._lose_power,
            Kind.HAND_OVER: self._hand_over,
            Kind.FAIL_HAND_OVER: lambda: self._hand_over(next(self._of_successor)),
            Kind.DIE_IN_HAND_OVER: lambda: self._hand_over(next(self._of_former)),
            Kind.RESET: proxy.reset,
            Kind.REFUSE: proxy.refuse,
            Kind.EAT_RESPONSES: lambda: proxy.eat_responses(3),
            Kind.EAT_EVENTS: proxy.eat_events,
            Kind.BLACK_HOLE: proxy.black_hole,
            Kind.DEAF_SERVER: lambda: proxy.one_way(Way.UP),
            Kind.DEAF_CLIENTS: lambda: proxy.one_way(Way.DOWN),
            Kind.LATENCY: lambda: setattr(proxy, "latency_s", 0.1),
            Kind.THROTTLE: lambda: setattr(proxy, "bytes_per_s", 20_000.0),
        }
        self._ends: dict[Kind, Deed] = {
            # The server recovers by itself.
            **dict.fromkeys((Kind.KILL_STORE, Kind.CUT_STORE, Kind.FORGET_SCRIPTS), _nothing),
            **dict.fromkeys(HAND_OVERS, _nothing),
            Kind.PAUSE_STORE: lambda: processes.signal_store(signal.SIGCONT),
            # The store loses what it was told meanwhile, as a replica that takes over too early.
            Kind.TAKE_STORE_BACK: self._take_store_back,
            Kind.PROMOTE: lambda: self._paired.promote(),
            Kind.PROMOTE_AND_KILL: self._promote_and_kill,
            Kind.REPLACE_FROZEN: self._thaw_replaced,
            Kind.REPLACE_FROZEN_AND_KILL: self._thaw_replaced_and_kill,
            Kind.KILL_SERVER: self._start,
            Kind.PAUSE_SERVER: processes.thaw,
            Kind.RESTART_SERVER: self._start,
            Kind.LOSE_POWER: self._start,
            **dict.fromkeys(NETWORK, proxy.heal),
        }

    async def run(
        self,
        steps: Sequence[Step],
        *,
        within_s: float = math.inf,
        after_each: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Run one step after the other; none begins after this time, as ending one takes time."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + within_s
        for step in steps:
            await asyncio.sleep(step.pause_s)
            if loop.time() > deadline_s:
                return
            await self.strike(step.kinds, step.lasts_s)
            if after_each is not None:
                await after_each()

    async def strike(self, kinds: Sequence[Kind], lasts_s: float) -> None:
        """Begin all faults at once, then end them; record the ends when everything works again."""
        begun = [
            self._history.begin("nemesis", What.FAULT, kind=kind.value, **self._allowed(kind))
            for kind in kinds
        ]
        for kind in kinds:
            await _do(self._begins[kind])
        await asyncio.sleep(lasts_s)
        # A server cannot start without its store.
        for target in Target:
            for kind in kinds:
                if kind.target is target:
                    await _do(self._ends[kind])
        if any(kind.target in (Target.SERVER, Target.STORE) for kind in kinds):
            await self._all_works()
        for each in begun:
            each.ok()

    def _allowed(self, kind: Kind) -> dict[str, bool]:
        """What the history says about losses that the durability allows."""
        return {"may_lose": self._paired.may_lack} if kind in FORGETTING else {}

    @property
    def _paired(self) -> Paired:
        assert isinstance(self._processes, Paired)
        return self._processes

    async def _promote_and_kill(self) -> None:
        await self._processes.kill()
        await self._paired.promote()
        await self._start()

    async def _thaw_replaced(self) -> None:
        await self._paired.thaw_former()
        await self._paired.rejoin()

    async def _thaw_replaced_and_kill(self) -> None:
        await self._paired.thaw_former()
        await self._processes.kill()
        await self._paired.rejoin()
        await self._start()

    async def _remember_store(self) -> None:
        async with Redis(unix_socket_path=str(self._processes.store_socket)) as redis:
            self._past = await redis.eval(_DUMP, 0)

    async def _take_store_back(self) -> None:
        async with Redis(unix_socket_path=str(self._processes.store_socket)) as redis:
            await redis.eval(_RESTORE, 0, *self._past)

    async def _tell_store(self, *command: str) -> None:
        socket = self._processes.store_socket
        if socket is None:
            return
        redis = Redis(unix_socket_path=str(socket))
        async with redis, redis.pipeline(transaction=False) as pipe:
            pipe.execute_command(*command)
            try:
                await pipe.execute()
            except RedisConnectionError:
                # The store is gone already.
                return

    async def _hand_over(self, deadly_step: str = "") -> None:
        """Hand over to another server, and kill one of the two at this step."""
        assert isinstance(self._processes, Supervised)
        if deadly_step:
            self._processes.arm(deadly_step)
        await self._processes.restart()

    async def _lose_power(self) -> None:
        """Kill the store and the server, and with them what the store was sent and had not read."""
        self._processes.signal_store(signal.SIGSTOP)
        await asyncio.sleep(_LAST_MOMENT_S)
        self._processes.signal_store(signal.SIGKILL)
        await self._processes.kill()

    async def _start(self) -> None:
        await self._processes.start()
        self._proxy.upstream = self._processes.address

    async def _all_works(self) -> None:
        for _ in range(int(RETURNS_S / _LOOK_S)):
            if await self._processes.is_ready():
                return
            await asyncio.sleep(_LOOK_S)
        raise RuntimeError(f"not ready for {RETURNS_S} s:\n{self._processes.log()}")


def _nothing() -> None:
    """End a fault that the server repairs by itself."""


async def _do(deed: Deed) -> None:
    outcome = deed()
    if isinstance(outcome, Awaitable):
        await outcome
