"""Asks the application: a limited number of questions at a time, each for a limited time.

A question that finds no place, waits too long, or gets no clear answer has failed: nothing is
allowed by it.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, Protocol, TypeVar

from holdfast.bayeux.state.backend_figures import AskOutcome, BackendFigures
from holdfast.login.backend.breaker import PAUSE_S, Breaker
from holdfast.login.backend.places import Places
from holdfast.login.backend.questions import Question, Reply, Unclear, text_of
from holdfast.login.backend.steps import Steps
from holdfast.login.failures import NoAnswer, SaysNo

log = logging.getLogger(__name__)

MOST_WAITING: Final = 1000
# The most questions about the clients of one address.
_MOST_OF_ADDRESS: Final = MOST_WAITING // 2
# How long a question may wait and be answered, in seconds.
LIMIT_S: Final = 2.0
# An application that has not answered in this time, in seconds, does not answer.
_ENOUGH_S: Final = 1.0
# When a client should try again for which there was no place.
_RETRY_S: Final = 1.0
# Failures are logged once in so many seconds.
_LOG_S: Final = 10.0
# By these, somebody says that the application is not there. With any other status it is: clients
# that can cause a fault in it must not stop the questions of others.
_ABSENT: Final = frozenset(
    {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
)

Answer = TypeVar("Answer")


class Post(Protocol):
    """Posts something to the application. Raises an exception if there is no answer."""

    async def __call__(self, id: str, body: bytes, headers: Mapping[str, str], /) -> Reply: ...


class Asking:
    """Asks questions in their order, and counts what becomes of them."""

    def __init__(self, figures: BackendFigures) -> None:
        self.figures = figures
        # Set when the server serves.
        self.post: Post | None = None
        self._places, self._steps = Places(), Steps()
        self._breaker = Breaker(time.monotonic)
        self._logged_s = -_LOG_S
        self._missed = 0

    async def ask(
        self, question: Question, read: Callable[[Reply], Answer], limit_s: float = LIMIT_S
    ) -> Answer:
        """Return what `read` makes of the answer. Raises `NoAnswer`, or `SaysNo`."""
        ends_at = time.monotonic() + limit_s
        of_address = self._places.asked_by(question.network)
        if self.figures.waiting >= MOST_WAITING or of_address >= _MOST_OF_ADDRESS:
            raise self._unasked(question, AskOutcome.FULL)
        if not self._breaker.lets_ask():
            raise self._unasked(question, AskOutcome.OPEN, PAUSE_S)
        is_heard = False
        try:
            await self._take_place(question, ends_at)
            try:
                reply = await self._posted(question, ends_at)
            finally:
                self.figures.open -= 1
                self._places.give_back(question.network)
            is_heard = True
        finally:
            if not is_heard:
                self._breaker.gave_up()
        return self._understood(question, reply, read)

    async def _take_place(self, question: Question, ends_at: float) -> None:
        self.figures.waiting += 1
        try:
            async with asyncio.timeout(ends_at - time.monotonic()):
                await self._places.take(question.network)
        except TimeoutError:
            raise self._unasked(question, AskOutcome.LATE) from None
        finally:
            self.figures.waiting -= 1
        self.figures.open += 1

    async def _posted(self, question: Question, ends_at: float) -> Reply:
        """Return the answer of the application, however it may be. Raises `NoAnswer`."""
        if self.post is None:
            raise self._unasked(question, AskOutcome.LATE)
        id, began_s = f"ask_{secrets.token_hex(12)}", time.monotonic()
        try:
            async with asyncio.timeout(ends_at - time.monotonic()):
                await self._steps.next()
                reply = await self.post(id, question.body, question.headers)
        except TimeoutError:
            if ends_at - began_s < _ENOUGH_S:
                # It has waited for so long that the application had less time than it may take.
                raise self._unasked(question, AskOutcome.LATE) from None
            self._heard(is_answer=False)
            raise self._failed(question, "no answer in time") from None
        except Exception as error:
            self._heard(is_answer=False)
            raise self._failed(question, str(error) or type(error).__name__) from None
        self._heard(is_answer=reply.status not in _ABSENT)
        return reply

    def _heard(self, *, is_answer: bool) -> None:
        self._breaker.heard(is_answer=is_answer)
        is_broken, was_broken = self._breaker.is_open, self.figures.is_broken
        if is_broken and not was_broken:
            self.figures.broken_ms = _now_ms()
            log.error("the backend does not answer: until it does, it is asked seldom")
        elif was_broken and not is_broken:
            self.figures.broken_ms = None
            log.warning("the backend answers again")

    def _understood(
        self, question: Question, reply: Reply, read: Callable[[Reply], Answer]
    ) -> Answer:
        try:
            answer = read(reply)
        except Unclear as unclear:
            # Names in the answer may be long, or have line ends.
            raise self._failed(question, text_of(str(unclear))) from None
        except SaysNo:
            self._count(question, AskOutcome.REFUSED)
            raise
        self._count(question, AskOutcome.ALLOWED)
        return answer

    def _unasked(
        self, question: Question, outcome: AskOutcome, wait_s: float = _RETRY_S
    ) -> NoAnswer:
        self._count(question, outcome)
        return NoAnswer(wait_s)

    def _failed(self, question: Question, why: str) -> NoAnswer:
        """Count a failure. It is logged, unless others were a moment ago."""
        figures, now_s = self.figures, time.monotonic()
        figures.failure, figures.failed_ms = why, _now_ms()
        if now_s >= self._logged_s + _LOG_S:
            more = f" ({self._missed} more before)" if self._missed else ""
            log.warning(
                "the backend cannot be understood: %s: %s%s", question.action.value, why, more
            )
            self._logged_s, self._missed = now_s, 0
        else:
            self._missed += 1
        self._count(question, AskOutcome.FAILED)
        return NoAnswer(PAUSE_S if figures.is_broken else _RETRY_S)

    def _count(self, question: Question, outcome: AskOutcome) -> None:
        self.figures.asked[question.action, outcome] += 1


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
