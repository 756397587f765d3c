"""A shard of another process: the exchanges that this door has forwarded to it."""

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Final, Protocol, cast

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.delivery.basics.ignoring import ignore
from holdfast.web.forwarding.asks import AsksOut
from holdfast.web.forwarding.facts import FactsOut
from holdfast.web.forwarding.frames import (
    TRANSPORTS,
    FrameUnreadable,
    Kind,
    Write,
    pack,
    pack_numbers,
    pack_request,
    unpack_reply,
)
from holdfast.web.forwarding.given_replies import GivenReplies
from holdfast.web.forwarding.parking import Parking, refuse
from holdfast.web.forwarding.passages import PassageOut
from holdfast.web.forwarding.request_owner import greeted_id_in
from holdfast.web.forwarding.shard_link import Handlers, Link
from holdfast.web.forwarding.speakers import ToldSpeakers
from holdfast.web.http.lone_requests import is_lone_connect
from holdfast.web.scheduling.intake import SMALL
from holdfast.web.scheduling.request_scheduler import UnfinishedRequest
from holdfast.web.websockets.open_socket import Socket

_TRANSPORTS: Final = {kind: place for place, kind in enumerate(TRANSPORTS)}
# That it is unknown whether a request was handled.
_UNKNOWN: Final = "unknown"
# In seconds. A worker that was killed is there again by then.
_AWAY_S: Final = 3.0


class Outlet(Protocol):
    """Makes the writes of this process, which wait while it may not speak for its own shard."""

    @property
    def place(self) -> int:
        """Where the next write is among those that wait."""

    def let_pass(self, place: int) -> None:
        """Make all writes since this place."""


class _Open:
    """Lets everything pass."""

    place = 0

    def let_pass(self, place: int) -> None:
        """Nothing waits."""


class FarShard:
    """Forwards exchanges over a link, which may be absent for a while.

    Exchanges then wait, so a home that restarts is not noticed. What was forwarded when the link
    broke is refused, because it is unknown what became of it; a lone connect is sent again.
    """

    def __init__(self, shard: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        # By which the clients of this door get what the home says.
        self.outlet: Outlet = _Open()
        self._link: Link | None = None
        # When the last link was lost.
        self._lost_at = clock()
        # The identities of this process's new sockets that may still join a session, and how many
        # seconds ago it gave them.
        self.newcomers: Callable[[], Mapping[str, float]] = dict
        # Called when a socket has a session of the home.
        self.on_bound: Callable[[Socket], None] = ignore
        # Called with an exchange that is about to be answered, unless nothing is to be done then.
        self.on_answer: Callable[[Exchange], None] | None = None
        # Called when a handshake on a socket has made or resumed a session of the home, with its
        # client id.
        self.on_entered: Callable[[Socket, str], None] | None = None
        self._entering: set[Socket] = set()
        # Whether the home is about to leave its place to another process.
        self._is_paused = False
        # Whether this door has stopped reading. What it has read may still follow.
        self._is_leaving = False
        # Whether the home has answered all held connects, as this door asked.
        self.is_settled = True
        self._told = ToldSpeakers()
        # How many exchanges were forwarded.
        self.forwarded = 0
        self._last = 0
        # At the home, by number; and the numbers.
        self._exchanges: dict[int, UnfinishedRequest] = {}
        self._numbers: dict[Exchange, int] = {}
        self._sockets: dict[int, Socket] = {}
        self._socket_numbers: dict[Socket, int] = {}
        self._full: set[Socket] = set()
        self._parking = Parking(clock)
        self._given = GivenReplies(self._tell_lost)
        # What transports took or not, in order, for the end of the turn.
        self._outcomes: list[tuple[Kind, int]] = []
        # The way of messages to that shard.
        self.passage = PassageOut()
        self.facts = FactsOut(shard)
        self.asks = AsksOut()
        self._handlers: Handlers = {
            **self.passage.handlers,
            **self.facts.handlers,
            **self.asks.handlers,
            Kind.ANSWER: self._answer,
            Kind.REFUSED: self._refuse,
            Kind.DONE: self._finish,
            Kind.WRITE: self._write,
            Kind.BOUND: partial(self._bind, True),
            Kind.UNBOUND: partial(self._bind, False),
            Kind.HANG_UP: self._hang_up,
            Kind.PAUSE: self._pause,
            Kind.RESUME: self._resume,
            Kind.SETTLED: self._settled,
        }

    # The link

    @property
    def is_linked(self) -> bool:
        """Whether exchanges reach the home now."""
        return self._link is not None and self._link.is_open

    @property
    def is_away(self) -> bool:
        """Whether there has been no link for longer than a restart takes."""
        return self.away_s > _AWAY_S

    @property
    def away_s(self) -> float:
        """For how many seconds there has been no link."""
        return 0.0 if self.is_linked else self._clock() - self._lost_at

    def link(self) -> Link:
        """Return the end of a new link to the home, for a connection that is being made."""
        link = Link(self._handlers, lambda: self._lost(link), self._send_parked)
        return link

    def open(self, link: Link) -> None:
        """Use this link, which is connected, from now on."""
        self._link = link
        self._is_paused = False
        link.collect(self._take_outcomes)
        self.passage.begin(link)
        self.facts.begin(link)
        self.asks.begin(link)
        self._told = ToldSpeakers()
        for browser, age_s in self.newcomers().items():
            self.tell_newcomer(browser, age_s)
        if self._is_leaving:
            self._say_paused()
        self._send_parked()

    def tell_newcomer(self, browser: str, age_s: float = 0.0) -> None:
        """Tell the home which identity a new socket got, in case its client goes there.

        It is sent at once: the client may use the identity as soon as it has its socket, on another
        connection that reaches the home by another way.
        """
        if self._link is not None:
            self._link.send(pack(Kind.NEWCOMER, round(age_s * 1000), browser.encode()))
            self._link.flush()

    def _lost(self, link: Link) -> None:
        if link is not self._link:
            return
        self._link, self._lost_at = None, self._clock()
        self.passage.lost()
        self.facts.lost()
        self.asks.lost()
        exchanges, self._exchanges = self._exchanges, {}
        self._numbers.clear()
        self._outcomes.clear()
        self._given.clear()
        self._full.clear()
        self._entering.clear()
        sockets, self._sockets = self._sockets, {}
        self._socket_numbers.clear()
        self.is_settled = True
        if not self._is_paused:
            # If another process takes the home's place, their clients' next messages go there.
            for socket in sockets.values():
                socket.restart()
        for forwarded in exchanges.values():
            if forwarded.exchange.pipe is None and is_lone_connect(forwarded.body):
                self._parking.park(forwarded)
            else:
                refuse(forwarded, _UNKNOWN)

    # From front ends

    def forward(self, body: bytes, exchange: Exchange) -> UnfinishedRequest:
        """Forward an exchange. It is answered, or `done` is called with a refusal."""
        forwarded = UnfinishedRequest(exchange, 0, body)
        if self.takes:
            self._send(forwarded)
        else:
            self._parking.park(forwarded)
        return forwarded

    @property
    def takes(self) -> bool:
        """Whether an exchange would reach the home now."""
        return not self._parking and self._may_send()

    def _may_send(self) -> bool:
        link = self._link
        return link is not None and not link.is_full and not self._is_paused and link.is_open

    def _send_parked(self) -> None:
        while self._parking and self._may_send():
            forwarded = self._parking.take()
            if not forwarded.exchange.is_aborted:
                self._send(forwarded)

    def _send(self, forwarded: UnfinishedRequest) -> None:
        link = cast("Link", self._link)
        exchange, body = forwarded.exchange, forwarded.body
        number = self._last = self._last + 1
        place, telling = self._told.place_of(exchange.speaker)
        transport = _TRANSPORTS[exchange.carrier.connection_type]
        socket = 0
        if isinstance(exchange.pipe, Socket):
            socket = self._socket_number(exchange.pipe)
        if self._given:
            self._given.hear(body)
        self.forwarded += 1
        self._exchanges[number] = forwarded
        self._numbers[exchange] = number
        if len(body) > SMALL:
            # It would not be sent again.
            forwarded.body = b""
        frame = pack_request(number, place, transport, socket, body)
        link.send(telling + frame if telling else frame)
        if self._is_leaving:
            self._say_paused()

    def _tell_lost(self, number: int) -> None:
        if self._link is not None:
            self._link.send(pack(Kind.LOST, number))

    def _socket_number(self, socket: Socket) -> int:
        number = self._socket_numbers.get(socket)
        if number is None:
            number = self._last = self._last + 1
            self._socket_numbers[socket] = number
            self._sockets[number] = socket
        return number

    def abort(self, exchange: Exchange) -> None:
        """The connection of an exchange is lost."""
        number = self._numbers.pop(exchange, None)
        if number is not None and self._link is not None:
            del self._exchanges[number]
            self._link.send(pack(Kind.ENDED, number))

    def detach(self, socket: Socket) -> None:
        """A socket is closed."""
        number = self._socket_numbers.pop(socket, None)
        if number is not None and self._link is not None:
            del self._sockets[number]
            self._full.discard(socket)
            self._entering.discard(socket)
            self._link.send(pack(Kind.CLOSED, number))

    def drained(self, socket: Socket) -> None:
        """A socket takes bytes again."""
        number = self._socket_numbers.get(socket)
        if socket in self._full and number is not None and self._link is not None:
            self._full.discard(socket)
            self._link.send(pack(Kind.DRAINED, number))

    # Leaving this door

    def leave(self) -> None:
        """Tell the home that no exchange follows, which need not wait for more.

        Behind an exchange that follows all the same, it is told again.
        """
        self._is_leaving = True
        self._say_paused()

    def stay(self) -> None:
        """Forward exchanges as before."""
        self._is_leaving = False

    def _say_paused(self) -> None:
        if self._link is not None:
            self._link.send(pack(Kind.PAUSED, 0))

    @property
    def may_send_soon(self) -> bool:
        """Whether something waits for a link that may be made at any moment."""
        return bool(self._parking) and not (self.is_linked or self.is_away)

    def settle(self) -> None:
        """Let the home answer held connects, and refuse what waits for a link."""
        while self._parking:
            refuse(self._parking.take())
        if self._link is not None and (self._exchanges or self._sockets):
            self.is_settled = False
            self._link.send(pack(Kind.SETTLE, 0))

    @property
    def is_answered(self) -> bool:
        """Whether the home has answered everything: held connects, and what took it longer."""
        return self.is_settled and not self._exchanges

    def give_up(self) -> None:
        """Refuse what the home has not answered. It may be handled all the same."""
        for forwarded in [*self._exchanges.values()]:
            self.abort(forwarded.exchange)
            refuse(forwarded, *([] if is_lone_connect(forwarded.body) else [_UNKNOWN]))
        if not self.is_settled:
            # A reply that some client waits for would not come.
            for socket in self._sockets.values():
                socket.restart()

    def let_go(self) -> None:
        """Take no more for sockets, whose clients go on at another door."""
        for socket in [*self._socket_numbers]:
            self.detach(socket)
        if self._link is not None:
            self._link.flush()

    # From the home

    def _pause(self, _: int, __: bytes) -> None:
        self._is_paused = True
        self._say_paused()

    def _resume(self, _: int, __: bytes) -> None:
        self._is_paused = False
        self._send_parked()

    def _settled(self, _: int, __: bytes) -> None:
        self.is_settled = True

    def _pop(self, number: int) -> UnfinishedRequest | None:
        forwarded = self._exchanges.pop(number, None)
        if forwarded is not None:
            del self._numbers[forwarded.exchange]
        return forwarded

    def _answer(self, number: int, data: bytes) -> None:
        reply = unpack_reply(data)
        forwarded = self._pop(number)
        is_taken = False
        if forwarded is not None:
            exchange = forwarded.exchange
            exchange.is_superseded = reply.is_superseded
            exchange.new_browser = reply.browser or None
            exchange.replies = [reply.elements] if reply.elements else []
            if self.on_answer is not None:
                self.on_answer(exchange)
            place = self.outlet.place
            is_taken = bool(exchange.carrier.answer(exchange, ()))
            self.outlet.let_pass(place)
            if exchange.pipe is not None:
                # Otherwise the answer is all that its front end waits for.
                forwarded.done(None)
            if is_taken and reply.wants_receipt and exchange.pipe is None:
                self._given.add(forwarded.body, number, exchange.carrier)
        if reply.wants_receipt:
            self._note(Kind.TAKEN if is_taken else Kind.NOT_TAKEN, number)

    def _refuse(self, number: int, data: bytes) -> None:
        try:
            name, args, wait_s = json.loads(data)
            refused = RequestRefused(ErrorReply[name], args, wait_s=wait_s)
        except (ValueError, KeyError) as error:
            raise FrameUnreadable(f"a refusal: {error}") from error
        forwarded = self._pop(number)
        if forwarded is not None:
            place = self.outlet.place
            forwarded.done(refused)
            self.outlet.let_pass(place)

    def _finish(self, number: int, _: bytes) -> None:
        forwarded = self._pop(number)
        if forwarded is not None:
            forwarded.done(None)

    def _write(self, _: int, data: bytes) -> None:
        write, place = Write.unpack(data), self.outlet.place
        for number in write.sockets:
            socket = self._sockets.get(number)
            is_taken = socket is not None and socket.write(write.frames)
            self._note(Kind.WRITTEN if is_taken else Kind.NOT_WRITTEN, number)
            if socket in self._entering:
                self._enter(socket, write.frames)
            if socket is not None and socket not in self._full and socket.is_draining():
                self._full.add(socket)
                self._note(Kind.FULL, number)
        self.outlet.let_pass(place)

    def _enter(self, socket: Socket, frames: bytes) -> None:
        self._entering.discard(socket)
        client_id = greeted_id_in(frames)
        if self.on_entered is not None and client_id is not None:
            # When this process has read everything, and told the home that this was written.
            asyncio.get_running_loop().call_soon(self.on_entered, socket, client_id)

    def _note(self, kind: Kind, number: int) -> None:
        if self._link is not None:
            if kind is Kind.FULL:
                self._link.send(pack(kind, number))
            else:
                self._outcomes.append((kind, number))
                self._link.has_collected = True
                self._link.flush_at_end()

    def _take_outcomes(self) -> bytes:
        outcomes, self._outcomes = self._outcomes, []
        return b"".join(
            [
                pack(kind, 0, pack_numbers([number for _, number in each]))
                for kind, each in groupby(outcomes, key=itemgetter(0))
            ]
        )

    def _bind(self, is_bound: bool, number: int, _: bytes) -> None:
        socket = self._sockets.get(number)
        if socket is not None:
            socket.has_session_elsewhere = is_bound
            if is_bound:
                self.on_bound(socket)
                self._entering.add(socket)

    def _hang_up(self, number: int, _: bytes) -> None:
        socket = self._sockets.get(number)
        if socket is not None:
            socket.end_elsewhere()
