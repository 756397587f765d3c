"""The messages that arrive for a client, and the subscriptions that process them."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from holdfast.client.errors import ClientError, Refuse, SessionEnded
from holdfast.client.messages import Message
from holdfast.client.outgoing import Repeat
from holdfast.client.requests import Send
from holdfast.client.settling import Settling
from holdfast.client.subscription_table import SubscriptionTable
from holdfast.client.subscriptions import Callback, NewSubscription, Subscription
from holdfast.client.wire import SUBSCRIBE, UNSUBSCRIBE, Json

# How long a message without a subscription waits for one: a named session may have messages before
# its program has subscribed.
_EARLY_S = 10.0
_NOBODY = "user.update.error"


class Inbox:
    """Passes messages to subscriptions, and settles them when these have finished."""

    def __init__(self, send: Send, wake: Callable[[], None]) -> None:
        """`wake` is called when a message is settled."""
        self.settling = Settling(wake)
        self._send = send
        self._subscriptions: SubscriptionTable[Subscription] = SubscriptionTable()
        # Messages without a subscription yet.
        self._early: list[Message] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    # Subscriptions

    def subscribe(
        self, channel: str, callback: Callback | None, ext: Json, *, is_local: bool
    ) -> NewSubscription:
        """Begin a subscription; with `is_local`, the server need not know of it."""
        accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        subscription = NewSubscription(self, channel, callback, ext, accepted, is_local=is_local)
        if is_local:
            accepted.set_result(None)
        else:
            self._ask_for(subscription, goes_first=False)
        self._subscriptions.add(subscription)
        early, self._early = self._early, []
        for message in early:
            self.pass_on(message)
        return subscription

    def subscribe_again(self) -> None:
        """Subscribe in a new session of the server to what this client has subscribed to."""
        for subscription in self._subscriptions:
            if subscription.is_accepted and not subscription.is_local:
                # Messages published meanwhile may be for this subscription.
                self._ask_for(subscription, goes_first=True)

    def _ask_for(self, subscription: Subscription, *, goes_first: bool) -> None:
        channel, ext = subscription.channel, subscription.ext
        message = {"channel": SUBSCRIBE, "subscription": channel, "ext": ext}
        outgoing = self._send(message, repeat=Repeat.ALWAYS, goes_first=goes_first)
        outgoing.reply.add_done_callback(lambda reply: self._accept(subscription, reply))

    def _accept(self, subscription: Subscription, reply: asyncio.Future[Json]) -> None:
        if reply.cancelled():
            return
        error = reply.exception()
        if error is None:
            subscription.accept()
        elif isinstance(error, ClientError):
            self._subscriptions.remove(subscription)
            subscription.end(error)

    async def leave(self, subscription: Subscription) -> None:
        """Unsubscribe; called by the subscription."""
        is_last = self._subscriptions.remove(subscription)
        if is_last and not subscription.is_local:
            message = {"channel": UNSUBSCRIBE, "subscription": subscription.channel}
            # A session that has ended has no subscriptions.
            with suppress(SessionEnded):
                await self._send(message, repeat=Repeat.ALWAYS).reply

    def finish_current(self) -> None:
        """Note that the loops over subscriptions have finished with their messages."""
        for subscription in self._subscriptions:
            subscription.finish_current()

    def end(self, reason: Exception) -> None:
        """Accept no more messages; iterators raise the reason."""
        for subscription in self._subscriptions:
            subscription.end(reason)

    # Messages

    def pass_on(self, message: Message) -> None:
        """Pass a message to its subscriptions."""
        found = self._subscriptions.find(message.channel)
        if found:
            message.left = len(found)
            for subscription in found:
                subscription.offer(message)
        elif not message.channel.startswith("/service/") and self.settling.has_verdicts:
            self._early.append(message)
            asyncio.get_running_loop().call_later(_EARLY_S, self._refuse_early, message)
        else:
            self.settling.finish(message)

    def _refuse_early(self, message: Message) -> None:
        if message in self._early:
            self._early.remove(message)
            message.refusal = Refuse(_NOBODY, "the client has no subscription for it")
            self.settling.finish(message)

    def finished(self, message: Message) -> None:
        """Take note that a subscription has finished with a message; called by it."""
        message.left -= 1
        if message.left <= 0:
            self.settling.finish(message)

    # Callbacks

    def run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a callback until it ends, or the client is closed."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def wait(self, timeout_s: float) -> None:
        """Wait for all other callbacks, and cancel those that do not return in time."""
        others = self._tasks - {asyncio.current_task()}
        if others:
            _, late = await asyncio.wait(others, timeout=timeout_s)
            for task in late:
                task.cancel()
