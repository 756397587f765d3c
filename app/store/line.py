"""The lean line to the store: calls answered in order, repeated in order until they are."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

from hiredis import ReplyError

from app.store.address import Address
from app.store.connection import StoreUnavailable
from app.store.refusals import LineClosed, NotNow, StoreRefused, refusal
from app.store.script import Script
from app.store.wire import Unusable, Wire, Word, pack

log = logging.getLogger(__name__)

# Gets the reply, or an exception as a value.
Answer = Callable[[object], None]

_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
# This process did not run when it looks so late: answers that have come are read first.
_LATE_S = 0.5


@dataclass(frozen=True, slots=True)
class LineLimits:
    """Beyond these a line is full; a store that is silent for longer counts as lost."""

    calls: int = 100_000
    bytes: int = 64 * 1024**2
    patience_s: float = 5.0


class _Call(NamedTuple):
    packed: bytes
    done: Answer
    # Else a store that is full or cannot write is asked again until it can.
    may_be_refused: bool


class Line:
    """A connection to the store that is made anew as often as it takes.

    Behind a lost connection the oldest unanswered call goes out alone: whether the store takes it
    says whether it is of use, and nothing gets ahead of what it refuses.
    """

    def __init__(
        self,
        address: Address,
        *,
        on_state: Callable[[bool, str], None],
        random: Callable[[], float],
        scripts: Sequence[Script] = (),
        limits: LineLimits | None = None,
        name: str = "holdfast",
    ) -> None:
        self._address = address
        self._on_state = on_state
        self._random = random
        self._scripts = tuple(scripts)
        self._limits = limits or LineLimits()
        self._loop = asyncio.get_running_loop()
        self._name = name
        # What has been sent and not answered, then what has not been sent, each oldest first.
        self._sent: deque[_Call] = deque()
        self._queued: list[_Call] = []
        self._bytes = 0
        # Whether more waits for the store than should: read far more often than it changes.
        self.is_full = False
        self._wire: Wire | None = None
        # Whether it is of use, and whether somebody was told that it was not.
        self._is_up = False
        self._is_missed = False
        self._is_flush_due = False
        self._pause_s = _SHORTEST_PAUSE_S
        self._watch: asyncio.TimerHandle | None = None
        self._look_at = 0.0
        self._keeping: asyncio.Task[None] | None = None
        self._is_closed = False
        # Why the store is not to be used although it may be there; empty if it is.
        self._suspended = ""

    @property
    def is_up(self) -> bool:
        """Whether the store is there and takes calls."""
        return self._is_up and self._wire is not None and not self._wire.lost.done()

    @property
    def unanswered(self) -> int:
        """Calls that wait for their answer."""
        return len(self._sent) + len(self._queued)

    @property
    def has_room(self) -> bool:
        """Whether the store is there and more can be asked of it."""
        wire = self._wire
        return self._is_up and wire is not None and not wire.lost.done() and not self.is_full

    @property
    def silence_s(self) -> float:
        """For how long the store has said nothing although a call waits for its answer."""
        wire = self._wire
        return self._loop.time() - wire.heard_at if wire is not None and self._sent else 0.0

    def _exceeds(self) -> bool:
        """Whether so much waits for the store that the line is full."""
        waiting = len(self._sent) + len(self._queued)
        return self._bytes > self._limits.bytes or waiting > self._limits.calls

    async def open(self) -> None:
        """Connect for the first time; a store that loads its data is waited for."""
        wire = await self._first()
        self._begin(wire)
        self._keeping = self._loop.create_task(self._keep_up(wire))

    async def _first(self) -> Wire:
        is_told = False
        while True:
            try:
                return await self._connect()
            except Unusable as error:
                if not error.is_passing:
                    raise StoreUnavailable(f"redis at {self._address}: {error}") from error
                if not is_told:
                    log.info("the store at %s is not ready: %s", self._address, error)
                    is_told = True
            await asyncio.sleep(_LONGEST_PAUSE_S)

    async def close(self) -> None:
        """Wait for nothing; what is not answered never will be."""
        self._is_closed = True
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.wait([self._keeping])
        self._leave("closed")
        waiting = [*self._sent, *self._queued]
        self._sent.clear()
        self._queued.clear()
        self._bytes = 0
        self.is_full = False
        for call in waiting:
            self._tell(call.done, LineClosed())

    def suspend(self, why: str) -> None:
        """Use the store no more until `resume`: what it says it has may be lost."""
        self._suspended = why
        self._leave(why)

    def resume(self) -> None:
        """Use the store again."""
        self._suspended = ""

    # Calls

    def call(self, parts: Sequence[Word], done: Answer, *, may_be_refused: bool = True) -> None:
        """Queue a command, which leaves when the turn ends; its answer comes in a later one."""
        self._queue(parts, done, may_be_refused)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_at_end_of_turn)

    def script(
        self,
        script: Script,
        keys: Sequence[Word],
        args: Sequence[Word],
        done: Answer,
        *,
        may_be_refused: bool = False,
    ) -> None:
        """Queue a call of one of this line's scripts, which leaves with the next `flush`.

        Unless it may be refused, it must happen.
        """
        self._queue(("EVALSHA", script.sha, len(keys), *keys, *args), done, may_be_refused)

    def _queue(self, parts: Sequence[Word], done: Answer, may_be_refused: bool) -> None:
        if self._is_closed:
            self._loop.call_soon(self._tell, done, LineClosed())
            return
        packed = pack(parts)
        self._queued.append(_Call(packed, done, may_be_refused))
        self._bytes += len(packed)
        self.is_full = self._exceeds()

    async def ask(self, *parts: Word) -> object:
        """The answer to a command."""
        answer: asyncio.Future[object] = self._loop.create_future()

        def done(reply: object) -> None:
            if not answer.done():
                answer.set_result(reply)

        self.call(parts, done)
        reply = await answer
        if isinstance(reply, Exception):
            raise reply
        return reply

    def flush(self) -> None:
        """Send what is queued in one write, if there is anybody to send it to."""
        if self._is_up and self._queued:
            queued, self._queued = self._queued, []
            self._send(queued)

    def _send(self, calls: Sequence[_Call]) -> None:
        wire = cast("Wire", self._wire)
        if not self._sent:
            # The store's silence counts from here.
            wire.heard_at = self._loop.time()
        self._sent.extend(calls)
        wire.write(b"".join([call.packed for call in calls]))

    def _flush_at_end_of_turn(self) -> None:
        self._is_flush_due = False
        self.flush()

    # Answers

    def _answer(self, reply: object) -> None:
        if not self._sent:
            self._leave("answers what nobody asked")
            return
        packed, done, may_be_refused = self._sent[0]
        if isinstance(reply, ReplyError):
            reply = refusal(reply)
            if isinstance(reply, NotNow if may_be_refused else (NotNow, StoreRefused)):
                self._leave(str(reply))
                return
        self._sent.popleft()
        self._bytes -= len(packed)
        if self.is_full:
            self.is_full = self._exceeds()
        self._pause_s = _SHORTEST_PAUSE_S
        if not self._is_up:
            self._rise()
        self._tell(done, reply)

    def _tell(self, done: Answer, reply: object) -> None:
        try:
            done(reply)
        except Exception:
            log.exception("an answer of the store could not be used")

    # Connections

    async def _keep_up(self, wire: Wire) -> None:
        while True:
            why = await wire.lost
            self._leave(why)
            if not self._is_missed:
                self._is_missed = True
                self._say(is_up=False, why=why)
            wire = await self._reconnect()
            self._begin(wire)

    async def _reconnect(self) -> Wire:
        while True:
            await asyncio.sleep(self._pause_s * (0.5 + self._random() / 2))
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            if self._suspended:
                continue
            try:
                wire = await self._connect()
                if not self._suspended:
                    return wire
                wire.abort(self._suspended)
            except Unusable as error:
                log.debug("the store at %s cannot be used: %s", self._address, error)

    async def _connect(self) -> Wire:
        sources = [script.source for script in self._scripts]
        try:
            async with asyncio.timeout(self._limits.patience_s):
                return await Wire.connect(self._address, self._name, sources)
        except TimeoutError as error:
            raise Unusable("does not answer") from error

    def _begin(self, wire: Wire) -> None:
        self._wire = wire
        wire.listen(self._answer)
        self._look_in(self._limits.patience_s)
        # What was sent may have been done: who is refused now could not say that it was not.
        repeated = [call._replace(may_be_refused=False) for call in self._sent]
        self._queued = [*repeated, *self._queued]
        self._sent.clear()
        if self._queued:
            self._send([self._queued.pop(0)])
        else:
            self._rise()

    def _rise(self) -> None:
        """The store is of use: whatever waits goes out in its order."""
        self._is_up = True
        if self._is_missed:
            self._is_missed = False
            self._say(is_up=True, why="")
        self.flush()

    def _leave(self, why: str) -> None:
        """Give this connection up; the next one repeats what is unanswered."""
        wire, self._wire = self._wire, None
        self._is_up = False
        if wire is not None:
            wire.abort(why)
        if self._watch is not None:
            self._watch.cancel()

    def _look_in(self, wait_s: float) -> None:
        self._look_at = self._loop.time() + wait_s
        self._watch = self._loop.call_later(wait_s, self.look)

    def look(self) -> None:
        """Give up a connection on which nobody answers; ask whether there is anybody."""
        wire = self._wire
        if wire is None:
            return
        now = self._loop.time()
        wait_s = wire.heard_at + self._limits.patience_s - now
        if now > self._look_at + _LATE_S:
            wait_s = _LATE_S
        elif wait_s <= 0:
            if self._sent:
                self._leave("does not answer")
                return
            self.call(["PING"], _ignore)
            wait_s = self._limits.patience_s
        self._look_in(wait_s)

    def _say(self, *, is_up: bool, why: str) -> None:
        if is_up:
            log.info("the store at %s is back", self._address)
        else:
            log.warning("the store at %s is away: %s", self._address, why)
        try:
            self._on_state(is_up, why)
        except Exception:
            log.exception("a change of the store's state was not heard")


def _ignore(_: object) -> None:
    """Nobody waits for this answer."""
