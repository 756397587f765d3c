"""Cursors in events and connect replies, from which returning clients catch up."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from holdfast.bayeux.session import Session
from holdfast.bayeux.wire.codec import Json
from holdfast.delivery.basics.feature_records import record_of, with_record, without_record
from holdfast.delivery.basics.json_text import to_json
from holdfast.delivery.messages.batch import Batch
from holdfast.delivery.messages.message import Event, Message
from holdfast.delivery.routing.kept_messages import cursor_of

_CURSOR: Final = b'"replay":{"cursor":%d,"epoch":%b}'
# An event without this has no `ext`.
_EXT: Final = b'"ext"'
# How many events are cached for other receivers.
_MOST: Final = 1000


class CursorForm:
    """Adds cursors to the events of all sessions that want the same form.

    Args:
        has_history: Returns whether any shard may keep messages of a channel; None if there is no
            other one.
        has_replay_ids: Whether they also stand in the data, where Salesforce's clients look.
    """

    def __init__(
        self, epoch: str, has_history: Callable[[str], bool] | None = None, *, has_replay_ids: bool
    ) -> None:
        self.epoch = epoch
        self._json = orjson.dumps(epoch)
        self.has_replay_ids = has_replay_ids
        self._has_history = has_history
        self._known: dict[int, Event] = {}

    def decorate(self, session: Session, batch: Batch, events: Sequence[Event]) -> Sequence[Event]:
        """Return the batch's events. Events of channels with a history get cursors."""
        return [
            event
            if message.keeping is None and not self._is_elsewhere(message)
            else self._event(message, event)
            for message, event in zip(batch.messages, events, strict=True)
        ]

    def _is_elsewhere(self, message: Message) -> bool:
        """Return whether the history of another shard may have the message."""
        has_history = self._has_history
        return has_history is not None and message.is_routed and has_history(message.channel)

    def _event(self, message: Message, event: Event) -> Event:
        if event is not message:
            return Event(self._wire(message, event.wire, is_decorated=True))
        known = self._known.get(message.id)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = Event(self._wire(message, message.wire, is_decorated=False))
            self._known[message.id] = known
        return known

    def _wire(self, message: Message, wire: bytes, *, is_decorated: bool) -> bytes:
        if self.has_replay_ids:
            return self._parsed(message, wire)
        cursor = _CURSOR % (cursor_of(message.id), self._json)
        if is_decorated:
            # The `ext` of a decorated event is its last field.
            return b"%b,%b}}" % (wire[:-2], cursor)
        if _EXT in wire:
            return self._parsed(message, wire)
        return b'%b,"ext":{%b}}' % (wire[:-1], cursor)

    def _parsed(self, message: Message, wire: bytes) -> bytes:
        """Add a cursor to an event by parsing it."""
        event: Json = orjson.loads(wire)
        cursor = cursor_of(message.id)
        event["ext"] = {**event.get("ext", {}), "replay": {"cursor": cursor, "epoch": self.epoch}}
        data: Any = event.get("data")
        if self.has_replay_ids and isinstance(data, dict):
            inner = data.get("event", {})
            if isinstance(inner, dict):
                event["data"] = {**data, "event": {**inner, "replayId": cursor}}
        return to_json(event)


class Cursors:
    """The cursors of one session, as its record."""

    __slots__ = ("form", "promised")

    def __init__(self, form: CursorForm, promised: int) -> None:
        self.form = form
        # The client will get no message up to this cursor, provided it has received what was sent.
        self.promised = promised

    def add_to(self, reply: Json, settled: int, undelivered: Sequence[int]) -> None:
        """Add the cursor to a connect reply. It stays below messages that are on their way."""
        if undelivered:
            settled = min(settled, cursor_of(min(undelivered)) - 1)
        self.promised = max(self.promised, settled)
        if not self.promised:
            # Other shards have not said yet how far they are.
            return
        replay = {"cursor": self.promised, "epoch": self.form.epoch}
        reply.setdefault("ext", {})["replay"] = replay


def cursors_of(session: Session) -> Cursors | None:
    """Return the session's cursors, or None if its client wants none."""
    return record_of(session.records, Cursors)


def set_cursors(session: Session, cursors: Cursors) -> None:
    """Give the session these cursors, which replace others."""
    drop_cursors(session)
    session.records = with_record(session.records, cursors)
    session.decorators = (*session.decorators, cursors.form)


def drop_cursors(session: Session) -> None:
    """Take the session's cursors away, if it has any."""
    if cursors_of(session) is not None:
        session.records = without_record(session.records, Cursors)
        others = [each for each in session.decorators if not isinstance(each, CursorForm)]
        session.decorators = tuple(others)
