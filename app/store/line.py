"""The lean line to the store: calls answered in order, repeated in order until they are."""

import asyncio
import hashlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hiredis import ReplyError, pack_command

from app.store.address import Address
from app.store.connection import StoreUnavailable
from app.store.wire import Unusable, Wire, Word

log = logging.getLogger(__name__)

# Gets the reply, or an exception as a value.
Answer = Callable[[object], None]

_SHORTEST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
# The store cannot take this call now, nor any behind it: they all wait for another connection.
# One without our scripts gets them with the next greeting.
_LATER = frozenset({"BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "NOSCRIPT", "READONLY"})
# The store is there and did not do it.
_REFUSED = frozenset({"MISCONF", "NOREPLICAS", "OOM"})


class StoreRefused(Exception):
    """The store certainly did not do it: it is full, cannot write or has too few replicas."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class ScriptFailed(Exception):
    """A script or command answered with an error; `code` is its first word."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class LineClosed(Exception):
    """The line was closed before the answer came: nobody knows."""

    def __init__(self) -> None:
        super().__init__("the line to the store was closed")


@dataclass(frozen=True, slots=True)
class Script:
    """A Lua script that the store keeps under its digest."""

    name: str
    source: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        # The store's name for it, nothing that protects anybody.
        sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        object.__setattr__(self, "sha", sha)


@dataclass(frozen=True, slots=True)
class LineLimits:
    """Beyond these a line is full; a store that is silent for longer counts as lost."""

    calls: int = 100_000
    bytes: int = 64 * 1024**2
    patience_s: float = 5.0


class Line:
    """A connection to the store that is made anew as often as it takes."""

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
        self._sent: deque[tuple[bytes, Answer]] = deque()
        self._queued: list[tuple[bytes, Answer]] = []
        self._bytes = 0
        self._wire: Wire | None = None
        self._is_flush_due = False
        self._pause_s = _SHORTEST_PAUSE_S
        self._watch: asyncio.TimerHandle | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def is_up(self) -> bool:
        """Whether the store is there and takes calls."""
        return self._wire is not None and not self._wire.lost.done()

    @property
    def unanswered(self) -> int:
        """Calls that wait for their answer."""
        return len(self._sent) + len(self._queued)

    @property
    def is_full(self) -> bool:
        """Whether more waits for the store than should."""
        return self.unanswered > self._limits.calls or self._bytes > self._limits.bytes

    async def open(self) -> None:
        """Connect for the first time; a store that loads its data is waited for."""
        is_told = False
        while True:
            try:
                wire = await self._connect()
                break
            except Unusable as error:
                if not error.is_passing:
                    raise StoreUnavailable(f"redis at {self._address}: {error}") from error
                if not is_told:
                    log.info("the store at %s is not ready: %s", self._address, error)
                    is_told = True
            await asyncio.sleep(_LONGEST_PAUSE_S)
        self._begin(wire)
        self._keeping = self._loop.create_task(self._keep_up(wire))

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
        for _, done in waiting:
            self._tell(done, LineClosed())

    # Calls

    def call(self, parts: Sequence[Word], done: Answer) -> None:
        """Queue a command; its answer comes in a later turn."""
        if self._is_closed:
            self._loop.call_soon(self._tell, done, LineClosed())
            return
        packed = pack_command(tuple(parts))
        self._bytes += len(packed)
        self._queued.append((packed, done))
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_at_end_of_turn)

    def script(
        self, script: Script, keys: Sequence[Word], args: Sequence[Word], done: Answer
    ) -> None:
        """Queue a call of one of this line's scripts."""
        self.call(("EVALSHA", script.sha, len(keys), *keys, *args), done)

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
        wire, queued = self._wire, self._queued
        if wire is None or not queued:
            return
        if not self._sent:
            # The store's silence counts from here.
            wire.heard_at = self._loop.time()
        self._sent.extend(queued)
        self._queued = []
        wire.write(b"".join([packed for packed, _ in queued]))

    def _flush_at_end_of_turn(self) -> None:
        self._is_flush_due = False
        self.flush()

    # Answers

    def _answer(self, reply: object) -> None:
        if isinstance(reply, ReplyError):
            text = str(reply)
            code = text.partition(" ")[0]
            if code in _LATER:
                self._leave(text)
                return
            reply = StoreRefused(code, text) if code in _REFUSED else ScriptFailed(code, text)
        if not self._sent:
            self._leave("answers what nobody asked")
            return
        packed, done = self._sent.popleft()
        self._bytes -= len(packed)
        self._pause_s = _SHORTEST_PAUSE_S
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
            self._say(is_up=False, why=why)
            wire = await self._reconnect()
            self._begin(wire)
            self._say(is_up=True, why="")

    async def _reconnect(self) -> Wire:
        while True:
            await asyncio.sleep(self._pause_s * (0.5 + self._random() / 2))
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)
            try:
                return await self._connect()
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
        """Everything unanswered goes out again, in its order."""
        self._wire = wire
        wire.listen(self._answer)
        self._queued = [*self._sent, *self._queued]
        self._sent.clear()
        self.flush()
        self._watch = self._loop.call_later(self._limits.patience_s, self._look)

    def _leave(self, why: str) -> None:
        """Give this connection up; the next one repeats what is unanswered."""
        wire, self._wire = self._wire, None
        if wire is not None:
            wire.abort(why)
        if self._watch is not None:
            self._watch.cancel()

    def _look(self) -> None:
        """Give up a connection on which nobody answers; ask whether there is anybody."""
        wire = self._wire
        if wire is None:
            return
        wait_s = wire.heard_at + self._limits.patience_s - self._loop.time()
        if wait_s <= 0:
            if self._sent:
                self._leave("does not answer")
                return
            self.call(["PING"], _ignore)
            wait_s = self._limits.patience_s
        self._watch = self._loop.call_later(wait_s, self._look)

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
