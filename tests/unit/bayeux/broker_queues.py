"""What the naive broker has: messages, their copies, queues and topics."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.delivery.topics.states import TopicState, state_of

SUBJECTS = ("ann", "joe")
JOBS = "/jobs/a"
# A topic by its rule, which has a history; a topic if a publish makes it one; never a topic.
RULED, MADE, PLAIN = "/t/a", "/u/a", "/p/a"
CHANNELS = (RULED, MADE, PLAIN, JOBS)
PATTERNS = {"/t/*": RULED, "/u/*": MADE, "/jobs/*": JOBS}
# Of the rules: how many messages a history keeps, and when a topic ends (seconds).
DEPTH, DELAY_S = 2, 2.5
# The default destroy delay of topics, in seconds.
ORDINARY_DELAY_S = 60.0
# What the queue of a subject, and a work queue, has room for.
MOST_SHARED = 4


@dataclass(eq=False)
class Sent:
    """One message."""

    number: int
    channel: str
    priority: int = 5
    is_volatile: bool = False
    # When it leaves its history, and when it leaves the queues in which it waits.
    ends: float | None = None
    expires: float | None = None
    # Whether the store has it, wherever it is kept.
    is_durable: bool = False
    # Whether a topic counts it.
    is_of_topic: bool = False
    # The subjects and sessions that it is addressed to.
    addressed: Sequence[str] = ()
    # The sessions that refused it as work, and the last reason.
    refusers: list[str] = field(default_factory=list)
    code: str = ""

    @property
    def is_work(self) -> bool:
        return self.channel == JOBS


@dataclass(eq=False)
class Copy:
    """A message in one queue."""

    sent: Sent
    # Whether the store has it, too.
    is_kept: bool
    # From a history: for a subscriber, whomever the message was addressed to.
    is_initial: bool = False
    is_in_flight: bool = False
    was_handed: bool = False
    # The batch whose ack settles it; zero if none does.
    batch: int = 0

    def mark_returned(self) -> None:
        """It returns, and an ack of its old batch does not settle it."""
        self.is_in_flight, self.batch = False, 0


@dataclass(eq=False)
class Queue:
    """A queue: of a session, of a subject (`joe/0`), or of work (`work:/jobs/a/0`)."""

    key: str
    room: int = 1_000_000
    is_named: bool = False
    is_durable: bool = True
    takes_addressed: bool = False
    subscriptions: set[str] = field(default_factory=set)
    copies: list[Copy] = field(default_factory=list)
    # Its client has left; or was lost; or has sent something to this process.
    is_away: bool = False
    is_lost: bool = False
    has_contact: bool = False
    is_held: bool = False

    @property
    def subject(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def has_room(self) -> bool:
        return len(self.copies) < self.room

    @property
    def is_live(self) -> bool:
        return self.has_contact and not (self.is_away or self.is_lost or self.is_held)

    def hears(self, channel: str) -> bool:
        """Whether a subscription matches the channel."""
        return any(PATTERNS.get(name, name) == channel for name in self.subscriptions)

    def has(self, sent: Sent) -> bool:
        return any(copy.sent is sent for copy in self.copies)

    def is_only_for_its_subject(self, copy: Copy) -> bool:
        """Whether another session of the subject gets it when this one ends."""
        return self.subject in copy.sent.addressed and not copy.is_initial

    def in_order(self) -> Sequence[Copy]:
        """By priority, then by age."""
        return sorted(self.copies, key=lambda copy: (-copy.sent.priority, copy.sent.number))


@dataclass(eq=False)
class Topic:
    """One topic as the requirement describes it."""

    delay_s: float
    # How much its history keeps; None: as its rule says.
    depth: int | None = None
    is_configured: bool = False
    # Since when nothing refers to it.
    idle_since: float | None = None
    state: TopicState = TopicState.DEAD

    def look(self, *, has_history: bool, is_queued: bool, is_subscribed: bool) -> None:
        self.state = state_of(
            is_configured=self.is_configured,
            has_history=has_history,
            is_queued=is_queued,
            is_subscribed=is_subscribed,
        )
