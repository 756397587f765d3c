"""The common part of the transports."""

from collections.abc import Callable, Sequence
from typing import Protocol

import orjson

from holdfast.client.wire import Json, is_reply

# A reply that is due needs no longer than this to arrive.
NETWORK_DELAY_S = 10.0
# Opening a connection takes at most this.
OPENING_S = 10.0


class NotSent(Exception):
    """Nothing of the request can have reached the server."""


class NoReply(Exception):
    """The request was sent, and what became of it is not known."""


class RequestRefused(NoReply):
    """The server refused the request as a whole, and would refuse it again."""

    def __init__(self, text: str, *, is_too_large: bool = False) -> None:
        super().__init__(text)
        code, name = (413, "request_too_large") if is_too_large else (400, "request_refused")
        # The error of a message that is refused alone, in the form of replies.
        self.wire = f"{code}:{text}:{name}"


class ServerFault(NoReply):
    """The server failed over the request, perhaps because of one of its messages."""


class Transport(Protocol):
    """Carries messages to the server, and brings events and replies back."""

    name: str

    async def send(self, messages: Sequence[Json], timeout_s: float) -> list[Json]:
        """Send messages; return their replies when all have arrived.

        Events that come before the replies are passed on at once. Raises `NotSent` and `NoReply`.
        """
        ...

    async def close(self) -> None:
        """Close the connection, if the transport has one."""
        ...


Receive = Callable[[Sequence[Json]], None]


def decoded(body: bytes) -> tuple[list[Json], list[Json]]:
    """Return the events and the replies in a response or frame. Raises `NoReply`."""
    try:
        found = orjson.loads(body)
    except ValueError as error:
        raise NoReply("the response is not JSON") from error
    events: list[Json] = []
    replies: list[Json] = []
    for message in found if isinstance(found, list) else (found,):
        if not (isinstance(message, dict) and isinstance(message.get("channel"), str)):
            raise NoReply("the response has no messages")
        (replies if is_reply(message) else events).append(message)
    return events, replies
