"""Finds out whether the store would accept a message, and writes its clock and the newest id."""

from collections.abc import Callable

from holdfast.store import scripts
from holdfast.store.keys import RedisKeys
from holdfast.store.link import ignore_answer
from holdfast.store.publish_keys import StoreClock
from holdfast.store.unanswered_calls import UnansweredCalls
from holdfast.store.write_refusals import WriteRefusals

# How far the store's clock may lag behind after a kill. An idle server writes no more often.
_STEP_S = 10
# How far the id that is written is ahead: until the next one is written, which is a second later,
# messages get ids below it.
_AHEAD_NS = 1_500_000_000


class Probing:
    """Advances the clock in the store. A store without memory refuses even that.

    With the clock goes an id above all that were given, also to messages that are not stored: the
    next process begins above it, even if the wall clock was set back.

    Args:
        stamp: Returns a new id.
    """

    def __init__(
        self,
        calls: UnansweredCalls,
        keys: RedisKeys,
        clock: StoreClock,
        refusing: WriteRefusals,
        stamp: Callable[[], int],
    ) -> None:
        self._stamp = stamp
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
            given = self._stamp() + _AHEAD_NS
            self._advance(clock - clock % _STEP_S, given, self._probed)

    def write_clock(self) -> None:
        """Write the exact time and id, from which the next process continues."""
        self._advance(self._clock(), self._stamp(), ignore_answer)

    def _advance(self, clock: int, given: int, done: Callable[[object], None]) -> None:
        call = scripts.advance_clock(self._keys, clock, given=given)
        self._calls.make(call, done, may_be_refused=True)

    def _probed(self, reply: object) -> None:
        self._is_probing = False
        self._refusing.hear(reply, 0)
