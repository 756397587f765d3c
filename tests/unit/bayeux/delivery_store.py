"""A store that a test controls: slow, refusing, away, or found again by another server."""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, partial
from typing import Protocol

import orjson

from holdfast.bayeux.server import Bayeux
from holdfast.delivery.letters.dead import DeadLetter
from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.marks import Mark, Marked
from holdfast.delivery.messages.message import Message
from holdfast.delivery.messages.outcomes import Move, Outcome
from holdfast.delivery.messages.session_record import Recorded
from holdfast.delivery.messages.storing import NO_FIELDS, PersistOutcome, RequestFields
from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.delivery.ports.store_port import StorePort
from tests.unit.delivery.fake_keeper import FakeKeeper, Found


class Backing(Protocol):
    """A store that a test controls."""

    @property
    def keeper(self) -> StorePort:
        """What the server is given."""
        ...

    @property
    def journal(self) -> DeliveryJournal:
        """What writes the server's journal."""
        ...

    def serve(self, server: Bayeux) -> None:
        """Learn which server was given them."""
        ...

    def answer(self) -> bool:
        """Let it answer what it was asked so far; return whether there was anything."""
        ...

    def refuse(self, *, is_full: bool) -> None:
        """Let it keep no message, or keep them again."""
        ...

    def overflow(self, *, is_full: bool) -> bool:
        """Leave no room for what waits for it, or room again; return False if it cannot."""
        ...

    def end_wait_limit(self) -> None:
        """Tell all that wait that the outcome is unknown."""
        ...

    @property
    def is_refusing(self) -> bool: ...

    def go_away(self) -> None: ...

    def come_back(self) -> None: ...

    def reopen(self) -> None:
        """Another server takes the place of one that was killed."""
        ...

    def load(self, without_session: Callable[[str, Sequence[Message]], None]) -> Iterable[Found]:
        """What it finds: sessions, and queues without one."""
        ...

    def marks(self, key: str) -> list[tuple[int, Mark]]:
        """The numbers of messages with their marks, in the order of delivery."""
        ...

    def dead(self) -> Sequence[DeadLetter]:
        """All dead letters."""
        ...


class SlowStore(FakeKeeper):
    """A store in memory; while it is away, calls wait, and are lost with their server."""

    def __init__(self) -> None:
        super().__init__()
        self.keeper = self
        self.journal: DeliveryJournal = NO_JOURNAL
        self._noted: list[Callable[[], None]] = []
        self._waiting: list[Callable[[PersistOutcome], None]] = []

    def keep(
        self,
        message: Message,
        keys: Sequence[str],
        done: Callable[[PersistOutcome], None],
        fields: RequestFields = NO_FIELDS,
    ) -> None:
        self._waiting.append(done)
        super().keep(message, keys, partial(self._answer_to, done), fields)

    def _answer_to(self, done: Callable[[PersistOutcome], None], outcome: PersistOutcome) -> None:
        if outcome is not PersistOutcome.UNKNOWN:
            # Otherwise another answer follows.
            self._waiting.remove(done)
        done(outcome)

    def _do(self, what: Callable[[], None]) -> None:
        if self.is_available:
            what()
        else:
            self._noted.append(what)

    def move(self, moves: Sequence[Move]) -> None:
        self._do(partial(super().move, list(moves)))

    def mark(self, key: str, marked: Collection[Marked]) -> None:
        self._do(partial(super().mark, key, list(marked)))

    def settle(self, key: str, ids: Sequence[int], outcome: Outcome) -> None:
        self._do(partial(super().settle, key, list(ids), outcome))

    def dead_letter(
        self,
        dead: Sequence[UnwrittenLetter],
        key: str | None,
        done: Callable[[], None] | None = None,
    ) -> None:
        self._do(partial(super().dead_letter, list(dead), key))
        if done is not None:
            self.after(done)

    def save(self, session: Recorded) -> None:
        self._do(partial(super().save, session))

    def save_requests(self, fields: RequestFields) -> None:
        self._do(partial(super().save_requests, fields))

    def forget(self, key: str, ids: Sequence[int]) -> None:
        self._do(partial(super().forget, key, ids))

    def leave_history(self, channel: str, id: int) -> None:
        self._do(partial(super().leave_history, channel, id))

    # What tests do

    def serve(self, server: Bayeux) -> None:
        """It needs nothing of its server."""

    def answer(self) -> bool:
        return self.is_available and self.turn()

    def refuse(self, *, is_full: bool) -> None:
        self.outcome = PersistOutcome.REFUSED if is_full else PersistOutcome.KEPT

    def overflow(self, *, is_full: bool) -> bool:
        self.is_full = is_full
        return True

    @property
    def is_refusing(self) -> bool:
        return self.outcome is PersistOutcome.REFUSED

    def end_wait_limit(self) -> None:
        for done in list(self._waiting):
            done(PersistOutcome.UNKNOWN)

    def go_away(self) -> None:
        self.is_available = False

    def come_back(self) -> None:
        self.is_available = True
        noted, self._noted = self._noted, []
        for what in noted:
            what()

    def reopen(self) -> None:
        self.is_available, self.outcome, self.is_full = True, PersistOutcome.KEPT, False
        self._noted, self._waiting, self._answers = [], [], []

    def marks(self, key: str) -> list[tuple[int, Mark]]:
        return [(number_in(message.wire), mark) for mark, message in self.waiting(key)]

    def dead(self) -> Sequence[DeadLetter]:
        return self.letters


@cache
def number_in(wire: bytes) -> int:
    """The number that a message carries."""
    number: int = orjson.loads(wire)["data"]
    return number
