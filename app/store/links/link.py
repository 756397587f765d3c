"""The store link: calls are answered in order, and repeated in order until they are."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, cast

from hiredis import ReplyError

from holdfast.delivery.basics.ignoring import ignore
from holdfast.store.links.call_times import CallTimes
from holdfast.store.links.connection import StoreUnavailable, StoreUnreachable
from holdfast.store.links.connection_watch import ConnectionWatch
from holdfast.store.links.detour import Detour
from holdfast.store.links.primary import Primary
from holdfast.store.links.reply_errors import (
    LinkClosed,
    ScriptsLost,
    StoreBusy,
    StoreElsewhere,
    StoreRefused,
    error_of,
)
from holdfast.store.links.resp import RespConnection, Unreachable, Unusable, Word, pack
from holdfast.store.links.script import Script

log = logging.getLogger(__name__)

# Called with the reply, or with an exception object.
Answer = Callable[[object], None]

_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class LinkLimits:
    """Limits at which the link counts as full, or a silent store as lost."""

    calls: int = 100_000
    bytes: int = 64 * 1024**2
    timeout_s: float = 5.0


class _Call(NamedTuple):
    packed: bytes
    done: Answer
    # If False, a full or failing store is asked again until it accepts.
    may_be_refused: bool


class StoreLink:
    """A connection to the store that is restored whenever it is lost.

    On a new connection the oldest unanswered call is sent alone: the reply shows whether the store
    is usable, and nothing overtakes a call that the store refuses. The same happens when the store
    moves to another server of its cluster, or has lost its scripts, which takes no longer than
    necessary and counts as a slow store, not as one that is away.
    """

    def __init__(
        self,
        primary: Primary,
        *,
        on_state: Callable[[bool, str], None],
        random: Callable[[], float],
        scripts: Sequence[Script],
        limits: LinkLimits | None = None,
    ) -> None:
        self._primary, self._on_state, self._random = primary, on_state, random
        self._limits, self._loop = limits or LinkLimits(), asyncio.get_running_loop()
        self._sources = [script.source for script in scripts]
        # Calls sent and unanswered, then calls to be sent, oldest first.
        self._sent: deque[_Call] = deque()
        self.times = CallTimes()
        self._queued: list[_Call] = []
        # Whether it exceeds its limits. Cached, because it is read far more often than it changes.
        self._bytes, self.is_full = 0, False
        self._wire: RespConnection | None = None
        # How many of its next replies are skipped.
        self._stale = 0
        # Whether the store is usable, and whether its failure was logged.
        self._is_up = self._is_missed = False
        # Whether the connection takes further calls. If not although the store is usable, keys or
        # scripts are on the way: since when no call was answered, and how many were sent together.
        self._is_flowing = False
        self._stuck_since, self._burst = 0.0, 1
        self._detour = Detour(
            primary,
            sources=self._sources,
            timeout_s=self._limits.timeout_s,
            on_moved=self._moved,
            on_answer=self._answer_aside,
            on_wait_over=self._send_oldest,
            on_failure=self._leave,
        )
        self._is_flush_due = self._is_closed = False
        self._pause_s = _SHORTEST_PAUSE_S
        self._watch = ConnectionWatch(
            primary,
            self._limits.timeout_s,
            is_waiting=lambda: bool(self._sent),
            on_idle=self._ping,
            on_lost=self._leave,
        )
        primary.on_replaced = self._give_up_former
        self._keeping: asyncio.Task[None] | None = None
        # Why the store must not be used although it may be available; empty if it may be used.
        self._suspended = ""

    @property
    def is_up(self) -> bool:
        """Whether the store is available and takes calls."""
        return self._is_up and self._wire is not None and not self._wire.lost.done()

    @property
    def unanswered(self) -> int:
        """The number of unanswered calls."""
        return len(self._sent) + len(self._queued)

    @property
    def has_room(self) -> bool:
        """Whether the store is available and the link is not full."""
        return self.is_up and not self.is_full

    @property
    def silence_s(self) -> float:
        """How long the store has left a call unanswered, in seconds."""
        wire = self._wire
        if self._is_up and not self._is_flowing:
            return self._loop.time() - self._stuck_since
        return self._loop.time() - wire.heard_at if wire is not None and self._sent else 0.0

    def _exceeds(self) -> bool:
        """Return whether the link exceeds its limits."""
        return self._bytes > self._limits.bytes or self.unanswered > self._limits.calls

    async def open(self) -> None:
        """Connect for the first time. Waits for a store that is loading its data."""
        wire = await self._first()
        self._begin(wire)
        self._keeping = self._loop.create_task(self._keep_up(wire))

    async def _first(self) -> RespConnection:
        is_logged = False
        while True:
            try:
                return await self._connect()
            except Unusable as error:
                if not error.is_passing:
                    is_away = isinstance(error, Unreachable)
                    kind = StoreUnreachable if is_away else StoreUnavailable
                    raise kind(f"redis at {self._primary}: {error}") from error
                if not is_logged:
                    log.info("the store at %s is not ready: %s", self._primary, error)
                    is_logged = True
            await asyncio.sleep(_LONGEST_PAUSE_S)

    async def close(self) -> None:
        """Close without waiting. Unanswered calls fail."""
        self._is_closed = True
        for task in (self._keeping, self._detour.end(), self._watch.end()):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        self._leave("closed")
        waiting = [*self._to_be_repeated(), *self._queued]
        self._queued.clear()
        self._bytes, self.is_full = 0, False
        for call in waiting:
            self._report(call.done, LinkClosed())

    def suspend(self, why: str) -> None:
        """Stop using the store until `resume`, because it may lose what it confirms."""
        self._suspended = why
        self._leave(why)

    def resume(self) -> None:
        """Use the store again."""
        self._suspended = ""

    # Calls

    def call(self, parts: Sequence[Word], done: Answer) -> None:
        """Queue a command, which is sent when the turn ends and answered in a later one."""
        self._queue(parts, done, may_be_refused=True)
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
        """Queue a script call, which is sent with the next `flush`.

        Unless it may be refused, it is repeated until it succeeds.
        """
        self._queue(("EVALSHA", script.sha, len(keys), *keys, *args), done, may_be_refused)

    def _queue(self, parts: Sequence[Word], done: Answer, may_be_refused: bool) -> None:
        if self._is_closed:
            self._loop.call_soon(self._report, done, LinkClosed())
            return
        packed = pack(parts)
        self._queued.append(_Call(packed, done, may_be_refused))
        self._bytes += len(packed)
        self.is_full = self._exceeds()

    async def ask(self, *parts: Word) -> object:
        """Run a command and return the answer."""
        answer: asyncio.Future[object] = self._loop.create_future()
        self.call(parts, partial(set_answer, answer))
        if isinstance(reply := await answer, Exception):
            raise reply
        return reply

    def flush(self) -> None:
        """Send the queued calls in one write, if connected."""
        if self._is_flowing and self._queued:
            queued, self._queued = self._queued, []
            self._send(queued)

    def _send(self, calls: Sequence[_Call]) -> None:
        wire = cast("RespConnection", self._wire)
        if not self._sent:
            # The store's silence is measured from here.
            wire.heard_at = self._loop.time()
        self._sent.extend(calls)
        self.times.sent(len(calls))
        wire.write(b"".join([call.packed for call in calls]))

    def _flush_at_end_of_turn(self) -> None:
        self._is_flush_due = False
        self.flush()

    # Answers

    def _answer(self, reply: object) -> None:
        if not self._sent:
            self._leave("sent an answer without a call")
            return
        packed, done, may_be_refused = self._sent[0]
        if isinstance(reply, ReplyError):
            reply = error_of(reply)
            if isinstance(reply, StoreElsewhere):
                self._go_around(reply)
                return
            # Not again before a call was answered.
            if isinstance(reply, ScriptsLost) and (self._is_flowing or self._burst > 1):
                self._load_scripts()
                return
            if isinstance(reply, StoreBusy if may_be_refused else (StoreBusy, StoreRefused)):
                self._leave(str(reply))
                return
        self._sent.popleft()
        self.times.answered()
        self._bytes -= len(packed)
        if self.is_full:
            self.is_full = self._exceeds()
        self._pause_s = _SHORTEST_PAUSE_S
        if not self._is_flowing:
            self._go_on()
        self._report(done, reply)

    def _report(self, done: Answer, reply: object) -> None:
        try:
            done(reply)
        except Exception:
            log.exception("an answer of the store could not be processed")

    # Keys that move, and scripts that are gone

    def _go_around(self, error: StoreElsewhere) -> None:
        """Take the oldest call to where its keys are. All others wait until it is answered."""
        self._primary.moved(error)
        self._stop_flowing()
        is_late = self._loop.time() > self._stuck_since + self._limits.timeout_s
        if is_late or not self._is_up:
            self._leave(str(error))
        else:
            self._detour.begin(error, self._take_back().packed)

    def _load_scripts(self) -> None:
        """Let the store have its scripts again. All calls wait until the oldest is answered."""
        log.info("the store at %s has lost its scripts, and gets them again", self._primary)
        self._stop_flowing()
        self._take_back(len(self._sources))
        loads = b"".join(pack(("SCRIPT", "LOAD", source)) for source in self._sources)
        cast("RespConnection", self._wire).write(loads)
        self._send_oldest()

    def _stop_flowing(self) -> None:
        self._burst = 1
        if self._is_flowing:
            self._is_flowing, self._stuck_since = False, self._loop.time()

    def _take_back(self, more: int = 0) -> _Call:
        """Take back all calls, and skip the answers to them and to `more`. Returns the oldest."""
        oldest, later = self._sent.popleft(), self._to_be_repeated()
        self._queued = [oldest, *later, *self._queued]
        self._stale += len(later) + more
        if self._stale:
            cast("RespConnection", self._wire).listen(self._skip)
        return oldest

    def _skip(self, _: object) -> None:
        """Skip the answer of a call that is sent again."""
        self._stale -= 1
        if not self._stale:
            cast("RespConnection", self._wire).listen(self._answer)

    def _moved(self, wire: RespConnection) -> None:
        """Go on with another server."""
        old = cast("RespConnection", self._wire)
        self._begin(wire)
        old.abort("the store has moved")

    def _answer_aside(self, reply: object) -> None:
        """Process the answer of the server that has the keys of the oldest call."""
        self._sent.append(self._queued.pop(0))
        self.times.go_on()
        self._answer(reply)

    def _go_on(self) -> None:
        """Send more calls, because one was answered.

        While keys move, calls behind one that must wait are wasted. So their number begins with
        one, and doubles while all are answered.
        """
        self._stuck_since = self._loop.time()
        if self._is_up and self._sent:
            return
        self._burst *= 2
        if not self._is_up or self._burst >= len(self._queued):
            self._flow()
        else:
            burst, self._queued = self._queued[: self._burst], self._queued[self._burst :]
            self._send(burst)

    def _send_oldest(self) -> None:
        self._send([self._queued.pop(0)])

    def _to_be_repeated(self) -> list[_Call]:
        """Take back all calls that were sent.

        They may have been carried out, so a refusal from now on would prove nothing.
        """
        taken = [call._replace(may_be_refused=False) for call in self._sent]
        self._sent.clear()
        self.times.take_back()
        return taken

    # Connections

    async def _keep_up(self, wire: RespConnection) -> None:
        while True:
            why = await wire.lost
            if self._wire is not None and self._wire is not wire:
                # The store has moved.
                wire = self._wire
                continue
            self._leave(why)
            if not self._is_missed:
                self._is_missed = True
                self._say(is_up=False, why=why)
            wire = await self._reconnect()
            self._begin(wire)

    async def _reconnect(self) -> RespConnection:
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
                log.debug("the store at %s cannot be used: %s", self._primary, error)

    async def _connect(self) -> RespConnection:
        return await self._primary.connect(self._sources, self._limits.timeout_s)

    def _begin(self, wire: RespConnection) -> None:
        self._wire = wire
        self._stale = 0
        self._is_flowing = False
        wire.listen(self._answer)
        self._watch.begin(wire)
        self._queued = [*self._to_be_repeated(), *self._queued]
        if self._queued:
            self._send_oldest()
        else:
            self._flow()

    def _flow(self) -> None:
        """Record that the store is usable. Sends waiting calls in order."""
        self._is_up = self._is_flowing = True
        if self._is_missed:
            self._is_missed = False
            self._say(is_up=True, why="")
        self.flush()

    def _leave(self, why: str) -> None:
        """Close this connection. The next one repeats the unanswered calls."""
        wire, self._wire = self._wire, None
        self._is_up = self._is_flowing = False
        self._detour.end()
        if wire is not None:
            wire.abort(why)
        self._watch.end()

    def _give_up_former(self) -> None:
        """Close a connection to a server that answers, and is the primary no longer."""
        if self._wire is not None and self._wire.address == self._primary.former:
            self._leave("another server has taken its place")

    def check(self) -> None:
        """Close a connection that does not answer; ping an idle one."""
        self._watch.check()

    def _ping(self) -> None:
        self.call(["PING"], ignore)

    def _say(self, *, is_up: bool, why: str) -> None:
        if is_up:
            log.info("the store at %s is available again", self._primary)
        else:
            log.warning("the store at %s is unavailable: %s", self._primary, why)
        try:
            self._on_state(is_up, why)
        except Exception:
            log.exception("a listener for the store's state failed")


def set_answer(answer: asyncio.Future[object], reply: object) -> None:
    """Set the answer, unless the waiting task was cancelled."""
    if not answer.done():
        answer.set_result(reply)
