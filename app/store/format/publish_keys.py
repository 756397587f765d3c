"""Publish keys: which messages are repeats, and which keys to forget."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, cast

from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.publish_key import KEY_LIFE_S, publish_key_of
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.format.layouts import NEWEST, WrittenForm

if TYPE_CHECKING:
    from holdfast.delivery.messages.publish_key import PublishKey

# For how long keys are remembered while the store answers, and how many: it may lose them.
_LATEST_S = 10.0
_MOST_LATEST = 50_000


class StoreClock:
    """The store's clock, which determines the age of publish keys.

    It counts the seconds for which servers have run with this store. It does not depend on the wall
    clock, which may jump.

    Args:
        monotonic: The clock of this process.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began_at = monotonic()

    def __call__(self) -> int:
        return int(self._monotonic() - self._began_at)

    def go_on(self, stored: int) -> None:
        """Continue from the time in the store, unless it was emptied in the meantime."""
        self._began_at = min(self._began_at, self._monotonic() - stored)


class KeyLimits(NamedTuple):
    """How many keys are remembered, and the time of the store's clock by which they age."""

    clock: int
    most: int
    form: WrittenForm = NEWEST


class PublishKeys:
    """The answers about publish keys.

    Args:
        answered_at: Returns when the store last answered, in seconds of a monotonic clock.
    """

    def __init__(self, answered_at: Callable[[], float]) -> None:
        self._answered_at = answered_at
        self.dropped = 0
        # The keys of the last seconds with their messages, for a store that loses them.
        self._latest: deque[tuple[float, str, int]] = deque(maxlen=_MOST_LATEST)

    def hear(self, messages: Iterable[Message], reply: Sequence[object]) -> None:
        """Record the store's answer in the messages' keys."""
        dropped, *firsts = reply
        self.dropped += cast("int", dropped)
        for message, first in zip(messages, firsts, strict=True):
            key = cast("PublishKey", publish_key_of(message))
            key.first = int(cast("bytes", first) or 0)
            if key.first:
                key.meaning = PersistOutcome.REPEATED
            else:
                self._latest.append((self._answered_at(), key.digest, message.id))

    def latest(self) -> list[tuple[str, int]]:
        """Return the keys of the last seconds, with the ids of their messages."""
        self.forget_old()
        return [(key, id) for _, key, id in self._latest]

    def forget_old(self) -> None:
        """Forget keys that the store has had for so long that it does not lose them any more."""
        oldest = self._answered_at() - _LATEST_S
        while self._latest and self._latest[0][0] < oldest:
            self._latest.popleft()


def first_of(reply: object, clock: int) -> int | None:
    """Return the id of the message that has a key, 0 if none has it; None without an answer."""
    if reply is None:
        return 0
    if not isinstance(reply, bytes):
        return None
    id, _, since = reply.decode().partition(":")
    return int(id) if not since or int(since) + KEY_LIFE_S >= clock else 0


def meaning(message: Message, kept: PersistOutcome) -> PersistOutcome:
    """Return the outcome for a message, given the outcome of its call."""
    key = publish_key_of(message)
    return key.meaning if kept is PersistOutcome.KEPT and key is not None else kept


def stored_id(message: Message) -> int | str:
    """Return the id under which queues have the message, or the message that it repeats."""
    key = publish_key_of(message)
    return message.id if key is None else f"{key.digest}:{key.first or message.id}"
