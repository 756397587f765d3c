"""One receiver of the model: what it asked for, its queue, and what is known of its client."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf
from typing import Any

from tests.unit.delivery.queues.test_dispatcher_model import Naive

# How long a client may be silent (seconds).
MAX_INTERVAL_S = 3.0
# How many entries a queue takes if nothing else was agreed.
MOST = 8
CHANNELS = ("/a", "/b")

_serials = count(1)


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Kind:
    """What a receiver asks for when it shakes hands."""

    label: str
    # What settles an entry: "written", "batch" or "verdict".
    settles: str
    # Of `ext.delivery`, if it is negotiated at all.
    options: Mapping[str, Any] | None = None
    name: str | None = None
    retries: int = 0
    delay_ms: int = 60_000
    response_ms: int = 0
    per_batch: int | None = None
    most: int = MOST
    dies_of_refusal: bool = False

    def _repr_pretty_(self, printer: Any, _: bool) -> None:
        printer.text(self.label)


@dataclass(eq=False, slots=True)
class Sent:
    """A published message, and the receivers that it is for."""

    number: int
    channel: str
    by: int
    priority: int
    receivers: "list[Receiver]"
    # When it is destroyed.
    ends: float = inf
    is_kept: bool = False
    # Whether the store answered so late that others may have passed it.
    is_late: bool = False

    def is_for(self, receiver: "Receiver") -> bool:
        """Whether the store keeps it for the receiver, or for an earlier one of the same name."""
        return any(each.key == receiver.key for each in self.receivers)


@dataclass(eq=False, slots=True)
class Copy:
    """A message in one queue."""

    sent: Sent
    # The numbers of its last and of its first hand-over.
    seq: int = 0
    place: int = 0
    batch: int = 0
    # The last batch that carried it, if later ones did not.
    until: int = 0
    attempts: int = 0
    redelivered: int = 0
    due: float | None = None
    is_pending: bool = False
    # Whether nothing else was in flight when it was handed over last.
    was_alone: bool = False
    # The outcomes of hand-overs that failed.
    trail: list[tuple[int, str]] = field(default_factory=list)

    @property
    def number(self) -> int:
        return self.sent.number

    def fail(self, outcome: str) -> None:
        """Note the outcome of its last hand-over."""
        self.trail.append((self.attempts, outcome))


@dataclass(eq=False, slots=True)
class Question:
    """A connect, from its arrival until its answer has left."""

    receiver: "Receiver"
    client: str
    is_cut: bool = False
    # Whether its connection was lost after the answer, and the server knows.
    is_dropped: bool = False
    # It refused something that the store does not have yet: if it were answered now, it would not
    # repeat the refusal.
    has_refused: bool = False
    # "held", "going" while the store is told, then what became of it.
    state: str = "new"
    batch: int = 0
    carried: list[tuple[Copy, int]] = field(default_factory=list)
    told: list[tuple[int, int]] = field(default_factory=list)


class Receiver:
    """One session: its queue, and what is known of its client."""

    def __init__(self, kind: Kind, key: str, client: str, now: float) -> None:
        self.kind = kind
        self.key = key
        self.client = client
        self.serial = next(_serials)
        self.new: list[Copy] = []
        self.returned: list[Copy] = []
        self.in_flight: list[Copy] = []
        self.batch = self.seq = self.repeats = 0
        # The batch window: one more than were settled since the last failure; 0: it has ended.
        self.window = 0
        # What was handed over alone with its last attempt.
        self.on_last_attempt: Copy | None = None
        # The last number that the client has for certain, and the last one before the last answer.
        self.heard = self.before = 0
        # What was answered last.
        self.last: Question | None = None
        # The last number that an earlier client was handed.
        self.former_seq = 0
        self.contact = Naive(kind.retries, kind.delay_ms / 1000)
        # Whether it has a dispatcher: others are always ALIVE and active.
        self.can_stop = kind.options is not None
        self.question: Question | None = None
        self.quiet_until = 0.0
        self.deadline: float | None = now + MAX_INTERVAL_S
        self.ends_at: float | None = None
        self.hold_until: float | None = None
        # Its subscribes whose replies wait for the store: messages come after them.
        self.catching_up = 0
        self.has_connected = self.is_restored = self.is_away = False
        # Whether it has stopped; whether it is gone, and has failed.
        self.is_shut = self.is_over = self.has_failed = False

    @property
    def is_durable(self) -> bool:
        return self.kind.name is not None

    def channels(self) -> Sequence[str]:
        """What it subscribed to."""
        if self.is_over:
            return ()
        return CHANNELS if self.kind.label in ("acks", "joe", "tom") else CHANNELS[:1]

    def __len__(self) -> int:
        return len(self.in_flight) + len(self.returned) + len(self.new)

    def flows(self, now: float) -> bool:
        return not self.is_shut and (not self.can_stop or self.contact.flows(now))

    def due(self, now: float) -> float | None:
        """When a response to what is handed over now is due."""
        return now + self.kind.response_ms / 1000 if self.kind.response_ms else None

    def fail(self) -> None:
        """What was in flight is redelivered one by one, if the receiver could refuse it."""
        if self.kind.settles != "written" and self.kind.options is not None:
            self.window = 1

    def awaits_last_attempt(self) -> bool:
        copy = self.on_last_attempt
        if copy is None or copy not in self.in_flight:
            return False
        return copy.is_pending or self.kind.settles != "batch"

    def has_news(self, held: Collection[str]) -> bool:
        if self.awaits_last_attempt():
            return False
        lost = self.kind.settles == "batch" and any(not c.is_pending for c in self.in_flight)
        if self.kind.settles == "written":
            # A receiver that cannot refuse is not held back either.
            held = ()
        return lost or any(c.sent.channel not in held for c in self.returned + self.new)

    def pause_s(self) -> float:
        """None three times, then a tenth of a second that doubles up to a whole one."""
        if self.repeats < 3 or not self.in_flight + self.returned:
            return 0.0
        return min(0.1 * 2.0 ** min(self.repeats - 3, 9), 1.0)

    def return_copies(self, copies: Sequence[Copy]) -> None:
        """These wait again, ahead of all others, in the order of their first hand-over."""
        for copy in copies:
            copy.is_pending, copy.due = False, None
        self.in_flight = [copy for copy in self.in_flight if copy not in copies]
        self.returned = sorted([*self.returned, *copies], key=lambda copy: copy.place)

    def change_client(self) -> None:
        """What was in flight is redelivered; what the old client says no longer counts."""
        for copy in self.in_flight:
            copy.redelivered += 1
            copy.fail("taken over")
            self.fail()
        self.return_copies(self.in_flight)
        for copy in self.returned:
            copy.batch = 0
        self.batch = self.repeats = 0
        self.last = None
        self.former_seq = self.seq
        self.is_restored = False

    def dues(self, now: float) -> list[float]:
        """The times at which something is due for it."""
        if self.is_over:
            return []
        contact = self.contact
        found = [self.deadline, self.ends_at, self.hold_until]
        if self.can_stop and not self.is_shut:
            found += [contact.attempt_at, contact.paused_until]
        if self.question is not None and self.quiet_until:
            found.append(self.quiet_until)
        if self.in_flight:
            found.append(self.in_flight[0].due)
        found += [copy.sent.ends for copy in self.returned + self.new]
        return [due for due in found if due is not None and now < due < inf]
