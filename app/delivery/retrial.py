"""A channel that is held back is tried again: one message, given to one receiver."""

from collections.abc import Iterable

from app.delivery.hearing import GuardLimits
from app.delivery.messages import Message
from app.delivery.receivers import Receiver

# The receiver must have said something by then, or another one is tried.
PATIENCE_S = 10.0
# A publisher who is not known to fail is reason enough to try at once, but not more often.
_EAGER_S = 1.0
# Publishers that are known to fail.
_MOST_KNOWN = 300


class Retrial:
    """When a channel is tried again, with what, and how that went."""

    __slots__ = (
        "_limits",
        "_pause_s",
        "_publishers",
        "_receiver",
        "_tried_at",
        "due",
        "failures",
        "message",
        "offset",
    )

    def __init__(self, limits: GuardLimits, now: float, publishers: Iterable[str] = ()) -> None:
        self._limits = limits
        self._publishers = set(publishers)
        # Who has what is tried now, as far as nobody has said anything of it.
        self._receiver: Receiver | None = None
        self._tried_at = now
        self._pause_s = limits.first_pause_s
        # What was tried last, of which something may still be said.
        self.message: Message | None = None
        self.failures = 0
        # When it is tried next, or the present attempt is given up.
        self.due = now + self._pause_s
        # Where among the receivers of the channel the next search begins: each has its turn.
        self.offset = 0

    @property
    def is_under_way(self) -> bool:
        """Whether an answer is awaited."""
        return self._receiver is not None

    def is_unheard(self, publisher: str) -> bool:
        """Whether nothing speaks against this publisher."""
        return publisher not in self._publishers

    def hear_of(self, publisher: str, now: float) -> None:
        """Something of this publisher waits."""
        # After a restart it is not known whose messages had failed.
        is_news = bool(self._publishers) and publisher not in self._publishers
        if is_news and not self.is_under_way:
            self.due = min(self.due, max(now, self._tried_at + _EAGER_S))

    def begin(self, receiver: Receiver, message: Message, now: float) -> None:
        """The receiver is given this message, and nothing else of the channel."""
        self.message = receiver.queue.tried = message
        self._receiver = receiver
        self._tried_at = now
        self.due = now + PATIENCE_S

    def failed(self, publisher: str, now: float) -> None:
        """The message was refused."""
        self.end()
        self.message = None
        self.failures += 1
        if len(self._publishers) >= _MOST_KNOWN:
            self._publishers.clear()
        self._publishers.add(publisher)
        self._pause_s = min(self._pause_s * 2, self._limits.longest_pause_s)
        self.due = now + self._pause_s

    def give_up(self, now: float) -> None:
        """Nobody could be tried, or the receiver has said nothing so far."""
        self.end()
        self.due = now + self._pause_s

    def end(self) -> None:
        """No answer is awaited any more."""
        if self._receiver is not None and self._receiver.queue.tried is self.message:
            self._receiver.queue.tried = None
        self._receiver = None
