"""The durability `replicas:n`: checks that replicas have messages in their append-only files."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from holdfast.delivery.basics.ignoring import ignore
from holdfast.store.format.keys import RedisKeys
from holdfast.store.format.scripts import CONFIRM
from holdfast.store.links.connection import StoreUnavailable
from holdfast.store.links.reader import Reader, evaluation

log = logging.getLogger(__name__)

# A replica answers the first query at once, often before its file is written, and after that once a
# second. Asked again slightly later, it has the data.
_ASKED_BEFORE_MS = (5, 20)
# A publish may wait for the query in progress and then for its query: twice this time is shorter
# than a publisher's wait limit.
_TIMEOUT_MS = 1900
_LIMIT_S = 2.4
# How often to ask without messages: operators know of missing replicas within five seconds.
_LOOK_S = 1.5


class Replicas:
    """Asks about all messages stored in the meantime at once, on a separate connection.

    A connection that waits for replicas serves nothing else: on the store link, marks and
    settlements would wait too, and be lost with this process. WAITAOF covers what its connection
    wrote, so this one writes something first, after the messages.

    Args:
        reader: A connection for this purpose only; closed by `close`.
        count: How many replicas must have a message.
    """

    def __init__(self, reader: Reader, keys: RedisKeys, count: int) -> None:
        self._reader = reader
        self._keys = keys
        self._count = count
        # Whether the primary's file must have it too: if the primary restarted without data that
        # its replicas have, they would drop that data.
        self._local = 1
        self._waiting: list[tuple[Sequence[int | str], Callable[[bool], None]]] = []
        self._asking: asyncio.Task[None] | None = None
        # Why messages are not confirmed, for operators; empty if they are.
        self.complaint = ""
        # Called when that has changed.
        self.on_change: Callable[[], None] = ignore

    async def open(self) -> None:
        """Refuse a server that does not support WAITAOF."""
        try:
            await self._reader.ask("WAITAOF", 1, 0, 1)
        except StoreUnavailable as error:
            if "unknown command" in str(error):
                raise StoreUnavailable(
                    f"durability replicas:{self._count} needs WAITAOF, which Redis has since 7.2"
                    f" and Valkey always: {error}"
                ) from error
            if "appendonly is disabled" not in str(error):
                raise
            self._local = 0
            log.warning(
                "the store's primary has appendonly no: if it restarts before a replica takes over,"
                " it and its replicas lose everything since its last snapshot"
            )

    async def close(self) -> None:
        """Close. Waiting publishes get no answer."""
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.wait([self._asking])
        self._reader.close()

    async def watch(self, is_wanted: Callable[[], bool]) -> None:
        """Ask whether replicas answer, if no message does: an operator should know before.

        Runs until the task is cancelled.
        """
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._asking is None and is_wanted():
                self.confirm((), ignore)

    def confirm(self, stored_ids: Sequence[int | str], done: Callable[[bool], None]) -> None:
        """Report, in a later turn, whether enough replicas have these messages."""
        self._waiting.append((stored_ids, done))
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())

    async def _ask(self) -> None:
        while self._waiting:
            asked, self._waiting = self._waiting, []
            have_it = await self._have([each for stored_ids, _ in asked for each in stored_ids])
            for _, done in asked:
                self._answer(done, have_it)
        self._asking = None

    def _answer(self, done: Callable[[bool], None], have_it: bool) -> None:
        try:
            done(have_it)
        except Exception:
            # The others wait for theirs.
            log.exception("the answer of replicas could not be used")

    async def _have(self, stored_ids: Sequence[int | str]) -> bool:
        try:
            async with asyncio.timeout(_LIMIT_S):
                are_here, (local, replicas) = await self._write_and_wait(stored_ids)
        except (StoreUnavailable, TimeoutError) as error:
            # It may be refused because there are too few replicas, or the store is unavailable.
            self._say(f"no answer: {error!r}")
            return False
        if not are_here:
            # The replicas are not at fault.
            return False
        if local >= self._local and replicas >= self._count:
            self._say("")
            return True
        self._say(f"{replicas} of {self._count}, and the primary's own file: {local}")
        return False

    async def _write_and_wait(self, stored_ids: Sequence[int | str]) -> tuple[int, tuple[int, int]]:
        keys = (self._keys.meta, self._keys.bodies, self._keys.keyed)
        are_here, *_, reached = await self._reader.ask_all(
            evaluation(CONFIRM, keys, stored_ids),
            *(
                ("WAITAOF", self._local, self._count, timeout_ms)
                for timeout_ms in (*_ASKED_BEFORE_MS, _TIMEOUT_MS)
            ),
        )
        return are_here, reached

    def _say(self, why: str) -> None:
        """Log a change instead of every message."""
        were_missed = bool(self.complaint)
        self.complaint = f"too few replicas confirm messages; publishers get `unknown`: {why}"
        if not why:
            self.complaint = ""
        if were_missed == bool(why):
            return
        if why:
            log.error("%s", self.complaint)
        else:
            log.warning("enough replicas store messages again")
        self.on_change()
