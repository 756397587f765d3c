"""The home of forwarded exchanges: handles what a door sends, and answers over the link."""

from collections.abc import Sequence
from functools import partial
from typing import Final, cast

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.bayeux.wire.receipts import Receipt, Taken
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.messages.message import Event
from holdfast.web.forwarding.asks import Asked, AsksIn
from holdfast.web.forwarding.facts import FactsAsked, FactsIn
from holdfast.web.forwarding.far_socket import FarSocket
from holdfast.web.forwarding.frames import (
    TRANSPORTS,
    FrameUnreadable,
    Kind,
    pack,
    pack_reply,
    unpack_numbers,
    unpack_request,
)
from holdfast.web.forwarding.given_replies import MOST_GIVEN
from holdfast.web.forwarding.hello import NO_SHARD
from holdfast.web.forwarding.home_core import HomeCore
from holdfast.web.forwarding.parking import RETRY_S
from holdfast.web.forwarding.passages import Inlet, PassageIn
from holdfast.web.forwarding.replies import Replies
from holdfast.web.forwarding.shard_link import Handlers, Link
from holdfast.web.forwarding.sinks import LinkSink
from holdfast.web.forwarding.speakers import KnownSpeakers
from holdfast.web.scheduling.request_sink import RequestSink
from holdfast.web.scheduling.write_coalescer import WriteCoalescer

# What the coalescer gets in place of all answers of a turn.
_ANSWERS: Final = b"answers"


class FarCarrier:
    """The way back to a client whose connection the door has: for one exchange over HTTP."""

    __slots__ = ("_home", "_number", "connection_type", "has_lost", "is_ended")

    def __init__(self, home: "Home", number: int, connection_type: ConnectionType) -> None:
        self.connection_type = connection_type
        # Whether it has been answered, or needs no answer.
        self.is_ended = False
        # Whether its connection is lost.
        self.has_lost = False
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
        return self.has_lost or not self._home.link.is_open


class Home:
    """Handles the exchanges of one door.

    Like all replies of this process, its replies leave when the process may speak to clients.

    Args:
        inlet: What takes messages of the door's shard.
        asked: What answers that shard's questions.
        facts: What answers that shard about facts.
    """

    # Whether the door is on another host.
    is_abroad = False

    def __init__(
        self,
        scheduler: RequestSink,
        coalescer: WriteCoalescer,
        core: HomeCore,
        messages_per_frame: int,
        asked: Asked,
        inlet: Inlet | None = None,
        facts: FactsAsked | None = None,
    ) -> None:
        self._core = core
        self._speakers = KnownSpeakers()
        # Whether the door has said that no exchange follows.
        self.is_quiet = False
        # The way of messages from that shard.
        self.passage = None if inlet is None else PassageIn(inlet)
        self.facts = None if facts is None else FactsIn(facts)
        self._asks = AsksIn(asked)
        handlers: Handlers = {
            **self._asks.handlers,
            **({} if self.passage is None else self.passage.handlers),
            **({} if self.facts is None else self.facts.handlers),
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
            Kind.LOST: self._lose,
            Kind.NEWCOMER: self._welcome,
            Kind.PAUSED: self._rest,
            Kind.SETTLE: self._settle,
        }
        self.link = Link(handlers, self._lost, self._resumed)
        self._replies = Replies(self.link, scheduler, coalescer, messages_per_frame)
        self._scheduler, self._coalescer = scheduler, coalescer
        self._clock = core.clock
        # Answers of this turn, which leave together.
        self._answers: list[bytes] = []
        self._answering = LinkSink(self.link, self._send_answers)
        # Exchanges without a reply, and replies without a receipt.
        self._exchanges: dict[int, Exchange] = {}
        self._receipts: dict[int, Receipt] = {}
        self._sockets: dict[int, FarSocket] = {}
        # Whether the door waits until its sockets have all replies.
        self._is_settling = False
        self._replies.on_answered = self._say_settled
        # Carriers of the latest replies with messages, which their sessions remember.
        self._answered: dict[int, FarCarrier] = {}

    @property
    def is_settled(self) -> bool:
        """Whether all exchanges over HTTP are answered."""
        return not self._exchanges

    def begin(self, shard: int) -> None:
        """Serve the door of this shard, or one without a shard."""
        self._asks.begin(self.link)
        if shard == NO_SHARD:
            # Nothing comes from it but what clients send.
            return
        if self.passage is not None:
            self.passage.begin(self.link, shard)
        if self.facts is not None:
            self.facts.begin(self.link, shard)

    # What the door sends

    def _begin(self, number: int, data: bytes) -> None:
        self.is_quiet = False
        if self._core.is_still:
            # What is handled now would be lost.
            self._replies.refuse(number, RequestRefused(ErrorReply.SERVER_BUSY, wait_s=RETRY_S))
            return
        place, transport, socket, body = unpack_request(data)
        speaker = self._speakers.at(place)
        if socket:
            self._socket(socket, speaker).hear(number, body)
            return
        if transport >= len(TRANSPORTS):
            raise FrameUnreadable(f"transport {transport}")
        carrier = FarCarrier(self, number, TRANSPORTS[transport])
        exchange = self._exchanges[number] = Exchange(carrier, speaker)
        self._replies.handle(exchange, body, partial(self._done, number))

    def _socket(self, number: int, speaker: Speaker) -> FarSocket:
        socket = self._sockets.get(number)
        if socket is None:
            socket = self._sockets[number] = FarSocket(self._replies, number, speaker)
        return socket

    def _done(self, number: int, refused: RequestRefused | None) -> None:
        if refused is not None and self._exchanges.pop(number, None) is not None:
            self._replies.refuse(number, refused)

    def _abort(self, number: int, _: bytes) -> None:
        exchange = self._exchanges.pop(number, None)
        if exchange is not None:
            self._end(exchange)

    def _end(self, exchange: Exchange) -> None:
        carrier = cast("FarCarrier", exchange.carrier)
        carrier.is_ended = carrier.has_lost = True
        self._scheduler.abort(exchange)

    def _lose(self, number: int, _: bytes) -> None:
        carrier = self._answered.pop(number, None)
        if carrier is not None:
            carrier.has_lost = True

    def _welcome(self, age_ms: int, data: bytes) -> None:
        self._core.welcome(data.decode(errors="replace"), age_ms / 1000)

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
            self._say_settled()

    def _leave(self, socket: FarSocket) -> None:
        socket.leave(self._clock())
        self._scheduler.detach(socket)

    def _fill(self, is_full: bool, number: int, _: bytes) -> None:
        socket = self._sockets.get(number)
        if socket is not None:
            socket.is_full = is_full
            if not is_full:
                self._scheduler.drained(socket)

    # Leaving

    def pause(self) -> None:
        """Ask the door for no more exchanges, which another process will take."""
        self.link.send(pack(Kind.PAUSE, 0))

    @property
    def is_held(self) -> bool:
        """Whether no messages come."""
        return self.passage is None or self.passage.is_held

    def resume(self) -> None:
        """Take exchanges again, because no other process does."""
        self.link.send(pack(Kind.RESUME, 0))

    def _rest(self, _: int, __: bytes) -> None:
        self.is_quiet = True

    def _settle(self, _: int, __: bytes) -> None:
        """Answer held connects, and say so when sockets have all replies."""
        for exchange in [*self._exchanges.values()]:
            self._core.release(exchange)
        for socket in self._sockets.values():
            held = None if socket.session is None else socket.session.held_connect
            if held is not None and held.pipe is socket:
                self._core.release(held)
        self._is_settling = True
        self._say_settled()

    def _say_settled(self) -> None:
        if self._is_settling and not any(each.owes_replies for each in self._sockets.values()):
            self._is_settling = False
            # After these answers.
            self._coalescer.pass_on(LinkSink(self.link, self.link.send), pack(Kind.SETTLED, 0))

    # What the door gets

    def answer(self, number: int, exchange: Exchange, messages: Sequence[Event]) -> Taken:
        """Send a reply. Returns a receipt if messages travel with it."""
        self._exchanges.pop(number, None)
        reply = pack_reply(
            number,
            exchange.body_with(messages)[1:-1],
            exchange.new_browser or "",
            is_superseded=exchange.is_superseded,
            wants_receipt=bool(messages),
        )
        self._answers.append(reply)
        if len(self._answers) == 1:
            self._coalescer.pass_on(self._answering, _ANSWERS)
        if not messages:
            return True
        self._answered[number] = cast("FarCarrier", exchange.carrier)
        if len(self._answered) > MOST_GIVEN:
            del self._answered[next(iter(self._answered))]
        receipt = self._receipts[number] = Receipt()
        return receipt

    def _send_answers(self, _: bytes) -> None:
        answers, self._answers = self._answers, []
        self.link.send(b"".join(answers))
        self.link.flush()

    # The link

    def _resumed(self) -> None:
        for socket in [*self._sockets.values()]:
            self._scheduler.drained(socket)

    def _lost(self) -> None:
        """The door has gone, with all its connections: what it did not confirm waits again."""
        self._asks.lost()
        if self.passage is not None:
            self.passage.lost()
        if self.facts is not None:
            self.facts.lost()
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
