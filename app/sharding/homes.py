"""Which shard has what, and calls to it: what one shard asks another one to do."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from holdfast.cluster.calls import (
    Received,
    SentCalls,
    UndoneCalls,
    call,
    confirmation_of,
    done_with,
)
from holdfast.cluster.frames import LogEntry, read, write
from holdfast.cluster.log import ForShard, parts_of
from holdfast.cluster.shards import Shards
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.shard_call import NO_ANSWER, ShardCall, effect_of
from holdfast.sharding.contacts import Contacts
from holdfast.sharding.own_log import OwnLog
from holdfast.sharding.ports import ShardStore

if TYPE_CHECKING:
    from holdfast.bayeux.state.calls import Calls


# How many channels are remembered with their homes.
_MOST_CACHED: Final = 20_000


class ShardHomes:
    """Sends calls, and does the calls of others; a `HomesPort`.

    Args:
        number: The number of this shard.
        stamp: Returns an id that no other call has.
        clock: Returns the time of the event loop, and `core_clock` the time of the core.
        steady: A clock that is never set, and that runs while this process does not.
        wake: Lets the turn end with a flush of the log.
    """

    def __init__(
        self,
        number: int,
        shards: Shards,
        own: OwnLog,
        store: ShardStore,
        *,
        stamp: Callable[[], int],
        clock: Callable[[], float],
        core_clock: Callable[[], float],
        steady: Callable[[], float],
        wake: Callable[[], None],
    ) -> None:
        self._number = number
        self._shards = shards
        self._others = tuple(each for each in range(shards.map.count) if each != number)
        self._own = own
        self._store = store
        self._stamp = stamp
        self._clock = clock
        self._core_clock = core_clock
        self.contacts = Contacts(self._others, steady)
        self._wake = wake
        self._sent = SentCalls(own.log.pass_on)
        self._undone = UndoneCalls(self._do)
        # Topics that this shard tells, and those that others do: no rule calls them so.
        self.own_topics: set[str] = set()
        self._others_topics = own.rows.topics
        # By channel with a rule, the home; None if it is this shard, or if there is none.
        self._home_of: dict[str, int | None] = {}
        # What does the calls of others, and the calls that came before it was set.
        self._calls: Calls | None = None
        self._early: list[Received] = []

    # The core's port

    def home_of_subject(self, subject: str) -> int | None:
        home = self._shards.of_subject(subject)
        return None if home == self._number else home

    def is_topic(self, channel: str) -> bool:
        return channel in self._others_topics or channel in self.own_topics

    @property
    def has_topics(self) -> bool:
        """Whether there are topics that no rule calls so."""
        return bool(self._others_topics or self.own_topics)

    def home_of(self, channel: str) -> int | None:
        if self.has_topics and self.is_topic(channel):
            of_topic = self._shards.of_topic(channel)
            return None if of_topic == self._number else of_topic
        if not self._shards.homes.segments:
            return None
        # This shard's number, which is never remembered, says that the channel is new.
        found = self._home_of.get(channel, self._number)
        if found == self._number:
            if len(self._home_of) >= _MOST_CACHED:
                self._home_of.clear()
            home = self._shards.of_channel(channel)
            found = self._home_of[channel] = None if home == self._number else home
        return found

    def homes_of(self, pattern: str) -> Sequence[int | None]:
        if not pattern.endswith("*"):
            return (self.home_of(pattern),)
        of_pattern = self._shards.of_topics if self.has_topics else self._shards.of_pattern
        shards = of_pattern(pattern)
        # There may be channels without a home.
        others: Sequence[int | None] = [each for each in shards if each != self._number]
        return others if len(shards) == 1 and others else [None, *others]

    def has_home(self, channel: str) -> bool:
        """Return whether one shard decides about the channel."""
        return self.is_topic(channel) or self._shards.of_channel(channel) is not None

    def home_of_guest(self, shard: int) -> int | None:
        return shard if shard != self._number and shard < self._shards.map.count else None

    def home_of_bucket(self, bucket: int) -> int | None:
        home = self._shards.map.of_bucket[bucket]
        return None if home == self._number else home

    @property
    def others(self) -> Sequence[int]:
        return self._others

    def may_send(self, shard: int) -> bool:
        if self._calls is None:
            # Before it has what an earlier process had, it would tell others that it has nothing.
            return False
        is_behind = shard in self._own.trimming.overflowing
        return self._store.is_available and not (is_behind or self._sent.is_full)

    def steady_s(self) -> float:
        return self.contacts.clock()

    def heard_at(self, shard: int) -> float:
        return self.contacts.heard_at(shard)

    def send(
        self, shard: int, what: str, data: bytes, done: Callable[[bytes | None], None]
    ) -> None:
        asked = call(what, self._stamp(), data)
        self._sent.send(asked, shard, self._clock(), done)
        self._wake()

    def answer(self, call: ShardCall, answer: bytes) -> None:
        done = done_with(call, answer)
        parts = parts_of([ForShard(done.answer, done.shard)], behind=self._own.passing.behind())
        self._store.append_facts({}, parts, ignore, [call.name])
        self._undone.forget(call.name)

    def answer_behind(self, call: ShardCall, answer: bytes) -> None:
        self._own.log.flush(self._clock())
        # What waits for the store would come behind the answer.
        self.answer(call, answer if self._own.is_available else NO_ANSWER)

    def has_answered(self, message: Message) -> None:
        effect = effect_of(message)
        if effect is not None and effect.is_confirmed:
            self._own.log.pass_on(confirmation_of(effect.call), effect.call.sender)
            self._wake()

    def answered(self, names: Sequence[str]) -> None:
        """Take note that the store has the answers to these calls, and the calls no more.

        What they have asked for may wait for replicas. A store that goes back meanwhile must not
        get the calls again: it is told their answers, and a later process would do them twice.
        """
        for name in names:
            self._undone.forget(name)

    # What arrives

    def take_call(self, sender: int, entry: LogEntry) -> None:
        """Do a call of another shard, which the store has."""
        self._undone.take(sender, entry)

    def take_answer(self, answer: LogEntry) -> None:
        """Take the answer to a call of this shard."""
        self._sent.answered(answer)

    def begin(self, calls: "Calls", stored: Mapping[str, bytes]) -> None:
        """Do the calls that earlier processes left, and from now on all others."""
        self._calls = calls
        early, self._early = self._early, []
        for received in early:
            self._do(received)
        for name, frame in stored.items():
            sender = int(name.partition(" ")[0])
            for entry in read(frame).all_entries():
                self.take_call(sender, entry)

    def stored(self) -> Mapping[str, bytes]:
        """Return the calls that are not done, as the store must have them."""
        return {each.name: write([each.entry]) for each in self._undone.calls()}

    def tick(self, now: float) -> None:
        """End the wait for answers that did not come in time."""
        self._sent.tick(now)

    def _do(self, received: Received) -> None:
        if self._calls is None:
            self._early.append(received)
        else:
            self._calls.do(received.for_core, self._core_clock())
