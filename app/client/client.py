"""The asyncio client: `async with Client(url) as client`."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from ssl import SSLContext
from types import TracebackType
from typing import Any, NoReturn, Self

import aiohttp

from holdfast.client.address import Address
from holdfast.client.conversation import Conversation
from holdfast.client.errors import (
    ClientError,
    NotConnected,
    SessionEnded,
)
from holdfast.client.handshakes import Handshakes, Token
from holdfast.client.http_session import http_session
from holdfast.client.inbox import Inbox
from holdfast.client.life import ClientState, WrongUse
from holdfast.client.messages import Message
from holdfast.client.outbox import Outbox
from holdfast.client.publish_options import (
    subscribe_ext,
)
from holdfast.client.responding import Responder
from holdfast.client.sender import Sender
from holdfast.client.subscriptions import ITERATED, Callback, NewSubscription, usable
from holdfast.client.transport_choice import LONG_POLLING, WEBSOCKET, TransportChoice
from holdfast.client.wire import LOGIN, Json, part_of

_log = logging.getLogger(__name__)


class Client(Sender):
    """A client of Holdfast, or of another Bayeux server.

    It connects when it is entered, and from then on keeps its session: after a lost connection it
    connects again, and if the server has forgotten the session, it starts another one and
    subscribes again. Everything it does happens in the event loop that entered it.
    """

    def __init__(
        self,
        url: str,
        *,
        session: str | Mapping[str, Any] | None = None,
        token: Token | None = None,
        credentials: Mapping[str, str] | None = None,
        terms: Mapping[str, Any] | None = None,
        transports: Sequence[str] = (WEBSOCKET, LONG_POLLING),
        max_queue: int = 1000,
        outbox: Outbox | None = None,
        headers: Mapping[str, str] | None = None,
        ssl: SSLContext | None = None,
        connector: aiohttp.BaseConnector | None = None,
        connect_timeout_s: float = 30.0,
        close_timeout_s: float = 5.0,
        longest_pause_s: float = 30.0,
        on_state: Callable[[ClientState], None] | None = None,
    ) -> None:
        """Make a client, which sends nothing before it is entered.

        Args:
            url: The server's URL, without a path `/cometd`, or `unix:/path/of/socket`.
            session: The name of a session that outlives the client, such as `joe/1`, or an object
                with its options.
            token: A token to log in with, or a function that gets one, for each handshake and
                whenever the login is about to end. It may be a coroutine function.
            credentials: `{"user": ..., "password": ...}` instead of a token.
            terms: Options of `ext.delivery` in the handshake, such as `{"retries": 3}`.
            transports: `websocket` and `long-polling`, the preferred one first.
            max_queue: Messages that may be open, which means received and not finished. With
                that many, the client asks for no more.
            outbox: Where `post` keeps messages until the server has accepted them. With it, the
                client may be entered while the server cannot be reached.
            headers: For each request.
            ssl: How to verify the server, or to show a certificate.
            connector: An aiohttp connector that several clients share. It is not closed.
            connect_timeout_s: How long to try before `NotConnected` is raised.
            close_timeout_s: How long callbacks and the server have when the client is closed.
            longest_pause_s: The longest pause between two attempts to connect.
            on_state: Called with each new state. An exception is logged.
        """
        super().__init__(outbox, longest_pause_s=longest_pause_s)
        self._address = Address(url)
        self._max_queue = max_queue
        self._choice = TransportChoice(transports)
        self._headers = headers
        self._ssl = ssl
        self._connector = connector
        self._connect_timeout_s = connect_timeout_s
        self._close_timeout_s = close_timeout_s
        self._on_state = on_state
        self._http: aiohttp.ClientSession | None = None
        self._inbox = Inbox(self._send, self._settled)
        self._handshakes = Handshakes(
            session=session,
            terms=terms,
            credentials=credentials,
            token=token,
            max_queue=max_queue,
            requests=self._requests,
        )
        self._has_token = token is not None
        self._session_name: str | None = None
        self._is_resumed = False
        self._lost_subscriptions: tuple[str, ...] = ()

    # Life

    async def __aenter__(self) -> Self:
        if self._conversation is not None:
            raise WrongUse("a client can be entered only once: create another one")
        self._stay_here()
        connector = self._connector or self._address.connector(self._ssl)
        self._http = http_session(connector, self._headers, owns_connector=self._connector is None)
        self._conversation = Conversation(
            self._http,
            self._address.url,
            self,
            self._handshakes,
            self._inbox.settling,
            self._choice,
            self._receive,
            max_queue=self._max_queue,
            longest_pause_s=self._longest_pause_s,
        )
        try:
            await self._open(self._conversation)
        except BaseException:
            await self.close()
            raise
        if self._has_token:
            _ = self.listen(LOGIN, self._renew)
        ended = self._conversation.ended
        assert ended is not None
        ended.add_done_callback(self._conversation_ended)
        return self

    async def _open(self, conversation: Conversation) -> None:
        if self._outbox is None:
            await conversation.open(self._connect_timeout_s)
            return
        self._outbox.open()
        try:
            await conversation.open(self._connect_timeout_s)
        except NotConnected as error:
            _log.info("the outbox waits for the server: %s", error)
        self._start_posting(self._outbox)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._inbox.finish_current()
        await self.close()

    def __enter__(self) -> NoReturn:
        raise WrongUse("write async with; without an event loop, use SyncClient")

    def __exit__(self, *_: object) -> None:
        """Exist, so that `with` gets to what `__enter__` says."""

    async def close(self, *, end: bool = False) -> None:
        """Leave the server, after the callbacks that are running have returned.

        A named session waits for its next client, with the messages that were not processed; with
        `end`, it ends, and they become dead letters. Any other session ends.
        """
        self._check_home()
        self._inbox.end(StopAsyncIteration())
        self._requests.fail_all(ClientError("the client was closed"))
        if self._posting is not None and self.state is not ClientState.CONNECTED:
            # Messages in the outbox stay there for the next client.
            self._posting.cancel()
        conversation, http = self._conversation, self._http
        # A second Ctrl-C, which interrupts this, leaves nothing open either.
        async with AsyncExitStack() as stack:
            if self._outbox is not None:
                stack.callback(self._outbox.close)
            if http is not None:
                stack.push_async_callback(http.close)
            if conversation is not None:
                stack.push_async_callback(
                    conversation.close, self._close_timeout_s, lambda: self._farewell(end)
                )
            await self._inbox.wait(self._close_timeout_s)

    async def wait_closed(self) -> None:
        """Wait until the client is closed. Raises `SessionEnded` if the server ends the session."""
        life = self._opened().ended
        if life is not None:
            await asyncio.wait([life])
            if not life.cancelled():
                await life

    @property
    def state(self) -> ClientState:
        """The present state of the client."""
        return ClientState.NEW if self._conversation is None else self._conversation.state

    @property
    def session_name(self) -> str | None:
        """The full name of the session, such as `client/joe/1`, if the server gave it one."""
        return self._session_name

    @property
    def is_resumed(self) -> bool:
        """Whether the session was there before this client, with its queue and subscriptions."""
        return self._is_resumed

    @property
    def lost_subscriptions(self) -> tuple[str, ...]:
        """The subscriptions of a resumed session that ended while no client was there."""
        return self._lost_subscriptions

    # Receiving

    def subscribe(
        self,
        channel: str,
        callback: Callback = ITERATED,
        *,
        filter: str | None = None,
        history: int | None = None,
        replay: object = None,
        qos: Mapping[str, Any] | None = None,
    ) -> NewSubscription:
        """Receive the messages of a channel or pattern; await it, or iterate over it.

        A message is acknowledged when the callback has returned. If the callback raises `Refuse`,
        that is the verdict on the message; any other exception refuses it with
        `user.update.internalError`. Messages of one subscription are processed one by one.

        Args:
            channel: Such as `/orders/new`, `/orders/*` or `/orders/**`.
            callback: A function or a coroutine function.
            filter: A condition that messages must fulfil, such as `data.price > 100`.
            history: How many of the newest messages that each channel keeps come first; -1 for all.
            replay: Where to begin in what the channels keep, as `ext.replay` has it.
            qos: Further options of `ext.delivery`.
        """
        ext = subscribe_ext(filter=filter, history=history, replay=replay, qos=qos)
        return self._subscribe(channel, callback, ext, is_local=False)

    def listen(self, channel: str, callback: Callback = ITERATED) -> NewSubscription:
        """Receive what the server sends on a channel without a subscription.

        That is what is addressed to this session, and what comes on service channels.
        """
        return self._subscribe(channel, callback, {}, is_local=True)

    def _subscribe(
        self, channel: str, callback: Callback, ext: dict[str, Any], *, is_local: bool
    ) -> NewSubscription:
        if not isinstance(channel, str):
            raise TypeError(
                f"{channel!r} is no channel: subscribe to one channel or pattern at a time"
            )
        called = None if callback is ITERATED else usable(callback)
        return self._opened_inbox().subscribe(channel, called, ext, is_local=is_local)

    def _opened_inbox(self) -> Inbox:
        self._opened()
        return self._inbox

    def _receive(self, events: Sequence[Json]) -> None:
        settling = self._inbox.settling
        for event in events:
            message = Message(event)
            if settling.receive(message):
                if self._requests.take(message):
                    settling.finish(message)
                else:
                    self._inbox.pass_on(message)

    def _settled(self) -> None:
        if self._conversation is not None:
            self._conversation.settled()

    def respond(
        self,
        channel: str,
        callback: Callback,
        *,
        filter: str | None = None,
        qos: Mapping[str, Any] | None = None,
    ) -> NewSubscription:
        """Reply to the requests on a channel with what the callback returns; await it.

        To state the type of the data, return a `Reply` or a message. If the callback raises
        `Refuse`, that is the requester's error, unless somebody else replies; any other exception
        refuses the request with `user.update.internalError`. Otherwise this works like `subscribe`.
        If a message is not a request, the result of the callback is dropped.
        """
        responder = Responder(usable(callback), self._send, self._inbox.finished)
        return self.subscribe(channel, responder, filter=filter, qos=qos)

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._inbox.run(work)

    # For the conversation

    def begin_session(self, reply: Json) -> None:
        """Subscribe again, unless the session has kept its subscriptions."""
        self._session_name = part_of(reply, "ext", "delivery", "session", "name")
        self._is_resumed = part_of(reply, "ext", "delivery", "resumed") is True
        lost = part_of(reply, "ext", "delivery", "lostSubscriptions")
        self._lost_subscriptions = tuple(lost) if isinstance(lost, list) else ()
        self._requests.begin_session(part_of(reply, "ext", "ret"))
        if self._is_resumed:
            return
        self._inbox.subscribe_again()

    def contact_failed(self, error: Exception) -> None:
        """Do nothing: the client tries again."""

    def state_changed(self, state: ClientState) -> None:
        """Pass the new state on."""
        if self._on_state is None:
            return
        try:
            self._on_state(state)
        except Exception:
            _log.exception("on_state failed for %s", state.value)

    def _conversation_ended(self, life: asyncio.Task[None]) -> None:
        if not life.cancelled() and (error := life.exception()) is not None:
            reason = error if isinstance(error, SessionEnded) else SessionEnded(repr(error))
            _log.error("session %s has ended: %s", self._session_name or "without a name", reason)
            self._inbox.end(reason)
            self._requests.fail_all(reason)

    async def _renew(self, _warning: Message) -> None:
        """Give the server a new token before the login ends."""
        try:
            message: Json = {"channel": LOGIN, "data": {}, "ext": await self._handshakes.login()}
            await self._opened().send(message).reply
        except ClientError as error:
            _log.warning("the login was not renewed: %s", error)

    def _farewell(self, end: bool) -> Json:
        ext = self._inbox.settling.disconnect_ext()
        if end and self._inbox.settling.has_verdicts:
            ext["delivery"] = {**ext.get("delivery", {}), "end": True}
        return ext
