"""What waits and is in flight, by receiver and channel: counted in steps, over several turns.

No counts are kept for this, so messages cost nothing more: a tally walks the queues.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappush, heappushpop, nlargest
from itertools import islice
from operator import attrgetter
from typing import Generic, TypeVar

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.status import hold_of
from holdfast.bayeux.state.session_registry import Sessions
from holdfast.delivery.basics.channels import REPLIES
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.dispatcher import DispatcherState
from holdfast.delivery.shared_queues.places import WaitingPlaces
from holdfast.delivery.shared_queues.work import PREFIX, is_work

Item = TypeVar("Item")

# All reply channels count as this one.
ALL_REPLIES = f"{REPLIES}*"
# How many messages one step counts, and how many channels are distinguished.
_STEP = 2000
_MOST_CHANNELS = 10_000
# The states of sessions that get nothing now.
OUT_OF_REACH = (DispatcherState.POLLING, DispatcherState.DEAD)

_channel_of = attrgetter("channel")
_id_of = attrgetter("id")


class Largest(Generic[Item]):
    """The largest of many items, and how many others there are."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._heap: list[tuple[int, int, Item]] = []
        self.count = 0

    def add(self, size: int, item: Item) -> None:
        # Of items of the same size, the first ones stay.
        entry = (size, -self.count, item)
        self.count += 1
        if len(self._heap) < self._most:
            heappush(self._heap, entry)
        else:
            heappushpop(self._heap, entry)

    def first(self) -> list[Item]:
        """Return them, the largest first."""
        return [item for _, _, item in sorted(self._heap, reverse=True)]


@dataclass(slots=True)
class QueueTally:
    """The content of one queue. `oldest` ignores copies from histories, and replays."""

    receiver: Session
    waiting: int = 0
    in_flight: int = 0
    bytes: int = 0
    oldest: Message | None = None
    is_oldest_in_flight: bool = False

    @property
    def count(self) -> int:
        return self.waiting + self.in_flight


@dataclass(slots=True)
class ChannelTally:
    """The content of all receivers' queues on one channel."""

    channel: str
    waiting: int = 0
    in_flight: int = 0
    # Queues with at least one entry of the channel.
    receivers: int = 0

    @property
    def count(self) -> int:
        return self.waiting + self.in_flight


@dataclass(slots=True)
class WorkerTally:
    """The work of one channel that one receiver has."""

    receiver: str
    waiting: int = 0
    in_work: int = 0
    # When its oldest waiting work was published (ns), and when the first of its current work was
    # handed over (running time).
    oldest: int | None = None
    since: float | None = None


@dataclass(slots=True)
class WorkTally:
    """The work of one channel, in its queue and at all workers."""

    channel: str
    workers: Largest[WorkerTally]
    total: WorkerTally = field(default_factory=lambda: WorkerTally(""))
    # How much of the waiting work has no worker yet.
    unassigned: int = 0


@dataclass(slots=True)
class _Walk:
    """One queue while it is counted."""

    found: QueueTally
    seen: set[str] = field(default_factory=set)
    work: dict[str, WorkerTally] = field(default_factory=dict)
    # Whether the rest of a sorted queue contains nothing older.
    has_oldest: bool = False


class Tally:
    """Walks all queues in steps. Changes in the meantime may or may not be counted.

    Args:
        most: How many items each list has.
    """

    def __init__(
        self, sessions: Sessions, places: WaitingPlaces[Session], *, has_work: bool, most: int
    ) -> None:
        self._receivers = [*sessions, *places.assigning()]
        self._has_work = has_work
        self._most = most
        self.waiting = self.in_flight = 0
        self.oldest: Largest[QueueTally] = Largest(most)
        # The queues with the oldest entry: of receivers that should take it now, and of others.
        self.oldest_here: QueueTally | None = None
        self.oldest_absent: QueueTally | None = None
        self.fullest: Largest[QueueTally] = Largest(most)
        self.held_back: Largest[QueueTally] = Largest(most)
        self.out_of_reach: Largest[QueueTally] = Largest(most)
        self._channels: dict[str, ChannelTally] = {}
        # Channels that are no longer distinguished.
        self._others = 0
        self._work: dict[str, WorkTally] = {}
        self._other_work = 0

    def steps(self) -> Iterator[None]:
        """Count. Other turns may run between two steps."""
        for receiver in self._receivers:
            if receiver.is_gone:
                continue
            found = QueueTally(receiver)
            if receiver.queue.count:
                yield from self._count(found)
            self._enter(found)
            yield

    def channels(self) -> Largest[ChannelTally]:
        """Return the channels with the most entries."""
        found: Largest[ChannelTally] = Largest(self._most)
        for each in self._channels.values():
            found.add(each.count, each)
        found.count += self._others
        return found

    def work(self) -> Largest[WorkTally]:
        """Return the work queues with the most work."""
        found: Largest[WorkTally] = Largest(self._most)
        for each in self._work.values():
            found.add(each.total.waiting + each.total.in_work, each)
        found.count += self._other_work
        return found

    # One queue

    def _enter(self, found: QueueTally) -> None:
        receiver, count = found.receiver, found.count
        self.waiting += found.waiting
        self.in_flight += found.in_flight
        if count:
            self.fullest.add(count, found)
        if found.oldest is not None:
            self.oldest.add(-found.oldest.id, found)
            if _is_absent(receiver):
                self.oldest_absent = _older(self.oldest_absent, found)
            else:
                self.oldest_here = _older(self.oldest_here, found)
        if hold_of(receiver) is not None:
            self.held_back.add(count, found)
        if receiver.connection_state in OUT_OF_REACH:
            self.out_of_reach.add(count, found)

    def _count(self, found: QueueTally) -> Iterator[None]:
        queue, walk = found.receiver.queue, _Walk(found)
        found.bytes = queue.size
        is_sorted = not queue.is_mixed
        # Read together, so that an entry which moves in the meantime counts once.
        tried, returned, new = queue.glance(), [*queue.returned.values()], _steps(queue.new)
        if isinstance(tried, Batch):
            for step in _steps(tried.messages):
                self._note(walk, step, [tried.handed_at] * len(step))
                yield
        else:
            for entries in _steps(tried):
                times = [entry.handed_at for entry in entries]
                self._note(walk, [entry.message for entry in entries], times)
                yield
        for entries in _steps(returned):
            self._note(walk, [entry.message for entry in entries])
            yield
        for step in new:
            self._note(walk, step, is_sorted=is_sorted)
            yield
        for channel, tally in walk.work.items():
            self._enter_work(channel, found.receiver, tally)

    def _note(
        self,
        walk: _Walk,
        messages: Sequence[Message],
        handed_at: Sequence[float] | None = None,
        *,
        is_sorted: bool = False,
    ) -> None:
        """Record messages that wait or, if there are times, are in flight."""
        found = walk.found
        is_waiting = handed_at is None
        self._count_channels(Counter(map(_channel_of, messages)), walk.seen, is_waiting=is_waiting)
        if is_waiting:
            found.waiting += len(messages)
        else:
            found.in_flight += len(messages)
        if not (is_sorted and walk.has_oldest):
            walk.has_oldest = _note_oldest(found, messages, is_in_flight=not is_waiting)
        walk.has_oldest = walk.has_oldest and is_sorted
        if self._has_work:
            _note_work(walk.work, messages, handed_at)

    def _count_channels(self, counts: Counter[str], seen: set[str], *, is_waiting: bool) -> None:
        for name, count in counts.items():
            channel = ALL_REPLIES if name.startswith(REPLIES) else name
            tally = self._channels.get(channel)
            if tally is None:
                tally = self._channels[channel] = ChannelTally(channel)
            if is_waiting:
                tally.waiting += count
            else:
                tally.in_flight += count
            if channel not in seen:
                seen.add(channel)
                tally.receivers += 1
        if len(self._channels) > _MOST_CHANNELS:
            self._forget_small_ones()

    def _forget_small_ones(self) -> None:
        kept = nlargest(_MOST_CHANNELS // 2, self._channels.values(), key=attrgetter("count"))
        self._others += len(self._channels) - len(kept)
        self._channels = {each.channel: each for each in kept}

    def _enter_work(self, channel: str, receiver: Session, found: WorkerTally) -> None:
        if channel not in self._work and len(self._work) == _MOST_CHANNELS:
            self._other_work += 1
            return
        tally = self._work.get(channel)
        if tally is None:
            tally = self._work[channel] = WorkTally(channel, Largest(self._most))
        if receiver.subject.startswith(PREFIX):
            tally.unassigned += found.waiting
            # The rest counts where its worker is.
            found.in_work, found.since = 0, None
        else:
            found.receiver = receiver.key
            tally.workers.add(found.in_work + found.waiting, found)
        total = tally.total
        total.waiting += found.waiting
        total.in_work += found.in_work
        total.oldest = min(filter(None, (total.oldest, found.oldest)), default=None)
        total.since = min(filter(None, (total.since, found.since)), default=None)


def _note_oldest(found: QueueTally, messages: Sequence[Message], *, is_in_flight: bool) -> bool:
    """Record the oldest of these messages. Returns False if none has an age.

    It is unknown how long copies from histories and replays have waited, because their ids are
    older.
    """
    first: Message | None = min(messages, key=_id_of)
    if first is not None and not _has_age(first):
        first = min(filter(_has_age, messages), key=_id_of, default=None)
    if first is None:
        return False
    if found.oldest is None or first.id < found.oldest.id:
        found.oldest, found.is_oldest_in_flight = first, is_in_flight
    return True


def _is_absent(receiver: Session) -> bool:
    """Return whether a client would have to come first. Work waits for any receiver."""
    is_away = receiver.is_absent or receiver.is_away
    return is_away and not receiver.subject.startswith(PREFIX)


def _older(known: QueueTally | None, found: QueueTally) -> QueueTally:
    if known is None or known.oldest is None or found.oldest is None:
        return found
    return found if found.oldest.id < known.oldest.id else known


def _has_age(message: Message) -> bool:
    return not (message.is_initial or message.generation)


def _note_work(
    work: dict[str, WorkerTally], messages: Sequence[Message], handed_at: Sequence[float] | None
) -> None:
    """Record which of the messages belong to work queues."""
    for place, message in enumerate(messages):
        if not is_work(message):
            continue
        tally = work.get(message.channel)
        if tally is None:
            tally = work[message.channel] = WorkerTally("")
        if handed_at is None:
            tally.waiting += 1
            tally.oldest = min(tally.oldest or message.id, message.id)
        else:
            tally.in_work += 1
            time = handed_at[place]
            # After a restart, it is unknown when it was handed over.
            tally.since = min(tally.since or time, time) or None


def _steps(items: Sequence[Item]) -> Iterator[list[Item]]:
    """Cut the list into pieces. An iterator of a list survives changes made in the meantime."""
    rest = iter(items)
    steps = (len(items) + _STEP - 1) // _STEP
    return filter(None, ([*islice(rest, _STEP)] for _ in range(steps)))
