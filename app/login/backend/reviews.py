"""Asks again about subscriptions that the backend has allowed, which stay until the answer.

It is asked before a decision ends, and where decisions were forgotten: after a restart, when the
rules have changed, or when a session has another client. A refusal ends the subscription. So does
the end of the time if the backend has not answered by then.
"""

import asyncio
import heapq
import logging
import time
from collections.abc import Callable
from itertools import count
from typing import Final, NamedTuple

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.operation import Operation
from holdfast.login.backend.channels import ChannelQuestions
from holdfast.login.backend.decisions import Asked, AskingGrants, Said

log = logging.getLogger(__name__)

# How long a subscription stays whose decision was forgotten, in seconds.
GRACE_S: Final = 60.0
# How long before the end of a decision it is asked about, at most half of its time.
_LEAD_S: Final = 30.0
_RETRY_S: Final = 5.0
_LOOK_S: Final = 0.5
# The first sweep comes when more are remembered.
_FEW: Final = 64
# Other questions do not wait for these.
_AT_ONCE: Final = 16
# How long it is remembered that there was no answer, so that the review of the session knows it.
_FAILED_S: Final = 10.0


class _Doubt(NamedTuple):
    """A subscription about which the backend is asked at a time."""

    due_at: float
    # Makes the order of equal times certain.
    number: int
    session: Session
    grants: AskingGrants
    pattern: str
    # When it ends without an answer.
    ends_at: float


class Reviews:
    """The subscriptions about which the backend is asked again.

    Args:
        reauthorize: Reviews a session, which loses what it may not have.
    """

    def __init__(
        self,
        questions: ChannelQuestions,
        reauthorize: Callable[[Session], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._questions, self._reauthorize, self._clock = questions, reauthorize, clock
        self._doubts: list[_Doubt] = []
        self._numbers = count()
        self._sweep_at = _FEW
        self._places = asyncio.Semaphore(_AT_ONCE)
        questions.on_doubt, questions.on_learned = self.begin, self.watch

    def begin(self, session: Session, pattern: str) -> None:
        """Keep a subscription without a decision for a while, and ask about it."""
        grants, now = session.identity.grants, self._clock()
        if isinstance(grants, AskingGrants):
            ends_at = now + GRACE_S
            said = Said(is_allowed=True, ends_at=ends_at + _RETRY_S)
            grants.learn((Operation.SUBSCRIBE, pattern), said, session.subscriptions)
            self._add(_Doubt(now, next(self._numbers), session, grants, pattern, ends_at))

    def watch(self, session: Session, asked: Asked, said: Said) -> None:
        """Ask again before a decision ends."""
        grants, now = session.identity.grants, self._clock()
        if isinstance(grants, AskingGrants):
            due_at = said.ends_at - min(_LEAD_S, (said.ends_at - now) / 2)
            self._add(_Doubt(due_at, next(self._numbers), session, grants, asked[1], said.ends_at))

    def __len__(self) -> int:
        """Return how many subscriptions are remembered."""
        return len(self._doubts)

    def _add(self, doubt: _Doubt) -> None:
        heapq.heappush(self._doubts, doubt)
        if len(self._doubts) > self._sweep_at:
            # Decisions may hold for a year, and sessions end long before.
            self._doubts = [each for each in self._doubts if _is_alive(each)]
            heapq.heapify(self._doubts)
            self._sweep_at = max(_FEW, 2 * len(self._doubts))

    async def run(self) -> None:
        """Ask what is due, until cancelled."""
        async with asyncio.TaskGroup() as asking:
            while True:
                await asyncio.sleep(_LOOK_S)
                while self._doubts and self._doubts[0].due_at <= self._clock():
                    doubt = heapq.heappop(self._doubts)
                    if _is_current(doubt):
                        await self._places.acquire()
                        asking.create_task(self._ask(doubt))

    async def _ask(self, doubt: _Doubt) -> None:
        session, asked = doubt.session, (Operation.SUBSCRIBE, doubt.pattern)
        try:
            said = await self._questions.answer(session.caller, session.subject, asked)
        except Exception:
            # Otherwise nothing would be asked again.
            log.exception("the backend could not be asked about a subscription again")
            said = Said(is_allowed=False, wait_s=_RETRY_S)
        finally:
            self._places.release()
        if _is_current(doubt):
            self._hear(doubt, asked, said)

    def _hear(self, doubt: _Doubt, asked: Asked, said: Said) -> None:
        if said.wait_s is not None:
            now = self._clock()
            if now + _RETRY_S < doubt.ends_at:
                self._add(doubt._replace(due_at=now + _RETRY_S, number=next(self._numbers)))
                return
            if now < doubt.ends_at:
                self._add(doubt._replace(due_at=doubt.ends_at, number=next(self._numbers)))
                return
            said = said._replace(ends_at=now + _FAILED_S)
        self._questions.learn(doubt.session, doubt.grants, asked, said)
        if not said.is_allowed:
            self._reauthorize(doubt.session)


def _is_alive(doubt: _Doubt) -> bool:
    """Return whether the session may have the subscription, or is about to, by the same login."""
    session = doubt.session
    return session.identity.grants is doubt.grants and not session.is_gone


def _is_current(doubt: _Doubt) -> bool:
    """Return whether the session still has the subscription, by the same login."""
    return _is_alive(doubt) and doubt.pattern in doubt.session.subscriptions
