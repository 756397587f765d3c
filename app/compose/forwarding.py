"""Makes every worker a door for all shards: its links to others, and theirs to it."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.client_ids import ClientIds
from holdfast.cluster.shards import ShardMap
from holdfast.compose.cannot_start import CannotStart
from holdfast.compose.placement import NO_SHARD, Placement
from holdfast.compose.succession import Succession
from holdfast.distribution import release
from holdfast.supervisor.control import FAR_LINK, LINK
from holdfast.supervisor.packets import PACKETS
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.forwarding.asks import Asked, AsksOut
from holdfast.web.forwarding.facts import FactsAsked, FactsOut
from holdfast.web.forwarding.far_shard import FarShard
from holdfast.web.forwarding.hello import Hello
from holdfast.web.forwarding.home_core import HomeCore
from holdfast.web.forwarding.link_keeper import LinkKeeper
from holdfast.web.forwarding.link_server import LinkServer
from holdfast.web.forwarding.newcomers import Newcomers
from holdfast.web.forwarding.passages import Inlet, PassageOut
from holdfast.web.forwarding.request_door import AnyShard, Door, DoorParts, bucket_of_newcomer
from holdfast.web.forwarding.request_home import Home
from holdfast.web.forwarding.spread_publishes import AllShards
from holdfast.web.front.listener import Listener
from holdfast.web.giving.giver import Giver
from holdfast.web.giving.taker import Taker
from holdfast.web.prometheus.door_figures import DoorFigures
from holdfast.web.scheduling.request_sink import RequestSink
from holdfast.web.tasks import reached, run_until_closed
from holdfast.web.websockets.websocket import WebSocketFrontEnd

if TYPE_CHECKING:
    from holdfast.compose.host_links import HostLinks
    from holdfast.compose.host_overview import HostOverview
    from holdfast.compose.login import InstalledLogin
    from holdfast.web.host_links.receiver import Receiver
    from holdfast.web.http.host_cookie import HostCookie

# How long doors that leave, too, may take to say so, which is longer than they read; others to
# answer that they wait; and shards to answer held connects. All of them need a few milliseconds,
# unless a machine has much more to do, and what is not answered then is refused.
_ANNOUNCING_S = 1.0
_PAUSING_S = 0.5
_SETTLING_S = 1.0
# How long the next process of a shard may take to be reached.
_SENDING_S = 1.0
# How long messages on links may take to arrive.
_HOLDING_S = 1.0


class Forwarding:
    """The door of this process, and the home of what other doors forward."""

    def __init__(
        self,
        placement: Placement,
        shards: ShardMap,
        deployment: str,
        clock: Callable[[], float],
        hosts: "HostLinks | None" = None,
    ) -> None:
        self.shards = shards
        self._hosts = hosts
        self._placement, self._clock = placement, clock
        # Where links of this host begin, and connections of others come.
        self._listening: socket.socket | None = None
        self._far_listening: socket.socket | None = None
        host = "" if hosts is None else hosts.own
        self._hello = Hello(placement.number, placement.count, deployment, release(), host=host)
        self._server: LinkServer | None = None
        far_shard = FarShard if hosts is None else hosts.far_shard
        self._far = {shard: far_shard(shard, clock) for shard in placement.others}
        self._keepers = {shard: self._keeper(shard) for shard in placement.others}
        # What takes the links of other hosts.
        self._receiver: Receiver | None = None
        self._giving: Giver | None = None
        self._taker: Taker | None = None
        # Says which shard handles what is published without a session, once there is a door.
        self.divider: AllShards | None = None
        # What takes messages that others send over links, and what answers them about facts.
        self.inlet: Inlet | None = None
        self.facts: FactsAsked | None = None
        # What answers questions that others ask over links.
        self.asked = Asked()

    def _keeper(self, shard: int) -> LinkKeeper:
        given = shard, self._placement.link_of(shard), self._hello, self._far[shard]
        return LinkKeeper(*given) if self._hosts is None else self._hosts.keeper(*given)

    @property
    def buckets(self) -> list[int]:
        """The buckets of this shard."""
        own = self._placement.number
        return [bucket for bucket, shard in enumerate(self.shards.of_bucket) if shard == own]

    @property
    def passages(self) -> dict[int, PassageOut]:
        """By number of a shard, the way of messages to it over a link."""
        return {shard: far.passage for shard, far in self._far.items()}

    @property
    def facts_out(self) -> dict[int, FactsOut]:
        """By number of a shard, the way to ask it about facts over a link."""
        return {shard: far.facts for shard, far in self._far.items()}

    @property
    def asks(self) -> dict[int, AsksOut]:
        """By number of a shard, the way to ask it over a link."""
        return {shard: far.asks for shard, far in self._far.items()}

    @property
    def is_linked(self) -> bool:
        """Whether this process has links to all other shards."""
        return all(far.is_linked for far in self._far.values())

    @property
    def reaches_any(self) -> bool:
        """Whether this process has a link to another shard."""
        return any(far.is_linked for far in self._far.values())

    def reaches(self, shard: int) -> bool:
        """Return whether a shard is there, or away for no longer than a restart takes."""
        return not self._far[shard].is_away

    @property
    def host_cookie(self) -> "HostCookie | None":
        """What tells clients the hosts of their sessions; None without a list of hosts."""
        return None if self._hosts is None else self._hosts.cookie

    @property
    def all_hosts(self) -> "HostOverview | None":
        """What operators see of hosts; None without a list of them."""
        return None if self._hosts is None else self._hosts.overview

    async def draining(self) -> str | None:
        """Return that this host is drained, so that clients should go to others; or None."""
        if self._hosts is None or not await self._hosts.overview.is_drained(self._hosts.own):
            return None
        return f"host {self._hosts.own} is drained"

    def hosts_of_shards(self) -> dict[int, str]:
        """Return the host that had each shard last, as far as it is known."""
        own = self._hello.host
        if self._hosts is None or not own:
            return {}
        here = {} if self._placement.number == NO_SHARD else {self._placement.number: own}
        return {**here, **self._hosts.of_shards}

    @property
    def figures(self) -> DoorFigures:
        """How many exchanges and connections this door has passed on to each other shard."""
        forwarded = {shard: far.forwarded for shard, far in self._far.items()}
        return DoorFigures(
            forwarded, {} if self._giving is None else self._giving.given, self._hello.host
        )

    def away_s(self) -> dict[int, float]:
        """Return for how many seconds shards have been away, by number."""
        return {shard: far.away_s for shard, far in self._far.items() if far.away_s}

    def absences(self) -> list[str]:
        """Return a sentence about each shard that has been away for longer than a moment."""
        hosts = self.hosts_of_shards()
        return [
            f"shard {shard} has been away for {away_s:.0f} s"
            + (f", last on {hosts[shard]}" if shard in hosts else "")
            for shard, away_s in sorted(self.away_s().items())
        ]

    def door(self, own: RequestSink, bayeux: Bayeux, login: "InstalledLogin | None") -> Door:
        """Return what front ends pass requests to."""
        identities, clock = bayeux.identities, self._clock
        for far in self._far.values():
            far.newcomers = lambda: identities.newcomers(clock())
        identities.tell_others = self._tell_newcomer
        number, of_bucket = self._placement.number, self.shards.of_bucket
        elsewhere = tuple([None if shard == number else shard for shard in of_bucket])
        newcomers = Newcomers(None if login is None else login.logins)
        client_ids = bayeux.state.client_ids
        self.divider = AllShards(client_ids, of_bucket.__getitem__, newcomers.subject_of)
        if self._hosts is not None:
            own = self._tell_hosts(own, self._hosts, client_ids, newcomers)
        parts = DoorParts(
            *(own, client_ids, elsewhere.__getitem__, self._far, newcomers.subject_of),
            *(bayeux.state.request_limits, self._gives),
        )
        if number == NO_SHARD:
            parts = parts._replace(anywhere=AnyShard(self._far).next)
        if login is None or login.backend is None:
            return Door(parts)
        from holdfast.web.forwarding.request_asking import AskingDoor

        return AskingDoor(
            parts,
            backend=login.logins,
            budgets=bayeux.state.budgets,
            clock=self._clock,
            run_later=bayeux.state.run_later,
        )

    def _tell_hosts(
        self, own: RequestSink, hosts: "HostLinks", client_ids: ClientIds, newcomers: Newcomers
    ) -> RequestSink:
        """Tell clients the hosts of their sessions. Returns what handles requests of this shard."""
        from holdfast.web.host_links.stickiness import OwnSessions

        of_bucket = self.shards.of_bucket

        def host_of_newcomer(speaker: Speaker) -> str:
            bucket = bucket_of_newcomer({}, speaker, client_ids, newcomers.subject_of)
            return "" if bucket is None else self.hosts_of_shards().get(of_bucket[bucket], "")

        hosts.cookie.host_of_newcomer = host_of_newcomer
        return OwnSessions(own, hosts.cookie)

    def _gives(self, shard: int, body: bytes, exchange: Exchange) -> bool:
        return self._giving is not None and self._giving.gives(shard, body, exchange)

    def _tell_newcomer(self, browser: str) -> None:
        for far in self._far.values():
            far.tell_newcomer(browser)

    def listen(self, succession: Succession) -> None:
        """Open the sockets for links, or inherit them. Raises `CannotStart`."""
        self._listening = listen_for_links(self._placement, succession)
        if self._hosts is not None:
            placement = self._placement
            path = placement.far_link_of(placement.number)
            self._far_listening = kept(FAR_LINK, path, succession, PACKETS)

    async def open(self, endpoint: Endpoint, stack: AsyncExitStack) -> None:
        """Take what others forward, and begin to connect to them. The stack ends both."""
        if self._listening is not None:
            await self._serve_links(endpoint, self._listening, stack)
        for far in self._far.values():
            far.outlet = endpoint.coalescer
        for keeper in self._keepers.values():
            run_until_closed(stack, keeper.run())
        if self._hosts is not None:
            budgets = endpoint.bayeux.state.budgets
            run_until_closed(stack, self._hosts.divide(budgets, self.reaches))

    async def _serve_links(
        self, endpoint: Endpoint, listening: socket.socket, stack: AsyncExitStack
    ) -> None:
        core = HomeCore(endpoint.bayeux, endpoint.clock, endpoint.gate)
        per_frame = endpoint.options.ws_messages_per_frame

        def home() -> Home:
            return Home(
                *(endpoint.scheduler, endpoint.coalescer, core, per_frame),
                *(self.asked, self.inlet, self.facts),
            )

        server = LinkServer(self._hello, home)
        stack.callback(server.close)
        await server.open(listening)
        self._server = server
        if self._hosts is not None and self._far_listening is not None:
            self._receiver = self._hosts.receiver(server, self._hello, self._far_listening)
            stack.callback(self._receiver.close)

    async def share(
        self,
        listener: Listener,
        name: str,
        websockets: WebSocketFrontEnd,
        endpoint: Endpoint,
        stack: AsyncExitStack,
    ) -> None:
        """Give connections of this listener to other shards, and take theirs. The stack ends it."""
        number, placement = self._placement.number, self._placement
        ids = endpoint.bayeux.state.client_ids

        def shard_of(browser: str) -> int | None:
            shard = self.shards.of_bucket[ids.bucket_in(browser)] if ids.fits(browser) else number
            return None if shard == number else shard

        places = {shard: placement.giving_of(shard) for shard in placement.others}
        giving = Giver(
            *(listener, name, websockets, endpoint.cookie, places),
            lambda shard: self._keepers[shard].is_near and self._far[shard].takes,
            shard_of,
        )
        for shard, far in self._far.items():
            far.on_entered = partial(giving.give_socket, shard)
        self._giving, self._taker = giving, Taker(listener)
        stack.callback(giving.close)
        stack.callback(self._taker.close)
        listener.give_first_by(giving.gives_first)
        await self._take_connections()

    async def _take_connections(self) -> None:
        if self._taker is not None:
            path = self._placement.giving_of(self._placement.number)
            self._taker.open(await asyncio.to_thread(bound, path, PACKETS))

    # Leaving to a successor

    async def settle_giving(self) -> None:
        """Wait until others have answered which connections they take, and serve the rest here."""
        giving = self._giving
        if giving is not None and not await reached(_PAUSING_S, lambda: giving.is_settled):
            giving.close()

    async def pause(self, *, is_alone: bool) -> None:
        """Take no more of what others forward; this door has forwarded what it has read.

        Others of this host that leave at the same time say by themselves that nothing more comes.
        All are asked to wait with what comes: those, too, may go on before this process does.

        Args:
            is_alone: Whether no other process leaves.
        """
        for far in self._far.values():
            far.leave()
        server = self._server
        if server is not None:
            server.stop_accepting()
            if self._receiver is not None:
                self._receiver.stop_accepting()
            if not is_alone:
                await reached(_ANNOUNCING_S, lambda: server.is_quiet_here)
            server.pause()
            await reached(_PAUSING_S, lambda: server.is_quiet)

    async def settle(self) -> None:
        """Let others answer the held connects of this door's clients, and finish the rest.

        What waits for a shard that is moving gets there first, if that takes a moment only. What is
        not answered then is refused.
        """
        server, shards = self._server, self._far.values()

        def is_settled() -> bool:
            is_answered = server is None or server.is_settled
            return is_answered and all(far.is_answered for far in shards)

        await reached(_SENDING_S, lambda: not any(far.may_send_soon for far in shards))
        for far in shards:
            far.settle()
        await reached(_SETTLING_S, is_settled)
        for far in shards:
            far.give_up()

    def let_go(self) -> None:
        """Take no more for the sockets of this door, which go on at the next one."""
        for far in self._far.values():
            far.let_go()

    async def hold_messages(self) -> None:
        """Let no messages come over links, and send none. Those on their way arrive."""
        passages, server = self.passages.values(), self._server
        for passage in passages:
            passage.rest()
        if server is not None:
            server.hold()

        def is_still() -> bool:
            is_held = server is None or server.is_held
            return is_held and all(passage.is_heard for passage in passages)

        await reached(_HOLDING_S, is_still)

    async def take_back(self) -> None:
        """Go on as before."""
        for far in self._far.values():
            far.stay()
            far.passage.resume()
        # The process that did not start may have listened at the same path.
        await self._take_connections()
        if self._server is not None:
            self._server.open_passages()
            await self._server.accept()
            if self._receiver is not None:
                self._receiver.accept()
            self._server.resume()


def listen_for_links(placement: Placement, succession: Succession) -> socket.socket:
    """Return the socket at which this shard takes what others forward. Raises `CannotStart`.

    Only this user can connect. While this shard has no process, others wait there.
    """
    return kept(LINK, placement.link_of(placement.number), succession)


def kept(
    name: str, path: Path, succession: Succession, kind: socket.SocketKind = socket.SOCK_STREAM
) -> socket.socket:
    """Listen at a path, which later processes inherit by this name. Raises `CannotStart`."""
    found = succession.descriptors.get(name)
    if found is not None and path.is_socket():
        listening = socket.socket(fileno=os.dup(found))
    else:
        try:
            listening = bound(path, kind)
        except OSError as error:
            raise CannotStart(f"cannot listen for other workers at {path}: {error}") from error
    succession.keep(name, listening.fileno())
    return listening


def bound(path: Path, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    """Listen at a path, taken from an earlier process, that only this user can connect to."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        path.unlink()
    listening = socket.socket(socket.AF_UNIX, kind)
    try:
        listening.bind(str(path))
        # Nothing can connect before it listens. All threads would share a umask.
        path.chmod(0o600)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening
