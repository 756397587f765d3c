"""A shard among others: what it has for them, and what it takes from them. No I/O, no clock."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.bayeux.publish.from_others import FromOthers
from holdfast.bayeux.server import Bayeux
from holdfast.cluster.agreement import Agreements, Stated
from holdfast.cluster.facts import TOPIC
from holdfast.cluster.frames import COMPLETE, Behind, Facts, Seen
from holdfast.cluster.log import parts_of
from holdfast.cluster.places import NOWHERE, Place, place_of
from holdfast.cluster.reader_port import Gap
from holdfast.cluster.reading import LogReader
from holdfast.cluster.shards import Shards
from holdfast.cluster.waiting import Fields
from holdfast.delivery.basics.ignoring import ignore
from holdfast.delivery.messages.message import Message
from holdfast.delivery.ports.other_shards import LogFigures
from holdfast.sharding.arrivals import Arrival, Arrivals
from holdfast.sharding.direct import Inlet
from holdfast.sharding.early import Early
from holdfast.sharding.homes import ShardHomes
from holdfast.sharding.known import KnownFacts
from holdfast.sharding.latest_frames import again
from holdfast.sharding.own_interest import DurableInterest
from holdfast.sharding.own_log import OwnLog
from holdfast.sharding.ports import ShardStore
from holdfast.sharding.shown import ShownPlaces
from holdfast.store.log_scripts import LoggedFrame, Parts
from holdfast.store.log_state import LogState, TakenLog
from holdfast.store.other_shard import OtherShard

log = logging.getLogger(__name__)

if TYPE_CHECKING:
    from holdfast.bayeux.publish.from_letters import FromLetters

# Listeners are told as facts, too, under names that no channel has.
_LISTENS = "listens"
# So are the channels that are held.
_HELD = "held"
_NOTHING_TAKEN = TakenLog("", "")


class Member:
    """A shard among others: an `OthersPort` for its core, a `LogOwner` for its store.

    Its caller says what it reads in the stores of others, and calls `flush` at the end of each turn
    in which `wake` was called, and `tick` several times a second.

    Args:
        number: The number of this shard.
        shards: Which shard has what.
        clock: Returns the time of the event loop, and `core_clock` the time of the core.
        steady: A clock that is never set, and that runs while this process does not.
        may_speak: Returns whether no other process can have opened this shard. If one can, others
            may have gone on without this process, so it does not know all subscriptions.
        wake: Lets the turn end with `flush`.
        reaches: Returns whether another shard is there, or away for no longer than a restart takes.
    """

    def __init__(
        self,
        number: int,
        shards: Shards,
        *,
        bayeux: Bayeux,
        store: ShardStore,
        clock: Callable[[], float],
        core_clock: Callable[[], float],
        steady: Callable[[], float],
        may_speak: Callable[[], bool],
        wake: Callable[[], None],
        reaches: Callable[[int], bool] = lambda _: True,
    ) -> None:
        self.number = number
        self.others = [each for each in range(shards.map.count) if each != number]
        self._bayeux = bayeux
        self._store, self.find_key = store, store.find_key
        self._clock = clock
        self._may_speak = may_speak
        self._wake = wake
        self.known = KnownFacts(self.others)
        self.topics: Collection[str] = self.known.interest.topics
        self.early = early = Early(bayeux.state.journal.came_early)
        self.own = OwnLog(store, self.others, self.known.interest, may_speak, early)
        self.agreements = Agreements(self.others, self._state)
        self.interest = DurableInterest(self.agreements, self._tell, wake)
        self.homes = ShardHomes(
            *(number, shards, self.own, store),
            stamp=bayeux.state.node.stamp,
            clock=clock,
            core_clock=core_clock,
            steady=steady,
            wake=wake,
        )
        self._from_others = from_others = FromOthers(bayeux.state)
        self.arrivals = {
            shard: Arrivals(shard, from_others, store, self.homes, self, core_clock, early)
            for shard in self.others
        }
        self.inlet = Inlet(self.arrivals, bayeux.state.node.stamp, clock, core_clock)
        self.readers: dict[int, LogReader[Arrival]] = {}
        # What the store said at the start.
        self._taken: dict[int, TakenLog] = {}
        self._stored_facts: Mapping[str, str] = {}
        self._stored_letters: Mapping[str, bytes] = {}
        # Whether channels have homes. By shard, up to which cursor all its messages have come.
        self._has_homes = False
        self._complete: dict[int, int] = {}
        # The newest message of a history here when that was last told to others.
        self._told_newest = 0
        # What does letters of others.
        self._from_letters: FromLetters | None = None
        self.shown = ShownPlaces(None)
        # Whether it writes to its log: not before it is sure to go on.
        self._writes = self._has_served = False
        # How often frames of others were missing.
        self.gaps = 0
        self._reaches = reaches
        if shards.homes.segments:
            self._let_have_homes()

    # The core's port to the other shards

    def has_durable(self, channel: str) -> bool:
        # A process that was frozen handles the first request before it falls silent.
        return not self._may_speak() or bool(self.known.interest.shards(channel))

    def refuses(self, channel: str) -> bool:
        trimming = self.own.trimming
        return bool(trimming.overflowing) and trimming.refuses(self.known.interest.shards(channel))

    def pass_on(self, message: Message, *, is_early: bool = False) -> None:
        # Answers about a channel with a home come behind its messages, and both by the log.
        if self._has_homes and self.homes.has_home(message.channel):
            self.own.log_on(message)
        elif not self.own.pass_on(message, self._clock(), is_early=is_early):
            return
        self._wake()

    def is_away(self, shard: int) -> bool:
        return not self._reaches(shard)

    def add_interest(self, pattern: str) -> None:
        self.interest.add(pattern)

    def remove_interest(self, pattern: str) -> None:
        self.interest.remove(pattern)

    def join(self, channel: str, is_pattern: bool) -> None:
        self.inlet.prunings.join(channel, is_pattern=is_pattern)

    @property
    def has_joined(self) -> bool:
        return not self.inlet.prunings.are_grafting

    def when_joined(self, done: Callable[[], None]) -> None:
        self.inlet.prunings.when_grafted(done)

    def add_listener(self, pattern: str) -> None:
        self.interest.add(_LISTENS + pattern)

    def remove_listener(self, pattern: str) -> None:
        self.interest.remove(_LISTENS + pattern)

    def has_listeners(self, channel: str) -> bool:
        return bool(self.known.interest.shards(_LISTENS + channel))

    def tell_hold(self, channel: str, is_held: bool) -> None:
        tell = self.interest.add if is_held else self.interest.remove
        tell(_HELD + channel)

    def hold(self, channel: str) -> bool | None:
        return self.known.interest.says(_HELD + channel)

    def tell_topic(self, channel: str, is_topic: bool) -> None:
        if is_topic:
            self.homes.own_topics.add(channel)
            self.interest.add(TOPIC + channel)
            self._let_have_homes()
        else:
            self.homes.own_topics.discard(channel)
            self.interest.remove(TOPIC + channel)

    def when_topic_known(self, channel: str, done: Callable[[bool], None]) -> None:
        self.interest.when_known([TOPIC + channel], done)

    def _let_have_homes(self) -> None:
        if not self._has_homes:
            self._has_homes = True
            self.own.log.news = self._news
            self.own.log.tell_news()

    def when_known(self, patterns: Sequence[str], done: Callable[[bool], None]) -> None:
        # Messages that are not stored even for these receivers go over links.
        self.interest.when_known(
            patterns, lambda is_known: self.when_joined(partial(done, is_known))
        )

    def complete_cursor(self) -> int:
        """Return the cursor up to which no message will come any more, from any shard."""
        among = self._bayeux.publishing.among
        if among is None:
            return 0
        cursors = [self._complete.get(each, 0) for each in self.others] if self._has_homes else []
        return min([among.complete_cursor(), *cursors])

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
            passed=self.own.passing.passed,
            early={cause.value: count for cause, count in self.early.counts.items()},
        )

    # The owner of the log in the store

    def flush(self) -> None:
        """End the turn: append what it has for others."""
        if self._writes:
            self.own.flush(self._clock())

    def size_of(self, message: Message) -> int:
        return self.own.size_of(message)

    def frame_of(self, messages: Sequence[Message]) -> Parts | None:
        return self.own.frame_of(messages, self._clock())

    def on_appended(self, n: int, frame: Parts, has_facts: bool) -> None:
        self.own.on_appended(n, frame, has_facts=has_facts, now=self._clock())
        self.homes.answered(frame.letters)

    def latest_frames(self) -> Sequence[LoggedFrame]:
        return self.own.latest.all()

    def again(self, frame: LoggedFrame) -> Parts | None:
        return again(frame)

    def begin_again(self, begun: LogState) -> tuple[Facts, Mapping[str, bytes]]:
        self.own.begin(begun, self._clock())
        if not self._has_served:
            # Sessions are not restored yet, and so their facts stay.
            self._go_on_from(begun)
            return {}, {}
        self.own.log.begin_again()
        facts = self.interest.corrections(begun.facts)
        return facts, parts_of((), facts)

    def places(self) -> Mapping[int, TakenLog]:
        read = {
            shard: TakenLog(*reader.taken_log)
            for shard, reader in self.readers.items()
            if reader.confirmed != NOWHERE
        }
        return {**self._taken, **read}

    def inbox(self) -> Mapping[str, bytes]:
        return self.homes.stored()

    def on_begun_again(self) -> None:
        self.agreements.begin_again()

    # The life of this shard

    def begin(self, found: LogState, shown: Mapping[int, str] | None = None) -> "FromLetters":
        """Begin with what the store says, before sessions are restored. Nothing is written yet.

        `shown` is what the former process has left of `ShownPlaces`, if this one goes on from it.
        """
        self.own.begin(found, self._clock())
        self._go_on_from(found)
        self.shown = ShownPlaces(shown)
        self._from_letters = self._bayeux.go_among(
            self, self.homes, self.number, self._from_others.tap
        )
        return self._from_letters

    def _go_on_from(self, found: LogState) -> None:
        self._taken, self._stored_facts = {**found.taken}, found.facts
        self._stored_letters = found.inbox

    def serve(self) -> None:
        """Write from now on: no other process will go on with this shard."""
        among = self._bayeux.publishing.among
        if among is not None and not self._has_served:
            self.known.interest.take_new_topics()
            among.made.begin()
        self._writes = self._has_served = True
        now = self._clock()
        self.interest.begin(self._stored_facts, now)
        if self._from_letters is not None:
            self.homes.begin(self._from_letters, self._stored_letters)
            self._from_letters.go_on()
        self._stored_facts, self._stored_letters = {}, {}
        self.own.tick(now)

    def pause(self) -> None:
        """Write no longer, unless `serve` is called again: another process goes on."""
        self._writes = False

    @property
    def has_caught_up(self) -> bool:
        """Whether all logs are taken that can be read, as far as they were at the start."""
        return all(reader.is_behind_start for reader in self.readers.values())

    @property
    def has_followed(self) -> bool:
        """Whether the store has everything that was read in the logs of others."""
        return all(reader.has_followed for reader in self.readers.values())

    def follow(self) -> None:
        """Let the store have everything that was read with the next `tick`."""
        for reader in self.readers.values():
            reader.follow(self._clock())

    def end_turn(self) -> None:
        """Tell the others what has changed in this turn."""
        if self._writes:
            now = self._clock()
            # Who knows a fact has everything that was published before.
            self.own.flush(now)
            self.interest.flush(now)

    def tick(self) -> None:
        """Advance time."""
        if not self._writes:
            return
        now = self._clock()
        for shard, reader in self.readers.items():
            if self._store.is_available:
                reader.tick(now)
            self.own.log.see(shard, reader.learned, reader.awaited)
            self.inlet.direct[shard].go_on()
            self.arrivals[shard].kept_first.tick()
        self.interest.flush(now)
        self._tell_completeness()
        self.own.tick(now)
        self.homes.tick(now)
        self.agreements.tick(now)
        self.early.tick(now)

    @property
    def is_awaited(self) -> bool:
        """Whether others, or sessions here, may wait for what `tick` does."""
        if len(self.agreements) or self.own.log.is_awaited:
            return True
        return any(reader.is_awaited for reader in self.readers.values())

    def _tell_completeness(self) -> None:
        newest = self._bayeux.state.histories.newest
        if self._has_homes and newest != self._told_newest:
            self._told_newest = newest
            self.own.log.tell_news()

    def _news(self) -> Facts:
        among = self._bayeux.publishing.among
        return {} if among is None else {COMPLETE: str(among.complete_cursor())}

    # What is read in the stores of others

    def learn_all(self, shard: int, found: OtherShard) -> None:
        """Take over the facts of a shard. The first time, its log is followed from then on."""
        self.known.begin(shard, found.nonce, found.facts, place_of(found.facts_at))
        self._learn_topics()
        if shard not in self.readers:
            place, passed = self._taken.get(shard, _NOTHING_TAKEN)
            since = self.shown.within(shard, place_of(found.end))
            arrivals = self.arrivals[shard]
            reader: LogReader[Arrival] = LogReader(
                arrivals, own=self.number, place=place, passed=passed, since=since
            )
            self.readers[shard] = self.inlet.direct[shard].reader = reader
            arrivals.kept_first.reader = reader

    def heard(self, shard: int, after: str, frames: Sequence[tuple[bytes, Fields]]) -> None:
        """Take the frames that a read behind this id has found."""
        reader = self.readers[shard]
        reader.heard(after, frames, self._clock())
        self.inlet.direct[shard].go_on()
        if reader.place == NOWHERE:
            return
        is_another = self.known.saw_opening(shard, reader.place.nonce)
        if is_another and self._from_letters is not None:
            self._from_letters.requests.asking.ask_again(shard)

    # What the logs of others say besides messages

    def may_show(self, shard: int, behind: Behind) -> bool:
        return self.inlet.direct[shard].has_come(behind.get(str(self.number), ""))

    def showed_at_once(self, shard: int) -> None:
        self.inlet.direct[shard].show_held()

    def learn(self, shard: int, place: Place, facts: Facts, seen: Seen) -> None:
        if COMPLETE in facts:
            stored = {**facts}
            self._complete[shard] = int(stored.pop(COMPLETE))
            facts = stored
        self.known.learn(shard, place, facts)
        self._learn_topics()
        own = seen.get(self.number)
        if own is not None:
            self.own.saw(shard, own, self._clock())
            self.agreements.saw(shard, own)

    def miss(self, shard: int, gap: Gap) -> None:
        self.gaps += 1
        self._bayeux.state.journal.missed(shard, gap.entries)
        log.error("%s of shard %d did not arrive: its log has them no more (%s)", *gap.told(shard))
        self.known.lose(shard)

    def _learn_topics(self) -> None:
        """Let the core know which channels have become topics."""
        if self.topics:
            self._let_have_homes()
            among = self._bayeux.publishing.among
            if among is not None and self._has_served:
                among.made.learned(self.known.interest.take_new_topics())

    # What the parts of this shard tell others

    def _state(self, facts: Facts, stated: Stated) -> None:
        # A later opening must not find messages of before a subscription.
        self.follow()
        self.own.log.state(facts, self._clock(), stated)

    def _tell(self, facts: Facts) -> None:
        self._state(facts, ignore)
