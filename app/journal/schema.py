"""The schema of the journal: the kinds of events, and the table that frames unfold into.

The journal never contains data or credentials. Readers keep unknown kinds and ignore unknown
columns, so both may be added; the version changes when a meaning changes.
"""

from typing import Final, NamedTuple

from holdfast.delivery.basics.counters import ENDS
from holdfast.delivery.basics.steps import ACCEPTED, StepKind
from holdfast.delivery.basics.steps import STEPS as STEPS
from holdfast.delivery.basics.steps import Stage as Stage

VERSION = 3
# In frames of earlier versions, the new place of a copy that moved was a publish of another copy.
MOVES_APART = 3
# With this many events, a frame leaves at the next beat. Longer frames would cost less for each
# event, because a frame itself costs as much as 100 rows; but a killed process loses what waits.
FULL = 1000
# A frame with more events is rejected.
MOST_EVENTS: Final = 1_000_000
# How long events may wait, in seconds: as much as an ordinary store loses if its machine fails.
LONGEST_WAIT_S = 1.0
# How often the books are written.
BOOKS_S = 10.0
# The code of the move by which work returned of which another shard said nothing any more.
TAKEN_BACK: Final = "taken_back"
# Message ids are nanoseconds, times are microseconds.
NS_PER_US: Final = 1000


class Kind(StepKind):
    """Kinds of events: those of the table of steps, and those that are about no message."""

    # About a session, a channel, a node or the journal itself.
    SESSION: Final = "session"
    DISPATCHER: Final = "dispatcher"
    HELD: Final = "held"
    # A request: `what` is `asked`, with the timeout in milliseconds as number, or how it ended,
    # with the microseconds that it took. The receiver is the session that asked.
    REQUEST: Final = "request"
    # A reply: `what` is `accepted`, `late`, `duplicate` or `denied`, with the microseconds since
    # the request. The receiver is the session that replied; a denied reply has no channel.
    REPLY: Final = "reply"
    RELEASED: Final = "released"
    # The number of publishes that were refused on a channel within a minute; `what` is the reason:
    # the name of the error. Without a channel, they had none that exists, or there were too many.
    PUBLISHES_REFUSED: Final = "publishes_refused"
    # Messages of another shard that did not arrive here; `what` is the number of that shard. Their
    # number is missing if it is unknown.
    GAP: Final = "gap"
    # Messages that are not stored and did not wait any longer for stored ones before them; `what`
    # is the cause.
    EARLY: Final = "early"
    NODE: Final = "node"
    # One of the node's own counters, to be compared with the sum of its events in earlier frames.
    BOOKS: Final = "books"
    # The number of events that found no room while the store was unavailable; no frame has them.
    DROPPED: Final = "dropped"


# The events after which a copy is not in its queue any more.
SETTLED = frozenset(step.kind for step in STEPS if step.is_end)

# The books: by counter, the kinds that it counts; of publishes it counts copies.
BOOKS: Final = {
    book: tuple(step.kind for step in STEPS if book in step.books) for book in (ACCEPTED, *ENDS)
}


class Event(NamedTuple):
    """One row of the table; the columns have the same names everywhere."""

    node: str
    # Microseconds since 1970, by the node's clock; for a publish, the time of its receipt.
    ts: int
    kind: str
    # The message's id: its time of receipt in nanoseconds, unique in the deployment.
    msg: int | None = None
    # The name before that in the id that clients see: the deployment's or, in frames of earlier
    # versions, the node's.
    origin: str | None = None
    # None if a call to the store did not know it: then `published` has it.
    channel: str | None = None
    # The session name: joe/1.
    receiver: str | None = None
    # Only for `published`: the number of receivers, how many of them have it in the store, the size
    # of the event in bytes (0 if the message was reported before), the priority, and the publishing
    # session, None for the server. For `replayed`, and for the moves of replays: whether the copy
    # is in the store, as `kept`.
    copies: int | None = None
    kept: int | None = None
    size: int | None = None
    priority: int | None = None
    sender: str | None = None
    # The number of the hand-over.
    attempt: int | None = None
    # An error code, or the reason of a discard.
    code: str | None = None
    # The text of a failure without what is particular to one message.
    wording: str | None = None
    # The dead letter that it became or, if replayed, was; and the fingerprint of the failure.
    letter: int | None = None
    fingerprint: str | None = None
    # Only for `replayed` and `entered`: how often it was replayed so far.
    generation: int | None = None
    # What exactly changed, and a number that belongs to it.
    what: str | None = None
    number: int | None = None
