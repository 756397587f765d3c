"""The client for programs without an event loop: it runs one in a thread."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from functools import update_wrapper
from inspect import iscoroutinefunction
from threading import Thread, current_thread
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from holdfast.client.client import Client
from holdfast.client.errors import SessionEnded
from holdfast.client.life import FORKED, ClientState, WrongUse
from holdfast.client.messages import Message
from holdfast.client.subscriptions import ITERATED, NewSubscription, Subscription, usable

P = ParamSpec("P")
T = TypeVar("T")
# The return value of a responder's callback is the reply.
SyncCallback = Callable[[Message], object]


def _waiting(
    method: Callable[Concatenate[Client, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["SyncClient", P], T]:
    """Return a method that waits for the method of `Client` with the same name."""

    def wait(self: "SyncClient", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._wait(method(self._client, *args, **kwargs))

    update_wrapper(wait, method)
    return wait


def _taking_arguments_of(
    _: Callable[Concatenate[Client, P], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate["SyncClient", P], None]]:
    """Tell type checkers and help that a constructor takes the arguments of `Client`."""

    def give(constructor: Callable[..., None]) -> Callable[Concatenate["SyncClient", P], None]:
        return update_wrapper(constructor, Client.__init__)

    return give


class SyncClient:
    """A client whose methods wait: `with SyncClient(url) as client`.

    It takes the arguments of `Client`, and its methods have the same names and arguments. Callbacks
    run in threads, one at a time for each subscription, and may use the client, as any thread may.
    Only `token` and `on_state` must not: they are called by the thread of the event loop.
    """

    @_taking_arguments_of(Client.__init__)
    def __init__(self, *args: object, **options: object) -> None:
        self._client = Client(*args, **options)  # type: ignore[arg-type]
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="holdfast", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._wait(self._client.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._wait(self._client.__aexit__(kind, error, trace))
        finally:
            self._stop()

    def _stop(self) -> None:
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait until the event loop has done the work; cancel it on Ctrl-C."""
        if (error := self._why_not()) is not None:
            work.close()
            raise error
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    def _why_not(self) -> Exception | None:
        """Return why the client cannot be used here and now."""
        if current_thread() is self._thread:
            return WrongUse("token and on_state must not use the client: they are called by it")
        if self._loop.is_closed():
            return SessionEnded("the client is closed")
        if self._thread.ident is None:
            return WrongUse("enter the client first: with SyncClient(...) as client")
        # The other threads of a process do not outlive a fork.
        if not self._thread.is_alive():
            return WrongUse(FORKED)
        return None

    close = _waiting(Client.close)
    wait_closed = _waiting(Client.wait_closed)
    publish = _waiting(Client.publish)
    post = _waiting(Client.post)
    request = _waiting(Client.request)
    request_all = _waiting(Client.request_all)
    sync_publish = request

    @property
    def state(self) -> ClientState:
        """The present state of the client."""
        return self._client.state

    @property
    def session_name(self) -> str | None:
        """The full name of the session, such as `client/joe/1`, if the server gave it one."""
        return self._client.session_name

    @property
    def is_resumed(self) -> bool:
        """Whether the session was there before this client, with its queue and subscriptions."""
        return self._client.is_resumed

    @property
    def lost_subscriptions(self) -> tuple[str, ...]:
        """The subscriptions of a resumed session that ended while no client was there."""
        return self._client.lost_subscriptions

    def subscribe(
        self,
        channel: str,
        callback: SyncCallback = ITERATED,
        *,
        filter: str | None = None,
        history: int | None = None,
        replay: object = None,
        qos: Mapping[str, Any] | None = None,
    ) -> "SyncSubscription":
        """Receive the messages of a channel or pattern; iterate over it, or give a callback.

        Returns when the server has accepted it. The rest is as in `Client.subscribe`.
        """
        call_back = callback if callback is ITERATED else _in_thread(callback)
        return self._subscribe(
            lambda: self._client.subscribe(
                channel,
                call_back,
                filter=filter,
                history=history,
                replay=replay,
                qos=qos,
            )
        )

    def listen(self, channel: str, callback: SyncCallback = ITERATED) -> "SyncSubscription":
        """Receive what the server sends on a channel without a subscription."""
        call_back = callback if callback is ITERATED else _in_thread(callback)
        return self._subscribe(lambda: self._client.listen(channel, call_back))

    def respond(
        self,
        channel: str,
        callback: SyncCallback,
        *,
        filter: str | None = None,
        qos: Mapping[str, Any] | None = None,
    ) -> "SyncSubscription":
        """Reply to the requests on a channel with what the callback returns."""
        reply = _in_thread(callback)
        return self._subscribe(lambda: self._client.respond(channel, reply, filter=filter, qos=qos))

    def _subscribe(self, begin: Callable[[], NewSubscription]) -> "SyncSubscription":
        async def accepted() -> Subscription:
            return await begin()

        return SyncSubscription(self, self._wait(accepted()))


class SyncSubscription:
    """The messages of a channel or pattern: `for message in subscription`."""

    def __init__(self, owner: SyncClient, subscription: Subscription) -> None:
        self.channel = subscription.channel
        self._owner = owner
        self._subscription = subscription

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        try:
            return self.next()
        except StopAsyncIteration:
            raise StopIteration from None

    def next(self, timeout_s: float | None = None) -> Message:
        """Return the next message; the one before it is processed. Raises `TimeoutError`."""

        async def arrived() -> Message:
            try:
                async with asyncio.timeout(timeout_s):
                    return await anext(self._subscription)
            except TimeoutError:
                text = f"no message on {self.channel} within {timeout_s:g} s"
                raise TimeoutError(text) from None

        return self._owner._wait(arrived())

    def refuse(self, code: str, text: str = "", *, delay_s: float | None = None) -> None:
        """Refuse the message that the loop works on, as raising `Refuse` does in a callback."""

        async def refused() -> None:
            self._subscription.refuse(code, text, delay_s=delay_s)

        self._owner._wait(refused())

    def close(self) -> None:
        """Unsubscribe. What has arrived and was not processed stays unfinished."""
        self._owner._wait(self._subscription.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._owner._wait(self._subscription.__aexit__(kind, error, trace))


def _in_thread(callback: SyncCallback) -> Callable[[Message], Coroutine[Any, Any, object]]:
    """Return a callback for the event loop. Raises `TypeError` if it is a coroutine function."""
    if iscoroutinefunction(callback):
        name = getattr(callback, "__qualname__", repr(callback))
        raise TypeError(
            f"{name} is a coroutine function, and SyncClient does not await it: use a plain "
            "function, or Client instead of SyncClient"
        )

    usable(callback)

    async def call_back(message: Message) -> object:
        return await asyncio.to_thread(callback, message)

    return call_back


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
