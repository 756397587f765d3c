"""The form of messages on the wire."""

from collections.abc import Mapping
from math import isfinite
from typing import Any
from urllib.parse import urljoin

import orjson

Json = dict[str, Any]

HANDSHAKE = "/meta/handshake"
CONNECT = "/meta/connect"
SUBSCRIBE = "/meta/subscribe"
UNSUBSCRIBE = "/meta/unsubscribe"
DISCONNECT = "/meta/disconnect"
# Verdicts that do not wait for the next connect are published here.
VERDICTS = "/service/delivery"
# Here the server says that the login will end, and takes the next token.
LOGIN = "/service/login"


def is_reply(message: Mapping[str, Any]) -> bool:
    """Return whether this answers a message of the client; all others are events.

    The answer to a remote call is an event, although it says that it was successful.
    """
    return "successful" in message and (
        "data" not in message or str(message.get("channel")).startswith("/meta/")
    )


def part_of(message: Mapping[str, Any], *names: str) -> Any:  # noqa: ANN401
    """Return what is inside these names, or None; what a server sends may have any form."""
    value: Any = message
    for name in names:
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def packed(message: Json) -> bytes:
    """Return a message as JSON. Raises `ValueError` if it has numbers that JSON does not have."""
    body = orjson.dumps(message)
    # orjson writes null for them.
    if b"null" in body and not _is_finite(message):
        raise ValueError("NaN and infinity are no JSON: send None, or a text, instead")
    return body


def _is_finite(value: object) -> bool:
    match value:
        case float():
            return isfinite(value)
        case dict():
            return all(map(_is_finite, value.values()))
        case list() | tuple():
            return all(map(_is_finite, value))
        case _:
            return True


def complete_link(reply: Json, url: str) -> None:
    """Make the link to the explanation of an error absolute, if a server at this URL sent one."""
    see = part_of(reply, "ext", "see")
    if isinstance(see, str):
        reply["ext"]["see"] = urljoin(url, see)
