"""The schema of the journal: the kinds of events, and the table that frames unfold into.

The journal never contains data or credentials. Readers keep unknown kinds and ignore unknown
columns, so both may be added; the version changes when a meaning changes.
"""

from typing import Final, NamedTuple

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
# Message ids are nanoseconds, times are microseconds.
NS_PER_US: Final = 1000


class Kind:
    """Kinds of events: plain text, because an enum costs more than the rest of an event."""

    # About a message: the number of its new copies, one for each receiver. A copy that moves is no
    # new one. Copies that become one by a move, or more than one, change the number: another event
    # has the difference.
    PUBLISHED: Final = "published"

    # About a message and its receiver.
    HANDED: Final = "handed"
    REDELIVERED: Final = "redelivered"
    # Handed over and settled at once: the transport wrote it, and no acknowledgement follows.
    WRITTEN: Final = "written"
    ACKED: Final = "acked"
    # The delivery failed with this code; another event reports the outcome of the copy.
    REFUSED: Final = "refused"
    # Returned to the queue without an answer of the receiver; it waits again.
    RETURNED: Final = "returned"
    DEAD: Final = "dead"
    EXPIRED: Final = "expired"
    DISCARDED: Final = "discarded"
    # Moved to other queues: no longer in this one.
    MOVED: Final = "moved"
    # Entered this queue by a move, with the attempts and the generation that it brought along.
    ENTERED: Final = "entered"
    # Waits until it is due, in a queue for delayed messages; this is no publish yet.
    DELAYED: Final = "delayed"
    # Its delay is over: it was published as another message.
    DUE: Final = "due"
    # A dead letter became one more copy, of the next generation.
    REPLAYED: Final = "replayed"

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
    NODE: Final = "node"
    # One of the node's own counters, to be compared with the sum of its events in earlier frames.
    BOOKS: Final = "books"
    # The number of events that found no room while the store was unavailable; no frame has them.
    DROPPED: Final = "dropped"


# The events after which a copy is not in its queue any more.
SETTLED = frozenset(
    {
        Kind.ACKED,
        Kind.WRITTEN,
        Kind.DEAD,
        Kind.EXPIRED,
        Kind.DISCARDED,
        Kind.MOVED,
        Kind.DUE,
    }
)

# The books: by counter, the kinds that it counts; of publishes it counts copies. A copy that moves
# is accepted again by its new queue, and so is what becomes of a delayed message.
BOOKS: Final = {
    "accepted": (Kind.PUBLISHED, Kind.REPLAYED, Kind.MOVED),
    "acked": (Kind.ACKED, Kind.WRITTEN),
    "dead": (Kind.DEAD,),
    "expired": (Kind.EXPIRED,),
    "discarded": (Kind.DISCARDED,),
    "moved": (Kind.MOVED, Kind.DUE),
}


class Event(NamedTuple):
    """One row of the table; the columns have the same names everywhere."""

    node: str
    # Microseconds since 1970, by the node's clock; for a publish, the time of its receipt.
    ts: int
    kind: str
    # The message's id: its time of receipt in nanoseconds, unique on the node that received it.
    msg: int | None = None
    # The node that received the message.
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
