"""The other shards as the core of this one sees them, before and after that is there."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.cluster.agreement import Agreements, Stated
from holdfast.cluster.frames import COMPLETE, Facts
from holdfast.cluster.places import Place
from holdfast.cluster.shards import Shards
from holdfast.delivery.basics.channels import TOPIC_ROW
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.other_shards import LogFigures
from holdfast.sharding.early import Early
from holdfast.sharding.homes import ShardHomes
from holdfast.sharding.known import KnownFacts
from holdfast.sharding.lost_ends import LostEnds
from holdfast.sharding.own_log import OwnLog
from holdfast.sharding.own_rows import OwnRows
from holdfast.sharding.ports import ShardStore
from holdfast.sharding.pruning import Pruning, Prunings
from holdfast.store.framing.log_state import LogState

if TYPE_CHECKING:
    from holdfast.cluster.reading import LogReader
    from holdfast.sharding.arrivals import Arrival


class OtherShards:
    """What this shard tells others, and what they have told it; an `OthersPort`.

    Args:
        number: The number of this shard.
        shards: Which shard has what.
        stamp: Returns ids, each once.
        came_early: Notes in the journal, by cause, messages that did not wait for stored ones.
        clock: Returns the time of the event loop, and `core_clock` the time of the core.
        steady: A clock that is never set, and that runs while this process does not.
        may_speak: Returns whether no other process can have opened this shard. If one can, others
            may have gone on without this process, so it does not know all subscriptions.
        wake: Lets the turn end with `end_turn`.
        reaches: Returns whether another shard is there, or away for no longer than a restart takes.
    """

    def __init__(
        self,
        number: int,
        shards: Shards,
        store: ShardStore,
        *,
        stamp: Callable[[], int],
        came_early: Callable[[str, int], None],
        clock: Callable[[], float],
        core_clock: Callable[[], float],
        steady: Callable[[], float],
        may_speak: Callable[[], bool],
        wake: Callable[[], None],
        reaches: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self.number = number
        self.numbers = [each for each in range(shards.map.count) if each != number]
        self.store, self.find_key = store, store.find_key
        self.stamp, self.clock, self.core_clock = stamp, clock, core_clock
        self.may_speak = may_speak
        self._wake = wake
        self._reaches = reaches
        self.known = KnownFacts(self.numbers)
        self.topics: Collection[str] = self.known.rows.topics
        self.early = Early(came_early)
        self.own = OwnLog(store, self.numbers, self.known.rows, may_speak, self.early)
        self.agreements = Agreements(self.numbers, self._state)
        self.rows = OwnRows(self.agreements, self._tell, wake)
        self.homes = ShardHomes(
            *(number, shards, self.own, store),
            stamp=stamp,
            clock=clock,
            core_clock=core_clock,
            steady=steady,
            wake=wake,
        )
        self.pruning = {shard: Pruning(clock) for shard in self.numbers}
        self.prunings = Prunings([*self.pruning.values()])
        # What reads the logs of others, once their facts are known.
        self.readers: dict[int, LogReader[Arrival]] = {}
        self.lost_ends = LostEnds()
        # Whether channels have homes. By shard, up to which cursor all its messages have come.
        self.have_homes = False
        self.complete: dict[int, int] = {}
        # Up to which cursor no further message of this shard enters a history, once its core says.
        self._complete_here: Callable[[], int] | None = None
        # Whether this process serves, or has served.
        self.has_served = False
        if shards.homes.segments:
            self.let_have_homes()

    def begin(self, found: LogState, complete_here: Callable[[], int]) -> None:
        """Go on with the log of an earlier process. Nothing is written yet."""
        self._complete_here = complete_here
        self.own.begin(found, self.clock())

    # As the core sees them

    def has_durable(self, channel: str) -> bool:
        # A process that was frozen handles the first request before it falls silent.
        return not self.may_speak() or bool(self.known.rows.shards(channel))

    def refuses(self, channel: str) -> bool:
        trimming = self.own.trimming
        return bool(trimming.overflowing) and trimming.refuses(self.known.rows.shards(channel))

    def pass_on(self, message: Message, *, is_early: bool = False) -> None:
        # Answers about a channel with a home come behind its messages, and both by the log.
        if self.have_homes and self.homes.has_home(message.channel):
            self.own.log_on(message)
        elif not self.own.pass_on(message, self.clock(), is_early=is_early):
            return
        self._wake()

    def is_away(self, shard: int) -> bool:
        return not self._reaches(shard)

    def add_row(self, row: str) -> None:
        self.rows.add(row)

    def remove_row(self, row: str) -> None:
        self.rows.remove(row)

    def has_row(self, row: str) -> bool | None:
        return self.known.rows.stands(row)

    def may_have_rows(self, row: str) -> bool:
        return bool(self.known.rows.shards(row))

    def join(self, channel: str, is_pattern: bool) -> None:
        self.prunings.join(channel, is_pattern=is_pattern)

    @property
    def has_joined(self) -> bool:
        return not self.prunings.are_grafting

    def when_joined(self, done: Callable[[], None]) -> None:
        self.prunings.when_grafted(done)

    def tell_topic(self, channel: str, is_topic: bool) -> None:
        if is_topic:
            self.homes.own_topics.add(channel)
            self.rows.add(TOPIC_ROW + channel)
            self.let_have_homes()
        else:
            self.homes.own_topics.discard(channel)
            self.rows.remove(TOPIC_ROW + channel)

    def when_topic_known(self, channel: str, done: Callable[[bool], None]) -> None:
        self.rows.when_known([TOPIC_ROW + channel], done)

    def when_known(self, patterns: Sequence[str], done: Callable[[bool], None]) -> None:
        # Messages that are not stored even for these receivers go over links.
        self.rows.when_known(patterns, lambda is_known: self.when_joined(partial(done, is_known)))

    def complete_cursor(self) -> int:
        """Return the cursor up to which no message will come any more, from any shard."""
        if self._complete_here is None:
            return 0
        others = [self.complete.get(each, 0) for each in self.numbers] if self.have_homes else []
        return min([self._complete_here(), *others])

    def figures(self) -> LogFigures:
        readers = self.readers.items()
        return LogFigures(
            self.number,
            self.own.appended,
            self.own.log.dropped,
            taken={shard: reader.taken for shard, reader in readers},
            skipped={shard: reader.skipped for shard, reader in readers},
            missing={shard: reader.missing for shard, reader in readers},
            behind_s={**self.own.trimming.behind_s},
            beyond={**self.lost_ends.entries},
            passed=self.own.passing.passed,
            early={cause.value: count for cause, count in self.early.counts.items()},
        )

    # What is told and learned

    def end_turn(self) -> None:
        """Tell the others what has changed in this turn."""
        now = self.clock()
        # Who knows a fact has everything that was published before.
        self.own.flush(now)
        self.rows.flush(now)

    def tick(self, now: float) -> None:
        """Tell what is due, and give up what does not come in time."""
        self.rows.flush(now)
        self.own.tick(now)
        self.homes.tick(now)
        self.agreements.tick(now)
        self.early.tick(now)

    def learn(self, shard: int, place: Place, facts: Facts) -> None:
        """Take over facts from the log of a shard."""
        if COMPLETE in facts:
            stored = {**facts}
            self.complete[shard] = int(stored.pop(COMPLETE))
            facts = stored
        self.known.learn(shard, place, facts)

    def follow(self) -> None:
        """Let the store have everything that was read with the next `tick` of the member."""
        for reader in self.readers.values():
            reader.follow(self.clock())

    def let_have_homes(self) -> None:
        """Tell from now on up to which cursor histories are complete."""
        if not self.have_homes:
            self.have_homes = True
            self.own.log.news = self._news
            self.own.log.tell_news()

    def _news(self) -> Facts:
        complete = self._complete_here
        return {} if complete is None else {COMPLETE: str(complete())}

    def _state(self, facts: Facts, stated: Stated) -> None:
        # A later incarnation must not find messages of before a subscription.
        self.follow()
        self.own.log.state(facts, self.clock(), stated)

    def _tell(self, facts: Facts) -> None:
        self._state(facts, ignore)
