"""A store that may be away, and that another server finds again."""

from collections.abc import Callable, Collection, Sequence
from functools import cache, partial

import orjson

from holdfast.delivery.letters.unwritten import UnwrittenLetter
from holdfast.delivery.messages.marks import Marked
from holdfast.delivery.messages.outcomes import Move, Outcome
from holdfast.delivery.messages.session_record import Recorded
from holdfast.delivery.messages.storing import PersistOutcome, RequestFields
from tests.unit.delivery.fake_keeper import FakeKeeper


class SlowStore(FakeKeeper):
    """A store in memory; while it is away, calls wait, and are lost with their server."""

    def __init__(self) -> None:
        super().__init__()
        self._noted: list[Callable[[], None]] = []

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

    def save_floor(self, channel: str, floor: int) -> None:
        self._do(partial(super().save_floor, channel, floor))

    def leave_history(self, channel: str, id: int) -> None:
        self._do(partial(super().leave_history, channel, id))

    # What tests do

    def answer(self) -> bool:
        return self.is_available and self.turn()

    def go_away(self) -> None:
        self.is_available = False

    def come_back(self) -> None:
        self.is_available = True
        noted, self._noted = self._noted, []
        for what in noted:
            what()

    def reopen(self) -> None:
        self.is_available, self.outcome, self.is_full = True, PersistOutcome.KEPT, False
        self._noted, self._answers = [], []


@cache
def number_in(wire: bytes) -> int:
    """The number that a message carries."""
    number: int = orjson.loads(wire)["data"]
    return number
