"""The home of forwarded exchanges: handles what a door sends, and answers over the link."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.bayeux.wire.receipts import Receipt, Taken
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.messages.message import Event
from holdfast.web.forwarding.far_socket import FarSocket
from holdfast.web.forwarding.frames import (
    TRANSPORTS,
    FrameUnreadable,
    Kind,
    Reply,
    Request,
    unpack_numbers,
)
from holdfast.web.forwarding.replies import Replies
from holdfast.web.forwarding.shard_link import Handlers, Link
from holdfast.web.forwarding.sinks import LinkSink
from holdfast.web.forwarding.speakers import KnownSpeakers
from holdfast.web.request_sink import RequestSink
from holdfast.web.write_coalescer import WriteCoalescer


class FarCarrier:
    """The way back to a client whose connection the door has: for one exchange over HTTP."""

    __slots__ = ("_home", "_number", "connection_type", "is_ended")

    def __init__(self, home: "Home", number: int, connection_type: ConnectionType) -> None:
        self.connection_type = connection_type
        self.is_ended = False
        self._home = home
        self._number = number

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> Taken:
        if self.is_ended or not self._home.link.is_open:
            return False
        self.is_ended = True
        return self._home.answer(self._number, exchange, messages)

    def is_draining(self) -> bool:
        return False

    def has_unread(self) -> bool:
        return False

    def is_lost(self) -> bool:
        return self.is_ended or not self._home.link.is_open


class Home:
    """Handles the exchanges of one door.

    Like all replies of this process, its replies leave when the process may speak to clients.
    """

    def __init__(
        self,
        scheduler: RequestSink,
        coalescer: WriteCoalescer,
        clock: Callable[[], float],
        messages_per_frame: int,
    ) -> None:
        self._speakers = KnownSpeakers()
        handlers: Handlers = {
            Kind.SPEAKER: self._speakers.learn,
            Kind.EXCHANGE: self._begin,
            Kind.ENDED: self._abort,
            Kind.TAKEN: partial(self._receipts_came, True),
            Kind.NOT_TAKEN: partial(self._receipts_came, False),
            Kind.WRITTEN: partial(self._writes_came, True),
            Kind.NOT_WRITTEN: partial(self._writes_came, False),
            Kind.CLOSED: self._close,
            Kind.FULL: partial(self._fill, True),
            Kind.DRAINED: partial(self._fill, False),
        }
        self.link = Link(handlers, self._lost, self._resumed)
        self._replies = Replies(self.link, scheduler, coalescer, messages_per_frame)
        self._scheduler, self._coalescer = scheduler, coalescer
        self._clock = clock
        self._answers = LinkSink(self.link, self.link.send)
        # Exchanges without a reply, and replies without a receipt.
        self._exchanges: dict[int, Exchange] = {}
        self._receipts: dict[int, Receipt] = {}
        self._sockets: dict[int, FarSocket] = {}

    # What the door sends

    def _begin(self, number: int, data: bytes) -> None:
        request = Request.unpack(data)
        speaker = self._speakers.at(request.place)
        if request.socket:
            socket = self._sockets.get(request.socket)
            if socket is None:
                socket = self._sockets[request.socket] = FarSocket(
                    self._replies, request.socket, speaker
                )
            socket.hear(number, request.body)
            return
        if request.transport >= len(TRANSPORTS):
            raise FrameUnreadable(f"transport {request.transport}")
        carrier = FarCarrier(self, number, TRANSPORTS[request.transport])
        exchange = self._exchanges[number] = Exchange(carrier, speaker)
        self._replies.handle(exchange, request.body, partial(self._done, number))

    def _done(self, number: int, refused: RequestRefused | None) -> None:
        if refused is not None and self._exchanges.pop(number, None) is not None:
            self._replies.refuse(number, refused)

    def _abort(self, number: int, _: bytes) -> None:
        exchange = self._exchanges.pop(number, None)
        if exchange is not None:
            self._end(exchange)

    def _end(self, exchange: Exchange) -> None:
        cast("FarCarrier", exchange.carrier).is_ended = True
        self._scheduler.abort(exchange)

    def _receipts_came(self, is_taken: bool, _: int, data: bytes) -> None:
        now = self._clock()
        for number in unpack_numbers(data):
            receipt = self._receipts.pop(number, None)
            if receipt is not None:
                receipt.arrive(is_taken=is_taken, now=now)

    def _writes_came(self, is_taken: bool, _: int, data: bytes) -> None:
        now = self._clock()
        for number in unpack_numbers(data):
            if (socket := self._sockets.get(number)) is not None:
                socket.receipt_came(is_taken=is_taken, now=now)

    def _close(self, number: int, _: bytes) -> None:
        socket = self._sockets.pop(number, None)
        if socket is not None:
            self._leave(socket)

    def _leave(self, socket: FarSocket) -> None:
        socket.leave(self._clock())
        self._scheduler.detach(socket)

    def _fill(self, is_full: bool, number: int, _: bytes) -> None:
        socket = self._sockets.get(number)
        if socket is not None:
            socket.is_full = is_full
            if not is_full:
                self._scheduler.drained(socket)

    # What the door gets

    def answer(self, number: int, exchange: Exchange, messages: Sequence[Event]) -> Taken:
        """Send a reply. Returns a receipt if messages travel with it."""
        self._exchanges.pop(number, None)
        elements = exchange.body_with(messages)[1:-1]
        reply = Reply(exchange.is_superseded, bool(messages), exchange.new_browser or "", elements)
        self._coalescer.write(self._answers, reply.pack(number))
        if not messages:
            return True
        receipt = self._receipts[number] = Receipt()
        return receipt

    # The link

    def _resumed(self) -> None:
        for socket in [*self._sockets.values()]:
            self._scheduler.drained(socket)

    def _lost(self) -> None:
        """The door has gone, with all its connections: what it did not confirm waits again."""
        now = self._clock()
        receipts, self._receipts = self._receipts, {}
        for receipt in receipts.values():
            receipt.arrive(is_taken=False, now=now)
        sockets, self._sockets = self._sockets, {}
        for socket in sockets.values():
            self._leave(socket)
        exchanges, self._exchanges = self._exchanges, {}
        for exchange in exchanges.values():
            self._end(exchange)
