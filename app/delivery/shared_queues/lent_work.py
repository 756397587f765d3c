"""Work that another shard has: it stays in its queue, in flight, until that shard says more."""

from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from holdfast.delivery.basics.channels import Channel
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.former_attempts import FormerAttempts, former_of, tried
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Lending, Move
from holdfast.delivery.queues.receivers import Receiver
from holdfast.delivery.routing.hub import Hub
from holdfast.delivery.shared_queues.shared_queues import joined_in
from holdfast.delivery.shared_queues.work import WorkRefusal, make_work, refusals_of

# How much is remembered of what returned.
_MOST_RETURNED: Final = 100_000

R = TypeVar("R", bound=Receiver)
R_inv = TypeVar("R_inv", bound=Receiver)


class FarWork(Protocol[R_inv]):
    """The other shards, as work queues see them: their sessions take work, and have work for ours.

    A session of another shard that takes work of this one has a stand-in here.
    """

    @property
    def is_unsure(self) -> bool:
        """Whether some shard may have work of this one, and has not said so yet."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether other shards were told everything."""
        ...

    def takers(self, channel: Channel, /) -> Sequence[R_inv]:
        """Return the stand-ins of sessions that take work of the channel now."""
        ...

    def reserve(self, taker: R_inv, message: Message, /) -> bool:
        """Reserve room at a stand-in. Returns False for a session of this shard."""
        ...

    def lend(self, source: R_inv, message: Message, taker: R_inv, /) -> None:
        """Send the work, which has left its queue, to the shard of the session.

        Its entry goes back into the queue of `source`, in flight.
        """
        ...

    def look_at(self, receiver: R_inv, /) -> None:
        """Tell other shards if a session here has begun to take their work, or takes none."""
        ...

    def look_again(self, receiver: R_inv, /) -> None:
        """Do the same if it may be live no more, or has unsubscribed."""
        ...

    def mark_doubtful(self, receiver: R_inv, /) -> None:
        """Mark what a session has from other shards, which may have given it to others since."""
        ...

    def forget(self, receiver: R_inv, /) -> None:
        """Tell other shards that a session here takes none: it ends."""
        ...

    def return_home(self, key: str, message: Message, /) -> None:
        """Give work back to its shard that the session with this key does not do."""
        ...


class LentWork(Generic[R]):
    """The entries of work queues that are in flight at other shards.

    Args:
        find: Returns the receiver that owns the queue of a channel, if there is one.
        dispute: Looks at refused work of a queue: it may have to die.
    """

    def __init__(
        self, hub: Hub[R], find: Callable[[str], R | None], dispute: Callable[[R, Message], None]
    ) -> None:
        self._hub = hub
        self._ledger = hub.ledger
        self._find = find
        self._dispute = dispute
        # What has returned in this process, and waits or was given to others since.
        self._returned: dict[int, None] = {}

    def begin(self, source: R, message: Message, key: str) -> Entry:
        """Let work that is in no queue be in flight at a session of another shard, by its key."""
        entry = self._begin(source, message)
        self._note_lent(source, message, key)
        return entry

    def _note_lent(self, source: R, message: Message, key: str) -> None:
        self._returned.pop(message.id, None)
        self._note(Move(message, source.key, (key,), 1, 0, Lending.LENT))

    def _note_return(self, source: R, message: Message, key: str, how: Lending) -> None:
        if len(self._returned) >= _MOST_RETURNED:
            self._returned.clear()
        self._returned[message.id] = None
        self._note(Move(message, key, (source.key,), 1, 0, how))

    def _note(self, move: Move) -> None:
        self._ledger.moved((move,))

    def _begin(self, source: R, message: Message, attempts: int = 1) -> Entry:
        """Let an entry that is in no queue be in flight in the queue of its channel.

        Whether it is shown to a client, only the other shard knows.
        """
        queue = source.queue
        queue.seq += 1
        entry = Entry(message, queue.seq, attempts=attempts)
        queue.restore_entry(entry)
        queue.tell_entered(message)
        if message.is_durable:
            # After a kill, its next receiver may be the second one. The other shard records the
            # hand-over.
            self._ledger.marked(source, (Entry(entry.for_others()),))
        return entry

    def begin_again(self, channel: str, id: int, key: str) -> Entry | None:
        """Let work that waits be in flight: another shard has it. Returns None if none waits."""
        source, message = self._find(channel), self._waiting(channel, id)
        if source is None or message is None:
            return None
        source.queue.remove_messages((message,))
        # Its mark counts the attempt, if it is stored or was given.
        is_counted = former_of(message) is not None
        entry = self._begin(source, message, 0 if is_counted else 1)
        if id in self._returned:
            # The process that lent it before a start has noted it.
            self._note_lent(source, message, key)
        return entry

    def finish(self, channel: str, id: int, entry: Entry | None) -> None:
        """Remove work that has left the queue of a session of another shard, which counts it.

        Without an entry it is not in flight here: then it may wait.
        """
        source = self._find(channel)
        message = self._waiting(channel, id) if entry is None else entry.message
        if source is None or message is None:
            return
        if entry is None:
            source.queue.remove_messages((message,))
        else:
            source.queue.remove_entries((entry,))
        if entry is None and id in self._returned:
            # It waited as one more copy than the one that was done.
            del self._returned[id]
            self._note(Move(message, source.key, (), copies=0, remembering=0))
        else:
            self._ledger.done_elsewhere(source, message)
        self._hub.make_ready(source)

    def return_refused(
        self,
        channel: str,
        key: str,
        entry: Entry,
        *,
        former: FormerAttempts | None,
        refusals: Sequence[WorkRefusal],
    ) -> None:
        """Requeue work that a session of another shard gave back, with what was attempted there."""
        message = entry.message if former is None else tried(entry.message, former)
        make_work(message, [*refusals_of(message), *_new(refusals, message)])
        self._requeue(channel, key, entry, message=message, how=Lending.GIVEN_BACK)

    def return_lost(self, channel: str, key: str, entry: Entry) -> None:
        """Requeue work of which the shard of this session says nothing any more."""
        self._hub.counters.redelivered += 1
        message = entry.for_others()
        self._requeue(channel, key, entry, message=message, how=Lending.TAKEN_BACK)

    def _requeue(
        self, channel: str, key: str, entry: Entry, *, message: Message, how: Lending
    ) -> None:
        source = self._find(channel)
        if source is None:
            return
        self._note_return(source, message, key, how)
        source.queue.remove_entries((entry,))
        source.queue.insert(message)
        if message.is_durable:
            self._ledger.marked(source, (Entry(message),))
        if refusals_of(message):
            self._dispute(source, message)
        self._hub.settling.watch_expiry(source)
        self._hub.make_ready(source)

    def note_attempts(
        self,
        channel: str,
        key: str,
        id: int,
        *,
        former: FormerAttempts | None,
        refusals: Sequence[WorkRefusal],
    ) -> None:
        """Add attempts and refusals to work that waits already, if it does."""
        source, message = self._find(channel), self._waiting(channel, id)
        if source is None or message is None:
            return
        if id not in self._returned:
            # The process that lent it has not noted its return.
            self._note_return(source, message, key, Lending.GIVEN_BACK)
        if former is not None:
            message = joined_in(source, message, former)
        if more := _new(refusals, message):
            make_work(message, [*refusals_of(message), *more])
            self._dispute(source, message)
        self._hub.make_ready(source)

    def _waiting(self, channel: str, id: int) -> Message | None:
        source = self._find(channel)
        if source is None:
            return None
        return next((each for each in source.queue.new if each.id == id), None)


def _new(refusals: Sequence[WorkRefusal], message: Message) -> list[WorkRefusal]:
    """Return the refusals by receivers that have not refused the message before."""
    known = {each.key for each in refusals_of(message)}
    return [each for each in refusals if each.is_final or each.key not in known]
