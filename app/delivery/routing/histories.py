"""The histories of channels: their latest messages, for sessions that subscribe later."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from operator import attrgetter
from sys import maxsize
from typing import Any, Final

from holdfast.delivery.basics.channels import Channel, lookups
from holdfast.delivery.basics.sorted_names import SortedNames
from holdfast.delivery.messages.keeping import HistoryDepth, Keeping
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.store_port import StorePort
from holdfast.delivery.routing.floors import Floors, stores_nothing
from holdfast.delivery.routing.history_news import HistoryNews
from holdfast.delivery.routing.kept_messages import KeptMessages, cursor_of, end_of

# The heap may keep this many expiry times of messages that have left.
_FEW: Final = 64
# How many channels one request may look at.
MOST_LOOKS = 5_000
_by_id = attrgetter("id")


@dataclass(frozen=True, slots=True)
class HistoryLimits:
    """The limits of all histories together."""

    entries: int = maxsize
    bytes: int = maxsize
    # The limits for one subject or address; zero means no limit.
    share_entries: int = 0
    share_bytes: int = 0


class Arrival:
    """A place in the order of arrival. It leads to all messages that enter a history afterwards.

    Its holder can find all of them, even those that have left again.
    """

    __slots__ = ("message", "next")

    def __init__(self) -> None:
        self.message: Message | None = None
        self.next: Arrival | None = None


class _Share:
    """The messages that histories keep on one account, oldest first."""

    __slots__ = ("messages", "size")

    def __init__(self) -> None:
        self.messages: OrderedDict[int, Message] = OrderedDict()
        self.size = 0


class Histories:
    """The histories of all channels. The oldest messages make room for new ones.

    Args:
        start: The newest id before this process. Messages up to it may be missing.
        stamp: Returns an id above all that were given.
        stores_all: Returns whether the store has all messages of a channel or pattern.
    """

    def __init__(
        self,
        limits: HistoryLimits,
        store: StorePort,
        start: int = 0,
        stamp: Callable[[], int] = int,
        *,
        stores_all: Callable[[str], bool] = stores_nothing,
    ) -> None:
        self.limits = limits
        self._store = store
        self._stamp = stamp
        self._by_channel: dict[str, KeptMessages] = {}
        # The messages of all channels by id, oldest first, and their total size.
        self._messages: OrderedDict[int, Message] = OrderedDict()
        self.size = 0
        # By account. A message without an account is in no share.
        self._shares: dict[str, _Share] = {}
        # A heap of expiry times with ids. Some ids are of messages that have left.
        self._ends: list[tuple[int, int]] = []
        # How many messages have a lifetime.
        self._with_lifetime = 0
        self._names = SortedNames(self._by_channel)
        # How often a channel came to have a history, or none any more.
        self.changes = 0
        # The arrival of the next message.
        self.arrival = Arrival()
        # Topics that were configured not to keep their messages.
        self._missed: dict[str, None] = {}
        self._missed_names = SortedNames(self._missed)
        # By channel or pattern, what to call when such a history gets a message, in order.
        self._followers: dict[str, dict[Callable[[], None], None]] = {}
        self.news = HistoryNews()
        # How many messages were removed to make room.
        self.dropped = 0
        # Up to where channels that keep nothing now may lack messages.
        self.floors = Floors(store, cursor_of(start), stores_all)
        # The newest id that was ever in a history.
        self.newest = start

    def start_at(self, start: int) -> None:
        """Record that messages with ids below this one may be missing."""
        self.floors.raise_all(cursor_of(start))
        self.newest = max(self.newest, start)

    def __len__(self) -> int:
        return len(self._messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self._messages.values())

    def __contains__(self, message: Message) -> bool:
        return message.id in self._messages

    def get(self, channel: str) -> KeptMessages | None:
        """Return the history of the channel, or None if it is empty."""
        return self._by_channel.get(channel)

    def floor_of(self, channel: str) -> int:
        """Return the cursor after which the channel's history has all messages, unless expired."""
        kept = self._by_channel.get(channel)
        return self.floors.of(channel) if kept is None else kept.floor

    def follow(self, pattern: str, wake: Callable[[], None]) -> None:
        """Call `wake` once, when a history of the channel or pattern has more for readers."""
        self._followers.setdefault(pattern, {})[wake] = None

    def wake(self, channel: str) -> None:
        """Tell the followers of the channel that there is more."""
        for name in lookups(channel) if self._followers else ():
            for wake in self._followers.pop(name, ()):
                wake()

    def unfollow(self, pattern: str, wake: Callable[[], None]) -> None:
        """Undo `follow`, also after the call."""
        followers = self._followers.get(pattern)
        if followers is not None:
            followers.pop(wake, None)
            if not followers:
                del self._followers[pattern]

    def covered_by(
        self, pattern: Channel, most: int = MOST_LOOKS
    ) -> tuple[list[KeptMessages], int]:
        """Return the histories of the channels that the pattern matches, sorted by name.

        Args:
            most: How many channels to look at. With `*`, all channels below one of its
                channels count as one.

        Returns:
            The histories, and how many channels were looked at: `most` + 1 if there are more.
        """
        found: list[KeptMessages] = []
        looked = 0
        for name, is_covered in self._names.covered_by(pattern):
            looked += 1
            if looked > most:
                break
            if is_covered:
                found.append(self._by_channel[name])
        return found, looked

    def append(self, message: Message, keeping: Keeping) -> None:
        """Add a message to its channel's history, and cut the history to its depth."""
        kept = self._kept(message.channel)
        if message.is_late or kept.is_behind(message):
            kept.note_late(message, self.newest)
            # What clients are promised from now on is above what they had before it.
            self.newest = max(self.newest, self._stamp())
        self._enter(message, keeping)

    def _enter(self, message: Message, keeping: Keeping) -> None:
        kept = self._kept(message.channel)
        kept.append(message)
        self._messages[message.id] = message
        self.news.add(cursor_of(message.id), message.channel)
        if keeping.account:
            self._charge(message, keeping.account)
        arrival, self.arrival = self.arrival, Arrival()
        arrival.message, arrival.next = message, self.arrival
        for record in message.records or ():
            record.entered_history()
        self.newest = max(self.newest, message.id)
        self.size += len(message.wire)
        if message.life_ms is not None:
            self._with_lifetime += 1
            heappush(self._ends, (end_of(message), message.id))
        self._shorten(kept, keeping.depth)
        limits = self.limits
        if keeping.account:
            self._trim_share(keeping.account)
        while len(self._messages) > limits.entries or self.size > limits.bytes:
            self._make_room(next(iter(self._messages.values())))
        self.wake(message.channel)

    def shorten(self, channel: str, depth: HistoryDepth | None) -> None:
        """Cut the channel's history to its new depth; None removes it."""
        kept = self._by_channel.get(channel)
        if depth is None:
            self.erase(channel)
        elif kept is not None:
            self._shorten(kept, depth)

    def _shorten(self, kept: KeptMessages, depth: HistoryDepth) -> None:
        while len(kept) > depth.entries or kept.size > depth.bytes:
            self._make_room(kept.oldest)

    def _charge(self, message: Message, account: str) -> None:
        share = self._shares.get(account)
        if share is None:
            share = self._shares[account] = _Share()
        share.messages[message.id] = message
        share.size += len(message.wire)

    def _trim_share(self, account: str) -> None:
        """Remove the oldest messages of an account to make room for its newest."""
        share, limits = self._shares.get(account), self.limits
        while share is not None and (
            0 < limits.share_entries < len(share.messages) or 0 < limits.share_bytes < share.size
        ):
            self._make_room(next(iter(share.messages.values())))

    def _discharge(self, message: Message, account: str) -> None:
        share = self._shares[account]
        del share.messages[message.id]
        share.size -= len(message.wire)
        if not share.messages:
            del self._shares[account]

    def miss(self, message: Message) -> None:
        """Record that a topic was configured not to keep its messages, such as this one."""
        channel = message.channel
        self.erase(channel)
        self._note_missed(channel)
        self.floors.lift(channel, cursor_of(message.id))

    def forget(self, channel: str) -> None:
        """Remove the channel's history and all data about it: its topic has ended."""
        self.erase(channel)
        if channel in self._missed:
            del self._missed[channel]
            self._missed_names.remove(channel)

    def _note_missed(self, channel: str) -> None:
        if channel not in self._missed:
            self._missed[channel] = None
            self._missed_names.add(channel)

    def misses(self, pattern: Channel) -> bool:
        """Return whether the pattern matches a topic that was configured to keep nothing."""
        looks = enumerate(self._missed_names.covered_by(pattern))
        return any(is_covered or looked == MOST_LOOKS for looked, (_, is_covered) in looks)

    def restore(
        self, channel: str, messages: Sequence[Message], depth: HistoryDepth, *, is_whole: bool
    ) -> None:
        """Add the stored messages of a channel whose history is still empty.

        Args:
            is_whole: Whether the store had all messages of this channel, not only some.
        """
        ordered = sorted(messages, key=_by_id)
        kept = self._begin(channel)
        if is_whole and not self.floors.are_known:
            kept.floor = min(kept.floor, cursor_of(ordered[0].id) - 1)
        keeping = Keeping(depth)
        for message in ordered:
            message.keeping = keeping
            self._enter(message, keeping)

    def stored_floors(self) -> dict[str, int]:
        """Return all floors that the store has."""
        kept = self._by_channel.values()
        own = {each.channel: each.floor for each in kept if each.is_floor_stored}
        return self.floors.stored() | own

    # Going on in another process

    def channels(self) -> Sequence[KeptMessages]:
        """Return the histories of all channels."""
        return list(self._by_channel.values())

    def left(self) -> dict[str, Any]:
        """Return what clients may lack: the floor of all histories, and of single channels."""
        return {**self.floors.left(), "missed": [*self._missed]}

    def go_on(self, left: Mapping[str, Any]) -> None:
        """Continue as `left` by an earlier process. Call it before histories are restored."""
        assert not self._by_channel
        self.floors.go_on(left)
        for channel in left["missed"]:
            self._note_missed(channel)

    def put_back(
        self,
        channel: str,
        messages: Sequence[Message],
        depth: HistoryDepth,
        left: Mapping[str, Any],
    ) -> None:
        """Restore the history of a channel, which is still empty, with all that it had.

        Args:
            left: What `KeptMessages.left` returned.
        """
        kept = self._begin(channel)
        kept.go_on(left)
        for message in sorted(messages, key=_by_id):
            account = "" if message.keeping is None else message.keeping.account
            message.keeping = Keeping(depth, account)
            self._enter(message, message.keeping)

    def lack(self, channel: str, messages: Sequence[Message], floor: int) -> None:
        """Record that a channel that had these messages, and all after the floor, has none now."""
        floor = max([floor, *[cursor_of(each.id) for each in messages]])
        self.floors.lift(channel, floor)

    def sort(self) -> None:
        """Let the oldest messages of all channels make room first again."""
        self._messages = OrderedDict(sorted(self._messages.items()))

    def _kept(self, channel: str) -> KeptMessages:
        kept = self._by_channel.get(channel)
        return self._begin(channel) if kept is None else kept

    def _begin(self, channel: str) -> KeptMessages:
        floor, is_stored = self.floors.take(channel)
        kept = KeptMessages(channel, floor, is_whole=self.floors.stores_all(channel))
        kept.is_floor_stored = is_stored
        self._by_channel[channel] = kept
        self._names.add(channel)
        self.changes += 1
        return kept

    def _make_room(self, message: Message) -> None:
        self.dropped += 1
        self._lose(message)

    def _lose(self, message: Message) -> None:
        """Remove a message that has not expired."""
        kept = self._by_channel[message.channel]
        kept.floor = max(kept.floor, cursor_of(message.id))
        if kept.is_whole:
            kept.is_floor_stored = True
            self._store.save_floor(kept.channel, kept.floor)
        self.news.add(cursor_of(message.id), message.channel)
        self._remove(kept, message)

    def _remove(self, kept: KeptMessages, message: Message) -> None:
        kept.remove(message)
        del self._messages[message.id]
        self.size -= len(message.wire)
        if message.keeping is not None and message.keeping.account:
            self._discharge(message, message.keeping.account)
        if message.life_ms is not None:
            self._with_lifetime -= 1
            self._forget_ends()
        if not kept:
            # Empty histories must not stay in memory forever.
            floor = max([kept.floor, *[each.until for each in kept.passed]])
            is_stored = kept.is_floor_stored and floor == kept.floor
            self.floors.lift(kept.channel, floor, is_stored=is_stored)
            del self._by_channel[kept.channel]
            self._names.remove(kept.channel)
            self.changes += 1
        for record in message.records or ():
            record.left_history()
        if message.is_durable:
            self._store.leave_history(message.channel, message.id)

    def _forget_ends(self) -> None:
        """Rebuild the heap when most of it belongs to messages that have left."""
        if len(self._ends) > 2 * self._with_lifetime + _FEW:
            self._ends = [each for each in self._ends if each[1] in self._messages]
            heapify(self._ends)

    def erase(self, channel: str) -> int:
        """Remove the channel's history. Returns the number of its messages."""
        kept = self._by_channel.get(channel)
        messages = [] if kept is None else list(kept)
        for message in messages:
            self._lose(message)
        return len(messages)

    def forget_expired(self, now_ms: int, most: int) -> None:
        """Remove up to `most` expired messages."""
        ends = self._ends
        while ends and ends[0][0] <= now_ms and most > 0:
            message = self._messages.get(heappop(ends)[1])
            if message is not None:
                most -= 1
                self._remove(self._by_channel[message.channel], message)
                ends = self._ends
