"""The steps of messages: everything that can happen to one, in one table.

The counters, the ledger, the books and the metrics derive from the table, and so do the journal's
events, the pipeline's ends of copies, and what operators read. So a further kind of step is a row
here, besides the code that reports it: `Ledger.arrived` if messages come by it, `Ledger.settled`
with the outcome of its name if they go by it.
"""

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

ACCEPTED: Final = "accepted"


class StepKind:
    """Kinds of steps: plain text, because an enum costs more than the rest of an event."""

    PUBLISHED: Final = "published"
    REPLAYED: Final = "replayed"
    ENTERED: Final = "entered"
    DELAYED: Final = "delayed"
    HANDED: Final = "handed"
    REDELIVERED: Final = "redelivered"
    WRITTEN: Final = "written"
    REFUSED: Final = "refused"
    RETURNED: Final = "returned"
    ACKED: Final = "acked"
    DEAD: Final = "dead"
    EXPIRED: Final = "expired"
    DISCARDED: Final = "discarded"
    MOVED: Final = "moved"
    DUE: Final = "due"


class Stage(IntEnum):
    """The stages of a delivery: a step is the cause of steps of the next one."""

    HANDED = 0
    ANSWERED = 1
    ENDED = 2


class Mood(Enum):
    """How a step looks in the console."""

    __hash__ = object.__hash__

    PLAIN = ""
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """One row of the table."""

    # The kind of its events in the journal, and of the outcome if copies leave their queue by it.
    kind: str
    # What operators read, and what the documentation says of it.
    words: str
    meaning: str
    # The counters that count it. `accepted` counts what enters queues; all others count what
    # leaves them, so that accepted and restored entries are the sum of these and of what is there.
    books: tuple[str, ...] = ()
    stage: Stage | None = None
    mood: Mood = Mood.PLAIN
    # The key of the only queue that messages enter by this step, instead of being published.
    queue: str = ""

    @property
    def is_end(self) -> bool:
        """Whether the copy is not in its queue any more."""
        return any(book != ACCEPTED for book in self.books)


# In the order in which steps at the same time are shown.
STEPS: Final = (
    Step(
        kind=StepKind.PUBLISHED,
        words="published",
        meaning="the server accepted a message; `copies` is the number of its receivers. Copies "
        "that become one by a move, or more than one, change it: another event has the difference",
        books=(ACCEPTED,),
    ),
    Step(
        kind=StepKind.REPLAYED,
        words="replayed",
        meaning="a dead letter became one more copy, of the next generation",
        books=(ACCEPTED,),
    ),
    Step(
        kind=StepKind.ENTERED,
        words="entered",
        meaning="the copy came into this queue from another one, with its attempts and generation",
    ),
    Step(
        kind=StepKind.DELAYED,
        words="delayed",
        meaning="the copy waits until it is due. Its `published` has `size` 0",
        queue="delay:/0",
    ),
    Step(
        kind=StepKind.HANDED,
        words="handed over",
        meaning="the copy was handed over for the first time",
        stage=Stage.HANDED,
    ),
    Step(
        kind=StepKind.REDELIVERED,
        words="redelivered",
        meaning="the copy was handed over again",
        stage=Stage.HANDED,
    ),
    Step(
        kind=StepKind.WRITTEN,
        words="written",
        meaning="the copy was handed over to a receiver that does not acknowledge, which ends it",
        books=("acked",),
        stage=Stage.HANDED,
        mood=Mood.GOOD,
    ),
    Step(
        kind=StepKind.REFUSED,
        words="refused",
        meaning="the receiver refused the copy, or its delivery failed; another event says what "
        "became of it",
        stage=Stage.ANSWERED,
        mood=Mood.BAD,
    ),
    Step(
        kind=StepKind.RETURNED,
        words="returned",
        meaning="the copy waits again, without an answer of its receiver",
        stage=Stage.ANSWERED,
        mood=Mood.WARN,
    ),
    Step(
        kind=StepKind.ACKED,
        words="acknowledged",
        meaning="the receiver confirmed the copy, or its terms count it as confirmed",
        books=("acked",),
        stage=Stage.ANSWERED,
        mood=Mood.GOOD,
    ),
    Step(
        kind=StepKind.DEAD,
        words="dead",
        meaning="the copy became a dead letter",
        books=("dead",),
        stage=Stage.ENDED,
        mood=Mood.BAD,
    ),
    Step(
        kind=StepKind.EXPIRED,
        words="expired",
        meaning="the lifetime of the message ended",
        books=("expired",),
        stage=Stage.ENDED,
        mood=Mood.WARN,
    ),
    Step(
        kind=StepKind.DISCARDED,
        words="discarded",
        meaning="the copy was dropped without a dead letter; `code` is the reason",
        books=("discarded",),
        stage=Stage.ENDED,
        mood=Mood.WARN,
    ),
    Step(
        kind=StepKind.MOVED,
        words="moved",
        meaning="the copy left the queue for another one. It is the same copy. With several "
        "workers, the one that keeps a work queue tells of all moves of its work; `code` is "
        "`taken_back` if the worker of the receiver said nothing of it any more",
        # Its new queue accepts it again.
        books=("moved", ACCEPTED),
    ),
    Step(
        kind=StepKind.DUE,
        words="due",
        meaning="its delay was over, and it was published as another message",
        # As with a move, what it was published as is accepted again.
        books=("moved",),
    ),
)

# By the key of a queue, the step by which messages enter it.
ARRIVALS: Final = {step.queue: step for step in STEPS if step.queue}


class Reason(Enum):
    """Why an entry was discarded. The metric has exactly these labels."""

    # Enum's own hash is slow Python code, and each refused message looks one up.
    __hash__ = object.__hash__

    OVERFLOW_ENTRIES = "resource.overflow.queue.entries"
    OVERFLOW_BYTES = "resource.overflow.queue.bytes"
    SESSION_EXPIRED = "session_expired"
    SESSION_ENDED = "session_ended"
    # An operator cleared the queue.
    CLEARED = "cleared"
    # An operator cancelled the delayed message.
    CANCELLED = "cancelled"
    # The store's buffer was full, so there is no dead letter.
    STORE_UNAVAILABLE = "store_unavailable"
    # The receiver lost its right to the channel.
    NOT_ALLOWED = "not_allowed"
    # The topic was erased by force.
    ERASED = "erased"
    # Dead letters are switched off for this message.
    NO_LETTER = "no_letter"
    # Too many dead letters arrived at once, so there is no dead letter.
    LETTERS_FULL = "letters_full"
    # The subscription asked for the newest message only.
    OUTDATED = "outdated"
