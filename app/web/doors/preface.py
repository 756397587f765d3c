"""What is sent along with a connection that another process goes on with."""

from typing import Any

import orjson

from holdfast.web.front.arrival import Arrival, OpenSocket, RelayedClient

_END = b"\n"
# The most bytes in one packet, unless its text alone is longer. It must fit a socket's buffer.
PACKET = 32 * 1024
# With room for the text before the bytes of a connection.
LONGEST = 4 * PACKET


def encode(arrival: Arrival, read: bytes) -> list[bytes]:
    """Return packets about a connection: what is known of it, and the bytes read and not handled.

    The connection itself belongs to the first packet.
    """
    first = orjson.dumps({"arrival": arrival, "read": len(read)}) + _END
    room = max(0, PACKET - len(first))
    later = [read[start : start + PACKET] for start in range(room, len(read), PACKET)]
    return [first + read[:room], *later]


def decode(packet: bytes) -> tuple[Arrival, int, bytes]:
    """Return what the first packet says, the number of read bytes, and those that it has.

    Raises `ValueError` if it is not such a packet.
    """
    text, _, read = packet.partition(_END)
    try:
        told = orjson.loads(text)
        return _arrival(told["arrival"]), int(told["read"]), read
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"not about a connection: {error!r}") from error


def _arrival(told: Any) -> Arrival:  # noqa: ANN401 - decoded JSON
    relayed, opened = told["relayed"], told["socket"]
    return Arrival(
        told["listener"],
        told["is_used"],
        told["is_kept"],
        None if relayed is None else _relayed(relayed),
        None if opened is None else _opened(opened),
        # Earlier releases do not say it.
        told.get("moves", 0),
    )


def _opened(told: Any) -> OpenSocket:  # noqa: ANN401 - decoded JSON
    # Earlier releases do not say it.
    is_attached = told.get("is_attached", True)
    return OpenSocket(tuple(told["browsers"]), told["client_id"], is_attached)


def _relayed(told: Any) -> RelayedClient:  # noqa: ANN401 - decoded JSON
    peer = told["peer"]
    return RelayedClient(
        None if peer is None else (peer[0], peer[1]),
        tuple((name, value) for name, value in told["subject"]),
    )
