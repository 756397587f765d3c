"""The first process on a host of several: it has no shard, and says which ones to serve here.

It opens the sockets at which the workers of this host answer, and answers there itself as long as
there are none. It reads the leases of all shards, twice a second.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

from holdfast.compose.agreeing import Agreeing
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.claim_store import ClaimStore
from holdfast.compose.data_directory import claimed
from holdfast.compose.emptied import EMPTIED
from holdfast.compose.host_door import listen_for_hosts, open_host_door
from holdfast.compose.host_tokens import HostTokens
from holdfast.compose.listen_addresses import find_addresses
from holdfast.compose.listening import ListeningSockets, listen, listen_for_commands
from holdfast.compose.placement import NO_SHARD, placed
from holdfast.compose.supervised import LIMITS
from holdfast.delivery.basics.ignoring import ignore
from holdfast.distribution import release
from holdfast.hosts.claims import Claims
from holdfast.hosts.doors import DoorNeed
from holdfast.hosts.rows import HostRow
from holdfast.settings.host_list import HostList
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.opening.lease import LEASE_S, boot_clock
from holdfast.supervisor.control import CONTROL_FILE, LOCK, Do, Say
from holdfast.supervisor.packets import PeerGone
from holdfast.web.host_links.front_desk import FrontDesk
from holdfast.web.http.origins import Origins
from holdfast.web.standby import StandbyDoor

if TYPE_CHECKING:
    from holdfast.compose.listen_addresses import ListenAddresses
    from holdfast.compose.supervised import Supervised
    from holdfast.hosts.moving import Give
    from holdfast.settings import Settings

log = logging.getLogger(__name__)

# How often leases are read, and how often it is looked who may be claimed by now.
_LOOK_S = 0.5
_STEP_S = 0.1
# For how long the supervisor is not asked for the same again: it may be in the midst of a restart.
_ASKED_S = 2.0
# Living hosts change their rows in that time.
_STRANGERS_S = 3.0
# How long clients wait for a process that serves them, before they are told to try elsewhere.
_REFUSING_S = 3.0
_REASON = "host {} has no shard: others may serve"
_OTHER_SERVER = (
    "hosts: the server {}, which has no such setting, has the store: stop it, and those with "
    "--standby, before you start hosts"
)


async def claim_shards(
    settings: "Settings",
    supervisor: "Supervised",
    stopped: asyncio.Event,
    welcome: Callable[[str], None],
) -> None:
    """Claim shards for this host until it is told to stop. Raises `CannotStart`.

    Args:
        welcome: Called with the URL when the first worker serves.
    """
    async with AsyncExitStack() as stack:
        with supervisor.starting():
            claimer = await _begin(settings, supervisor, stack)
        if supervisor.is_first:
            claimer.welcome = welcome
        works = (claimer.run(), claimer.do_as_asked(), stopped.wait())
        tasks = [asyncio.create_task(each) for each in works]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.wait(tasks)
        if not claimer.is_succeeded:
            await claimer.end()


async def _begin(
    settings: "Settings", supervisor: "Supervised", stack: AsyncExitStack
) -> "Claimer":
    addresses = await find_addresses(settings)
    placement = placed(settings, NO_SHARD, settings.shards or 0)
    shared = supervisor.descriptors.get(LOCK)
    control = settings.data / CONTROL_FILE
    directory = await claimed(placement.data, shared, control, stack)
    supervisor.keep(LOCK, directory.lock)
    sockets = listen(addresses, supervisor)
    listen_for_commands(settings.data, supervisor)
    hosts = listen_for_hosts(settings, supervisor)
    supervisor.close_rest()
    supervisor.listening(1, str(placement.links), shards=placement.count)
    store, agreeing = ClaimStore(settings, placement.count), Agreeing(settings)
    stack.callback(store.close)
    if supervisor.is_successor:
        await _refuse_strangers(store, agreeing, placement.host)
        await supervisor.prepared()
    await supervisor.opened()
    # It opens when the supervisor has said that no worker answers there.
    door = _Door(settings, addresses, sockets)
    stack.push_async_callback(door.close)
    host_door = open_host_door(hosts, placement.links, placement.count, stack)
    claims = Claims(
        *(settings.own_host or "", directory.lock_name, HostList.parse(settings.hosts).names),
        shards=placement.count,
        capacity=settings.capacity,
        clock=boot_clock(),
    )
    url = addresses.main.url(sockets.main[0])
    if supervisor.is_first:
        await _refuse_another_kind(store, claims)
    limits = {name: getattr(settings, name) / 1000 for name in LIMITS}
    supervisor.ready(url=url, limits=limits)
    tokens = HostTokens(settings.data, store)
    return Claimer(
        *(supervisor, claims, store, tokens, door, host_door, agreeing, url),
        own=placement.host,
        door=placement.count,
    )


async def _refuse_strangers(store: ClaimStore, agreeing: Agreeing, own: str) -> None:
    """Refuse to follow a process whose shards other living hosts could not reach any more.

    Raises `CannotStart`. If that cannot be read, or the others may be dead, it goes on.
    """
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + _STRANGERS_S
    seen: dict[str, str] = {}
    while loop.time() < ends_at:
        _, rows = await store.read()
        if rows is not None:
            strangers = agreeing.strangers(rows, rows.keys() - {own})
            if not strangers:
                return
            signs = {host: row.sign for host, row in strangers.items()}
            if any(seen.setdefault(host, sign) != sign for host, sign in signs.items()):
                raise CannotStart(agreeing.fault_of(strangers))
        await asyncio.sleep(_STEP_S)


async def _refuse_another_kind(store: ClaimStore, claims: Claims) -> None:
    """Refuse to start beside a living server without hosts. Raises `CannotStart`."""
    if not await store.is_another_kind():
        return
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + LEASE_S + _LOOK_S
    while loop.time() < ends_at:
        claims.see(*await store.read(), (), store.recorded)
        if claims.other_server:
            raise CannotStart(_OTHER_SERVER.format(claims.other_server))
        await asyncio.sleep(_LOOK_S)


class Claimer:
    """Looks who has the shards, and has workers started for those that this host is to have.

    Args:
        door: What the supervisor calls a door without a shard, which serves as long as no worker
            does.
    """

    def __init__(
        self,
        supervisor: "Supervised",
        claims: Claims,
        store: ClaimStore,
        tokens: HostTokens,
        refusing: "_Door",
        hosts: FrontDesk,
        agreeing: Agreeing,
        url: str,
        *,
        own: str,
        door: int,
    ) -> None:
        self._supervisor = supervisor
        self._claims = claims
        self._store = store
        self._tokens = tokens
        self._refusing = refusing
        self._hosts, self._own = hosts, own
        self._agreeing = agreeing
        self._url = url
        # The shards that have a process on this host; and those that the supervisor was asked to
        # start one for, with when.
        self._here: set[int] = set()
        self._asked: dict[int, float] = {}
        # The shards whose processes serve clients.
        self._serving: set[int] = set()
        # Whether there is a door besides, or is about to be, and whether it serves.
        self._door, self._need = door, DoorNeed(asyncio.get_running_loop().time)
        self._has_door = self._door_serves = False
        self._asked_for_door = -inf
        # When clients are refused, unless some process serves them by then.
        self._refuses_at = inf
        # What the supervisor was asked last to have given away.
        self._given: Give | None = None
        # Tells people that this host serves, once.
        self.welcome: Callable[[str], None] = ignore
        # What tells others that this host lives.
        self._telling: asyncio.Task[None] | None = None
        # Whether another host has the name of this one.
        self._is_twin = False
        # The server without hosts that has the deployment, if any.
        self._other_server = ""
        # The shards whose store has come back empty.
        self._emptied: list[int] = []
        # Whether another process is about to go on here, and whether it does.
        self._is_paused = self.is_succeeded = False

    async def run(self) -> None:
        """Look until the task is cancelled."""
        loop = asyncio.get_running_loop()
        looks_at = loop.time()
        while True:
            if not self._is_paused and loop.time() >= looks_at:
                looks_at = loop.time() + _LOOK_S
                await self._look()
            if not self._is_paused:
                self._claim()
                self._mind_door()
                self._give()
            if loop.time() >= self._refuses_at:
                self._refuses_at = inf
                await self._refusing.open()
            await asyncio.sleep(_STEP_S)

    async def _look(self) -> None:
        claims = self._claims
        shards, rows = await self._store.read()
        self._drain(self._store.is_to_drain)
        now = asyncio.get_running_loop().time()
        self._asked = {shard: at for shard, at in self._asked.items() if now - at < _ASKED_S}
        claims.see(shards, rows, {*self._here, *self._asked}, self._store.recorded)
        if claims.is_twin:
            if not self._is_twin:
                log.error("another host has the name of this one: give each its own in own_host")
            self._is_twin = True
            return
        self._is_twin = False
        self._leave_to(claims.other_server)
        self._log_emptied(claims.emptied)
        if rows is not None:
            self._agreeing.compare(rows, claims.shown().living)
            # A host that has shards never stops for another one.
            self._agreeing.refuse(rows, () if self._here else claims.other_holders)
        if rows is not None and (self._telling is None or self._telling.done()):
            # A store whose primary is looked for must not delay what the others say.
            self._telling = asyncio.create_task(self._tell(claims.row()))

    def _leave_to(self, other_server: str) -> None:
        """Leave everything to a server without hosts, if one has taken the deployment."""
        if other_server and other_server != self._other_server:
            log.error("%s", _OTHER_SERVER.format(other_server))
            self._supervisor.fenced()
        self._other_server = other_server

    def _log_emptied(self, emptied: list[int]) -> None:
        """Log which shards have lost their store, when these are others than before."""
        for shard in emptied:
            if shard not in self._emptied:
                log.error("%s", EMPTIED.format(shard))
        self._emptied = emptied

    async def _tell(self, row: HostRow | None) -> None:
        """Tell the other hosts what they are to know."""
        with suppress(StoreUnavailable):
            await self._tokens.look(self._store.tokens)
            await self._store.record(self._claims.unrecorded)
            if row is not None:
                digest, fixed = self._agreeing.digest(), self._agreeing.fixed
                told = replace(row, release=release(), url=self._url, digest=digest, fixed=fixed)
                await self._store.write(told)

    def _drain(self, is_wanted: bool | None) -> None:
        """Do as operators want, which is None if the store did not say it."""
        claims = self._claims
        if is_wanted is not None and is_wanted != claims.is_draining:
            log.info("this host %s", "gives its shards away" if is_wanted else "has shards again")
        if is_wanted:
            claims.drain()
        elif is_wanted is not None:
            claims.uncordon()

    def _claim(self) -> None:
        there = {*self._here, *self._asked}
        wanted = [each for each in self._claims.to_claim() if each.shard not in there]
        if not wanted or self._agreeing.refused:
            return
        log.info("this host claims %s", ", ".join(f"shard {each.shard}" for each in wanted))
        now = asyncio.get_running_loop().time()
        self._asked.update({each.shard: now for each in wanted})
        told = [
            {"shard": each.shard, "unraised": each.unraised, "offered": each.offered_epoch}
            for each in wanted
        ]
        self._supervisor.say(Say.CLAIM, shards=told)

    def _give(self) -> None:
        """Have a shard given to the host that is to have it, if it is time."""
        wanted = self._claims.to_give()
        is_last = wanted is not None and self._serving == {wanted.shard}
        if is_last and not self._door_serves and self._need.is_awaited:
            # Its clients go on there.
            return
        if wanted is not None and wanted != self._given:
            log.info("this host gives shard %d to %s", wanted.shard, wanted.host)
            self._supervisor.say(Say.GIVE, shard=wanted.shard, host=wanted.host)
        self._given = wanted

    def _mind_door(self) -> None:
        """Have a door as long as no worker serves clients here."""
        wanted = self._claims.to_give()
        leaving = () if wanted is None else (wanted.shard,)
        is_needed = self._need.is_there({*self._here, *self._asked}, self._serving, leaving)
        now = asyncio.get_running_loop().time()
        if now - self._asked_for_door < _ASKED_S:
            return
        if is_needed and not self._has_door and self._others_serve():
            log.info("no worker serves clients here from now on: a door to other hosts does")
            told = {"shard": self._door, "unraised": "", "offered": ""}
            self._supervisor.say(Say.CLAIM, shards=[told])
        elif self._door_serves and self._serving and not is_needed:
            log.info("a worker serves clients here: the door ends")
            self._supervisor.say(Say.GIVE, shard=self._door, host="")
        else:
            return
        self._asked_for_door = now

    def _others_serve(self) -> bool:
        """Return whether this host may serve clients, of shards that other hosts have."""
        owners = self._claims.shown().owners.values()
        may_serve = not (self._claims.is_twin or self._other_server or self._agreeing.refused)
        return may_serve and any(host != self._own for host in owners)

    async def do_as_asked(self) -> None:
        """Do what the supervisor asks for, until another process goes on here, or it has ended."""
        while True:
            try:
                asked = await self._supervisor.next()
            except PeerGone:
                return
            match asked.fields["do"]:
                case Do.HAVE:
                    await self._have(asked.fields)
                case Do.LEAVE:
                    self._is_paused = True
                    self._hosts.pause()
                    self._supervisor.say(Say.LEFT)
                case Do.TAKE_BACK:
                    self._is_paused = False
                    self._hosts.resume()
                    self._supervisor.say(Say.BACK)
                case Do.GO:
                    self.is_succeeded = True
                    return
                case _:
                    pass
            asked.close()

    async def _have(self, told: Mapping[str, list[int]]) -> None:
        self._has_door = self._door in told["shards"]
        self._door_serves = self._door in told["serving"]
        self._here = {*told["shards"]} - {self._door}
        self._serving = {*told["serving"]} - {self._door}
        for each in {*told["failed"]} - {self._door}:
            self._claims.failed(each)
        if told["serving"]:
            await self._refusing.close()
            welcome, self.welcome = self.welcome, ignore
            welcome(self._url)
            self._refuses_at = inf
        else:
            # Another process serves soon, mostly: who connects waits for it.
            self._refuses_at = asyncio.get_running_loop().time() + _REFUSING_S

    async def end(self) -> None:
        """Let others know at once that this host takes no shards any more."""
        if self._telling is not None:
            await asyncio.wait([self._telling], timeout=_LOOK_S)
        with suppress(StoreUnavailable):
            await self._store.remove()


class _Door:
    """Refuses all requests at the sockets of this host, as long as no worker answers there."""

    def __init__(
        self, settings: "Settings", addresses: "ListenAddresses", sockets: ListeningSockets
    ) -> None:
        self._origins = Origins(settings.allow_origin)
        self._places = [(addresses.main, sockets.main), (addresses.admin, sockets.admin)]
        self._reason = _REASON.format(settings.own_host)
        self._doors: list[StandbyDoor] = []
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        async with self._turn:
            for address, sockets in () if self._doors else self._places:
                if address is not None:
                    door = StandbyDoor(address, self._origins, is_healthy=True, reason=self._reason)
                    self._doors.append(door)
                    await door.open([each.dup() for each in sockets])

    async def close(self) -> None:
        async with self._turn:
            while self._doors:
                await self._doors.pop().close()
