"""Subscriptions of a client: they call back, or are iterated."""

import asyncio
import inspect
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

from holdfast.client.errors import Refuse
from holdfast.client.life import WrongUse, check_loop
from holdfast.client.messages import Message

Callback = Callable[[Message], Awaitable[object] | object]
# Stands for the callback of a subscription that is iterated: a None was a mistake.
ITERATED: Any = object()

# Callbacks that never wait let the rest of the program run after this number of messages.
_IN_ONE_TURN = 200
# A function that blocks the event loop for longer is named in the log.
_SLOW_S = 1.0
_log = logging.getLogger(__name__)


class SubscriptionInbox(Protocol):
    """The part of the inbox that subscriptions need."""

    def finished(self, message: Message) -> None:
        """Take note that a subscription has finished with a message."""
        ...

    def run(self, work: Coroutine[Any, Any, None]) -> object:
        """Run a callback until it ends, or the client is closed."""
        ...

    async def leave(self, subscription: "Subscription") -> None:
        """Remove a subscription; unsubscribe with the last one for its channel."""
        ...


def usable(callback: Callback) -> Callback:
    """Return the callback. Raises `TypeError` if it is none, or would never run."""
    if not callable(callback):
        raise TypeError(
            f"{callback!r} is no function: give the function itself, such as print, and not its "
            "result, print()"
        )
    if inspect.isasyncgenfunction(callback) or inspect.isgeneratorfunction(callback):
        name = getattr(callback, "__qualname__", repr(callback))
        raise TypeError(f"{name} has a yield, so it would never run: return a value, or nothing")
    return callback


async def run(callback: Callback, message: Message) -> object:
    """Call back, and return the result; warn of a function that blocks the event loop."""
    begun = time.monotonic()
    try:
        result = callback(message)
    finally:
        blocked_s = time.monotonic() - begun
        if blocked_s > _SLOW_S:
            _log.warning(
                "%s blocked the event loop for %.1f s; the server ends the session of a client "
                "that is silent for long: use asyncio.to_thread, or SyncClient",
                *(getattr(callback, "__qualname__", repr(callback)), blocked_s),
            )
    return await result if inspect.isawaitable(result) else result


class Subscription:
    """The subscription to a channel, or to a pattern such as `/orders/**`.

    Without a callback, iterate over it: `async for message in subscription`. A message is finished
    when the next one is asked for; if the loop ends by an exception, its last message is not, and
    comes again.
    """

    def __init__(
        self,
        inbox: SubscriptionInbox,
        channel: str,
        callback: Callback | None,
        ext: Mapping[str, Any],
        accepted: asyncio.Future[None],
        *,
        is_local: bool,
    ) -> None:
        self.channel = channel
        self.ext = ext
        # Whether the server sends the messages without a subscription.
        self.is_local = is_local
        self._inbox = inbox
        self._callback = callback
        self._accepted = accepted
        self._messages: deque[Message] = deque()
        self._is_running = False
        # The message that the iterating loop works on.
        self._current: Message | None = None
        self._arrival: asyncio.Future[None] | None = None
        # Why no further message comes.
        self._end: Exception | None = None

    def __repr__(self) -> str:
        return f"Subscription({self.channel!r})"

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        if self._callback is not None or self._arrival is not None:
            raise WrongUse("a subscription has a callback, or one loop that iterates over it")
        check_loop(self._accepted.get_loop())
        await self._accepted
        self.finish_current()
        while self._end is None:
            self._current = self._next()
            if self._current is not None:
                return self._current
            self._arrival = asyncio.get_running_loop().create_future()
            try:
                await self._arrival
            finally:
                self._arrival = None
        raise self._end

    async def __aenter__(self) -> Self:
        await self._accepted
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.finish_current()
        await self.close()

    async def close(self) -> None:
        """Unsubscribe. What has arrived and was not processed stays unfinished."""
        self.end(StopAsyncIteration())
        await self._inbox.leave(self)

    def refuse(self, code: str, text: str = "", *, delay_s: float | None = None) -> None:
        """Refuse the message that the loop works on, as raising `Refuse` does in a callback."""
        if self._current is None:
            raise WrongUse("there is no message to refuse")
        self._current.refusal = Refuse(code, text, delay_s=delay_s)
        self.finish_current()

    # For the client

    @property
    def is_accepted(self) -> bool:
        """Whether the server has accepted it."""
        return self._accepted.done() and not self._accepted.cancelled()

    def accept(self) -> None:
        """Note that the server has accepted the subscription, perhaps again."""
        if not self._accepted.done():
            self._accepted.set_result(None)

    def offer(self, message: Message) -> None:
        """Take a message, to be processed after those before it."""
        self._messages.append(message)
        if self._callback is not None:
            if not self._is_running:
                self._is_running = True
                self._inbox.run(self._call_back(self._callback))
        elif self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def finish_current(self) -> None:
        """Note that the loop has finished with its message."""
        message, self._current = self._current, None
        if message is not None:
            self._inbox.finished(message)

    def end(self, reason: Exception) -> None:
        """End the subscription; a running iteration raises the reason."""
        if self._end is None:
            self._end = reason
        if not self._accepted.done():
            if isinstance(reason, StopAsyncIteration):
                self._accepted.cancel()
            else:
                self._accepted.set_exception(reason)
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _next(self) -> Message | None:
        """Begin the next message, if there is one."""
        while self._messages:
            message = self._messages.popleft()
            if not message.is_returned:
                message.has_begun = True
                return message
        return None

    async def _call_back(self, callback: Callback) -> None:
        count = 0
        try:
            while self._end is None and (message := self._next()) is not None:
                try:
                    await run(callback, message)
                except Refuse as refusal:
                    message.refusal = message.refusal or refusal
                except Exception as error:
                    _log.exception("the callback for %s failed", self.channel)
                    message.refusal = message.refusal or error
                self._inbox.finished(message)
                count += 1
                if count % _IN_ONE_TURN == 0:
                    await asyncio.sleep(0)
        finally:
            self._is_running = False


class NewSubscription(Subscription):
    """A subscription as it begins: await it to wait until the server has accepted it.

    For type checkers, what is awaited need not be awaited again.
    """

    def __await__(self) -> Generator[Any, None, Subscription]:
        yield from self._accepted.__await__()
        return self
