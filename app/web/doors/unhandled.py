"""The bytes of a connection that were read but not handled: a successor handles them first."""

from typing import Any

from holdfast.web.fast_lane import FastLane
from holdfast.web.open_socket import Socket
from holdfast.web.socket_response import SocketResponse


def unhandled_of_request(connection: FastLane) -> bytes | None:
    """Return the bytes after the last request; None while the connection cannot be handed over."""
    return connection.unread()


def unhandled_of_socket(
    connection: FastLane, response: SocketResponse, socket: Socket
) -> bytes | None:
    """Return the request that opened a WebSocket, and the frames that are not handled.

    None while the socket cannot be handed over.
    """
    request = response.request
    if request is None or socket.is_lost() or socket.is_handling() or connection.is_writing():
        return None
    waiting, begun = response.unhandled(), connection.unheard_frames()
    if waiting is None or begun is None:
        return None
    return head_of(request._message) + waiting + begun


def head_of(message: Any) -> bytes:  # noqa: ANN401 - aiohttp's own type depends on the platform
    """Return the head of a request as it may have arrived."""
    line = f"{message.method} {message.path} HTTP/{message.version[0]}.{message.version[1]}\r\n"
    fields = b"".join(b"%b: %b\r\n" % field for field in message.raw_headers)
    return line.encode("utf-8", "surrogateescape") + fields + b"\r\n"
