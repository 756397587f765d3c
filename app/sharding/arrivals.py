"""Takes what the log of another shard has for this one."""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from holdfast.bayeux.publish.from_others import FromOthers
from holdfast.bayeux.publish.tap import Arrived
from holdfast.cluster.frames import (
    ANSWER,
    CALL,
    DURABLE,
    MESSAGE,
    Behind,
    Facts,
    Frame,
    FrameUnreadable,
    LogEntry,
    Seen,
    write,
)
from holdfast.cluster.messages import message_of
from holdfast.cluster.places import Place
from holdfast.cluster.reader_port import Gap, Move, NotTaken, Sorted
from holdfast.sharding.early import Early
from holdfast.sharding.homes import ShardHomes
from holdfast.sharding.kept_first import KeptFirst
from holdfast.sharding.ports import ShardStore
from holdfast.sharding.recent import RecentIds
from holdfast.store.format.log_scripts import Step
from holdfast.store.framing.shard_log import Taken, Taking

log = logging.getLogger(__name__)

# A message with its receivers here, or a call, or the answer to one.
Arrival = Arrived | LogEntry


class ArrivalsPort(Protocol):
    """What a shard does with facts and gaps, and with what comes over links."""

    def may_show(self, shard: int, behind: Behind, /) -> bool:
        """Return whether everything is shown that comes before a frame on a link."""
        ...

    def showed_at_once(self, shard: int, /) -> None:
        """Show what comes behind the last frame of a shard's log on its link."""
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
        clock: The time of the core, without that in which the process does not run.
        early: Counts messages that did not wait any longer for stored ones.
    """

    def __init__(
        self,
        shard: int,
        from_others: FromOthers,
        store: ShardStore,
        homes: ShardHomes,
        port: ArrivalsPort,
        clock: Callable[[], float],
        early: Early,
    ) -> None:
        self._shard = shard
        self._from_others = from_others
        self._store = store
        self._homes = homes
        self._port = port
        # What has been shown to those that need no store, and to everybody. Another shard may
        # append it once more, or send it on both ways.
        self._shown = RecentIds()
        self._done = RecentIds()
        self.early = early
        self.kept_first = KeptFirst(clock, early, self._show_held)
        # How many entries could not be read, or shown.
        self.failures = 0

    def hear(self, frame: Frame) -> None:
        """Let ids that this shard gives from now on be above those in the frame."""
        self._from_others.hear(frame.newest)

    def sort(self, frame: Frame, *, is_new: bool = True) -> Sorted[Arrival]:
        self.hear(frame)
        if not frame.has_only_messages:
            return self.sort_all(frame.all_entries(), is_new=is_new)
        is_wanted, channels = self._from_others.is_wanted, frame.channels
        wanted = [is_wanted(channel) for channel in channels]
        if False not in wanted:
            return self.sort_all(frame.entries(wanted), is_new=is_new)
        useless = [each for each, is_useful in zip(channels, wanted, strict=True) if not is_useful]
        found = self.sort_all(frame.entries(wanted) if True in wanted else (), is_new=is_new)
        return found._replace(useless=useless)

    def sort_all(self, entries: Sequence[LogEntry], *, is_new: bool = True) -> Sorted[Arrival]:
        """Return what becomes of these entries."""
        at_once: list[Arrival] = []
        kept: list[Arrival] = []
        later: list[Arrival] = []
        size = 0
        for entry in entries:
            # What comes twice is passed over, or a call would be done twice.
            if entry.id in self._done and entry.kind != ANSWER:
                continue
            arrival = self._arrived(entry, is_new=is_new) if entry.kind == MESSAGE else entry
            if arrival is None:
                continue
            if isinstance(arrival, Arrived):
                at_once.append(arrival)
            if not isinstance(arrival, Arrived) or arrival.has_durable:
                later.append(arrival)
            if _is_kept(arrival):
                kept.append(arrival)
                size += len(entry.data)
        return Sorted(at_once, kept, later, size)

    def _arrived(self, entry: LogEntry, *, is_new: bool) -> Arrived | None:
        try:
            message = message_of(entry)
        except FrameUnreadable as error:
            self.failures += 1
            log.error("shard %d has sent a message that is unreadable: %s", self._shard, error)
            return None
        is_durable, is_shown = bool(entry.flags & DURABLE), entry.id in self._shown
        found = self._from_others.arrived(
            message, is_durable=is_durable, is_new=is_new and not is_shown
        )
        # All that does not wait was shown at once.
        is_over = found is not None and not (is_new or is_shown or found.keys)
        return None if is_over else found

    def take(
        self, move: Move, kept: Sequence[Arrival], done: Callable[[NotTaken | None], None]
    ) -> None:
        arrived = [each for each in kept if isinstance(each, Arrived)]
        messages = [(each.message, each.keys) for each in arrived]
        hand_overs = self._from_others.hand_overs(arrived)
        calls = {
            f"{self._shard} {each.id}": write([each]) for each in kept if isinstance(each, LogEntry)
        }

        def answered(taken: Taken) -> None:
            if taken.taking is not Taking.DONE:
                self._from_others.expect_no_more(arrived)
            done(_NOT_TAKEN.get(taken.taking, NotTaken(taken.found)))

        self._from_others.expect(arrived)
        step = Step(self._shard, *move)
        self._store.take(step, messages, calls, done=answered, hand_overs=hand_overs)

    def may_show(self, behind: Behind) -> bool:
        return self._port.may_show(self._shard, behind)

    def show_at_once(self, place: Place, entries: Sequence[Arrival]) -> None:
        for each in entries:
            if not isinstance(each, Arrived):
                continue
            if each.keys:
                self.kept_first.expect(each.message.channel, place)
                if len(each.receivers) > len(each.keys):
                    self._show_first(each)
            else:
                self._show_passing(each, self.kept_first.place_before(each.message.channel))

    def show_direct(self, arrivals: Sequence[Arrival], behind: Mapping[str, Place]) -> None:
        """Deliver what came over a link. By channel, it comes behind these places in the log."""
        for each in arrivals:
            if isinstance(each, Arrived):
                self._show_passing(each, behind.get(each.message.channel) if behind else None)

    def _show_passing(self, arrived: Arrived, behind: Place | None) -> None:
        """Deliver a message that is not stored; durable sessions get it behind this place."""
        if arrived.has_durable and self.kept_first.holds(arrived, behind):
            self._show_first(arrived)
            return
        try:
            self._show_message(arrived)
        except Exception:
            self._fail()

    def _show_first(self, arrived: Arrived) -> None:
        """Deliver a message to the receivers that need no store."""
        self._shown.add(arrived.message.id)
        try:
            self._from_others.show_at_once(arrived)
        except Exception:
            self._fail()

    def showed_at_once(self) -> None:
        self._port.showed_at_once(self._shard)

    def show(self, place: Place, entries: Sequence[Arrival]) -> None:
        for each in entries:
            try:
                self._show(each)
            except Exception:
                self._fail()
        channels = [each.message.channel for each in entries if isinstance(each, Arrived)]
        self.kept_first.shown(place, channels)
        self._homes.contacts.show(self._shard, place)

    def _fail(self) -> None:
        """Report what was raised. The rest must arrive."""
        self.failures += 1
        log.exception("an entry of shard %d could not be shown", self._shard)

    def _show(self, arrival: Arrival) -> None:
        if isinstance(arrival, Arrived):
            self._show_message(arrival)
        elif arrival.kind == CALL:
            self._done.add(arrival.id)
            self._homes.take_call(self._shard, arrival)
        else:
            self._homes.take_answer(arrival)

    def _show_message(self, arrived: Arrived) -> None:
        """Deliver a message to everybody who has not got it."""
        id = arrived.message.id
        if id in self._done:
            # It came twice, the second time before it was shown.
            self._from_others.expect_no_more((arrived,))
        else:
            self._done.add(id)
            self._from_others.show(arrived)

    def _show_held(self, arrived: Arrived) -> None:
        try:
            self._show_message(arrived)
        except Exception:
            self._fail()

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
    return bool(arrival.keys) if isinstance(arrival, Arrived) else arrival.kind == CALL
