"""A real server under the eyes of the model: its store, its ends, and how the two compare."""

import logging
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Protocol

import orjson

from app.bayeux.life import State
from app.bayeux.options import ChannelRule
from app.bayeux.records import restore
from app.bayeux.sessions import Session
from app.delivery.guard import GuardLimits
from app.delivery.keeper import Keeper, Kept, Mark
from app.delivery.messages import Message
from app.delivery.queue import Entry, QueueLimits
from app.delivery.session_record import SessionRecord
from app.store.records import pack_message, unpack_message
from extensions.ack import Ack
from extensions.delivery import Delivery
from tests.unit.bayeux.delivery_answers import TIMEOUT_S
from tests.unit.bayeux.delivery_books import ATTEMPTS, BACKOFF_S, PATIENT
from tests.unit.bayeux.delivery_model import Model
from tests.unit.bayeux.delivery_place import MAX_INTERVAL_S, MOST, Copy, Place
from tests.unit.bayeux.harness import House
from tests.unit.delivery.fake_keeper import FakeKeeper

Found = tuple[SessionRecord, list[tuple[Mark, Message]]]


class Backing(Protocol):
    """A store that a test has in its hands."""

    @property
    def keeper(self) -> Keeper:
        """What the server is given."""
        ...

    def answer(self) -> bool:
        """Let it answer what it was asked so far; whether there was anything."""
        ...

    def refuse(self, *, is_full: bool) -> None:
        """Let it keep no message, or keep them again."""
        ...

    def overflow(self, *, is_full: bool) -> bool:
        """Let what waits for it have no room, or room again; False if that cannot be had."""
        ...

    def lose_patience(self) -> None:
        """Whoever waits is told that nobody knows."""
        ...

    @property
    def is_refusing(self) -> bool: ...

    def go_away(self) -> None: ...

    def come_back(self) -> None: ...

    def reopen(self) -> list[Found]:
        """What a server finds that takes the place of another."""
        ...

    def marks(self, key: str) -> list[tuple[int, Mark]]:
        """What messages say and how far they came, in the order of their delivery."""
        ...

    def dead(self) -> list[tuple[str, int, str]]:
        """Receiver, message and code of all dead letters."""
        ...


class SlowStore(FakeKeeper):
    """A store in memory; while it is away, what it is told waits, and is lost with its server."""

    def __init__(self) -> None:
        super().__init__()
        self.keeper = self
        self._noted: list[Callable[[], None]] = []
        self._waiting: list[Callable[[Kept], None]] = []

    def keep(self, message: Message, keys: Sequence[str], done: Callable[[Kept], None]) -> None:
        self._waiting.append(done)
        super().keep(message, keys, partial(self._answer_to, done))

    def _answer_to(self, done: Callable[[Kept], None], outcome: Kept) -> None:
        self._waiting.remove(done)
        done(outcome)

    def _do(self, what: Callable[[], None]) -> None:
        if self.is_available:
            what()
        else:
            self._noted.append(what)

    def mark(self, key: str, marks: Sequence[Mark]) -> None:
        self._do(partial(super().mark, key, list(marks)))

    def settle(self, key: str, ids: Sequence[int]) -> None:
        self._do(partial(super().settle, key, list(ids)))

    def bury(self, letters: Sequence[Any], key: str | None) -> None:
        self._do(partial(super().bury, list(letters), key))

    def save(self, record: SessionRecord) -> None:
        self._do(partial(super().save, record))

    def forget(self, key: str) -> None:
        self._do(partial(super().forget, key))

    # What tests do

    def answer(self) -> bool:
        return self.is_available and self.turn()

    def refuse(self, *, is_full: bool) -> None:
        self.outcome = Kept.REFUSED if is_full else Kept.KEPT

    def overflow(self, *, is_full: bool) -> bool:
        self.is_full = is_full
        return True

    @property
    def is_refusing(self) -> bool:
        return self.outcome is Kept.REFUSED

    def lose_patience(self) -> None:
        for done in list(self._waiting):
            done(Kept.UNKNOWN)

    def go_away(self) -> None:
        self.is_available = False

    def come_back(self) -> None:
        self.is_available = True
        noted, self._noted = self._noted, []
        for what in noted:
            what()

    def reopen(self) -> list[Found]:
        self.is_available, self.outcome, self.is_full = True, Kept.KEPT, False
        self._noted, self._waiting, self._answers = [], [], []
        found = []
        for key, record in self.sessions.items():
            text = orjson.loads(orjson.dumps(record.to_json()))
            entries = [(mark, _read_again(message)) for mark, message in self.waiting(key)]
            found.append((SessionRecord.of_json(text), entries))
        return found

    def marks(self, key: str) -> list[tuple[int, Mark]]:
        return [(number_in(message.wire), mark) for mark, message in self.waiting(key)]

    def dead(self) -> list[tuple[str, int, str]]:
        return [(letter.receiver, number_in(letter.wire), letter.code) for letter in self.letters]


@cache
def number_in(wire: bytes) -> int:
    """What a message says."""
    number: int = orjson.loads(wire)["data"]
    return number


def _read_again(message: Message) -> Message:
    return unpack_message(message.id, pack_message(message))


class _Loud(logging.Logger):
    """What is only logged in production is an error here."""

    def exception(self, *args: Any, **kwargs: Any) -> None:
        raise


def new_house(backing: Backing, after: House | None = None) -> House:
    """A server; one that comes after another finds what the store has."""
    found = [] if after is None else backing.reopen()
    house = House(
        Delivery,
        partial(Ack, announces_batch=False),
        keeper=backing.keeper,
        after=after,
        timeout_s=TIMEOUT_S,
        max_interval_s=MAX_INTERVAL_S,
        queue_limits=QueueLimits(entries=MOST),
        channels={PATIENT: ChannelRule(attempts=ATTEMPTS, backoff_s=BACKOFF_S)},
    )
    house.bayeux.now = house.now
    house.bayeux.log = _Loud("loud", logging.CRITICAL)
    # The guard over whole channels is not in the model.
    house.bayeux.guard._limits = GuardLimits(min_receivers=1_000_000)
    for record, entries in found:
        restore(house.bayeux, record, entries)
    return house


class Comparison:
    """The server as it is beside what it should be."""

    def __init__(self, house: House, backing: Backing, model: Model) -> None:
        self._house = house
        self._backing = backing
        self._model = model
        self._sessions = {session.name: session for session in house.bayeux.sessions}

    def make(self) -> None:
        for place in self._model.places:
            session = self._sessions.get(place.key)
            is_there = session is not None and session.client_id == place.client
            assert is_there != place.is_over, place.key
            if session is not None and is_there:
                self._same_session(place, session)
        self._same_books()
        if self._model.is_store_there:
            self._same_store()

    def _same_session(self, place: Place, session: Session) -> None:
        queue = session.queue
        tried = [*queue.handed.values(), *queue.returned]
        waiting = [number_in(message.wire) for message in queue.waiting]
        assert waiting == [copy.number for copy in place.waiting], place.key
        if place.kind.label == "plain":
            assert [number_in(entry.message.wire) for entry in tried] == [
                copy.number for copy in place.hands + place.returned
            ]
        else:
            hands, returned = list(queue.handed.values()), queue.returned
            assert [*map(_entry, hands)] == [*map(_copy, place.hands)], place.key
            assert [*map(_entry, returned)] == [*map(_copy, place.returned)], place.key
            assert queue.batch == place.batch, place.key
        here = [*(entry.message for entry in tried), *queue.waiting]
        assert queue.count == len(here)
        assert queue.size == sum(len(message.wire) for message in here)
        assert (session.held is not None) == (place.question is not None), place.key
        assert (session.state is State.AWAY) == place.is_away, place.key
        if session.dispatcher is not None:
            assert session.dispatcher.is_dead == place.is_shut, place.key
            if not place.is_shut:
                assert session.dispatcher.is_active != place.contact.is_held, place.key
        assert session.flows(self._house.now) == place.flows(self._house.now), place.key

    def _same_books(self) -> None:
        counters, books = self._house.bayeux.hub.counters, self._model.books
        assert self._house.balances()
        assert {
            "accepted": counters.accepted,
            "acked": counters.acked,
            "dead": counters.dead,
            "expired": counters.expired,
            "discarded": counters.discarded.total(),
            "out of range": counters.acks_out_of_range,
            "unknown": counters.verdicts_unknown,
        } == {name: books[name] for name in NAMES}
        assert books["accepted"] == sum(map(len, self._model.places)) + sum(
            books[name] for name in ("acked", "dead", "expired", "discarded")
        )

    def _same_store(self) -> None:
        unseen = self._model.unseen()
        for place in self._model.places:
            if place.is_durable and not place.is_over:
                kept = {sent.number for sent in unseen if sent.is_kept and place in sent.places}
                self._same_queue(place, kept)
        told = self._backing.dead()
        assert sorted(told) == sorted(self._model.letters)
        assert len({letter[:2] for letter in told}) == len(told), "one letter for each"

    def _same_queue(self, place: Place, unseen: set[int]) -> None:
        """What the store has of a queue: its entries, how far they came, and their order."""
        marks = self._backing.marks(place.key.removeprefix("client/"))
        tried = [copy for copy in place.hands + place.returned if copy.sent.is_kept]
        tried.sort(key=lambda copy: copy.seq)
        waiting = {copy.number for copy in place.waiting if copy.sent.is_kept}
        assert [
            (number, mark.attempts, mark.redelivered, mark.batch, mark.position)
            for number, mark in marks[: len(tried)]
        ] == [(c.number, c.attempts, c.redelivered, c.batch, c.seq) for c in tried], place.key
        untried = marks[len(tried) :]
        assert all(mark == Mark(mark.id) for _, mark in untried), place.key
        assert {number for number, _ in untried} == waiting | unseen, place.key


NAMES = ("accepted", "acked", "dead", "expired", "discarded", "out of range", "unknown")


def _entry(entry: Entry) -> tuple[object, ...]:
    return (
        number_in(entry.message.wire),
        entry.seq,
        entry.batch,
        entry.attempts,
        entry.redelivered,
        entry.is_pending,
    )


def _copy(copy: Copy) -> tuple[object, ...]:
    return (
        copy.number,
        copy.seq,
        copy.batch,
        copy.attempts,
        copy.redelivered,
        copy.is_pending,
    )
