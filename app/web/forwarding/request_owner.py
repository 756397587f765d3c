"""Whose a request is, from its bytes: mostly without decoding it."""

import re
from collections.abc import Sequence
from typing import Final

import orjson

from holdfast.bayeux.wire.codec import Json, RequestLimits, decode, read, weigh
from holdfast.bayeux.wire.errors import RequestRefused
from holdfast.bayeux.wire.unfit import Salvage
from holdfast.web.websockets.socket_frames import content_of_first

_NAME: Final = b'"clientId"'
_ID: Final = re.compile(rb'"clientId"\s*:\s*"([A-Za-z0-9_-]{29})"')
# How most clients write what follows the name, and how long that is.
_WRITTEN: Final = re.compile(rb':"([A-Za-z0-9_-]{29})"')
_WRITTEN_SIZE: Final = 32
_CONNECT: Final = "/meta/connect"
_HANDSHAKE: Final = "/meta/handshake"
_BYTES_OF_IT: Final = _HANDSHAKE.encode()
# No event is on its channel.
_GREETING: Final = b'[{"channel":"/meta/handshake"'
_ESCAPE: Final = b"\\"
# With these escapes, a name, an id or a channel may look different.
_SLASH: Final = b"\\/"
_LATIN: Final = b"\\u00"
_HIDING: Final = re.compile(rb"\\u00[2-7]")
# How many bytes of a request are read at once in the way that reads everything, which is slow.
_MOST_SALVAGED: Final = 65_536
_MOST_ESCAPES: Final = 200_000
# The limits of servers without settings.


def written_id_in(body: bytes) -> bytes:
    """Return what follows the only name of a client id in a request, or nothing.

    The request has no handshake. What follows is an id if it has the form of one, as most clients
    write it.
    """
    # `find` takes a third of the time of `in`, which first asks whether the bytes are a number.
    if body.find(_ESCAPE) >= 0 or body.find(_BYTES_OF_IT) >= 0:
        return b""
    at = body.find(_NAME)
    if at < 0 or body.rfind(_NAME) != at:
        return b""
    begin = at + len(_NAME)
    return body[begin : begin + _WRITTEN_SIZE]


def plain_id_in(body: bytes) -> str | None:
    """Return the client id that all messages of a request have, if that can be seen at once.

    It can be seen in most requests; a handshake has none.
    """
    written = _WRITTEN.fullmatch(written_id_in(body))
    if written is not None:
        return written[1].decode()
    if body.find(_ESCAPE) >= 0 or body.find(_BYTES_OF_IT) >= 0:
        return None
    found = _ID.search(body)
    if found is None:
        return None
    count = body.count(_NAME)
    return found[1].decode() if count == 1 or count == body.count(found[0]) else None


def owner_in(body: bytes, limits: RequestLimits) -> Json | str | None:
    """Return the handshake of a request, which is handled before its other messages.

    Without one, return the client id of the first message that has one, or None if none has. A body
    that is not JSON has none: the process that refuses it need not be a particular one.
    """
    found, count = _ID.search(body), body.count(_NAME)
    seen = None
    if found is not None and (count == 1 or count == body.count(found[0])):
        seen = found[1].decode()
    if body.find(_BYTES_OF_IT) < 0 and not _hides(body) and (seen is not None or count <= 1):
        return seen
    messages = messages_in(body, limits)
    if not messages:
        return seen
    for message in messages:
        if message.get("channel") == _HANDSHAKE:
            return message
    client_id = messages[0].get("clientId")
    return client_id if isinstance(client_id, str) else None


def may_change_session(body: bytes, limits: RequestLimits) -> bool:
    """Return whether a request may give its socket another session, or cannot be read at once."""
    messages = messages_in(body, limits)
    return (
        not messages
        or messages[0].get("channel") == _CONNECT
        or any(message.get("channel") == _HANDSHAKE for message in messages)
    )


def messages_in(body: bytes, limits: RequestLimits) -> Sequence[Json]:
    """Return the messages of a request; none if they cannot be read at once."""
    try:
        if len(body) <= _MOST_SALVAGED:
            return decode(body, limits)
        if body.count(_ESCAPE) > _MOST_ESCAPES and weigh(body) > limits.values:
            # It is nearly always refused, and to be certain would take long.
            return ()
        found = read(body, limits)
    except RequestRefused:
        return ()
    return () if isinstance(found, Salvage) else found


def greeted_id_in(frames: bytes) -> str | None:
    """Return the client id in the reply to a handshake, which is alone in the first frame, or None.

    Others choose what is in events.
    """
    content = content_of_first(frames)
    if not content.startswith(_GREETING):
        return None
    client_id = orjson.loads(content)[0].get("clientId")
    return client_id if isinstance(client_id, str) else None


def _hides(body: bytes) -> bool:
    if body.find(_SLASH) >= 0:
        return True
    return body.find(_LATIN) >= 0 and _HIDING.search(body) is not None
