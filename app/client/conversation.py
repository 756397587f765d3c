"""The conversation with a server: handshakes, connects, and what is sent beside them."""

import asyncio
import itertools
import logging
import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Protocol

import aiohttp

from holdfast.client.advice import on_contact
from holdfast.client.errors import (
    ClientError,
    NotConnected,
    ReplyError,
    SessionEnded,
    TokenFailed,
    end_because_of,
)
from holdfast.client.handshakes import Handshakes
from holdfast.client.life import ClientInput, ClientState, next_state
from holdfast.client.long_polling import LongPolling
from holdfast.client.outgoing import Outgoing, OutgoingQueue, Repeat
from holdfast.client.pacing import Pacing, Step
from holdfast.client.reporting import Reporting, warn_of_unknown
from holdfast.client.settling import Settling
from holdfast.client.transport_choice import TransportChoice
from holdfast.client.transports import (
    NoReply,
    NotSent,
    Receive,
    RequestRefused,
    ServerFault,
    Transport,
)
from holdfast.client.websocket import CannotOpen, WebSocket
from holdfast.client.wire import CONNECT, DISCONNECT, HANDSHAKE, Json, complete_link, part_of

# How long the sender waits for a new session before it tries the old one again.
_NEW_SESSION_S = 5.0
# After this time without a session, the client says so.
_QUIET_S = 1.0
# Replies to anything but a connect are due in this time.
_REPLY_S = 20.0
_log = logging.getLogger(__name__)


class ConversingClient(Protocol):
    """The part of its client that a conversation needs."""

    def begin_session(self, reply: Json) -> None:
        """Take a session that has just begun."""
        ...

    def contact_failed(self, error: Exception) -> None:
        """Take note that the server sent no reply. An exception ends the conversation."""
        ...

    def state_changed(self, state: ClientState) -> None:
        """Take note of a new state."""
        ...


class Conversation:
    """Keeps a session of the server alive, as long as it is not closed."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        url: str,
        client: ConversingClient,
        handshakes: Handshakes,
        settling: Settling,
        choice: TransportChoice,
        receive: Receive,
        *,
        max_queue: int,
        longest_pause_s: float,
    ) -> None:
        self._url = url
        self._client = client
        self._handshakes = handshakes
        self._settling = settling
        self._choice = choice
        self._reporting = Reporting(
            settling, max_queue, send=self.send, is_over=lambda: self.state is ClientState.CLOSED
        )
        self._transports: dict[str, Transport] = {
            LongPolling.name: LongPolling(http, url, receive),
            WebSocket.name: WebSocket(http, url, receive, self._reporting.has_room_for_pushed),
        }
        self._pacing = Pacing(random.random, longest_pause_s=longest_pause_s)
        self._sending_pace = Pacing(random.random, longest_pause_s=longest_pause_s)
        self._ids = itertools.count(1)
        self._client_id: str | None = None
        # Whether the server recognises a publish that it gets again by its key.
        self._knows_keys = False
        self.state = ClientState.NEW
        self._queue = OutgoingQueue()
        self._pauses = 0
        self._sender: asyncio.Task[None] | None = None
        self._life: asyncio.Task[None] | None = None
        # Cleared when the client says goodbye. After that, no reply may begin another session, or
        # end this one as if the server had done it.
        self._stays = asyncio.Event()
        self._stays.set()
        self._closing = asyncio.Lock()
        # Set while the server is believed to know the session.
        self._has_session = asyncio.Event()
        # Set by an answer to a handshake or a connect, cleared when there is none.
        self._has_contact = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Why nothing can be sent.
        self._end = SessionEnded("the client is not open")
        # Why the last attempt failed.
        self._failure: Exception | None = None

    # Life

    async def open(self, timeout_s: float) -> None:
        """Shake hands. Raises `NotConnected`, and `ReplyError` if the server denies it."""
        self._move(ClientInput.OPEN)
        self._life = asyncio.create_task(self._live())
        # If it ends before there is a session, the caller of `open` gets the error.
        self._life.add_done_callback(lambda life: life.cancelled() or life.exception())
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.wait([self._opened], timeout=_QUIET_S)
                if not self._opened.done():
                    why = self._why()
                    _log.warning("no session at %s so far: %s", self._url, why)
                await asyncio.shield(self._opened)
        except TimeoutError:
            text = f"no session within {timeout_s:g} s: {self._why()}"
            raise NotConnected(text) from self._failure

    def _why(self) -> str:
        """Return why there is no session yet."""
        return on_contact(self._failure or "there is no answer yet")

    @property
    def ended(self) -> asyncio.Task[None] | None:
        """The task that ends with the conversation; it raises `SessionEnded`."""
        return self._life

    async def close(self, timeout_s: float, ext: Callable[[], Json]) -> None:
        """Say goodbye, if the server can be reached in this time."""
        if self.state is ClientState.NEW:
            return
        async with self._closing:
            try:
                if self.state is not ClientState.CLOSED:
                    await self._leave(timeout_s, ext)
            finally:
                await self._stop()

    async def _leave(self, timeout_s: float, ext: Callable[[], Json]) -> None:
        self._move(ClientInput.CLOSE)
        try:
            async with asyncio.timeout(timeout_s):
                if self._sender is not None:
                    await self._sender
                self._stays.clear()
                if self._client_id is not None:
                    await self._request(self._message(DISCONNECT, ext=ext()), timeout_s)
        except (TimeoutError, NotSent, NoReply) as error:
            _log.debug("the server was not told that the client leaves: %s", error)

    async def _stop(self) -> None:
        if self.state is not ClientState.CLOSED:
            self._move(ClientInput.END)
        tasks = [task for task in (self._life, self._sender) if task is not None]
        for task in tasks:
            task.cancel()
        # How they end is reported where it matters.
        await asyncio.gather(*tasks, return_exceptions=True)
        self._queue.fail_all(ClientError("the client was closed"))
        for transport in self._transports.values():
            await transport.close()

    async def _live(self) -> None:
        try:
            await self._keep_session()
            error: Exception = self._failure or end_because_of(None)
        except Exception as failure:
            # The program is at fault, for example by the terms or headers that it gave.
            error = failure
        if not self._opened.done():
            self._opened.set_exception(error)
            # Perhaps no caller waits for it any longer.
            self._opened.exception()
        self._end = end_because_of(error)
        self._queue.fail_all(self._end)
        self._move(ClientInput.END)
        raise self._end from error

    async def _keep_session(self) -> None:
        """Shake hands and connect, until the server ends the session."""
        pause_s = 0.0
        while True:
            if pause_s:
                await asyncio.sleep(pause_s)
            await self._stays.wait()
            if self._pacing.step is Step.STOP:
                return
            shakes_hands = self._pacing.step is Step.HANDSHAKE
            pause_s = await (self._shake_hands() if shakes_hands else self._connect())

    def _move(self, seen: ClientInput) -> None:
        before, self.state = self.state, next_state(self.state, seen)
        if self.state is not before:
            self._client.state_changed(self.state)

    def _unless_closing(self, seen: ClientInput) -> None:
        if self.state is not ClientState.CLOSING:
            self._move(seen)

    # The session

    async def _shake_hands(self) -> float:
        self._forget()
        message = self._message(
            HANDSHAKE,
            version="1.0",
            minimumVersion="1.0",
            supportedConnectionTypes=[*self._choice.names],
        )
        try:
            message["ext"] = await self._handshakes.ext()
            [reply] = await self._request(message, _REPLY_S)
        except (NotSent, NoReply, ValueError, TokenFailed) as error:
            return self._lose(error)
        if reply.get("successful") is not True:
            self._failure = ReplyError(reply)
            if self._handshakes.asks_for_less(self._failure):
                return 0.0
        pause_s = self._pacing.answered(reply)
        if reply.get("successful") is True:
            self._has_contact.set()
            self._client_id = str(reply["clientId"])
            self._choice.offered(reply.get("supportedConnectionTypes"))
            ext = reply.get("ext") or {}
            self._knows_keys = isinstance(ext.get("delivery"), dict)
            self._settling.begin(has_acks=bool(ext.get("ack")), has_verdicts=self._knows_keys)
            self._unless_closing(ClientInput.CONTACT)
            self._client.begin_session(reply)
            self._has_session.set()
            if not self._opened.done():
                self._opened.set_result(None)
        return pause_s

    def _forget(self) -> None:
        """There is no session until the next handshake succeeds."""
        self._client_id = None
        self._has_session.clear()
        self._reporting.forget()
        self._unless_closing(ClientInput.FORGET)

    async def _connect(self) -> float:
        await self._reporting.before_connect(self._pacing.max_interval_s)
        ext, sent = self._reporting.connect_ext()
        message = self._message(CONNECT, ext=ext)
        timeout_s = self._pacing.timeout_s
        if self._pacing.failures:
            # To hear at once whether the session still lives.
            message["advice"] = {"timeout": 0}
        try:
            replies = await self._request(message, timeout_s)
            [reply] = [each for each in replies if each["channel"] == CONNECT]
        except (NotSent, NoReply, ValueError) as error:
            self._settling.failed(sent)
            return self._lose(error)
        pause_s = self._pacing.answered(reply)
        if reply.get("successful") is True:
            self._has_contact.set()
            warn_of_unknown(reply)
            self._settling.end_batch(part_of(reply, "ext", "ack"))
            self._unless_closing(ClientInput.CONTACT)
            self._has_session.set()
        else:
            self._settling.failed(sent)
            self._failure = ReplyError(reply)
            if self._pacing.step is Step.HANDSHAKE:
                _log.warning("the server has ended the session, and gets a handshake: %s", reply)
        return pause_s

    def _lose(self, error: Exception) -> float:
        """Note that there was no reply; return how long to wait."""
        self._failure = error
        self._has_contact.clear()
        self._client.contact_failed(error)
        self._unless_closing(ClientInput.LOSS)
        pause_s = self._pacing.unanswered()
        # Once for each time in which the server does not answer.
        level = logging.WARNING if self._pacing.failures == 1 else logging.INFO
        why = on_contact(error)
        _log.log(level, "%s does not answer (%s): tried again in %.1f s", self._url, why, pause_s)
        return pause_s

    def settled(self) -> None:
        """Take note that a message was finished."""
        self._reporting.settled()

    # Sending

    def send(
        self,
        message: Json,
        *,
        repeat: Repeat = Repeat.NEVER,
        size: int = 200,
        goes_first: bool = False,
    ) -> Outgoing:
        """Queue a message for the next request, behind all others or before them."""
        if self.state in (ClientState.NEW, ClientState.CLOSED):
            raise type(self._end)(str(self._end))
        reply = asyncio.get_running_loop().create_future()
        outgoing = Outgoing(message, reply, repeat, size)
        if goes_first:
            self._queue.put_first([outgoing])
        else:
            self._queue.add(outgoing)
        self._start_sender()
        return outgoing

    def pause_sending(self) -> None:
        """Send nothing until `resume_sending`."""
        self._pauses += 1

    def resume_sending(self) -> None:
        """Send what was queued meanwhile, in one request if it has room."""
        self._pauses -= 1
        self._start_sender()

    def _start_sender(self) -> None:
        if not self._pauses and self._queue and (self._sender is None or self._sender.done()):
            self._sender = asyncio.create_task(self._send_queue())

    async def _send_queue(self) -> None:
        while self._queue and not self._pauses:
            await self._has_session.wait()
            sent = self._queue.take(knows_keys=self._knows_keys)
            if sent:
                await self._send(sent)

    async def _send(self, sent: Sequence[Outgoing]) -> None:
        messages = [self._message(**each.message) for each in sent]
        for each, message in zip(sent, messages, strict=True):
            each.message = message
        # Of the server that gets the request; the next handshake may be with another.
        knows_keys = self._knows_keys
        try:
            replies = await self._request_all(messages, _REPLY_S)
        except RequestRefused as error:
            self._queue.refused(sent, error.wire)
        except ServerFault as error:
            self._queue.failed(sent, str(error), knows_keys=knows_keys)
            await asyncio.sleep(self._sending_pace.unanswered())
        except (NotSent, NoReply) as error:
            was_sent = isinstance(error, NoReply)
            self._queue.lost(sent, was_sent=was_sent, knows_keys=knows_keys)
            await self._until_contact(self._sending_pace.unanswered())
        else:
            self._sending_pace.failures = 0
            if not self._queue.answered(sent, replies):
                await self._until_new_session()

    async def _until_contact(self, pause_s: float) -> None:
        """Wait this long, or until the server answers again."""
        self._has_contact.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause_s):
                await self._has_contact.wait()

    async def _until_new_session(self) -> None:
        self._has_session.clear()
        try:
            async with asyncio.timeout(_NEW_SESSION_S):
                await self._has_session.wait()
        except TimeoutError:
            self._has_session.set()

    def _message(self, channel: str, **fields: object) -> Json:
        message: Json = {**fields, "channel": channel, "id": str(next(self._ids))}
        if self._client_id is not None:
            message["clientId"] = self._client_id
        if not message.get("ext", True):
            del message["ext"]
        return message

    async def _request(self, message: Json, timeout_s: float) -> list[Json]:
        replies = await self._request_all([message], timeout_s)
        return [reply for reply in replies if reply.get("id") == message["id"]] or replies

    async def _request_all(self, messages: list[Json], timeout_s: float) -> list[Json]:
        """Send a request by the best transport that works."""
        now = asyncio.get_running_loop().time
        name = self._choice.choose(now())
        try:
            return await self._request_by(name, messages, timeout_s)
        except CannotOpen as error:
            reason = str(error)
            self._choice.failed(name, now())
        other = self._choice.choose(now())
        try:
            replies = await self._request_by(other, messages, timeout_s)
        except NotSent:
            # Nothing reaches the server: that says nothing about the transport.
            self._choice.trust(name)
            raise
        if other != name:
            _log.info("no WebSocket (%s): long-polling for now", reason)
        return replies

    async def _request_by(self, name: str, messages: list[Json], timeout_s: float) -> list[Json]:
        for message in messages:
            if message["channel"] == CONNECT:
                message["connectionType"] = name
        replies = await self._transports[name].send(messages, timeout_s)
        for reply in replies:
            complete_link(reply, self._url)
        self._choice.trust(name)
        return replies
