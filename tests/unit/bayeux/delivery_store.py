"""The store in a test's hands: slow, refusing, away, or found again by another server."""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Protocol

import orjson

from app.bayeux.server import Bayeux
from app.delivery.dead_letters import DeadLetter
from app.delivery.deaths import Buried
from app.delivery.keeper import Keeper, Kept, Mark
from app.delivery.messages import Message
from app.delivery.session_record import Recorded, SessionRecord
from app.delivery.witness import Witness
from app.store.records import pack_message, unpack_message
from tests.unit.delivery.fake_keeper import FakeKeeper

Found = tuple[SessionRecord, list[tuple[Mark, Message]]]


class Backing(Protocol):
    """A store that a test has in its hands."""

    @property
    def keeper(self) -> Keeper:
        """What the server is given."""
        ...

    @property
    def witness(self) -> Witness | None:
        """Who writes the server's journal, if anybody does."""
        ...

    def serve(self, server: Bayeux) -> None:
        """The server that was given them."""
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

    def dead(self) -> Sequence[DeadLetter]:
        """All dead letters."""
        ...


class SlowStore(FakeKeeper):
    """A store in memory; while it is away, what it is told waits, and is lost with its server."""

    def __init__(self) -> None:
        super().__init__()
        self.keeper = self
        self.witness: Witness | None = None
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

    def bury(self, dead: Sequence[Buried], key: str | None) -> None:
        self._do(partial(super().bury, list(dead), key))

    def save(self, session: Recorded) -> None:
        self._do(partial(super().save, session))

    def forget(self, key: str, ids: Sequence[int]) -> None:
        self._do(partial(super().forget, key, ids))

    # What tests do

    def serve(self, server: Bayeux) -> None:
        """It needs nothing of its server."""

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

    def dead(self) -> Sequence[DeadLetter]:
        return self.letters


@cache
def number_in(wire: bytes) -> int:
    """What a message says."""
    number: int = orjson.loads(wire)["data"]
    return number


def _read_again(message: Message) -> Message:
    return unpack_message(message.id, pack_message(message))
