"""The records that a history is made into; times are monotonic nanoseconds."""

from dataclasses import dataclass
from typing import NamedTuple

from tests.chaos.history import Phase

FOR_EVER = 1 << 62

ACCEPTED = ""
# Refusals after which a message returns to the queue; others make dead letters.
_RETURNS = ("user.update.holdback", "communication.")


class Copy(NamedTuple):
    """A message for one subscriber, and how often it was replayed before."""

    subscriber: str
    tag: str
    generation: int


@dataclass(slots=True)
class Publish:
    tag: str
    publisher: str
    serial: int
    channel: str
    sha: str
    priority: int
    life_ms: int | None
    begun_ns: int
    ended_ns: int
    outcome: Phase
    # The time in the reply to its publisher, which identifies the message.
    received: str = ""
    # The subjects and sessions that took it, or, if that is unknown, to which it is addressed.
    destinations: frozenset[str] = frozenset()
    # Whether one receiver gets it, and no other.
    is_work: bool = False

    @property
    def is_routed(self) -> bool:
        """Whether each subscriber gets it."""
        return not (self.destinations or self.is_work)

    def order(self, subscriber: str) -> tuple[str, str, int, bool]:
        """Messages with the same value stay in the order of publishing."""
        return self.publisher, self.channel, self.priority, subscriber in self.destinations

    @property
    def urgency(self) -> tuple[int, int]:
        """Its place in the queue of a subject."""
        return -self.priority, int(self.received)

    def is_for(self, subscriber: str) -> bool:
        """Whether it is addressed to the session, or to its subject."""
        return bool(self.destinations & {subscriber, subject_of(subscriber)})


@dataclass(slots=True)
class Window:
    """The time in which one subscriber certainly was subscribed."""

    subscriber: str
    pattern: str
    begun_ns: int
    ended_ns: int
    until_ns: int = FOR_EVER
    is_durable: bool = True
    # Its subscriber goes on behind a cursor.
    has_cursor: bool = False
    # Its session, which is not durable, is gone with its messages.
    is_lost: bool = False

    def owes(self, publish: Publish) -> bool:
        return (
            publish.is_routed
            and matches(self.pattern, publish.channel)
            and publish.begun_ns >= self.ended_ns
            and publish.ended_ns <= self.until_ns
            and not (self.is_lost and not self.is_durable)
        )


@dataclass(slots=True)
class Gap:
    """What a subscriber was told that it may miss, by the times of publishing in microseconds."""

    subscriber: str
    pattern: str
    behind_us: int
    until_us: int

    def excuses(self, publish: Publish) -> bool:
        return (
            matches(self.pattern, publish.channel)
            and self.behind_us < int(publish.received) // 1000 <= self.until_us
        )


@dataclass(slots=True)
class Delivery:
    copy: Copy
    channel: str
    sha: str
    seq: int
    # None where events do not say it.
    redelivered: int | None
    at_ns: int
    # When the request was sent whose answer brought it.
    asked_ns: int
    # How long the server waits for a verdict if there are no acks that show lost replies.
    timeout_ns: int | None = None
    # The time that identifies the message, if events have it.
    received: str = ""
    # How many sessions its receiver had ended before.
    life: int = 0


@dataclass(slots=True)
class Settlement:
    copy: Copy
    seq: int
    code: str
    begun_ns: int
    ended_ns: int
    outcome: Phase

    @property
    def returns(self) -> bool:
        return self.code.startswith(_RETURNS)

    @property
    def may_be_accepted(self) -> bool:
        return self.outcome is not Phase.FAIL and self.code == ACCEPTED

    @property
    def is_accepted(self) -> bool:
        return self.outcome is Phase.OK and self.code == ACCEPTED

    @property
    def buries(self) -> bool:
        return self.outcome is Phase.OK and self.code != ACCEPTED and not self.returns


@dataclass(slots=True)
class Hold:
    subscriber: str
    # Requests sent from then on bring nothing; nor does anything arrive later than `certain_ns`.
    asked_ns: int
    certain_ns: int
    # Whether the receiver asked for it with a refusal.
    is_verdict: bool = False
    until_ns: int = FOR_EVER


@dataclass(slots=True)
class Fault:
    kind: str
    begun_ns: int
    ended_ns: int
    # Whether what was confirmed meanwhile may be lost with both processes that had it.
    may_lose: bool = False

    def may_have_lost(self, publish: Publish) -> bool:
        """Whether nobody may have a publish that was confirmed."""
        return self.may_lose and self.begun_ns <= publish.ended_ns <= self.ended_ns


@dataclass(slots=True)
class Stall:
    """A time in which the machine did nothing for these tests."""

    begun_ns: int
    ended_ns: int


@dataclass(slots=True)
class Pending:
    copy: Copy
    attempts: int


@dataclass(slots=True)
class Dead:
    copy: Copy
    letter: str
    code: str
    attempts: int
    state: str


@dataclass(slots=True)
class Scan:
    """What the store had at one moment."""

    at_ns: int
    pending: list[Pending]
    dead: list[Dead]
    limits: dict[str, int]


def subject_of(subscriber: str) -> str:
    return subscriber.rpartition("/")[0]


def matches(pattern: str, channel: str) -> bool:
    if pattern.endswith("/**"):
        return channel.startswith(pattern[:-2])
    if pattern.endswith("/*"):
        head = pattern[:-1]
        return channel.startswith(head) and "/" not in channel[len(head) :]
    return pattern == channel
