"""A WebSocket whose connection another process has."""

from collections import deque
from collections.abc import Sequence
from functools import partial

from holdfast.bayeux.session import Exchange, Session
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.bayeux.wire.receipts import Receipt, Taken
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.messages.message import Event
from holdfast.web.forwarding.frames import Kind, pack
from holdfast.web.forwarding.replies import Replies
from holdfast.web.forwarding.sinks import LinkSink
from holdfast.web.websockets.socket_frames import answer_frames, frames_of


class FarSocket:
    """The carrier of its exchanges and the pipe of its session, as a socket of this process is."""

    connection_type = ConnectionType.WEBSOCKET

    def __init__(self, replies: Replies, number: int, speaker: Speaker) -> None:
        self.speaker = speaker
        # Whether the client does not read as fast as this process writes.
        self.is_full = False
        self._replies = replies
        self._number = number
        self._session: Session | None = None
        # Whether the door knows that a living session has it.
        self._is_bound = False
        self._sink = LinkSink(replies.link, partial(replies.write, number))
        # Of writes that are not confirmed, oldest first; None for those without messages.
        self._receipts: deque[Receipt | None] = deque()
        # Messages of the client that wait for the one that is being handled.
        self._waiting: deque[tuple[int, bytes]] = deque()
        # Those that have no reply yet. What waits for the store, or for other shards, is handled.
        self._unanswered: set[Exchange] = set()
        self._is_handling = self._is_closed = False

    @property
    def session(self) -> Session | None:
        return self._session

    @session.setter
    def session(self, session: Session | None) -> None:
        self._session = session
        self._tell_bound(session is not None)

    def _tell_bound(self, is_bound: bool) -> None:
        if is_bound is not self._is_bound:
            self._is_bound = is_bound
            self._replies.link.send(pack(Kind.BOUND if is_bound else Kind.UNBOUND, self._number))

    # From the client

    def hear(self, number: int, body: bytes) -> None:
        """Handle a message after all earlier ones."""
        self._waiting.append((number, body))
        self._go_on()

    def _go_on(self) -> None:
        while self._waiting and not self._is_handling and not self._is_closed:
            number, body = self._waiting.popleft()
            exchange = Exchange(self, self.speaker, self)
            self._unanswered.add(exchange)
            self._is_handling = True
            if self._replies.handle(exchange, body, partial(self._done, number, exchange)):
                self._is_handling = False
                self._replies.link.send(pack(Kind.DONE, number))

    def _done(self, number: int, exchange: Exchange, refused: RequestRefused | None) -> None:
        self._is_handling = False
        if refused is None:
            self._replies.link.send(pack(Kind.DONE, number))
        else:
            self._replies.refuse(number, refused)
            self._is_answered(exchange)
        self._go_on()

    @property
    def owes_replies(self) -> bool:
        """Whether the client waits for any reply."""
        return bool(self._unanswered)

    def _is_answered(self, exchange: Exchange) -> None:
        self._unanswered.discard(exchange)
        self._replies.on_answered()

    # To the client

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> Taken:
        is_taken: Taken = False
        # If it is superseded, the client has sent another connect, and waits for that reply.
        if not exchange.is_superseded:
            frames = answer_frames(exchange, messages, self._replies.messages_per_frame)
            is_taken = self._write(frames, has_messages=bool(messages))
        self._is_answered(exchange)
        return is_taken

    def push(self, messages: Sequence[Event]) -> Taken:
        return self._write(frames_of(messages, self._replies.messages_per_frame), has_messages=True)

    def _write(self, frames: bytes, *, has_messages: bool) -> Taken:
        if self.is_lost():
            return False
        if self._session is not None and self._session.is_gone:
            # With the reply that says so.
            self._tell_bound(False)
        self._replies.coalescer.pass_on(self._sink, frames)
        receipt = Receipt() if has_messages else None
        self._receipts.append(receipt)
        return receipt or True

    def receipt_came(self, *, is_taken: bool, now: float) -> None:
        """Learn whether the client's transport took the oldest write without a receipt."""
        if self._receipts and (receipt := self._receipts.popleft()) is not None:
            receipt.arrive(is_taken=is_taken, now=now)

    def is_draining(self) -> bool:
        return self.is_full or self._replies.link.is_full

    def has_unread(self) -> bool:
        return bool(self._waiting)

    def is_lost(self) -> bool:
        return self._is_closed or not self._replies.link.is_open

    def end(self) -> None:
        self._is_bound = False
        self._replies.link.send(pack(Kind.HANG_UP, self._number))

    def leave(self, now: float) -> None:
        """The connection is lost, with what was not confirmed."""
        self._is_closed = True
        self._waiting.clear()
        while self._receipts:
            self.receipt_came(is_taken=False, now=now)
