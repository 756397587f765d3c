"""How many messages one reply carries."""

from holdfast.bayeux.session import Session
from holdfast.bayeux.state.cursors import cursors_of

# To a durable session: the store must have each hand-over before the reply leaves. With
# extensions, this takes about 8 ms.
_MOST_DURABLE = 300

# With cursors, because each message gets an event of its session's.
_MOST_WITH_CURSORS = 1_000

# If any message is a redelivery: a client that never acks asks for its whole queue again and again.
_MOST_AGAIN = 2_000


def most_of_reply(session: Session) -> int:
    """Return how many messages the next reply may carry. A negative number means all."""
    asked = -1 if session.terms is None else session.terms.max_entries
    if session.is_durable:
        most = _MOST_DURABLE
    elif cursors_of(session) is not None:
        most = _MOST_WITH_CURSORS
    elif session.queue.count > len(session.queue.new):
        most = _MOST_AGAIN
    else:
        return asked
    if session.queue.count <= most:
        return asked
    return min(asked, most) if asked >= 0 else most
