"""Schedules requests over several turns of the event loop.

Decoding a request cannot be interrupted, and many may arrive in one turn. When the turn budget is
spent, requests wait as bytes for a later turn, one per connection. Small ones wait only for the
first steps of each other: they overtake requests that continue from earlier turns.

After a long turn, other requests get as much time before the next large one continues: large
requests take at most half of the time.
"""

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import thread_time

from holdfast.bayeux.exchanges import RemainingMessages, SalvagedRequest, receive
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Exchange, Pipe, held_by
from holdfast.bayeux.wire.errors import ErrorReply, RequestRefused
from holdfast.delivery.basics.ignoring import ignore
from holdfast.web.http.cookies import DEFAULT_NAME
from holdfast.web.http.lone_requests import is_lone_connect, is_patient
from holdfast.web.http.request_kinds import RequestKind
from holdfast.web.scheduling.beginnings import Beginnings
from holdfast.web.scheduling.client_lines import ClientLines, clients_of
from holdfast.web.scheduling.intake import SMALL, Intake, UnreadRequests
from holdfast.web.scheduling.speaking import SpeakingRight
from holdfast.web.scheduling.turn_budget import Turn

log = logging.getLogger(__name__)

# Requests from earlier turns get this share of each turn. This much is handled early, while other
# connections are not read yet.
_SHARE_S, _EARLY_S = 0.003, 0.001
# A step that takes longer than this has overrun its turn.
_LONG_S = 0.007
# Decoded requests take many times the memory of their bytes. This limits large ones.
_MOST_LARGE = 16
# During a silence, requests of clients that have left are dropped once this many wait.
_MANY = 1000

# Called when a request has been handled, with the refusal if it failed.
Done = Callable[[RequestRefused | None], None]


@dataclass
class UnfinishedRequest:
    """A request that is not completely handled yet."""

    exchange: Exchange
    # Bytes that it uses of the intake; 0 if it is small.
    size: int
    body: bytes = b""
    # Set once its decoding has begun.
    rest: RemainingMessages | SalvagedRequest | None = None
    # Called at the end, but never in the turn in which the request arrived.
    done: Done = ignore

    @property
    def is_read(self) -> bool:
        """Whether it is known which session the request belongs to."""
        return self.rest is not None and self.rest.is_read


class RequestScheduler:
    """Handles requests at once if there is time, otherwise in later turns in order of arrival.

    Small requests of one client keep this order even if there is time again: it may publish over
    several connections.

    A connection passes one request at a time, and the next when that is done, so the limit of
    connections also limits how many wait.
    """

    def __init__(
        self,
        bayeux: Bayeux,
        clock: Callable[[], float],
        intake: Intake,
        turn: Turn,
        unread: UnreadRequests,
        right: SpeakingRight,
        cookie: str = DEFAULT_NAME,
    ) -> None:
        self._bayeux = bayeux
        self._clock = clock
        self._intake = intake
        self._turn = turn
        # While this process must not speak, all requests wait.
        self._right = right
        self._unread, self._unheard = unread.requests, unread.deferred
        self.lines = ClientLines(clock, turn, unread.in_line, cookie)
        # The core's handling of a body. Tests replace it.
        self.handle = receive
        # How many bytes of requests were received.
        self.received = 0
        # Requests that are not decoded: small ones, and large ones.
        self._small: deque[UnfinishedRequest] = deque()
        # Small requests with only a connect. They may bring much with their replies, and can wait.
        self._connects: deque[UnfinishedRequest] = deque()
        self._waiting: deque[UnfinishedRequest] = deque()
        # How many small requests of each client wait.
        self._clients: Counter[str | bytes] = Counter()
        # Requests of the aiohttp front end. A question need not wait for a thousand uploads.
        self._beginnings = {kind: Beginnings() for kind in RequestKind}
        # At how many waiting requests to look again, during a silence, for clients that have left.
        self._look_at = _MANY
        # Decoded requests, handled in rotation.
        self._going: deque[UnfinishedRequest] = deque()
        self._large = 0
        self._is_due = False
        # Other requests are compensated for a long step. Until it fires, no large request
        # continues.
        self._pause: asyncio.TimerHandle | None = None

    async def wait_for_turn(self, kind: RequestKind) -> None:
        """Wait until there is time for a request of the aiohttp front end."""
        beginnings = self._beginnings[kind]
        # Always ask, because the first call in a turn starts the budget.
        is_over = self._bayeux.state.is_turn_over()
        is_silent = self._right.is_silent
        if is_silent or (beginnings.waiting if not is_over else not beginnings.begins_at_once()):
            self._go_on_soon()
            await beginnings.wait()

    async def next_reader(self) -> None:
        """Wait until there is time for a reader of a history that has waited for a message."""
        await self.wait_for_turn(RequestKind.WOKEN)

    def receive(self, body: bytes, exchange: Exchange) -> UnfinishedRequest | None:
        """Handle a request. Returns it if it is unfinished; it then continues by itself.

        Raises `RequestRefused`, without effects, if the body does not contain messages or there is
        no room.
        """
        self.received += len(body)
        if len(body) > SMALL:
            return self._receive_large(body, exchange)
        # Always call it, because the first call in a turn starts the budget.
        is_late = self._turn.is_late() or self._right.is_silent
        if is_late and self._turn.is_overdue():
            self._answer_early()
        if is_late or self._small or self._connects:
            is_connect = is_lone_connect(body)
            if is_late or self._follows_others(exchange, body, is_connect=is_connect):
                return self._let_wait(body, exchange, is_connect=is_connect)
        rest = self.handle(self._bayeux, body, exchange, self._clock())
        return None if rest is None else self._go_on_with(UnfinishedRequest(exchange, 0, rest=rest))

    def _answer_early(self) -> None:
        """Answer before everything is read, which takes long if thousands send at the same time.

        All other work waits for the end of the turn, so that connections not read yet do not wait
        for it.
        """
        if self._right.is_silent:
            return
        self._turn.begin_anew(_EARLY_S)
        self._turn.is_spent()
        self._begin_small(connects=False)
        self._turn.send()
        # Other data read in this turn waits as before.
        self._turn.begin_late()

    def _let_wait(self, body: bytes, exchange: Exchange, *, is_connect: bool) -> UnfinishedRequest:
        if self._right.is_silent and len(self._small) + len(self._connects) >= self._look_at:
            self._drop_lost()
        request = UnfinishedRequest(exchange, 0, body)
        self._unread[exchange] = self._clock()
        self._put(self._connects if is_connect else self._small, request)
        self._go_on_soon()
        return request

    def _drop_lost(self) -> None:
        """Drop small requests whose clients have left, none of which was answered.

        A silence may be long, and its clients try again every few seconds.
        """
        for queue in (self._small, self._connects):
            for _ in range(len(queue)):
                request = self._next_of(queue)
                if request.exchange.is_lost:
                    del self._unread[request.exchange]
                    request.done(None)
                else:
                    self._put(queue, request)
        self._look_at = max(_MANY, 2 * (len(self._small) + len(self._connects)))

    def _put(self, small: deque[UnfinishedRequest], request: UnfinishedRequest) -> None:
        small.append(request)
        for client in clients_of(request.exchange, request.body):
            self._clients[client] += 1

    def _receive_large(self, body: bytes, exchange: Exchange) -> UnfinishedRequest | None:
        request = UnfinishedRequest(exchange, len(body), body)
        self._intake.take(request.size, exchange.speaker.caller.network)
        # Always call it, because the first call in a turn starts the budget.
        is_turn_over = self._bayeux.state.is_turn_over() or self._pause is not None
        if is_turn_over or self._right.is_silent or self._waiting or self._large == _MOST_LARGE:
            self._unread[exchange] = self._clock()
            self._waiting.append(request)
            self._go_on_soon()
            return request
        self._large += 1
        is_over = True
        try:
            is_over = self._is_over(request)
        finally:
            if is_over:
                self._leave(request)
        return None if is_over else self._go_on_with(request)

    @property
    def is_behind(self) -> bool:
        """Whether some bytes wait that are else read at once, because others have had to wait."""
        return self._turn.is_behind or bool(self._unheard) or len(self.lines) > 0

    def can_wait(self, data: bytes) -> bool:
        """Return whether bytes of a connection may be read in a later turn, if this one is behind.

        Reading all that thousands of clients send takes longer than others may wait. Connects can
        wait, and cause most of the work; so can handshakes, before which a client does nothing,
        and disconnects, after which it does nothing.
        """
        is_behind = self._turn.is_behind or self._unheard
        return len(data) <= SMALL and bool(is_behind) and is_patient(data)

    def read_later(self, read: Callable[[], None]) -> None:
        """Let a connection read in a later turn the data that it deferred."""
        self._unheard.append((self._clock(), read))
        self._go_on_soon()
        if not self._turn.is_behind:
            # Others still wait from an earlier turn.
            self._turn.begin_late()
        else:
            self.answer_if_overdue()

    def answer_if_overdue(self) -> None:
        """Answer others before everything is read if this takes long."""
        if self._turn.is_overdue():
            self._answer_early()

    def _go_on_with(self, request: UnfinishedRequest) -> UnfinishedRequest:
        if not request.is_read:
            self._unread[request.exchange] = self._clock()
        self._put_back(request)
        self._go_on_soon()
        return request

    def _put_back(self, request: UnfinishedRequest) -> None:
        """Let a request go on in a later turn; if its session waits for the backend, after that."""
        held = held_by(request.exchange)
        if held is None:
            self._going.append(request)
            return
        request.exchange.held_since = request.exchange.held_since or self._clock()
        # Others need not wait for it.
        self._large -= bool(request.size)
        held.then(partial(self._take_up, request))

    def _take_up(self, request: UnfinishedRequest) -> None:
        self._large += bool(request.size)
        self._going.append(request)
        self._go_on_soon()

    @property
    def is_busy(self) -> bool:
        """Whether requests wait for a later turn."""
        are_beginning = any(each.waiting for each in self._beginnings.values())
        is_going_on = self._has_small() or self._going or self._waiting
        return bool(is_going_on or are_beginning or len(self.lines))

    def _has_small(self) -> bool:
        return bool(self._small or self._connects or self._unheard)

    def fail(self, exchange: Exchange) -> RequestRefused:
        """Abort an exchange after a server fault; call in `except`. Returns what to send."""
        log.exception("a request failed")
        self.abort(exchange)
        return RequestRefused(ErrorReply.SERVER_BUSY)

    def abort(self, exchange: Exchange) -> None:
        """Drop an exchange whose connection is lost."""
        self._bayeux.abort(exchange, self._clock())

    def detach(self, pipe: Pipe) -> None:
        """Detach a lost socket from its session."""
        self._bayeux.life.detach(pipe, self._clock())

    def drained(self, pipe: Pipe) -> None:
        """Let a socket that takes bytes again get more."""
        self._bayeux.life.drained(pipe)

    def _go_on_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            if self._right.is_silent:
                self._right.when_speaking(self._schedule)
            else:
                self._schedule()

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        # Data read in this turn is answered at its end, one callback after the next.
        loop.call_soon(loop.call_soon, self._go_on)

    def _go_on(self) -> None:
        """Handle small requests, then steps of others in rotation, until the budget is spent.

        It handles at least one of each, so that neither kind waits forever.
        """
        self._is_due = False
        if self._right.is_silent:
            self._go_on_soon()
            return
        self._turn.begin_anew(_SHARE_S)
        # The time of a turn starts with the first question.
        self._turn.is_spent()
        for each in self._beginnings.values():
            each.let_begin()
        begun = len(self._going) + len(self._waiting)
        self._begin_small(connects=True)
        if begun:
            # Clients with small requests need not wait for a step of a long one.
            self._turn.send()
        has_next = self._handle_until_over(self._next, begun)
        # Connections that are read next must not suffer for these.
        self._turn.begin_anew()
        are_beginning = any(map(len, self._beginnings.values()))
        has_others = has_next and bool(self._going or self._waiting)
        if self._has_small() or are_beginning or has_others:
            self._go_on_soon()

    def _begin_small(self, *, connects: bool) -> None:
        """Handle the first steps of small requests. The rest takes turns with others."""
        self._turn.is_hurried = True
        try:
            self._handle_until_over(partial(self._next_of, self._small), len(self._small))
            if connects:
                self._begin_connects()
        finally:
            self._turn.is_hurried = False

    def _begin_connects(self) -> None:
        if self._unheard:
            # Many come back: others need not wait for the replies that their connects bring.
            self._turn.send()
        self._handle_until_over(partial(self._next_of, self._connects), len(self._connects))
        self._let_read()

    def _let_read(self) -> None:
        """Let connections read data that arrived too late in an earlier turn; at least one."""
        for _ in range(len(self._unheard)):
            _, read = self._unheard.popleft()
            read()
            if self._turn.is_spent():
                break

    def _handle_until_over(self, take: Callable[[], UnfinishedRequest | None], most: int) -> bool:
        """Handle steps of up to `most` requests. Returns whether there were that many."""
        for _ in range(most):
            request = take()
            if request is None:
                return False
            if not self._handle_some(request):
                self._put_back(request)
            if self._turn.is_spent():
                break
        return True

    def _follows_others(self, exchange: Exchange, body: bytes, *, is_connect: bool) -> bool:
        """Return whether an earlier request of the same client waits, or an earlier connect."""
        if is_connect and self._connects:
            return True
        return any(client in self._clients for client in clients_of(exchange, body))

    def _next_of(self, small: deque[UnfinishedRequest]) -> UnfinishedRequest:
        request = small.popleft()
        for client in clients_of(request.exchange, request.body):
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]
        return request

    def _next(self) -> UnfinishedRequest | None:
        """Return the next request; during a pause, not a large one."""
        if self._pause is None:
            if self._waiting and self._large < _MOST_LARGE:
                self._going.append(self._waiting.popleft())
                self._large += 1
            return self._going.popleft()
        for _ in range(len(self._going)):
            request = self._going.popleft()
            if not request.size:
                return request
            self._going.append(request)
        return None

    def _pause_for(self, pause_s: float) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._pause = asyncio.get_running_loop().call_later(pause_s, self._resume)

    def _resume(self) -> None:
        self._pause = None
        self._go_on_soon()

    def _handle_some(self, request: UnfinishedRequest) -> bool:
        """Handle a step. Returns whether the request is done."""
        failed = None
        try:
            if not self._is_over(request):
                if request.is_read:
                    self._unread.pop(request.exchange, None)
                return False
        except RequestRefused as refused:
            failed = refused
        except BaseException:
            failed = self.fail(request.exchange)
        self._unread.pop(request.exchange, None)
        self._leave(request)
        request.done(failed)
        return True

    def _leave(self, request: UnfinishedRequest) -> None:
        if request.size:
            self._large -= 1
            self._intake.give_back(request.size, request.exchange.speaker.caller.network)

    def _is_over(self, request: UnfinishedRequest) -> bool:
        if not request.size:
            return self._handle(request)
        began_s = thread_time()
        try:
            return self._handle(request)
        finally:
            if (took_s := thread_time() - began_s) > _LONG_S:
                self._pause_for(took_s)

    def _handle(self, request: UnfinishedRequest) -> bool:
        if request.rest is not None:
            return request.rest.go_on(self._bayeux, self._clock())
        body, request.body = request.body, b""
        request.rest = self.handle(self._bayeux, body, request.exchange, self._clock())
        return request.rest is None
