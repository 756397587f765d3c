"""Publishes that wait for the store's answer, with a wait limit."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from holdfast.delivery.messages.publish_key import publish_key_of
from holdfast.delivery.messages.shard_call import effect_of
from holdfast.delivery.messages.storing import PersistOutcome
from holdfast.store.format.publish_keys import meaning, stored_id
from holdfast.store.links.reply_errors import ScriptFailed, StoreRefused
from holdfast.store.writing.turn_writes import PendingPublish

log = logging.getLogger(__name__)

# After this time a publisher is answered UNKNOWN.
_WAIT_LIMIT_S = 5.0
# A timer this late means that this process was frozen: read answers that have arrived first.
_LATE_S = 0.5

# Checks, by the ids of stored messages or the names of the calls that stored them, whether they are
# as durable as configured.
Confirm = Callable[[Sequence[int | str], Callable[[bool], None]], None]


class PendingPublishes:
    """Answers each publish once, and once more after UNKNOWN.

    A message that is stored but not confirmed is UNKNOWN to its publisher, because the server
    promised more, and then at once KEPT: it is delivered instead of staying in queues unseen until
    a restart.

    Args:
        answered_call: Returns the name of the call whose answer is being handled, for `confirm`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        confirm: Confirm | None,
        answered_call: Callable[[], str] = str,
    ) -> None:
        self._loop = loop
        self._confirm = confirm
        self._answered_call = answered_call
        # Unanswered publishes in order of their calls, with the end of their wait limit.
        self._calls: dict[int, tuple[float, Sequence[PendingPublish]]] = {}
        # Publishes that the store has, until it is known whether replicas have them.
        self._unconfirmed: dict[int, Sequence[PendingPublish]] = {}
        self._number = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at = 0.0

    @property
    def waits(self) -> bool:
        """Whether publishes wait for replicas, too."""
        return self._confirm is not None

    def begin(self, messages: Sequence[PendingPublish]) -> Callable[[object], None]:
        """Register publishes. Returns the function to call with the answer."""
        self._number = number = self._number + 1
        ends_at = self._loop.time() + _WAIT_LIMIT_S
        self._calls[number] = (ends_at, messages)
        if self._alarm is None:
            self._ring_at(ends_at)
        return partial(self._answered, number, messages)

    def unconfirmed(self) -> list[PendingPublish]:
        """Return the publishes that the store has and no queue in memory, in their order."""
        return [pending for messages in self._unconfirmed.values() for pending in messages]

    def _answered(self, number: int, messages: Sequence[PendingPublish], reply: object) -> None:
        kept = _meaning(reply)
        if kept is PersistOutcome.KEPT and self._confirm is not None:
            self._unconfirmed[number] = messages
            confirmed = partial(self._confirmed, number, messages)
            self._confirm([self._stored_id(pending) for pending in messages], confirmed)
        else:
            self._calls.pop(number, None)
            report(messages, kept)

    def _stored_id(self, pending: PendingPublish) -> int | str:
        # A message for other shards only is in the log.
        is_in_log = not pending.receivers and publish_key_of(pending.message) is None
        return self._answered_call() if is_in_log else stored_id(pending.message)

    def _confirmed(
        self, number: int, messages: Sequence[PendingPublish], is_confirmed: bool
    ) -> None:
        del self._unconfirmed[number]
        if is_confirmed:
            _confirm_answers(messages)
        is_unreported = self._calls.pop(number, None) is not None
        if is_unreported and not is_confirmed:
            report(messages, PersistOutcome.UNKNOWN)
        report(messages, PersistOutcome.KEPT)

    def close(self) -> None:
        """Cancel the timeout."""
        if self._alarm is not None:
            self._alarm.cancel()

    def _ring_at(self, moment: float) -> None:
        self._alarm_at = moment
        self._alarm = self._loop.call_at(moment, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        now = self._loop.time()
        if now > self._alarm_at + _LATE_S:
            self._ring_at(now + _LATE_S)
            return
        while self._calls:
            number, (ends_at, messages) = next(iter(self._calls.items()))
            if ends_at > now:
                self._ring_at(ends_at)
                break
            del self._calls[number]
            report(messages, PersistOutcome.UNKNOWN)


def _confirm_answers(messages: Sequence[PendingPublish]) -> None:
    """Let other shards count what they asked for."""
    for pending in messages:
        effect = effect_of(pending.message)
        if effect is not None:
            effect.is_confirmed = True


def report(messages: Sequence[PendingPublish], kept: PersistOutcome) -> None:
    """Report the outcome for each message. One caller's error does not affect the others."""
    for pending in messages:
        try:
            pending.done(meaning(pending.message, kept))
        except BaseException:
            log.exception("message %d: the outcome %s was not handled", pending.message.id, kept)


def _meaning(reply: object) -> PersistOutcome:
    if isinstance(reply, (ScriptFailed, StoreRefused)):
        return PersistOutcome.REFUSED
    # If the link was closed before the answer arrived, the outcome is unknown.
    return PersistOutcome.UNKNOWN if isinstance(reply, Exception) else PersistOutcome.KEPT
