"""A real server, and its comparison with the model."""

import logging
from functools import partial
from typing import Any

from holdfast.bayeux.session import Session
from holdfast.bayeux.sessions.restoring import restore, restore_without_session
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.messages.entries import Entry
from holdfast.delivery.messages.marks import Mark
from holdfast.delivery.messages.trails import Trail
from holdfast.settings import ChannelSettings
from tests.unit.bayeux.delivery_answers import TIMEOUT_S
from tests.unit.bayeux.delivery_books import (
    ATTEMPTS,
    BACKOFF_S,
    DEADLY,
    MOST_ATTEMPTS,
    PATIENT,
)
from tests.unit.bayeux.delivery_model import Model
from tests.unit.bayeux.delivery_receiver import MAX_INTERVAL_S, MOST, Copy, Receiver
from tests.unit.bayeux.delivery_store import Backing, number_in
from tests.unit.bayeux.harness import Server, server_of


class Loud(logging.Logger):
    """What is only logged in production is an error here."""

    def exception(self, *args: Any, **kwargs: Any) -> None:
        raise


def new_server(backing: Backing, after: Server | None = None) -> Server:
    """A server; one that comes after another finds what the store has."""
    if after is not None:
        backing.reopen()
    server = server_of(
        keeper=backing.keeper,
        journal=backing.journal,
        after=after,
        timeout=round(TIMEOUT_S * 1000),
        max_interval=round(MAX_INTERVAL_S * 1000),
        max_queue=MOST,
        # It is not in the model.
        channels={
            PATIENT: ChannelSettings(attempts=ATTEMPTS, backoff=round(BACKOFF_S * 1000)),
            DEADLY: ChannelSettings(max_attempts=MOST_ATTEMPTS),
            # Topics, which count their messages.
            "/**": ChannelSettings(topic=True, destroy_delay=1000),
        },
    )
    backing.serve(server.bayeux)
    server.bayeux.state.log = Loud("loud", logging.CRITICAL)
    if after is not None:
        life = server.bayeux.life
        for record, entries in backing.load(partial(restore_without_session, life)):
            restore(life, record, entries, server.now)
        life.topics.restore()
    return server


class Comparison:
    """Compares the server with the model."""

    def __init__(self, server: Server, backing: Backing, model: Model) -> None:
        self._server = server
        self._backing = backing
        self._model = model
        self._sessions = {session.name: session for session in server.bayeux.state.sessions}

    def make(self) -> None:
        for receiver in self._model.receivers:
            session = self._sessions.get(receiver.key)
            is_there = session is not None and session.client_id == receiver.client
            assert is_there != receiver.is_over, receiver.key
            if session is not None and is_there:
                self._same_session(receiver, session)
        self._same_books()
        if self._model.is_store_there:
            self._same_store()

    def _same_session(self, receiver: Receiver, session: Session) -> None:
        queue = session.queue
        tried = [*queue.in_flight().values(), *queue.returned.values()]
        waiting = [number_in(message.wire) for message in queue.new]
        assert waiting == [copy.number for copy in receiver.new], receiver.key
        if receiver.kind.label == "plain":
            assert [number_in(entry.message.wire) for entry in tried] == [
                copy.number for copy in receiver.in_flight + receiver.returned
            ]
        else:
            in_flight, returned = list(queue.in_flight().values()), list(queue.returned.values())
            assert [*map(_entry, in_flight)] == [*map(_copy, receiver.in_flight)], receiver.key
            assert [*map(_entry, returned)] == [*map(_copy, receiver.returned)], receiver.key
            assert (queue.batch, queue.window) == (receiver.batch, receiver.window), receiver.key
            for entry, copy in zip(tried, receiver.in_flight + receiver.returned, strict=True):
                _same_history(entry.trail, copy.trail)
        here = [*(entry.message for entry in tried), *queue.new]
        assert queue.count == len(here)
        assert queue.size == sum(len(message.wire) for message in here)
        waits = [*(entry.message for entry in queue.returned.values()), *queue.new]
        ends = [message.expires_ms for message in waits if message.expires_ms]
        assert [message.expires_ms for message in queue.expiring or ()] == sorted(ends)
        assert (session.held_connect is not None) == (receiver.question is not None), receiver.key
        assert session.has_left == receiver.is_away, receiver.key
        if session.dispatcher is not None:
            assert session.dispatcher.is_dead == receiver.is_shut, receiver.key
            if not receiver.is_shut:
                assert session.dispatcher.is_active != receiver.contact.is_held, receiver.key
        assert session.flows(self._server.now) == receiver.flows(self._server.now), receiver.key

    def _same_books(self) -> None:
        counters, books = self._server.bayeux.state.hub.counters, self._model.books
        assert self._server.balances()
        assert {
            "accepted": counters.accepted,
            "restored": counters.restored,
            "acked": counters.acked,
            "dead": counters.dead,
            "expired": counters.expired,
            "discarded": counters.discarded.total(),
            "out of range": counters.acks_out_of_range,
            "unknown": counters.verdicts_unknown,
        } == {name: books[name] for name in NAMES}
        assert books["accepted"] + books["restored"] == sum(map(len, self._model.receivers)) + sum(
            books[name] for name in ("acked", "dead", "expired", "discarded")
        )

    def _same_store(self) -> None:
        unseen = self._model.unseen()
        for receiver in self._model.receivers:
            if receiver.is_durable and not receiver.is_over:
                kept = {sent.number for sent in unseen if sent.is_kept and sent.is_for(receiver)}
                self._same_queue(receiver, kept)
        told = sorted(self._backing.dead(), key=_letter)
        expected = sorted(self._model.letters)
        assert [*map(_letter, told)] == [letter[:-1] for letter in expected]
        for found, letter in zip(told, expected, strict=True):
            _same_history(found.attempts, letter[-1])
        names = {(letter.receiver, letter.message) for letter in told}
        assert len(names) == len(told), "one letter for each"

    def _same_queue(self, receiver: Receiver, unseen: set[int]) -> None:
        """What the store has of a queue: its entries, how far they came, and their order."""
        marks = self._backing.marks(receiver.key.removeprefix("client/"))
        tried = [copy for copy in receiver.in_flight + receiver.returned if copy.sent.is_kept]
        tried.sort(key=lambda copy: copy.place)
        waiting = {copy.number for copy in receiver.new if copy.sent.is_kept}
        assert [
            (
                number,
                mark.attempts,
                mark.redelivered,
                mark.batch,
                _last(receiver, mark),
                mark.position,
            )
            for number, mark in marks[: len(tried)]
        ] == [
            (c.number, c.attempts, c.redelivered, _batch(c), _stored_seq(receiver, c), c.place)
            for c in tried
        ], receiver.key
        for copy, (_, mark) in zip(tried, marks, strict=False):
            _same_history(mark.trail, copy.trail)
        untried = marks[len(tried) :]
        assert all(mark == Mark(mark.id) for _, mark in untried), receiver.key
        assert {number for number, _ in untried} == waiting | unseen, receiver.key


NAMES = ("accepted", "restored", "acked", "dead", "expired", "discarded", "out of range", "unknown")


def _same_history(found: Trail, history: list[tuple[int, str]]) -> None:
    """The same first and last attempts, and none invented; others may be left out."""
    told = [(attempt.n, attempt.outcome) for attempt in found]
    assert bool(told) == bool(history)
    if history:
        assert (told[0], told[-1]) == (history[0], history[-1])
        assert len(told) >= min(len(history), 2)
    rest = iter(history)
    assert all(each in rest for each in told), (told, history)


def _letter(letter: DeadLetter) -> tuple[str, int, str, int, int]:
    number = number_in(letter.wire)
    return (letter.receiver, number, letter.code, letter.attempt_count, letter.redelivered)


def _entry(entry: Entry) -> tuple[object, ...]:
    return (
        number_in(entry.message.wire),
        entry.seq,
        entry.batch,
        entry.until if entry.batch else 0,
        entry.attempts,
        entry.redelivered,
        entry.is_pending,
    )


def _last(receiver: Receiver, mark: Mark) -> int:
    """The number of its last hand-over as the store has it."""
    # A kill returns what was being written, which the store does not know.
    return abs(mark.seq) if receiver.kind.settles == "written" else mark.seq


def _stored_seq(receiver: Receiver, copy: Copy) -> int:
    """The number that the store should have: negative if the entry was returned."""
    return (
        copy.seq if copy in receiver.in_flight or receiver.kind.settles == "written" else -copy.seq
    )


def _batch(copy: Copy) -> int:
    """After a restart any later batch may be acked, whether it carried this or not."""
    return 0 if copy.until else copy.batch


def _copy(copy: Copy) -> tuple[object, ...]:
    return (
        copy.number,
        copy.seq,
        copy.batch,
        copy.until if copy.batch else 0,
        copy.attempts,
        copy.redelivered,
        copy.is_pending,
    )
