"""Probes of a held channel: one message, handed over to one receiver."""

from collections.abc import Iterable, Sequence

from holdfast.delivery.basics.feature_records import record_of, with_record, without_record
from holdfast.delivery.guard.channel_verdicts import GuardLimits
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.features import QueueRecord
from holdfast.delivery.queues.receivers import Receiver

# A receiver that does not answer within this time is replaced by another.
TIMEOUT_S = 10.0
# A publisher that is not known to fail triggers a probe, but not more often than this.
_EAGER_S = 1.0
# A publisher is known to fail after this many refusals. The first receivers probed may be
# accomplices of the client that brought the hold about.
_PROOF = 10
# How many publishers' refusals are remembered.
_MOST_KNOWN = 300


class _Probed(QueueRecord):
    """The record of a queue with a message that probes its channel, until it is handed over."""

    __slots__ = ("message",)

    def __init__(self, message: Message) -> None:
        self.message = message

    def passes_hold(self, message: Message) -> bool:
        return message is self.message

    def is_over_after(self, messages: Sequence[Message]) -> bool:
        return self.message in messages


class Probe:
    """The probes of one held channel: when they happen, with which message, and their result."""

    def __init__(self, limits: GuardLimits, now: float, publishers: Iterable[str] = ()) -> None:
        self._limits = limits
        # Refusals by publisher, the most recent last.
        self._refusals = dict.fromkeys(publishers, _PROOF)
        # The receiver of the current probe while its answer is awaited.
        self._receiver: Receiver | None = None
        self._tried_at = now
        self._pause_s = limits.first_pause_s
        # The message of the last probe. A verdict on it may still arrive.
        self.message: Message | None = None
        self.failures = 0
        # When the next probe starts, or when the current one times out.
        self.due = now + self._pause_s
        # How many times a receiver was searched for.
        self.searches = 0

    @property
    def is_under_way(self) -> bool:
        """Whether an answer is awaited."""
        return self._receiver is not None

    def may_pass(self, publisher: str) -> bool:
        """Return whether this publisher is not known to fail."""
        return self._refusals.get(publisher, 0) < _PROOF

    def hear_of(self, publisher: str, now: float) -> None:
        """Record that a message of this publisher waits."""
        # After a restart, no publisher is known to fail.
        is_news = bool(self._refusals) and self.may_pass(publisher)
        if is_news and not self.is_under_way:
            self.due = min(self.due, max(now, self._tried_at + _EAGER_S))

    def begin(self, receiver: Receiver, message: Message, now: float) -> None:
        """Begin a probe with this message and receiver."""
        self.message = message
        receiver.queue.records = with_record(receiver.queue.records, _Probed(message))
        self._receiver = receiver
        self._tried_at = now
        self.due = now + TIMEOUT_S

    def failed(self, publisher: str, now: float) -> None:
        """Record that the receiver refused the message."""
        self.end()
        self.message = None
        self.failures += 1
        refusals = self._refusals.pop(publisher, 0 if self._refusals else _PROOF - 1) + 1
        if len(self._refusals) >= _MOST_KNOWN:
            del self._refusals[next(iter(self._refusals))]
        self._refusals[publisher] = refusals
        if refusals < _PROOF:
            self.due = now + min(_EAGER_S, self._pause_s)
        else:
            self._pause_s = min(self._pause_s * 2, self._limits.longest_pause_s)
            self.due = now + self._pause_s

    def give_up(self, now: float) -> None:
        """Schedule the next probe, because no receiver was found or the receiver did not answer."""
        self.end()
        self.due = now + self._pause_s

    def end(self) -> None:
        """Stop waiting for a verdict."""
        if self._receiver is not None:
            queue = self._receiver.queue
            probed = record_of(queue.records, _Probed)
            if probed is not None and probed.message is self.message:
                queue.records = without_record(queue.records, _Probed)
        self._receiver = None
