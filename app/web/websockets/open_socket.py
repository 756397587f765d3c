"""One open WebSocket: it carries everything of a session in both directions."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING

from aiohttp import WSCloseCode, web

from holdfast.bayeux.session import Exchange
from holdfast.bayeux.wire.caller import Speaker
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.bayeux.wire.transports import ConnectionType
from holdfast.delivery.basics.notices import CLOSED
from holdfast.delivery.messages.message import Event
from holdfast.web.answering.endpoint import Endpoint
from holdfast.web.websockets.socket_frames import answer_frames, frames_of

if TYPE_CHECKING:
    from holdfast.bayeux.session import Session

# How long a client may take to close its socket after its session has ended.
_GOODBYE_S = 1.0


def _knows_none() -> bool:
    return False


async def _nothing(*_: object) -> None:
    """Do what remains to be done at a lost connection."""


class _Lost:
    """Stands for a connection that is lost."""

    transport = None
    writing_paused = False


_LOST = _Lost()


class Socket:
    """One open socket: carrier of its exchanges, pipe of its session.

    Frames are written directly to the transport. aiohttp opens, reads and closes the socket.
    """

    __slots__ = (
        "_bayeux",
        "_begun",
        "_clock",
        "_coalescer",
        "_draining",
        "_ending",
        "_flush",
        "_hang_up",
        "_has_unread",
        "_is_closed",
        "_loop",
        "_messages_per_frame",
        "_protocol",
        "_requests",
        "_unfinished",
        "expecting",
        "has_session_elsewhere",
        "heard",
        "session",
        "shard",
        "speaker",
    )

    connection_type = ConnectionType.WEBSOCKET

    def __init__(
        self,
        request: web.Request,
        endpoint: Endpoint,
        speaker: Speaker,
        *,
        flush: Callable[[], Awaitable[None]],
        hang_up: Callable[["Socket", int, str], Awaitable[object]],
    ) -> None:
        self.speaker = speaker
        self.session: Session | None = None
        # Whether a living session of another process uses it; and the shard of the last that did.
        self.has_session_elsewhere = False
        self.shard = 0
        self._clock, self._requests = endpoint.clock, endpoint.requests
        # When it was opened, or last received a message of a living session.
        self.heard = self._clock()
        # Python asks the kernel for its process id whenever it looks up the running loop.
        self._loop = asyncio.get_running_loop()
        # Needed for every message, and two attribute lookups away in the request.
        self._protocol: web.RequestHandler | _Lost = request.protocol
        # Connections that only aiohttp reads do not know.
        self._has_unread: Callable[[], bool] = getattr(self._protocol, "has_unread", _knows_none)
        self._bayeux, self._coalescer = endpoint.bayeux, endpoint.coalescer
        self._messages_per_frame = endpoint.options.ws_messages_per_frame
        # Whether a close frame was sent, after which nothing may follow.
        self._is_closed = False
        self._flush = flush
        self._hang_up = hang_up
        # The outcome of a message that was taken and is unfinished.
        self._begun: asyncio.Future[RequestRefused | None] | None = None
        # The outcome of the last message that took more than a turn.
        self._unfinished: asyncio.Future[RequestRefused | None] | None = None
        self._draining: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        # Closes the socket if it names no session in time.
        self.expecting: asyncio.TimerHandle | None = None

    @property
    def connection(self) -> object:
        """The connection that it has."""
        return self._protocol

    def take(self, body: bytes) -> bool:
        """Handle a message at once. If it is unfinished, returns False, and `handle` must continue.

        Call it only while no other message is being handled.
        """
        if self.is_draining():
            return False
        self._begun = self._begin(body)
        return self._begun is None

    async def handle(self, body: bytes) -> RequestRefused | None:
        """Handle a message; returns when it is done, so the socket's messages stay in order."""
        begun, self._begun = self._begun, None
        outcome = begun or self._begin(body)
        if outcome is None:
            return None
        # The request continues even if this waiter is cancelled.
        refused = await asyncio.shield(outcome)
        self._note_heard()
        return refused

    def _begin(self, body: bytes) -> "asyncio.Future[RequestRefused | None] | None":
        """Handle a message as far as possible; returns its outcome, or None if it is done."""
        exchange = Exchange(self, self.speaker, self)
        rest = failed = None
        try:
            rest = self._requests.receive(body, exchange)
        except RequestRefused as refused:
            failed = refused
        except BaseException:
            failed = self._requests.fail(exchange)
        self._note_heard()
        if rest is None and failed is None:
            return None
        outcome: asyncio.Future[RequestRefused | None] = self._loop.create_future()
        if rest is None:
            outcome.set_result(failed)
        else:
            rest.done = outcome.set_result
            self._unfinished = outcome
        return outcome

    def _note_heard(self) -> None:
        session = self.session
        if self.has_session_elsewhere or (session is not None and not session.is_gone):
            self.heard = self._clock()

    def is_handling(self) -> bool:
        """Return whether a message is being handled, or its refusal will close the socket."""
        outcome = self._unfinished
        return self._begun is not None or (
            outcome is not None and (not outcome.done() or outcome.result() is not None)
        )

    def is_busy(self) -> bool:
        """Return whether the client has sent data that is not handled yet."""
        outcome = self._unfinished
        return (outcome is not None and not outcome.done()) or self.has_unread()

    def is_idle(self, *, since: float) -> bool:
        """Return whether no living session has sent a message since then."""
        return self.heard < since and not self.is_busy()

    def answer(self, exchange: Exchange, messages: Sequence[Event]) -> bool:
        if exchange.is_superseded:
            # The client no longer waits for this reply: it has sent another connect since.
            return False
        return self.write(answer_frames(exchange, messages, self._messages_per_frame))

    def push(self, messages: Sequence[Event]) -> bool:
        return self.write(frames_of(messages, self._messages_per_frame))

    def is_draining(self) -> bool:
        if not self._protocol.writing_paused or self._protocol.transport is None:
            return False
        if self._draining is None:
            # The caller relies on being notified when the transport has drained.
            self._draining = self._loop.create_task(self._drain())
        return True

    def has_unread(self) -> bool:
        return self._has_unread()

    def is_lost(self) -> bool:
        transport = self._protocol.transport
        return self._is_closed or transport is None or transport.is_closing()

    async def drained(self) -> None:
        """Wait until the client has read enough or is gone."""
        if self._draining is not None:
            await self._draining

    def note_close(self, code: int, reason: str) -> None:
        """Log that the server closes the socket."""
        key = "(none)" if self.session is None else self.session.key
        self._bayeux.state.notices.report(CLOSED, key, f"{code:d}: {reason}")

    def end(self) -> None:
        # A cometd.js whose first connect crossed this close would keep its socket forever.
        if self.session is None:
            return
        self._end_by(self._end(self.session))

    def _end_by(self, ending: Coroutine[None, None, None]) -> None:
        if self._ending is not None:
            # An earlier session of this socket has ended, too.
            self._ending.cancel()
        self._ending = self._loop.create_task(ending)

    # A session of another process

    @property
    def has_session(self) -> bool:
        """Whether it has named a session, of this process or another."""
        return self.session is not None or self.has_session_elsewhere

    def end_elsewhere(self) -> None:
        """Close the connection of a session that has ended in another process."""
        self.has_session_elsewhere = False
        self._end_by(self._end(None))

    def restart(self) -> None:
        """Close the connection, because the process that has its session has gone."""
        self._end_by(self._close(WSCloseCode.SERVICE_RESTART, "the server restarts"))

    async def _close(self, code: int, reason: str) -> None:
        self._ending = None
        await self._hang_up(self, code, reason)

    def close(self) -> None:
        """Stop sending."""
        self._is_closed = True

    def leave(self) -> None:
        """Stop waiting, and let go of the connection, because it is lost.

        The session remembers this carrier until it has another. What was read of an unfinished
        message may be large, and the intake no longer counts it.
        """
        for waiting in (self._draining, self._ending, self.expecting):
            if waiting is not None:
                waiting.cancel()
        self._is_closed = True
        self._protocol = _LOST
        self._has_unread = _knows_none
        self._flush = self._hang_up = _nothing

    async def _end(self, session: "Session | None") -> None:
        await asyncio.sleep(_GOODBYE_S)
        if self.session is session and not self.has_session_elsewhere:
            await self._close(WSCloseCode.OK, "the session is over")
        else:
            self._ending = None

    async def _drain(self) -> None:
        try:
            await self._flush()
        except ConnectionError:
            return
        finally:
            self._draining = None
        self._requests.drained(self)

    def write(self, frames: bytes) -> bool:
        """Send frames. False means that the connection is closing and nothing was taken."""
        transport = self._protocol.transport
        if self._is_closed or transport is None or transport.is_closing():
            return False
        self._coalescer.write(transport, frames)
        return True
