"""Probes of a channel that is held back: one message, handed to one receiver."""

from collections.abc import Iterable

from holdfast.delivery.guard.channel_verdicts import GuardLimits
from holdfast.delivery.messages.message import Message
from holdfast.delivery.queues.receivers import Receiver

# The receiver must answer within this time, or another one is probed.
TIMEOUT_S = 10.0
# A publisher not known to fail is a reason to probe at once, but not more often than this.
_EAGER_S = 1.0
# A publisher is known to fail after this many refusals: the first receivers that are probed may be
# accomplices of whoever brought the hold about.
_PROOF = 10
# The most publishers whose refusals are remembered.
_MOST_KNOWN = 300


class Probe:
    """The probes of one held channel: when, with which message and receiver, and the result."""

    def __init__(self, limits: GuardLimits, now: float, publishers: Iterable[str] = ()) -> None:
        self._limits = limits
        # How often messages of a publisher were refused, the latest refusal last.
        self._refusals = dict.fromkeys(publishers, _PROOF)
        # The receiver of the present probe, while its answer is awaited.
        self._receiver: Receiver | None = None
        self._tried_at = now
        self._pause_s = limits.first_pause_s
        # The message of the last probe, which may still be answered.
        self.message: Message | None = None
        self.failures = 0
        # When the next probe begins, or the present one times out.
        self.due = now + self._pause_s
        # The number of searches for a receiver so far.
        self.searches = 0

    @property
    def is_under_way(self) -> bool:
        """Whether an answer is awaited."""
        return self._receiver is not None

    def may_pass(self, publisher: str) -> bool:
        """Return whether this publisher is not known to fail."""
        return self._refusals.get(publisher, 0) < _PROOF

    def hear_of(self, publisher: str, now: float) -> None:
        """Note that a message of this publisher waits."""
        # After a restart the failing publishers are unknown.
        is_news = bool(self._refusals) and self.may_pass(publisher)
        if is_news and not self.is_under_way:
            self.due = min(self.due, max(now, self._tried_at + _EAGER_S))

    def begin(self, receiver: Receiver, message: Message, now: float) -> None:
        """Begin a probe with this message and receiver."""
        self.message = receiver.queue.probe = message
        self._receiver = receiver
        self._tried_at = now
        self.due = now + TIMEOUT_S

    def failed(self, publisher: str, now: float) -> None:
        """Note that the message was refused."""
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
        """Schedule the next probe: no receiver was found, or none has answered."""
        self.end()
        self.due = now + self._pause_s

    def end(self) -> None:
        """Stop waiting for an answer."""
        if self._receiver is not None and self._receiver.queue.probe is self.message:
            self._receiver.queue.probe = None
        self._receiver = None
