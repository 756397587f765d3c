"""Serves clients on a host that has no shard: a door to the shards of all other hosts.

It has a core without sessions, which only knows what front ends ask it about themselves. Whatever
clients want goes over links to the shards.
"""

import asyncio
import random
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.assembly import assemble
from holdfast.bayeux.for_extensions import ForExtensions
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.cluster.shards import Shards, homes_of, map_of
from holdfast.compose.administration import Administered, feed_of
from holdfast.compose.endpoint import make_endpoint, own_figures
from holdfast.compose.forwarding import Forwarding
from holdfast.compose.joint_administration import JointAdministration
from holdfast.compose.listen_addresses import find_addresses
from holdfast.compose.listeners import ServedApplications, open_listeners
from holdfast.compose.listening import MAIN, ListeningSockets, listen
from holdfast.compose.placement import Placement
from holdfast.compose.running_server import hand_over, within
from holdfast.compose.several import host_links
from holdfast.compose.shard_origin import common_origin, store_of
from holdfast.compose.succession import CannotLeave, Succession
from holdfast.compose.token_watch import begin_token_watch, opened_tokens, role_of
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.basics.node import Node, TimestampSource
from holdfast.delivery.ports.journal_port import NO_JOURNAL
from holdfast.settings import Settings
from holdfast.store.format.deployment import Origin
from holdfast.store.format.keys import RedisKeys
from holdfast.store.links.link import StoreLink
from holdfast.store.links.primary import Primary
from holdfast.store.links.url import StoreUrl
from holdfast.store.opening.asking_to_open import Opening
from holdfast.store.store import Store
from holdfast.web.admin.alerts import Alerts
from holdfast.web.admin.application import OpenRequests, make_admin
from holdfast.web.admin.handlers import Ask, Handler
from holdfast.web.admin.resources import ROUTES
from holdfast.web.admin.tokens import Tokens
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.answering.heads import Heads
from holdfast.web.doors.leaving import Leaving
from holdfast.web.scheduling.intake import UnreadRequests
from holdfast.web.scheduling.speaking import OwnStoreRight
from holdfast.web.tasks import Tasks
from holdfast.web.ticker import Ticker
from holdfast.web.websockets.websocket import WebSocketFrontEnd

if TYPE_CHECKING:
    from holdfast.compose.listen_addresses import ListenAddresses
    from holdfast.compose.login import InstalledLogin

# As of a server that leaves: how long requests that have begun to arrive may take to do so, how
# long their answers, and the whole.
_READING_S = 0.2
_ANSWERING_S = 0.3
_LEAVING_S = 8.0
# How long clients may take to read what was written.
_GOING_S = 60.0


@asynccontextmanager
async def running_door(
    settings: Settings, succession: Succession, placement: Placement
) -> AsyncIterator["RunningDoor"]:
    """Serve clients without a shard, and stop in order at the end. Raises `CannotStart`."""
    async with AsyncExitStack() as stack:
        parts = await _assemble(settings, placement, stack)
        sockets = listen(parts.addresses, succession)
        if succession.is_successor:
            await succession.prepared()
        succession.close_rest()
        await succession.opened()
        door = await _serve(parts, sockets, succession, stack)
        try:
            yield door
        finally:
            await door.stop(settings.shutdown_timeout / 1000)


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a door that does not serve yet."""

    settings: Settings
    placement: Placement
    addresses: "ListenAddresses"
    ticker: Ticker
    heads: Heads
    right: OwnStoreRight
    tasks: Tasks
    endpoint: Endpoint
    forwarding: Forwarding
    administration: Administered
    login: "InstalledLogin | None"


async def _assemble(settings: Settings, placement: Placement, stack: AsyncExitStack) -> _Parts:
    addresses = await find_addresses(settings)
    tokens = opened_tokens(settings.data)
    origin = await common_origin(settings, placement)
    right = OwnStoreRight()
    ticker = Ticker(heads := Heads(settings.hsts_s), right)
    clock = ticker.clock
    tasks = Tasks(clock)
    stack.push_async_callback(tasks.close)
    unread, link = UnreadRequests(), _no_link(settings, placement)
    bayeux = _core(settings, placement, origin, link, ticker, tasks, unread, tokens)
    server = ForExtensions(bayeux, clock)
    login = None
    if settings.requires_login:
        from holdfast.compose.login import install_login

        login = install_login(
            *(settings, server, bayeux.state, stack, tokens, origin.deployment.key)
        )
    shards = map_of(origin.division.shards)
    hosts = host_links(settings, placement, stack)
    forwarding = Forwarding(placement, shards, origin.deployment.name, clock, hosts)
    endpoint = make_endpoint(
        *(settings, bayeux, ticker, unread, right),
        lambda own: forwarding.door(own, bayeux, login),
        forwarding.host_cookie,
    )
    homes = Shards(shards, homes_of(origin.division.homes), bayeux.state.client_ids.bucket_of)
    node = bayeux.state.node
    joint = JointAdministration(
        *(placement.number, forwarding, _routes, endpoint, homes, lambda: f"{node.stamp():019d}"),
        lambda _: 0,
    )
    opened = OpenRequests(tokens)
    by_login = None if login is None else login.logins.operator
    application = make_admin(joint.handlers, tokens, clock, feed_of(endpoint), by_login, opened)
    begin_token_watch(settings.data, tokens, server, opened.end_invalid, stack)
    administration = Administered(application, Alerts(), joint, login.logins if login else None)
    return _Parts(
        *(settings, placement, addresses, ticker, heads, right, tasks, endpoint, forwarding),
        *(administration, login),
    )


def _no_link(settings: Settings, placement: Placement) -> StoreLink:
    """Return a link that is never opened: a core without sessions stores nothing."""
    url = StoreUrl.of(store_of(0, placement, settings))
    primary = Primary(url, RedisKeys(settings.namespace).meta)
    return StoreLink(primary, scripts=(), on_state=_unheard, random=random.random)


def _unheard(_: bool, __: str) -> None:
    """A link that is not opened has no state."""


def _core(
    settings: Settings,
    placement: Placement,
    origin: Origin,
    link: StoreLink,
    ticker: Ticker,
    tasks: Tasks,
    unread: UnreadRequests,
    tokens: Tokens,
) -> Bayeux:
    # No shard has this number, so no other process makes the same ids.
    stamps = TimestampSource(0, time.time_ns, placement.count)
    name = origin.deployment.name
    store = Store(
        link,
        RedisKeys(settings.namespace),
        opening=Opening(settings.node, origin.deployment),
        stamp=stamps,
        know=ignore,
        on_told=ignore,
        on_fenced=ignore,
    )
    return assemble(
        settings,
        shards=placement.count,
        node=Node(settings.node, stamps, name, stamps.hear, stamps.read),
        store=store,
        epoch=origin.seed,
        journal=NO_JOURNAL,
        client_ids=ClientIds(origin.deployment.key, secrets.token_bytes),
        random=random.random,
        on_ready=ticker.end_turn_soon,
        run_later=tasks,
        is_turn_over=ticker.turn_budget.is_over,
        unread_since=unread.since,
        role_of=partial(role_of, tokens),
    )


async def _routes() -> list[Handler]:
    """Return the routes of the administration, which shards answer."""
    return [Handler(each, _not_here) for each in ROUTES]


async def _not_here(ask: Ask) -> object:
    raise NotImplementedError(f"{ask.route.handler}: this process has no shard")


async def _serve(
    parts: _Parts, sockets: ListeningSockets, succession: Succession, stack: AsyncExitStack
) -> "RunningDoor":
    settings, endpoint, forwarding = parts.settings, parts.endpoint, parts.forwarding
    bayeux, ticker = endpoint.bayeux, parts.ticker
    websockets = WebSocketFrontEnd(endpoint)
    ticker.collector.begin()
    ticker.collector.exempt()
    ticker.start(bayeux)
    stack.callback(ticker.stop)
    if parts.login is not None:
        ports = sockets.ports(None, parts.placement.count)
        await parts.login.open(settings, ports, stack)
    await forwarding.open(endpoint, stack)

    async def readiness(of_all: bool) -> tuple[str | None, str]:
        away = forwarding.absences() if of_all else ()
        return await _complaint(bayeux, forwarding), "\n".join(away)

    served = ServedApplications(
        *(endpoint, websockets, parts.heads, readiness, parts.administration, forwarding),
        own_figures(endpoint, ticker, _no_link(settings, parts.placement)),
    )
    listeners, url = await open_listeners(settings, parts.addresses, sockets, served, stack)
    door = RunningDoor(parts, url, websockets, Leaving(endpoint, websockets, listeners))
    if succession.door is not None:
        door.adopt(socket.socket(fileno=succession.door))
    stack.push_async_callback(door.doors.adopting.close)
    return door


async def _complaint(bayeux: Bayeux, forwarding: Forwarding) -> str | None:
    """Return why no client should come to this door now, or None."""
    if bayeux.state.is_stopping:
        return "stopping"
    if not forwarding.reaches_any:
        return "no shard can be reached"
    return await forwarding.draining()


@dataclass(slots=True)
class RunningDoor:
    """A door that serves, and how it ends: for good, or with another process that goes on."""

    parts: _Parts
    url: str
    websockets: WebSocketFrontEnd
    doors: Leaving
    # Whether another process is to go on with its connections.
    has_left: bool = False

    async def leave(self) -> None:
        """Come to rest. If this fails, go on."""
        try:
            async with asyncio.timeout(_LEAVING_S):
                await self._leave()
        except TimeoutError as error:
            await self.take_back()
            raise CannotLeave(f"it takes longer than {_LEAVING_S:g} s") from error
        except BaseException:
            await self.take_back()
            raise

    async def _leave(self) -> None:
        forwarding = self.parts.forwarding
        await self.doors.pause(_READING_S)
        await self.doors.begin_all(_READING_S)
        await forwarding.pause(is_alone=True)
        await forwarding.settle()
        self.parts.tasks.give_up()
        await self.doors.settle(_ANSWERING_S)
        forwarding.let_go()
        self.doors.be_still()
        self.parts.right.leave()
        self.has_left = True

    async def take_back(self) -> None:
        """Go on as before."""
        self.has_left = False
        self.parts.right.stay()
        await self.parts.forwarding.take_back()
        await self.doors.take_back()

    async def give_to(self, _: str) -> bool:
        """Leave for good: a worker of this host serves."""
        await self.leave()
        return True

    async def part(self, door: int) -> None:
        """Hand the connections over."""
        await self.leave()
        await self.hand_over(door)

    def adopt(self, link: socket.socket) -> None:
        """Take the connections of another process of this host."""
        self.doors.adopting.begin(link)

    async def hand_over(self, door: int) -> None:
        """Hand the connections over to another process, which serves."""
        await hand_over(self.doors, door, _GOING_S)

    async def stop(self, timeout_s: float) -> None:
        """Stop in order: clients get what is pending, and are told to return later."""
        self.doors.listeners[MAIN].stop_accepting()
        self.parts.heads.end_connections()
        await within(timeout_s / 2, self._let_go)
        await within(timeout_s / 2, self._close)

    async def _let_go(self) -> None:
        answered = asyncio.Event()
        self.parts.endpoint.bayeux.stop(self.parts.ticker.clock(), answered.set)
        await answered.wait()
        await self.parts.forwarding.settle()
        listener = self.doors.listeners[MAIN]
        await asyncio.gather(self.websockets.close_drained(), listener.drain())

    async def _close(self) -> None:
        await self.websockets.close_all()
        await asyncio.gather(*(each.close() for each in self.doors.listeners.values()))
