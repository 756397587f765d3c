"""Requests that take long: each has its share of the turns of the event loop, and so have others.

Decoding one cannot be interrupted, and many may come in one turn. So when the time of a turn is
over, requests of some size wait for a later one, as bytes. After a turn that took long, others have
as much time before the next large request goes on: together these take half of the time at most.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import thread_time

from app.bayeux.dispatch import Rest, receive
from app.bayeux.errors import BayeuxError, RequestRefused
from app.bayeux.exchange import Exchange
from app.bayeux.server import Bayeux
from app.web.intake import SMALL, Intake

log = logging.getLogger(__name__)

# What takes longer in one go was not interrupted although its turn was over.
_LONG_S = 0.007
# Decoded, a request takes many times the memory of its bytes: so many large ones are at a time.
_MOST_LARGE = 16

# Is told that a request was handled, or what to say as it failed.
Done = Callable[[BayeuxError | None], None]


def _tell_nobody(error: BayeuxError | None) -> None:
    pass


@dataclass(slots=True)
class Unhandled:
    """A request that has not been handled to its end."""

    exchange: Exchange
    # What it holds of the intake; nothing, if it is small.
    size: int
    body: bytes = b""
    # Once it is decoded.
    rest: Rest | None = None
    # For who wants to know; not called in the turn in which the request came.
    done: Done = _tell_nobody


class Turns:
    """Handles requests at once if there is time, else in later turns, in the order they came."""

    def __init__(self, bayeux: Bayeux, clock: Callable[[], float], intake: Intake) -> None:
        self._bayeux = bayeux
        self._clock = clock
        self._intake = intake
        self._waiting: deque[Unhandled] = deque()
        # These take turns.
        self._going: deque[Unhandled] = deque()
        self._large = 0
        self._is_due = False
        # Until then others have the time that a large request has taken in one go.
        self._resumes_at = 0.0

    def receive(self, body: bytes, exchange: Exchange) -> Unhandled | None:
        """Handle the request; what there was no time for is returned, and goes on by itself.

        Raises `RequestRefused`, before anything is done, if it is no messages or finds no place.
        """
        if len(body) > SMALL:
            return self._receive_large(body, exchange)
        rest = receive(self._bayeux, body, exchange, self._clock())
        return None if rest is None else self._go_on_with(Unhandled(exchange, 0, rest=rest))

    def _receive_large(self, body: bytes, exchange: Exchange) -> Unhandled | None:
        request = Unhandled(exchange, len(body), body)
        self._intake.take(request.size)
        # Asked in any case: the time of a turn begins when it is asked for.
        is_turn_over = self._bayeux.is_turn_over() or self._pause_s() > 0.0
        if is_turn_over or self._waiting or self._large == _MOST_LARGE:
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

    def _go_on_with(self, request: Unhandled) -> Unhandled:
        self._going.append(request)
        self._go_on_soon()
        return request

    def give_up(self, exchange: Exchange) -> BayeuxError:
        """A fault of ours, in an `except` clause: no later answer is owed; says what to say now."""
        log.exception("a request failed")
        self._bayeux.abort(exchange, self._clock())
        return BayeuxError.SERVER_BUSY

    def _go_on_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            loop = asyncio.get_running_loop()
            if (pause_s := self._pause_s()) > 0.0:
                loop.call_later(pause_s, self._go_on)
            else:
                # What is read now is answered when its turn ends, one call behind the next one.
                loop.call_soon(loop.call_soon, self._go_on)

    def _pause_s(self) -> float:
        return self._resumes_at - asyncio.get_running_loop().time()

    def _go_on(self) -> None:
        """At least one has its turn, and none has many: it may wait for another."""
        self._is_due = False
        for _ in range(len(self._going) + len(self._waiting)):
            if self._waiting and self._large < _MOST_LARGE:
                self._going.append(self._waiting.popleft())
                self._large += 1
            request = self._going.popleft()
            if not self._handle_some(request):
                self._going.append(request)
            if self._bayeux.is_turn_over():
                break
        if self._going or self._waiting:
            self._go_on_soon()

    def _handle_some(self, request: Unhandled) -> bool:
        """Whether the request is done."""
        error = None
        try:
            if not self._is_over(request):
                return False
        except RequestRefused as refused:
            error = refused.error
        except BaseException:
            error = self.give_up(request.exchange)
        self._leave(request)
        request.done(error)
        return True

    def _leave(self, request: Unhandled) -> None:
        if request.size:
            self._large -= 1
            self._intake.give_back(request.size)

    def _is_over(self, request: Unhandled) -> bool:
        began_s = thread_time()
        try:
            return self._handle(request)
        finally:
            if (took_s := thread_time() - began_s) > _LONG_S:
                self._resumes_at = asyncio.get_running_loop().time() + took_s

    def _handle(self, request: Unhandled) -> bool:
        if request.rest is not None:
            return request.rest.go_on(self._bayeux, self._clock())
        body, request.body = request.body, b""
        request.rest = receive(self._bayeux, body, request.exchange, self._clock())
        return request.rest is None
