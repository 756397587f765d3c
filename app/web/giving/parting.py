"""How a connection is left to another process, which goes on with it."""

from holdfast.web.front.fast_lane import FastLane


def request_of(connection: FastLane, body: bytes) -> bytes | None:
    """Return the bytes of the last request, which has this body; None if they are not kept."""
    known = connection._known
    return known.request(body) if connection._is_between and known is not None else None


def may_move(connection: FastLane) -> bool:
    """Return whether its descriptor is all that another process needs to write to its client.

    What is written to it in this turn is written now.
    """
    endpoint = connection._endpoint
    endpoint.coalescer.send()
    is_open = endpoint.gate.lets_read(connection) and not endpoint.right.is_silent
    is_relayed = connection.arrival is not None and connection.arrival.relayed is not None
    is_whole = not (is_relayed or connection.is_lost() or connection.has_tls())
    return is_open and is_whole and not connection.is_writing()


def may_part(connection: FastLane) -> bool:
    """Return whether another process may go on with it, which has only to read one request."""
    is_busy = connection._upgraded or connection._ordinary or connection._set_aside
    return not is_busy and may_move(connection)


def part(connection: FastLane) -> None:
    """Leave it to another process, which has its own descriptor of the connection."""
    connection.is_given = True
    connection._exchange = None
    if connection.transport is not None:
        connection.transport.abort()
