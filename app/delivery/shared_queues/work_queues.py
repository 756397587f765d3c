"""Work queues: channels that deliver each message to one receiver.

A message enters the queue of its channel, which assigns it to the live receiver with the fewest
entries. Messages that a receiver refuses, or that are not in flight when it stops being live, are
requeued by their priority and age.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, TypeVar

from holdfast.delivery.basics.channels import Channels, lookups
from holdfast.delivery.basics.error_codes import ErrorCode
from holdfast.delivery.basics.feature_records import record_of, with_record
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.delivery.queues.queue import rightful_place
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.requests.request import request_of
from holdfast.delivery.requests.responders import may_answer
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.shared_queues.shared_queues import (
    MOST,
    SharedQueue,
    SharedQueueLimits,
    SharedQueueOwner,
    SharedQueues,
)
from holdfast.delivery.shared_queues.work import (
    PREFIX,
    WorkRefusal,
    borrowed_of,
    is_given_up,
    is_refused_by,
    is_work,
    make_work,
    refusals_of,
)
from holdfast.delivery.topics.sender_quota import SenderQuota

if TYPE_CHECKING:
    from holdfast.delivery.shared_queues.lent_work import FarWork

R = TypeVar("R", bound=Receiver)

# A receiver with its rank.
_Ranked = tuple[int, int, int, R]


class _Worker:
    """The record of a receiver that has had messages of work queues."""

    __slots__ = ("last_work",)

    def __init__(self, last_work: int) -> None:
        # The number of its last one, counted over all receivers.
        self.last_work = last_work


class _Search:
    """How far a queue was searched for work that a receiver with room accepts."""

    __slots__ = ("count", "has_news", "place")

    def __init__(self, count: int) -> None:
        # The search continues after this place; None at the beginning.
        self.place: tuple[int, int] | None = None
        # The length of the queue when the search stopped.
        self.count = count
        # Whether work came or went in the meantime, or a receiver got room. If so, another search
        # follows.
        self.has_news = False


class WorkQueues(SharedQueues[R]):
    """The queues of the channels that are work queues, by channel."""

    def __init__(
        self,
        hub: Hub[R],
        owner: SharedQueueOwner[R],
        *,
        limits: SharedQueueLimits,
        senders: SenderQuota,
        channels: Channels,
        is_used: bool,
    ) -> None:
        super().__init__(hub, owner, limits, senders)
        self._channels = channels
        # Whether any session can have work. Most servers have no work queues.
        self.is_used = is_used
        # By each pattern that matches their channels, the queues with messages.
        self._matching: dict[str, dict[str, None]] = {}
        # The queues with messages that some receiver refused.
        self._disputed: dict[str, None] = {}
        # The searches of queues whose first messages find no receiver with room.
        self._searches: dict[str, _Search] = {}
        # How many messages were assigned to receivers.
        self._given = 0
        # The other shards of the deployment, if there are any.
        self.far: FarWork[R] | None = None

    # Receivers

    def assign_to(self, receiver: R) -> None:
        """Assign work that waits for a receiver when the turn ends: it may have room now."""
        if self.far is not None:
            self.far.look_at(receiver)
        self.offer_to(receiver)

    def offer_to(self, receiver: R) -> None:
        """Do the same for work of this shard, also for a stand-in."""
        if not self._queues or receiver.queue.lacks_room(1) is not None:
            return
        for pattern in self._matching.keys() & receiver.subscriptions:
            for name in self._matching[pattern]:
                if name in self._searches:
                    self._searches[name].has_news = True
                self._hub.make_ready(self._queues[name].receiver)

    def _takers(self, name: str) -> list[R]:
        channel = self._channels.get(_channel(name))
        if channel is None:
            return []
        live = [each for each in self._hub.routes.receivers(channel) if each.is_live]
        if self.far is None:
            return live
        return [] if self.far.is_unsure else [*live, *self.far.takers(channel)]

    def takers_elsewhere(self, name: str) -> int:
        """Return how many sessions of other shards take work of the channel."""
        channel = self._channels.get(name)
        return 0 if channel is None or self.far is None else len(self.far.takers(channel))

    def choose(self, receivers: Sequence[R], message: Message) -> Sequence[R]:
        """Return the live receiver that is to answer this request, or none."""
        live = [_rank(each) for each in receivers if each.is_live and may_answer(each, message)]
        if not live:
            return ()
        chosen = min(live)[3]
        self._given += 1
        _note_work(chosen, self._given)
        return (chosen,)

    # Queues

    def of(self, channel: str) -> R | None:
        """Return the receiver that owns the queue of this channel, if anything waits in it."""
        return self.queue(PREFIX + channel)

    def accept(self, channel: str, message: Message, senders: Sequence[str]) -> SharedQueue[R]:
        """Return the queue of a channel, with room for the message. Raises `Undeliverable`."""
        shared = self.queue_for(PREFIX + channel, message, senders)
        shared.queue.reserve(len(message.wire))
        make_work(message)
        message.linger_s = None
        return shared

    def accepted(self, shared: SharedQueue[R], message: Message, outcome: PersistOutcome) -> None:
        """Release the reserved room: the message is in the queue, or will not come."""
        if outcome is not PersistOutcome.KEPT:
            shared.queue.discharge(message)
        shared.queue.release(len(message.wire))
        self.close_if_idle(shared.receiver)

    def _open(self, name: str) -> SharedQueue[R]:
        if name not in self._queues:
            for pattern in lookups(_channel(name)):
                self._matching.setdefault(pattern, {})[name] = None
        return super()._open(name)

    def close_if_idle(self, receiver: R) -> None:
        """Close the queue of a channel if it is empty. Other receivers stay."""
        super().close_if_idle(receiver)
        name = receiver.subject
        if receiver.has_shared_queue and name not in self._queues:
            self._disputed.pop(name, None)
            self._searches.pop(name, None)
            for pattern in lookups(_channel(name)):
                names = self._matching.get(pattern, {})
                names.pop(name, None)
                if not names:
                    self._matching.pop(pattern, None)

    def reopen(self, name: str) -> R:
        """Return the receiver that owns the queue, to replay a dead letter into it."""
        receiver = self._open(name).receiver
        # If nothing enters it, the queue closes when the turn ends.
        self._hub.make_ready(receiver)
        return receiver

    def restore(self, name: str, messages: Sequence[Message]) -> None:
        """Restore the queue from the store, even if the channel is no longer a work queue."""
        self.is_used = True
        for message in messages:
            if not is_work(message):
                # The message was replayed, so its body comes from its dead letter.
                make_work(message)
        super().restore(name, messages)
        if any(map(refusals_of, messages)):
            self._disputed[name] = None

    # Moving

    def _assign(self, known: SharedQueue[R], takers: Sequence[R]) -> list[Move]:
        """Move each message to the queue of one receiver that has not refused it.

        Messages that wait for a receiver with room do not make later ones wait.
        """
        source = known.receiver
        waiting = source.queue.new
        ranked = [_rank(each) for each in takers if each.queue.lacks_room(1) is None]
        heapify(ranked)
        if len(waiting) <= MOST:
            self._searches.pop(source.subject, None)
            return self._share_out(source, waiting, ranked, takers)
        moves = self._share_out(source, waiting[:MOST], ranked, takers)
        if moves or source.queue.new is not waiting:
            # Other messages are first now.
            self._hub.make_ready(source)
            return moves
        return self._search(source, ranked, takers) if ranked else []

    def _search(self, source: R, ranked: list[_Ranked[R]], takers: Sequence[R]) -> list[Move]:
        """Search some more of the queue: its first messages find no receiver with room."""
        queue, name = source.queue, source.subject
        search = self._searches.setdefault(name, _Search(queue.count))
        search.has_news = search.has_news or search.count != queue.count
        begin = MOST
        if search.place is not None:
            begin = max(MOST, bisect_right(queue.new, search.place, key=rightful_place))
        part = queue.new[begin : begin + MOST]
        is_last = begin + MOST >= len(queue.new)
        moves = self._share_out(source, part, ranked, takers)
        search.count = queue.count - len(moves)
        if not is_last:
            search.place = rightful_place(part[-1])
        elif search.has_news:
            self._searches[name] = _Search(search.count)
        else:
            del self._searches[name]
            return moves
        self._hub.make_ready(source)
        return moves

    def _share_out(
        self,
        source: R,
        messages: Sequence[Message],
        ranked: list[_Ranked[R]],
        takers: Sequence[R],
    ) -> list[Move]:
        moves: list[Move] = []
        refused: list[Message] = []
        lent: list[tuple[Message, R]] = []
        for message in messages:
            if not ranked:
                break
            if is_refused_by(message, takers):
                refused.append(message)
                continue
            taker = _choose(ranked, message)
            if taker is None:
                continue
            self._given += 1
            _note_work(taker, self._given)
            if self.far is not None and self.far.reserve(taker, message):
                lent.append((message, taker))
            else:
                moves.append(self._enter(message, source.key, (taker,), ()))
            heappush(ranked, _rank(taker))
        if lent:
            self._lend(source, lent)
        if refused:
            self._give_up(source, refused)
        return moves

    # Work that sessions of other shards have

    @property
    def are_settled(self) -> bool:
        return super().are_settled and (self.far is None or self.far.is_settled)

    def _lend(self, source: R, lent: Sequence[tuple[Message, R]]) -> None:
        source.queue.remove_messages([message for message, _ in lent])
        for message, taker in lent:
            if self.far is not None:
                self.far.lend(source, message, taker)

    def assign_all(self) -> None:
        """Assign what waits: it is known now who has what."""
        for each in self.queues():
            self._hub.make_ready(each)

    def _give_up(self, source: R, messages: Sequence[Message]) -> None:
        """Dead-letter messages that no receiver accepts, with the code of the last refusal."""
        source.queue.remove_messages(messages)
        for message in messages:
            last = refusals_of(message)[-1]
            self._settling.dead_letter(source, [Entry(message)], last.code, last.text)

    def requeue_refused(
        self, receiver: R, entry: Entry, code: ErrorCode, text: str, *, is_final: bool
    ) -> None:
        """Requeue a refused entry for other receivers; a final refusal lets it die in its queue."""
        (message,) = self._for_others(receiver, [entry])
        name = PREFIX + message.channel
        # A receiver that cannot take anything now says nothing of this message.
        if is_final or code.family != "communication":
            its = WorkRefusal(receiver.key, code, text, is_final)
            make_work(message, (*refusals_of(message), its))
        if borrowed_of(message) is None and not is_final:
            self._disputed[name] = None
        self._requeue(name, receiver.key, [message])

    def _requeue(self, name: str, key: str, messages: Sequence[Message]) -> None:
        own = [each for each in messages if borrowed_of(each) is None]
        if own:
            super()._requeue(name, key, own)
        if self.far is not None and len(own) < len(messages):
            for each in messages:
                if borrowed_of(each) is not None:
                    self.far.return_home(key, each)

    def requeue_all(self, receiver: R) -> None:
        """Requeue all work of an ending session."""
        if self.is_used and not receiver.has_shared_queue:
            if self.far is not None:
                self.far.forget(receiver)
            self.look_at_disputed()
            self._requeue_work(receiver, receiver.queue.entries())

    def requeue_new(self, receiver: R) -> None:
        """Requeue new work of a session that is not live or no longer subscribes."""
        if not self.is_used:
            return
        if self.far is not None:
            self.far.look_again(receiver)
        self.look_at_disputed()
        queue = receiver.queue
        if not queue.count:
            return
        entries = [*queue.returned.values(), *map(Entry, queue.new)]
        if receiver.is_live:
            entries = [each for each in entries if not self._is_taker(receiver, each.message)]
        self._requeue_work(receiver, entries)

    def dispute(self, source: R, message: Message) -> None:
        """Give up refused work of the queue, or check later whether all receivers refused it."""
        if is_given_up(message):
            self._give_up(source, [message])
        else:
            self._disputed[source.subject] = None

    def _entered(self, receiver: R, messages: Sequence[Message]) -> None:
        given_up = [each for each in messages if is_given_up(each)]
        if given_up:
            self._give_up(receiver, given_up)

    def look_at_disputed(self) -> None:
        """Check disputed messages: all remaining receivers may have refused them."""
        for name in self._disputed:
            self._hub.make_ready(self._queues[name].receiver)

    def _is_taker(self, receiver: R, message: Message) -> bool:
        channel = self._channels.get(message.channel)
        return channel is not None and not receiver.subscriptions.isdisjoint(channel.lookups)

    def _requeue_work(self, receiver: R, entries: Sequence[Entry]) -> None:
        by_channel: dict[str, list[Entry]] = {}
        for entry in entries:
            if is_work(entry.message):
                by_channel.setdefault(entry.message.channel, []).append(entry)
        for channel, its in by_channel.items():
            receiver.queue.remove_messages([each.message for each in its])
            self._requeue(PREFIX + channel, receiver.key, self._for_others(receiver, its))

    def requeue_late(self, receiver: R, message: Message) -> bool:
        """Requeue a message that arrived after the session's end, if it is work."""
        if not is_work(message):
            return False
        self._requeue(PREFIX + message.channel, receiver.key, [message])
        return True

    def _for_others(self, receiver: R, entries: Sequence[Entry]) -> list[Message]:
        """Return the messages of these entries, with attempts that name the receiver."""
        for entry in entries:
            named = [
                each if each.receiver else replace(each, receiver=receiver.key)
                for each in entry.trail
            ]
            entry.trail = tuple(named)
        return self._tried(entries)


def key_of_queue(channel: str) -> str:
    """Return the key of the receiver that owns the queue of a channel."""
    return f"{PREFIX}{channel}/0"


def _channel(name: str) -> str:
    """Return the channel of a queue."""
    return name.removeprefix(PREFIX)


def _rank(receiver: R) -> _Ranked[R]:
    """Return the order of choice: fewest entries first, then longest without work."""
    worker = record_of(receiver.records, _Worker)
    last_work = 0 if worker is None else worker.last_work
    # A stand-in has nothing but reserved room.
    queue = receiver.queue
    return queue.count + queue.coming, last_work, receiver.number, receiver


def _note_work(receiver: Receiver, number: int) -> None:
    """Record that the receiver gets the message with this number."""
    worker = record_of(receiver.records, _Worker)
    if worker is None:
        receiver.records = with_record(receiver.records, _Worker(number))
    else:
        worker.last_work = number


def _choose(ranked: list[_Ranked[R]], message: Message) -> R | None:
    """Remove and return the first receiver that has room and has not refused the message.

    Work that asks for a reply goes only to receivers that may reply.
    """
    size = len(message.wire)
    refusers = {each.key for each in refusals_of(message)}
    is_request = request_of(message) is not None
    passed = []
    chosen: R | None = None
    while ranked and chosen is None:
        first = heappop(ranked)
        receiver = first[3]
        is_silent = is_request and not may_answer(receiver, message)
        if is_silent or receiver.key in refusers or receiver.queue.lacks_room(size) is not None:
            passed.append(first)
        else:
            chosen = receiver
    for each in passed:
        if each[3].queue.lacks_room(1) is None:
            heappush(ranked, each)
    return chosen
