"""Restores what the server before this one gave, together with what it stored."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import Any

from holdfast.bayeux.leaving.queues import fill, waiting
from holdfast.bayeux.leaving.session_state import (
    give_cursors_back,
    go_on,
    lacks_extension,
    note_unstored,
    prepare,
)
from holdfast.bayeux.leaving.unusable import Faults
from holdfast.bayeux.server import Bayeux
from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.restoring import (
    begin_again,
    finish,
    restore,
    restore_history,
    restore_without_session,
)
from holdfast.bayeux.state.kept_requests import reopen_all
from holdfast.delivery.basics.session_states import SessionInput
from holdfast.delivery.basics.steps import Reason
from holdfast.delivery.messages.given import Given, GivenKind
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.session_record import RecordUnreadable, SessionRecord
from holdfast.delivery.settling.hand_overs import await_last_attempt

# What a record that cannot be used raises.
_UNUSABLE = (RecordUnreadable, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
_NOTHING: Mapping[str, Any] = {}


class Taking:
    """Restores a server from the store, and from what was given. Without that, from the store.

    Call `restore` and `without_session` for what the store has, then `rest`; continue the stored
    requests, then call `finish`.
    """

    def __init__(self, bayeux: Bayeux, given: Iterable[Given], now: float, faults: Faults) -> None:
        self._bayeux = bayeux
        self._life, self._state = bayeux.life, bayeux.state
        self._faults = faults
        self._of: dict[GivenKind, dict[str, Given]] = {kind: {} for kind in GivenKind}
        for each in given:
            self._of[each.kind][each.key] = each
        sessions = self._of[GivenKind.SESSION]
        self._places = {key: place for place, key in enumerate(sessions)}
        self._has_given = bool(self._of[GivenKind.SERVER])
        # The session that was restored last.
        self._restored: Session | None = None
        for server in self._of[GivenKind.SERVER].values():
            self._use(server, self._begin, now)

    def _begin(self, server: Given, now: float) -> None:
        self._state.histories.go_on(server.fields["histories"])
        self._bayeux.identities.know_newcomers(server.fields["newcomers"], now)
        for each in self._of[GivenKind.REPLACED].values():
            self._state.sessions.know_replaced(each.fields["browsers"])

    def _use(self, given: Given, use: Any, *args: Any) -> bool:  # noqa: ANN401 - as `partial`
        """Call with something given. Returns whether it could be used."""
        try:
            use(given, *args)
        except _UNUSABLE as error:
            self._faults.note(f"{given.kind.value} {given.key}", error)
            return False
        return True

    # What the store has

    def restore(
        self, record: SessionRecord, entries: list[tuple[Mark, Message]], now: float
    ) -> Session:
        """Restore a stored session, as it stood if that was given."""
        given = self._of[GivenKind.SESSION].pop(record.key, None)
        if given is None:
            if self._has_given:
                self._faults.note(f"session {record.key}", "only the store has it")
            return restore(self._life, record, entries, now)
        if not self._fits(given, record):
            return restore(self._life, record, entries, now)
        return self._restore(given, record, entries, now)

    def _fits(self, given: Given, record: SessionRecord) -> bool:
        """Return whether a stored session and what was given are of the same moment."""
        is_stored = "record" not in given.fields
        client = given.fields.get("left", _NOTHING).get("client")
        fits = is_stored and record.client_id in ("", client)
        if not fits:
            self._faults.note(f"session {record.key}", "the store has another state of it")
        return fits

    def without_session(self, key: str, messages: Sequence[Message]) -> None:
        """Restore a stored shared queue or a stored history; settle the rest of ended sessions."""
        history = self._of[GivenKind.HISTORY].pop(key, None)
        if history is not None:
            self._use(history, self._restore_history, messages)
            return
        queue = self._of[GivenKind.QUEUE].get(key)
        if queue is not None and not self._use(queue, self._refuse_again, messages):
            del self._of[GivenKind.QUEUE][key]
        restore_without_session(self._life, key, messages)

    def _refuse_again(self, queue: Given, messages: Sequence[Message]) -> None:
        by_id = {message.id: message for message in messages}
        waiting([each for each in queue.entries if each.message is None], by_id)

    def _restore_history(self, history: Given, stored: Sequence[Message]) -> None:
        passing = [each.message for each in history.entries if each.message is not None]
        restore_history(self._life, history.key, [*stored, *passing], history.fields)

    # What was only given

    def rest(self, now: float) -> Iterator[Session]:
        """Restore what the store does not have at all. Yields the sessions."""
        for given in self._of[GivenKind.SESSION].values():
            self._use(given, self._restore_passing, now)
            if self._restored is not None:
                yield self._restored
        for queue in self._of[GivenKind.QUEUE].values():
            self._use(queue, self._restore_queue)
        for history in self._of[GivenKind.HISTORY].values():
            self._use(history, self._restore_history, ())
        for request in self._of[GivenKind.REQUESTS].values():
            self._use(request, self._reopen, now)

    def _restore_passing(self, given: Given, now: float) -> None:
        self._restored = None
        if "record" not in given.fields:
            self._faults.note(f"session {given.key}", "the store has lost it")
            return
        record = SessionRecord.of_json(given.fields["record"])
        session = self._restore(given, record, [], now)
        self._restored = None if session.is_gone else session

    def _restore_queue(self, queue: Given) -> None:
        messages = waiting([each for each in queue.entries if each.message is not None], {})
        if messages:
            self._state.waiting_places.restore(queue.key.rpartition("/")[0], messages)

    def _reopen(self, request: Given, now: float) -> None:
        fields = {name: value.encode() for name, value in request.fields.items()}
        reopen_all(self._state, fields, now, are_kept=False)

    def _restore(
        self,
        given: Given,
        record: SessionRecord,
        entries: list[tuple[Mark, Message]],
        now: float,
    ) -> Session:
        life, left = self._life, given.fields["left"]
        is_durable = "record" not in given.fields

        def refill(session: Session) -> list[Message]:
            prepare(life, session, left, now)
            missing, withheld = fill(life, session, given.entries, entries, now=now)
            if missing:
                self._faults.note(f"session {given.key}", f"the store lacks messages {missing}")
            last = session.queue.in_flight().get(left.get("last", 0))
            if last is not None:
                await_last_attempt(session.queue, last)
            return withheld

        session = begin_again(life, record, now, fill=refill, is_durable=is_durable)
        if not is_durable and life.is_to_be_durable(session):
            # By other settings. The store gets it when its client makes a handshake again.
            note_unstored(session)
        go_on(life, session, left, now)
        give_cursors_back(life, session, left, has_replay_ids=record.replay_ids)
        finish(life, session, now)
        lacking = "" if is_durable else lacks_extension(session, left)
        if lacking:
            self._faults.note(f"session {given.key}", f"its extension {lacking} does not resume it")
            life.ends.end(session, SessionInput.FAIL)
            life.undelivered.discard_rest(session, Reason.SESSION_ENDED)
        elif session.queue.count:
            self._state.hub.make_ready(session)
        return session

    # Afterwards

    def finish(self) -> None:
        """Sort what is sorted by time, once everything is there."""
        if not self._has_given:
            self._life.unconnected.sort()
            return
        places = self._places
        self._life.unconnected.sort_as(lambda session: places.get(session.key, inf))
        self._state.histories.sort()
        by_key = {session.key: session for session in self._state.sessions}
        joined: dict[str, list[tuple[Session, int]]] = {}
        for each in self._of[GivenKind.PRESENCE].values():
            members = joined.setdefault(each.fields["channel"], [])
            members += [(by_key[key], at) for key, at in each.fields["joined"] if key in by_key]
        for channel, members in joined.items():
            self._state.presence.go_on(channel, members)
        for each in self._of[GivenKind.FAR_MEMBERS].values():
            self._use(each, self._know_members)

    def _know_members(self, given: Given) -> None:
        self._state.presence_events.others.go_on(given.fields["shard"], given.fields["rows"])
