"""What the journal tells: the kinds of events, and the table that its frames unfold into.

Never data and never credentials. Readers keep kinds that they do not know and pass over columns
that they do not know, so both may be added; the version changes when the meaning of one does.
"""

from typing import Final, NamedTuple

VERSION = 2
# Rows that make a frame, a tenth of a second later: by itself it costs as much as a hundred rows.
FULL = 2000
# A frame with more events is not believed.
MOST_EVENTS: Final = 1_000_000
# How long (seconds) they may: what an ordinary store may lose, too, when its machine dies.
PATIENCE_S = 1.0
# Ids of messages are nanoseconds, times are microseconds.
NS_PER_US: Final = 1000


class Kind:
    """What happened: plain text, for an enum costs more than all the rest of an event."""

    # About a message: so many copies of it exist now, one for each receiver.
    PUBLISHED: Final = "published"

    # About a message and its receiver.
    # In its hands for the first time, or again; what becomes of it is not known yet.
    HANDED: Final = "handed"
    REDELIVERED: Final = "redelivered"
    # Handed over and acknowledged in one: the transport took the bytes, and no more is ever heard.
    WRITTEN: Final = "written"
    ACKED: Final = "acked"
    # The delivery failed, with this code; what becomes of the copy is told by another event.
    REFUSED: Final = "refused"
    # Out of its hands without a word from it: it waits again.
    RETURNED: Final = "returned"
    DEAD: Final = "dead"
    EXPIRED: Final = "expired"
    DISCARDED: Final = "discarded"
    # A dead letter became one more copy, of the next generation.
    REPLAYED: Final = "replayed"

    # About a session, a channel, a node or the journal itself.
    SESSION: Final = "session"
    DISPATCHER: Final = "dispatcher"
    HELD: Final = "held"
    RELEASED: Final = "released"
    NODE: Final = "node"
    # One of the node's own books, to be compared with what events add up to.
    BOOKS: Final = "books"
    # So many events found no room while the store was away; they are in no frame.
    DROPPED: Final = "dropped"


# What ends a copy: each copy has one of these at most.
SETTLED = frozenset({Kind.ACKED, Kind.WRITTEN, Kind.DEAD, Kind.EXPIRED, Kind.DISCARDED})


class Event(NamedTuple):
    """One row of the table; the columns have the same names everywhere."""

    node: str
    # Microseconds since 1970, by the node's clock; of a publish, when the message was received.
    ts: int
    kind: str
    # When the message was received, in nanoseconds; no other of the node that received it has it.
    msg: int | None = None
    # The node that received it.
    origin: str | None = None
    # None if a call to the store did not know it: then `published` has it.
    channel: str | None = None
    # The session's name in the store: joe/1.
    receiver: str | None = None
    # Of `published` alone: how many receivers, how many of them have it in the store, bytes of the
    # event (0 if these are more receivers of what was told before), its priority, and which session
    # sent it; None if that was the server.
    copies: int | None = None
    kept: int | None = None
    size: int | None = None
    priority: int | None = None
    sender: str | None = None
    # Which hand-over this is about.
    attempt: int | None = None
    # Why: an error code, or the reason of a discard.
    code: str | None = None
    # The dead letter that it became or, if replayed, was; and what failed alike.
    letter: int | None = None
    fingerprint: str | None = None
    # Of `replayed` alone: how often it was replayed by now.
    generation: int | None = None
    # What exactly changed, and a number that belongs to it.
    what: str | None = None
    number: int | None = None
