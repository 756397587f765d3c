"""Responders: what a callback returns is published as the reply to its request."""

import asyncio
from collections.abc import Callable
from functools import partial

from holdfast.client.errors import UNEXPECTED, Refuse, ReplyError
from holdfast.client.messages import Message, Reply
from holdfast.client.outgoing import Repeat
from holdfast.client.requests import Send
from holdfast.client.subscriptions import Callback, run
from holdfast.client.wire import Json

# Another reply was first, or the requester waits no longer: this is no error.
_TOO_LATE = {409, 410}


class Responder:
    """The callback of a subscription to a channel with requests."""

    def __init__(self, callback: Callback, send: Send, finished: Callable[[Message], None]) -> None:
        self._callback = callback
        self._send = send
        self._finished = finished

    async def __call__(self, message: Message) -> None:
        """Process a message; if it is a request, reply. Raises what the callback raises."""
        result = await run(self._callback, message)
        if message.reply_to is not None:
            reply = {"channel": message.reply_to, **_content(result)}
            outgoing = self._send(reply, repeat=Repeat.ALWAYS)
            # The request is not finished before the server has the reply. The next one begins.
            message.left += 1
            outgoing.reply.add_done_callback(partial(self._replied, message))

    def _replied(self, message: Message, reply: asyncio.Future[Json]) -> None:
        error = None if reply.cancelled() else reply.exception()
        is_too_late = isinstance(error, ReplyError) and error.code in _TOO_LATE
        if error is not None and not is_too_late:
            # The requester hears at once that there will be no reply.
            message.refusal = message.refusal or Refuse(UNEXPECTED, f"no reply: {error}")
        self._finished(message)


def _content(result: object) -> Json:
    """Return the data of a reply, and their type if the result says it."""
    if isinstance(result, Message | Reply):
        return {"data": result.data, "ext": {"mime": result.mime}}
    return {"data": result, "ext": {}}
