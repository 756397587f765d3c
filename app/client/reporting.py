"""When the server hears of finished messages: with the next connect, or sooner in a publish."""

import asyncio
import logging
from collections.abc import Callable

from holdfast.client.outgoing import Outgoing
from holdfast.client.settling import SentVerdicts, Settling
from holdfast.client.wire import VERDICTS, Json, part_of

# The next connect acknowledges messages whose callbacks need no longer than this, without a verdict
# on each.
_ACK_DELAY_S = 0.1
# How long a client without room may be silent, if the server does not say.
_USUAL_MAX_INTERVAL_S = 10.0
_log = logging.getLogger(__name__)


def warn_of_unknown(reply: Json) -> None:
    """Log the verdicts in whose numbers the server does not recognise messages of the session."""
    unknown = part_of(reply, "ext", "delivery", "unknown")
    if unknown:
        _log.warning("the server has never sent the messages of these verdicts: %s", unknown)


class Reporting:
    """Lets a connect wait until there is room for what it brings, and reports meanwhile.

    Args:
        send: Queues a message for the server.
        is_over: Returns whether the conversation has ended.
    """

    def __init__(
        self,
        settling: Settling,
        max_queue: int,
        *,
        send: Callable[[Json], Outgoing],
        is_over: Callable[[], bool],
    ) -> None:
        self._settling = settling
        self._max_queue = max_queue
        self._send = send
        self._is_over = is_over
        # The callers that wait until at most this number of messages are open.
        self._room: list[tuple[int, asyncio.Future[None]]] = []
        # The report that is on its way.
        self._sent: Outgoing | None = None
        self._is_report_due = False
        # Whether a connect is about to leave, with all verdicts that there are by then.
        self._connects_soon = True

    def settled(self) -> None:
        """Take note that a message was finished."""
        if self._room:
            count = self._settling.open_count
            for limit, waiter in self._room:
                if count <= limit and not waiter.done():
                    waiter.set_result(None)
        if self._settling.has_news and not (self._connects_soon or self._is_report_due):
            self._is_report_due = True
            # Other messages that are finished in this turn of the event loop go along.
            asyncio.get_running_loop().call_soon(self._report)

    async def before_connect(self, max_interval_s: float | None) -> None:
        """Wait until the messages of the last batch are finished, or there is room for another."""
        self._connects_soon = True
        await self._until_open(0, _ACK_DELAY_S)
        beat_s = (max_interval_s or _USUAL_MAX_INTERVAL_S) / 3
        while not await self._until_open(self._max_queue // 2, beat_s):
            self._connects_soon = False
            if self._settling.has_verdicts:
                # Any message keeps the session alive, and only a connect brings more events.
                self._report(is_due=True)

    def connect_ext(self) -> tuple[Json, SentVerdicts]:
        """Return the `ext` of the connect that leaves now, and the verdicts that it carries."""
        self._connects_soon = False
        return self._settling.connect_ext()

    def forget(self) -> None:
        """Drop the report that is on its way: it names messages of the old session."""
        if self._sent is not None:
            self._sent.reply.cancel()

    async def has_room_for_pushed(self) -> None:
        """Wait until there is room for what the server pushes."""
        while self._settling.open_count > self._max_queue:
            await self._until_open(self._max_queue, 1.0)

    async def _until_open(self, limit: int, timeout_s: float) -> bool:
        """Wait until at most this number of messages are open; return False after the timeout."""
        if self._settling.open_count <= limit:
            return True
        waiter = asyncio.get_running_loop().create_future()
        entry = (limit, waiter)
        self._room.append(entry)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter
        except TimeoutError:
            return False
        finally:
            self._room.remove(entry)
        return True

    def _report(self, *, is_due: bool = False) -> None:
        """Publish the verdicts that wait, unless some are on their way."""
        self._is_report_due = False
        if self._is_over():
            return
        if self._sent is None and (is_due or self._settling.has_news):
            sent = self._settling.take_verdicts()
            self._sent = self._send({"channel": VERDICTS, "data": sent.verdicts})
            self._sent.reply.add_done_callback(lambda reply: self._reported(reply, sent))

    def _reported(self, reply: asyncio.Future[Json], sent: SentVerdicts) -> None:
        self._sent = None
        if reply.cancelled() or reply.exception() is not None:
            # The next connect has them.
            self._settling.failed(sent)
            return
        warn_of_unknown(reply.result())
        self._settling.arrived(sent)
        if self._settling.has_news and not self._connects_soon:
            self._report()
