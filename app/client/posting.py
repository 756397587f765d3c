"""Sends what the outbox has, in its order, whenever there is a session."""

import asyncio
import logging
import random

from holdfast.client.errors import ClientError, ConnectionLost, ReplyError
from holdfast.client.outbox import Outbox
from holdfast.client.outgoing import Repeat
from holdfast.client.pacing import Pacing
from holdfast.client.requests import Send
from holdfast.client.wire import Json

# Messages that are sent before the replies to them are waited for.
_MOST_SENT = 100
# After these refusals, and those from here on, the same message may be accepted later.
_PASSING = {402, 408, 429}
_SERVER_FAULT = 500
_log = logging.getLogger(__name__)


class Posting:
    """Empties an outbox."""

    def __init__(self, outbox: Outbox, send: Send, *, longest_pause_s: float) -> None:
        self._outbox = outbox
        self._send = send
        self._pace = Pacing(random.random, longest_pause_s=longest_pause_s)

    async def send_all(self) -> None:
        """Send until the outbox is empty, or the session ends."""
        try:
            while len(self._outbox):
                pause_s = await self._send_first()
                await asyncio.sleep(pause_s)
        except ClientError as error:
            _log.info("the outbox keeps %d unsent: %s", len(self._outbox), error)

    async def _send_first(self) -> float:
        """Send the first messages; return how long to wait before the next ones."""
        waiting = self._outbox.first(_MOST_SENT)
        replies = [self._send(message, repeat=Repeat.ALWAYS).reply for _, message in waiting]
        try:
            await asyncio.wait(replies)
        finally:
            # If the client is closed meanwhile, the replies that have come still count: only
            # others can be cancelled.
            settled = [
                number
                for (number, message), reply in zip(waiting, replies, strict=True)
                if not reply.cancel() and self._is_settled(message, reply.exception())
            ]
            self._outbox.remove(settled)
        if len(settled) < len(waiting):
            return self._pace.unanswered()
        self._pace.failures = 0
        return 0.0

    def _is_settled(self, message: Json, error: BaseException | None) -> bool:
        """Return whether the message was accepted, or refused for good.

        Raises the error that ends the session.
        """
        if error is None:
            return True
        if isinstance(error, ConnectionLost):
            return False
        if not isinstance(error, ReplyError):
            raise error
        if error.code in _PASSING or error.code >= _SERVER_FAULT:
            return False
        _log.error("the server refused a message of the outbox: %s", error)
        self._report(message, error)
        return True

    def _report(self, message: Json, error: ReplyError) -> None:
        """Pass a message on that the server refused for good."""
        if self._outbox.on_refused is None:
            return
        try:
            self._outbox.on_refused(message, error)
        except Exception:
            _log.exception("on_refused of the outbox failed")
