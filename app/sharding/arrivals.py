"""Takes what the log of another shard has for this one."""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from holdfast.bayeux.publish.from_others import FromOthers
from holdfast.bayeux.publish.tap import Arrived
from holdfast.cluster.frames import (
    ANSWER,
    DURABLE,
    LETTER,
    MESSAGE,
    Behind,
    Entry,
    Facts,
    Frame,
    FrameUnreadable,
    Seen,
    write,
)
from holdfast.cluster.messages import message_of
from holdfast.cluster.places import Place
from holdfast.cluster.reader_port import Gap, Move, NotTaken, Sorted
from holdfast.sharding.ports import ShardStore
from holdfast.sharding.recent import RecentIds
from holdfast.store.log_scripts import Step
from holdfast.store.shard_log import Taken, Taking

log = logging.getLogger(__name__)

# A message with its receivers here, or a letter, or the answer to one.
Arrival = Arrived | Entry


class ArrivalsPort(Protocol):
    """What a shard does with all that is not a message."""

    def take_letter(self, shard: int, letter: Entry, /) -> None:
        """Do a letter, which is in the inbox."""
        ...

    def take_answer(self, answer: Entry, /) -> None:
        """Take the answer to a letter of this shard."""
        ...

    def may_show(self, shard: int, behind: Behind, /) -> bool:
        """Return whether everything is shown that comes before a frame on a link."""
        ...

    def showed(self, shard: int, /) -> None:
        """Show what comes behind the last frame of a shard's log on its link."""
        ...

    def took(self, shard: int, /) -> None:
        """Go on: something of a shard's log is stored."""
        ...

    def learn(self, shard: int, place: Place, facts: Facts, seen: Seen, /) -> None:
        """Take note of facts in a shard's log, and of how far it has taken other logs."""
        ...

    def miss(self, shard: int, gap: Gap, /) -> None:
        """Take note of frames that this shard does not get."""
        ...


class Arrivals:
    """What arrives from one other shard; a `ReaderPort`.

    Args:
        shard: The number of the other one.
    """

    def __init__(
        self, shard: int, from_others: FromOthers, store: ShardStore, port: ArrivalsPort
    ) -> None:
        self._shard = shard
        self._from_others = from_others
        self._store = store
        self._port = port
        self._recent = RecentIds()
        # How many entries could not be read, or shown.
        self.failures = 0

    def sort(self, frame: Frame) -> Sorted[Arrival]:
        if not frame.has_only_messages:
            return self._sort_all(frame.all_entries())
        is_wanted, channels = self._from_others.is_wanted, frame.channels
        wanted = [is_wanted(channel) for channel in channels]
        if False not in wanted:
            return self._sort_all(frame.entries(wanted))
        useless = [each for each, is_useful in zip(channels, wanted, strict=True) if not is_useful]
        found = self._sort_all(frame.entries(wanted) if True in wanted else ())
        return found._replace(useless=useless)

    def _sort_all(self, entries: Sequence[Entry]) -> Sorted[Arrival]:
        kept: list[Arrival] = []
        shown: list[Arrival] = []
        size = 0
        for entry in entries:
            # What comes twice is passed over, or a letter would be done twice.
            if entry.id in self._recent and entry.kind != ANSWER:
                continue
            arrival = self._arrived(entry) if entry.kind == MESSAGE else entry
            if arrival is None:
                continue
            shown.append(arrival)
            if _is_kept(arrival):
                kept.append(arrival)
                size += len(entry.data)
        return Sorted(kept, shown, size)

    def _arrived(self, entry: Entry) -> Arrived | None:
        try:
            message = message_of(entry)
        except FrameUnreadable as error:
            self.failures += 1
            log.error("shard %d has sent a message that is unreadable: %s", self._shard, error)
            return None
        return self._from_others.arrived(message, is_durable=bool(entry.flags & DURABLE))

    def take(
        self, move: Move, kept: Sequence[Arrival], done: Callable[[NotTaken | None], None]
    ) -> None:
        arrived = [each for each in kept if isinstance(each, Arrived)]
        messages = [(each.message, each.keys) for each in arrived]
        hand_overs = self._from_others.hand_overs(arrived)
        letters = {
            f"{self._shard} {each.id}": write([each]) for each in kept if isinstance(each, Entry)
        }

        def answered(taken: Taken) -> None:
            if taken.taking is not Taking.DONE:
                self._from_others.expect_no_more(arrived)
            done(_NOT_TAKEN.get(taken.taking, NotTaken(taken.found)))
            self._port.took(self._shard)

        self._from_others.expect(arrived)
        step = Step(self._shard, *move)
        self._store.take(step, messages, letters, done=answered, hand_overs=hand_overs)

    def may_show(self, behind: Behind) -> bool:
        return self._port.may_show(self._shard, behind)

    def show(self, entries: Sequence[Arrival]) -> None:
        for each in entries:
            try:
                self._show(each)
            except Exception:
                # The rest must arrive.
                self.failures += 1
                log.exception("an entry of shard %d could not be shown", self._shard)

    def showed(self) -> None:
        self._port.showed(self._shard)

    def _show(self, arrival: Arrival) -> None:
        if isinstance(arrival, Arrived):
            self._recent.add(arrival.message.id)
            self._from_others.show(arrival)
        elif arrival.kind == LETTER:
            self._recent.add(arrival.id)
            self._port.take_letter(self._shard, arrival)
        else:
            self._port.take_answer(arrival)

    def learn(self, place: Place, facts: Facts, seen: Seen) -> None:
        self._port.learn(self._shard, place, facts, seen)

    def note_gap(self, gap: Gap) -> None:
        self._port.miss(self._shard, gap)

    def complain(self, why: str) -> None:
        log.error("the log of shard %d cannot be read on: %s", self._shard, why)


_NOT_TAKEN = {
    Taking.DONE: None,
    Taking.REFUSED: NotTaken(None),
    Taking.FAILED: NotTaken(None),
}


def _is_kept(arrival: Arrival) -> bool:
    return bool(arrival.keys) if isinstance(arrival, Arrived) else arrival.kind == LETTER
