"""Catching up: new subscriptions get what their channels keep, ahead of newer messages."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import orjson

from holdfast.bayeux.codec import Json
from holdfast.bayeux.cursors import Cursors
from holdfast.bayeux.server_state import ServerState
from holdfast.bayeux.sessions import Session
from holdfast.bayeux.starts import Start, Starts
from holdfast.bayeux.subscribe_qos import SubscribeQos
from holdfast.bayeux.turn_over import TurnOver
from holdfast.delivery.channels import Channel
from holdfast.delivery.filters import Candidate, Selection
from holdfast.delivery.kept_messages import KeptMessages, cursor_of
from holdfast.delivery.messages import Message

# The most channels whose histories one subscription reads.
_MOST_CHANNELS = 5_000


class CatchUp:
    """What one subscribe brings from histories, and what it finds missing there."""

    def __init__(
        self, state: ServerState, session: Session, starts: Starts, qos: SubscribeQos
    ) -> None:
        self._state = state
        self._session = session
        self._starts = starts
        self._selection = Selection(qos.filter, "" if qos.local else session.name)
        self._now_ms = state.node.now_ms()
        # Whether the filter was asked about anything in this turn.
        self._has_asked = False
        self._settled = state.hub.settled_cursor()
        self._found: dict[int, Message] = {}
        # Whether anything depends on a cursor, and the ranges that are missing, by pattern.
        self._has_cursor = False
        self._lost: dict[str, tuple[int, int]] = {}
        self.messages: list[Message] = []

    def gather(self, patterns: Collection[Channel], answers: dict[int, bool]) -> None:
        """Find the messages, in order. Raises `TurnOver` if asking the filter takes too long.

        Args:
            answers: What the filter said of messages, by id; it remembers that for the next turn.
        """
        newest_first = self._starts.ordinary.newest_first
        for pattern in patterns:
            self._read(pattern)
        ordered = [self._found[id] for id in sorted(self._found)]
        selected = [each for each in ordered if self._selects(each, answers)]
        self.messages = self._fitting(selected)
        if newest_first:
            self.messages.reverse()

    def _read(self, pattern: Channel) -> None:
        histories = self._state.hub.histories
        kept = histories.covered_by(pattern)
        self._look_for_gap(pattern, kept)
        if len(kept) > _MOST_CHANNELS:
            kept = kept[:_MOST_CHANNELS]
        for each in kept:
            start = self._starts.of(each.channel, pattern.name)
            self._found |= {found.id: found for found in self._since(each, start)}

    def _since(self, kept: KeptMessages, start: Start) -> list[Message]:
        if start.cursor is None:
            return kept.newest(start.count, self._now_ms)
        return kept.since(start.cursor, self._now_ms)

    def _look_for_gap(self, pattern: Channel, kept: list[KeptMessages]) -> None:
        """Note up to where messages behind the cursors may be missing."""
        if not self._starts.named and self._starts.ordinary.cursor is None:
            return
        floors: list[tuple[int, int]] = []
        for each in kept:
            start = self._starts.of(each.channel, pattern.name)
            if start.cursor is not None:
                floors.append((start.cursor, each.floor))
        start = self._starts.of(pattern.name, pattern.name)
        if start.cursor is not None and (pattern.is_wild or not kept):
            keeps = self._state.rule(pattern).history is not None
            is_whole = keeps and len(kept) <= _MOST_CHANNELS
            floor = self._state.hub.histories.floor if is_whole else self._settled
            floors.append((start.cursor, floor))
        self._has_cursor |= bool(floors)
        for cursor, floor in floors:
            self._lose(pattern.name, cursor, floor)

    def _lose(self, pattern: str, cursor: int, floor: int) -> None:
        if cursor < floor:
            before = self._lost.get(pattern, (cursor, floor))
            self._lost[pattern] = (min(before[0], cursor), max(before[1], floor))

    def _selects(self, message: Message, answers: dict[int, bool]) -> bool:
        """Return whether the subscription selects the message."""
        selection = self._selection
        if selection.filter is None:
            return not selection.not_from or selection.not_from != message.sender
        if message.id not in answers:
            if self._has_asked and self._state.is_turn_over():
                raise TurnOver
            self._has_asked = True
            candidate = Candidate(
                channel=message.channel,
                data=orjson.loads(message.wire).get("data"),
                sender=message.sender,
                priority=message.priority,
                properties=message.properties,
            )
            answers[message.id] = candidate.suits(selection)
        return answers[message.id]

    def _fitting(self, messages: list[Message]) -> list[Message]:
        """Return the newest of these for which the queue has room; new ones need some, too."""
        queue = self._session.queue
        queued = set(queue.ids()) if queue.count else set()
        entries, size = queue.room_left()
        entries, size = entries // 2, size // 2
        fitting: list[Message] = []
        for message in reversed(messages):
            if message.id in queued:
                continue
            size -= len(message.wire)
            if len(fitting) >= entries or size < 0:
                start = self._starts.of(message.channel, message.channel)
                self._lose(message.channel, start.cursor or 0, cursor_of(message.id))
                break
            fitting.append(message)
        fitting.reverse()
        return fitting

    def deliver(self, patterns: Mapping[str, Channel]) -> None:
        """Queue what was found, and what the store is asked to keep meanwhile."""
        session, hub = self._session, self._state.hub
        copies = [message.initial() for message in self.messages]
        if self._starts.has_cursors:
            give_cursors(self._state, session, self._starts, copies)
        hub.catch_up(session, copies)
        answers: dict[int, bool] = {}
        for publication in hub.unsettled(patterns.values()):
            self._has_asked = False
            if self._selects(publication.message, answers):
                hub.include(session, publication)

    def answer(self) -> Json:
        """Return what the reply says in `ext.replay`."""
        said: dict[str, Any] = {"epoch": self._state.epoch, "messages": len(self.messages)}
        if self._has_cursor:
            said["recovered"] = not self._lost
        if self._lost:
            said["lost"] = {
                name: {"from": first, "to": last} for name, (first, last) in self._lost.items()
            }
        return said


def give_cursors(
    state: ServerState, session: Session, starts: Starts, coming: Sequence[Message] = ()
) -> None:
    """Let the session have cursors, none of which passes what it has yet to get."""
    ids = [message.id for message in coming]
    if session.cursors is None:
        ids += session.queue.ids()
    promised = min([state.hub.settled_cursor(), *[cursor_of(id) - 1 for id in ids]])
    if session.cursors is not None:
        promised = min(promised, session.cursors.promised)
    form = state.cursor_form(has_replay_ids=starts.has_replay_ids)
    session.cursors = Cursors(form, promised)
