"""The bytes of a connection that were read but not handled: a successor handles them first."""

from typing import Any

from aiohttp import web
from aiohttp.streams import StreamReader

from holdfast.web.answering.bodies import READ_PARTS
from holdfast.web.front.fast_lane import FastLane
from holdfast.web.websockets.open_socket import Socket
from holdfast.web.websockets.socket_response import SocketResponse


def unhandled_of_request(connection: FastLane) -> bytes | None:
    """Return the bytes after the last request, or an unfinished request as far as it was read.

    None while the connection cannot be handed over.
    """
    read = connection.unread()
    if read is not None:
        return read
    request = unfinished_request(connection)
    if request is None:
        return None
    body = b"".join(request.get(READ_PARTS, ())) + _buffered(request.content)
    body_as_read = connection.begun().as_read(body, request.content_length)
    if body_as_read is None:
        # Its handler has begun to use it.
        return None
    # The client has been told to continue.
    return head_of(request._message, without=b"expect") + body_as_read + connection.aside()


def unfinished_request(connection: FastLane) -> web.Request | None:
    """Return the request whose body has not arrived, if nothing of its response was sent."""
    request = connection._current_request
    if not isinstance(request, web.Request) or connection.frames is not None:
        return None
    if request.content.is_eof() or connection._messages or connection.is_lost():
        return None
    is_answered = request._payload_writer.output_size > 0 or connection.is_writing()
    return None if is_answered else request


def _buffered(content: StreamReader) -> bytes:
    pieces = list(content._buffer)
    if pieces:
        pieces[0] = pieces[0][content._buffer_offset :]
    return b"".join(pieces)


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


def head_of(message: Any, *, without: bytes = b"") -> bytes:  # noqa: ANN401 - of aiohttp
    """Return the head of a request as it may have arrived, without one field."""
    line = f"{message.method} {message.path} HTTP/{message.version[0]}.{message.version[1]}\r\n"
    kept = [field for field in message.raw_headers if field[0].lower() != without]
    fields = b"".join(b"%b: %b\r\n" % field for field in kept)
    return line.encode("utf-8", "surrogateescape") + fields + b"\r\n"
