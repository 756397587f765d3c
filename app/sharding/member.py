"""A shard among others: what it takes from them, and the owner of its log. No I/O, no clock."""

import logging
from collections.abc import Mapping, Sequence

from holdfast.bayeux.server import Bayeux, far_parts_of
from holdfast.cluster.frames import Behind, Facts, Seen
from holdfast.cluster.log import parts_of
from holdfast.cluster.places import NOWHERE, Place, place_of
from holdfast.cluster.reader_port import Gap
from holdfast.cluster.reading import LogReader
from holdfast.cluster.waiting import Fields
from holdfast.delivery.basics.channels import TOPIC_ROW
from holdfast.delivery.messages.message import Message
from holdfast.sharding.arrivals import Arrival, Arrivals
from holdfast.sharding.direct import Inlet
from holdfast.sharding.latest_frames import again
from holdfast.sharding.other_shards import OtherShards
from holdfast.sharding.shown import ShownPlaces
from holdfast.store.format.log_scripts import LoggedFrame, Parts
from holdfast.store.framing.log_state import LogState, TakenLog
from holdfast.store.framing.other_shard import OtherShard

log = logging.getLogger(__name__)

_NOTHING_TAKEN = TakenLog("", "")


class Member:
    """A shard among others: a `LogOwner` for its store.

    Its caller says what it reads in the stores of others, and calls `end_turn` at the end of each
    turn in which `wake` was called, and `tick` several times a second.

    Args:
        bayeux: The core, which has the others as neighbours.
    """

    def __init__(self, others: OtherShards, bayeux: Bayeux) -> None:
        self.others, self._state = others, bayeux.state
        self._far = far_parts_of(bayeux)
        self._store, self._clock, self._own = others.store, others.clock, others.own
        self.arrivals = {
            shard: Arrivals(
                *(shard, self._far.from_others, others.store, others.homes, self),
                *(others.core_clock, others.early),
            )
            for shard in others.numbers
        }
        self.inlet = Inlet(
            self.arrivals, others.pruning, others.stamp, others.clock, others.core_clock
        )
        # What the store said at the start.
        self._taken: dict[int, TakenLog] = {}
        self._stored_facts: Mapping[str, str] = {}
        self._stored_calls: Mapping[str, bytes] = {}
        # The newest message of a history here when that was last told to others.
        self._told_newest = 0
        self.shown = ShownPlaces(None)
        # Whether it writes to its log: not before it is sure to go on.
        self._writes = False
        # How often frames of others were missing; and, by shard, what is not reported yet.
        self.gaps = 0
        self._missed: dict[int, Gap] = {}

    # The owner of the log in the store

    def flush(self) -> None:
        """End the turn: append what it has for others."""
        if self._writes:
            self._own.flush(self._clock())

    def size_of(self, message: Message) -> int:
        return self._own.size_of(message)

    def frame_of(self, messages: Sequence[Message]) -> Parts | None:
        return self._own.frame_of(messages, self._clock())

    def on_appended(self, n: int, frame: Parts, has_facts: bool) -> None:
        self._own.on_appended(n, frame, has_facts=has_facts, now=self._clock())
        self.others.homes.answered(frame.answered)

    def latest_frames(self) -> Sequence[LoggedFrame]:
        return self._own.latest.all()

    def again(self, frame: LoggedFrame) -> Parts | None:
        return again(frame)

    def begin_again(self, begun: LogState) -> tuple[Facts, Mapping[str, bytes]]:
        self._own.begin(begun, self._clock())
        if not self.others.has_served:
            # Sessions are not restored yet, and so their facts stay.
            self._go_on_from(begun)
            return {}, {}
        self._own.log.begin_again()
        facts = self.others.rows.corrections(begun.facts)
        return facts, parts_of((), facts)

    def places(self) -> Mapping[int, TakenLog]:
        read = {
            shard: TakenLog(*reader.taken_log)
            for shard, reader in self.readers.items()
            if reader.confirmed != NOWHERE
        }
        return {**self._taken, **read}

    def inbox(self) -> Mapping[str, bytes]:
        return self.others.homes.stored()

    def on_begun_again(self) -> None:
        self.others.agreements.begin_again()

    # The life of this shard

    def begin(self, found: LogState, shown: Mapping[int, str] | None = None) -> None:
        """Begin with what the store says, before sessions are restored. Nothing is written yet.

        `shown` is what the former process has left of `ShownPlaces`, if this one goes on from it.
        """
        self.others.begin(found, self._far.publishing.complete_cursor)
        self._go_on_from(found)
        self.shown = ShownPlaces(shown)

    def _go_on_from(self, found: LogState) -> None:
        self._taken, self._stored_facts = {**found.taken}, found.facts
        self._stored_calls = found.inbox

    def serve(self) -> None:
        """Write from now on: no other process will go on with this shard."""
        others = self.others
        if not others.has_served:
            others.known.rows.take_new_topics()
            told = [row for row in self._stored_facts if row.startswith(TOPIC_ROW)]
            self._far.publishing.made.begin([row.removeprefix(TOPIC_ROW) for row in told])
        self._writes = others.has_served = True
        now = self._clock()
        others.rows.begin(self._stored_facts, now)
        others.homes.begin(self._state.calls, self._stored_calls)
        self._far.go_on()
        self._stored_facts, self._stored_calls = {}, {}
        self._own.tick(now)

    def pause(self) -> None:
        """Write no longer, unless `serve` is called again: another process goes on."""
        self._writes = False

    @property
    def readers(self) -> dict[int, LogReader[Arrival]]:
        """What reads the logs of others, by shard."""
        return self.others.readers

    @property
    def has_caught_up(self) -> bool:
        """Whether all logs are taken that can be read, as far as they were at the start."""
        return all(reader.is_behind_start for reader in self.readers.values())

    @property
    def has_followed(self) -> bool:
        """Whether the store has everything that was read in the logs of others."""
        return all(reader.has_followed for reader in self.readers.values())

    def end_turn(self) -> None:
        """Tell the others what has changed in this turn."""
        if self._writes:
            self.others.end_turn()

    def tick(self) -> None:
        """Advance time."""
        if not self._writes:
            return
        now = self._clock()
        for shard, reader in self.readers.items():
            if self._store.is_available:
                reader.tick(now)
            self._own.log.see(shard, reader.learned, reader.awaited)
            self.inlet.direct[shard].go_on()
            self.arrivals[shard].kept_first.tick()
        self._tell_missed()
        self._tell_completeness()
        self.others.tick(now)

    @property
    def is_awaited(self) -> bool:
        """Whether others, or sessions here, may wait for what `tick` does."""
        if len(self.others.agreements) or self._own.log.is_awaited:
            return True
        return any(reader.is_awaited for reader in self.readers.values())

    def _tell_completeness(self) -> None:
        newest = self._state.histories.newest
        if self.others.have_homes and newest != self._told_newest:
            self._told_newest = newest
            self._own.log.tell_news()

    # What is read in the stores of others

    def learn_all(self, shard: int, found: OtherShard) -> None:
        """Take over the facts of a shard. The first time, its log is followed from then on."""
        self.others.known.begin(shard, found.nonce, found.facts, place_of(found.facts_at))
        self._learn_topics()
        if shard not in self.readers:
            place, passed = self._taken.get(shard, _NOTHING_TAKEN)
            since = self.shown.within(shard, place_of(found.end))
            arrivals = self.arrivals[shard]
            reader: LogReader[Arrival] = LogReader(
                arrivals, own=self.others.number, place=place, passed=passed, since=since
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
        if self.others.known.saw_incarnation(shard, reader.place.nonce):
            self._far.requests.asking.ask_again(shard)

    # What the logs of others say besides messages

    def may_show(self, shard: int, behind: Behind) -> bool:
        return self.inlet.direct[shard].has_come(behind.get(str(self.others.number), ""))

    def showed_at_once(self, shard: int) -> None:
        self.inlet.direct[shard].show_held()

    def learn(self, shard: int, place: Place, facts: Facts, seen: Seen) -> None:
        self.others.learn(shard, place, facts)
        self._learn_topics()
        own = seen.get(self.others.number)
        if own is not None:
            self._own.saw(shard, own, self._clock())
            self.others.agreements.saw(shard, own)

    def _learn_topics(self) -> None:
        """Let the core know which channels have become topics."""
        if self.others.topics:
            self.others.let_have_homes()
            if self.others.has_served:
                self._far.publishing.made.learned(self.others.known.rows.take_new_topics())

    def miss(self, shard: int, gap: Gap) -> None:
        self.others.known.lose(shard)
        before = self._missed.get(shard, gap)
        self._missed[shard] = gap._replace(begin=before.begin)
        self._tell_missed()

    def _tell_missed(self) -> None:
        """Report what is missing, unless another process may have the shard, and have taken it."""
        if not (self._missed and self.others.may_speak()):
            return
        missed, self._missed = self._missed, {}
        for shard, gap in missed.items():
            self.gaps += 1
            self._state.journal.missed(shard, gap.entries)
            told = gap.told(shard)
            log.error("%s of shard %d did not arrive: its log has them no more (%s)", *told)
