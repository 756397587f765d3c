"""Finds out whether the store would accept a message, and writes its clock."""

from collections.abc import Callable

from holdfast.store import scripts
from holdfast.store.keys import RedisKeys
from holdfast.store.link import ignore_answer
from holdfast.store.publish_keys import StoreClock
from holdfast.store.reply_errors import StoreRefused
from holdfast.store.unanswered_calls import UnansweredCalls
from holdfast.store.write_refusals import WriteRefusals

# How far the store's clock may lag behind after a kill. An idle server writes no more often.
_STEP_S = 10


class Probing:
    """Advances the clock in the store. A store without memory refuses even that."""

    def __init__(
        self, calls: UnansweredCalls, keys: RedisKeys, clock: StoreClock, refusing: WriteRefusals
    ) -> None:
        self._calls = calls
        self._keys = keys
        self._clock = clock
        self._refusing = refusing
        self._is_probing = False

    def probe(self) -> None:
        """Ask whether the store would accept a message, unless it is being asked."""
        if not self._is_probing:
            self._is_probing = True
            clock = self._clock()
            self._advance(clock - clock % _STEP_S, self._probed)

    def write_clock(self) -> None:
        """Write the exact time, from which the next process continues."""
        self._advance(self._clock(), ignore_answer)

    def _advance(self, clock: int, done: Callable[[object], None]) -> None:
        self._calls.make(scripts.advance_clock(self._keys, clock), done, may_be_refused=True)

    def _probed(self, reply: object) -> None:
        self._is_probing = False
        if isinstance(reply, StoreRefused):
            self._refusing.hear(str(reply), 0)
        elif not isinstance(reply, Exception):
            self._refusing.end()
