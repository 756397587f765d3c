"""Calls that the store has not answered yet."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from holdfast.delivery.ports.journal_port import NO_JOURNAL, DeliveryJournal
from holdfast.store.call_numbers import CallNumbers
from holdfast.store.link import Answer, StoreLink
from holdfast.store.reply_errors import ScriptFailed, WentBack
from holdfast.store.scripts import ScriptCall

log = logging.getLogger(__name__)

# The store does not take this process for its writer, or has lost its calls.
_REFUSALS = frozenset({"BACK", "EPOCH"})


class UnansweredCalls:
    """Makes numbered calls over the link, and passes each answer to its callback.

    Args:
        on_refused: Called when the store refuses this process as a writer, or has lost calls.
        on_answered: Called after every answer.
    """

    def __init__(
        self,
        link: StoreLink,
        *,
        on_refused: Callable[[ScriptFailed | WentBack], None],
        on_answered: Callable[[], None],
    ) -> None:
        # Informed whether the note of a call is in the store.
        self.journal: DeliveryJournal = NO_JOURNAL
        self._link = link
        self._on_refused = on_refused
        self._on_answered = on_answered
        self._loop = asyncio.get_running_loop()
        self._numbers = CallNumbers()
        # The callback of each answer, and the number of the call's note, in the order of the
        # answers.
        self._sent: deque[tuple[Answer, int]] = deque()
        self._answers = 0
        # Callbacks, each with the number of answers that it waits for.
        self._followers: deque[tuple[int, Callable[[], None]]] = deque()

    def __len__(self) -> int:
        return len(self._sent)

    def begin(self, nonce: str) -> None:
        """Number the calls from 1 in a new epoch. All earlier calls must have been answered."""
        self._numbers.begin(nonce)

    def make(
        self, call: ScriptCall, done: Answer, *, note: int = 0, may_be_refused: bool = False
    ) -> None:
        """Make a call once. `note` is the number of its journal note, if it has one."""
        self._sent.append((done, note))
        script, keys, args = call
        # Changing it is safe, because this call owns the list. It may be long.
        args.insert(0, self._numbers.next(may_be_refused=may_be_refused))
        self._link.script(script, keys, args, self._answered, may_be_refused=may_be_refused)

    def follow(self, done: Callable[[], None]) -> None:
        """Call back in a later turn, once all calls so far are answered."""
        if self._sent:
            self._followers.append((self._answers + len(self._sent), done))
        else:
            self._loop.call_soon(done)

    def _answered(self, reply: object) -> None:
        done, note = self._sent.popleft()
        self._answers += 1
        try:
            reply = self._numbers.heard(reply)
        except WentBack as error:
            self._on_refused(error)
            reply = error.reply
        if isinstance(reply, ScriptFailed):
            if reply.code in _REFUSALS:
                self._on_refused(reply)
            else:
                log.error("the store did not carry out a call: %s", reply)
        if note:
            # A repeated message leaves no note either.
            is_repeated = isinstance(reply, list) and len(reply) > 1 and bool(reply[1])
            is_there = not (is_repeated or isinstance(reply, Exception))
            self.journal.answered(note, is_there=is_there)
        done(reply)
        while self._followers and self._followers[0][0] <= self._answers:
            self._loop.call_soon(self._followers.popleft()[1])
        self._on_answered()
