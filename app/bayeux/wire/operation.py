"""Operations that rights apply to."""

from enum import Enum


class Operation(Enum):
    """A client's operation on a channel."""

    # Members are compared by identity; Enum's own hash is a slow Python function.
    __hash__ = object.__hash__

    CREATE = "create"
    SUBSCRIBE = "subscribe"
    PUBLISH = "publish"
    # Address a message that is published to the channel.
    PTP = "ptp"
    # Publish a message that asks for replies.
    REQUEST = "request"
    # Read the channel's history, by a subscribe or otherwise.
    HISTORY = "history"
    # Start a subscription at any place in the history.
    REPLAY = "replay"
    # Erase the topic of the channel.
    ERASE = "erase"
    # See who is on the channel.
    PRESENCE = "presence"
