"""The form of messages on the wire."""

from collections.abc import Mapping
from typing import Any

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
