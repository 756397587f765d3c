"""Keeps a channel's messages in order while the store has not confirmed one of them."""

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import Generic, TypeVar

from holdfast.delivery.basics.channels import lookups
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.routing.publishes import Publish

R = TypeVar("R", bound=Receiver)
_by_id = attrgetter("id")


class PublishOrder(Generic[R]):
    """A queue for each channel that waits for the store. Most channels have none.

    Args:
        show: Delivers a message to its receivers.
        wake: Called with a channel whose later messages no longer wait for one that was not kept.
    """

    def __init__(self, show: Callable[[Publish[R]], None], wake: Callable[[str], None]) -> None:
        self._show, self._wake = show, wake
        # By channel, while a message of it waits.
        self.waiting: dict[str, deque[Publish[R]]] = {}
        # Whether what is shown now has not waited for a message before it.
        self.is_early = False
        # By channel, those whose outcome is UNKNOWN so far: the store may have them or not.
        self._unknown: dict[str, list[Publish[R]]] = {}
        # By channel, those that are published with the ids that they have, if at all, when other
        # shards have answered.
        self._expected: dict[str, list[Publish[R]]] = {}

    def expect(self, publish: Publish[R]) -> None:
        """Note a message that may still enter a history, or the queue here."""
        self._expected.setdefault(publish.channel.name, []).append(publish)

    def expect_no_more(self, publish: Publish[R]) -> None:
        """Undo `expect`: it was published, or will not be."""
        channel = publish.channel.name
        self._expected[channel].remove(publish)
        if not self._expected[channel]:
            del self._expected[channel]
        self._wake(channel)

    def enter(self, publish: Publish[R]) -> PersistOutcome | None:
        """Deliver an unstored message, now or after the messages that wait on its channel."""
        waiting = self.waiting.get(publish.channel.name)
        if waiting is None:
            self._show(publish)
            return PersistOutcome.KEPT
        publish.outcome = PersistOutcome.KEPT
        waiting.append(publish)
        return None

    def crossing(self, channel: str) -> list[Message]:
        """Return the channel's messages that wait and that other shards get, in their order."""
        return [each.message for each in self.waiting.get(channel, ()) if each.is_subscribable]

    def newest(self, channel: str) -> Publish[R] | None:
        """Return the last message that waits to enter the channel's history."""
        waiting = self.waiting.get(channel, ())
        return next((each for each in reversed(waiting) if each.message.keeping is not None), None)

    def coming_to_histories(self, patterns: Container[str]) -> list[Publish[R]]:
        """Return the publishes that wait to enter the histories of these channels."""
        return _to_histories(self.waiting, patterns)

    def first_to_history(self, channel: str) -> Message | None:
        """Return the first message that may still enter the channel's history, or None."""
        sources = (self._unknown, self.waiting, self._expected)
        coming = [publish for source in sources for publish in source.get(channel, ())]
        messages = [each.message for each in coming if each.message.keeping is not None]
        return min(messages, key=_by_id, default=None)

    def first_to_histories(self, patterns: Container[str]) -> Message | None:
        """Return the first message that may still enter one of these histories, or None."""
        if not (self._unknown or self.waiting or self._expected):
            return None
        sources = (self._unknown, self.waiting, self._expected)
        coming = [publish for each in sources for publish in _to_histories(each, patterns)]
        return min((each.message for each in coming), key=_by_id, default=None)

    def unknown_to_histories(self, patterns: Container[str]) -> list[Publish[R]]:
        """Return the publishes that may yet enter these histories, behind later ones."""
        return _to_histories(self._unknown, patterns) if self._unknown else []

    def firsts(self) -> list[Message]:
        """Return, of each channel, the first message that waits or whose outcome is unknown."""
        queues = [*self.waiting.values(), *self._unknown.values()]
        return [queue[0].message for queue in queues if queue]

    def keep(self, publish: Publish[R]) -> Callable[[PersistOutcome], None]:
        """Add a message that waits for the store. Call the result with the store's answer.

        After UNKNOWN, call it again when the answer is known. Later messages no longer wait for
        this one.
        """
        self.waiting.setdefault(publish.channel.name, deque()).append(publish)
        return partial(self._answered, publish)

    def _answered(self, publish: Publish[R], outcome: PersistOutcome) -> None:
        if publish.outcome is PersistOutcome.UNKNOWN:
            self._forget(publish)
            if outcome is PersistOutcome.KEPT:
                self._show_late(publish)
            else:
                self._wake(publish.channel.name)
            if publish.step is not None:
                publish.step.known(outcome)
            return
        publish.outcome = outcome
        channel = publish.channel.name
        if outcome is PersistOutcome.UNKNOWN:
            self._unknown.setdefault(channel, []).append(publish)
        waiting = self.waiting[channel]
        is_early = False
        while waiting and (known := waiting[0].outcome) is not None:
            first = waiting.popleft()
            if known is PersistOutcome.KEPT:
                self._show_in_order(first, is_early=is_early)
            is_early |= known is PersistOutcome.UNKNOWN
            if first.step is not None and known is not PersistOutcome.UNKNOWN:
                first.step.known(known)
            if first.done is not None:
                first.done(known)
        if not waiting:
            # Callbacks may have published to this channel in the meantime.
            self.waiting.pop(channel, None)

    def _show_in_order(self, publish: Publish[R], *, is_early: bool) -> None:
        self.is_early = is_early
        try:
            self._show(publish)
        finally:
            self.is_early = False

    def _forget(self, publish: Publish[R]) -> None:
        """Forget a publish whose outcome is known now, or will never be."""
        channel = publish.channel.name
        unknown = self._unknown.get(channel)
        if unknown is not None and publish in unknown:
            unknown.remove(publish)
            if not unknown:
                del self._unknown[channel]

    def _show_late(self, publish: Publish[R]) -> None:
        """Deliver a message after later ones. Where those still wait, it goes first."""
        publish.message.is_late = True
        self._show(publish)


def _to_histories(
    by_channel: Mapping[str, Iterable[Publish[R]]], patterns: Container[str]
) -> list[Publish[R]]:
    """Return the publishes to the histories of these channels."""
    return [
        publish
        for name, publishes in by_channel.items()
        if any(pattern in patterns for pattern in lookups(name))
        for publish in publishes
        if publish.message.keeping is not None
    ]
