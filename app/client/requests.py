"""Requests that have not ended: each waits for replies on a separate channel."""

import asyncio
import itertools
from typing import Protocol

from holdfast.client.errors import ClientError, ConnectionLost, ReplyError, RequestFailed
from holdfast.client.messages import Message
from holdfast.client.outgoing import Outgoing, Repeat
from holdfast.client.wire import Json, part_of

# Holdfast allows a session this many by default. More wait until one has ended.
_MOST_OUTSTANDING = 256
_NO_ROOM = (
    f"it was not sent, as {_MOST_OUTSTANDING} others of this client waited for replies: "
    "give requests more time, or ask fewer at once"
)
# The server says that the deadline is over, unless it cannot be reached.
_GRACE_S = 1.0
# Serials of Python clients have a three before their six digits.
_PYTHON = 3_000_000
_SERIALS = 1_000_000
_ERROR, _END = "ERROR", "END"


class Send(Protocol):
    """Queues a message for the server, behind all others or before them."""

    def __call__(self, message: Json, *, repeat: Repeat, goes_first: bool = False) -> Outgoing: ...


class _Request:
    """One request, until it ends."""

    def __init__(self, message: Json, *, collects: bool) -> None:
        """With `collects`, all replies are waited for."""
        self.message = message
        # The message on its way to the server.
        self.outgoing: Outgoing | None = None
        self._collects = collects
        self._replies: list[Message] = []
        self.done: asyncio.Future[list[Message]] = asyncio.get_running_loop().create_future()

    def take(self, message: Message) -> None:
        if self.done.done():
            return
        wire = message.wire
        status = part_of(wire, "ext", "status")
        if "error" in wire:
            self.fail(RequestFailed({**wire, "channel": self.message["channel"]}))
        elif not self._collects and status == _ERROR:
            self.end_with(500, "responder_error", wire.get("data"))
        elif self._collects and status == _END:
            self.done.set_result(self._replies)
        else:
            self._replies.append(message)
            if not self._collects:
                self.done.set_result(self._replies)

    @property
    def is_accepted(self) -> bool:
        """Whether the server has answered the publish."""
        return self.outgoing is not None and self.outgoing.reply.done()

    def accepted(self, reply: asyncio.Future[Json]) -> None:
        """Take the server's answer to the publish."""
        if reply.cancelled():
            return
        error = reply.exception()
        if isinstance(error, ReplyError):
            self.fail(RequestFailed(error.reply))
        # If it is not known whether the server has the request, the reply may yet come.
        elif isinstance(error, ClientError) and not isinstance(error, ConnectionLost):
            self.fail(error)

    def end_with(self, code: int, text: str, data: object = None) -> None:
        """Fail with an error of the server's table."""
        self.fail(failure(self.message["channel"], code, text, data))

    def fail(self, error: ClientError) -> None:
        if not self.done.done():
            self.done.set_exception(error)


def failure(channel: str, code: int, text: str, data: object = None) -> RequestFailed:
    """Return the error that the server would report for a request that ended so."""
    return RequestFailed({"channel": channel, "error": f"{code}:{channel}:{text}", "data": data})


class Requests:
    """The requests of one client, by the channels on which it expects their replies."""

    def __init__(self, send: Send) -> None:
        self._send = send
        # Below this channel, the session gets replies.
        self.channel: str | None = None
        self._serials = itertools.count()
        self._outstanding: dict[str, _Request] = {}
        self._room = asyncio.Semaphore(_MOST_OUTSTANDING)

    def begin_session(self, channel: str | None) -> None:
        """Go on, if the session has kept its channel for replies.

        In another session, requests that were accepted get no reply, and others are sent there.
        """
        if channel == self.channel:
            return
        self.channel = channel
        former, self._outstanding = self._outstanding, {}
        for request in former.values():
            if channel is None or request.is_accepted:
                request.end_with(402, "session_lost")
            else:
                self._expect(request)

    async def ask(
        self, channel: str, data: object, ext: Json, timeout_s: float, *, mode: str, collects: bool
    ) -> list[Message]:
        """Send a request; return its replies. Raises `RequestFailed`."""
        ext = {**ext, "timeout": max(round(timeout_s * 1000), 1), "request": mode}
        request = _Request({"channel": channel, "data": data, "ext": ext}, collects=collects)
        try:
            async with asyncio.timeout(timeout_s + _GRACE_S), self._room:
                return await self._replies(request)
        except TimeoutError:
            error = failure(channel, 408, "timeout")
            if request.outgoing is None:
                error.args = (f"{error.args[0]}: {_NO_ROOM}",)
            raise error from None

    async def _replies(self, request: _Request) -> list[Message]:
        if self.channel is None:
            raise ClientError("the server does not offer requests")
        self._expect(request)
        try:
            request.outgoing = self._send(request.message, repeat=Repeat.NEVER)
            request.outgoing.reply.add_done_callback(request.accepted)
            return await request.done
        finally:
            self._outstanding.pop(request.message["ext"]["replyTo"], None)
            if request.outgoing is not None:
                request.outgoing.reply.cancel()

    def _expect(self, request: _Request) -> None:
        """Choose the channel of the request's replies."""
        reply_to = self._next_channel()
        while reply_to in self._outstanding:
            reply_to = self._next_channel()
        # A message that waits to be sent takes the new channel, too: it shares this `ext`.
        request.message["ext"]["replyTo"] = reply_to
        self._outstanding[reply_to] = request

    def _next_channel(self) -> str:
        return f"{self.channel}/{_PYTHON + next(self._serials) % _SERIALS}"

    def take(self, message: Message) -> bool:
        """Pass a reply on to its request; return False for any other message."""
        if self.channel is None or not message.channel.startswith(self.channel):
            return False
        request = self._outstanding.get(message.channel)
        if request is not None:
            request.take(message)
        return True

    def fail_all(self, error: ClientError) -> None:
        """Fail all outstanding requests with this error."""
        for request in self._outstanding.values():
            request.fail(error)
