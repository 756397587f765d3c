"""What a client sends: publishes, posts of its outbox, requests and batches."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, Unpack
from uuid import uuid4

from holdfast.client.conversation import Conversation
from holdfast.client.life import Home, WrongUse
from holdfast.client.messages import Message
from holdfast.client.outbox import Outbox
from holdfast.client.outgoing import Outgoing, Repeat
from holdfast.client.posting import Posting
from holdfast.client.publish_options import Destination, PublishOptions, publish_ext, takes_keys
from holdfast.client.publish_reply import PublishReply
from holdfast.client.requests import Requests
from holdfast.client.wire import Json, packed


class Sender:
    """The part of a client that sends; `Client` opens its conversation, and receives."""

    def __init__(self, outbox: Outbox | None, *, longest_pause_s: float) -> None:
        self._longest_pause_s = longest_pause_s
        self._conversation: Conversation | None = None
        self._home: Home | None = None
        self._requests = Requests(self._send)
        self._outbox = outbox
        # The task that sends the messages of the outbox, while there are any.
        self._posting: asyncio.Task[None] | None = None

    async def publish(
        self,
        channel: str,
        data: Any,  # noqa: ANN401
        *,
        timeout_s: float | None = None,
        **options: Unpack[PublishOptions],
    ) -> PublishReply:
        """Publish a message; return when the server has accepted it.

        Without a connection it waits, for at most `timeout_s`: then it raises `NotConnected` if the
        message was not sent and will not be, and `ConnectionLost` if it was. Messages that are
        published meanwhile, or in the same turn of the event loop, go together. Raises `ReplyError`
        if the server refuses the message, and `ConnectionLost` if it cannot be known whether it was
        accepted. With a `key`, a server that knows keys gets it again until that is known, and
        delivers it once; if the server fails on it five times, the client gives it up.

        Args:
            channel: Such as `/orders/new`.
            data: Anything that JSON can hold.
            timeout_s: How long to wait for the reply; without it, for as long as it takes.
            options: `key`, `priority`, `persistent`, `lifetime_s`, and others: `PublishOptions`
                says what they mean.
        """
        repeat = Repeat.NEVER if options.get("key") is None else Repeat.BY_KEY
        message: Json = {"channel": channel, "data": data, "ext": publish_ext(**options)}
        outgoing = self._send(message, repeat=repeat)
        try:
            async with asyncio.timeout(timeout_s):
                reply = await outgoing.reply
        except TimeoutError as error:
            raise outgoing.given_up(timeout_s or 0.0) from error
        return PublishReply.of(reply)

    async def post(
        self,
        channel: str,
        data: Any,  # noqa: ANN401
        **options: Unpack[PublishOptions],
    ) -> None:
        """Put a message into the outbox; return when it is in the file.

        It is sent in its turn as soon as the server can be reached, by this client or by the next
        one with the same outbox, and again until the server says that it was accepted. Each
        message has a `key`, by which the server recognises repeats, if the session has a name or
        the client logs in. Takes the arguments of `publish`. Raises `OutboxFull`.
        """
        if self._outbox is None:
            raise WrongUse("a client needs an outbox to post: Client(..., outbox=Outbox(path))")
        self._check_home()
        if takes_keys(channel):
            options.setdefault("key", uuid4().hex)
        self._outbox.add({"channel": channel, "data": data, "ext": publish_ext(**options)})
        self._start_posting(self._outbox)

    def _start_posting(self, outbox: Outbox) -> None:
        if self._posting is None or self._posting.done():
            posting = Posting(outbox, self._send, longest_pause_s=self._longest_pause_s)
            self._posting = self._run(posting.send_all())

    async def request(
        self,
        channel: str,
        data: Any,  # noqa: ANN401
        *,
        timeout_s: float = 10.0,
        mode: Literal["first", "one"] = "first",
        mime: str | None = None,
        destinations: Sequence[Destination] | None = None,
        qos: Mapping[str, Any] | None = None,
    ) -> Message:
        """Publish a request; return the reply.

        Raises `RequestFailed` if there is none: its `code` and `text` are 404 `no_responders`,
        408 `timeout`, 500 `responder_error` with the responder's `refusal`, or what the server
        says of a request that it does not accept. 402 `session_lost` means that the session
        ended meanwhile.

        Args:
            channel: Such as `/prices/ask`.
            data: Anything that JSON can hold.
            timeout_s: How long to wait for the reply.
            mode: `first` asks all receivers for the first reply, `one` asks one receiver.
            mime: The media type of the data, if they are not plain JSON.
            destinations: Sessions or subjects, such as `joe/1` or `joe`, that are asked.
            qos: Further options of `ext.delivery`.
        """
        ext = publish_ext(mime=mime, destinations=destinations, qos=qos)
        replies = await self._requests.ask(channel, data, ext, timeout_s, mode=mode, collects=False)
        return replies[0]

    # The name that xMsg has for it.
    sync_publish = request

    async def request_all(
        self,
        channel: str,
        data: Any,  # noqa: ANN401
        *,
        timeout_s: float = 10.0,
        mime: str | None = None,
        destinations: Sequence[Destination] | None = None,
        qos: Mapping[str, Any] | None = None,
    ) -> Sequence[Message]:
        """Publish a request; return the replies of all receivers that answer within the timeout.

        Takes the arguments of `request`, and raises `RequestFailed` if there is no reply.
        """
        ext = publish_ext(mime=mime, destinations=destinations, qos=qos)
        return await self._requests.ask(channel, data, ext, timeout_s, mode="all", collects=True)

    def _send(self, message: Json, *, repeat: Repeat, goes_first: bool = False) -> Outgoing:
        # Data that JSON cannot hold is this caller's error: find it before others' messages join.
        size = len(packed(message))
        return self._opened().send(message, repeat=repeat, size=size, goes_first=goes_first)

    @asynccontextmanager
    async def batch(self) -> AsyncIterator[None]:
        """Send what is published or subscribed inside together, when the block ends.

        Await nothing inside that needs a reply; begin it with `asyncio.create_task`, or with
        `asyncio.gather` outside of a batch.
        """
        conversation = self._opened()
        conversation.pause_sending()
        try:
            yield
            # Tasks that were created inside get to their messages.
            await asyncio.sleep(0)
        finally:
            conversation.resume_sending()

    def _opened(self) -> Conversation:
        if self._conversation is None:
            raise WrongUse("enter the client first: async with Client(...) as client")
        self._check_home()
        return self._conversation

    def _stay_here(self) -> None:
        """Refuse calls from any other event loop or process from now on."""
        self._home = Home()

    def _check_home(self) -> None:
        if self._home is not None:
            self._home.check()

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin a task that the client waits for when it is closed."""
        raise NotImplementedError
