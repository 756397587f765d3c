"""Catching up: new subscriptions get the messages in their channels' histories first."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import Any

from holdfast.bayeux.session import Session, TurnOver
from holdfast.bayeux.state.cursors import Cursors, cursors_of, set_cursors
from holdfast.bayeux.state.server_state import ServerState
from holdfast.bayeux.wire.codec import Json
from holdfast.bayeux.wire.errors import ErrorReply, Refused
from holdfast.bayeux.wire.starts import MOST_CHANNELS, Start, Starts
from holdfast.bayeux.wire.subscribe_qos import SubscribeQos
from holdfast.delivery.basics.channels import Channel, lookups
from holdfast.delivery.messages.message import Message
from holdfast.delivery.routing.histories import Arrival
from holdfast.delivery.routing.kept_messages import KeptMessages, cursor_of
from holdfast.delivery.routing.publishes import Publish
from holdfast.delivery.routing.selections import Candidate

# How many messages of histories one subscribe reads. Beyond that, it begins no further history.
_MOST_MESSAGES = 10_000
# How many messages of one history are read in one step.
_STEP = 1_000


class Found:
    """A message from a history, with the subscription that matches it and its start."""

    # A compiled class, because named tuples take several times as long to create and read.
    def __init__(self, message: Message, pattern: str, start: Start) -> None:
        self.message = message
        self.pattern = pattern
        self.start = start


class HistoryReading:
    """What the histories of this server have for the subscriptions of one subscribe.

    Args:
        patterns: All of the subscriptions.
        is_here: Returns whether the history of a channel can be here; None if all are.
        reads: The patterns whose histories can be here; None if all are.
    """

    def __init__(
        self,
        state: ServerState,
        starts: Starts,
        patterns: Mapping[str, Channel],
        *,
        is_here: Callable[[str], bool] | None = None,
        reads: Collection[str] | None = None,
    ) -> None:
        self.starts = starts
        self.patterns = patterns
        self._state = state
        self._histories = state.hub.histories
        self._is_here = is_here
        self._reads = reads
        self._now_ms = state.node.now_ms()
        # The number of channels looked at.
        self._looked = 0
        # The channels with separate starts, each with the pattern that covers it.
        self.named: list[tuple[Channel, str, Start]] = []
        # The cursor before all messages that enter a history in the meantime.
        self._begun = cursor_of(self._histories.newest)
        self.found: dict[int, Found] = {}
        # Messages that the filter has not been run on, if there is one.
        self.unasked: list[Message] | None = None
        # Whether any start is a cursor. By pattern, the cursors after which messages may be
        # missing, and the ranges that are missing.
        self.has_cursor = False
        self.gaps: dict[str, int] = {}
        self.lost: dict[str, tuple[int, int]] = {}

    def find_named(self) -> Iterator[None]:
        """Find the channels with separate starts that a pattern covers."""
        for name, start in self.starts.named.items():
            if name in self.patterns or start.is_at_end:
                continue
            pattern = next((each for each in lookups(name) if each in self.patterns), None)
            channel = None if pattern is None else self._state.channels.get(name)
            if pattern is not None and channel is not None and not channel.is_wild:
                self.named.append((channel, pattern, start))
            yield

    def read(self) -> Iterator[None]:
        """Read the histories in short steps. Between two steps, histories may be cut or erased."""
        for pattern in self.patterns.values():
            start = self.starts.of_pattern(pattern.name)
            if not start.is_at_end and (self._reads is None or pattern.name in self._reads):
                yield from self._read_pattern(pattern, start)
        for channel, name, start in self.named:
            if self._is_here is None or self._is_here(channel.name):
                yield from self._read_named(channel, name, start)
            yield

    def _read_pattern(self, pattern: Channel, start: Start) -> Iterator[None]:
        histories, is_whole = self._covered_by(pattern)
        if pattern.is_wild or not histories:
            # Now: a history that begins takes the floor of its channel with it.
            self._look_for_gap(pattern, pattern.name, start)
        for kept in histories:
            own = self.starts.named.get(kept.channel, start)
            is_whole &= yield from self._read_history(kept, pattern.name, own)
        if not is_whole:
            self.miss(pattern.name, start.cursor or 0)
        if pattern.is_wild:
            # Some of these may have been erased meanwhile.
            self._look_for_gap(pattern, pattern.name, start)
        yield

    def _read_named(self, channel: Channel, pattern: str, start: Start) -> Iterator[None]:
        """Read the history of a channel that has another start than the pattern that covers it."""
        histories: list[KeptMessages] = []
        is_whole = True
        if self.starts.of_pattern(pattern).is_at_end:
            # Otherwise it was read with the others.
            histories, is_whole = self._covered_by(channel)
            for kept in histories:
                is_whole &= yield from self._read_history(kept, pattern, start)
        if not is_whole:
            self.miss(pattern, start.cursor or 0)
        if self._histories.get(channel.name) is None:
            self._look_for_gap(channel, pattern, start)

    def _covered_by(self, pattern: Channel) -> tuple[list[KeptMessages], bool]:
        """Return the histories of a pattern, and whether these are all."""
        most = MOST_CHANNELS - self._looked
        histories, looked = self._histories.covered_by(pattern, most)
        self._looked += min(looked, most)
        return histories, looked <= most

    def _read_history(
        self, kept: KeptMessages, pattern: str, start: Start
    ) -> Generator[None, None, bool]:
        """Read one history. Returns whether there was room for it."""
        if len(self.found) >= _MOST_MESSAGES:
            return False
        if start.cursor is None:
            messages = kept.newest(start.entries, self._now_ms)
        else:
            messages = kept.since(start.cursor, self._now_ms)
            self.has_cursor = True
            self._lose_kept(pattern, start.cursor, kept.floor)
            passed = kept.passed_over(start.cursor)
            if passed is not None:
                self.lose(pattern, passed.since - 1, passed.until)
        for place, message in enumerate(messages, 1):
            self.add(message, pattern, start)
            if place % _STEP == 0:
                yield
        yield
        return True

    def add(self, message: Message, pattern: str, start: Start) -> None:
        """Take a message, unless it was found already."""
        if message.id not in self.found:
            self.found[message.id] = Found(message, pattern, start)
            if self.unasked is not None:
                self.unasked.append(message)

    def add_newer(self, arrival: Arrival) -> Arrival:
        """Take the messages that arrived in the meantime. Returns the arrival of the next one."""
        while arrival.message is not None and arrival.next is not None:
            self._add_newer(arrival.message)
            arrival = arrival.next
        return arrival

    def _add_newer(self, message: Message) -> None:
        for name in lookups(message.channel):
            if name in self.patterns:
                start = self.starts.of_pattern(name)
                start = self.starts.named.get(message.channel, start)
                if not start.is_at_end:
                    self.add(message, name, start)

    def _look_for_gap(self, channel: Channel, pattern: str, start: Start) -> None:
        """Record possible gaps of channels that keep nothing now."""
        if start.cursor is not None:
            self.has_cursor = True
            if self._state.rules.keeps_all(channel) and not self._histories.misses(channel):
                self._lose_kept(pattern, start.cursor, self._histories.floors.below(channel))
            else:
                self.miss(pattern, start.cursor)

    def miss(self, pattern: str, cursor: int) -> None:
        """Record that messages after the cursor may be missing, up to the end of the catch-up."""
        self.gaps[pattern] = min(self.gaps.get(pattern, cursor), cursor)

    def doubt(self, message: Message) -> None:
        """Record that a message may be missing, because the store may have it."""
        cursor = cursor_of(message.id)
        for name in lookups(message.channel):
            start = self.starts.named.get(message.channel, self.starts.of_pattern(name))
            if name in self.patterns and not start.is_at_end:
                self.lose(name, cursor - 1, cursor)

    def _lose_kept(self, pattern: str, cursor: int, floor: int) -> None:
        """Record messages that are no longer kept. Those that arrived since were found in time."""
        self.lose(pattern, cursor, min(floor, self._begun))

    def lose(self, pattern: str, cursor: int, floor: int) -> None:
        """Record that messages after the cursor and up to the floor are missing."""
        if cursor < floor:
            before = self.lost.get(pattern, (cursor, floor))
            self.lost[pattern] = (min(before[0], cursor), max(before[1], floor))


class CatchUp:
    """The messages that one subscribe gets from histories, and the gaps in them.

    Reading the histories and running the filter takes as many turns as necessary.

    Args:
        is_here, reads: As in `HistoryReading`.
    """

    def __init__(
        self,
        state: ServerState,
        session: Session,
        *,
        starts: Starts,
        qos: SubscribeQos,
        patterns: Mapping[str, Channel],
        message: Json,
        is_here: Callable[[str], bool] | None = None,
        reads: Collection[str] | None = None,
    ) -> None:
        self.qos = qos
        self.patterns = patterns
        self.reading = HistoryReading(state, starts, patterns, is_here=is_here, reads=reads)
        self.session = session
        self._state = state
        self._starts = starts
        self._selection = qos.selection(session.name)
        self._message = message
        # The parts that are left to do.
        self._preparing = self._prepare()
        self._steps = self.reading.read()
        # The arrival of the first message that enters a history in the meantime, and of the first
        # one that other shards send.
        self._arrivals = [state.hub.histories.arrival]
        # The filter's results by id; and whether it ran in this turn.
        self._answers: dict[int, bool] = {}
        self._has_asked = False
        if self._selection.filter is not None:
            self.reading.unasked = []
        self.messages: list[Message] = []

    def follow(self, arrival: Arrival) -> None:
        """Also take the messages from this arrival on."""
        self._arrivals.append(arrival)

    def prepare(self, *, is_wanted: bool) -> None:
        """Check that the session may read the histories. Raises as `gather` does."""
        self._go_on(self._preparing, is_wanted=is_wanted)

    def gather(self, *, is_wanted: bool) -> None:
        """Find the messages, in order.

        Raises `TurnOver` if there is no time; then call it again. Raises `Refused` if the reply is
        no longer awaited, or if the session has no right to the histories.
        """
        reading = self.reading
        self.prepare(is_wanted=is_wanted)
        self._go_on(self._steps, is_wanted=is_wanted)
        self._arrivals = [reading.add_newer(each) for each in self._arrivals]
        while reading.unasked:
            self._selects(reading.unasked[-1])
            reading.unasked.pop()
        for accepted in self._coming():
            self._selects(accepted.message)
        self._check_rights()
        found = [reading.found[id] for id in sorted(reading.found)]
        selected = [each for each in found if self._selects(each.message)]
        self.messages = self._fitting(selected)
        if self._starts.ordinary.newest_first:
            self.messages.reverse()
        if reading.gaps:
            # Not `complete_cursor`, which only messages in a history advance.
            end = cursor_of(self._state.node.stamp())
            for name, cursor in reading.gaps.items():
                reading.lose(name, cursor, end)

    def _coming(self) -> list[Publish[Session]]:
        """Return the publishes that enter the histories later, if the store has them."""
        order, patterns = self._state.hub.publish_order, self.patterns
        return order.unknown_to_histories(patterns) + order.coming_to_histories(patterns)

    def _go_on(self, steps: Iterator[None], *, is_wanted: bool) -> None:
        if not is_wanted:
            raise Refused(ErrorReply.REQUEST_TIMEOUT)
        self._has_asked = False
        for _ in steps:
            if self._state.is_turn_over():
                raise TurnOver

    def _prepare(self) -> Iterator[None]:
        yield from self.reading.find_named()
        # A session without the rights must not make the server read histories.
        self._check_rights()
        self._state.subscriptions.check_create(self.session, self.patterns, self._message)

    def _check_rights(self) -> None:
        """Check the session's right to all of it, which may change between two turns."""
        if self.session.identity.grants is None:
            return
        for pattern in self.patterns.values():
            if not self._starts.of_pattern(pattern.name).is_at_end:
                self._check_right(pattern)
        for channel, _, _ in self.reading.named:
            self._check_right(channel)

    def _check_right(self, channel: Channel) -> None:
        self._state.rights.check_rules(self._starts.operation, self.session, channel)

    def _selects(self, message: Message) -> bool:
        """Return whether the subscription selects the message."""
        selection, answers = self._selection, self._answers
        if selection.filter is None:
            return not selection.not_from or selection.not_from != message.sender
        if message.id not in answers:
            if self._has_asked and self._state.is_turn_over():
                raise TurnOver
            self._has_asked = True
            answers[message.id] = Candidate.of(message).suits(selection)
        return answers[message.id]

    def _fitting(self, found: Sequence[Found]) -> list[Message]:
        """Return the newest of these that fill half of the queue's room. The rest is for others."""
        queue = self.session.queue
        queued = set(queue.ids()) if queue.count else set()
        entries, size = queue.room_left()
        entries, size = entries // 2, size // 2
        fitting: list[Message] = []
        has_room = True
        for each in reversed(found):
            message = each.message
            if message.id in queued:
                continue
            size -= len(message.wire)
            has_room = has_room and len(fitting) < entries and size >= 0
            if has_room:
                fitting.append(message)
            else:
                cursor = cursor_of(message.id)
                begin = cursor - 1 if each.start.cursor is None else each.start.cursor
                self.reading.lose(each.pattern, begin, cursor)
        fitting.reverse()
        return fitting

    def deliver(self) -> None:
        """Queue the messages found, and add the session to publishes that wait for the store."""
        session, hub = self.session, self._state.hub
        copies = [message.initial() for message in self.messages]
        if self._starts.has_cursors:
            give_cursors(self._state, session, self._starts, copies)
        hub.catch_up(session, copies)
        for accepted in self._coming():
            if self.selects_now(accepted.message):
                hub.include(session, accepted)

    def selects_now(self, message: Message) -> bool:
        """Return whether the subscription selects the message, even if the turn is over."""
        self._has_asked = False
        return self._selects(message)

    def answer(self) -> Json | None:
        """Return the content of the reply's `ext.replay`, if any."""
        reading = self.reading
        if not (self._starts.has_cursors or reading.lost):
            return None
        said: dict[str, Any] = {"epoch": self._state.epoch, "messages": len(self.messages)}
        if reading.has_cursor or reading.lost:
            said["recovered"] = not reading.lost
        if reading.lost:
            said["lost"] = {
                name: {"from": first, "to": last} for name, (first, last) in reading.lost.items()
            }
        return said


def give_cursors(
    state: ServerState, session: Session, starts: Starts, coming: Sequence[Message] = ()
) -> None:
    """Give the session cursors that pass no message it has not received yet."""
    ids = [message.id for message in coming]
    known = cursors_of(session)
    if known is None:
        ids += session.queue.ids()
    promised = min([state.hub.complete_cursor(), *[cursor_of(id) - 1 for id in ids]])
    if known is not None:
        promised = min(promised, known.promised)
    form = state.cursor_form(has_replay_ids=starts.has_replay_ids)
    set_cursors(session, Cursors(form, promised))
